"""The composition root: every part is made here and nowhere else, and given what it needs.

`build` makes the parts of a process, and `App.running` starts and stops them in order. The core (``core.py``)
knows no platform and no feature: channels connect it with chat platforms, and features add tools, commands,
routes, sweeps (work at set times) and hooks (functions that the core calls). Several processes may work on
one database; together they are the cluster.

Commands that need only some of the parts make these by `make_parts`, `hooks_of` and `registry_of`.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dotenv import dotenv_values
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.routing import BaseRoute

from bot.agent.demo.model import DemoModel
from bot.agent.loop import TurnLimits
from bot.agent.prompt import Briefing
from bot.agent.text_calls import TextCalls
from bot.approvals import grants
from bot.approvals.agent_questions import ask_tools
from bot.approvals.agents import AgentCalls
from bot.approvals.elicitation import PATIENCE, Questions
from bot.approvals.lookup.admin import AdminLookup
from bot.approvals.lookup.console_sessions import ConsoleSessions
from bot.approvals.lookup.conversations import ConversationLookup
from bot.approvals.lookup.proposals import ProposalLookup
from bot.approvals.lookup.settings import Doctor
from bot.approvals.tools.decisions import decision_tools
from bot.approvals.tools.outputs import output_tools
from bot.approvals.tools.team import team_tools
from bot.channels.base import Channel, ask_membership, has_account, is_shared
from bot.channels.kinds import channels_of
from bot.core import Core, Ports, make_core, policies_of
from bot.domain.attachments import MEGABYTE, FileBounds
from bot.domain.chat import Address, Clock
from bot.domain.connections import Identity
from bot.domain.hooks import Hooks
from bot.domain.jobs import Process
from bot.domain.model import Model
from bot.domain.named_models import NamedModel, ToolCalls
from bot.domain.teams import TeamLimits
from bot.domain.times import now
from bot.domain.work_limits import Bounds
from bot.errors import SettingsError
from bot.features.agents.feature import AGENTS
from bot.features.attention.feature import ATTENTION
from bot.features.connections.feature import CONNECTIONS
from bot.features.feature import (
    ConnectionParts,
    Feature,
    FeatureParts,
    RouteParts,
    Service,
    SweepParts,
)
from bot.features.insights.feature import INSIGHTS
from bot.features.issues.feature import ISSUES
from bot.features.mcp.feature import MCP
from bot.features.memory.feature import MEMORY
from bot.features.mutes.feature import MUTES
from bot.features.opinion.feature import OPINION
from bot.features.paging.feature import PAGING
from bot.features.people.feature import PEOPLE
from bot.features.push.feature import PUSH
from bot.features.requests.feature import REQUESTS
from bot.features.schedules.feature import SCHEDULES
from bot.features.voice.feature import VOICE
from bot.jobs.cluster import Cluster, Runner, SingleProcess
from bot.jobs.scheduler import Scheduler, Sweep
from bot.jobs.webhooks import Webhooks
from bot.settings import EXAMPLE_SECRET_KEY, Settings
from bot.store import migrations, secrets, tokens
from bot.store.audit import admin_changes
from bot.store.change_notifier import ChangeNotifier
from bot.store.connections import give_connections
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry import tracing
from bot.telemetry.logs import logger
from bot.telemetry.tracing import TracedModel
from bot.tools.account_tools import ConnectedTools
from bot.tools.builtin.docker import docker_tools
from bot.tools.builtin.fetch import fetch_tools
from bot.tools.builtin.files.agents_file import AgentsFile
from bot.tools.builtin.files.tools import file_tools
from bot.tools.custom import OwnTools
from bot.tools.custom import load_tools as load_own
from bot.tools.mcp.config import ServerConfig, load_servers
from bot.tools.mcp.interface import Servers
from bot.tools.registry import Registry
from bot.tools.toolset import FixedToolset, Toolset
from bot.web import api
from bot.web.channel import HttpChannel
from bot.web.mcp_logins import CALLBACK_PATH
from bot.web.server import WebServer, make_metrics_route, make_metrics_server
from bot.web.sign_in.accounts import is_allowed
from bot.web.sign_in.oidc import RETURN_PATH, OidcSignIn
from bot.web.sign_in.tokens import Authenticator
from bot.web.site import Site

log = logger(__name__)

FEATURES: tuple[Feature, ...] = (
    PEOPLE,
    SCHEDULES,
    MEMORY,
    INSIGHTS,
    OPINION,
    ATTENTION,
    PAGING,
    MUTES,
    REQUESTS,
    ISSUES,
    MCP,
    AGENTS,
    CONNECTIONS,
    PUSH,
    VOICE,
)
"""The features: parts that Nod could do without, in the order in which lists name them."""
SHUTDOWN_SECONDS = 20.0
"""The time that running executions get to end when Nod stops."""
_QUESTION_GRACE_SECONDS = 15.0
"""The time that a call of an MCP server has left when its question to people has run out."""
_DRAIN_SECONDS = 2.0  # the time at a stop in which a reverse proxy notices that this process is not ready


@dataclass(frozen=True)
class App:
    """The parts of one running Nod."""

    settings: Settings
    clock: Clock
    process: Process
    receives: bool  # the process takes in messages and HTTP requests
    database: Database
    registry: Registry
    notifier: ChangeNotifier
    core: Core
    dispatcher: Runner
    webhooks: Webhooks  # tells scripts how their requests ended
    scheduler: Scheduler
    channels: dict[str, Channel]
    site: Site
    web: WebServer
    services: Sequence[Service]  # the services of features
    sweeps: Sequence[Sweep]  # the sweeps of features
    questions: Questions
    cluster: Cluster
    own_tools: OwnTools  # the tools that the settings name
    mcp: Servers  # the MCP servers
    begin_metrics: Callable[[], Awaitable[None]] | None  # starts the counting; None without NOD_METRICS_TOKEN
    metrics_web: WebServer | None  # serves /metrics on a port of its own
    models: Sequence[Model]

    @contextlib.asynccontextmanager
    async def running(self, *, ticking: bool = True) -> AsyncIterator[None]:
        """Start everything, from the database to the jobs, and stop it in the opposite order.

        If not ``ticking``, no timed work is done: the caller does it (`Recovery.expire_due`,
        `Recovery.recover`).
        """
        async with contextlib.AsyncExitStack() as stack:
            # tracing comes first, so that it covers the start and the stop of everything else
            collector = self.settings.otlp_endpoint
            if collector is not None:
                end = tracing.begin_tracing(collector, self.settings.otlp_header_pairs, self.process.id)
                stack.push_async_callback(asyncio.to_thread, end)

            # what may refuse the start (another process, a port in use) comes before any row is changed
            stack.enter_context(self.cluster.claim())
            stack.callback(self.database.close)
            stack.callback(self.core.execution.close)
            for model in self.models:
                stack.push_async_callback(model.close)
            if self.receives:
                self.web.listen()
                stack.callback(self.web.close)

            # the database is ready before any part reads it
            migrations.upgrade(self.database.engine)
            self._apply_keys()
            self._end_outdated_grants()
            if self.begin_metrics is not None:
                await self.begin_metrics()
            # from now on other processes know that this one is alive, and leave its work to it
            await stack.enter_async_context(self.cluster.at_work())

            # Tools come before channels, which may receive messages immediately. Callbacks run in the
            # opposite order: at a stop open questions are given up first, then executions get their time to
            # end, and the MCP servers stop last.
            stack.push_async_callback(self.questions.stop)
            stack.push_async_callback(self.mcp.stop)
            self.questions.start(self.core.assistant.handle)
            stack.push_async_callback(self.dispatcher.close, SHUTDOWN_SECONDS)
            stack.push_async_callback(self.questions.end_waiting)
            await self.own_tools.start()
            self.mcp.start()
            for channel in self.channels.values():
                stack.push_async_callback(channel.stop)
                await channel.start(
                    self.core.assistant.handle,
                    self.core.lookup,
                    receives=self.receives,
                    others=self.cluster.others,
                )
            await self._start_web(stack)

            # jobs come last: their results go out through channels and the web
            await self.core.recovery.take_over(self.clock())
            # ``queue_of`` chooses the queue in which a job waits
            self.dispatcher.start(self.core.assistant.run, self.core.assistant.queue_of)
            await self.core.recovery.recover(self.clock(), starting=True)
            if ticking:
                self.scheduler.start()
                stack.push_async_callback(self.scheduler.stop)
            watch = asyncio.create_task(self._watch_cluster(), name="cluster changes")
            stack.push_async_callback(cancel_and_wait, watch)
            # From here upwards is the order of a stop: first the site says that it is not ready, then a proxy
            # has time to notice.
            if self.settings.public_url and ticking:
                stack.push_async_callback(asyncio.sleep, _DRAIN_SECONDS)
            stack.enter_context(self.site.mark_up())
            log.info("nod is up", host=self.settings.host, port=self.web.port, channels=list(self.channels))
            yield

    async def _start_web(self, stack: contextlib.AsyncExitStack) -> None:
        """Start the server of this process: the API and console, or the page of metrics alone."""
        stack.push_async_callback(self.site.logins.stop)
        stack.push_async_callback(self.site.doctor.stop)
        if self.receives:
            for service in self.services:
                stack.push_async_callback(service.stop)
            if self.site.organisation is not None:
                stack.push_async_callback(self.site.organisation.close)
            stack.push_async_callback(self.web.stop)
            await self.web.start()
        elif self.metrics_web is not None:
            stack.push_async_callback(self.metrics_web.stop)
            await self.metrics_web.start()

    def _apply_keys(self) -> None:
        """Apply the keys of the settings to the database.

        Seals the audit log with the newest audit key, encrypts secrets that are stored in plain text, and
        logs the secrets that no key opens.
        """
        self.database.write_now(admin_changes.seal_with_key, self.clock())
        result = self.database.write_now(secrets.encrypt_plain)
        if result.encrypted:
            log.info("secrets in the database are encrypted now", many=result.encrypted)
        if result.lost:
            places = sorted({secret.place for secret in result.lost})
            log.warning("no key of NOD_SECRET_KEY opens these; sign in there again", places=places)

    def _end_outdated_grants(self) -> None:
        """End the grants for shell commands in the form of earlier releases, which cover no call now."""
        if not self.settings.shell:
            return
        from bot.tools.builtin.shell.prefix import PREFIX_VERSION  # loaded only where the shell is on

        ended = self.database.write_now(
            grants.end_old_prefix_grants, "shell_run", PREFIX_VERSION, self.clock()
        )
        if ended:
            log.warning("grants of an older reach have ended; approve such a command again", grants=ended)

    async def _watch_cluster(self) -> None:
        """Look for work in the rows, and wake listeners, whenever another process has changed rows."""
        async for _ in self.cluster.changes():
            try:
                await self.core.recovery.recover(self.clock())
                self.notifier.notify()
            except SQLAlchemyError as error:  # the scheduler looks again soon
                log.error("a look at the rows failed", exc_info=error)


async def cancel_and_wait(task: "asyncio.Task[None]") -> None:
    """Cancel a task, and wait until it is gone."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def build(
    settings: Settings,
    *,
    model: Model | None = None,
    toolsets: Sequence[Toolset] | None = None,
    clock: Clock = now,
    demo: bool = False,
    receives: bool = True,
    works: bool = True,
) -> App:
    """Make every part; nothing runs yet. ``model`` and ``toolsets`` replace those that the settings name.

    ``demo``: the process is that of ``nod demo``, and its pages say so. ``receives``: it takes in messages
    and HTTP requests. ``works``: it runs turns and approved calls. On SQLite one process does both.
    """
    # the database, and the processes that work on it
    database = _open_database(settings)
    notifier = ChangeNotifier()
    process = Process.this()
    cluster = _make_cluster(settings, database, process, clock, works=works)
    dispatcher = cluster.dispatcher
    cluster.connect_notifier(notifier)
    policies = policies_of(settings, clock)
    channels: dict[str, Channel] = {}  # filled below; the parts read it only while Nod runs

    def site_url() -> str:
        if settings.port or settings.public_url:
            return settings.site_url()
        return f"http://127.0.0.1:{web.port}"  # the system chose the port; ``web`` is made below

    # tools and models
    questions = Questions(database, dispatcher, notifier, clock, peers=cluster.others)
    parts = make_parts(settings, database, policies, clock, site_url, channels)
    registry, own_tools, mcp = registry_of(parts, questions, toolsets)
    named_models = [] if model else settings.list_answering_models()
    models = [model] if model else _make_models(named_models)
    prices = settings.prices(models[0].name)
    if settings.otlp_endpoint is not None:
        models = _add_tracing(models, named_models)
    # metrics, if a token for them is set
    begin_metrics = metrics_page = metrics_web = None
    if settings.metrics_token is not None:
        from bot.jobs.metrics import Metrics  # its library is loaded only where metrics are wanted

        metrics = Metrics(database, channels, clock, prices, policies)
        models = [metrics.time_model(untimed) for untimed in models]
        begin_metrics = metrics.begin
        metrics_page = make_metrics_route(settings.metrics_token.get_secret_value(), metrics.render_metrics)
        if settings.metrics_port is not None:
            metrics_web = make_metrics_server(metrics_page, settings.host, settings.metrics_port)

    # the core
    ports = Ports(
        database=database,
        dispatcher=dispatcher,
        registry=registry,
        model=models[0],
        channels=channels,
        clock=clock,
        process=process,
        notifier=notifier,
        is_only_process=cluster.others is None,
        other_models=models[1:],
    )
    files = FileBounds(settings.max_file_mb * MEGABYTE)
    core = make_core(
        ports,
        policies,
        bounds=_make_bounds(settings, files),
        limits=_make_turn_limits(settings),
        briefing=Briefing(
            zone=settings.timezone,
            instructions=settings.instructions,
            read_workspace=AgentsFile(settings.workspace).read if settings.workspace else None,
        ),
        prices=prices,
        named_models=named_models,
        routes=[Address.parse(chat) for chat in settings.approver_chats],
        retention=settings.retention,
        notice="" if demo else settings.model_notice,
        site_url=site_url,
        hooks=hooks_of(parts),
        commands=[partial(feature.make_commands, settings) for feature in FEATURES],
    )
    if cluster.others is not None:
        cluster.others.on("stop", core.assistant.stop_here)

    # channels: the one of the console and the HTTP API, then those of platforms
    proposal_lookup = ProposalLookup(core.gate.groups, registry, policies)
    http = HttpChannel(
        registry,
        proposal_lookup,
        ConversationLookup(database, registry, proposal_lookup, clock),
        AdminLookup(database, policies, clock, prices.currency),
        notifier,
        clock,
        peers=cluster.others,
        # tells if an account may still come in; ``site`` is made below, before anything runs
        may_sign_in=lambda actor: site.authenticate.may_still_enter(actor),  # noqa: PLW0108
    )
    channels[http.name] = http
    services = [feature.make_service() for feature in FEATURES if feature.make_service]
    routes: list[BaseRoute] = [metrics_page] if metrics_page else []
    routes += [service.route() for service in services]
    routes += _add_platforms(settings, database, clock, channels)

    # the web
    webhooks = _make_webhooks(settings, database)
    sessions = ConsoleSessions(database, policies, clock, partial(is_allowed, settings.oidc_allowed))
    agents = AgentCalls(database, core.gate, clock, dispatcher.wake, settings.max_agent_calls)
    site = Site(
        channel=http,
        # who makes a request: the holder of a token, or who is signed in
        authenticate=_make_authenticator(settings, database, sessions, clock),
        webhooks=webhooks,
        logins=mcp.sign_ins(database, clock, lambda: site_url() + CALLBACK_PATH),
        sessions=sessions,
        doctor=Doctor(settings, lambda: web.port, clock),
        find_fault=lambda: dispatcher.fault,  # what keeps this process from its work
        models=core.loop.models,
        is_https=(settings.public_url or "").startswith("https:"),
        base_path=settings.base_path,
        organisation=_make_organisation(settings, site_url, clock),
        demo=demo,
        platforms=channels,
        tools_of=agents.list_tools,
        feature_names=frozenset(feature.name for feature in FEATURES if feature.is_on(settings)),
        file_bounds=files,
    )
    route_parts = RouteParts(**vars(parts), wake=dispatcher.wake, agents=agents)
    application = _make_application(settings, site, routes, route_parts)
    web = WebServer(
        application, settings.host, settings.port, settings.max_connections, on_stop=http.end_streams
    )

    sweeps = _make_sweeps(parts, registry, core, ports)
    return App(
        settings=settings,
        clock=clock,
        process=process,
        receives=receives,
        database=database,
        registry=registry,
        notifier=notifier,
        core=core,
        dispatcher=dispatcher,
        webhooks=webhooks,
        scheduler=Scheduler(core.recovery, core.reminders, webhooks, clock, sweeps),
        channels=channels,
        site=site,
        web=web,
        services=services,
        sweeps=sweeps,
        questions=questions,
        cluster=cluster,
        own_tools=own_tools,
        mcp=mcp,
        begin_metrics=begin_metrics,
        metrics_web=metrics_web,
        models=models,
    )


def _make_bounds(settings: Settings, files: FileBounds) -> Bounds:
    return Bounds(
        messages=settings.max_messages,
        conversations=settings.max_conversations,
        open_by_person=settings.max_open_by_person,
        open_in_conversation=settings.max_open_in_conversation,
        turns_by_person=settings.max_turns_by_person,
        files=files,
    )


def _make_turn_limits(settings: Settings) -> TurnLimits:
    return TurnLimits(
        model_calls=settings.max_model_calls,
        history_tokens=settings.history_tokens,
        team=TeamLimits(settings.max_teammates),
    )


def _add_platforms(
    settings: Settings, database: Database, clock: Clock, channels: dict[str, Channel]
) -> list[BaseRoute]:
    """Add the channel of each platform that is set up to ``channels``, and return their routes."""
    routes: list[BaseRoute] = []
    for kind in channels_of(settings):
        if kind.configured(settings):
            channel = kind.build(settings, database, clock)
            channels[kind.name] = channel
            routes += channel.routes()
    return routes


def _make_application(
    settings: Settings, site: Site, routes: Sequence[BaseRoute], route_parts: RouteParts
) -> FastAPI:
    """Return the application of the API and the console, with the routes of channels and features.

    ``route_parts``: what the routes of features receive.
    """
    application = api.create(
        site,
        proxies=settings.trusted_proxies,
        user_header=settings.user_header,
        connections=settings.max_connections,
        more_routes=routes,
        more_parts=[router for feature in FEATURES for router in feature.api],
        more_tags={name: text for feature in FEATURES for name, text in feature.tags.items()},
    )
    application.state.features = route_parts
    return application


def _make_authenticator(
    settings: Settings, database: Database, sessions: ConsoleSessions, clock: Clock
) -> Authenticator:
    return Authenticator(
        names_by_token=settings.names_by_token,
        find_holder=lambda token: database.read(tokens.find_holder, token, clock()),
        find_session_account=sessions.find_session_account,
        has_token_named=lambda name: database.read(tokens.is_working_name, name),
        is_allowed=sessions.may_enter,
        has_organisation=settings.has_organisation_sign_in,
        has_naming_proxy=bool(settings.user_header),
    )


def _make_webhooks(settings: Settings, database: Database) -> Webhooks:
    secret = settings.webhook_secret
    return Webhooks(database, secret.get_secret_value() if secret else None, settings.webhook_hosts)


def _open_database(settings: Settings) -> Database:
    """Return the database with the keys of its audit log and its secrets. Raises SettingsError."""
    if EXAMPLE_SECRET_KEY in settings.secret_key:
        raise SettingsError("NOD_SECRET_KEY: this is the example that anyone can read. Run: nod secrets new")
    database = Database(settings.database_url, settings.audit_keys)
    secrets.give_keyring(database, secrets.Keyring(settings.secret_key))
    return database


def _make_sweeps(parts: FeatureParts, registry: Registry, core: Core, ports: Ports) -> list[Sweep]:
    """Make the sweeps of all features."""
    sweep_parts = SweepParts(
        **vars(parts),
        registry=registry,
        wake=ports.dispatcher.wake,
        standing=partial(ask_membership, ports.channels),
        has_account=partial(has_account, ports.channels),
        models=core.loop.models,
        prices=core.loop.prices,
        redraw=core.cards.announce_change,
    )
    return [sweep for feature in FEATURES for sweep in feature.make_sweeps(sweep_parts)]


def _add_tracing(models: Sequence[Model], named_models: Sequence[NamedModel]) -> list[Model]:
    """Wrap each model in one that traces its calls. ``named_models``: those that run on another server."""
    hosts = {settings.name: settings.host for settings in named_models}
    traced_models: list[Model] = []
    for model in models:
        if model.name in hosts:
            traced_models.append(TracedModel(model, provider="openai", server=hosts[model.name]))
        else:  # it runs in Nod itself, such as that of the demo
            traced_models.append(TracedModel(model, provider="nod"))
    return traced_models


def _make_cluster(
    settings: Settings, database: Database, process: Process, clock: Clock, *, works: bool
) -> Cluster:
    """Return the cluster of this process; on SQLite it is the only one. ``works``: it may run jobs."""
    if settings.sqlite_file is not None:
        return SingleProcess(settings.sqlite_file, database, process, clock)
    from bot.jobs.database_cluster import DatabaseCluster

    return DatabaseCluster(
        settings.database_url, database, process, clock, does_jobs=works, settings=settings.hash_shared()
    )


def make_parts(
    settings: Settings,
    database: Database,
    policies: Policies,
    clock: Clock = now,
    site_url: Callable[[], str] | None = None,
    channels: Mapping[str, Channel] | None = None,
) -> FeatureParts:
    """Return the parts of the core that features receive.

    They include the connections, which are the accounts of people or chats at MCP servers, in whose names
    calls are made. The first feature that can keep connections keeps them all. Raises SettingsError if a
    server needs them and no feature keeps them. ``channels``: they tell if strangers can read a chat, and may
    be filled later.
    """
    parts = FeatureParts(settings=settings, database=database, policies=policies, clock=clock)
    servers = [server for server in _load_servers(settings) if server.identity is not Identity.NOD]
    connection_parts = ConnectionParts(
        **vars(parts),
        servers=servers,
        site_url=site_url or settings.site_url,
        is_shared=partial(is_shared, {} if channels is None else channels),
        environment=_read_environment,
    )
    connections = None
    for feature in FEATURES:
        connections = feature.make_connections(connection_parts)
        if connections is not None:
            break
    if servers and connections is None:
        first = servers[0]
        raise SettingsError(
            f"{settings.mcp_config}: server {first.name!r}: identity {first.identity.value!r} needs accounts "
            'of people or chats, and nothing keeps these here; write "identity": "nod"'
        )
    give_connections(database, connections)
    return replace(parts, connections=connections)


def hooks_of(parts: FeatureParts) -> Hooks:
    """Return the hooks of all features."""
    return Hooks.join(feature.make_hooks(parts) for feature in FEATURES)


def registry_of(
    parts: FeatureParts,
    questions: Questions | None = None,
    toolsets: Sequence[Toolset] | None = None,
) -> tuple[Registry, OwnTools, Servers]:
    """Return the registry of all tools, the tools of a team's own that NOD_TOOLS names, and the MCP servers.

    ``toolsets`` take the place of the tools that the settings name, in the registry. MCP servers start when
    their tools are first needed. Without ``questions`` they can ask people nothing.
    """
    settings = parts.settings
    database = parts.database
    policies = parts.policies
    # the tools that Nod brings itself
    nod_toolsets = [] if toolsets is not None else _make_named_tools(parts)
    nod_toolsets += [
        decision_tools(database, policies),
        team_tools(policies, TeamLimits(settings.max_teammates)),
        ask_tools(),
        *_make_feature_tools(parts, named=False),
    ]
    # the tools of a `FixedToolset` are in ``fixed``: they are the same for everyone
    nod_tools = FixedToolset("Nod", tuple(tool for toolset in nod_toolsets for tool in toolset.fixed))
    nod_tool_names = frozenset(tool.name for tool in nod_tools.fixed)
    # of two tools with one name, the first of these keeps it: Nod's, a team's own, that of an MCP server
    own_tools = load_own(settings.tools, nod_tool_names)
    connected_tools = ConnectedTools(own_tools, database)

    def list_reserved_names() -> frozenset[str]:
        return own_tools.found_names | nod_tool_names

    mcp = _make_servers(settings, database, parts.clock, list_reserved_names, questions)
    all_toolsets: list[Toolset]
    if toolsets is None:
        all_toolsets = [nod_tools, connected_tools, mcp]
    else:
        all_toolsets = [*toolsets, nod_tools]
    if questions is not None:
        all_toolsets.append(questions)
    return Registry(all_toolsets), own_tools, mcp


def _make_feature_tools(parts: FeatureParts, *, named: bool) -> list[FixedToolset]:
    """Make the tools of features: if ``named``, of those with `has_named_tools`, else of all others."""
    toolsets: list[FixedToolset] = []
    for feature in FEATURES:
        if feature.has_named_tools is named:
            toolsets += feature.make_toolsets(parts)
    return toolsets


def _make_named_tools(parts: FeatureParts) -> list[FixedToolset]:
    """Make the tools that Nod brings itself, as far as the settings name them."""
    feature_tools = _make_feature_tools(parts, named=True)
    return [output_tools(parts.database), *feature_tools, *_make_builtin_tools(parts.settings)]


def _make_builtin_tools(settings: Settings) -> list[FixedToolset]:
    """Make the tools of a workspace, of Docker and of the web, as far as the settings turn them on."""
    toolsets: list[FixedToolset] = []
    if settings.workspace is not None:
        if not settings.workspace.is_dir():
            raise SettingsError(f"NOD_WORKSPACE: there is no folder {settings.workspace}; create it first")
        toolsets.append(file_tools(settings.workspace))
        if settings.shell:
            from bot.tools.builtin.shell.tools import shell_tools

            shell = shell_tools(settings.workspace, environment=os.environ, trials=settings.trials)
            toolsets.append(shell)
    if settings.docker_url is not None:
        toolsets.append(docker_tools(settings.docker_url))
    if settings.fetch:
        toolsets.append(fetch_tools(ports=settings.fetch_ports))
    return toolsets


def _load_servers(settings: Settings) -> tuple[ServerConfig, ...]:
    """Return the configured MCP servers; none where no file is named. Raises SettingsError."""
    if settings.mcp_config is None:
        return ()
    return load_servers(settings.mcp_config, _read_environment())


def _read_environment() -> dict[str, str]:
    """Return the variables of the process, and those that only the file ``.env`` has."""
    from_file = {key: value for key, value in dotenv_values(".env").items() if value is not None}
    return {**from_file, **os.environ}


def _make_servers(
    settings: Settings,
    database: Database,
    clock: Clock,
    list_reserved_names: Callable[[], frozenset[str]],
    questions: Questions | None,
) -> Servers:
    """Return the toolset of the configured MCP servers; an empty one where no file is named.

    ``list_reserved_names`` returns the names that no tool of a server may have.
    """
    if settings.mcp_config is None:
        return Servers()
    from bot.tools.mcp.toolset import McpToolset  # the SDK takes a fifth of a start

    configs = _load_servers(settings)
    if questions is None:
        return McpToolset(configs, clock=clock, database=database, list_reserved_names=list_reserved_names)
    answer_seconds = PATIENCE.total_seconds() + _QUESTION_GRACE_SECONDS
    return McpToolset(
        configs,
        clock=clock,
        database=database,
        list_reserved_names=list_reserved_names,
        ask=questions.ask,
        answer_seconds=answer_seconds,
    )


def _make_organisation(settings: Settings, site_url: Callable[[], str], clock: Clock) -> OidcSignIn | None:
    """Return the organisation's sign-in, if the settings have one."""
    if not settings.oidc_issuer:
        return None
    secret = settings.oidc_client_secret
    return OidcSignIn(
        name=settings.oidc_name,
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=secret.get_secret_value() if secret else "",
        allowed=settings.oidc_allowed,
        return_url=lambda: f"{site_url()}{RETURN_PATH}",
        clock=clock,
    )


def _make_models(named_models: Sequence[NamedModel]) -> list[Model]:
    """Return the models of the settings, the default first; without any, the demo model."""
    if not named_models:
        return [DemoModel()]
    from bot.agent.openai.model import OpenAIModel  # its SDK takes a fifth of a start

    models: list[Model] = []
    for model_settings in named_models:
        model: Model = OpenAIModel(model_settings)
        if model_settings.tools is ToolCalls.TEXT:  # its server has no calls of tools
            model = TextCalls(model)
        models.append(model)
    return models

"""The assembly of a Nod: `build` makes every part of a process, and nothing runs yet."""

from collections.abc import Sequence
from functools import partial

from starlette.routing import BaseRoute

from bot.agent.loop import TurnLimits
from bot.agent.prompt import Briefing
from bot.app.app import App
from bot.app.features import FEATURES, hooks_of, make_parts
from bot.app.models import add_tracing, make_models
from bot.app.tools import registry_of
from bot.app.web import make_application, make_authenticator, make_organisation, make_webhooks
from bot.approvals.agents import AgentCalls
from bot.approvals.elicitation import Questions
from bot.approvals.lookup.admin import AdminLookup
from bot.approvals.lookup.console_sessions import ConsoleSessions
from bot.approvals.lookup.conversations import ConversationLookup
from bot.approvals.lookup.proposals import ProposalLookup
from bot.approvals.lookup.settings import Doctor
from bot.channels.base import Channel, ask_membership, has_account
from bot.channels.kinds import channels_of
from bot.core import Core, Ports, make_core, policies_of
from bot.domain.attachments import MEGABYTE, FileBounds
from bot.domain.chat import Address, Clock
from bot.domain.jobs import Process
from bot.domain.model import Model
from bot.domain.teams import TeamLimits
from bot.domain.times import now
from bot.domain.work_limits import Bounds
from bot.errors import SettingsError
from bot.features.feature import FeatureParts, RouteParts, SweepParts
from bot.jobs.cluster import Cluster, SingleProcess
from bot.jobs.scheduler import Scheduler, Sweep
from bot.settings import EXAMPLE_SECRET_KEY, Settings
from bot.store import secrets
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.tools.builtin.files.agents_file import AgentsFile
from bot.tools.registry import Registry
from bot.tools.toolset import Toolset
from bot.web.channel import HttpChannel
from bot.web.mcp_logins import CALLBACK_PATH
from bot.web.metrics_page import make_metrics_route, make_metrics_server
from bot.web.server import WebServer
from bot.web.sign_in.accounts import is_allowed
from bot.web.site import Site


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
    questions = Questions(database, dispatcher, notifier, clock, peers=cluster.peers)
    parts = make_parts(settings, database, policies, clock, site_url, channels)
    registry, own_tools, mcp = registry_of(parts, questions, toolsets)
    named_models = [] if model else settings.list_answering_models()
    models = [model] if model else make_models(named_models)
    prices = settings.prices(models[0].name)
    if settings.otlp_endpoint is not None:
        models = add_tracing(models, named_models)
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
        is_only_process=cluster.peers is None,
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
    if cluster.peers is not None:
        cluster.peers.on("stop", core.assistant.stop_here)

    # channels: the one of the console and the HTTP API, then those of platforms
    proposal_lookup = ProposalLookup(core.gate.groups, registry, policies)
    http = HttpChannel(
        registry,
        proposal_lookup,
        ConversationLookup(database, registry, proposal_lookup, clock),
        AdminLookup(database, policies, clock, prices.currency),
        notifier,
        clock,
        peers=cluster.peers,
        # tells if an account may still come in; ``site`` is made below, before anything runs
        may_sign_in=lambda actor: site.authenticate.may_still_enter(actor),  # noqa: PLW0108
    )
    channels[http.name] = http
    services = [feature.make_service() for feature in FEATURES if feature.make_service]
    routes: list[BaseRoute] = [metrics_page] if metrics_page else []
    routes += [service.route() for service in services]
    routes += _add_platforms(settings, database, clock, channels)

    # the web
    webhooks = make_webhooks(settings, database)
    sessions = ConsoleSessions(database, policies, clock, partial(is_allowed, settings.oidc_allowed))
    agents = AgentCalls(database, core.gate, clock, dispatcher.wake, settings.max_agent_calls)
    site = Site(
        channel=http,
        # who makes a request: the holder of a token, or who is signed in
        authenticate=make_authenticator(settings, database, sessions, clock),
        webhooks=webhooks,
        logins=mcp.sign_ins(database, clock, lambda: site_url() + CALLBACK_PATH),
        sessions=sessions,
        doctor=Doctor(settings, lambda: web.port, clock),
        find_fault=lambda: dispatcher.fault,  # what keeps this process from its work
        models=core.loop.models,
        is_https=(settings.public_url or "").startswith("https:"),
        base_path=settings.base_path,
        organisation=make_organisation(settings, site_url, clock),
        demo=demo,
        platforms=channels,
        tools_of=agents.list_tools,
        feature_names=frozenset(feature.name for feature in FEATURES if feature.is_on(settings)),
        file_bounds=files,
    )
    route_parts = RouteParts(**vars(parts), wake=dispatcher.wake, agents=agents)
    application = make_application(settings, site, routes, route_parts)
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

"""The composition root: every part is made here and nowhere else, and handed what it needs."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from dotenv import dotenv_values
from sqlalchemy.exc import SQLAlchemyError
from starlette.routing import BaseRoute

from bot.agent.gate import Gate
from bot.agent.loop import Loop, TurnLimits
from bot.agent.model import Model
from bot.agent.offline.model import OfflineModel
from bot.agent.openai.model import OpenAIModel
from bot.agent.prompt import Briefing
from bot.approvals.elicitation import PATIENCE, Questions
from bot.approvals.presses import Presses
from bot.assistant import Assistant
from bot.channels.http import api
from bot.channels.http.auth import Doorkeeper
from bot.channels.http.channel import HttpChannel
from bot.channels.http.mcp_logins import BACK
from bot.channels.http.mcp_mount import AgentDoor
from bot.channels.http.server import WebServer
from bot.channels.seam import Channel
from bot.channels.table import CHANNELS
from bot.delivery.bell import Bell
from bot.delivery.cards import Cards
from bot.delivery.notices import Notices
from bot.delivery.team_status import TeamStatusDelivery
from bot.delivery.turns import Turns
from bot.domain.bounds import Bounds
from bot.domain.chat import Address, Clock
from bot.domain.jobs import Dispatcher
from bot.domain.plans import Approver
from bot.domain.policy import Policy
from bot.domain.rules import Mode
from bot.domain.teams import TeamLimits
from bot.domain.times import now
from bot.errors import SettingsError
from bot.logs import logger
from bot.lookup.admin import AdminLookup
from bot.lookup.cards import CoreLookup
from bot.lookup.conversations import ConversationLookup
from bot.lookup.proposals import ProposalLookup
from bot.settings import SCRIPTED, Settings
from bot.store import migrations, tokens
from bot.store.database import Database
from bot.store.lock import News, ProcessLock
from bot.store.record import changes
from bot.store.rules import Policies
from bot.tools.builtin.docker import docker_tools
from bot.tools.builtin.fetch import fetch_tools
from bot.tools.builtin.files.tools import file_tools
from bot.tools.builtin.issues.tools import issue_tools
from bot.tools.builtin.shell.tools import shell_tools
from bot.tools.custom import OwnTools
from bot.tools.custom import load as load_own
from bot.tools.mcp.config import load
from bot.tools.mcp.login import Logins
from bot.tools.mcp.toolset import McpToolset
from bot.tools.own.decisions import decision_tools
from bot.tools.own.outputs import output_tools
from bot.tools.own.requests import request_tools
from bot.tools.own.team import team_tools
from bot.tools.registry import Registry
from bot.tools.tool import FixedToolset, Toolset
from bot.upkeep.dispatcher import EmbeddedDispatcher
from bot.upkeep.recovery import Recovery
from bot.upkeep.reminders import Reminders
from bot.upkeep.scheduler import Scheduler
from bot.upkeep.webhooks import Callbacks

log = logger(__name__)

_SHUTDOWN_SECONDS = 20.0
_GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Ports:
    """What the core stands on: rows, tools, who answers, who speaks. Channels may be added later."""

    database: Database
    dispatcher: Dispatcher
    registry: Registry
    model: Model
    channels: dict[str, Channel]
    clock: Clock = now
    bell: Bell = field(default_factory=Bell)


@dataclass(frozen=True)
class Core:
    """Everything that knows no platform, put together."""

    gate: Gate
    cards: Cards
    turns: Turns
    assistant: Assistant
    lookup: CoreLookup
    recovery: Recovery
    reminders: Reminders


@dataclass(frozen=True)
class App:
    """All parts of one running Nod."""

    settings: Settings
    clock: Clock
    database: Database
    registry: Registry
    bell: Bell
    cards: Cards
    dispatcher: EmbeddedDispatcher
    assistant: Assistant
    recovery: Recovery
    lookup: CoreLookup
    callbacks: Callbacks
    scheduler: Scheduler
    channels: dict[str, Channel]
    web: WebServer
    door: AgentDoor
    questions: Questions
    lock: ProcessLock
    own: OwnTools
    mcp: McpToolset
    logins: Logins

    @contextlib.asynccontextmanager
    async def running(self, *, ticking: bool = True) -> AsyncIterator["asyncio.Task[None]"]:
        """Everything up, from the database to the last channel; and down again in the opposite order.

        Whatever can refuse the start is asked before a row is touched or work is begun. The task that is
        given ends only by raising: where another process took over this one's database.

        ``ticking`` False leaves time to the caller (`Recovery.expire_due`, `Recovery.recover`).
        """
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(self.lock)
            stack.callback(self.database.close)
            self.web.listen()
            stack.callback(self.web.close)
            migrations.upgrade(self.database.engine)
            self.database.write_now(changes.seal_with_key, self.clock())
            stack.push_async_callback(self.questions.stop)
            stack.push_async_callback(self.mcp.stop)
            self.questions.start(self.assistant.handle)
            stack.push_async_callback(self.dispatcher.close, _SHUTDOWN_SECONDS)
            await self.own.start()
            for channel in self.channels.values():
                stack.push_async_callback(channel.stop)
                await channel.start(self.assistant.handle, self.lookup)
            stack.push_async_callback(self.door.stop)
            await self.door.start(self.web.site)
            stack.push_async_callback(self.web.stop)
            stack.push_async_callback(self.logins.stop)
            await self.web.start()
            await self.recovery.take_over(self.clock())
            self.dispatcher.start(self.assistant.run, self.assistant.queue_of)
            await self.recovery.recover(self.clock(), starting=True)
            if ticking:
                self.scheduler.start()
                stack.push_async_callback(self.scheduler.stop)
            watch = asyncio.create_task(self._watch(), name="lock")
            stack.push_async_callback(ended, watch)
            log.info("nod is up", host=self.settings.host, port=self.web.port, channels=list(self.channels))
            yield watch

    async def _watch(self) -> None:
        """Look at the rows when another process changed them; take no work while the lock is lost."""
        async for news in self.lock.watch():
            if news is News.LOST:
                self.dispatcher.pause()
                continue
            if news is News.BACK:
                self.dispatcher.resume()
            try:
                await self.recovery.recover(self.clock())
                self.bell.ring()
            except SQLAlchemyError as error:  # the next tick looks again
                log.error("a look at the rows failed", exc_info=error)


async def ended(task: "asyncio.Task[None]") -> None:
    """Cancel a task, and wait until it is gone."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def core(
    ports: Ports,
    policies: Policies,
    *,
    bounds: Bounds | None = None,
    limits: TurnLimits | None = None,
    briefing: Briefing | None = None,
    routes: Sequence[Address] = (),
    retention: timedelta = timedelta(days=30),
    notice: str = "",
) -> Core:
    """Put the core together; nothing runs yet. ``routes``: chats that get every card; ``notice``: for all."""
    database, clock, bounds = ports.database, ports.clock, bounds or Bounds()
    channels, dispatcher, bell = ports.channels, ports.dispatcher, ports.bell
    notices = Notices(channels, database, policies, routes)
    cards = Cards(channels, ports.registry, database, policies, clock, bell, notices, routes)
    turns = Turns(channels, database, cards, clock, routes)
    gate = Gate(ports.registry, policies, database, clock, bounds)
    presses = Presses(database, gate, clock)
    loop = Loop(ports.model, gate, database, clock, limits or TurnLimits(), briefing or Briefing())
    boards = TeamStatusDelivery(channels, database)
    assistant = Assistant(database, gate, presses, loop, turns, cards, boards, dispatcher, clock, bounds)
    return Core(
        gate,
        cards,
        turns,
        assistant,
        CoreLookup(database, cards, presses, policies, notice),
        Recovery(database, gate, turns, dispatcher, assistant.under_way, retention),
        Reminders(database, policies, cards, notices),
    )


def build(
    settings: Settings,
    *,
    model: Model | None = None,
    toolsets: Sequence[Toolset] | None = None,
    clock: Clock = now,
    demo: bool = False,
) -> App:
    """Make every part; nothing runs yet. ``model`` and ``toolsets`` replace those the settings name."""
    database = Database(settings.database_url, settings.audit_keys)
    bell, dispatcher = Bell(), EmbeddedDispatcher()
    questions = Questions(database, dispatcher, bell, clock)
    policies = policies_of(settings)
    registry, own, mcp = registry_of(settings, database, policies, clock, questions, toolsets)
    model = model or _model(settings)
    ports = Ports(database, dispatcher, registry, model, {}, clock, bell)
    made = core(
        ports,
        policies,
        bounds=Bounds(
            settings.max_messages,
            settings.max_conversations,
            settings.max_open_by_person,
            settings.max_open_in_conversation,
            settings.max_turns_by_person,
        ),
        limits=TurnLimits(
            settings.max_model_calls, settings.history_tokens, TeamLimits(settings.max_teammates)
        ),
        briefing=Briefing(settings.timezone, settings.instructions),
        routes=[Address.parse(chat) for chat in settings.approver_chats],
        retention=settings.retention,
        notice=SCRIPTED if settings.scripted and not demo else "",
    )
    seen = ProposalLookup(database, registry, policies)
    said = ConversationLookup(database, registry, seen, clock)
    http = HttpChannel(registry, seen, said, AdminLookup(database, policies, clock), bell, clock)
    ports.channels[http.name] = http
    secret = settings.webhook_secret
    callbacks = Callbacks(database, secret.get_secret_value() if secret else None, settings.webhook_hosts)
    door = AgentDoor()
    routes: list[BaseRoute] = [door.route()]
    for kind in CHANNELS:
        if kind.configured(settings):
            ports.channels[kind.name] = channel = kind.build(settings, database, clock)
            routes += channel.routes()

    def back() -> str:
        own = settings.own_url if settings.port else f"http://127.0.0.1:{web.port}"
        return (settings.public_url or own).rstrip("/") + BACK

    logins = Logins(mcp.servers, database, clock, back)
    application = api.create(
        http,
        Doorkeeper(settings.tokens, lambda token: database.read(tokens.holder, token)),
        callbacks,
        logins,
        model_name=model.name,
        demo=demo,
        platforms=ports.channels,
        more_routes=routes,
    )
    web = WebServer(application, settings.host, settings.port, settings.max_connections)
    return App(
        settings=settings,
        clock=clock,
        database=database,
        registry=registry,
        bell=bell,
        cards=made.cards,
        dispatcher=dispatcher,
        assistant=made.assistant,
        recovery=made.recovery,
        lookup=made.lookup,
        callbacks=callbacks,
        scheduler=Scheduler(made.recovery, made.reminders, callbacks, clock),
        channels=ports.channels,
        web=web,
        door=door,
        questions=questions,
        lock=ProcessLock.of(settings.database_url),
        own=own,
        mcp=mcp,
        logins=logins,
    )


def registry_of(
    settings: Settings,
    database: Database,
    policies: Policies,
    clock: Clock,
    questions: Questions | None = None,
    toolsets: Sequence[Toolset] | None = None,
) -> tuple[Registry, OwnTools, McpToolset]:
    """All tools that the settings name, or ``toolsets`` instead, and what is asked over them.

    MCP servers start when tools are first asked for; without ``questions`` what they ask is declined.
    """
    always = [
        request_tools(),
        decision_tools(database, policies),
        team_tools(policies, TeamLimits(settings.max_teammates)),
    ]
    builtin = [*builtin_tools(settings, database, clock), *always]
    own = own_tools(settings, builtin)
    mcp = _mcp(settings, database, clock, lambda: own.known | names_of(builtin), questions)
    found = [*builtin, own, mcp] if toolsets is None else [*toolsets, *always]
    return Registry([*found, *([questions] if questions else [])]), own, mcp


def builtin_tools(settings: Settings, database: Database, clock: Clock) -> list[FixedToolset]:
    """The tools Nod brings itself, as far as the settings turn them on."""
    found = [output_tools(database)]
    if settings.issues:
        found.append(issue_tools(database, clock))
    if settings.workspace is not None:
        if not settings.workspace.is_dir():
            raise SettingsError(f"NOD_WORKSPACE: there is no folder {settings.workspace}; create it first")
        found.append(file_tools(settings.workspace))
        if settings.shell:
            found.append(shell_tools(settings.workspace, environment=os.environ))
    if settings.docker_url is not None:
        found.append(docker_tools(settings.docker_url))
    if settings.fetch:
        found.append(fetch_tools(ports=settings.fetch_ports))
    return found


def own_tools(settings: Settings, builtin: Sequence[FixedToolset]) -> OwnTools:
    """The tools a team names in ``NOD_TOOLS``; raises SettingsError where one cannot be had."""
    return load_own(settings.tools, names_of(builtin))


def names_of(toolsets: Sequence[FixedToolset]) -> frozenset[str]:
    return frozenset(tool.name for toolset in toolsets for tool in toolset.fixed)


def _mcp(
    settings: Settings,
    database: Database,
    clock: Clock,
    taken: Callable[[], frozenset[str]],
    questions: Questions | None,
) -> McpToolset:
    """The tools of the configured MCP servers; none where no file is named."""
    if settings.mcp_config is None:
        return McpToolset((), clock=clock)
    given = {key: value for key, value in dotenv_values(".env").items() if value is not None}
    configs = load(settings.mcp_config, {**given, **os.environ})
    if questions is None:
        return McpToolset(configs, clock=clock, database=database, taken=taken)
    # a little longer than a question waits, so that it ends by itself
    patience = PATIENCE.total_seconds() + _GRACE_SECONDS
    return McpToolset(
        configs, clock=clock, database=database, taken=taken, ask=questions.ask, patience=patience
    )


def policies_of(settings: Settings) -> Policies:
    """The current policy: the rules over the settings' defaults."""
    return Policies(
        Policy(
            mode=Mode(settings.approval_policy),
            ttl=settings.proposal_ttl,
            admins=frozenset(settings.admins),
            approvers=frozenset(settings.approvers),
            plans=Approver(settings.plan_approval),
        )
    )


def _model(settings: Settings) -> Model:
    """The real one where a key or a server is named; otherwise the clearly labelled offline one."""
    if settings.scripted:
        return OfflineModel()
    return OpenAIModel(
        model=settings.model,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none",
        base_url=settings.openai_base_url,
        strict=settings.model_strict,
        stream_options=settings.model_stream_options,
        parallel_tool_calls=settings.model_parallel_tool_calls,
    )

"""The composition root: every part is made here and nowhere else, and handed what it needs."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dotenv import dotenv_values
from starlette.routing import BaseRoute

from bot.agent.gate import Gate
from bot.agent.loop import Limits, Loop
from bot.agent.model import Model
from bot.agent.offline import OfflineModel
from bot.agent.openai import OpenAIModel
from bot.assistant import Assistant
from bot.boards import Boards
from bot.callbacks import Callbacks
from bot.channels.http import api
from bot.channels.http.agent_door import AgentDoor
from bot.channels.http.auth import Doorkeeper
from bot.channels.http.channel import HttpChannel
from bot.channels.http.server import WebServer
from bot.channels.http.views import Views
from bot.channels.slack.channel import SlackChannel
from bot.channels.telegram.channel import TelegramChannel
from bot.delivery import Bell, Delivery
from bot.desk import CoreDesk
from bot.domain.chat import Address, Channel, Clock
from bot.domain.plans import Approver
from bot.domain.policy import Mode, Policy
from bot.domain.teams import TeamLimits
from bot.errors import SettingsError
from bot.jobs.embedded import EmbeddedDispatcher
from bot.presses import Presses
from bot.questions import PATIENCE, Questions
from bot.scheduler import Scheduler
from bot.settings import Settings
from bot.store import migrations
from bot.store.database import Database
from bot.store.lock import ProcessLock
from bot.store.rules import Policies
from bot.telemetry import logger
from bot.tools.builtin.docker import docker_tools
from bot.tools.builtin.fetch import fetch_tools
from bot.tools.builtin.files import file_tools
from bot.tools.builtin.issues import issue_tools
from bot.tools.builtin.outputs import output_tools
from bot.tools.builtin.requests import request_tools
from bot.tools.builtin.shell import shell_tools
from bot.tools.builtin.team import team_tools
from bot.tools.mcp.config import load
from bot.tools.mcp.toolset import McpToolset
from bot.tools.own import OwnTools
from bot.tools.own import load as load_own
from bot.tools.registry import Registry
from bot.tools.tool import FixedToolset, Toolset

log = logger(__name__)

_SHUTDOWN_SECONDS = 20.0
_GRACE_SECONDS = 15.0


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class App:
    """All parts of one running Nod."""

    settings: Settings
    clock: Clock
    database: Database
    registry: Registry
    delivery: Delivery
    dispatcher: EmbeddedDispatcher
    assistant: Assistant
    desk: CoreDesk
    callbacks: Callbacks
    scheduler: Scheduler
    channels: dict[str, Channel]
    web: WebServer
    door: AgentDoor
    questions: Questions
    lock: ProcessLock
    own: OwnTools
    mcp: McpToolset

    @contextlib.asynccontextmanager
    async def running(self, *, ticking: bool = True) -> AsyncIterator[None]:
        """Everything up, from the database to the last channel; and down again in the opposite order.

        ``ticking`` False leaves time to the caller (`Assistant.expire_due`, `Assistant.recover`).
        """
        with self.lock:
            alone = self.lock.exclusive
            migrations.upgrade(self.database.engine)
            self.dispatcher.start(self.assistant.run)
            async with contextlib.AsyncExitStack() as stack:
                stack.callback(self.database.close)
                stack.push_async_callback(self.questions.stop)
                stack.push_async_callback(self.mcp.stop)
                self.questions.start(self.assistant.handle)
                stack.push_async_callback(self.dispatcher.close, _SHUTDOWN_SECONDS)
                await self.own.start()
                if alone:
                    await self.assistant.take_over(self.clock())
                for channel in self.channels.values():
                    stack.push_async_callback(channel.stop)
                    await channel.start(self.assistant.handle, self.desk)
                await self.assistant.expire_due(self.clock())
                await self.assistant.recover(self.clock(), starting=alone)
                if ticking:
                    self.scheduler.start()
                    stack.callback(self.scheduler.stop)
                stack.push_async_callback(self.door.stop)
                await self.door.start(self.web.site)
                stack.push_async_callback(self.web.stop)
                await self.web.start()
                log.info(
                    "nod is up", host=self.settings.host, port=self.web.port, channels=list(self.channels)
                )
                yield


def build(
    settings: Settings,
    *,
    model: Model | None = None,
    toolsets: Sequence[Toolset] | None = None,
    clock: Clock = now,
    demo: bool = False,
) -> App:
    """Make every part; nothing runs yet. ``model`` and ``toolsets`` replace those the settings name."""
    database = Database(settings.database_url)
    bell, dispatcher = Bell(), EmbeddedDispatcher()
    questions = Questions(database, dispatcher, bell, clock)
    policies = policies_of(settings)
    registry, own, mcp = registry_of(settings, database, policies, clock, questions, toolsets)
    model = model or _model(settings)
    channels: dict[str, Channel] = {}
    delivery = Delivery(
        channels,
        registry,
        database,
        policies,
        clock,
        bell,
        routes=[Address.parse(chat) for chat in settings.approver_chats],
    )
    gate = Gate(registry, policies, database, clock)
    limits = Limits(settings.max_model_calls, settings.history_tokens, TeamLimits(settings.max_teammates))
    presses = Presses(database, gate, clock)
    assistant = Assistant(
        database,
        gate,
        presses,
        Loop(model, gate, database, clock, limits),
        delivery,
        Boards(channels, database),
        dispatcher,
        clock,
        settings.retention,
    )
    desk = CoreDesk(database, delivery, presses, policies)
    http = HttpChannel(database, registry, Views(desk, policies, clock), bell)
    channels[http.name] = http
    secret = settings.webhook_secret
    callbacks = Callbacks(database, secret.get_secret_value() if secret else None, settings.webhook_hosts)
    door = AgentDoor()
    routes: list[BaseRoute] = [door.route()]
    if settings.slack_bot_token or settings.slack_client_id:
        channels["slack"] = slack = SlackChannel(settings, database, clock)
        routes += slack.routes()
    if settings.telegram_bot_token:
        channels["telegram"] = telegram = TelegramChannel(settings, database, clock)
        routes += telegram.routes()
    application = api.create(
        http, Doorkeeper(settings.tokens), callbacks, model_name=model.name, demo=demo, more_routes=routes
    )
    return App(
        settings=settings,
        clock=clock,
        database=database,
        registry=registry,
        delivery=delivery,
        dispatcher=dispatcher,
        assistant=assistant,
        desk=desk,
        callbacks=callbacks,
        scheduler=Scheduler(assistant, callbacks, clock),
        channels=channels,
        web=WebServer(application, settings.host, settings.port),
        door=door,
        questions=questions,
        lock=ProcessLock(settings.sqlite_file),
        own=own,
        mcp=mcp,
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
    always = [request_tools(), team_tools(policies, TeamLimits(settings.max_teammates))]
    builtin = [*builtin_tools(settings, database, clock), *always]
    own = own_tools(settings, builtin)
    mcp = _mcp(settings, clock, lambda: own.known | names_of(builtin), questions)
    found = [*builtin, own, mcp] if toolsets is None else [*toolsets, *always]
    return Registry([*found, *([questions] if questions else [])]), own, mcp


def builtin_tools(settings: Settings, database: Database, clock: Clock) -> list[FixedToolset]:
    """The tools Nod brings itself, as far as the settings turn them on."""
    found = [issue_tools(database, clock), output_tools(database)]
    if settings.workspace is not None:
        if not settings.workspace.is_dir():
            raise SettingsError(f"NOD_WORKSPACE: there is no folder {settings.workspace}; create it first")
        found.append(file_tools(settings.workspace))
        if settings.shell:
            found.append(shell_tools(settings.workspace, environment=os.environ))
    if settings.docker_url is not None:
        found.append(docker_tools(settings.docker_url))
    if settings.fetch:
        found.append(fetch_tools())
    return found


def own_tools(settings: Settings, builtin: Sequence[FixedToolset]) -> OwnTools:
    """The tools a team names in ``NOD_TOOLS``; raises SettingsError where one cannot be had."""
    return load_own(settings.tools, names_of(builtin))


def names_of(toolsets: Sequence[FixedToolset]) -> frozenset[str]:
    return frozenset(tool.name for toolset in toolsets for tool in toolset.fixed)


def _mcp(
    settings: Settings,
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
        return McpToolset(configs, clock=clock, taken=taken)
    # a little longer than a question waits, so that it ends by itself
    patience = PATIENCE.total_seconds() + _GRACE_SECONDS
    return McpToolset(configs, clock=clock, taken=taken, ask=questions.ask, patience=patience)


def policies_of(settings: Settings) -> Policies:
    """The policy in force over the settings' defaults."""
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
    if settings.openai_api_key is None and settings.openai_base_url is None:
        return OfflineModel()
    return OpenAIModel(
        model=settings.model,
        api_key=settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none",
        base_url=settings.openai_base_url,
        strict=settings.model_strict,
        stream_options=settings.model_stream_options,
        parallel_tool_calls=settings.model_parallel_tool_calls,
    )

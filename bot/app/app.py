"""The parts of one running Nod, started and stopped in order."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from bot.approvals import grants
from bot.approvals.elicitation import Questions
from bot.channels.base import Channel
from bot.core import Core
from bot.domain.chat import Clock
from bot.domain.jobs import Process
from bot.domain.model import Model
from bot.features.feature import Service
from bot.jobs.cluster import Cluster, Runner
from bot.jobs.scheduler import Scheduler, Sweep
from bot.jobs.webhooks import Webhooks
from bot.settings import Settings
from bot.store import migrations, secrets
from bot.store.audit import admin_changes
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.telemetry import tracing
from bot.telemetry.logs import logger
from bot.tools.custom import OwnTools
from bot.tools.mcp.interface import Servers
from bot.tools.registry import Registry
from bot.web.server import WebServer
from bot.web.site import Site

log = logger(__name__)

SHUTDOWN_SECONDS = 20.0
"""The time that running executions get to end when Nod stops."""
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
                    others=self.cluster.peers,
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
            stack.enter_context(self.site.mark_serving())
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

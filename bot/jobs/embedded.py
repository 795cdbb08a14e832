"""The dispatcher of one process: an asyncio task per job, each (work, key) once at a time."""

import asyncio
from collections.abc import Awaitable, Callable

from bot.domain.jobs import Job, Work
from bot.telemetry import logger

log = logger(__name__)

Handler = Callable[[Job], Awaitable[tuple[Job, ...]]]


class EmbeddedDispatcher:
    """Nothing is kept beyond the running tasks: what is lost with the process is found again in the rows."""

    def __init__(self, at_once: int = 100) -> None:
        self._handler: Handler | None = None
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._again: set[Job] = set()
        self._room = asyncio.Semaphore(at_once)
        self._closing = False

    def start(self, handler: Handler) -> None:
        """``handler`` does one job and returns the work it made."""
        self._handler = handler

    async def wake(self, *jobs: Job) -> None:
        for job in jobs:
            if self._closing:
                return
            if job in self._tasks:
                self._again.add(job)
            else:
                self._tasks[job] = asyncio.create_task(self._do(job), name=f"{job.work}:{job.key}")

    async def stop_turn(self, conversation_id: str) -> None:
        task = self._tasks.get(Job(Work.TURN, conversation_id))
        if task is not None:
            task.cancel()

    async def idle(self) -> None:
        """Return when nothing runs."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self, seconds: float) -> None:
        """Let running executions end for up to ``seconds``; interrupt the rest: its rows say to go on."""
        self._closing = True
        running = [task for job, task in self._tasks.items() if job.work is Work.EXECUTE]
        if running:
            await asyncio.wait(running, timeout=seconds)
        rest = list(self._tasks.values())
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _do(self, job: Job) -> None:
        try:
            async with self._room:
                if self._handler is None:
                    raise RuntimeError("the dispatcher was not started")
                made = await self._handler(job)
        except Exception as error:  # the rows still say what to do; the next tick finds it
            log.error("a job broke", work=job.work, key=job.key, exc_info=error)
            made = ()
        finally:
            del self._tasks[job]
            again = job in self._again
            self._again.discard(job)
        await self.wake(*made, *((job,) if again else ()))

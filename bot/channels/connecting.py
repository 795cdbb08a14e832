"""Connections to platforms: back-off, downloads, background tasks, and shared rate limits."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2

from bot.domain.jobs import Peers
from bot.errors import ChannelError, SettingsError
from bot.telemetry.logs import logger

_HOPS = 4  # redirects, and the answer
_SLOWEST = 60.0  # seconds between two tries

T = TypeVar("T")

log = logger(__name__)

PATIENCE = 15.0
"""Seconds for which a call waits because the platform says so. What would take longer is tried another time:
a call that waits holds a place among those at work, and other chats would wait for it, too."""
_LONGEST = 3600.0  # seconds; after that a platform may be asked again, whatever it said
_MANY = 1000
_NOT_THERE = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


async def download(address: str, most: int, origins: Collection[str], token: str = "") -> bytes:
    """Download a file from a platform, cut one byte beyond ``most``. Raises ChannelError.

    Only these ``origins``, such as ``https://files.slack.com``, are asked, also where one redirects.
    """
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
    url, found = httpx2.URL(address), bytearray()
    try:
        async with httpx2.AsyncClient(follow_redirects=False) as client:
            for _ in range(_HOPS):
                if f"{url.scheme}://{url.netloc.decode()}" not in origins:
                    raise ChannelError("it is kept elsewhere; download it and attach it")
                async with client.stream("GET", url, headers=headers) as response:
                    if response.is_redirect:
                        url = url.join(response.headers.get("location", ""))
                        continue
                    if not response.is_success:
                        raise ChannelError(_describe_status(response.status_code))
                    async for part in response.aiter_raw():
                        found += part
                        if len(found) > most:
                            break
                    return bytes(found[: most + 1])
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise ChannelError("it could not be fetched") from error
    raise ChannelError("its platform redirects too often")


def _describe_status(status: int) -> str:
    if status in _NOT_THERE:
        return "it was deleted, or its link has expired"
    return f"the download failed (HTTP {status})"


class PlatformLink:
    """Connecting with back-off: tries to reach a platform until it answers, more slowly each time.

    ``attempt`` gives what hindered it for now, None when it succeeded, and raises SettingsError for what
    trying again will not change. ``sleep`` takes seconds.
    """

    def __init__(
        self,
        platform: str,
        attempt: Callable[[], Awaitable[str | None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._connected, self._unreached = f"{platform} connected", f"{platform} can't be reached, retrying"
        self._attempt = attempt
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None
        self.up = False
        self.refused = False

    async def open(self, patience: float | None = None) -> None:
        """Wait for the first try, at most ``patience`` seconds; what that did not do is done later.

        Raises SettingsError when the first try did in time.
        """
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep_trying(tried))
        await asyncio.wait({tried}, timeout=patience)
        if not tried.cancel():
            tried.result()

    async def _keep_trying(self, tried: "asyncio.Future[None]") -> None:
        told, pause = "", 1.0
        while True:
            try:
                fault = await self._attempt()
            except SettingsError as error:
                self.refused = True
                if tried.done():
                    log.error(error.message)
                else:
                    tried.set_exception(error)
                return
            except Exception as error:
                if tried.done():
                    raise
                tried.set_exception(error)
                return
            self.up = fault is None
            if self.up and told:
                log.info(self._connected)
            if not tried.done():
                tried.set_result(None)
            if fault is None:
                return
            if fault != told:
                told = fault
                log.warning(self._unreached, why=told)
            await self._sleep(pause)
            pause = min(pause * 2, _SLOWEST)

    async def close(self) -> None:
        self.up = False
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Background:
    """Background tasks, for work after an answer; failures are logged as ``what``, ``usual`` ones briefly."""

    def __init__(self, what: str, *usual: type[Exception]) -> None:
        self._what = what
        self._usual: tuple[type[Exception], ...] = (ChannelError, *usual)
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._log_end)
        return task

    def _log_end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, self._usual):
            log.warning(self._what, why=str(error))
        elif error is not None:
            log.error(self._what, exc_info=error)

    async def close(self, patience: float = 0) -> None:
        """Cancel what has not ended in so many seconds."""
        if self._tasks and patience:
            await asyncio.wait(self._tasks, timeout=patience)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Waits:
    """Rate limits as a platform told them: until when each of its places takes nothing.

    A place is what its limits count by: a chat, a method in a workspace. ``now`` is in seconds, of which only
    differences count. What one process is told may be lost on its way to another: that one is told itself.
    """

    def __init__(self, platform: str, now: Callable[[], float] = time.monotonic) -> None:
        self._kind = f"{platform} wait"
        self._now = now
        self._until: dict[str, float] = {}
        self._others: Peers | None = None

    def share(self, others: Peers) -> None:
        """Wait together with the other processes."""
        self._others = others
        others.on(self._kind, lambda told: self._keep(*told))

    def told(self, place: str, seconds: float) -> None:
        """Note a wait that the platform told this process."""
        self._keep(place, seconds)
        if self._others is not None:
            self._others.broadcast(self._kind, [place, seconds])

    def count_seconds_left(self, place: str) -> float:
        """Return the seconds until the place takes calls again, or 0."""
        return max(0.0, self._until.get(place, 0.0) - self._now())

    def _keep(self, place: str, seconds: float) -> None:
        now = self._now()
        if len(self._until) > _MANY:
            self._until = {each: until for each, until in self._until.items() if until > now}
        self._until[place] = max(self._until.get(place, 0.0), now + min(seconds, _LONGEST))

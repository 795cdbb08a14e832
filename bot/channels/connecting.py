"""Tools for connections to platforms, which every channel uses.

- `PlatformLink` connects with back-off.
- `download` fetches a file that people attached.
- `Background` runs tasks after an answer.
- `PlatformWaits` remembers until when a platform takes no more calls, in all processes of this Nod.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2

from bot.domain.jobs import Peers
from bot.errors import ChannelError, SettingsError
from bot.telemetry.logs import logger

T = TypeVar("T")

log = logger(__name__)

MAX_CALL_WAIT_SECONDS = 15.0
"""The most seconds for which a call waits while a platform limits the rate.

A call that would have to wait longer fails, to be tried another time: a waiting call takes a slot from other
chats.
"""
_MAX_REQUESTS = 4  # the requests of one download: redirects, and the file
_FIRST_RETRY_SECONDS = 1.0  # between the first two attempts to connect; doubled after each
_MAX_RETRY_SECONDS = 60.0
_MAX_IMPOSED_SECONDS = 3600.0  # a longer wait that a platform asks for is cut to this
_MAX_PLACES = 1000  # with more, the waits that are over are forgotten
_GONE_STATUSES = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


async def download(address: str, max_bytes: int, origins: Collection[str], token: str = "") -> bytes:
    """Download a file from a platform, at most ``max_bytes`` + 1 bytes of it. Raises ChannelError.

    The byte beyond ``max_bytes`` tells the caller that the file is larger. Only these ``origins``, such as
    ``https://files.slack.com``, are requested, even after a redirect. Each gets the ``token``, if there is
    one.
    """
    headers = {"Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    url = httpx2.URL(address)
    content = bytearray()
    try:
        async with httpx2.AsyncClient(follow_redirects=False) as client:
            for _ in range(_MAX_REQUESTS):
                if f"{url.scheme}://{url.netloc.decode()}" not in origins:
                    raise ChannelError("it is kept elsewhere; download it and attach it")
                async with client.stream("GET", url, headers=headers) as response:
                    if response.is_redirect:
                        url = url.join(response.headers.get("location", ""))
                        continue
                    if not response.is_success:
                        raise ChannelError(_describe_status(response.status_code))
                    async for part in response.aiter_raw():
                        content += part
                        if len(content) > max_bytes:
                            break
                    return bytes(content[: max_bytes + 1])
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise ChannelError("it could not be fetched") from error
    raise ChannelError("its platform redirects too often")


def _describe_status(status: int) -> str:
    if status in _GONE_STATUSES:
        return "it was deleted, or its link has expired"
    return f"the download failed (HTTP {status})"


class PlatformLink:
    """The attempts to connect to a platform, repeated with longer and longer pauses until one succeeds."""

    def __init__(
        self,
        platform: str,
        attempt: Callable[[], Awaitable[str | None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create a link that is not open yet.

        ``attempt`` connects once, and returns the fault, or None after a success. It raises SettingsError for
        a fault that trying again will not change. ``sleep`` takes seconds.
        """
        self._connected_text = f"{platform} connected"
        self._unreached_text = f"{platform} can't be reached, retrying"
        self._attempt = attempt
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None
        self.is_connected = False
        self.has_given_up = False  # True after a fault that trying again will not change

    async def open(self, patience: float | None = None) -> None:
        """Begin to connect, and wait for the first attempt, at most ``patience`` seconds (None: no limit).

        Raises the error that the first attempt raised in that time, such as SettingsError.
        """
        first_attempt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep_trying(first_attempt))
        await asyncio.wait({first_attempt}, timeout=patience)
        is_still_trying = first_attempt.cancel()  # False if the first attempt has ended
        if not is_still_trying:
            first_attempt.result()

    async def _keep_trying(self, first_attempt: "asyncio.Future[None]") -> None:
        """Try until an attempt succeeds. `open` gets the first outcome; later ones are logged."""
        logged_fault = ""
        pause = _FIRST_RETRY_SECONDS
        while True:
            try:
                fault = await self._attempt()
            except SettingsError as error:
                self.has_given_up = True
                if first_attempt.done():
                    log.error(error.message)
                else:
                    first_attempt.set_exception(error)
                return
            except Exception as error:
                if first_attempt.done():
                    raise
                first_attempt.set_exception(error)
                return
            self.is_connected = fault is None
            if self.is_connected and logged_fault:
                log.info(self._connected_text)
            if not first_attempt.done():
                first_attempt.set_result(None)
            if fault is None:
                return
            if fault != logged_fault:
                logged_fault = fault
                log.warning(self._unreached_text, why=logged_fault)
            await self._sleep(pause)
            pause = min(pause * 2, _MAX_RETRY_SECONDS)

    async def close(self) -> None:
        """Give up connecting. A connection that is open stays: its owner closes it."""
        self.is_connected = False
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class Background:
    """Background tasks for work after an answer, with a log line for each that failed."""

    def __init__(self, log_event: str, *expected_errors: type[Exception]) -> None:
        """Create the group of tasks; it is empty.

        ``log_event``: the log line of a failure. ``expected_errors``: the errors, in addition to
        ChannelError, that are logged without a traceback.
        """
        self._log_event = log_event
        self._expected_errors: tuple[type[Exception], ...] = (ChannelError, *expected_errors)
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._log_end)
        return task

    def _log_end(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, self._expected_errors):
            log.warning(self._log_event, why=str(error))
        elif error is not None:
            log.error(self._log_event, exc_info=error)

    async def close(self, patience: float = 0) -> None:
        """Wait ``patience`` seconds for the tasks, then cancel them."""
        if self._tasks and patience:
            await asyncio.wait(self._tasks, timeout=patience)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class PlatformWaits:
    """The waits that a platform imposes by place, shared with the other processes of this Nod.

    A place is anything for which the platform counts calls, such as a chat, or a method in a workspace.
    ``now`` returns seconds, of which only differences count. If a wait is lost on its way to another process,
    the platform refuses that process's next call, and names the wait.
    """

    def __init__(self, platform: str, now: Callable[[], float] = time.monotonic) -> None:
        self._topic = f"{platform} wait"  # the topic of the broadcasts between processes
        self._now = now
        self._until: dict[str, float] = {}  # the time by ``now`` until which a place takes no calls
        self._others: Peers | None = None

    def share(self, others: Peers) -> None:
        """Share the waits with other processes."""
        self._others = others
        others.on(self._topic, lambda wait: self._store_wait(*wait))

    def note_wait(self, place: str, seconds: float) -> None:
        """Note a wait that the platform imposed on this process."""
        self._store_wait(place, seconds)
        if self._others is not None:
            self._others.broadcast(self._topic, [place, seconds])

    def count_seconds_left(self, place: str) -> float:
        """Return the seconds until the place takes calls again, or 0."""
        return max(0.0, self._until.get(place, 0.0) - self._now())

    def _store_wait(self, place: str, seconds: float) -> None:
        now = self._now()
        if len(self._until) > _MAX_PLACES:
            self._until = {limited: until for limited, until in self._until.items() if until > now}
        self._until[place] = max(self._until.get(place, 0.0), now + min(seconds, _MAX_IMPOSED_SECONDS))

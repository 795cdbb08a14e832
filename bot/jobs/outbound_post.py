"""A POST to a server that a script, a device or the settings named.

It is sent once, and the body of the answer is not read.

It is *pinned*: the connection goes only to the addresses of the host that were checked. No redirect is
followed, and the server can't delay the end of a POST beyond `MAX_POST_SECONDS`.
"""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

import httpcore2

from bot.errors import ToolError
from bot.tools.builtin.fetch import PinnedBackend
from bot.tools.target import Resolve, parse_target, resolve_by_system, resolve_target

MAX_POST_SECONDS = 10.0
"""The longest time of one POST."""
_ACCEPTED_STATUSES = range(200, 300)
_TRANSIENT_STATUSES = frozenset({408, 425, 429})  # refusals after which another try may succeed
_FIRST_SERVER_FAULT = 500  # the lowest status of a fault of the server


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """The outcome of a POST."""

    status: int | None  # None without an answer
    fault: str  # the reason why it failed, in words; empty if the server accepted it
    retry_after: str = ""  # the header of that name, unparsed

    @property
    def is_final(self) -> bool:
        """True if another try would get the same refusal."""
        if not self.fault or self.status is None:
            return False
        return self.status not in _TRANSIENT_STATUSES and self.status < _FIRST_SERVER_FAULT

    def read_pause(self, now: datetime, longest: timedelta) -> timedelta | None:
        """Return the time in ``Retry-After``, at most ``longest``; None if there is no number and no date."""
        text = self.retry_after
        pause: timedelta | None = None
        if text.isascii() and text.isdigit():
            # nine digits are beyond any ``longest``, and more would take time to parse
            pause = timedelta(seconds=min(int(text[:9]), longest.total_seconds()))
        else:
            with contextlib.suppress(ValueError, TypeError):  # TypeError: a date without a zone
                pause = parsedate_to_datetime(text) - now
        if pause is None:
            return None
        return min(max(pause, timedelta()), longest)


class PinnedClient:
    """Sends POSTs to hosts on the open Internet, and to ``hosts`` although they are internal."""

    def __init__(
        self,
        hosts: Collection[str] = (),
        *,
        resolve: Resolve = resolve_by_system,
        backend: httpcore2.AsyncNetworkBackend | None = None,
        seconds: float = MAX_POST_SECONDS,
    ) -> None:
        self.hosts = frozenset(host.lower() for host in hosts)
        self._resolve = resolve
        self._seconds = seconds
        self._backend = backend or httpcore2.AnyIOBackend()

    async def check(self, url: str) -> None:
        """Raise ToolError, in words, where nothing can be sent to this address."""
        await resolve_target(parse_target(url, self.hosts), self._resolve, self.hosts)

    async def post(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> PostAnswer:
        """Send a body. The host is resolved and checked each time."""
        try:
            async with asyncio.timeout(self._seconds):
                target = parse_target(url, self.hosts)
                addresses = await resolve_target(target, self._resolve, self.hosts)
                pinned = PinnedBackend(addresses, self._backend)
                return await _post(target.url, pinned, headers, body)
        except ToolError as error:
            return PostAnswer(None, error.message)
        except TimeoutError:
            return PostAnswer(None, f"no answer within {self._seconds:g} s")
        except (
            httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError,
            httpcore2.UnsupportedProtocol, OSError,
        ) as error:  # fmt: skip
            return PostAnswer(None, f"could not be reached ({type(error).__name__})")


async def _post(
    url: str, pinned: PinnedBackend, headers: Sequence[tuple[str, str]], body: bytes
) -> PostAnswer:
    host_and_port = url.split("/")[2]  # the parts of https://host:443/path are https:, an empty one, the host
    async with httpcore2.AsyncConnectionPool(network_backend=pinned, retries=0) as pool:
        all_headers = [("Host", host_and_port), *headers, ("Content-Length", str(len(body)))]
        async with pool.stream("POST", url, headers=all_headers, content=body) as response:
            # the body of the answer may be endless, and is not read
            fault = "" if response.status in _ACCEPTED_STATUSES else f"HTTP {response.status}"
            return PostAnswer(response.status, fault, _find_header(response.headers, b"retry-after"))


def _find_header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in headers if key.lower() == name), "")

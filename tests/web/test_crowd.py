"""Connections that want nothing, slow requests and slow readers: the others are answered all the same."""

import asyncio
import contextlib
import logging
import resource

import pytest

from bot.domain.chat import Address, Message
from bot.domain.events import TextDelta
from bot.domain.people import Actor
from bot.web.broadcaster import Broadcaster
from bot.web.repeated_logs import RepeatFilter
from bot.web.server import raise_file_limit
from bot.web.streams import Pace
from tests.web.conftest import Serve

pytestmark = pytest.mark.slow

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Never: "
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def _half(port: int, said: bytes = HALF) -> Pipe:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    await writer.drain()
    return reader, writer


async def _rest(pipe: Pipe) -> bytes:
    """What still comes until the other side ends it."""
    reader, writer = pipe
    said = b""
    with contextlib.suppress(ConnectionError):
        while more := await reader.read(4096):
            said += more
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return said


async def test_a_body_that_never_ends_is_408(serve: Serve):
    async with serve(pace=Pace(body_seconds=0.05)) as nod:
        head = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n"
        said = head + b'Content-Type: application/json\r\n\r\n{"mess'
        answer = await _rest(await _half(nod.app.web.port, said))
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"The body took too long to arrive. Send it again." in answer


async def test_while_the_limit_of_requests_is_reached_probes_and_the_chats_are_answered(serve: Serve):
    async with serve(NOD_MAX_CONNECTIONS=20) as nod, contextlib.AsyncExitStack() as streams:
        for _ in range(15):
            await streams.enter_async_context(nod.stream("GET", "/api/events"))
        refused = await nod.client.get("/api/me")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert refused.json()["error"] == "Too many requests are under way. Try again in a moment."
        assert refused.headers["x-content-type-options"] == "nosniff"
        for path in ("/healthz", "/readyz"):
            assert (await nod.client.get(path)).status_code == 200
        said = Message(Address("shell", "here"), Actor("shell", "ana"), "hello", "event-1", private=True)
        await nod.app.core.assistant.handle(said)
        await nod.idle()
        assert len(nod.model.seen) == 1


async def test_with_more_connections_than_served_a_request_is_503_until_they_end(serve: Serve):
    async with serve(NOD_MAX_CONNECTIONS=20) as nod:
        silent = [await _half(nod.app.web.port, b"") for _ in range(20)]
        answer = await _rest(await _half(nod.app.web.port, WHOLE))
        assert answer.startswith(b"HTTP/1.1 503")
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()
        answer = await _rest(await _half(nod.app.web.port, WHOLE))
        assert answer.startswith(b"HTTP/1.1 200")


async def test_headers_that_never_end_are_refused(serve: Serve):
    async with serve() as nod:
        answer = await _rest(await _half(nod.app.web.port, HALF + b"x" * 70_000))
        assert answer.startswith(b"HTTP/1.1 400")


async def test_this_process_may_open_as_many_files_as_the_system_lets_it():
    most = raise_file_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft in (most, resource.RLIM_INFINITY)
    assert hard == resource.RLIM_INFINITY or most == min(hard, 65_536)


def test_what_a_flood_repeats_is_in_the_log_once_a_minute():
    seldom = RepeatFilter()

    def passed(text: str, at: float) -> bool:
        record = logging.makeLogRecord({"msg": text, "created": at})
        return bool(seldom.filter(record))

    refused = "socket.accept() out of system resource\nsocket: <…>"
    assert [passed(refused, 1000.0 + n) for n in range(61)] == [True, *[False] * 59, True]
    assert passed("Invalid HTTP request received.", 1001.0)
    assert all(passed("anything else", 1001.0) for _ in range(3))


async def test_who_reads_too_slowly_is_let_go_instead_of_kept_in_memory():
    hub = Broadcaster()
    with hub.listen("k") as slow, hub.listen("k") as quick:
        for n in range(5000):
            hub.publish("k", TextDelta("x"), {"n": n})
            assert quick.get_nowait()[:2] == (TextDelta("x"), {"n": n})
        assert slow.qsize() <= 1000
        assert slow.get_nowait() is None

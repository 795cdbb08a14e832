"""One process: bounded in time and output, in an environment of its own, with nothing left behind."""

import asyncio
import contextlib
import math
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WARDEN = Path(__file__).with_name("warden.py")
_CHUNK = 1 << 14
_GRACE = 5.0  # seconds for the warden to end what it runs
_TELLING = 1.0  # seconds between looks at what it has printed
_LATELY = 2000  # bytes of that which are told
_FLOOD = 64  # times the kept output: a command that says more is ended


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process. ``exit_code`` is None if it was killed; ``why`` says so in words."""

    exit_code: int | None
    stdout: str
    stderr: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """The limits of one process: bytes of memory, bytes of a file, and processes of the command.

    ``files`` are open ones, 0 for as many as Nod may have. ``account`` is the id of the user and group that
    it runs as, 0 for Nod's own.
    """

    memory: int
    file: int
    processes: int
    files: int = 0
    account: int = 0


READING = CommandLimits(memory=512 << 20, file=64 << 20, processes=64)
"""For what runs without a person."""

CHANGING = CommandLimits(memory=4 << 30, file=4 << 30, processes=512)
"""For what a person has looked at."""


class _Tail:
    """The beginning and the end of a stream, never more than ``most`` bytes in memory."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._last: deque[bytes] = deque()
        self._held = 0
        self.seen = 0

    def add(self, part: bytes) -> None:
        self.seen += len(part)
        room = self._half - len(self._head)
        if room > 0:
            self._head += part[:room]
            part = part[room:]
        if part:
            self._last.append(part)
            self._held += len(part)
        while self._last and self._held - len(self._last[0]) >= self._half:
            self._held -= len(self._last.popleft())

    def text(self) -> str:
        """Return the text, with a note in the middle on what was left out; invalid UTF-8 is escaped."""
        last = b"".join(self._last)[-self._half :] if self._half else b""
        lost = self.seen - len(self._head) - len(last)
        middle = f"\n[{lost} bytes left out]\n".encode() if lost else b""
        whole = bytes(self._head) + middle + last
        return whole.decode(errors="backslashreplace").replace("\0", "\\x00")


async def _no_one(_: str) -> None: ...


async def run_process(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    seconds: float,
    most: int,
    limits: CommandLimits = CHANGING,
    printed: Callable[[str], Awaitable[None]] = _no_one,
    watch: Callable[[int], Awaitable[str]] | None = None,
) -> Ended:
    """Run until the end, ``seconds``, or a flood of output; ``most`` is the bytes kept of each stream.

    The command's own end is heard from the warden, which has killed everything below it by then. Cancelled,
    it ends the command before it lets go. ``printed`` is told the end of its output while it runs. ``watch``
    is given the warden's id, and returns why the command has to end.
    """
    bounds = (limits.memory, limits.file, limits.processes, math.ceil(seconds), limits.files, limits.account)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_WARDEN),
        str(os.getpid()),
        ",".join(map(str, bounds)),
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )
    out, err, flood, lately = _Tail(most), _Tail(most), asyncio.Event(), bytearray()
    whole: asyncio.Future[Any] = asyncio.gather(
        _drain(process.stdout, out, most * _FLOOD, flood, lately),
        _drain(process.stderr, err, most * _FLOOD, flood, lately),
        process.wait(),
    )
    flooded: asyncio.Future[Any] = asyncio.ensure_future(flood.wait())
    telling = asyncio.create_task(_tell(lately, printed))
    watching: asyncio.Future[Any] = asyncio.ensure_future(watch(process.pid) if watch else _for_ever())
    try:
        ends = {whole, flooded, watching}
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        why = "" if whole.done() else f"it was ended after {seconds:g} s"
        if watching.done() and not whole.done():
            why = f"it was ended: {watching.result()}"
        if flood.is_set():
            why = f"it was ended: it said more than {most * _FLOOD} bytes"
    finally:
        besides = (flooded, telling, watching)
        for each in besides:
            each.cancel()
        await _end(process, whole)
        await asyncio.gather(*besides, return_exceptions=True)
    return Ended(None if why else process.returncode, out.text(), err.text(), why)


async def _for_ever() -> str:
    await asyncio.Event().wait()
    return ""


async def _drain(
    stream: asyncio.StreamReader | None, tail: _Tail, most: int, flood: asyncio.Event, lately: bytearray
) -> None:
    """Read to the end, and say when it is too much; ``lately`` is the end of what both streams said."""
    while stream is not None and (part := await stream.read(_CHUNK)):
        tail.add(part)
        lately += part
        del lately[:-_LATELY]
        if tail.seen > most:
            flood.set()


async def _tell(lately: bytearray, printed: Callable[[str], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(_TELLING)
        await printed(lately.decode(errors="replace"))


async def _end(process: asyncio.subprocess.Process, whole: "asyncio.Future[Any]") -> None:
    """Have the warden kill everything, and kill the warden itself if it doesn't respond."""
    if whole.done():
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    await asyncio.wait({whole}, timeout=_GRACE)
    if not whole.done():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait({whole}, timeout=_GRACE)
        whole.cancel()

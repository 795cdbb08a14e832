"""Running one command: bounded in time and output, in its own environment, with no process left behind.

A warden (``warden.py``) starts the command, limits it, and kills everything below it at its end.
"""

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
_CHUNK_BYTES = 1 << 14
_WARDEN_SECONDS = 5.0  # for the warden to end the command
_REPORT_SECONDS = 1.0  # between reports of the output
_REPORT_BYTES = 2000  # of the newest output in a report
_FLOOD_FACTOR = 64  # times the kept output; a command that prints more is ended


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process. ``exit_code`` is None if it was killed; then ``why`` says the reason."""

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
"""For commands that run without a person's approval."""

CHANGING = CommandLimits(memory=4 << 30, file=4 << 30, processes=512)
"""For commands that a person has approved."""


class _Tail:
    """The beginning and the end of a stream, never more than ``max_bytes`` in memory."""

    def __init__(self, max_bytes: int) -> None:
        self._half = max_bytes // 2
        self._head = bytearray()
        self._end: deque[bytes] = deque()
        self._end_bytes = 0
        self.seen = 0

    def add(self, part: bytes) -> None:
        self.seen += len(part)
        room = self._half - len(self._head)
        if room > 0:
            self._head += part[:room]
            part = part[room:]
        if part:
            self._end.append(part)
            self._end_bytes += len(part)
        while self._end and self._end_bytes - len(self._end[0]) >= self._half:
            self._end_bytes -= len(self._end.popleft())

    def text(self) -> str:
        """Return the text, with a note in the middle on what was left out; invalid UTF-8 is escaped."""
        end = b"".join(self._end)[-self._half :] if self._half else b""
        left_out = self.seen - len(self._head) - len(end)
        middle = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        kept = bytes(self._head) + middle + end
        return kept.decode(errors="backslashreplace").replace("\0", "\\x00")


async def _ignore(_: str) -> None: ...


async def run_process(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    seconds: float,
    most: int,
    limits: CommandLimits = CHANGING,
    printed: Callable[[str], Awaitable[None]] = _ignore,
    watch: Callable[[int], Awaitable[str]] | None = None,
) -> Ended:
    """Run a command until its end, for ``seconds``, or until it floods its output.

    ``most``: the bytes kept of each stream. ``printed`` gets the newest output while it runs. ``watch`` gets
    the warden's process id, and returns why the command has to end. The warden ends with the command, after
    killing everything below it. A cancelled call ends the command before it returns.
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
    stdout, stderr, is_flooding, newest = _Tail(most), _Tail(most), asyncio.Event(), bytearray()
    end: asyncio.Future[Any] = asyncio.gather(
        _read_stream(process.stdout, stdout, most * _FLOOD_FACTOR, is_flooding, newest),
        _read_stream(process.stderr, stderr, most * _FLOOD_FACTOR, is_flooding, newest),
        process.wait(),
    )
    flood: asyncio.Future[Any] = asyncio.ensure_future(is_flooding.wait())
    reporting = asyncio.create_task(_report_output(newest, printed))
    watching: asyncio.Future[Any] = asyncio.ensure_future(watch(process.pid) if watch else _wait_forever())
    try:
        events = {end, flood, watching}
        await asyncio.wait(events, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        why = "" if end.done() else f"it was ended after {seconds:g} s"
        if watching.done() and not end.done():
            why = f"it was ended: {watching.result()}"
        if is_flooding.is_set():
            why = f"it was ended: it said more than {most * _FLOOD_FACTOR} bytes"
    finally:
        tasks = (flood, reporting, watching)
        for task in tasks:
            task.cancel()
        await _end_process(process, end)
        await asyncio.gather(*tasks, return_exceptions=True)
    return Ended(None if why else process.returncode, stdout.text(), stderr.text(), why)


async def _wait_forever() -> str:
    await asyncio.Event().wait()
    return ""


async def _read_stream(
    stream: asyncio.StreamReader | None,
    tail: _Tail,
    max_bytes: int,
    is_flooding: asyncio.Event,
    newest: bytearray,
) -> None:
    """Read a stream to its end, and set ``is_flooding`` beyond ``max_bytes``.

    ``newest``: the newest output of both streams.
    """
    while stream is not None and (part := await stream.read(_CHUNK_BYTES)):
        tail.add(part)
        newest += part
        del newest[:-_REPORT_BYTES]
        if tail.seen > max_bytes:
            is_flooding.set()


async def _report_output(newest: bytearray, printed: Callable[[str], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        await printed(newest.decode(errors="replace"))


async def _end_process(process: asyncio.subprocess.Process, end: "asyncio.Future[Any]") -> None:
    """Have the warden kill everything, and kill the warden itself if it doesn't respond."""
    if end.done():
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    await asyncio.wait({end}, timeout=_WARDEN_SECONDS)
    if not end.done():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait({end}, timeout=_WARDEN_SECONDS)
        end.cancel()

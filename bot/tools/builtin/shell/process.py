"""Running one command: bounded in time and output, in its own environment, with no process left behind.

`run_process` starts the *warden* (``warden.py``), a small Python program. The warden starts the command, sets
its limits, and at its end kills everything that it started. `run_process` itself reads the output, and keeps
the beginning and the end of it. It ends a command that takes too long or prints too much.
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
_WARDEN_SECONDS = 5.0  # the time for the warden to end the command
_REPORT_SECONDS = 1.0  # between reports of the output
_REPORT_BYTES = 2000  # the newest output in a report
_FLOOD_FACTOR = 64  # a command is ended if it prints this many times the bytes that are kept


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """The end of a process."""

    exit_code: int | None
    """None if Nod ended it."""
    stdout: str
    stderr: str
    reason: str = ""
    """The reason why Nod ended it; empty if it ended by itself."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """The limits of a command and of its processes."""

    memory_bytes: int  # bytes of each process
    file_bytes: int  # bytes of each file that a process writes
    processes: int  # how many processes the command may add to those of its user
    open_files: int = 0  # files that a process may have open at a time; 0 for as many as Nod may have
    account: int = 0  # the id of the user and group that the command runs as; 0 for Nod's own


READING = CommandLimits(memory_bytes=512 << 20, file_bytes=64 << 20, processes=64)
"""For commands that run without a person's approval."""

CHANGING = CommandLimits(memory_bytes=4 << 30, file_bytes=4 << 30, processes=512)
"""For commands that a person has approved."""


class _Output:
    """The output of a stream, of which only the beginning and the end are kept, ``max_bytes`` together."""

    def __init__(self, max_bytes: int) -> None:
        self.total_bytes = 0
        self._half = max_bytes // 2  # bytes of the beginning, and of the end
        self._head = bytearray()
        self._tail: deque[bytes] = deque()  # the last parts, with a little more than the end
        self._tail_bytes = 0

    def add(self, part: bytes) -> None:
        self.total_bytes += len(part)
        missing = self._half - len(self._head)
        if missing > 0:
            self._head += part[:missing]
            part = part[missing:]
        if part:
            self._tail.append(part)
            self._tail_bytes += len(part)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._half:
            self._tail_bytes -= len(self._tail.popleft())

    def text(self) -> str:
        """Return the text, with a note where bytes were left out in the middle; invalid UTF-8 is escaped."""
        end = b"".join(self._tail)[-self._half :] if self._half else b""
        left_out = self.total_bytes - len(self._head) - len(end)
        note = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        content = bytes(self._head) + note + end
        return content.decode(errors="backslashreplace").replace("\0", "\\x00")


async def _ignore(_: str) -> None: ...


async def run_process(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    seconds: float,
    max_output_bytes: int,
    limits: CommandLimits = CHANGING,
    on_output: Callable[[str], Awaitable[None]] = _ignore,
    wait_for_reason: Callable[[int], Awaitable[str]] | None = None,
) -> ProcessEnd:
    """Run a command until its end, for at most ``seconds``, or until it floods its output.

    ``max_output_bytes``: the bytes kept of each stream. ``on_output`` gets the newest output while the
    command runs. ``wait_for_reason`` gets the warden's process id, and waits for a reason to end the command:
    when it returns the reason, the command is ended. No process of the command is left when this returns or
    is cancelled.
    """
    process = await _start_warden(argv, folder, environment, limits, seconds)
    stdout = _Output(max_output_bytes)
    stderr = _Output(max_output_bytes)
    newest = bytearray()  # the newest output of both streams
    flood_bytes = max_output_bytes * _FLOOD_FACTOR
    flooded = asyncio.Event()
    end: asyncio.Future[Any] = asyncio.gather(
        _read_stream(process.stdout, stdout, flood_bytes, flooded, newest),
        _read_stream(process.stderr, stderr, flood_bytes, flooded, newest),
        process.wait(),
    )
    flood: asyncio.Future[Any] = asyncio.ensure_future(flooded.wait())
    reporting = asyncio.create_task(_report_output(newest, on_output))
    watching: asyncio.Future[Any] = asyncio.ensure_future(
        wait_for_reason(process.pid) if wait_for_reason else _wait_forever()
    )
    try:
        events = {end, flood, watching}
        await asyncio.wait(events, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if flooded.is_set():
            reason = f"it was ended: it said more than {flood_bytes} bytes"
        elif end.done():
            reason = ""
        elif watching.done():
            reason = f"it was ended: {watching.result()}"
        else:
            reason = f"it was ended after {seconds:g} s"
    finally:
        tasks = (flood, reporting, watching)
        for task in tasks:
            task.cancel()
        await _end_process(process, end)
        await asyncio.gather(*tasks, return_exceptions=True)
    if not reason:
        end.result()  # raises what reading the output raised
    exit_code = None if reason else process.returncode
    return ProcessEnd(exit_code, stdout.text(), stderr.text(), reason)


async def _start_warden(
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    limits: CommandLimits,
    seconds: float,
) -> asyncio.subprocess.Process:
    """Start the warden, which starts the command. ``seconds``: the processor time of each process."""
    # in the order in which ``warden.py`` reads them
    warden_limits = (
        limits.memory_bytes,
        limits.file_bytes,
        limits.processes,
        math.ceil(seconds),
        limits.open_files,
        limits.account,
    )
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_WARDEN),
        str(os.getpid()),
        ",".join(map(str, warden_limits)),
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )


async def _wait_forever() -> str:
    await asyncio.Event().wait()
    return ""


async def _read_stream(
    stream: asyncio.StreamReader | None,
    output: _Output,
    flood_bytes: int,
    flooded: asyncio.Event,
    newest: bytearray,
) -> None:
    """Read a stream to its end; set ``flooded`` beyond ``flood_bytes``."""
    while stream is not None and (part := await stream.read(_CHUNK_BYTES)):
        output.add(part)
        newest += part
        del newest[:-_REPORT_BYTES]
        if output.total_bytes > flood_bytes:
            flooded.set()


async def _report_output(newest: bytearray, on_output: Callable[[str], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        await on_output(newest.decode(errors="replace"))


async def _end_process(process: asyncio.subprocess.Process, end: "asyncio.Future[Any]") -> None:
    """Have the warden kill everything, and kill the warden itself if it doesn't respond.

    ``end``: done once both streams and the warden have ended, or reading a stream has failed.
    """
    if end.done() and process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # the command may have stopped the warden
    ends: set[asyncio.Future[Any]] = {end, asyncio.ensure_future(process.wait())}
    _, pending = await asyncio.wait(ends, timeout=_WARDEN_SECONDS)
    if pending:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _, pending = await asyncio.wait(ends, timeout=_WARDEN_SECONDS)
        for unended in pending:
            unended.cancel()

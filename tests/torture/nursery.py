"""Where Nods are born: a process that has imported everything once, and forks.

A Nod starts in a tenth of the time so, and is a process of its own all the same. `Nursery` is asked; the
process itself is ``python -m tests.torture.nursery``: it takes lines of JSON, and says who was born and who
died. It ends, and with it all that are left, when no one listens to it.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from bot.domain.chat import Clock
from bot.domain.times import now

CLOCK = "clock"
"""In a Nod's folder: how many seconds its clock is ahead."""


class Nursery:
    """Starts Nods, and knows how each of them ended."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._births: asyncio.Queue[int] = asyncio.Queue()
        self._ends: dict[int, asyncio.Future[int]] = {}  # exit codes, by the id of the process
        self._asking = asyncio.Lock()
        self._hearing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.torture.nursery"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(["", *sys.path])},
        )
        self._hearing = asyncio.create_task(self._hear(self._process))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None and self._hearing is not None:
            self._process.stdin.close()
            await self._hearing
            await self._process.wait()

    async def born(self, environment: Mapping[str, str], folder: Path, log: Path) -> int:
        """Start ``nod run`` in this folder; gives the id of its process."""
        if self._process is None or self._process.stdin is None:
            raise AssertionError("the nursery is closed")
        asked = {"environment": dict(environment), "folder": str(folder), "log": str(log)}
        async with self._asking:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            await self._process.stdin.drain()
            return await self._births.get()

    async def end(self, pid: int) -> int:
        """How the process ended, once it has: its exit code, or minus the signal that killed it."""
        return await asyncio.shield(self._ends[pid])

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        async for line in process.stdout:
            pid, status = json.loads(line)
            if status is None:
                self._ends[pid] = asyncio.get_running_loop().create_future()
                self._births.put_nowait(pid)
            else:
                self._ends[pid].set_result(os.waitstatus_to_exitcode(status))


def _say(pid: int, status: int | None) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps([pid, status]).encode() + b"\n")


def _bury(*_: object) -> None:
    """Say of each that died how it did."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _alive.discard(found[0])
            _say(*found)


_alive: set[int] = set()


def _bear(asked: Mapping[str, Any]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = os.fork()
    if pid:
        _alive.add(pid)
        _say(pid, None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    code = 1
    try:
        code = _live(asked)
    except BaseException:  # noqa: BLE001 - it is told in the log, and this process ends
        traceback.print_exc()
    finally:
        os._exit(code)


def _live(asked: Mapping[str, Any]) -> int:
    from bot.cli.command import report_faults
    from bot.cli.serve import serve
    from bot.cli.shared import load_settings, log_at

    with Path(asked["log"]).open("ab") as log, Path(os.devnull).open("rb") as nothing:
        for kept, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(kept.fileno(), number)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    try:
        with report_faults():
            settings = load_settings()
            log_at(settings.log_level)
            serve(settings, "Nod is up: {url}", clock=_clock(Path(asked["folder"]) / CLOCK))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def _clock(file: Path) -> Clock:
    """The real one, and as many seconds ahead as this file says, where it is there."""

    def ahead() -> datetime:
        return now() + timedelta(seconds=float(file.read_text()) if file.exists() else 0)

    return ahead


def _serve() -> None:

    signal.signal(signal.SIGCHLD, _bury)
    for line in iter(sys.stdin.readline, ""):
        _bear(json.loads(line))
    for pid in list(_alive):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while _alive:
        pid, status = os.wait()
        _alive.discard(pid)
        _say(pid, status)


if __name__ == "__main__":
    _serve()

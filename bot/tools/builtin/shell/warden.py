"""Runs one command and leaves nothing of it behind: ``python -I warden.py PARENT LIMITS ARGV…``.

It becomes the reaper of every descendant (Linux, prctl(2) PR_SET_CHILD_SUBREAPER), so also a process that
made a session of its own and lost its parent is found below it and killed: when the command ends, when the
warden is told to end (SIGTERM), and when Nod dies (PR_SET_PDEATHSIG). Where there is no prctl, the process
group is killed. Ends with the command's exit code; 128 + signal where a signal ended it; 127 for no program.

``LIMITS`` are six numbers with commas: bytes of data and bytes of a file that one process may have, how many
more processes its user may have (root: any number), seconds of the processor and open files for each (0: as
many as the warden), and the account that the command runs as (0: the warden's).
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

_PDEATHSIG = 1
_SUBREAPER = 36
_NO_PROGRAM = 127
_ENDED = 143


def main(argv: list[str], limits: list[int], parent: int) -> int:
    """Start, wait, clean up. ``parent`` is the process that must stay alive."""
    _adopt()
    if os.getppid() != parent:
        return _ENDED  # it died before we could ask to be told
    stop = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    child = os.fork()
    if child == 0:
        _become(argv, limits, stop)
    ended = None
    while ended is None:
        if signal.sigwait(stop) != signal.SIGCHLD:
            break
        ended = _reap(child)
    _end_all(child)
    return _ENDED if ended is None else ended


def _adopt() -> None:
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SUBREAPER, 1, 0, 0, 0)
        prctl(_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _become(argv: list[str], limits: list[int], stop: set[signal.Signals]) -> None:
    """Become the program, in the child: own process group, default signals, limits, then exec."""
    try:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and that would be inherited
            signal.signal(ignored, signal.SIG_DFL)
        _set_bounds(*limits)
        os.execvp(argv[0], argv)  # noqa: S606 - the point of it; no shell
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror if isinstance(error, OSError) else error}\n")
        sys.stderr.flush()
    finally:
        os._exit(_NO_PROGRAM)


def _set_bounds(memory: int, file: int, processes: int, seconds: int, files: int, account: int) -> None:
    """Set the limits (setrlimit(2)), never above present ones; then the account."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_FSIZE: file,
        resource.RLIMIT_NPROC: processes + _tasks(account or os.getuid()),
        resource.RLIMIT_CPU: seconds,
        **({resource.RLIMIT_NOFILE: files} if files else {}),
    }
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
    if account:
        os.setgroups([])
        os.setgid(account)
        os.setuid(account)


def _tasks(user: int) -> int:
    """Return the number of a user's processes and threads: the limit counts them all."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == user:
                found += sum(1 for _ in (folder / "task").iterdir())
    return found


def _reap(child: int) -> int | None:
    """Collect every child that ended; the exit code of ``child`` if it was among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                if code < 0:
                    code = 128 - code
    return code


def _end_all(child: int) -> None:
    """Kill until no one is left: who is killed hands its children to us."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while sum(map(_kill, _children())):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # it has become another user's
    return True


def _children() -> list[int]:
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[3:], [int(each) for each in sys.argv[2].split(",")], int(sys.argv[1])))

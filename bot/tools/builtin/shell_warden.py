"""Runs one command and leaves nothing of it behind. Started as ``python -I shell_warden.py PARENT ARGV…``.

It becomes the reaper of every descendant (Linux, prctl(2) PR_SET_CHILD_SUBREAPER), so also a process that
made a session of its own and lost its parent is found below it and killed: when the command ends, when the
warden is told to end (SIGTERM), and when Nod dies (PR_SET_PDEATHSIG). Where there is no prctl, the process
group is killed. Ends with the command's exit code; 128 + signal where a signal ended it; 127 for no program.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

_PDEATHSIG = 1
_SUBREAPER = 36
_NO_PROGRAM = 127
_ENDED = 143


def main(argv: list[str], parent: int) -> int:
    """Start, wait, clean up. ``parent`` is the process that must stay alive."""
    _adopt()
    if os.getppid() != parent:
        return _ENDED  # it died before we could ask to be told
    stop = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    child = os.fork()
    if child == 0:
        _become(argv, stop)
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


def _become(argv: list[str], stop: set[signal.Signals]) -> None:
    """In the child: a process group of its own, every signal as usual, then the program."""
    try:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop)
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and that would be inherited
            signal.signal(ignored, signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - the point of it; no shell
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror if isinstance(error, OSError) else error}\n")
        sys.stderr.flush()
    finally:
        os._exit(_NO_PROGRAM)


def _reap(child: int) -> int | None:
    """Collect whoever ended; the exit code of ``child`` if it was among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                code = 128 - code if code < 0 else code
    return code


def _end_all(child: int) -> None:
    """Kill until nobody is left: who is killed hands its children to us."""
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
    sys.exit(main(sys.argv[2:], int(sys.argv[1])))

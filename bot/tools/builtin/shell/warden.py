"""Runs one command and leaves no process of it behind: ``python -I warden.py PARENT LIMITS ARGV…``.

The warden becomes the reaper of every descendant (Linux, prctl(2) PR_SET_CHILD_SUBREAPER). So a process that
made a session of its own and lost its parent becomes its child, and is found. All descendants are killed when
the command ends, when the warden gets SIGTERM, and when Nod dies (PR_SET_PDEATHSIG). On a system without
prctl, only the command's process group is killed.

The exit code is the command's; 128 + the signal if a signal ended it; 127 if there is no such program.

``LIMITS`` are six numbers, joined by commas (see ``_set_limits``):

1. bytes of data that one process may have
2. bytes of a file that it may write
3. how many more processes the user may have (root: any number)
4. seconds of the processor for each process
5. open files for each process; 0 for as many as the warden may have
6. the id of the user and group that the command runs as; 0 for the warden's
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NO_PROGRAM = 127  # the exit code of a shell for a program that does not exist
_TERMINATED = 128 + signal.SIGTERM


def main(argv: list[str], limits: list[int], parent: int) -> int:
    """Run the command, kill all that is left of it, and return its exit code.

    ``parent``: the id of Nod's process. The command is killed when that process dies.
    """
    _become_reaper()
    if os.getppid() != parent:
        return _TERMINATED  # it died before its death could send us a signal
    awaited_signals = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited_signals)
    child = os.fork()
    if child == 0:
        _become_command(argv, limits, awaited_signals)
    exit_code = None
    while exit_code is None:
        if signal.sigwait(awaited_signals) != signal.SIGCHLD:
            break
        exit_code = _reap(child)
    _end_all(child)
    return _TERMINATED if exit_code is None else exit_code


def _become_reaper() -> None:
    """Have the system make orphaned descendants our children, and send SIGTERM when the parent dies."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _become_command(argv: list[str], limits: list[int], blocked: set[signal.Signals]) -> None:
    """Become the command, in the child: own process group, default signals, limits, then exec."""
    try:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        # Python ignores these signals, and the command would inherit that
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        _set_limits(*limits)
        os.execvp(argv[0], argv)  # noqa: S606 - the point of it; no shell
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        sys.stderr.write(f"{argv[0]}: {why}\n")
        sys.stderr.flush()
    finally:
        os._exit(_NO_PROGRAM)


def _set_limits(memory: int, file: int, processes: int, seconds: int, files: int, account: int) -> None:
    """Set the limits (setrlimit(2)), never above present ones; then the account."""
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_FSIZE: file,
        resource.RLIMIT_NPROC: processes + _count_tasks(account or os.getuid()),
        resource.RLIMIT_CPU: seconds,
    }
    if files:
        wanted[resource.RLIMIT_NOFILE] = files
    for kind, limit in wanted.items():
        _, hard_limit = resource.getrlimit(kind)
        if hard_limit != resource.RLIM_INFINITY:
            limit = min(limit, hard_limit)  # noqa: PLW2901 - the same limit, lowered
        resource.setrlimit(kind, (limit, limit))
    if account:
        os.setgroups([])
        os.setgid(account)
        os.setuid(account)


def _count_tasks(user: int) -> int:
    """Return the number of a user's processes and threads, all of which RLIMIT_NPROC counts."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == user:
                count += len(list((folder / "task").iterdir()))
    return count


def _reap(child: int) -> int | None:
    """Collect every child that ended. Return the exit code of ``child`` if it was among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                if code < 0:
                    code = 128 - code  # ended by a signal, as a shell reports it
    return code


def _end_all(child: int) -> None:
    """Kill all descendants, in rounds, since the children of a killed process become our children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while True:
        killed = [pid for pid in _list_children() if _kill(pid)]
        if not killed:
            break
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _kill(pid: int) -> bool:
    """Kill a process. Return False if it may not be killed, so that no one waits for its end."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # it has become another user's
    return True


def _list_children() -> list[int]:
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


if __name__ == "__main__":
    _, parent_id, limits_text, *command = sys.argv
    sys.exit(main(command, [int(limit) for limit in limits_text.split(",")], int(parent_id)))

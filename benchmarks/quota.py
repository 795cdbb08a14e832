"""A part of a core for a process, by Linux's control groups: so several can be compared on few cores."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_FIRST = _GROUPS / "cpu"  # of version 1, which has a tree for each controller
_PERIOD = 10_000  # µs; so short that a process that used up its part never waits for long


def can_limit() -> bool:
    """Whether this machine lets this user do it."""
    if _FIRST.is_dir():
        return os.access(_FIRST, os.W_OK)
    controllers = _GROUPS / "cgroup.subtree_control"
    return controllers.exists() and "cpu" in controllers.read_text().split() and os.access(_GROUPS, os.W_OK)


@contextlib.contextmanager
def limited(pid: int, cores: float) -> Iterator[None]:
    """Let the process have ``cores`` of a core at the most. It must have ended when this ends."""
    quota = int(cores * _PERIOD)
    group = (_FIRST if _FIRST.is_dir() else _GROUPS) / f"nod-benchmark-{pid}"
    group.mkdir()
    try:
        if _FIRST.is_dir():
            (group / "cpu.cfs_period_us").write_text(f"{_PERIOD}")
            (group / "cpu.cfs_quota_us").write_text(f"{quota}")
        else:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
        (group / "cgroup.procs").write_text(f"{pid}")
        yield
    finally:
        group.rmdir()

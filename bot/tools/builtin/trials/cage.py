"""A cage: a closed environment for one command, made by the program bubblewrap (``bwrap``).

The command sees the system's programs, a copy of the workspace at the workspace's own path, and empty folders
in memory. It has no network, sees no other process, and gets three environment variables.

bubblewrap sets no limits. It runs under the warden (``bot/tools/builtin/shell/warden.py``), which limits each
process; `Cage.run` limits the memory and the files of all processes together. Without user namespaces there
is no cage, and so there are no trials.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.tools.builtin.shell.process import PATH, CommandLimits, ProcessEnd, run_process
from bot.tools.builtin.trials.copies import CopySize, create_copy_folder, find_excess, remove_folder

_UNPRIVILEGED_ID = 65533
"""The user and group of a command if Nod is root: they own nothing, and their processes can be counted."""
_PREFIX_FOLDERS = ("bin", "sbin", "libexec", "share", "include", "lib", "lib32", "lib64", "libx32")
_PROGRAMS = (
    *(f"/usr/{name}" for name in _PREFIX_FOLDERS),
    *(f"/usr/local/{name}" for name in _PREFIX_FOLDERS),
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/nix/store",
)
"""The folders and files of the system's programs that a command sees."""
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""The folders of programs at the top, which are links into /usr on most systems."""
_HOME = "/home/nod"
_MEMORY_FOLDER_BYTES = {"/tmp": 64 << 20, "/dev/shm": 16 << 20, _HOME: 16 << 20}  # noqa: S108 - in the cage
_PROBE_SECONDS = 15.0
_RETRY_SECONDS = 60.0  # after this time a cage that could not be made is tried again
_CHECK_SECONDS = 0.25  # between checks of what a command uses
_MEMORY_LINES = ("RssAnon:", "RssShmem:")
"""The lines of /proc/PID/status that add up to a process's own memory, in kB; see proc(5)."""


@dataclass(frozen=True, slots=True)
class CageLimits:
    """The limits of a cage, for all its processes together; ``process`` has the limits of each process."""

    seconds: float = 60.0
    memory_bytes: int = 1 << 30
    memory_files: int = 20_000  # files in its folders in memory
    new_entries: int = 20_000  # new files and folders in the copy
    new_bytes: int = 512 << 20  # in the copy
    process: CommandLimits = field(
        default_factory=lambda: CommandLimits(
            memory_bytes=1 << 30, file_bytes=256 << 20, processes=128, open_files=1024
        )
    )


def choose_account() -> int | None:
    """Return the id of the user and group that a command runs as; None for Nod's own."""
    is_root = os.geteuid() == 0
    return _UNPRIVILEGED_ID if is_root else None


@dataclass(eq=False)
class Cage:
    """The cages for the commands of one workspace; each command gets a new cage."""

    workspace: Path
    max_output_bytes: int = 64_000  # bytes kept of each stream
    limits: CageLimits = field(default_factory=CageLimits)
    name: str = ""  # the name of bubblewrap with its version, once it was found
    _trouble: str = "it was not tried yet"  # not empty, so that the first `find_trouble` tries
    _tried_at: float = float("-inf")  # the time of the last attempt, by time.monotonic()

    async def find_trouble(self) -> str:
        """Return why no cage can be made here, in words; empty if cages work.

        The first call tries one out, which takes some seconds. After a failure the next calls try again, at
        most once in `_RETRY_SECONDS`.
        """
        if self._trouble and time.monotonic() - self._tried_at > _RETRY_SECONDS:
            self._trouble = await self._try_out()
            self._tried_at = time.monotonic()
        return self._trouble

    async def _try_out(self) -> str:
        """Run ``true`` in a cage, and store bubblewrap's version in ``name``.

        Return why that failed, in words; empty if it did not.
        """
        if self.workspace == Path("/"):
            return "the workspace is the whole system"
        if shutil.which("bwrap", path=PATH) is None:
            return "bubblewrap is not installed. Install your system's package bubblewrap."
        folder, lock = await asyncio.to_thread(create_copy_folder, self.workspace, choose_account())
        try:
            version = await run_process(
                ["bwrap", "--version"],
                Path("/"),
                {"PATH": PATH},
                seconds=_PROBE_SECONDS,
                max_output_bytes=200,
            )
            self.name = version.stdout.strip()
            ended = await run_process(
                self.build_argv(["true"], folder),
                Path("/"),
                self.environment,
                seconds=_PROBE_SECONDS,
                max_output_bytes=1000,
                limits=self.process_limits,
            )
        except OSError as error:
            return f"its cage can't be started ({error.strerror})."
        finally:
            os.close(lock)
            await asyncio.to_thread(remove_folder, folder)
        if ended.exit_code == 0:
            return ""
        error_text = (ended.reason or ended.stderr).strip().replace("\n", " ")[:200]
        return f"bubblewrap can't make its cage here ({error_text}). Allow user namespaces for this account."

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": _HOME}

    @property
    def process_limits(self) -> CommandLimits:
        return replace(self.limits.process, account=choose_account() or 0)

    def build_argv(self, command: Sequence[str], copy: Path) -> list[str]:
        """Return the argv that runs a command in its cage, with the copy at the workspace's path."""
        argv = ["bwrap", "--unshare-user", "--unshare-all", "--disable-userns", "--cap-drop", "ALL"]
        argv += ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
        for path in _PROGRAMS:  # the "-try" options skip a path that this system does not have
            argv += ["--ro-bind-try", path, path]
        for folder in map(Path, _SYSTEM_FOLDERS):
            if folder.is_symlink():
                argv += ["--symlink", str(folder.readlink()), str(folder)]
            else:
                argv += ["--ro-bind-try", str(folder), str(folder)]
        for path, size in _MEMORY_FOLDER_BYTES.items():
            argv += ["--size", str(size), "--tmpfs", path]
        workspace = str(self.workspace)
        argv += ["--bind", str(copy), workspace, "--remount-ro", "/dev", "--remount-ro", "/"]
        return [*argv, "--chdir", workspace, "--", *command]

    async def run(
        self, command: Sequence[str], copy: Path, seconds: float, copy_size: CopySize
    ) -> ProcessEnd:
        """Run a command in a cage over a copy, until the command and all it started have ended.

        ``copy_size``: the size of the copy before the command, which does not count towards the limits.
        """
        max_entries = copy_size.entries + self.limits.new_entries
        max_bytes = copy_size.bytes + self.limits.new_bytes

        async def wait_for_excess(warden: int) -> str:
            pause = _CHECK_SECONDS
            while True:
                await asyncio.sleep(pause)
                began_at = time.monotonic()
                excess = await asyncio.to_thread(self._find_memory_excess, warden)
                if not excess:
                    excess = await asyncio.to_thread(find_excess, copy, max_entries, max_bytes)
                if excess:
                    return excess
                check_seconds = time.monotonic() - began_at
                pause = max(_CHECK_SECONDS, 3 * check_seconds)  # so checks take a quarter of the time at most

        return await run_process(
            self.build_argv(command, copy),
            Path("/"),
            self.environment,
            seconds=min(seconds, self.limits.seconds),
            max_output_bytes=self.max_output_bytes,
            limits=self.process_limits,
            wait_for_reason=wait_for_excess,
        )

    def _find_memory_excess(self, warden: int) -> str:
        """Return how the cage exceeds its memory or its files in memory, in words; empty if it doesn't.

        ``warden``: the id of the process under which the cage runs. A process that ends in the meantime is
        left out.
        """
        pids = _list_descendants(warden)
        used_bytes = 0
        for pid in pids:
            with suppress(OSError, ValueError, IndexError):
                used_bytes += _read_own_memory(pid)
        if self._has_too_many_files(pids):
            return f"it made more than {self.limits.memory_files:,} files in memory"
        if used_bytes > self.limits.memory_bytes:
            return f"it used more than {self.limits.memory_bytes >> 20:,} MB of memory"
        return ""

    def _has_too_many_files(self, pids: Sequence[int]) -> bool:
        """Return whether a folder in memory has too many files. All processes of a cage see the same ones."""
        for pid in pids:
            with suppress(OSError):
                if not _is_outside_cage(pid):
                    counts = [_count_files(f"/proc/{pid}/root{folder}") for folder in _MEMORY_FOLDER_BYTES]
                    return max(counts) > self.limits.memory_files
        return False


def _list_descendants(pid: int) -> list[int]:
    """Return the ids of a process's children, and of all below them; see proc(5), "children"."""
    pids = [pid]
    for parent in pids:  # the list grows while it is read
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                children = (task / "children").read_text(encoding="ascii")
                pids += [int(child) for child in children.split()]
    return pids[1:]


def _read_own_memory(pid: int) -> int:
    """Return the bytes of memory that a process shares with no file."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in status.splitlines() if line.startswith(_MEMORY_LINES)]
    return sum(int(line.split()[1]) << 10 for line in lines)


def _is_outside_cage(pid: int) -> bool:
    """Return whether a process, such as bubblewrap itself, sees the files of the machine."""
    return Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink()


def _count_files(folder: str) -> int:
    """Return the number of files in a folder in memory: the used inodes of its file system."""
    info = os.statvfs(folder)
    return info.f_files - info.f_ffree

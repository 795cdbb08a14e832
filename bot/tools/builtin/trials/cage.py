"""A closed cage for one command, made by bubblewrap: what it sees, what it may use, and how it ends.

The command sees the system's programs, a copy of the workspace in its place, and empty folders in memory; no
network, no other process, no environment but three variables. bubblewrap sets no limits, so the warden does,
and `crowded` bounds what is written. Without user namespaces there is no cage, and nothing is ever tried.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bot.tools.builtin.shell.process import PATH, CommandLimits, Ended, run_process
from bot.tools.builtin.trials.copies import find_crowding, folder_for, remove_folder

_NO_ONE = 65533
"""The account of a command where Nod is root: one that owns nothing, and whose processes can be counted."""
_PROGRAMS = (
    *(
        f"/usr{local}/{name}"
        for local in ("", "/local")
        for name in ("bin", "sbin", "libexec", "share", "include")
    ),
    *(f"/usr{local}/lib{kind}" for local in ("", "/local") for kind in ("", "32", "64", "x32")),
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/nix/store",
)
_ROOTS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_HOME = "/home/nod"
_MEMORY_FILES = {"/tmp": 64 << 20, "/dev/shm": 16 << 20, _HOME: 16 << 20}  # noqa: S108 - in the cage
_LONGEST_PROBE = 15.0
_AGAIN = 60.0  # seconds until a cage that could not be made is tried again
_LOOK = 0.25  # seconds between looks at what a command uses
_OWN = ("RssAnon:", "RssShmem:")
"""What counts as a process's own memory, in proc(5)."""


@dataclass(frozen=True, slots=True)
class CageLimits:
    """The limits of a cage.

    ``memory`` is of all processes, ``files`` are in memory, ``entries`` and ``size`` new.
    """

    seconds: float = 60.0
    memory: int = 1 << 30
    files: int = 20_000
    entries: int = 20_000
    size: int = 512 << 20
    process: CommandLimits = field(
        default_factory=lambda: CommandLimits(memory=1 << 30, file=256 << 20, processes=128, files=1024)
    )


def account() -> int | None:
    """Return the account that a command runs as; None for Nod's own."""
    if os.geteuid() == 0:
        return _NO_ONE
    return None


@dataclass(eq=False)
class Cage:
    """Runs commands of one workspace in copies of it. ``output`` is the bytes kept of each stream."""

    workspace: Path
    output: int = 64_000
    limits: CageLimits = field(default_factory=CageLimits)
    name: str = ""
    _trouble: str = "it was not tried yet"
    _looked: float = float("-inf")

    async def trouble(self) -> str:
        """Return why there are no trials here, in words; empty where there are."""
        if self._trouble and time.monotonic() - self._looked > _AGAIN:
            self._trouble = await self._probe()
            self._looked = time.monotonic()
        return self._trouble

    async def _probe(self) -> str:
        if self.workspace == Path("/"):
            return "the workspace is the whole system"
        if shutil.which("bwrap", path=PATH) is None:
            return "bubblewrap is not installed. Install your system's package bubblewrap."
        folder, lock = await asyncio.to_thread(folder_for, self.workspace, account())
        try:
            version = await run_process(
                ["bwrap", "--version"], Path("/"), {"PATH": PATH}, seconds=_LONGEST_PROBE, most=200
            )
            self.name = version.stdout.strip()
            ended = await run_process(
                self.argv(["true"], folder),
                Path("/"),
                self.environment,
                seconds=_LONGEST_PROBE,
                most=1000,
                limits=self.process_limits,
            )
        except OSError as error:
            return f"its cage can't be started ({error.strerror})."
        finally:
            os.close(lock)
            await asyncio.to_thread(remove_folder, folder)
        if ended.exit_code == 0:
            return ""
        said = (ended.why or ended.stderr).strip().replace("\n", " ")[:200]
        return f"bubblewrap can't make its cage here ({said}). Allow user namespaces for this account."

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": _HOME}

    @property
    def process_limits(self) -> CommandLimits:
        given = self.limits.process
        return CommandLimits(given.memory, given.file, given.processes, given.files, account() or 0)

    def argv(self, command: Sequence[str], copy: Path) -> list[str]:
        """Return the command in its cage, with the copy in the place of the workspace."""
        words = ["bwrap", "--unshare-user", "--unshare-all", "--disable-userns", "--cap-drop", "ALL"]
        words += ["--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
        for path in _PROGRAMS:
            words += ["--ro-bind-try", path, path]
        for root in map(Path, _ROOTS):
            if root.is_symlink():
                words += ["--symlink", str(root.readlink()), str(root)]
            else:
                words += ["--ro-bind-try", str(root), str(root)]
        for path, size in _MEMORY_FILES.items():
            words += ["--size", str(size), "--tmpfs", path]
        workspace = str(self.workspace)
        words += ["--bind", str(copy), workspace, "--remount-ro", "/dev", "--remount-ro", "/"]
        return [*words, "--chdir", workspace, "--", *command]

    async def run(self, command: Sequence[str], copy: Path, seconds: float, held: tuple[int, int]) -> Ended:
        """Run a command over a copy of so many entries and bytes; it and all it started has ended then."""
        entries, size = held[0] + self.limits.entries, held[1] + self.limits.size

        async def watch(warden: int) -> str:
            pause = _LOOK
            while True:
                await asyncio.sleep(pause)
                began = time.monotonic()
                why = await asyncio.to_thread(self._hungry, warden)
                why = why or await asyncio.to_thread(find_crowding, copy, entries, size)
                if why:
                    return why
                pause = max(_LOOK, 3 * (time.monotonic() - began))

        return await run_process(
            self.argv(command, copy),
            Path("/"),
            self.environment,
            seconds=min(seconds, self.limits.seconds),
            most=self.output,
            limits=self.process_limits,
            watch=watch,
        )

    def _hungry(self, warden: int) -> str:
        """Return a complaint if it uses too much memory, by itself or by its files; else an empty text."""
        used, inside = 0, False
        for pid in _below(warden):
            with suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
                used += sum(
                    int(each.split()[1]) << 10 for each in status.splitlines() if each.startswith(_OWN)
                )
            with suppress(OSError):
                if inside or Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink():
                    continue  # all that are in the cage see the same files
                held = [os.statvfs(f"/proc/{pid}/root{path}") for path in _MEMORY_FILES]
                inside = True
                if max(each.f_files - each.f_ffree for each in held) > self.limits.files:
                    return f"it made more than {self.limits.files:,} files in memory"
        if used > self.limits.memory:
            return f"it used more than {self.limits.memory >> 20:,} MB of memory"
        return ""


def _below(pid: int) -> list[int]:
    """Return the ids of a process's children, and theirs."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found[1:]

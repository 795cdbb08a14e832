"""A workspace, a world around it that can be watched, and a cage with small bounds."""

import hashlib
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bot.tools.builtin.shell.process import CommandLimits
from bot.tools.builtin.trials.cage import Cage, CageLimits
from bot.tools.builtin.trials.command import CommandTrials

SMALL = CageLimits(
    seconds=4.0,
    memory_bytes=256 << 20,
    memory_files=2000,
    new_entries=2000,
    new_bytes=24 << 20,
    process=CommandLimits(memory_bytes=128 << 20, file_bytes=17 << 20, processes=40, open_files=128),
)


CRASHING = (
    "ctypes.dlopen",
    "os.mkdir",
    "os.rmdir",
    "os.remove",
    "os.chmod",
    "open",
    "os.chown",
    "os.symlink",
)
"""What a process does to the disk, as audit events: where it is killed."""


@dataclass
class World:
    """``outside`` is a folder next to the workspace, ``listening`` sockets that no trial may reach."""

    workspace: Path
    outside: Path
    copies: Path
    listening: list[socket.socket]

    @property
    def port(self) -> int:
        return self.listening[0].getsockname()[1]

    @property
    def abstract(self) -> str:
        return self.listening[3].getsockname()[1:].decode()

    def put(self, script: str) -> str:
        script = script.replace("PORT", str(self.port)).replace("OUT", str(self.outside))
        return script.replace("ABSTRACT", self.abstract)

    def trials(self, limits: CageLimits = SMALL) -> CommandTrials:
        return CommandTrials(self.workspace, Cage(self.workspace, 20_000, limits))

    def seen(self) -> dict[str, str]:
        """All of the workspace and of what is next to it, by path."""
        return {
            str(each): mark(each) for top in (self.workspace, self.outside) for each in sorted(top.rglob("*"))
        }

    def reached(self) -> int:
        """How many connections and packets came from inside."""
        found = 0
        for each in self.listening:
            with suppress(BlockingIOError):
                each.recv(1) if each.type is socket.SOCK_DGRAM else each.accept()[0].close()
                found += 1
        return found

    def left(self) -> list[str]:
        """Processes in a cage, and copies."""
        return self.running() + [str(each) for each in self.copies.iterdir()]

    def running(self) -> list[str]:
        """Processes that see the workspace in a cage."""
        inside = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (each / "mountinfo").read_text()
                if f" {self.workspace} " in words:
                    inside.append(f"{each.name}: {(each / 'cmdline').read_bytes()!r}")
        return inside


def mark(path: Path) -> str:
    """What tells the path's state from any other."""
    found = path.lstat()
    kind = f"{stat.S_IFMT(found.st_mode):o} {stat.S_IMODE(found.st_mode):o} {found.st_uid}"
    if path.is_symlink():
        return f"{kind} {path.readlink()}"
    return f"{kind} {hashlib.sha256(path.read_bytes()).hexdigest()}" if path.is_file() else kind


@contextmanager
def world() -> Iterator[World]:
    """Not below pytest's folder: the account of a command must be able to walk to its copy."""
    base = Path(tempfile.mkdtemp(prefix="nod-cage-", dir="/tmp"))
    base.chmod(0o755)
    before = tempfile.tempdir
    workspace, outside, copies = (base / name for name in ("ws", "out", "tmp"))
    for each in (workspace, outside, copies):
        each.mkdir()
    copies.chmod(0o1777)
    outside.chmod(0o777)
    (workspace / "a.txt").write_text("one\ntwo\n")
    (workspace / "b").mkdir()
    (workspace / "b" / "c.txt").write_text("three\n")
    (outside / "there").write_text("secret\n")
    (outside / "there").chmod(0o666)
    tempfile.tempdir = str(copies)
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    tcp.bind(("127.0.0.1", 0))
    udp.bind(("127.0.0.1", tcp.getsockname()[1]))
    named, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    named.bind(str(outside / "sock"))
    (outside / "sock").chmod(0o777)
    abstract.bind(f"\0nod-{base.name}")
    for each in (tcp, named, abstract):
        each.listen()
    sockets = [tcp, udp, named, abstract]
    for each in sockets:
        each.setblocking(False)  # noqa: FBT003
    try:
        yield World(workspace, outside, copies, sockets)
    finally:
        tempfile.tempdir = before
        for each in sockets:
            each.close()
        shutil.rmtree(base, ignore_errors=True)

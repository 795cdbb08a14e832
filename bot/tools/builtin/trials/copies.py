"""A bounded copy of a workspace, cheap where the file system shares blocks, and what it was made of.

Both folders are walked name by name from an open descriptor, and no link is followed. A copy lies in a folder
of its own that is locked as long as its process lives, so that `sweep` finds what a crash left behind.
All of it blocks; call it in a thread.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bot.errors import ToolError
from bot.tools.builtin.files.workspace import FOLDER, NEW, READ, kind_of, open_descriptor

_PREFIX = ".nod-trial-"
STAGE = ".nod-apply-"
"""How a folder begins in which what is applied lies until it is in place."""
_FICLONE = 0x40049409  # ioctl_ficlone(2)
_PIECE = 1 << 20
_LOOKS = 500  # entries between looks at the clock


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """The limits of a copy: ``entries``, ``size`` in bytes of unshared blocks, ``depth`` of folders."""

    entries: int = 50_000
    size: int = 1 << 30
    depth: int = 60
    seconds: float = 30.0


class Stamp(tuple[int, ...]):
    """A fingerprint of a file's metadata that changes with the file.

    Only a process with rights over the clock could set all of it back.
    """

    __slots__ = ()

    @classmethod
    def of(cls, found: os.stat_result) -> "Stamp":
        return cls((found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode))

    @property
    def mark(self) -> str:
        return f"stamp:{'.'.join(map(str, self))}"


@dataclass(frozen=True, slots=True)
class Node:
    """The state of a path when it was copied: ``kind`` is file, folder or link; ``target`` of a link.

    ``source`` is its stamp in the workspace and ``copy`` that in the copy.
    """

    kind: str
    mode: int
    size: int
    source: Stamp
    copy: Stamp
    target: str = ""


Nodes = dict[str, Node]
"""By path, relative to the workspace."""


@dataclass(eq=False)
class _Walk:
    """The state of a copying: what is left of its limits."""

    limits: CopyLimits
    owner: int | None  # whose files the copy's are, where Nod may give files away
    nodes: Nodes
    ends: float
    size: int = 0

    def folder(self, source: int, target: int, path: str, depth: int) -> None:
        if depth > self.limits.depth:
            raise ToolError(f"The workspace has folders more than {self.limits.depth} deep.")
        with os.scandir(source) as found:
            names = [each.name for each in found]
        for name in names:
            if not path and name.startswith(STAGE):
                continue
            self.count()
            seen = os.stat(name, dir_fd=source, follow_symlinks=False)
            below = f"{path}/{name}" if path else name
            match kind_of(seen.st_mode):
                case "folder":
                    self._folder(name, source, target, below, seen, depth)
                case "file":
                    self._file(name, source, target, below)
                case "link":
                    where = os.readlink(name, dir_fd=source)
                    os.symlink(where, name, dir_fd=target)
                    if self.owner is not None:
                        os.chown(name, self.owner, self.owner, dir_fd=target, follow_symlinks=False)
                    made = os.stat(name, dir_fd=target, follow_symlinks=False)
                    self.nodes[below] = Node("link", 0, 0, Stamp.of(seen), Stamp.of(made), where)

    def count(self) -> None:
        most = self.limits.entries
        if len(self.nodes) >= most:
            raise ToolError(f"The workspace has more than {most:,} files and folders.")
        if len(self.nodes) % _LOOKS == 0 and time.monotonic() > self.ends:
            raise ToolError(f"To copy the workspace takes more than {self.limits.seconds:g} s.")

    def _folder(
        self, name: str, source: int, target: int, path: str, seen: os.stat_result, depth: int
    ) -> None:
        os.mkdir(name, 0o700, dir_fd=target)
        mode = stat.S_IMODE(seen.st_mode) & 0o777
        self.nodes[path] = Node("folder", mode, 0, Stamp.of(seen), Stamp())
        with open_descriptor(name, FOLDER, source) as inner, open_descriptor(name, FOLDER, target) as made:
            self.folder(inner, made, path, depth + 1)
            self._give(made, mode | 0o700)

    def _file(self, name: str, source: int, target: int, path: str) -> None:
        with open_descriptor(name, READ, source) as old:
            seen = os.fstat(old)
            with open_descriptor(name, NEW, target) as new:
                self._fill(old, new, seen.st_size)
                mode = stat.S_IMODE(seen.st_mode) & 0o777
                self._give(new, mode)
                os.utime(new, ns=(seen.st_atime_ns, seen.st_mtime_ns))
                made = Stamp.of(os.fstat(new))
            if Stamp.of(os.fstat(old)) != Stamp.of(seen):
                raise ToolError(f"{path} changed while it was copied.")
        self.nodes[path] = Node("file", mode, seen.st_size, Stamp.of(seen), made)

    def _fill(self, old: int, new: int, size: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(new, _FICLONE, old)
            return
        self.size += size
        if self.size > self.limits.size:
            raise ToolError(f"The workspace has more than {self.limits.size >> 20:,} MB to copy.")
        while os.sendfile(new, old, None, _PIECE):
            pass

    def _give(self, fd: int, mode: int) -> None:
        if self.owner is not None:
            os.fchown(fd, self.owner, self.owner)
        os.fchmod(fd, mode)


def copy_workspace(workspace: Path, target: Path, limits: CopyLimits, owner: int | None = None) -> Nodes:
    """Copy a workspace into an empty folder. Raises ToolError for one that is beyond the bounds, or changes.

    ``owner``: whose files the copy's become. Sockets, pipes and devices are left out.
    """
    walk = _Walk(limits, owner, {}, time.monotonic() + limits.seconds)
    try:
        with open_descriptor(str(workspace), FOLDER) as root, open_descriptor(str(target), FOLDER) as made:
            walk.folder(root, made, "", 0)
    except OSError as error:
        raise ToolError(f"The workspace can't be copied ({error.strerror}).") from error
    return walk.nodes


def folder_for(workspace: Path, owner: int | None) -> tuple[Path, int]:
    """Create a folder for a copy, with the descriptor that locks it; next to a workspace on another disk."""
    base = Path(tempfile.gettempdir())
    if (
        owner is None
        and base.stat().st_dev != workspace.stat().st_dev
        and os.access(workspace.parent, os.W_OK)
    ):
        base = workspace.parent
    made, lock = _make_locked_folder(base)
    if owner is not None:
        os.fchown(lock, owner, owner)
    return made, lock


def _make_locked_folder(base: Path) -> tuple[Path, int]:
    """Create a folder and its lock, again where a `sweep` removed it before it was locked."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(made, FOLDER)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_nlink:
                    return made, lock
            os.close(lock)


def sweep(workspace: Path) -> None:
    """Remove the copies of processes that are gone."""
    for base in {Path(tempfile.gettempdir()), workspace.parent}:
        for left in base.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError), open_descriptor(str(left), FOLDER) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(left)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, however deep, and whatever its modes are."""
    with open_descriptor(str(folder), FOLDER) as root:
        spare = 0
        while names := os.listdir(root):  # noqa: PTH208 - a descriptor
            for name in names:
                if kind_of(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode) != "folder":
                    os.unlink(name, dir_fd=root)
                    continue
                # a folder inside it moves up, so that no path gets long and no descriptor stays open
                os.chmod(name, 0o700, dir_fd=root)
                with open_descriptor(name, FOLDER, root) as inner:
                    for below in os.listdir(inner):  # noqa: PTH208
                        if kind_of(os.stat(below, dir_fd=inner, follow_symlinks=False).st_mode) != "folder":
                            os.unlink(below, dir_fd=inner)
                            continue
                        os.chmod(below, 0o700, dir_fd=inner)
                        spare += 1
                        os.rename(below, f"{_PREFIX}{spare}", src_dir_fd=inner, dst_dir_fd=root)
                os.rmdir(name, dir_fd=root)
    folder.rmdir()


def find_crowding(folder: Path, entries: int, size: int) -> str:
    """Return why a copy is too large, or an empty text. The copy may change during the scan."""
    stack, seen, held = [str(folder)], 0, 0
    while stack:
        try:
            with os.scandir(stack.pop()) as found:
                for each in found:
                    seen += 1
                    info = each.stat(follow_symlinks=False)
                    held += info.st_blocks * 512
                    if seen > entries:
                        return f"it made more than {entries:,} files"
                    if held > size:
                        return f"it wrote more than {size >> 20:,} MB"
                    if each.is_dir(follow_symlinks=False):
                        stack.append(each.path)
        except FileNotFoundError:
            continue
        except OSError as error:  # too deep, or its mode keeps us out: what is below can't be counted
            return f"it made a folder that can't be looked into ({error.strerror})"
    return ""

"""Bounded copies of a workspace, with a record of each copied path, by which later changes are found.

A copy is cheap where the file system can share blocks. Both folders are walked name by name from an open
descriptor, and no link is followed. The folder of a copy is locked as long as the process that made it lives,
so `remove_abandoned_copies` finds the copies that a crash left behind.

All functions block; call them in a thread.
"""

import contextlib
import fcntl
import itertools
import os
import secrets
import stat
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bot.errors import ToolError
from bot.tools.builtin.files.descriptors import (
    FOLDER_FLAGS,
    NEW_FILE_FLAGS,
    READ_FLAGS,
    kind_of,
    open_descriptor,
)

STAGING_PREFIX = ".nod-apply-"
"""The prefix of folders in the workspace that hold changes until they are in place; never copied."""
_COPY_PREFIX = ".nod-trial-"
_FICLONE = 0x40049409  # ioctl_ficlone(2)
_CHUNK_BYTES = 1 << 20
_BLOCK_BYTES = 512  # the unit of st_blocks, see stat(2)
_ENTRIES_PER_CLOCK_CHECK = 500


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """The limits of a copy."""

    entries: int = 50_000  # files and folders
    unshared_bytes: int = 1 << 30  # bytes that are copied; shared blocks are not counted
    depth: int = 60  # the nesting of folders
    seconds: float = 30.0


class Stamp(tuple[int, ...]):
    """A fingerprint of a file's metadata that changes with the file.

    It has the change time (ctime), which the kernel sets. So a process can't give a changed file its old
    stamp, unless that process may set the clock.
    """

    __slots__ = ()

    @classmethod
    def of(cls, info: os.stat_result) -> "Stamp":
        return cls((info.st_ino, info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_mode))

    @property
    def mark(self) -> str:
        """The fingerprint as a text, for `FileState.mark`."""
        return f"stamp:{'.'.join(map(str, self))}"


@dataclass(frozen=True, slots=True)
class CopiedPath:
    """The state of a path when it was copied."""

    kind: str  # file, folder or link
    mode: int
    size: int
    source_stamp: Stamp  # of the path in the workspace
    copy_stamp: Stamp  # of the path in the copy; empty for a folder
    target: str = ""  # the target of a link; empty for anything else


CopiedPaths = dict[str, CopiedPath]
"""The copied paths, relative to the workspace, each with its state. A folder comes before its entries."""


class CopySize(NamedTuple):
    """The size of a copy."""

    entries: int  # files, folders and links
    bytes: int

    @classmethod
    def of(cls, copied_paths: CopiedPaths) -> "CopySize":
        return cls(len(copied_paths), sum(copied.size for copied in copied_paths.values()))


def copy_workspace(
    workspace: Path, target: Path, limits: CopyLimits, owner: int | None = None
) -> CopiedPaths:
    """Copy a workspace into an empty folder. Raises ToolError if it is beyond the limits, or changes.

    ``owner``: the account that the copied files are given to. Sockets, pipes and devices are left out.
    """
    copier = _Copier(limits, owner, deadline=time.monotonic() + limits.seconds)
    try:
        with (
            open_descriptor(str(workspace), FOLDER_FLAGS) as source_folder,
            open_descriptor(str(target), FOLDER_FLAGS) as target_folder,
        ):
            copier.copy_entries(source_folder, target_folder, path="", depth=0)
    except OSError as error:
        raise ToolError(f"The workspace can't be copied ({error.strerror}).") from error
    return copier.copied_paths


@dataclass(eq=False)
class _Copier:
    """A copy in progress: its limits, and the paths copied so far.

    ``source`` and ``target`` are open folders of the workspace and of the copy, ``path`` is relative to both.
    """

    limits: CopyLimits
    owner: int | None
    deadline: float  # by time.monotonic()
    copied_paths: CopiedPaths = field(default_factory=dict)
    unshared_bytes: int = 0

    def copy_entries(self, source: int, target: int, path: str, depth: int) -> None:
        """Copy all entries of a folder, and the entries of its folders."""
        if depth > self.limits.depth:
            raise ToolError(f"The workspace has folders more than {self.limits.depth} deep.")
        with os.scandir(source) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if not path and name.startswith(STAGING_PREFIX):
                continue
            self._check_limits()
            entry_path = f"{path}/{name}" if path else name
            info = os.stat(name, dir_fd=source, follow_symlinks=False)
            match kind_of(info.st_mode):
                case "folder":
                    self._copy_folder(name, source, target, entry_path, info, depth)
                case "file":
                    self._copy_file(name, source, target, entry_path)
                case "link":
                    self._copy_link(name, source, target, entry_path, info)

    def _check_limits(self) -> None:
        max_entries = self.limits.entries
        if len(self.copied_paths) >= max_entries:
            raise ToolError(f"The workspace has more than {max_entries:,} files and folders.")
        if len(self.copied_paths) % _ENTRIES_PER_CLOCK_CHECK == 0 and time.monotonic() > self.deadline:
            raise ToolError(f"To copy the workspace takes more than {self.limits.seconds:g} s.")

    def _copy_folder(
        self, name: str, source: int, target: int, path: str, info: os.stat_result, depth: int
    ) -> None:
        os.mkdir(name, 0o700, dir_fd=target)
        mode = _permissions(info)
        self.copied_paths[path] = CopiedPath(
            "folder", mode, size=0, source_stamp=Stamp.of(info), copy_stamp=Stamp()
        )
        with (
            open_descriptor(name, FOLDER_FLAGS, source) as source_folder,
            open_descriptor(name, FOLDER_FLAGS, target) as target_folder,
        ):
            self.copy_entries(source_folder, target_folder, path, depth + 1)
            self._set_owner_and_mode(target_folder, mode | 0o700)  # the owner must be able to change it

    def _copy_file(self, name: str, source: int, target: int, path: str) -> None:
        with open_descriptor(name, READ_FLAGS, source) as source_file:
            info = os.fstat(source_file)
            mode = _permissions(info)
            with open_descriptor(name, NEW_FILE_FLAGS, target) as target_file:
                self._copy_content(source_file, target_file, info.st_size)
                self._set_owner_and_mode(target_file, mode)
                os.utime(target_file, ns=(info.st_atime_ns, info.st_mtime_ns))
                copy_stamp = Stamp.of(os.fstat(target_file))
            source_stamp = Stamp.of(info)
            if Stamp.of(os.fstat(source_file)) != source_stamp:
                raise ToolError(f"{path} changed while it was copied.")
        self.copied_paths[path] = CopiedPath("file", mode, info.st_size, source_stamp, copy_stamp)

    def _copy_link(self, name: str, source: int, target: int, path: str, info: os.stat_result) -> None:
        link_target = os.readlink(name, dir_fd=source)
        os.symlink(link_target, name, dir_fd=target)
        if self.owner is not None:
            os.chown(name, self.owner, self.owner, dir_fd=target, follow_symlinks=False)
        copy_stamp = Stamp.of(os.stat(name, dir_fd=target, follow_symlinks=False))
        self.copied_paths[path] = CopiedPath(
            "link", mode=0, size=0, source_stamp=Stamp.of(info), copy_stamp=copy_stamp, target=link_target
        )

    def _copy_content(self, source_file: int, target_file: int, size: int) -> None:
        """Share the blocks of an open file with a new file; copy them if the file system can't share."""
        try:
            fcntl.ioctl(target_file, _FICLONE, source_file)
        except OSError:
            pass  # it can't share
        else:
            return
        self.unshared_bytes += size
        if self.unshared_bytes > self.limits.unshared_bytes:
            raise ToolError(f"The workspace has more than {self.limits.unshared_bytes >> 20:,} MB to copy.")
        while os.sendfile(target_file, source_file, None, _CHUNK_BYTES):
            pass

    def _set_owner_and_mode(self, fd: int, mode: int) -> None:
        if self.owner is not None:
            os.fchown(fd, self.owner, self.owner)
        os.fchmod(fd, mode)


def _permissions(info: os.stat_result) -> int:
    return stat.S_IMODE(info.st_mode) & 0o777


class CopyFolder(NamedTuple):
    """A folder for a copy."""

    path: Path
    lock: int  # the descriptor that locks it, until it is closed


def create_copy_folder(workspace: Path, owner: int | None) -> CopyFolder:
    """Create and lock an empty folder for a copy.

    It is a temporary folder. If the workspace is on another disk, it is next to the workspace instead, so
    that both can share blocks. With an ``owner`` it is always a temporary folder, because that account may
    have no access next to the workspace.
    """
    base = Path(tempfile.gettempdir())
    is_other_disk = base.stat().st_dev != workspace.stat().st_dev
    if owner is None and is_other_disk and os.access(workspace.parent, os.W_OK):
        base = workspace.parent
    folder = _create_locked_folder(base)
    if owner is not None:
        os.fchown(folder.lock, owner, owner)
    return folder


def _create_locked_folder(base: Path) -> CopyFolder:
    """Create a folder and lock it; another one if `remove_abandoned_copies` removed it before the lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_COPY_PREFIX, dir=base))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, FOLDER_FLAGS)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                still_exists = os.fstat(lock).st_nlink > 0
                if still_exists:
                    return CopyFolder(folder, lock)
            os.close(lock)  # `remove_abandoned_copies` has locked or removed it: try another one


def remove_abandoned_copies(workspace: Path) -> None:
    """Remove the copies of processes that are gone: copies whose folders are not locked."""
    for base in {Path(tempfile.gettempdir()), workspace.parent}:
        for folder in base.glob(f"{_COPY_PREFIX}*"):
            with contextlib.suppress(OSError), open_descriptor(str(folder), FOLDER_FLAGS) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents, at any depth and with any modes.

    Folders inside a folder move to the top first, so that no path gets long and few descriptors are open.
    """
    numbers = itertools.count(1)
    prefix = f"{_COPY_PREFIX}{secrets.token_hex(8)}-"  # no folder inside has such a name
    with open_descriptor(str(folder), FOLDER_FLAGS) as top:
        while names := _unlink_files(top):
            for name in names:
                with open_descriptor(name, FOLDER_FLAGS, top) as inner:
                    for inner_name in _unlink_files(inner):
                        new_name = f"{prefix}{next(numbers)}"
                        os.rename(inner_name, new_name, src_dir_fd=inner, dst_dir_fd=top)
                os.rmdir(name, dir_fd=top)
    folder.rmdir()


def _unlink_files(folder: int) -> list[str]:
    """Remove everything but folders from an open folder; make the folders accessible, return their names."""
    folders = []
    for name in os.listdir(folder):
        if kind_of(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) == "folder":
            os.chmod(name, 0o700, dir_fd=folder)
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders


def find_excess(folder: Path, max_entries: int, max_bytes: int) -> str:
    """Return a text that says which limit a copy exceeds, while a command writes to it; empty if none."""
    pending = [str(folder)]
    entry_count = 0
    size = 0
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    entry_count += 1
                    size += _measure(entry)
                    if entry_count > max_entries:
                        return f"it made more than {max_entries:,} files"
                    if size > max_bytes:
                        return f"it wrote more than {max_bytes >> 20:,} MB"
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except FileNotFoundError:  # the command removed the folder in the meantime
            continue
        except OSError as error:  # too deep, or its mode keeps us out: what is below can't be counted
            return f"it made a folder that can't be looked into ({error.strerror})"
    return ""


def _measure(entry: os.DirEntry[str]) -> int:
    """Return the bytes that an entry takes on the disk; 0 if the command removed it in the meantime."""
    try:
        return entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    except FileNotFoundError:
        return 0

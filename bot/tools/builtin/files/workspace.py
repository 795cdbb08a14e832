"""The workspace, confined: every path is walked from one open folder, name by name, and no link is followed.

Each step is ``openat`` with ``O_NOFOLLOW`` below an open descriptor. So nothing that someone swaps in the
meantime can lead outside: between a check and its use there is no path, only the descriptor.

A file with a second name (a hard link) is not read, since that name may be outside. A written file is a new
one that is put in place by a rename, so the file under another name never changes. Devices, sockets and pipes
are left alone.

`ConfinedFolder` is the workspace. All of its methods block; call them in a thread. They raise ToolError.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bot.errors import SettingsError, ToolError
from bot.tools.builtin.files.descriptors import (
    FOLDER_FLAGS,
    READ_FLAGS,
    FolderEntry,
    open_descriptor,
    rename_to_free_name,
    stat_entry,
    write_new,
)
from bot.tools.builtin.files.paths import Names, format_path

_CHUNK_BYTES = 1 << 16
_NEW_FILE_MODE = 0o644
_PERMISSION_BITS = 0o777  # a mode without setuid, setgid and the sticky bit
_MAX_KEPT_BYTES = 1_000_000  # the largest file that can be put back
_REFUSALS = {
    errno.ENOENT: "is not there",
    errno.ELOOP: "is a link, or goes through one; links are not followed",
    errno.ENOTDIR: "is no folder, or goes through a link; links are not followed",
    errno.EISDIR: "is a folder",
    errno.EEXIST: "already exists",
    errno.ENOTEMPTY: "is a folder with something in it",
    errno.EACCES: "may not be touched by the account that Nod runs as",
    errno.EPERM: "may not be touched by the account that Nod runs as",
    errno.ENAMETOOLONG: "has too long a name",
    errno.EINVAL: "cannot be put there",
    errno.ENOSPC: "does not fit: the disk is full",
    errno.EROFS: "is on a disk that cannot be written to",
}


class ShownContent(NamedTuple):
    """The content of a path as people see it: the complete text of a file, or one line in place of it."""

    text: str  # a line such as "binary, 6 bytes, sha256 …" if the content is not text
    is_text: bool  # True: it is the complete text


@dataclass(frozen=True, slots=True)
class ExpectedContent:
    """The text that people saw before a change, as `ConfinedFolder.read_content` gave it."""

    text: str | None  # None if there was no file


@dataclass(frozen=True, slots=True)
class FormerContent:
    """The content of a path before a change, kept for undo."""

    content: bytes | None  # None for a folder, which was empty
    mode: int


@contextlib.contextmanager
def _as_tool_error(names: Names) -> Iterator[None]:
    """Raise ToolError in place of OSError. The OSError is its cause: `ConfinedFolder.find_entry` reads it."""
    try:
        yield
    except OSError as error:
        words = _REFUSALS.get(error.errno or 0, f"cannot be used ({os.strerror(error.errno or 0)})")
        raise ToolError(f"{format_path(names)} {words}.") from error


class ConfinedFolder:
    """A workspace.

    A path is given as its ``names`` below the workspace, as ``paths.py`` parses it. ``max_read`` and
    ``max_write`` are the limits of a file's size in bytes.
    """

    def __init__(self, workspace: Path, *, max_read: int = 1_000_000, max_write: int = 256_000) -> None:
        """Raises SettingsError for a workspace that is not a folder."""
        if not workspace.is_dir():
            raise SettingsError(
                f"NOD_WORKSPACE: {workspace} is not a folder. Create it, or name another one."
            )
        self.workspace = workspace.resolve()
        self.max_read = max_read
        self.max_write = max_write

    @contextlib.contextmanager
    def open_folder(self, names: Names, *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of a folder, and close it after the block. ``make``: create missing folders."""
        with _as_tool_error(names):
            fd = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, name in enumerate(names, 1):
                with _as_tool_error(names[:depth]):
                    if make:
                        _make_missing(name, fd)
                    inner = os.open(name, FOLDER_FLAGS, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd
        finally:
            os.close(fd)

    def find_entry(self, names: Names) -> FolderEntry | None:
        """Return the entry at a path, without following a link; None if it or its folder is missing."""
        if not names:
            return FolderEntry(".", "folder", 0, 1, "")
        try:
            with self.open_folder(names[:-1]) as fd:
                return stat_entry(names[-1], fd)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def list_entries(self, names: Names) -> list[FolderEntry]:
        """Return a folder's entries in the order of their names."""
        with self.open_folder(names) as fd, _as_tool_error(names):
            entries = [stat_entry(name, fd) for name in sorted(os.listdir(fd))]  # noqa: PTH208 - a descriptor
        return [entry for entry in entries if entry is not None]  # None: it was removed in the meantime

    def read(self, names: Names) -> bytes:
        """Return the full content of a regular file. Raises ToolError if it is larger than ``max_read``."""
        with self.open_folder(names[:-1]) as fd:
            return self.read_at(names, fd)

    def read_at(self, names: Names, fd: int) -> bytes:
        """Read a file below the open folder ``fd``; ``names`` is its full path, for messages."""
        with _as_tool_error(names):
            # before it is opened, since opening a device or a pipe could already do something
            _require_file(names, os.stat(names[-1], dir_fd=fd, follow_symlinks=False))
            with open_descriptor(names[-1], READ_FLAGS, fd) as file:
                info = os.fstat(file)
                _require_file(names, info)
                if info.st_nlink > 1:
                    raise ToolError(f"{format_path(names)} is a hard link; its other name may be outside.")
                if info.st_size > self.max_read:
                    limit = f"at most {self.max_read} can be read"
                    raise ToolError(f"{format_path(names)} has {info.st_size} bytes; {limit}.")
                return _read_all(file, self.max_read)

    def read_content(self, names: Names) -> ShownContent:
        """Return the content of a path as people see it. Two contents of a file never have the same text."""
        entry = _require_entry(names, self.find_entry(names))
        if entry.kind == "folder":
            return ShownContent(f"folder with {len(self.list_entries(names))} entries", is_text=False)
        with self.open_folder(names[:-1]) as fd:
            return self._read_content_at(names, fd, _require_entry(names, stat_entry(names[-1], fd)))

    def _read_content_at(self, names: Names, fd: int, entry: FolderEntry) -> ShownContent:
        if entry.size > self.max_read or entry.links > 1:
            note = f"{entry.kind}, {entry.size} bytes, not shown, {entry.identity}"
            return ShownContent(note, is_text=False)
        return decode_text(self.read_at(names, fd))

    def read_former(self, names: Names) -> FormerContent | None:
        """Return the present content of a path, to be put back after a change; None if nothing is there.

        Raises ToolError if the content is too large to be kept.
        """
        entry = self.find_entry(names)
        if entry is None:
            return None
        with self.open_folder(names[:-1]) as fd, _as_tool_error(names):
            info = os.stat(names[-1], dir_fd=fd, follow_symlinks=False)
            mode = stat.S_IMODE(info.st_mode) & _PERMISSION_BITS
            if entry.kind == "folder":
                return FormerContent(None, mode)
            if entry.size > _MAX_KEPT_BYTES:
                raise ToolError(f"{format_path(names)} has more than 1 MB, so its old content is not kept.")
            return FormerContent(self.read_at(names, fd), mode)

    def make_folder(self, names: Names, mode: int) -> None:
        """Make a folder, and the folders on the way to it. Raises ToolError if something is there."""
        with self.open_folder(names[:-1], make=True) as fd, _as_tool_error(names):
            os.mkdir(names[-1], mode, dir_fd=fd)
            os.fsync(fd)

    def write(
        self,
        names: Names,
        content: bytes,
        expected: ExpectedContent | None = None,
        *,
        mode: int | None = None,
    ) -> None:
        """Write a file atomically: other processes see the old file or the new file.

        ``expected``: the content that must be there; else ToolError is raised and nothing is written. None:
        any content is replaced.

        If no file may be there, the system itself refuses to replace one. If a file must be there, it is read
        again right before the rename. A change that another process makes in the microseconds between is
        lost, because POSIX has no rename that compares.

        ``mode``: the mode of a file that undo puts back, which may have up to `_MAX_KEPT_BYTES`. None: a file
        keeps its mode.
        """
        max_bytes = self.max_write if mode is None else _MAX_KEPT_BYTES
        if len(content) > max_bytes:
            raise ToolError(f"The content has {len(content)} bytes; at most {max_bytes} are written.")
        with self.open_folder(names[:-1], make=True) as fd, _as_tool_error(names):
            current_mode = self._find_mode(names, fd)
            new_mode = current_mode if mode is None else mode & _PERMISSION_BITS
            temporary = f".nod-{secrets.token_hex(8)}.tmp"
            try:
                write_new(temporary, fd, content, new_mode)
                if expected is not None:
                    self._require_unchanged(names, fd, expected)
                if expected is not None and expected.text is None:
                    rename_to_free_name(temporary, fd, names[-1], fd)
                else:
                    os.rename(temporary, names[-1], src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=fd)
                raise
            os.fsync(fd)

    def _require_unchanged(self, names: Names, fd: int, expected: ExpectedContent) -> None:
        """Raise ToolError if the content is not as it was shown, or if it changes while it is read."""
        entry = stat_entry(names[-1], fd)
        text = None if entry is None else self._read_content_at(names, fd, entry).text
        if text != expected.text or stat_entry(names[-1], fd) != entry:
            raise ToolError(f"{format_path(names)} changed after it was shown. Nothing was written.")

    @staticmethod
    def _find_mode(names: Names, fd: int) -> int:
        """Return the mode of the replaced file, or of a new file. Raises ToolError if it is not a file."""
        try:
            info = os.stat(names[-1], dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return _NEW_FILE_MODE
        _require_file(names, info)
        return stat.S_IMODE(info.st_mode) & _PERMISSION_BITS

    def move(self, names: Names, to: Names) -> None:
        """Rename a file or folder; never over something that is there."""
        with self.open_folder(names[:-1]) as fd, self.open_folder(to[:-1], make=True) as to_fd:
            entry = _require_entry(names, stat_entry(names[-1], fd))
            if entry.kind not in ("file", "folder"):
                raise ToolError(f"{format_path(names)} is a link or a device; those are left alone.")
            with _as_tool_error(to):
                rename_to_free_name(names[-1], fd, to[-1], to_fd)
                os.fsync(fd)
                os.fsync(to_fd)

    def delete_entry(self, names: Names) -> None:
        """Remove a file or an empty folder."""
        with self.open_folder(names[:-1]) as fd, _as_tool_error(names):
            entry = _require_entry(names, stat_entry(names[-1], fd))
            if entry.kind == "folder":
                os.rmdir(names[-1], dir_fd=fd)
            elif entry.kind == "file":
                os.unlink(names[-1], dir_fd=fd)
            else:
                raise ToolError(f"{format_path(names)} is a link or a device; those are left alone.")
            os.fsync(fd)


def decode_text(content: bytes) -> ShownContent:
    """Return a file's content as text; a line with its size and hash if it is not UTF-8 or has a NUL."""
    if b"\0" not in content:
        with contextlib.suppress(UnicodeDecodeError):
            return ShownContent(content.decode(), is_text=True)
    hashed = hashlib.sha256(content).hexdigest()
    return ShownContent(f"binary, {len(content)} bytes, sha256 {hashed}", is_text=False)


def _require_entry(names: Names, entry: FolderEntry | None) -> FolderEntry:
    if entry is None:
        raise ToolError(f"There is no {format_path(names)} in the workspace.")
    return entry


def _require_file(names: Names, info: os.stat_result) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise ToolError(f"{format_path(names)} is a folder.")
    if not stat.S_ISREG(info.st_mode):
        raise ToolError(f"{format_path(names)} is a link or a device; those are left alone.")


def _read_all(file: int, max_bytes: int) -> bytes:
    """Return all of an open file. Raises ToolError if it grew beyond ``max_bytes``."""
    with open(file, "rb", buffering=_CHUNK_BYTES, closefd=False) as stream:
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ToolError(f"The file has more than {max_bytes} bytes.")
    return content


def _make_missing(name: str, fd: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=fd)
        os.fsync(fd)

"""The workspace, confined: every path is walked from one open folder, name by name, and no link is followed.

Each step is ``openat`` with ``O_NOFOLLOW`` below a descriptor we hold, so nothing that is swapped in the
meantime can lead outside: between a check and its use there is no path, only the descriptor. A file with a
second name (a hard link) is not read, since that name may be outside; written files are new ones put in place
by a rename, so a hard link's other end never changes. Devices, sockets and pipes are left alone. All
methods block; call them in a thread. They raise ToolError. A path as the model wrote it is taken apart into
names first, which looks at no disk.
"""

import contextlib
import ctypes
import errno
import hashlib
import os
import secrets
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bot.domain.text import shorten, storable
from bot.errors import SettingsError, ToolError
from bot.telemetry.logs import logger

log = logger(__name__)

Names = tuple[str, ...]

AGENTS = "AGENTS.md"
_LONGEST_AGENTS = 8_000  # characters of it that are read
_LONGEST_NAME = 255  # bytes; Linux NAME_MAX
_DEEPEST = 40  # names in one path
_LONGEST_PATH = 2000  # characters, before anything else is looked at

# control, formatting (zero width, right to left), lone surrogates, line and paragraph separators: a name with
# one of these does not look on a card as it is
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 16
NOREPLACE, EXCHANGE = 1, 2  # renameat2(2)
_MODE = 0o644
_KEPT = 1_000_000  # bytes of a file that can be put back
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


def names(path: str) -> Names:
    """Split a path into names: ``a/./b`` → ``("a", "b")``; the workspace is ``()``. Raises ToolError.

    ``..`` is refused, not resolved: what it leads to depends on links, and no honest path needs it.
    """
    if len(path) > _LONGEST_PATH:
        raise ToolError(f"The path is longer than {_LONGEST_PATH} characters.")
    if path.startswith(("/", "~")):
        raise ToolError(f"{_quote(path)}: give a path relative to the workspace, such as docs/plan.md.")
    found = tuple(name for name in path.split("/") if name not in ("", "."))
    if len(found) > _DEEPEST:
        raise ToolError(f"The path has more than {_DEEPEST} folders.")
    for name in found:
        _check_name(name, path)
    return found


def file_names(path: str) -> Names:
    """Split the path of a file inside the workspace. Raises ToolError for the workspace itself."""
    found = names(path)
    if not found:
        raise ToolError("Name a file inside the workspace.")
    return found


def changeable(path: str) -> Names:
    """Split the path of a file that may be changed. Raises ToolError for files under ``.git``.

    Its configuration and hooks name programs that git would run later, when no one is asked.
    """
    found = file_names(path)
    if any(name.casefold() == ".git" for name in found):
        raise ToolError(f"{_quote(path)}: files under .git are changed by git alone.")
    return found


def format_path(found: Names) -> str:
    """Return the canonical path; ``.`` for the workspace itself."""
    return "/".join(found) or "."


def plain(name: str) -> bool:
    """Return whether a name found on disk can be given back as a path."""
    try:
        _check_name(name, name)
    except ToolError:
        return False
    return "/" not in name and name not in ("", ".")


def _check_name(name: str, path: str) -> None:
    if any(unicodedata.category(each) in _UNSEEN for each in name):
        raise ToolError(f"{_quote(path)}: there is an invisible character in the path.")
    if name == "..":
        raise ToolError(f"{_quote(path)}: a path must not contain “..”.")
    if name != name.strip() or "\\" in name:
        raise ToolError(f"{_quote(path)}: a name has a backslash, or a space at its beginning or end.")
    alike = unicodedata.normalize("NFKC", name)
    if alike != name and ("/" in alike or "\\" in alike or alike.strip() in ("", ".", "..", ".git")):
        raise ToolError(f"{_quote(path)}: a name only looks like another one.")
    if len(name.encode()) > _LONGEST_NAME:
        raise ToolError(f"{_quote(path)}: a name is longer than {_LONGEST_NAME} bytes.")


def _quote(path: str) -> str:
    text = path if len(path) <= 80 else f"{path[:80]}…"  # noqa: PLR2004 - enough to know it again
    return f"“{text.encode('unicode_escape').decode() if not text.isprintable() else text}”"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder: ``kind`` is file, folder, link or other; ``size`` in bytes."""

    name: str
    kind: str
    size: int
    links: int
    identity: str  # changes when the file is another one or was written to

    @classmethod
    def of(cls, name: str, found: os.stat_result) -> "FolderEntry":
        kind = kind_of(found.st_mode)
        return cls(name, kind, found.st_size, found.st_nlink, f"{found.st_ino}@{found.st_mtime_ns}")


class Shown(NamedTuple):
    """A file's complete text, or one line in place of a text that is not shown."""

    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Before:
    """The text of a file as people saw it before its change, by `ConfinedFolder.state`; None for no file."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The former content of a path, kept for undo; ``content`` is None for a folder, which was empty."""

    content: bytes | None
    mode: int


@contextlib.contextmanager
def _as_tool_error(names: Names) -> Iterator[None]:
    """Raise ToolError for OSError; the cause stays on it."""
    try:
        yield
    except OSError as error:
        words = _REFUSALS.get(error.errno or 0, f"cannot be used ({os.strerror(error.errno or 0)})")
        raise ToolError(f"{format_path(names)} {words}.") from error


class ConfinedFolder:
    """A workspace. ``max_read`` and ``max_write`` are bytes of one file."""

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
    def folder(self, names: Names, *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of the folder, open inside the block; ``make`` makes what is missing."""
        with _as_tool_error(names):
            fd = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, name in enumerate(names, 1):
                with _as_tool_error(names[:depth]):
                    if make:
                        _make(name, fd)
                    inner = os.open(name, FOLDER, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd
        finally:
            os.close(fd)

    def look(self, names: Names) -> FolderEntry | None:
        """Return the entry at a path; None without one, or without its folder."""
        if not names:
            return FolderEntry(".", "folder", 0, 1, "")
        try:
            with self.folder(names[:-1]) as fd:
                return look_at(names[-1], fd)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def listing(self, names: Names) -> list[FolderEntry]:
        """Return a folder's entries by name."""
        with self.folder(names) as fd, _as_tool_error(names):
            found = [look_at(name, fd) for name in sorted(os.listdir(fd))]  # noqa: PTH208 - a descriptor
        return [each for each in found if each is not None]

    def read(self, names: Names) -> bytes:
        """Return all of a regular file."""
        with self.folder(names[:-1]) as fd:
            return self.read_at(names, fd)

    def read_at(self, names: Names, fd: int) -> bytes:
        """Read a file below the open folder ``fd``; ``names`` is its full path, for messages."""
        with _as_tool_error(names):
            before = os.stat(names[-1], dir_fd=fd, follow_symlinks=False)
            _regular(names, before)  # opening a device or a pipe could already do something
            with open_descriptor(names[-1], READ, fd) as file:
                found = os.fstat(file)
                _regular(names, found)
                if found.st_nlink > 1:
                    raise ToolError(f"{format_path(names)} is a hard link; its other name may be outside.")
                if found.st_size > self.max_read:
                    bound = f"at most {self.max_read} can be read"
                    raise ToolError(f"{format_path(names)} has {found.st_size} bytes; {bound}.")
                return _whole(file, self.max_read)

    def state(self, names: Names) -> Shown:
        """Return the state of a path as people see it; it changes when the content does."""
        entry = _there(names, self.look(names))
        if entry.kind == "folder":
            return Shown(f"folder with {len(self.listing(names))} entries", whole=False)
        with self.folder(names[:-1]) as fd:
            return self._state_at(names, fd, _there(names, look_at(names[-1], fd)))

    def _state_at(self, names: Names, fd: int, entry: FolderEntry) -> Shown:
        if entry.size > self.max_read or entry.links > 1:
            return Shown(f"{entry.kind}, {entry.size} bytes, not shown, {entry.identity}", whole=False)
        return decode_text(self.read_at(names, fd))

    def keep_before(self, names: Names) -> Kept | None:
        """Return the content of a path to put back later, or None.

        Raises ToolError where it can't be kept.
        """
        entry = self.look(names)
        if entry is None:
            return None
        with self.folder(names[:-1]) as fd, _as_tool_error(names):
            mode = stat.S_IMODE(os.stat(names[-1], dir_fd=fd, follow_symlinks=False).st_mode) & 0o777
            if entry.kind == "folder":
                return Kept(None, mode)
            if entry.size > _KEPT:
                raise ToolError(f"{format_path(names)} has more than 1 MB, so its old content is not kept.")
            return Kept(self.read_at(names, fd), mode)

    def make(self, names: Names, mode: int) -> None:
        """Make a folder where nothing is."""
        with self.folder(names[:-1], make=True) as fd, _as_tool_error(names):
            os.mkdir(names[-1], mode, dir_fd=fd)
            os.fsync(fd)

    def write(
        self, names: Names, content: bytes, before: Before | None = None, *, mode: int | None = None
    ) -> None:
        """Put a file in place atomically: other processes see the old one or the new one.

        With ``before``, only if that is what is there; else ToolError, and nothing is written. Where
        nothing may stand there, the system itself refuses to replace anything. A file that is there is read
        and then checked again right before the rename; what another process does to it in the
        microseconds between that look and the rename is lost, for POSIX has no rename that compares.
        ``mode``: what is put back gets the one it had.
        """
        if len(content) > (self.max_write if mode is None else _KEPT):
            raise ToolError(f"The content has {len(content)} bytes; at most {self.max_write} are written.")
        with self.folder(names[:-1], make=True) as fd, _as_tool_error(names):
            kept_mode = self._replaceable(names, fd)
            mode = kept_mode if mode is None else mode & 0o777
            temporary = f".nod-{secrets.token_hex(8)}.tmp"
            try:
                write_new(temporary, fd, content, mode)
                if before is not None:
                    self._check(names, fd, before)
                if before is not None and before.text is None:
                    _rename(temporary, fd, names[-1], fd)
                else:
                    os.rename(temporary, names[-1], src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=fd)
                raise
            os.fsync(fd)

    def _check(self, names: Names, fd: int, before: Before) -> None:
        entry = look_at(names[-1], fd)
        text = None if entry is None else self._state_at(names, fd, entry).text
        if text != before.text or look_at(names[-1], fd) != entry:
            raise ToolError(f"{format_path(names)} changed after it was shown. Nothing was written.")

    @staticmethod
    def _replaceable(names: Names, fd: int) -> int:
        """Return the mode for the file to write; raises ToolError where something else stands."""
        try:
            before = os.stat(names[-1], dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return _MODE
        _regular(names, before)
        return stat.S_IMODE(before.st_mode) & 0o777

    def move(self, names: Names, to: Names) -> None:
        """Rename a file or folder; never over something that is there."""
        with self.folder(names[:-1]) as fd, self.folder(to[:-1], make=True) as to_fd:
            entry = _there(names, look_at(names[-1], fd))
            if entry.kind not in ("file", "folder"):
                raise ToolError(f"{format_path(names)} is a link or a device; those are left alone.")
            with _as_tool_error(to):
                _rename(names[-1], fd, to[-1], to_fd)
                os.fsync(fd)
                os.fsync(to_fd)

    def delete_entry(self, names: Names) -> None:
        """Remove a file or an empty folder."""
        with self.folder(names[:-1]) as fd, _as_tool_error(names):
            entry = _there(names, look_at(names[-1], fd))
            if entry.kind == "folder":
                os.rmdir(names[-1], dir_fd=fd)
            elif entry.kind == "file":
                os.unlink(names[-1], dir_fd=fd)
            else:
                raise ToolError(f"{format_path(names)} is a link or a device; those are left alone.")
            os.fsync(fd)


def decode_text(content: bytes) -> Shown:
    """Return a file's text, or a note in its place where it is not text."""
    if b"\0" not in content:
        with contextlib.suppress(UnicodeDecodeError):
            return Shown(content.decode(), whole=True)
    hashed = hashlib.sha256(content).hexdigest()
    return Shown(f"binary, {len(content)} bytes, sha256 {hashed}", whole=False)


@contextlib.contextmanager
def open_descriptor(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Yield a descriptor of what stands in an open folder, or under a path, open inside the block."""
    fd = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def write_new(name: str, folder: int, content: bytes, mode: int) -> None:
    """Make a file in an open folder, and sync it; the folder is not. Raises OSError where one is there."""
    with open_descriptor(name, NEW, folder) as fd, open(fd, "wb", closefd=False) as out:
        out.write(content)
        out.flush()
        os.fchmod(fd, mode)
        os.fsync(fd)


def kind_of(mode: int) -> str:
    """Return file, folder, link or other."""
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(mode), "other")


def _make(name: str, fd: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=fd)
        os.fsync(fd)


def look_at(name: str, fd: int) -> FolderEntry | None:
    """Return the entry of a name in an open folder, or None."""
    try:
        return FolderEntry.of(name, os.stat(name, dir_fd=fd, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _there(names: Names, entry: FolderEntry | None) -> FolderEntry:
    if entry is None:
        raise ToolError(f"There is no {format_path(names)} in the workspace.")
    return entry


def _regular(names: Names, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{format_path(names)} is a folder.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{format_path(names)} is a link or a device; those are left alone.")


def _whole(file: int, most: int) -> bytes:
    """Read a complete file, even if it grows in the meantime."""
    parts: list[bytes] = []
    left = most + 1
    while left > 0 and (part := os.read(file, min(_CHUNK, left))):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        raise ToolError(f"The file has more than {most} bytes.")
    return b"".join(parts)


def rename(name: str, fd: int, to: str, to_fd: int, how: int) -> None:
    """Call renameat2(2) between two open folders. Raises OSError, also where a system or disk has none."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(fd, os.fsencode(name), to_fd, os.fsencode(to), how) != 0:
        fault = ctypes.get_errno()
        raise OSError(fault, os.strerror(fault))


def _rename(name: str, fd: int, to: str, to_fd: int) -> None:
    """Rename without overwriting; where the system can't guarantee that, check first."""
    try:
        rename(name, fd, to, to_fd, NOREPLACE)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise
    else:
        return
    if look_at(to, to_fd) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(name, to, src_dir_fd=fd, dst_dir_fd=to_fd)


class AgentsFile:
    """``AGENTS.md`` in the workspace: what its owner says about working there, for the agent's prompt.

    Its form is that of https://agents.md: plain Markdown. It is data of the workspace, so nothing in it
    approves anything. It is read again each time; the log has what is new of it.
    """

    def __init__(self, workspace: Path) -> None:
        self._confined = ConfinedFolder(workspace)
        self._said = ""

    def read(self) -> str:
        """Return the file's text, shortened; empty for none. Blocks, and never raises."""
        try:
            there = self._confined.look((AGENTS,)) is not None
            found = decode_text(self._confined.read((AGENTS,))) if there else None
            if found and found.whole:
                text = shorten(storable(found.text).strip(), _LONGEST_AGENTS)
            else:
                text = ""
            why = "it is not text" if found and not found.whole else ""
        except ToolError as error:
            text, why = "", error.message
        said = why or text
        if said and said != self._said:
            log.info("AGENTS.md of the workspace", characters=len(text), left_out=why)
        self._said = said
        return text

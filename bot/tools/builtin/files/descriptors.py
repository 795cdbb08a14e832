"""Operations on a file by its name in an open folder, by system calls that follow no link.

A path could lead elsewhere after it was checked, if someone swaps a folder on it for a link. A name in a
folder that is already open can't. An open folder is a *descriptor*, the number that the system gives it; here
it is called ``fd`` or ``folder``. Functions raise OSError.
"""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

# flags of open(2) for `open_descriptor`: a folder, a file to read, a file that must not exist yet
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# flags of renameat2(2)
NOREPLACE = 1  # fail if the new name is taken
EXCHANGE = 2  # swap the two names


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder."""

    name: str
    kind: str  # file, folder, link or other
    size: int  # the size in bytes
    links: int  # the number of its names (hard links)
    identity: str  # a text that changes when the file is replaced or written to

    @classmethod
    def of(cls, name: str, info: os.stat_result) -> "FolderEntry":
        kind = kind_of(info.st_mode)
        return cls(name, kind, info.st_size, info.st_nlink, f"{info.st_ino}@{info.st_mtime_ns}")


@contextlib.contextmanager
def open_descriptor(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Yield a descriptor of a name in an open folder, or of a path, and close it after the block."""
    fd = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def write_new(name: str, folder: int, content: bytes, mode: int) -> None:
    """Create a file in an open folder, and sync the file. Raises FileExistsError if there is one."""
    with open_descriptor(name, NEW_FILE_FLAGS, folder) as fd, open(fd, "wb", closefd=False) as out:
        out.write(content)
        out.flush()
        os.fchmod(fd, mode)
        os.fsync(fd)


def kind_of(mode: int) -> str:
    """Return the kind of a file by its ``st_mode``: file, folder, link or other."""
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(mode), "other")


def stat_entry(name: str, fd: int) -> FolderEntry | None:
    """Return the entry of a name in an open folder; None if it is missing."""
    try:
        return FolderEntry.of(name, os.stat(name, dir_fd=fd, follow_symlinks=False))
    except FileNotFoundError:
        return None


def renameat2(name: str, fd: int, to: str, to_fd: int, flag: int) -> None:
    """Rename between two open folders, by the system call of that name.

    ``flag``: `NOREPLACE` or `EXCHANGE`.
    Raises OSError, with ENOSYS or EINVAL if the system or the disk does not know the call.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(fd, os.fsencode(name), to_fd, os.fsencode(to), flag) != 0:
        fault = ctypes.get_errno()
        raise OSError(fault, os.strerror(fault))


def rename_to_free_name(name: str, fd: int, to: str, to_fd: int) -> None:
    """Rename without overwriting. Raises FileExistsError if the new name is taken.

    On a system or a disk without `renameat2` the new name is only checked beforehand: another program could
    take it in between.
    """
    try:
        renameat2(name, fd, to, to_fd, NOREPLACE)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL):
            raise
    else:
        return
    if stat_entry(to, to_fd) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(name, to, src_dir_fd=fd, dst_dir_fd=to_fd)

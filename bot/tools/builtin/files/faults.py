"""What a disk refuses, in words for the model and people."""

import contextlib
import errno
import os
from collections.abc import Iterator

from bot.errors import ToolError
from bot.tools.builtin.files.names import Names, shown

_WORDS = {
    errno.ENOENT: "is not there",
    errno.ELOOP: "is a link, or goes through one; links are not followed",
    errno.ENOTDIR: "is no folder, or goes through a link; links are not followed",
    errno.EISDIR: "is a folder",
    errno.EEXIST: "is there already",
    errno.ENOTEMPTY: "is a folder with something in it",
    errno.EACCES: "may not be touched by the account that Nod runs as",
    errno.EPERM: "may not be touched by the account that Nod runs as",
    errno.ENAMETOOLONG: "has too long a name",
    errno.EINVAL: "cannot be put there",
    errno.ENOSPC: "does not fit: the disk is full",
    errno.EROFS: "is on a disk that cannot be written to",
}


@contextlib.contextmanager
def told(names: Names) -> Iterator[None]:
    """Raise ToolError for OSError; the cause stays on it."""
    try:
        yield
    except OSError as error:
        words = _WORDS.get(error.errno or 0, f"cannot be used ({os.strerror(error.errno or 0)})")
        raise ToolError(f"{shown(names)} {words}.") from error

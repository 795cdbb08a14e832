"""A path as the model wrote it, taken apart into names that can be walked one by one.

Pure: nothing here looks at a disk. What the names lead to is the business of ``workspace.py``.

What a disk refuses, in words for the model and people.
"""

import contextlib
import errno
import os
import unicodedata
from collections.abc import Iterator

from bot.errors import ToolError

Names = tuple[str, ...]

_LONGEST_NAME = 255  # bytes; Linux NAME_MAX
_DEEPEST = 40  # names in one path
_LONGEST_PATH = 2000  # characters, before anything else is looked at

# control, formatting (zero width, right to left), lone surrogates, line and paragraph separators: a name with
# one of these does not look on a card as it is
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def names(path: str) -> Names:
    """``a/./b`` → ``("a", "b")``; the workspace itself is ``()``. Raises ToolError for a path we do not walk.

    ``..`` is refused, not resolved: what it leads to depends on links, and no honest path needs it.
    """
    if len(path) > _LONGEST_PATH:
        raise ToolError(f"The path is longer than {_LONGEST_PATH} characters.")
    if path.startswith(("/", "~")):
        raise ToolError(f"{_quoted(path)}: give a path relative to the workspace, such as docs/plan.md.")
    found = tuple(name for name in path.split("/") if name not in ("", "."))
    if len(found) > _DEEPEST:
        raise ToolError(f"The path has more than {_DEEPEST} folders.")
    for name in found:
        _check(name, path)
    return found


def file_names(path: str) -> Names:
    """The same for something inside the workspace; raises ToolError for the workspace itself."""
    found = names(path)
    if not found:
        raise ToolError("Name a file inside the workspace.")
    return found


def changeable(path: str) -> Names:
    """The same for something that may be changed; a repository's own folder is changed by git alone.

    Its configuration and hooks name programs that git would run later, when no one is asked.
    """
    found = file_names(path)
    if any(name.casefold() == ".git" for name in found):
        raise ToolError(f"{_quoted(path)}: files under .git are changed by git alone.")
    return found


def shown(found: Names) -> str:
    """The canonical path; ``.`` for the workspace itself."""
    return "/".join(found) or "."


def plain(name: str) -> bool:
    """Whether a name found on disk can be given back as a path."""
    try:
        _check(name, name)
    except ToolError:
        return False
    return "/" not in name and name not in ("", ".")


def _check(name: str, path: str) -> None:
    if any(unicodedata.category(each) in _UNSEEN for each in name):
        raise ToolError(f"{_quoted(path)}: there is an invisible character in the path.")
    if name == "..":
        raise ToolError(f"{_quoted(path)}: a path must not contain “..”.")
    if name != name.strip() or "\\" in name:
        raise ToolError(f"{_quoted(path)}: a name has a backslash, or a space at its beginning or end.")
    alike = unicodedata.normalize("NFKC", name)
    if alike != name and ("/" in alike or "\\" in alike or alike.strip() in ("", ".", "..", ".git")):
        raise ToolError(f"{_quoted(path)}: a name only looks like another one.")
    if len(name.encode()) > _LONGEST_NAME:
        raise ToolError(f"{_quoted(path)}: a name is longer than {_LONGEST_NAME} bytes.")


def _quoted(path: str) -> str:
    text = path if len(path) <= 80 else f"{path[:80]}…"  # noqa: PLR2004 - enough to know it again
    return f"“{text.encode('unicode_escape').decode() if not text.isprintable() else text}”"


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

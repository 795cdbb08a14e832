"""Paths of a workspace as the model writes them, split into names. Nothing here reads the disk."""

import unicodedata

from bot.errors import ToolError

Names = tuple[str, ...]
"""The names of a path below the workspace, which itself is ``()``."""

_MAX_PATH_CHARS = 2000
_MAX_NAMES = 40  # the names in one path
_MAX_NAME_BYTES = 255  # Linux NAME_MAX
_QUOTED_CHARS = 80  # the part of a path that a message shows
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, formatting (zero width, right to left), lone surrogates, line and paragraph separators.

A name with such a character looks on a card like another name.
"""


def parse_path(path: str) -> Names:
    """Split a path into names: ``a/./b`` → ``("a", "b")``. Raises ToolError.

    ``..`` is refused, not resolved: its target depends on links, and no honest path needs it.
    """
    if len(path) > _MAX_PATH_CHARS:
        raise ToolError(f"The path is longer than {_MAX_PATH_CHARS} characters.")
    if path.startswith(("/", "~")):
        raise ToolError(f"{_quote(path)}: give a path relative to the workspace, such as docs/plan.md.")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if len(names) > _MAX_NAMES:
        raise ToolError(f"The path has more than {_MAX_NAMES} folders.")
    for name in names:
        _check_name(name, path)
    return names


def parse_file_path(path: str) -> Names:
    """Split the path of a file inside the workspace. Raises ToolError, also for the workspace itself."""
    names = parse_path(path)
    if not names:
        raise ToolError("Name a file inside the workspace.")
    return names


def parse_changeable_path(path: str) -> Names:
    """Split the path of a file that may be changed. Raises ToolError, also for files under ``.git``.

    Its configuration and hooks name programs that git would run later, when no one is asked.
    """
    names = parse_file_path(path)
    if any(name.casefold() == ".git" for name in names):
        raise ToolError(f"{_quote(path)}: files under .git are changed by git alone.")
    return names


def format_path(names: Names) -> str:
    """Return the canonical path; ``.`` for the workspace itself."""
    return "/".join(names) or "."


def may_be_in_path(name: str) -> bool:
    """Return whether the model can name this entry of the disk in a path."""
    try:
        _check_name(name, name)
    except ToolError:
        return False
    return "/" not in name and name not in ("", ".")


def _check_name(name: str, path: str) -> None:
    """Raise ToolError for a name that leads elsewhere, or that looks like another name."""
    if any(unicodedata.category(char) in _INVISIBLE_CATEGORIES for char in name):
        raise ToolError(f"{_quote(path)}: there is an invisible character in the path.")
    if name == "..":
        raise ToolError(f"{_quote(path)}: a path must not contain “..”.")
    if name != name.strip() or "\\" in name:
        raise ToolError(f"{_quote(path)}: a name has a backslash, or a space at its beginning or end.")
    if _looks_like_another(name):
        raise ToolError(f"{_quote(path)}: a name only looks like another one.")
    if len(name.encode()) > _MAX_NAME_BYTES:
        raise ToolError(f"{_quote(path)}: a name is longer than {_MAX_NAME_BYTES} bytes.")


def _looks_like_another(name: str) -> bool:
    """Return whether a name has look-alikes of slashes, or of the letters of a special name."""
    plain = unicodedata.normalize("NFKC", name)
    if plain == name:
        return False
    return "/" in plain or "\\" in plain or plain.strip() in ("", ".", "..", ".git")


def _quote(path: str) -> str:
    text = path if len(path) <= _QUOTED_CHARS else f"{path[:_QUOTED_CHARS]}…"
    if not text.isprintable():
        text = text.encode("unicode_escape").decode()
    return f"“{text}”"

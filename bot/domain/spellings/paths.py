"""Paths, as the tool's own system splits them, and as the most tolerant program does.

Source: https://learn.microsoft.com/windows/win32/fileio/naming-a-file (case, dots and spaces at the end).
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from bot.domain.spellings.names import decode_percent, fold
from bot.domain.spellings.terms import MAX_CHARS, Answer, NamedText, Referent

_ON_DRIVE = re.compile(r"[A-Za-z]:(?![/\\])")
_DRIVE = re.compile(r"[A-Za-z]:")
_HOME = re.compile(r"~[^/]*|\$\{?\w+\}?|%\w+%")  # at the beginning of a path: a folder that is not known here
_WILD = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[[^\]/]*\]?")
_BRACED = re.compile(r"\{[^{}]*\}")
_EXTENDED = re.compile(r"[@+!?*]\([^()]*\)")  # the alternatives of shells
_ANY_FOLDERS = re.compile(r"\*\*+/")
_SHORT_NAME = re.compile(r"([^/~]{1,6})~[0-9]{1,6}(\.[^/.]{1,3})?(?=/|$)")  # of Windows: PROGRA~1
_MAX_WILD_CHARS = 500  # a longer path with wildcards may stand for anything: it is not compared

Steps = tuple[str, ...]
"""The names of a path; an absolute path begins with an empty name."""


def compare_paths(found: str, wanted: NamedText, *, below: Referent | None = None) -> Answer:
    """Compare paths. ``below``: the call reaches everything below the folder, too."""
    if len(found) > MAX_CHARS:
        return None
    strict, strict_wanted = _split_strictly(found), _split_strictly(wanted.text)
    loose, loose_wanted = _split_loosely(found), _split_loosely(wanted.text)
    if any(".." in steps for steps in (strict, strict_wanted, loose, loose_wanted)):
        return None  # the answer depends on links
    fits = wanted.fits(_join_steps(strict), _join_steps(strict_wanted))
    if fits != wanted.fits(_join_steps(loose), _join_steps(loose_wanted)):
        return None
    if fits:
        return None if _has_other_expansions(found, wanted) else True
    unescaped = found.replace("\\", "")
    if unescaped != found and compare_paths(unescaped, wanted, below=below) is not False:
        return None  # a backslash before a letter is nothing to a program that expands wildcards
    if _ON_DRIVE.match(found.strip()) or _may_expand_to(loose, loose_wanted, wanted):
        return None  # the answer depends on the current folder of that drive, or on the program
    if _is_near(loose, loose_wanted, wanted, below):
        return None
    return False


def _may_expand_to(found: Steps, named: Steps, wanted: NamedText) -> bool:
    """Return whether a path with wildcards, or a short name of Windows, may stand for what a rule names."""
    text = _to_wildcards(_join_steps(found))
    if not _WILD.search(text):
        return False
    if len(text) > _MAX_WILD_CHARS:
        return True
    if wanted.pattern:
        named = tuple(_CLASS.sub("?", name) for name in named)
    placed = _place_in_one_folder(tuple(text.split("/")), named)
    return any(_may_both_fit(_join_steps(one), _join_steps(other)) for one, other in placed)


def _to_wildcards(path: str) -> str:
    """Return a path with * and ? in place of everything that a program may expand."""
    plain = _EXTENDED.sub("*", path)
    while _BRACED.search(plain):
        plain = _BRACED.sub("*", plain)
    plain = _SHORT_NAME.sub(r"\1*\2*", _CLASS.sub("*", plain))
    return _ANY_FOLDERS.sub("*", re.sub(r"[{}]", "*", plain))


def _may_both_fit(one: str, other: str) -> bool:
    """Return whether a text exists that fits both patterns, of * and ?.

    The patterns are read together, as two automata. After each character of ``one``, ``reached`` has the
    positions in ``other`` up to which some text fits both beginnings. These are the bits of a number, since
    a set of them would take too long for long paths.
    """
    other = re.sub(r"\*+", "*", other)
    stars = _mark_positions(other, "*")
    all_positions = (1 << (len(other) + 1)) - 1  # the last position is behind the end
    reached = 1 | ((1 & stars) << 1)  # the beginning, and the position behind a star there
    for character in one:
        if character == "*":  # any number of steps: all positions from the lowest
            lowest = reached & -reached
            reached = all_positions & ~(lowest - 1)
            continue
        if character == "?":
            matching = all_positions >> 1 & ~stars
        else:
            matching = _mark_positions(other, f"?{character}")
        moved = ((reached & matching) << 1) | (reached & stars)  # a star takes the character and stays
        reached = moved | ((moved & stars) << 1)
    return bool(reached >> len(other) & 1)


def _mark_positions(text: str, characters: str) -> int:
    """Return a number whose bits are the positions of these characters."""
    return sum(1 << position for position, character in enumerate(text) if character in characters)


def _has_other_expansions(found: str, wanted: NamedText) -> bool:
    """Return whether a path that fits a rule as text has wildcards that may stand for something else."""
    if not (_WILD.search(found) or _BRACED.search(found)):
        return False
    return ".." in found or bool(wanted.pattern and re.search(r"[?\[]", wanted.text))


def compare_trees(found: str, wanted: NamedText) -> Answer:
    return compare_paths(found, wanted, below=Referent.TREE)


def compare_folders(found: str, wanted: NamedText) -> Answer:
    return compare_paths(found, wanted, below=Referent.FOLDER)


def _split_strictly(text: str) -> Steps:
    """Split a path into names; an absolute path begins with an empty name."""
    names = tuple(name for name in text.split("/") if name not in ("", "."))
    if text.startswith("/"):
        return ("", *names)
    return names


@lru_cache(maxsize=1024)
def _split_loosely(text: str) -> Steps:
    """Split a path into names as the most tolerant program does."""
    path = _loosen_path(text)
    names = [_loosen_name(name) for name in path.split("/")]
    is_absolute = path.startswith("/")
    if _DRIVE.match(path):
        is_absolute, names[0] = True, _DRIVE.sub("", names[0], count=1)
    elif _HOME.match(path):
        is_absolute, names[0] = True, ""
    steps = tuple(name for name in names if name not in ("", "."))
    return ("", *steps) if is_absolute else steps


def _loosen_path(text: str) -> str:
    """Return a path decoded, with plain slashes, without a scheme and quotes, and cut at a NUL."""
    path = text.strip()
    if _HOME.match(path):
        path = _HOME.sub("~", path, count=1)
    path = decode_percent(path).partition("\0")[0]
    if path[:5].casefold() == "file:":
        path = "/" + path[5:].lstrip("/")
    path = unicodedata.normalize("NFKC", path).replace("\\", "/").replace("\u2215", "/")
    return path.strip("\"'` \t\r\n")


def _loosen_name(name: str) -> str:
    """Return one name without case, dots and spaces at its end, unseen characters and a stream's name."""
    plain = fold(name)
    if plain in (".", ".."):
        return plain
    head = plain if _DRIVE.fullmatch(plain) else plain.partition(":")[0]
    return (head or plain).strip(" ").rstrip(". ") or "."


def _join_steps(steps: Steps) -> str:
    if steps != ("",):
        return "/".join(steps)
    return "/"


def _is_near(found: Steps, named: Steps, wanted: NamedText, below: Referent | None) -> bool:
    """Return whether a path may be what a rule names from another folder, or lies below or above it."""
    if below and found[:1] == ("",) != named[:1] and "." not in found[-1]:
        return True  # the path may be above the folder at which the rule begins
    for placed, placed_named in _place_in_one_folder(found, named):
        if wanted.fits(_join_steps(placed), _join_steps(placed_named)):
            return True
        if placed and placed_named and _is_inside(placed, placed_named, wanted):
            return True
        if _is_above(placed, placed_named, wanted, below):
            return True
    return False


def _place_in_one_folder(found: Steps, named: Steps) -> Iterator[tuple[Steps, Steps]]:
    """Yield both paths from each folder that both may begin at: one is absolute, the other is not."""
    roots = (found[:1] == ("",), named[:1] == ("",))
    if roots[0] == roots[1]:
        yield found, named
    elif roots[0]:
        yield from ((found[at:], named) for at in range(1, max(2, len(found))))
    else:
        yield from ((found, named[at:]) for at in range(1, len(named)))


def _is_inside(found: Steps, named: Steps, wanted: NamedText) -> bool:
    """Tell if a folder above the path is what the rule names."""
    parents = [found[:count] for count in range(1, len(found))]
    return any(wanted.fits(_join_steps(parent), _join_steps(named)) for parent in parents)


def _is_above(found: Steps, named: Steps, wanted: NamedText, below: Referent | None) -> bool:
    """Tell if a path is the folder whose content a rule names, or a parent in a call that reaches below."""
    content = wanted.pattern and len(named) > 1 and set(named[-1]) == {"*"}
    if content and wanted.fits(_join_steps(found), _join_steps(named[:-1])):
        return True
    if below is None:
        return False
    if not found:
        return True  # the workspace
    parents = [named[:count] for count in range(1, len(named))]
    if wanted.pattern and below is Referent.TREE:
        # for ``**/*.py`` no parent counts: the rule names files anywhere, also after their folder was moved
        parents = [parent for parent in parents if set(_join_steps(parent)) - set("*/")]
    if any(wanted.fits(_join_steps(found), _join_steps(parent)) for parent in parents):
        return True
    return wanted.pattern and below is Referent.FOLDER and bool(named) and bool(_WILD.search(named[0]))

"""Paths, compared as the tool's own system splits them, and as the most tolerant program does.

Two spellings are equal in their *strict form* if the standard says that they are the same, and in their
*loose form* if some program takes them for the same. Both forms are the names in the path (`Steps`):
``/srv/./a.txt`` is ``("", "srv", "a.txt")``. The loose form is also without capitals, backslashes,
percent-escapes, drives, and what Windows ignores
(https://learn.microsoft.com/windows/win32/fileio/naming-a-file).

The answer is False only if the path is certainly not what the rule names. It is None where the answer depends
on links, on wildcards that a program may expand, or on the folder at which a relative path begins. It is also
None where the path lies below what the rule names, or is a folder above it of which the call reaches all.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from bot.domain.spellings.names import decode_percent, fold
from bot.domain.spellings.terms import MAX_CHARS, Answer, Referent, WantedText

_ON_DRIVE = re.compile(r"[A-Za-z]:(?![/\\])")  # "c:a.txt": relative to the current folder of that drive
_DRIVE = re.compile(r"[A-Za-z]:")
_HOME = re.compile(r"~[^/]*|\$\{?\w+\}?|%\w+%")  # "~ana", "$HOME", "%TEMP%": a folder that is not known here
_WILD = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[[^\]/]*\]?")  # "[a-z]": one of these characters fits
_BRACED = re.compile(r"\{[^{}]*\}")  # "{a,b}", alternatives of shells
_EXTENDED = re.compile(r"[@+!?*]\([^()]*\)")  # "+(a|b)", further alternatives of shells
_ANY_FOLDERS = re.compile(r"\*\*+/")
_SHORT_NAME = re.compile(r"([^/~]{1,6})~[0-9]{1,6}(\.[^/.]{1,3})?(?=/|$)")  # of Windows: PROGRA~1
_MAX_WILD_CHARS = 500  # a longer path with wildcards may stand for anything: it is not compared

Steps = tuple[str, ...]
"""The names of a path; an absolute path begins with an empty name."""


def compare_paths(found: str, wanted: WantedText, *, kind: Referent = Referent.PATH) -> Answer:
    """Compare an argument with a path that a rule names.

    ``kind`` says how far the call reaches. PATH: only to the file or folder itself. FOLDER: the path is a
    folder, and the call reaches all that is below. TREE: the same, but the path may also be a file.
    """
    if len(found) > MAX_CHARS:
        return None
    strict, strict_wanted = _split_strictly(found), _split_strictly(wanted.text)
    loose, loose_wanted = _split_loosely(found), _split_loosely(wanted.text)
    if any(".." in steps for steps in (strict, strict_wanted, loose, loose_wanted)):
        return None  # what ".." leads to depends on symbolic links
    fits = wanted.fits(_join_steps(strict), _join_steps(strict_wanted))
    if fits != wanted.fits(_join_steps(loose), _join_steps(loose_wanted)):
        return None
    if fits:
        return None if _has_other_expansions(found, wanted) else True
    unescaped = found.replace("\\", "")
    if unescaped != found and compare_paths(unescaped, wanted, kind=kind) is not False:
        return None  # for a shell, a backslash before a letter is no part of the name
    if _ON_DRIVE.match(found.strip()):
        return None  # the answer depends on the current folder of that drive
    if _may_expand_to(loose, loose_wanted, wanted):
        return None
    if _is_near(loose, loose_wanted, wanted, kind):
        return None
    return False


def compare_trees(found: str, wanted: WantedText) -> Answer:
    """Compare the path of a file, or of a folder of which a call reaches all that is below."""
    return compare_paths(found, wanted, kind=Referent.TREE)


def compare_folders(found: str, wanted: WantedText) -> Answer:
    """Compare the path of a folder of which a call reaches all that is below."""
    return compare_paths(found, wanted, kind=Referent.FOLDER)


def _split_strictly(text: str) -> Steps:
    """Return a path in its strict form: split into its names at each slash."""
    names = tuple(name for name in text.split("/") if name not in ("", "."))
    if text.startswith("/"):
        return ("", *names)
    return names


@lru_cache(maxsize=1024)
def _split_loosely(text: str) -> Steps:
    """Return a path in its loose form. A path from a home folder or a drive counts as absolute."""
    path = _loosen_path(text)
    names = [_loosen_name(name) for name in path.split("/")]
    is_absolute = path.startswith("/")
    if _DRIVE.match(path):
        is_absolute = True
        names[0] = _DRIVE.sub("", names[0], count=1)
    elif _HOME.match(path):
        is_absolute = True
        names[0] = ""
    steps = tuple(name for name in names if name not in ("", "."))
    return ("", *steps) if is_absolute else steps


def _loosen_path(text: str) -> str:
    """Return a path decoded, with plain slashes, without ``file:`` and quotes, and cut at a NUL."""
    path = text.strip()
    if _HOME.match(path):
        path = _HOME.sub("~", path, count=1)
    path = decode_percent(path).partition("\0")[0]
    if path[:5].casefold() == "file:":
        path = "/" + path[5:].lstrip("/")
    path = unicodedata.normalize("NFKC", path).replace("\\", "/").replace("\u2215", "/")
    return path.strip("\"'` \t\r\n")


def _loosen_name(name: str) -> str:
    """Return one name in its loose form: ``Notes.TXT. :stream`` -> ``notes.txt``."""
    plain = fold(name)
    if plain in (".", ".."):
        return plain
    head = plain if _DRIVE.fullmatch(plain) else plain.partition(":")[0]
    return (head or plain).strip(" ").rstrip(". ") or "."


def _join_steps(steps: Steps) -> str:
    if steps != ("",):
        return "/".join(steps)
    return "/"


def _has_other_expansions(found: str, wanted: WantedText) -> bool:
    """Return whether a path that fits the rule letter for letter may be expanded to one that does not.

    For that it has wildcards, and also ``..``, as in ``a/{b,..}/c``, or the pattern has ``?`` or ``[``. For
    example ``a?`` fits the text ``a*``, which may be expanded to ``abc``.
    """
    if not (_WILD.search(found) or _BRACED.search(found)):
        return False
    if ".." in found:
        return True
    return wanted.is_pattern and re.search(r"[?\[]", wanted.text) is not None


def _may_expand_to(found: Steps, wanted_steps: Steps, wanted: WantedText) -> bool:
    """Return whether a program may expand a path to what a rule names: it has wildcards or a short name.

    Both are compared as patterns of * and ?: the path and, since a rule may have a pattern, the rule's text.
    """
    pattern = _to_wildcards(_join_steps(found))
    if not _WILD.search(pattern):
        return False
    if len(pattern) > _MAX_WILD_CHARS:
        return True
    if wanted.is_pattern:
        wanted_steps = tuple(_CLASS.sub("?", name) for name in wanted_steps)  # "[a-z]" fits one character
    placed = _place_in_one_folder(tuple(pattern.split("/")), wanted_steps)
    return any(
        _may_both_fit(_join_steps(placed_found), _join_steps(placed_wanted))
        for placed_found, placed_wanted in placed
    )


def _to_wildcards(path: str) -> str:
    """Return a path with * in place of everything that a program may expand, as ``a/*`` for ``a/{b,c}``.

    Programs differ in what they expand, so * stands for more than each of them makes of it.
    """
    plain = _EXTENDED.sub("*", path)
    while _BRACED.search(plain):
        plain = _BRACED.sub("*", plain)
    plain = _SHORT_NAME.sub(r"\1*\2*", _CLASS.sub("*", plain))
    return _ANY_FOLDERS.sub("*", re.sub(r"[{}]", "*", plain))


def _may_both_fit(one: str, other: str) -> bool:
    """Return whether a text exists that fits both patterns, of * and ?.

    For example ``a*`` and ``*b``: ``ab`` fits both.

    The patterns are read together, as two automata. After each character of ``one``, ``reached`` has the
    positions in ``other`` up to which some text fits both beginnings. A position is a bit of a number, since
    sets would take too long for long paths.
    """
    other = re.sub(r"\*+", "*", other)
    stars = _mark_positions(other, "*")
    all_positions = (1 << (len(other) + 1)) - 1  # the last position is behind the end
    reached = _add_behind_stars(1, stars)  # at the beginning
    for character in one:
        if character == "*":  # it fits any number of characters
            reached = _add_all_above(reached, all_positions)
            continue
        if character == "?":
            matching = (all_positions >> 1) & ~stars  # all but stars and the position behind the end
        else:
            matching = _mark_positions(other, f"?{character}")
        moved = ((reached & matching) << 1) | (reached & stars)  # a star takes the character and stays
        reached = _add_behind_stars(moved, stars)
    has_reached_end = (reached >> len(other)) & 1
    return bool(has_reached_end)


def _add_behind_stars(positions: int, stars: int) -> int:
    """Return the positions, with the next one for each that is at a star: a star also fits no character."""
    return positions | ((positions & stars) << 1)


def _add_all_above(positions: int, all_positions: int) -> int:
    """Return all positions from the lowest of these to the end."""
    lowest = positions & -positions
    return all_positions & ~(lowest - 1)


def _mark_positions(text: str, characters: str) -> int:
    """Return a number whose bits are the positions of these characters."""
    return sum(1 << position for position, character in enumerate(text) if character in characters)


def _is_near(found: Steps, wanted_steps: Steps, wanted: WantedText, kind: Referent) -> bool:
    """Return whether a path may reach what a rule names, if a relative path begins at some folder.

    It may be what the rule names, lie below that, or be a folder above it of which the call reaches all.
    """
    if kind is not Referent.PATH and _is_absolute(found) and not _is_absolute(wanted_steps):
        has_ending = "." in found[-1][1:]  # "a.txt", but not ".config"
        if kind is Referent.FOLDER or not has_ending:
            return True  # it may be above the folder at which the rule's path begins
    for placed_found, placed_wanted in _place_in_one_folder(found, wanted_steps):
        if wanted.fits(_join_steps(placed_found), _join_steps(placed_wanted)):
            return True
        if _is_below(placed_found, placed_wanted, wanted):
            return True
        if _is_above(placed_found, placed_wanted, wanted, kind):
            return True
    return False


def _place_in_one_folder(found: Steps, wanted_steps: Steps) -> Iterator[tuple[Steps, Steps]]:
    """Yield both paths from each folder at which both may begin.

    If one path is absolute and the other relative, the relative one may begin at each folder of the other:
    ``/srv/a`` and ``b`` are yielded as ``srv/a`` and ``b``, then as ``a`` and ``b``.
    """
    if _is_absolute(found) == _is_absolute(wanted_steps):
        yield found, wanted_steps
    elif found == ("",):  # "/" alone has no folders
        yield (), wanted_steps
    elif _is_absolute(found):
        yield from ((found[start:], wanted_steps) for start in range(1, len(found)))
    else:
        yield from ((found, wanted_steps[start:]) for start in range(1, len(wanted_steps)))


def _is_absolute(steps: Steps) -> bool:
    return steps[:1] == ("",)


def _list_parents(steps: Steps) -> list[Steps]:
    """Return the folders above a path, the highest first."""
    return [steps[:count] for count in range(1, len(steps))]


def _is_below(found: Steps, wanted_steps: Steps, wanted: WantedText) -> bool:
    """Return whether a folder above the path is what the rule names."""
    if not wanted_steps:
        return False
    return any(wanted.fits(_join_steps(parent), _join_steps(wanted_steps)) for parent in _list_parents(found))


def _is_above(found: Steps, wanted_steps: Steps, wanted: WantedText, kind: Referent) -> bool:
    """Return whether a call reaches what a rule names, since its path is a folder above that.

    If a rule names all that is in a folder, as in ``infra/*``, a call on the folder itself counts, too.
    """
    ends_with_stars = len(wanted_steps) > 1 and set(wanted_steps[-1]) == {"*"}
    if wanted.is_pattern and ends_with_stars:
        folder = wanted_steps[:-1]
        if wanted.fits(_join_steps(found), _join_steps(folder)):
            return True
    if kind is Referent.PATH:
        return False
    if not found:
        return True  # an empty path is the workspace, which is above everything
    parents = _list_parents(wanted_steps)
    if wanted.is_pattern and kind is Referent.TREE:
        # a parent of wildcards alone, as in ``**/*.py``, does not count, since every path fits it. Such a
        # rule names files wherever they are, so it still holds after their folder was moved
        parents = [parent for parent in parents if set(_join_steps(parent)) - set("*/")]
    if any(wanted.fits(_join_steps(found), _join_steps(parent)) for parent in parents):
        return True
    if kind is Referent.TREE:
        return False  # it may be a file
    # a pattern that begins with a wildcard may fit something in any folder
    return wanted.is_pattern and bool(wanted_steps) and _WILD.search(wanted_steps[0]) is not None

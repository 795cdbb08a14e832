"""Prefixes for *Approve similar*: the first words by which commands are alike, and what may follow.

Only for commands in the table of ``known.py``, and only while everything in them is in that table. Paths stay
in the workspace, below what was seen, and go through no link. What is in doubt has no such words, so it asks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bot.domain.similarity import NO_BEGINNING, Beginning
from bot.tools.builtin.shell.harm import harm
from bot.tools.builtin.shell.known import (
    COMMANDS,
    FOLDER,
    VALUES,
    Follows,
    KnownCommand,
    Option,
    read_options,
)

FORM = "command"
"""The first of the words. It tells these from words of an older reach, after which anything might follow."""

_END, _BELOW, _NO_PATH = "…", "below", "no path"
_MAX_PATHS = 50
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_PASSED_OVER = frozenset({
    "node_modules", "site-packages", "vendor", "third_party", "venv", "env", "build", "dist", "testdata",
    "CVS", "_darcs",
})  # fmt: skip
"""Folders that test runners and linters pass over until they are named."""
_TEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py", re.ASCII)
_TEST_MODULE = re.compile(r"test_\w+", re.ASCII)
_TEST_NAMES = re.compile(r"(::[A-Za-z_]\w*)+(\[[A-Za-z0-9_.,+ -]*\])?", re.ASCII)
_NAMES = re.compile(VALUES["NAMES"], re.ASCII)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a known command: plain words, and options that stay as they were."""

    plain: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A path as its parts. ``settings`` is the nearest folder on it that has settings of its own."""

    parts: tuple[str, ...]
    is_file: bool
    settings: str

    @property
    def scope(self) -> tuple[str, ...]:
        """The folder that a grant is limited to; a file at the top of the workspace is its own."""
        if self.is_file and len(self.parts) > 1:
            return self.parts[:-1]
        return self.parts


def beginning(argv: Sequence[str], folder: Path) -> Beginning:
    """Return the words of a command, and how many of them a grant fixes; `folder` is where it would run."""
    known = _find_known_command(argv)
    if known is None or not all(map(str.isprintable, argv)) or harm(argv, fed=False):
        return NO_BEGINNING
    rest = argv[len(known.words.split()) :]
    if known.targets == FOLDER and "".join(rest[:1]).startswith("-"):
        return NO_BEGINNING  # cmake would take it for the folder
    arguments = _read_arguments(known, rest)
    if arguments is None or not _is_in_place(argv[0], folder):
        return NO_BEGINNING
    plain = arguments.plain
    if known.follows in (Follows.NOTHING, Follows.NAME):
        if _is_known(known, plain, folder):
            return _fix(known, arguments)
        return NO_BEGINNING
    if not plain:
        return _fix(known, arguments, (_NO_PATH,))
    return _fix_below(known, arguments, [_read_place(known, word, folder) for word in plain[:_MAX_PATHS]])


def _find_known_command(argv: Sequence[str]) -> KnownCommand | None:
    given = list(argv)
    found = [known for known in COMMANDS if given[: len(known.words.split())] == known.words.split()]
    return max(found, key=lambda known: len(known.words.split()), default=None)


@cache
def _options(known: KnownCommand) -> tuple[Option, ...]:
    return read_options(known.options)


def _read_arguments(known: KnownCommand, words: Sequence[str]) -> _Arguments | None:
    """Return the words after those of a known command; None where one of them is not known to follow."""
    plain: list[str] = []
    kept: set[str] = set()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            plain.append(word)
        elif word in known.kept.split():
            kept.add(word)
        else:
            option = _find_option(known, word, rest[0] if rest else "")
            if option is None:
                return None
            if option.value:
                rest.pop(0)
    return _Arguments(tuple(plain), tuple(sorted(kept)))


def _find_option(known: KnownCommand, word: str, following: str) -> Option | None:
    for option in _options(known):
        if option.word.fullmatch(word) and (option.value is None or option.value.fullmatch(following)):
            return option
    return None


def _is_known(known: KnownCommand, plain: Sequence[str], folder: Path) -> bool:
    """Tell whether the plain words are targets as the command has them, or the name of one test."""
    if known.follows is Follows.NAME:
        return len(plain) <= 1 and all(map(_NAMES.fullmatch, plain))
    if not known.least_targets <= len(plain) <= known.most_targets:
        return False
    if not all(re.fullmatch(known.targets, word, re.ASCII) for word in plain):
        return False
    return known.targets != FOLDER or all(_is_in_place(f"./{word}", folder) for word in plain)


def _is_in_place(word: str, folder: Path) -> bool:
    """Tell if a program is found by name, or a path is in the workspace with no link on its way."""
    if "/" not in word:
        return True
    path = folder / word.removeprefix("./")
    return path.exists() and path.resolve() == path


def _read_place(known: KnownCommand, word: str, folder: Path) -> _Place | None:
    """Return a path that may follow; None for others, and where it leads outside or through a link."""
    path = word
    if known.follows is Follows.MODULES:
        return _read_module(word, folder)
    if known.follows is Follows.TESTS and "::" in word:
        path, _, names = word.partition("::")
        if not _TEST_NAMES.fullmatch(f"::{names}") or not path.endswith(".py"):
            return None
    if known.follows is Follows.PACKAGES:
        if path != "." and not path.startswith("./"):
            return None  # the name of a package of anyone's
        if "/_" in path:
            return None  # which go passes over until it is named
        path = path.removesuffix("...")
    plain = path.removeprefix("./").removesuffix("/")
    parts = tuple(plain.split("/")) if plain not in ("", ".") else ()
    if not path or not all(map(_PART.fullmatch, parts)) or _PASSED_OVER & set(parts):
        return None
    found = folder.joinpath(*parts)
    if found.resolve() != found:
        return None
    is_file = found.is_file()
    if known.follows is Follows.TESTS and not (
        found.is_dir() or (is_file and _TEST_FILE.fullmatch(parts[-1]))
    ):
        return None
    if known.follows is Follows.PACKAGES and not found.is_dir():
        return None
    return _Place(parts, is_file, _nearest_settings(known, parts, folder))


def _read_module(word: str, folder: Path) -> _Place | None:
    """Return the place of a test by its dotted name, whose module is a file of the workspace."""
    if not _NAMES.fullmatch(word) or ":" in word:
        return None
    parts = tuple(word.split("."))
    module = next((at for at, part in enumerate(parts) if _TEST_MODULE.fullmatch(part)), None)
    if module is None or _PASSED_OVER & set(parts):
        return None
    found = folder.joinpath(*parts[:module], f"{parts[module]}.py")
    if not found.is_file() or found.resolve() != found:
        return None
    return _Place(parts[: module + 1], is_file=True, settings="")


def _nearest_settings(known: KnownCommand, parts: Sequence[str], folder: Path) -> str:
    """Return the deepest folder on a path, below the workspace, that has a file of settings in it."""
    for depth in range(len(parts), 0, -1):
        here = folder.joinpath(*parts[:depth])
        if any((here / name).exists() for name in known.settings):
            return "/".join(parts[:depth])
    return ""


def _fix_below(known: KnownCommand, arguments: _Arguments, places: Sequence[_Place | None]) -> Beginning:
    """Return the words of a command with paths: fixed is the folder of all, where one of them is that."""
    found = [place for place in places if place is not None]
    settings = {place.settings for place in found}
    if len(found) != len(arguments.plain) or len(settings) != 1:
        return NO_BEGINNING
    shared = _find_shared_parts([place.parts for place in found])
    widest = min(found, key=lambda place: len(place.scope))
    scope = widest.scope
    named = "/".join(scope)
    if scope != widest.parts or not widest.is_file:
        named = f"{named}/" if scope else "the workspace"
    made = _fix(known, arguments, (_BELOW, settings.pop(), *shared), named)
    if shared[: len(scope)] != scope:
        return made._replace(fixed=0)  # several folders, and none of them was seen to hold the others
    return made._replace(fixed=len(made.words) - len(shared) + len(scope))


def _find_shared_parts(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the parts that all paths begin with."""
    first = paths[0]
    depth = 0
    while all(depth < len(path) and path[depth] == first[depth] for path in paths):
        depth += 1
    return first[:depth]


def _fix(
    known: KnownCommand, arguments: _Arguments, tail: tuple[str, ...] = (), below: str = ""
) -> Beginning:
    """Return the words of a command, all of them fixed, and what may follow, in words."""
    seen = [*known.words.split(), *arguments.kept]
    options = f"options such as {', '.join(known.shown_options)}"
    follows = options
    if known.follows is Follows.NOTHING:
        seen += arguments.plain
    elif known.follows is Follows.NAME:
        follows = f"{known.follows} and {options}"
    elif below:
        follows = f"{known.follows.partition(',')[0]} in {below} and {options}"
    words = (FORM, *seen, _END, *tail)
    return Beginning(words, len(words), f"“{' '.join(seen)}”, which may be followed by {follows}")

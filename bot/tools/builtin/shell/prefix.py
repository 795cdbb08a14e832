"""Prefixes of commands for *Approve similar*: the words that similar commands begin with.

When people approve a command, a *grant* may let similar ones run unasked. `read_prefix` turns a command into
its prefix. A prefix (a `Beginning`) has words, and the number of its first words that a grant fixes. The
grant covers each later command whose prefix begins with these fixed words. In these two examples a grant
fixes all words:

- ``make -j4 test`` has the prefix ``command make test …``. Options such as ``-j4`` are not a part of it.
- ``pytest -q tests/web`` has the prefix ``command pytest … below "" tests web``. The prefix of
  ``pytest tests/web/api`` begins with the same words, so the grant covers paths in ``tests/web``. The ``""``
  is the folder whose settings hold there (for pytest a ``pytest.ini``): here the workspace itself.

A prefix is only read from a command of the table in ``known_commands.py``, with options and words that the
table allows. The paths of a covered command are in the workspace, at or below the approved path, and go
through no link. In case of doubt there is no prefix, so the next command asks again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bot.domain.similarity import NO_BEGINNING, Beginning
from bot.tools.builtin.shell.harm import find_harm
from bot.tools.builtin.shell.known_commands import (
    COMMANDS,
    FOLDER,
    VALUES,
    Follows,
    KnownCommand,
    Option,
    read_options,
)

PREFIX_VERSION = "command"
"""The first word of each prefix.

Prefixes of an older form, which let anything follow, begin with another word, so their grants cover nothing
now.
"""

_END = "…"  # follows the words of the command in a prefix
_BELOW = "below"  # follows `_END` if the command has paths; then the settings' folder and the path follow
_NO_PATH = "no path"  # follows `_END` if the command may have paths, but has none
_MAX_PATHS = 50
_PATH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", re.ASCII)
_SKIPPED_FOLDERS = frozenset({
    "node_modules", "site-packages", "vendor", "third_party", "venv", "env", "build", "dist", "testdata",
    "CVS", "_darcs",
})  # fmt: skip
"""Folders that test runners and linters skip unless they are named, so naming one runs other code."""
_TEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py", re.ASCII)
_TEST_MODULE = re.compile(r"test_\w+", re.ASCII)
_TEST_NAMES = re.compile(r"(::[A-Za-z_]\w*)+(\[[A-Za-z0-9_.,+ -]*\])?", re.ASCII)  # "::TestIt::test_a[1]"
_NAMES = re.compile(VALUES["NAMES"], re.ASCII)


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a known command that count for its prefix."""

    plain: tuple[str, ...]  # the words that are no options, such as paths or targets
    fixed_options: tuple[str, ...]  # options that change what the command does, so a grant fixes them


@dataclass(frozen=True, slots=True)
class _NamedPath:
    """A path in the workspace that a command names."""

    parts: tuple[str, ...]  # the names on the path; empty for the workspace itself
    is_file: bool
    settings: str  # the folder whose settings hold there: see `_find_nearest_settings`

    @property
    def scope(self) -> tuple[str, ...]:
        """The path to which a grant is limited: a file's folder, or the file itself if it is in no folder."""
        if self.is_file and len(self.parts) > 1:
            return self.parts[:-1]
        return self.parts

    @property
    def scope_text(self) -> str:
        """The scope as a card names it."""
        path = "/".join(self.scope)
        if not path:
            return "the workspace"
        is_folder = not self.is_file or self.scope != self.parts
        return f"{path}/" if is_folder else path


def read_prefix(argv: Sequence[str], folder: Path) -> Beginning:
    """Return the prefix of a command, and how many of its words a grant fixes.

    ``argv``: the program and its arguments. ``folder``: the workspace, where the command would run.
    """
    known = _find_known_command(argv)
    if known is None or not all(map(str.isprintable, argv)) or find_harm(argv, reads_pipe=False):
        return NO_BEGINNING
    arguments = _read_arguments(known, argv[len(known.words.split()) :])
    if arguments is None or not _is_in_workspace(argv[0], folder):
        return NO_BEGINNING
    if known.follows in (Follows.NOTHING, Follows.NAME):  # the command takes no paths
        if _may_have_words(known, arguments.plain, folder):
            return _make_prefix_without_paths(known, arguments)
        return NO_BEGINNING
    if not arguments.plain:  # a grant for `pytest` does not cover `pytest tests`
        return _make_prefix_without_paths(known, arguments, (_NO_PATH,))
    return _make_prefix_with_paths(known, arguments, folder)


def _find_known_command(argv: Sequence[str]) -> KnownCommand | None:
    """Return the known command that ``argv`` begins with; the longest of several."""
    longest: KnownCommand | None = None
    longest_count = 0
    for known in COMMANDS:
        words = known.words.split()
        if list(argv[: len(words)]) == words and len(words) > longest_count:
            longest = known
            longest_count = len(words)
    return longest


def _read_arguments(known: KnownCommand, words: Sequence[str]) -> _Arguments | None:
    """Return the arguments of a command; None if an argument is not known to follow the command."""
    if known.targets == FOLDER and words and words[0].startswith("-"):
        return None  # cmake takes the first word for the folder, even if it begins with a dash
    plain: list[str] = []
    fixed_options: set[str] = set()
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if not word.startswith("-"):
            plain.append(word)
        elif word in known.fixed_options.split():
            fixed_options.add(word)
        else:
            next_word = remaining[0] if remaining else ""
            option = _find_option(known, word, next_word)
            if option is None:
                return None
            if option.value:
                remaining.pop(0)
    return _Arguments(tuple(plain), tuple(sorted(fixed_options)))


def _find_option(known: KnownCommand, word: str, next_word: str) -> Option | None:
    for option in _list_options(known):
        has_value = option.value is None or option.value.fullmatch(next_word)
        if option.word.fullmatch(word) and has_value:
            return option
    return None


@cache
def _list_options(known: KnownCommand) -> tuple[Option, ...]:
    return read_options(known.options)


def _may_have_words(known: KnownCommand, plain: Sequence[str], folder: Path) -> bool:
    """Return whether a command that takes no paths may have these plain words: targets, or a test's name."""
    if known.follows is Follows.NAME:
        return len(plain) <= 1 and all(map(_NAMES.fullmatch, plain))
    if not known.min_targets <= len(plain) <= known.max_targets:
        return False
    if not all(re.fullmatch(known.targets, word, re.ASCII) for word in plain):
        return False
    return known.targets != FOLDER or all(_is_in_workspace(f"./{word}", folder) for word in plain)


def _is_in_workspace(word: str, folder: Path) -> bool:
    """Return whether a path is in the workspace, with no link on its way; True for a word without a slash."""
    if "/" not in word:
        return True
    path = folder / word.removeprefix("./")
    return path.exists() and path.resolve() == path


def _make_prefix_without_paths(
    known: KnownCommand, arguments: _Arguments, tail: tuple[str, ...] = ()
) -> Beginning:
    """Return the prefix of a command without paths, of which a grant fixes all words.

    ``tail``: the words after `_END`.
    """
    command_words = [*known.words.split(), *arguments.fixed_options]
    follows = _name_options(known)
    if known.follows is Follows.NOTHING:
        command_words += arguments.plain
    elif known.follows is Follows.NAME:
        follows = f"{known.follows} and {follows}"
    words = (PREFIX_VERSION, *command_words, _END, *tail)
    return Beginning(words, len(words), _describe(command_words, follows))


def _make_prefix_with_paths(known: KnownCommand, arguments: _Arguments, folder: Path) -> Beginning:
    """Return the prefix of a command with paths.

    A grant fixes the words up to the widest scope, the one nearest to the top of the workspace. If a path is
    not in that scope, the prefix has no fixed words, so no grant can be given.
    """
    if len(arguments.plain) > _MAX_PATHS:
        return NO_BEGINNING
    named_paths: list[_NamedPath] = []
    for word in arguments.plain:
        named_path = _read_named_path(known, word, folder)
        if named_path is None:
            return NO_BEGINNING
        named_paths.append(named_path)
    settings = named_paths[0].settings
    if any(named_path.settings != settings for named_path in named_paths):
        return NO_BEGINNING
    shared = _find_shared_parts([named_path.parts for named_path in named_paths])
    widest = min(named_paths, key=lambda named_path: len(named_path.scope))
    command_words = [*known.words.split(), *arguments.fixed_options]
    before_path = (PREFIX_VERSION, *command_words, _END, _BELOW, settings)
    fixed_count = 0
    if shared[: len(widest.scope)] == widest.scope:
        fixed_count = len(before_path) + len(widest.scope)
    kinds_of_words = known.follows.partition(",")[0]  # without the example
    follows = f"{kinds_of_words} in {widest.scope_text} and {_name_options(known)}"
    return Beginning((*before_path, *shared), fixed_count, _describe(command_words, follows))


def _name_options(known: KnownCommand) -> str:
    return f"options such as {', '.join(known.shown_options)}"


def _describe(command_words: Sequence[str], follows: str) -> str:
    return f"“{' '.join(command_words)}”, which may be followed by {follows}"


def _find_shared_parts(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the parts that all paths begin with."""
    first = paths[0]
    depth = 0
    while all(depth < len(path) and path[depth] == first[depth] for path in paths):
        depth += 1
    return first[:depth]


def _read_named_path(known: KnownCommand, word: str, folder: Path) -> _NamedPath | None:
    """Return the path that a word names.

    None if such a word may not follow the command, or if it leads outside or through a link.
    """
    if known.follows is Follows.MODULES:
        return _read_module(word, folder)
    text = _find_path(known.follows, word)
    if not text:
        return None
    parts: tuple[str, ...] = ()  # the workspace itself
    bare_text = text.removeprefix("./").removesuffix("/")
    if bare_text not in ("", "."):
        parts = tuple(bare_text.split("/"))
    if not all(map(_PATH_PART.fullmatch, parts)) or not _SKIPPED_FOLDERS.isdisjoint(parts):
        return None
    path = folder.joinpath(*parts)
    if path.resolve() != path or not _may_name(known.follows, path):
        return None
    return _NamedPath(parts, path.is_file(), _find_nearest_settings(known, parts, folder))


def _find_path(follows: Follows, word: str) -> str | None:
    """Return the path in a word, without the name of a test or the ``...`` of Go; None without a path."""
    if follows is Follows.TESTS and "::" in word:
        path, _, names = word.partition("::")
        is_test = path.endswith(".py") and _TEST_NAMES.fullmatch(f"::{names}")
        return path if is_test else None
    if follows is Follows.PACKAGES:
        if word != "." and not word.startswith("./"):
            return None  # a package by its name, whose code may be from elsewhere
        if "/_" in word:
            return None  # go skips such a folder unless it is named
        return word.removesuffix("...")
    return word


def _may_name(follows: Follows, path: Path) -> bool:
    """Return whether a command may name this path: a folder, or for tests also a test file."""
    if follows is Follows.PACKAGES:
        return path.is_dir()
    if follows is Follows.TESTS:
        is_test_file = path.is_file() and _TEST_FILE.fullmatch(path.name) is not None
        return is_test_file or path.is_dir()
    return True


def _read_module(word: str, folder: Path) -> _NamedPath | None:
    """Return the path of a test's module, a file of the workspace, by the test's dotted name."""
    if not _NAMES.fullmatch(word) or ":" in word:
        return None
    parts = tuple(word.split("."))
    if not _SKIPPED_FOLDERS.isdisjoint(parts):
        return None
    for index, part in enumerate(parts):
        if not _TEST_MODULE.fullmatch(part):
            continue  # a package, which is a folder
        file = folder.joinpath(*parts[:index], f"{part}.py")
        if not file.is_file() or file.resolve() != file:
            return None
        return _NamedPath(parts[: index + 1], is_file=True, settings="")  # unittest reads no settings
    return None


def _find_nearest_settings(known: KnownCommand, parts: Sequence[str], folder: Path) -> str:
    """Return the deepest folder on a path that has a file of settings for the command, such as ``go.mod``.

    Empty if no folder below the workspace has one: then the workspace's own settings hold.
    """
    for depth in range(len(parts), 0, -1):
        path = folder.joinpath(*parts[:depth])
        if any((path / name).exists() for name in known.settings):
            return "/".join(parts[:depth])
    return ""

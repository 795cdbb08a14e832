"""By which first words commands are alike, for *Approve similar*: the program and its subcommand.

Only for commands whose first words say what runs, whatever follows them: no shell, nothing that runs other
programs, no code on the line, nothing that may not be undone. What is in doubt has no such words, so it asks.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from bot.domain.similarity import NO_BEGINNING, Beginning
from bot.tools.builtin.shell.harm import harm, program_name, runs_code

_SUBCOMMAND = re.compile(r"[A-Za-z][A-Za-z0-9_:.-]*")
_CODE = re.compile(  # words that may carry code, settings that name programs, or variables that do
    r"-[ceE].*|--?(eval|exec|tool-?exec|command|config|init|require|import|rcfile|script-shell|shell).*"
    r"|[A-Za-z_][A-Za-z0-9_]*=.*|.*[$`\n].*",
    re.DOTALL,
)
_PROGRAMS = frozenset({  # whose first argument says what they do
    "git", "npm", "pnpm", "yarn", "cargo", "go", "make", "just", "tox", "nox", "mvn", "gradle", "dotnet",
    "cmake", "ctest", "bazel", "pytest", "ruff", "mypy", "black", "eslint", "tsc",
})  # fmt: skip
_REACHES = frozenset({
    "install", "i", "add", "get", "fetch", "publish", "push", "pull", "clone", "remote", "submodule", "login",
    "config", "download", "upload", "deploy", "release", "ci", "update", "upgrade", "create", "init", "new",
})  # fmt: skip
"""Subcommands that bring in code, or send something, by what follows them."""
_RUNNERS = frozenset({"run", "exec", "x", "dlx", "tool", "script", "start"})
"""Subcommands that run what the next word names."""
_NAMED_SCRIPTS = frozenset({"npm", "pnpm", "yarn"})  # whose scripts are named in the project
_MODULES = frozenset({"python", "pypy"})
_SCRIPTS = _MODULES | {"node", "nodejs", "ruby", "perl", "php"}
_CODE_MODULES = frozenset({"code", "timeit", "pdb", "profile", "cProfile", "trace", "runpy", "pip"})


def beginning(argv: Sequence[str], folder: Path) -> Beginning:
    """The words of a command, and how many of them say what runs; `folder` is where it would."""
    words = list(argv)
    if len(words) < 2 or harm(words, fed=False) or any(map(_CODE.fullmatch, words[1:])):  # noqa: PLR2004
        return NO_BEGINNING
    program, fixed = program_name(words[0]), 2
    if "/" in words[0]:
        words[0] = _inside(folder, words[0])
    if runs_code(argv) is None or "/" in argv[0]:
        known = program in _PROGRAMS or "/" in argv[0]
        if not known or not _SUBCOMMAND.fullmatch(words[1]) or words[1] in _REACHES:
            return NO_BEGINNING
        if words[1] in _RUNNERS:
            fixed = 3 if program in _NAMED_SCRIPTS and len(words) > 2 else 0  # noqa: PLR2004
    elif program in _MODULES and words[1] == "-m" and len(words) > 2:  # noqa: PLR2004
        fixed = 0 if words[2].partition(".")[0] in _CODE_MODULES else 3
    elif program in _SCRIPTS and not words[1].startswith("-"):
        words[1] = _inside(folder, words[1])
    else:
        return NO_BEGINNING
    if not fixed or not all(words[:fixed]) or words[fixed - 1].startswith("-"):
        return NO_BEGINNING
    return Beginning(tuple(words), fixed, f"beginning “{' '.join(words[:fixed])} …”, whatever follows")


def _inside(folder: Path, path: str) -> str:
    """A path as it is in the folder, links looked through; empty where it leads out of it."""
    found = (folder / path).resolve()
    return found.relative_to(folder).as_posix() if found.is_relative_to(folder) else ""

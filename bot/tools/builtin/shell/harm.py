"""Recognises *harm*: commands that lose something, reach people, or run code that Nod can't inspect.

`find_harm` returns the reason why a command is harmful, and so destructive. `find_hidden_code` returns why a
command without such harm, such as ``./build.sh``, still runs code that its words don't show. The lists of
harmful programs and words are in ``risky_programs.py``, those of harmful flags in ``risky_flags.py``.

A program that is neither there nor in ``reads.py`` counts as writing, so these lists can only raise a risk.
"""

import re
from collections.abc import Sequence

from bot.tools.builtin.shell.risky_flags import CHECKS, split_git_flags
from bot.tools.builtin.shell.risky_programs import (
    CODE_PROGRAMS,
    HARMLESS_SUBCOMMANDS,
    LANGUAGES,
    LOSING_PROGRAMS,
    REMOTE_CODE_PROGRAMS,
    SENDING_PROGRAMS,
    find_loss,
)

_VERSION_SUFFIX = re.compile(r"(-?[0-9][0-9.]*)?(\.exe)?$")  # "3.11" in python3.11, "-12" in gcc-12, ".exe"
_SYSTEM_FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")
_DEVICE_PATH = re.compile(r"/(proc|dev|sys)(/|$)")


def program_name(word: str) -> str:
    """Return the name of a program without its folder and version: ``/usr/bin/Python3.11`` → ``python``."""
    return _VERSION_SUFFIX.sub("", word.rpartition("/")[2].lower()) or word


def find_harm(words: Sequence[str], *, reads_pipe: bool) -> str | None:
    """Return why a command may lose something or can't be judged; None if it only writes.

    ``reads_pipe``: it reads the output of another command. The checks that need only the program's name come
    first, then the checks of its arguments.
    """
    program = program_name(words[0])
    names = _list_names(words[0])
    arguments = words[1:]
    if not names.isdisjoint(LOSING_PROGRAMS) or program.startswith("mkfs"):
        return f"“{program}” can lose something"
    if not names.isdisjoint(SENDING_PROGRAMS):
        return f"“{program}” sends something"
    # without a file to run, a language's program runs its input
    is_without_file = not names.isdisjoint(LANGUAGES) and not _list_operands(arguments)
    runs_input = reads_pipe and (is_without_file or program.endswith("sh"))
    if runs_input or not names.isdisjoint(CODE_PROGRAMS | REMOTE_CODE_PROGRAMS):
        return f"“{program}” runs code that Nod can't inspect"
    for word in words:
        if is_device_path(word):
            return f"{word} belongs to the machine, not to the workspace"

    check = CHECKS.get(program)
    if check:
        return check(arguments)
    harmless_subcommands = HARMLESS_SUBCOMMANDS.get(program)
    if harmless_subcommands:
        if arguments and arguments[0] in harmless_subcommands:
            return None
        return f"“{' '.join([program, *arguments[:1]])}” can lose something"
    for name in sorted(names):
        loss = find_loss(name, arguments)
        if loss:
            return loss
    return None


def find_hidden_code(words: Sequence[str]) -> str | None:
    """Return why a command runs code that its words don't show; None if it runs none.

    Only for commands in which `find_harm` found no harm.
    """
    if "/" in words[0] and not _is_in_system_folder(words[0]):
        return f"“{words[0]}” runs code that Nod can't inspect"
    program = program_name(words[0])
    if not _list_names(words[0]).isdisjoint(LANGUAGES):
        return f"“{program}” runs code that Nod can't inspect"
    if program == "git" and split_git_flags(words[1:]).is_configured:
        return "“git -c” can make git run a program"
    return None


def is_device_path(word: str) -> bool:
    """Return whether a word is a path in /dev, /proc or /sys: of a disk, or of a process with its secrets."""
    if word == "/dev/null":
        return False
    leaves_workspace = word.startswith("/") or ".." in word or "=/" in word
    path = re.sub(r"/(\./|/)+", "/", word)  # "/./" and "//" are "/"
    return leaves_workspace and _DEVICE_PATH.search(path) is not None


def _list_names(word: str) -> frozenset[str]:
    """Return the names by which lists may have a program: with its version, and without.

    They have "python" for python3.11, but also "sqlite3" and "m4", where the number is no version.
    """
    return frozenset({program_name(word), word.rpartition("/")[2].lower()})


def _is_in_system_folder(path: str) -> bool:
    return any(path.startswith(folder) and "/" not in path[len(folder) :] for folder in _SYSTEM_FOLDERS)


def _list_operands(arguments: Sequence[str]) -> list[str]:
    return [argument for argument in arguments if not argument.startswith("-")]

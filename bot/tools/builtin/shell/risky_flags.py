"""Checks of the arguments of programs whose harmful flags are listed here, such as git, tar and curl.

`find_harm` (``harm.py``) looks up the check of a program in `CHECKS`. A check returns why the arguments may
lose or send something, or run a program; None if they may not.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

_JOINED_LETTERS = re.compile(r"-([A-Za-z0-9#:]+)")  # "-xzf", "-#o"
_COMPLETE_FLAGS = ("--cookie", "--checkpoint")  # harmless, and no abbreviations of "--cookie-jar" and so on

_TAR_FLAGS = (
    # they run a program
    "-I", "--use-compress-program", "-F", "--info-script", "--new-volume-script", "--checkpoint-action",
    "--to-command", "--rmt-command", "--rsh-command",
    # they lose files, or write them outside of the folder
    "-P", "--absolute-names", "-U", "--unlink-first", "--recursive-unlink", "--remove-files", "--overwrite",
    "--delete", "--index-file", "-G", "--incremental", "-g", "--listed-incremental",
)  # fmt: skip
# an archive at another computer, which tar runs a program to reach: "host:a", "-xfhost:a", "--file=host:a"
_REMOTE_ARCHIVE = re.compile(r"(-[A-Za-z]*?f|--f[a-z]*=)?[^-/][^/]*:")
_CURL_FLAGS = (
    # they send something
    "-X", "--request", "-T", "--upload-file", "-d", "--data", "-F", "--form", "--json", "-Q", "--quote",
    "--mail-from", "--mail-rcpt", "--mail-auth",
    # they write a file
    "-o", "--output", "-O", "--remote-name", "-c", "--cookie-jar", "-D", "--dump-header", "--trace",
    "--stderr", "--libcurl", "--etag-save", "--hsts", "--alt-svc", "--remove-on-error",
    # they stand for other flags
    "-K", "--config", "--expand",
)  # fmt: skip
_CURL_OUTPUT = re.compile(r".*%output\{")  # a file that "--write-out" writes
_WGET_FLAGS = (
    # they send something, or to addresses that the words don't show
    "--method", "--body-data", "--body-file", "--post-data", "--post-file", "-r", "--recursive", "-m",
    "--mirror", "-i", "--input-file",
    # they overwrite or delete a file
    "-O", "--output-document", "-o", "--output-file", "-N", "--timestamping", "--backups", "--delete-after",
    "--save-cookies", "--hsts-file", "--rejected-log", "--warc-file",
    # they stand for other flags, or run a program
    "-e", "--execute", "--config", "--use-askpass",
)  # fmt: skip

_GIT_SUBCOMMANDS = frozenset({  # the subcommands that lose nothing without a harmful flag
    "add", "commit", "push", "pull", "fetch", "merge", "checkout", "switch", "branch", "tag", "stash",
    "revert", "cherry-pick", "rebase", "init", "clone", "mv", "remote", "apply", "am", "notes", "status",
    "log", "diff", "show", "rev-parse", "ls-files", "blame", "describe", "reflog", "shortlog", "grep",
    "ls-remote", "ls-tree", "cat-file", "rev-list", "version", "help",
})  # fmt: skip
_GIT_LONG_FLAGS = (  # harmful long flags of any subcommand
    "--force", "--mirror", "--delete", "--prune", "--hard", "--merge", "--keep", "--exec", "--upload-pack",
    "--receive-pack", "--config", "--discard-changes", "--orphan", "--ext-diff", "--open-files-in-pager",
    "--output", "--no-index", "--template", "--textconv", "--strategy", "--contents",
    "--recurse-submodules", "--abort", "--skip", "--quit",
)  # fmt: skip
_GIT_LETTER_FLAGS = {  # harmful one-letter flags, by subcommand
    "push": ("-f", "-d"),  # force, delete
    "pull": ("-f", "-s"),  # force, strategy
    "fetch": ("-f", "-p", "-P"),  # force, prune, prune tags
    "merge": ("-s",),  # strategy, which is a program
    "rebase": ("-x", "-s"),  # execute, strategy
    "branch": ("-d", "-D", "-M", "-C", "-f"),  # delete; delete, move or copy by force; force
    "tag": ("-d", "-f"),  # delete, force
    "switch": ("-f", "-C"),  # throw changes away, create by force
    "checkout": ("-f", "-B"),  # throw changes away, create by force
    "clone": ("-u", "-c"),  # upload pack (a program), configuration
    "grep": ("-O",),  # open the files in a pager
    "add": ("-f",),  # force
    "mv": ("-f",),
    "notes": ("-f",),
}
_GIT_HARMFUL_WORDS = {  # harmful words after a subcommand
    "stash": {"drop", "clear", "pop"},
    "remote": {"remove", "rm", "prune", "set-url", "add", "rename", "update"},
    "reflog": {"expire", "delete", "drop"},
    "notes": {"remove", "prune"},
}


class GitWords(NamedTuple):
    """The words of a git command after git's own flags."""

    subcommand: list[str]  # with its arguments; empty without it
    is_configured: bool  # by “-c NAME=VALUE”, which can name a program to run


def split_git_flags(arguments: Sequence[str]) -> GitWords:
    """Return the words after the harmless flags of git itself, such as ``--no-pager``, and after ``-c``."""
    remaining = list(arguments)
    is_configured = False
    while remaining:
        if remaining[0] == "-c":
            is_configured = True
            remaining = remaining[2:]
        elif remaining[0] in ("--no-pager", "-P", "--no-optional-locks"):
            remaining = remaining[1:]
        else:
            break
    return GitWords(remaining, is_configured)


def _is_flag(argument: str, flags: Sequence[str]) -> bool:
    """Tell if an argument may be one of ``flags``, in any spelling.

    For ``-o`` also ``-so``; for ``--output`` also ``--out``, ``--output=a`` and ``--output-dir``.
    """
    if argument.startswith("--"):
        name = argument.partition("=")[0]
        if name == "--" or name in _COMPLETE_FLAGS:
            return False
        return any(flag.startswith(name) or name.startswith(flag) for flag in flags)
    letters = _JOINED_LETTERS.match(argument)
    return letters is not None and any(f"-{letter}" in flags for letter in letters[1])


def _make_flag_check(
    flags: Sequence[str], reason: str, other: re.Pattern[str] | None = None
) -> Callable[[Sequence[str]], str | None]:
    """Return a check that finds the first harmful argument.

    ``reason``: why it is harmful; ``{}`` in it stands for the argument. ``other``: the beginning of further
    harmful arguments.
    """

    def check(arguments: Sequence[str]) -> str | None:
        for argument in arguments:
            if _is_flag(argument, flags) or (other and other.match(argument)):
                return reason.format(argument)
        return None

    return check


def _check_find(arguments: Sequence[str]) -> str | None:
    for argument in arguments:
        if argument.startswith(("-delete", "-exec", "-ok", "-fprint", "-fls")):
            return f"“find {argument}” changes what it finds"
    return None


def _check_tee(arguments: Sequence[str]) -> str | None:
    if "-a" in arguments or "--append" in arguments:
        return None
    return "“tee” overwrites a file"


def _check_tar(arguments: Sequence[str]) -> str | None:
    flags = list(arguments)
    if flags and not flags[0].startswith("-"):
        flags[0] = f"-{flags[0]}"  # “tar xf” is “tar -xf”
    return _check_tar_flags(flags)


def _check_git(arguments: Sequence[str]) -> str | None:
    """Return why a git command may lose something, overwrite a remote, or run a program; None if it may not.

    An unknown subcommand could be an alias, and an alias can run any program.
    """
    words = split_git_flags(arguments).subcommand
    if not words or words[0] not in _GIT_SUBCOMMANDS:
        return f"“{' '.join(['git', *words[:1]])}” can lose something, or is not known here"
    subcommand, *subcommand_arguments = words
    moves_commits = subcommand in ("push", "fetch", "pull")
    for argument in subcommand_arguments:
        if _is_flag(argument, _GIT_LONG_FLAGS):
            flag = argument.partition("=")[0]
            return f"“git {subcommand} {flag}” can lose something or run a program"
        if _is_harmful_git_argument(subcommand, argument):
            return f"“git {subcommand} {argument}” can lose something or run a program"
        if moves_commits and argument.startswith(("+", ":")):  # a refspec that forces or deletes
            return f"“git {subcommand} {argument}” overwrites or deletes what is at the end"
    if subcommand == "checkout" and subcommand_arguments[:1] != ["-b"]:
        return "“git checkout” can throw changes away. “git switch” does not"
    return None


def _is_harmful_git_argument(subcommand: str, argument: str) -> bool:
    if "::" in argument:
        return True  # a remote such as ext::COMMAND runs a program
    if argument in _GIT_HARMFUL_WORDS.get(subcommand, ()):
        return True
    return _is_flag(argument, _GIT_LETTER_FLAGS.get(subcommand, ()))


_check_tar_flags = _make_flag_check(_TAR_FLAGS, "“tar {}” can run a program or lose files", _REMOTE_ARCHIVE)
_check_recursion = _make_flag_check(("-R", "--recursive"), "it changes rights of everything below")

CHECKS: dict[str, Callable[[Sequence[str]], str | None]] = {
    "git": _check_git,
    "find": _check_find,
    "sort": _make_flag_check(
        ("-o", "--output", "--compress-program"), "“sort {}” overwrites a file or runs a program"
    ),
    "chmod": _check_recursion,
    "chown": _check_recursion,
    "chgrp": _check_recursion,
    "tee": _check_tee,
    "ln": _make_flag_check(("-f", "--force"), "“ln -f” replaces what is there"),
    "curl": _make_flag_check(_CURL_FLAGS, "“curl {}” sends or overwrites something", _CURL_OUTPUT),
    "wget": _make_flag_check(_WGET_FLAGS, "“wget {}” sends or overwrites something"),
    "tar": _check_tar,
    "bsdtar": _check_tar,
}
"""The checks, by program."""

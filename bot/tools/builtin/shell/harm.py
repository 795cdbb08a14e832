"""Recognises *harm*: commands that lose something, reach people, or run code that Nod can't inspect.

`find_harm` returns the reason why a command is harmful, and so destructive. `find_hidden_code` returns why a
command without such harm, such as ``./build.sh``, still runs code that its words don't show. The long lists
of harmful programs, words and flags are in ``risky_programs.py``.

A program that is neither here nor in ``reads.py`` counts as writing, so these lists can only raise a risk.
"""

import re
from collections.abc import Callable, Sequence

from bot.tools.builtin.shell.risky_programs import (
    HARMLESS_SUBCOMMANDS,
    LOSING_PROGRAMS,
    REMOTE_CODE_PROGRAMS,
    SAME_SUBCOMMANDS,
    SENDING_PROGRAMS,
    find_loss,
)

_RUNS_CODE = frozenset({
    # shells, and words of a shell that change what later words mean
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "eval", "exec",
    "source", ".", "command", "builtin", "coproc", "trap", "alias", "unalias", "enable", "export",
    "declare", "typeset", "local", "readonly", "set", "unset", "shopt", "hash", "bind", "mapfile",
    "readarray", "read", "let", "time", "function", "getopts", "ulimit", "umask", "complete", "compgen",
    "fc",
    # programs that run another one
    "env", "nice", "ionice", "nohup", "timeout", "stdbuf", "setsid", "setarch", "unshare", "nsenter",
    "chroot", "chrt", "taskset", "strace", "ltrace", "gdb", "lldb", "perf", "watch", "xargs", "parallel",
    "script", "expect", "unbuffer", "busybox", "toybox", "flock", "entr", "tmux", "screen",
    "dbus-run-session", "systemd-run", "runuser", "sudo", "su", "doas", "pkexec", "run-parts",
    "start-stop-daemon", "faketime", "proot", "fakeroot", "capsh", "ssh", "sshpass", "mosh", "rsh",
    "telnet", "nc", "ncat", "netcat", "socat", "rsync", "scp", "sftp", "ftp", "vi", "vim", "nvim", "view",
    "ex", "ed", "emacs", "nano", "less", "more", "man", "ld.so", "ld-linux.so", "psql", "mysql",
    "mariadb", "sqlite3", "sqlplus", "mongo", "mongosh", "redis-cli", "clickhouse-client", "duckdb",
})  # fmt: skip
_LANGUAGES = frozenset({  # programs that run code from a file or from their input
    "python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "wish",
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "osascript", "java", "jshell", "groovy", "scala",
    "rscript", "r", "julia", "guile", "ghci", "erl", "elixir", "iex", "bc", "dc", "m4", "pip", "pip3",
    "pypy", "irb", "raku", "npx", "uvx", "pipx", "bunx", "swift",
})  # fmt: skip
_VERSION_SUFFIX = re.compile(r"(-?[0-9][0-9.]*)?(\.exe)?$")  # "3.11" in python3.11, "-12" in gcc-12, ".exe"
_SYSTEM_FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")
_DEVICE_PATH = re.compile(r"/(proc|dev|sys)(/|$)")

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
_GIT_FLAG_LETTERS = {  # harmful one-letter flags, by subcommand
    "push": "fd", "branch": "dDMCf", "tag": "df", "switch": "fC", "clone": "uc", "rebase": "xs", "grep": "O",
    "pull": "fs", "fetch": "fpP", "merge": "s", "add": "f", "mv": "f", "notes": "f", "revert": "s",
    "cherry-pick": "s", "checkout": "fB",
}  # fmt: skip
_GIT_HARMFUL_WORDS = {  # harmful words after a subcommand
    "stash": {"drop", "clear", "pop"},
    "remote": {"remove", "rm", "prune", "set-url", "add", "rename", "update"},
    "reflog": {"expire", "delete", "drop"},
    "notes": {"remove", "prune"},
}


def program_name(word: str) -> str:
    """Return the name of a program without its folder and version: ``/usr/bin/Python3.11`` → ``python``."""
    return _VERSION_SUFFIX.sub("", word.rpartition("/")[2].lower()) or word


def find_harm(words: Sequence[str], *, reads_pipe: bool) -> str | None:
    """Return why a command may lose something or can't be judged; None if it only writes.

    ``reads_pipe``: it reads the output of another command. The checks that need only the program's name come
    first, then the checks of its arguments.
    """
    program = program_name(words[0])
    arguments = words[1:]
    # the lists have "python" for python3.11, but also "sqlite3" and "m4", where the number is no version
    file_name = words[0].rpartition("/")[2]
    names = {program, file_name.lower()}
    if names & LOSING_PROGRAMS or program.startswith("mkfs"):
        return f"“{program}” can lose something"
    if names & SENDING_PROGRAMS:
        return f"“{program}” sends something"
    # without a file to run, a language's program runs its input
    is_without_file = bool(names & _LANGUAGES) and not _list_operands(arguments)
    runs_input = reads_pipe and (is_without_file or program.endswith("sh"))
    if runs_input or names & (_RUNS_CODE | REMOTE_CODE_PROGRAMS):
        return f"“{program}” runs code that Nod can't inspect"
    for word in words:
        if is_device_path(word):
            return f"{word} belongs to the machine, not to the workspace"

    check = _CHECKS.get(program)
    if check:  # it knows the program's arguments, so the lists below are not asked
        return check(arguments)
    harmless_subcommands = HARMLESS_SUBCOMMANDS.get(SAME_SUBCOMMANDS.get(program, program))
    if harmless_subcommands:
        if arguments and arguments[0] in harmless_subcommands:
            return None
        return f"“{' '.join([program, *arguments[:1]])}” can lose something"
    # also by the name with its number, for the same reason as above
    return find_loss(program, arguments) or find_loss(file_name, arguments)


def find_hidden_code(words: Sequence[str]) -> str | None:
    """Return why a command runs code that its words don't show; None if it runs none.

    Only for commands in which `find_harm` found no harm.
    """
    program = program_name(words[0])
    if "/" in words[0] and not _is_in_system_folder(words[0]):
        return f"“{words[0]}” runs code that Nod can't inspect"
    if program in _LANGUAGES:
        return f"“{program}” runs code that Nod can't inspect"
    if program == "git" and len(words) > 1 and words[1] == "-c":
        return "“git -c” can make git run a program"
    return None


def is_device_path(word: str) -> bool:
    """Return whether a word is a path in /dev, /proc or /sys: of a disk, or of a process with its secrets."""
    if word == "/dev/null":
        return False
    leaves_workspace = word.startswith("/") or ".." in word or "=/" in word
    path = re.sub(r"/(\./|/)+", "/", word)  # "/./" and "//" are "/"
    return leaves_workspace and _DEVICE_PATH.search(path) is not None


def _is_in_system_folder(path: str) -> bool:
    return any(path.startswith(folder) and "/" not in path[len(folder) :] for folder in _SYSTEM_FOLDERS)


def _list_operands(arguments: Sequence[str]) -> list[str]:
    return [argument for argument in arguments if not argument.startswith("-")]


def _make_argument_check(pattern: str, reason: str) -> Callable[[Sequence[str]], str | None]:
    """Return a check of arguments: an argument whose beginning matches the pattern is harmful.

    ``reason``: why it is harmful; ``{}`` in it stands for the argument.
    """
    harmful = re.compile(pattern)

    def check(arguments: Sequence[str]) -> str | None:
        for argument in arguments:
            if harmful.match(argument):
                return reason.format(argument)
        return None

    return check


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
    remaining = list(arguments)
    while remaining and remaining[0] in ("--no-pager", "-P", "--no-optional-locks"):
        remaining.pop(0)
    while remaining and remaining[0] == "-c":
        remaining = remaining[2:]
    if not remaining or remaining[0] not in _GIT_SUBCOMMANDS:
        return f"“{' '.join(['git', *remaining[:1]])}” can lose something, or is not known here"
    subcommand, *subcommand_arguments = remaining
    moves_commits = subcommand in ("push", "fetch", "pull")
    for argument in subcommand_arguments:
        flag = argument.partition("=")[0]
        is_long_flag = flag.startswith("--") and flag != "--"
        if is_long_flag and _matches_flag(flag, _GIT_LONG_FLAGS):
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
    if not re.match(r"-[^-]", argument):  # one-letter flags, alone or joined
        return False
    harmful_letters = _GIT_FLAG_LETTERS.get(subcommand, "")
    return any(letter in harmful_letters for letter in argument[1:])


def _matches_flag(name: str, flags: Sequence[str]) -> bool:
    """Return whether a long flag begins like one of ``flags``: --force, --forc or --force-with-lease."""
    return any(flag.startswith(name) or name.startswith(flag) for flag in flags)


# Patterns of harmful arguments. Long flags are cut to abbreviations that the program accepts: "rem" is for
# --remove-files. An argument such as "host:a.tar" makes tar run a program to reach another computer.
_check_tar_flags = _make_argument_check(
    r"--(ab|ch|to-c|u|in|ne|rm|rs|rem|ov|rec|de)|-[A-Za-z]*[IFPU]|[^-/][^/]*:",
    "“tar {}” can run a program or lose files",
)
_check_recursion = _make_argument_check(r"-[a-zA-Z]*R|--rec", "it changes rights of everything below")
_check_curl = _make_argument_check(
    r"-[A-Za-z]*[XoOTKdFcDQ]|--(req|out|up|re|conf|d|fo|j|tr|std|lib|etag-s|hs|alt|cookie-|quo|mail)"
    r"|.*%output\{",
    "“curl {}” sends or overwrites something",
)
_check_wget = _make_argument_check(
    r"-[A-Za-z]*[XoOTKdFeNrm]|--(req|out|up|re|conf|d|fo|post|body|m|use-as|ex|in|sa|warc|ti|rej)",
    "“wget {}” sends or overwrites something",
)
_CHECKS: dict[str, Callable[[Sequence[str]], str | None]] = {
    "git": _check_git,
    "find": _make_argument_check(r"-(delete|exec|ok|fprint|fls)", "“find {}” changes what it finds"),
    "sort": _make_argument_check(r"-[A-Za-z]*o|--(o|com)", "“sort {}” overwrites a file or runs a program"),
    "chmod": _check_recursion,
    "chown": _check_recursion,
    "chgrp": _check_recursion,
    "tee": _check_tee,
    "ln": _make_argument_check(r"-[a-zA-Z]*f|--f", "“ln -f” replaces what is there"),
    "curl": _check_curl,
    "wget": _check_wget,
    "tar": _check_tar,
    "bsdtar": _check_tar,
}

"""Commands that lose something or reach people, and those that run code that Nod can't inspect.

A name that is not here and not on the reading list writes; so these lists only lift a command, never
lower it.
"""

import re
from collections.abc import Callable, Sequence

from bot.tools.builtin.shell.losing import (
    HARMLESS_PARTS,
    LOSES,
    PART_OF,
    RUNS_ELSEWHERE,
    SENDS,
    find_loss,
)

_RUNS = frozenset({
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
_LANGUAGES = frozenset({  # what the program does stands somewhere else: people judge whether to run it
    "python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "wish",
    "awk", "gawk", "mawk", "nawk", "sed", "gsed", "osascript", "java", "jshell", "groovy", "scala",
    "rscript", "r", "julia", "guile", "ghci", "erl", "elixir", "iex", "bc", "dc", "m4", "pip", "pip3",
    "pypy", "irb", "raku", "npx", "uvx", "pipx", "bunx", "swift",
})  # fmt: skip
_NUMBERED = re.compile(r"(-?[0-9][0-9.]*)?(\.exe)?$")
_SYSTEM_FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")

_DEVICES = re.compile(r"/(proc|dev|sys)(/|$)")
_GIT_KNOWN = frozenset({
    "add", "commit", "push", "pull", "fetch", "merge", "checkout", "switch", "branch", "tag", "stash",
    "revert", "cherry-pick", "rebase", "init", "clone", "mv", "remote", "apply", "am", "notes", "status",
    "log", "diff", "show", "rev-parse", "ls-files", "blame", "describe", "reflog", "shortlog", "grep",
    "ls-remote", "ls-tree", "cat-file", "rev-list", "version", "help",
})  # fmt: skip
_GIT_LONG = (
    "--force", "--mirror", "--delete", "--prune", "--hard", "--merge", "--keep", "--exec", "--upload-pack",
    "--receive-pack", "--config", "--discard-changes", "--orphan", "--ext-diff", "--open-files-in-pager",
    "--output", "--no-index", "--template", "--textconv", "--strategy", "--contents",
    "--recurse-submodules", "--abort", "--skip", "--quit",
)  # fmt: skip
_GIT_LETTERS = {
    "push": "fd", "branch": "dDMCf", "tag": "df", "switch": "fC", "clone": "uc", "rebase": "xs", "grep": "O",
    "pull": "fs", "fetch": "fpP", "merge": "s", "add": "f", "mv": "f", "notes": "f", "revert": "s",
    "cherry-pick": "s",
}  # fmt: skip
_GIT_WORDS = {
    "stash": {"drop", "clear", "pop"},
    "remote": {"remove", "rm", "prune", "set-url", "add", "rename", "update"},
    "reflog": {"expire", "delete", "drop"},
    "notes": {"remove", "prune"},
}


def program_name(word: str) -> str:
    """Return one name for one program: ``/usr/bin/Python3.11`` → ``python``."""
    return _NUMBERED.sub("", word.rpartition("/")[2].lower()) or word


def harm(words: Sequence[str], *, fed: bool) -> str | None:
    """Return why this command may lose something or cannot be judged; None when it only writes."""
    program, arguments = program_name(words[0]), words[1:]
    names = {program, words[0].rpartition("/")[2].lower()}  # sqlite3, m4: a number may be a part of the name
    if names & LOSES or program.startswith("mkfs"):
        return f"“{program}” can lose something"
    if names & SENDS:
        return f"“{program}” sends something"
    if names & (_RUNS | RUNS_ELSEWHERE) or (
        fed and (program.endswith("sh") or (names & _LANGUAGES and not _plain(arguments)))
    ):
        return f"“{program}” runs code that Nod can't inspect"
    device = next(filter(on_system, words), None)
    if device:
        return f"{device} belongs to the machine, not to the workspace"
    check = _CHECKS.get(program)
    if check:
        return check(arguments)
    part = HARMLESS_PARTS.get(PART_OF.get(program, program))
    if part:
        known = bool(arguments) and arguments[0] in part
        if known:
            return None
        return f"“{' '.join([program, *arguments[:1]])}” can lose something"
    return find_loss(program, arguments) or find_loss(words[0].rpartition("/")[2], arguments)


def runs_code(words: Sequence[str]) -> str | None:
    """Return why what this command does can't be told from its words, where `harm` finds nothing in them."""
    program = program_name(words[0])
    if "/" in words[0] and not _in_system(words[0]):
        return f"“{words[0]}” runs code that Nod can't inspect"
    if program in _LANGUAGES:
        return f"“{program}” runs code that Nod can't inspect"
    if program == "git" and "-c" in words[1:2]:
        return "“git -c” can make git run a program"
    return None


def on_system(word: str) -> bool:
    """Tell if a word names a device or a process: a way to disks and to secrets of other processes."""
    reaches = word.startswith("/") or ".." in word or "=/" in word
    return reaches and word != "/dev/null" and bool(_DEVICES.search(re.sub(r"/(\./|/)+", "/", word)))


def _in_system(path: str) -> bool:
    return any(path.startswith(folder) and "/" not in path[len(folder) :] for folder in _SYSTEM_FOLDERS)


def _plain(arguments: Sequence[str]) -> list[str]:
    return [each for each in arguments if not each.startswith("-")]


def _matching(pattern: str, words: str) -> Callable[[Sequence[str]], str | None]:
    """Return a check that objects to arguments matching a pattern; ``{}`` in the words is the argument."""
    harmful = re.compile(pattern)

    def check(arguments: Sequence[str]) -> str | None:
        return next((words.format(each) for each in arguments if harmful.match(each)), None)

    return check


def _tee(arguments: Sequence[str]) -> str | None:
    if "-a" in arguments or "--append" in arguments:
        return None
    return "“tee” overwrites a file"


def _tar(arguments: Sequence[str]) -> str | None:
    flags = [each if each.startswith("-") else f"-{each}" for each in arguments[:1]]  # “tar xf” is “-xf”
    return _packs([*flags, *arguments[1:]])


def _git(arguments: Sequence[str]) -> str | None:
    """Return the harm of a git command: what it loses, overwrites remotely, or runs.

    A subcommand that is not known could be an alias, which is any program.
    """
    rest = list(arguments)
    while rest[:1] and rest[0] in ("--no-pager", "-P", "--no-optional-locks"):
        rest.pop(0)
    while rest[:1] == ["-c"]:
        rest = rest[2:]
    if not rest or rest[0] not in _GIT_KNOWN:
        return f"“{' '.join(['git', *rest[:1]])}” can lose something, or is not known here"
    part, given = rest[0], rest[1:]
    for each in given:
        name = each.partition("=")[0]
        if name[:2] == "--" and name[2:] and _means(name, _GIT_LONG):
            return f"“git {part} {name}” can lose something or run a program"
        if re.match(r"-[^-]", each) and set(each[1:]) & set(_GIT_LETTERS.get(part, "")):
            return f"“git {part} {each}” can lose something or run a program"
        if each in _GIT_WORDS.get(part, ()) or "::" in each:
            return f"“git {part} {each}” can lose something or run a program"
        if part in ("push", "fetch", "pull") and each[:1] in ("+", ":"):
            return f"“git {part} {each}” overwrites or deletes what is at the end"
    if part == "checkout" and given[:1] != ["-b"]:
        return "“git checkout” can throw changes away. “git switch” does not"
    return None


def _means(name: str, known: Sequence[str]) -> bool:
    """Tell if a long flag is one of these, also longer (--force-with-lease) or abbreviated (--forc)."""
    return any(each.startswith(name) or name.startswith(each) for each in known)


_packs = _matching(
    r"--(ab|ch|to-c|u|in|ne|rm|rs|rem|ov|rec|de)|-[A-Za-z]*[IFPU]|[^-/][^/]*:",
    "“tar {}” can run a program or lose files",
)
_modes = _matching(r"-[a-zA-Z]*R|--rec", "it changes rights of everything below")
_curl = _matching(
    r"-[A-Za-z]*[XoOTKdFcDQ]|--(req|out|up|re|conf|d|fo|j|tr|std|lib|etag-s|hs|alt|cookie-|quo|mail)"
    r"|.*%output\{",
    "“curl {}” sends or overwrites something",
)
_wget = _matching(
    r"-[A-Za-z]*[XoOTKdFeNrm]|--(req|out|up|re|conf|d|fo|post|body|m|use-as|ex|in|sa|warc|ti|rej)",
    "“wget {}” sends or overwrites something",
)
_CHECKS: dict[str, Callable[[Sequence[str]], str | None]] = {
    "git": _git,
    "find": _matching(r"-(delete|exec|ok|fprint|fls)", "“find {}” changes what it finds"),
    "sort": _matching(r"-[A-Za-z]*o|--(o|com)", "“sort {}” overwrites a file or runs a program"),
    "chmod": _modes,
    "chown": _modes,
    "chgrp": _modes,
    "tee": _tee,
    "ln": _matching(r"-[a-zA-Z]*f|--f", "“ln -f” replaces what is there"),
    "curl": _curl,
    "wget": _wget,
    "tar": _tar,
    "bsdtar": _tar,
}

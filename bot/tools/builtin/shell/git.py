"""What git can lose, overwrite at the other end, or be made to run. Part of ``harm.py``.

A subcommand that is not known could be an alias, which is any program. Configuration names programs too.
"""

import re
from collections.abc import Sequence

_KNOWN = frozenset({
    "add", "commit", "push", "pull", "fetch", "merge", "checkout", "switch", "branch", "tag", "stash",
    "revert", "cherry-pick", "rebase", "init", "clone", "mv", "remote", "apply", "am", "notes", "status",
    "log", "diff", "show", "rev-parse", "ls-files", "blame", "describe", "reflog", "shortlog", "grep",
    "ls-remote", "ls-tree", "cat-file", "rev-list", "version", "help",
})  # fmt: skip
_LONG = (
    "--force", "--mirror", "--delete", "--prune", "--hard", "--merge", "--keep", "--exec", "--upload-pack",
    "--receive-pack", "--config", "--discard-changes", "--orphan", "--ext-diff", "--open-files-in-pager",
    "--output", "--no-index", "--template", "--textconv", "--strategy", "--contents",
    "--recurse-submodules",
)  # fmt: skip
_LETTERS = {
    "push": "fd", "branch": "dDMCf", "tag": "df", "switch": "fC", "clone": "uc", "rebase": "xs", "grep": "O",
    "pull": "fs", "fetch": "fpP", "merge": "s", "add": "f", "mv": "f", "notes": "f", "revert": "s",
    "cherry-pick": "s",
}  # fmt: skip
_WORDS = {
    "stash": {"drop", "clear", "pop"},
    "remote": {"remove", "rm", "prune", "set-url", "add", "rename", "update"},
    "reflog": {"expire", "delete", "drop"},
    "notes": {"remove", "prune"},
}


def harm(arguments: Sequence[str]) -> str | None:
    """Why this may lose something or run a program; None when it only writes."""
    rest = list(arguments)
    while rest[:1] and rest[0] in ("--no-pager", "-P", "--no-optional-locks"):
        rest.pop(0)
    while rest[:1] == ["-c"]:
        rest = rest[2:]
    if not rest or rest[0] not in _KNOWN:
        return f"“{' '.join(['git', *rest[:1]])}” can lose something, or is not known here"
    part, given = rest[0], rest[1:]
    for each in given:
        name = each.partition("=")[0]
        if name[:2] == "--" and name[2:] and _means(name, _LONG):
            return f"“git {part} {name}” can lose something or run a program"
        if re.match(r"-[^-]", each) and set(each[1:]) & set(_LETTERS.get(part, "")):
            return f"“git {part} {each}” can lose something or run a program"
        if each in _WORDS.get(part, ()) or "::" in each:
            return f"“git {part} {each}” can lose something or run a program"
        if part in ("push", "fetch", "pull") and each[:1] in ("+", ":"):
            return f"“git {part} {each}” overwrites or deletes what is at the end"
    if part == "checkout" and given[:1] != ["-b"]:
        return "“git checkout” can throw changes away. “git switch” does not"
    return None


def _means(name: str, known: Sequence[str]) -> bool:
    """Whether a long flag is one of these, longer than one (--force-with-lease) or cut short (--forc)."""
    return any(each.startswith(name) or name.startswith(each) for each in known)

"""Recognises commands that only read in the workspace, which run without approval.

``READERS`` lists the programs and their harmless flags; a program or flag that is not listed is an objection,
and so is an abbreviated long option. find, sed, awk, jq and git could also run programs and write files, so
`_CHECKS` has a function for each, which accepts a few simple forms. `Inside` tells if an operand is a path in
the workspace.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Inside = Callable[[str], bool]

_SED_SCRIPT = re.compile(r"[0-9]+(,([0-9]+|\$))?[pd]|\$p|/[^/\\\n]*/[pd]|s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*")
_AWK_PROGRAM = re.compile(r"\{ *print( +\$[0-9A-Z]+( *, *\$[0-9A-Z]+)*)? *\}")

# paths, joined by pipes and commas, and a few functions that do not multiply their input
_JQ_PART = (
    r"((\.|\.[A-Za-z_][A-Za-z0-9_]*|\[(-?[0-9]+|\"[^\"\\]*\")?\])\??)+"
    r"|keys|length|type|first|last|sort|unique|values|add|min|max|reverse|flatten|to_entries|map\(\.[A-Za-z0-9_]+\)"
)
_JQ_FILTER = re.compile(rf" *({_JQ_PART})( *[|,] *({_JQ_PART})){{0,9}} *")
_PROGRAM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")  # a program of the system's PATH
_FIND_TESTS = frozenset({
    "-print", "-print0", "-empty", "-not", "!", "-o", "-or", "-a", "-and", "(", ")", "-prune", "-depth",
    "-readable", "-executable", "-writable", "-xdev", "-mount", "-ls", "-quit", "-true",
})  # fmt: skip
_FIND_TESTS_WITH_VALUE = frozenset({
    "-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-maxdepth", "-mindepth", "-size", "-mtime",
    "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-regex", "-iregex", "-perm", "-user", "-group", "-printf",
})  # fmt: skip
_GIT_LOG_FLAGS = re.compile(
    r"-[0-9]{1,6}|-[pu]|-U[0-9]{1,4}|--(oneline|stat|numstat|shortstat|name-only|name-status|graph|decorate|all"
    r"|cached|staged|patch|no-patch|no-color|no-ext-diff|no-textconv|reverse|merges|no-merges|first-parent"
    r"|follow|abbrev-commit|no-renames|word-diff)"
    r"|--(max-count|since|until|after|before|author|grep|format|pretty|unified|date)=.*",
    re.DOTALL,
)
_GIT_SUBCOMMANDS = {  # by name: their flags, and the maximum of their operands
    "log": (_GIT_LOG_FLAGS, 20),
    "show": (_GIT_LOG_FLAGS, 20),
    "diff": (_GIT_LOG_FLAGS, 20),
    "status": (re.compile(r"-[sbvz]+|--(short|branch|porcelain|long|ignored)|--porcelain=v[12]"), 20),
    "rev-parse": (re.compile(r"--(short|abbrev-ref|show-toplevel|verify|is-inside-work-tree)"), 2),
    "ls-files": (re.compile(r"-[comdsz]+|--(cached|others|modified|deleted|exclude-standard)"), 20),
    "blame": (re.compile(r"-[wslf]|-L[0-9]+,[0-9+]+"), 2),
    "describe": (re.compile(r"--(tags|always|long|all|dirty)"), 1),
    "branch": (re.compile(r"-(a|r|v|vv|av|avv)|--(all|remotes|list|show-current)"), 0),
    "tag": (re.compile(r"-l|--list"), 0),
    "remote": (re.compile(r"-v"), 0),
    "reflog": (re.compile(r"(?!)"), 0),
    "shortlog": (re.compile(r"-[sne]+"), 2),
}


@dataclass(frozen=True, slots=True)
class Reader:
    """The flags and operands with which a program only reads.

    ``plain`` and ``valued``: its one-letter flags without and with a value; ``long`` and ``long_valued``: its
    long flags without and with ``=value``. The first ``texts`` operands are texts, the others paths; -1: all
    are texts. ``most``: the maximum of operands.
    """

    plain: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    texts: int = 0
    most: int = 1000
    numeric: bool = False  # also takes flags such as -5
    pattern_flag: str = ""  # the letter of the flag that replaces the first text

    def objection(self, arguments: Sequence[str], inside: Inside) -> str | None:
        """Return why the program would not only read in the workspace; None if it would."""
        operands: list[str] = []
        texts = self.texts
        remaining = iter(arguments)
        for argument in remaining:
            if argument == "--":
                operands += remaining
            elif argument.startswith("--"):
                name, _, value = argument[2:].partition("=")
                if argument[2:] not in self.long and not (value and name in self.long_valued):
                    return f"{argument} is not known to only read"
            elif argument.startswith("-") and argument != "-":
                if self.numeric and re.fullmatch(r"-[0-9]+", argument):
                    continue
                for position, letter in enumerate(argument[1:], 2):
                    if letter in self.valued:
                        texts -= letter == self.pattern_flag and texts > 0
                        if not argument[position:] and next(remaining, None) is None:
                            return f"-{letter} has no value"
                        break
                    if letter not in self.plain:
                        return f"{argument} is not known to only read"
            else:
                operands.append(argument)
        if len(operands) > self.most:
            return "it has more operands than are only read"
        paths = [] if texts < 0 else operands[texts:]
        return _find_outside(paths, inside)


_GREP = Reader(
    plain="inrvclLowxqshHEFGPazbT",
    valued="eABCm",
    long=(
        "ignore-case", "line-number", "recursive", "invert-match", "count", "files-with-matches",
        "files-without-match", "only-matching", "word-regexp", "line-regexp", "fixed-strings",
        "extended-regexp", "no-messages", "quiet", "with-filename", "no-filename",
    ),
    long_valued=("include", "exclude", "exclude-dir", "color", "context", "max-count"),
    texts=1,
    pattern_flag="e",
)  # fmt: skip
_HEAD = Reader(plain="qv", valued="nc", numeric=True, long_valued=("lines", "bytes"))

READERS: dict[str, Reader] = {
    "ls": Reader(
        plain="aAlhrtSR1dFpsinogkmxXcuU",
        long=(
            "all", "almost-all", "human-readable", "recursive", "reverse", "directory", "classify",
            "full-time",
        ),
        long_valued=("color", "sort", "time-style"),
    ),
    "cat": Reader(plain="nbsAETuv"),
    "head": _HEAD,
    "tail": _HEAD,
    "wc": Reader(plain="lwcmL", long=("lines", "words", "bytes", "chars")),
    "cut": Reader(plain="sz", valued="dfbc", long_valued=("delimiter", "fields", "characters")),
    "tr": Reader(plain="cCdst", texts=-1),
    "uniq": Reader(plain="cdiuz", valued="fsw", most=1),  # its second operand is a file to write
    "sort": Reader(plain="nrufhVbdgiMszcCm", valued="kt", long=("reverse", "unique", "numeric-sort")),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "cmp": Reader(plain="bls", most=2),
    "comm": Reader(plain="123", most=2),
    "stat": Reader(plain="t", valued="c", long_valued=("printf", "format")),
    "du": Reader(plain="shackmb", valued="d", long_valued=("max-depth",)),
    "df": Reader(plain="hkTi", most=0),
    "file": Reader(plain="bi", long=("brief", "mime", "mime-type")),
    "tree": Reader(plain="adfDhsp", valued="LPI"),
    "realpath": Reader(plain="em"),
    "readlink": Reader(plain="fem"),
    "basename": Reader(texts=-1),
    "dirname": Reader(texts=-1),
    "which": Reader(plain="a", texts=-1),
    **dict.fromkeys(("nl", "tac", "rev", "cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum"), Reader()),
    "pwd": Reader(plain="LP", most=0),
    "id": Reader(plain="ugnrG", most=0),
    "uname": Reader(plain="asnrvmpio", most=0),
    "hostname": Reader(plain="fs", most=0),  # an operand would set it
    "uptime": Reader(plain="ps", most=0),
    **dict.fromkeys(("whoami", "nproc", "true", "false"), Reader(most=0)),
}  # fmt: skip

_SED_FLAGS = Reader(plain="nErsu", valued="e", texts=1, pattern_flag="e")
_JQ_FLAGS = Reader(plain="rcMSesnRaCj", texts=1)
_RG_FLAGS = Reader(  # -z, -f, -L, --pre and --hostname-bin run programs or lead out of the workspace
    plain="iSsnNlcvwxFoHIPUuap0",
    valued="eABCmgtTjME",
    long=(
        "ignore-case", "smart-case", "case-sensitive", "line-number", "no-line-number", "no-heading",
        "heading", "files-with-matches", "files-without-match", "count", "count-matches", "word-regexp",
        "fixed-strings", "hidden", "no-ignore", "multiline", "only-matching", "invert-match", "json", "stats",
        "trim", "vimgrep", "column", "with-filename", "no-filename", "pcre2", "no-messages", "no-config",
    ),
    long_valued=(
        "glob", "iglob", "type", "type-not", "max-count", "context", "after-context", "before-context",
        "color", "sort", "sortr", "max-depth", "max-columns", "encoding", "threads",
    ),
    texts=1,
    pattern_flag="e",
)  # fmt: skip
_RG_FILES_FLAGS = replace(_RG_FLAGS, long=(*_RG_FLAGS.long, "files"), texts=0)


def reading_objection(words: Sequence[str], inside: Inside) -> str | None:
    """Return why a command would not only read in the workspace; None if it would."""
    program, arguments = words[0], words[1:]
    if list(arguments) == ["--version"] and _PROGRAM_NAME.fullmatch(program):
        return None
    if program in READERS:
        return READERS[program].objection(arguments, inside)
    if program in _CHECKS:
        return _CHECKS[program](arguments, inside)
    return "it is not on the list of what only reads"


def _find_outside(paths: Sequence[str], inside: Inside) -> str | None:
    if "-" in paths:
        return "“-” is what another program gives it, and no file"
    for path in paths:
        if not inside(path):
            return f"“{path}” is outside the workspace"
    return None


def _find_unknown(arguments: Sequence[str], is_known: Callable[[str], object]) -> str | None:
    for argument in arguments:
        if not is_known(argument):
            return f"{argument} is not known to only read"
    return None


def _check_date(arguments: Sequence[str], _: Inside) -> str | None:
    return _find_unknown(arguments, lambda argument: argument in ("-u", "-R") or argument[:1] == "+")


def _check_printf(arguments: Sequence[str], _: Inside) -> str | None:
    if arguments[:1] and arguments[0].startswith("-"):
        return "it has a flag"
    return None


def _check_find(arguments: Sequence[str], inside: Inside) -> str | None:
    remaining = list(arguments)
    while remaining and not remaining[0].startswith("-") and remaining[0] not in ("!", "("):
        outside = _find_outside([remaining.pop(0)], inside)
        if outside:
            return outside
    while remaining:
        word = remaining.pop(0)
        if word in _FIND_TESTS_WITH_VALUE and remaining:
            remaining.pop(0)
        elif word not in _FIND_TESTS:
            return f"{word} is not known to only read"
    return None


def _check_rg(arguments: Sequence[str], inside: Inside) -> str | None:
    flags = _RG_FILES_FLAGS if "--files" in arguments else _RG_FLAGS
    return flags.objection(arguments, inside)


def _check_sed(arguments: Sequence[str], inside: Inside) -> str | None:
    if any(argument == "--" or re.match(r"-[a-zA-Z]*e.|-[a-zA-Z]+e", argument) for argument in arguments):
        return "its flags are not plain"
    scripts = [script for flag, script in pairwise(arguments) if flag == "-e"]
    if not scripts:
        scripts = [argument for argument in arguments if not argument.startswith("-")][:1]
    if not scripts or not all(map(_SED_SCRIPT.fullmatch, scripts)):
        return "the script is not plain"
    return _SED_FLAGS.objection(arguments, inside)


def _check_awk(arguments: Sequence[str], inside: Inside) -> str | None:
    remaining = list(arguments)
    if remaining and re.fullmatch(r"-F.", remaining[0]):
        remaining.pop(0)
    if not remaining or not _AWK_PROGRAM.fullmatch(remaining.pop(0)):
        return "the program is not plain"
    return _find_unknown(
        remaining, lambda argument: argument[:1] != "-" and "=" not in argument and inside(argument)
    )


def _check_jq(arguments: Sequence[str], inside: Inside) -> str | None:
    filters = [argument for argument in arguments if not argument.startswith("-")][:1]
    if not filters or not _JQ_FILTER.fullmatch(filters[0]):
        return "the filter is not plain"
    return _JQ_FLAGS.objection(arguments, inside)


def _check_git(arguments: Sequence[str], inside: Inside) -> str | None:
    remaining = list(arguments)
    if remaining and remaining[0] in ("--no-pager", "-P"):
        remaining.pop(0)
    if remaining == ["stash", "list"]:
        return None
    if not remaining or remaining[0] not in _GIT_SUBCOMMANDS:
        return f"git {' '.join(remaining[:1])} is not known to only read"
    subcommand, *words = remaining
    flag_pattern, max_operands = _GIT_SUBCOMMANDS[subcommand]
    end = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word.startswith("-")]
    operands = [word for word in words[:end] if not word.startswith("-")] + words[end + 1 :]
    unknown = _find_unknown(flags, flag_pattern.fullmatch)
    if unknown:
        return f"git {subcommand} {unknown}"
    if len(operands) > max_operands:
        return f"git {subcommand} with a name may write"
    magic = next(filter(_is_magic, operands), None)
    if magic:
        return f"“{magic}” may lead out of the workspace"
    return _find_outside(operands, inside)


def _is_magic(operand: str) -> bool:
    """Tell if git may resolve an operand elsewhere: ``:/x``, ``:(top)x``, ``HEAD:../x``."""
    if operand.startswith(":"):
        return True
    _, colon, path = operand.partition(":")
    return bool(colon) and (path[:1] in ("/", "~") or ".." in re.split("[/:]", path))


_CHECKS: dict[str, Callable[[Sequence[str], Inside], str | None]] = {
    "date": _check_date,
    "echo": lambda _, __: None,
    "printf": _check_printf,
    "find": _check_find,
    "rg": _check_rg,
    "sed": _check_sed,
    "awk": _check_awk,
    "jq": _check_jq,
    "git": _check_git,
}

"""The programs that only read, each with the flags that keep it so; anything else is not on the list.

A command that reads runs immediately, so it must also stay in the workspace: `Inside` tells whether an
operand leads to a place in there. Flags are exact: an abbreviated long option is not on the list. The little
languages of find, sed, awk, jq and git can also run programs and write files, so a few plain forms are taken.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Inside = Callable[[str], bool]

_SED_PRINT = re.compile(r"[0-9]+(,([0-9]+|\$))?[pd]|\$p|/[^/\\\n]*/[pd]|s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*")
_AWK = re.compile(r"\{ *print( +\$[0-9A-Z]+( *, *\$[0-9A-Z]+)*)? *\}")

# paths, joined by pipes and commas, and a few words that make no more of what they are given
_JQ_PART = (
    r"((\.|\.[A-Za-z_][A-Za-z0-9_]*|\[(-?[0-9]+|\"[^\"\\]*\")?\])\??)+"
    r"|keys|length|type|first|last|sort|unique|values|add|min|max|reverse|flatten|to_entries|map\(\.[A-Za-z0-9_]+\)"
)
_JQ_FILTER = re.compile(rf" *({_JQ_PART})( *[|,] *({_JQ_PART})){{0,9}} *")
_VERSION_OF = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")  # a program of the system's PATH
_FIND_ALONE = frozenset({
    "-print", "-print0", "-empty", "-not", "!", "-o", "-or", "-a", "-and", "(", ")", "-prune", "-depth",
    "-readable", "-executable", "-writable", "-xdev", "-mount", "-ls", "-quit", "-true",
})  # fmt: skip
_FIND_VALUED = frozenset({
    "-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-maxdepth", "-mindepth", "-size", "-mtime",
    "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-regex", "-iregex", "-perm", "-user", "-group", "-printf",
})  # fmt: skip
_GIT_COMMON = re.compile(
    r"-[0-9]{1,6}|-[pu]|-U[0-9]{1,4}|--(oneline|stat|numstat|shortstat|name-only|name-status|graph|decorate|all"
    r"|cached|staged|patch|no-patch|no-color|no-ext-diff|no-textconv|reverse|merges|no-merges|first-parent"
    r"|follow|abbrev-commit|no-renames|word-diff)"
    r"|--(max-count|since|until|after|before|author|grep|format|pretty|unified|date)=.*",
    re.DOTALL,
)
_GIT: dict[str, tuple[re.Pattern[str], int]] = {  # subcommand: its flags, most operands
    "log": (_GIT_COMMON, 20),
    "show": (_GIT_COMMON, 20),
    "diff": (_GIT_COMMON, 20),
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
    """The flags of a program: letters without and with a value, long names without and with ``=value``.

    ``texts`` operands come first and are no paths; -1: none is a path. ``most`` bounds the operands.
    """

    plain: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    texts: int = 0
    most: int = 1000
    numeric: bool = False  # takes -5
    pattern_flag: str = ""  # this flag gives the first text

    def objection(self, arguments: Sequence[str], inside: Inside) -> str | None:
        """Return why this does not only read inside the workspace; None when it does."""
        operands: list[str] = []
        texts = self.texts
        rest = iter(arguments)
        for each in rest:
            if each == "--":
                operands += rest
            elif each.startswith("--"):
                name, _, value = each[2:].partition("=")
                if each[2:] not in self.long and not (value and name in self.long_valued):
                    return f"{each} is not known to only read"
            elif each.startswith("-") and each != "-":
                if self.numeric and re.fullmatch(r"-[0-9]+", each):
                    continue
                for place, letter in enumerate(each[1:], 2):
                    if letter in self.valued:
                        texts -= letter == self.pattern_flag and texts > 0
                        if not each[place:] and next(rest, None) is None:
                            return f"-{letter} has no value"
                        break
                    if letter not in self.plain:
                        return f"{each} is not known to only read"
            else:
                operands.append(each)
        if len(operands) > self.most:
            return "it has more operands than are only read"
        paths = [] if texts < 0 else operands[texts:]
        return _outside(paths, inside)


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
_LINES = Reader(plain="qv", valued="nc", numeric=True, long_valued=("lines", "bytes"))

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
    "head": _LINES,
    "tail": _LINES,
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

_SED = Reader(plain="nErsu", valued="e", texts=1, pattern_flag="e")
_JQ = Reader(plain="rcMSesnRaCj", texts=1)
_RG = Reader(  # -z, -f, -L, --pre and --hostname-bin run programs or lead out of the workspace
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
_RG_FILES = replace(_RG, long=(*_RG.long, "files"), texts=0)


def reading_objection(words: Sequence[str], inside: Inside) -> str | None:
    """Return why this command does not only read inside the workspace; None when it does."""
    program, arguments = words[0], words[1:]
    if list(arguments) == ["--version"] and _VERSION_OF.fullmatch(program):
        return None
    if program in READERS:
        return READERS[program].objection(arguments, inside)
    if program in _MORE:
        return _MORE[program](arguments, inside)
    return "it is not on the list of what only reads"


def _outside(paths: Sequence[str], inside: Inside) -> str | None:
    if "-" in paths:
        return "“-” is what another program gives it, and no file"
    return next((f"“{path}” is outside the workspace" for path in paths if not inside(path)), None)


def _unknown(arguments: Sequence[str], known: Callable[[str], object]) -> str | None:
    return next((f"{each} is not known to only read" for each in arguments if not known(each)), None)


def _date(arguments: Sequence[str], _: Inside) -> str | None:
    return _unknown(arguments, lambda each: each in ("-u", "-R") or each[:1] == "+")


def _printf(arguments: Sequence[str], _: Inside) -> str | None:
    if arguments[:1] and arguments[0].startswith("-"):
        return "it has a flag"
    return None


def _find(arguments: Sequence[str], inside: Inside) -> str | None:
    rest = list(arguments)
    while rest and not rest[0].startswith("-") and rest[0] not in ("!", "("):
        outside = _outside([rest.pop(0)], inside)
        if outside:
            return outside
    while rest:
        each = rest.pop(0)
        if each in _FIND_VALUED and rest:
            rest.pop(0)
        elif each not in _FIND_ALONE:
            return f"{each} is not known to only read"
    return None


def _rg(arguments: Sequence[str], inside: Inside) -> str | None:
    return (_RG_FILES if "--files" in arguments else _RG).objection(arguments, inside)


def _sed(arguments: Sequence[str], inside: Inside) -> str | None:
    if any(each == "--" or re.match(r"-[a-zA-Z]*e.|-[a-zA-Z]+e", each) for each in arguments):
        return "its flags are not plain"
    scripts = [script for flag, script in pairwise(arguments) if flag == "-e"]
    scripts = scripts or [each for each in arguments if not each.startswith("-")][:1]
    if not scripts or not all(map(_SED_PRINT.fullmatch, scripts)):
        return "the script is not plain"
    return _SED.objection(arguments, inside)


def _awk(arguments: Sequence[str], inside: Inside) -> str | None:
    rest = list(arguments)
    if rest and re.fullmatch(r"-F.", rest[0]):
        rest.pop(0)
    if not rest or not _AWK.fullmatch(rest.pop(0)):
        return "the program is not plain"
    return _unknown(rest, lambda each: each[:1] != "-" and "=" not in each and inside(each))


def _jq(arguments: Sequence[str], inside: Inside) -> str | None:
    filters = [each for each in arguments if not each.startswith("-")][:1]
    if not filters or not _JQ_FILTER.fullmatch(filters[0]):
        return "the filter is not plain"
    return _JQ.objection(arguments, inside)


def _git(arguments: Sequence[str], inside: Inside) -> str | None:
    rest = list(arguments)
    if rest and rest[0] in ("--no-pager", "-P"):
        rest.pop(0)
    if rest == ["stash", "list"]:
        return None
    if not rest or rest[0] not in _GIT:
        return f"git {' '.join(rest[:1])} is not known to only read"
    part, *given = rest
    known, most = _GIT[part]
    end = given.index("--") if "--" in given else len(given)
    flags = [each for each in given[:end] if each.startswith("-")]
    operands = [each for each in given[:end] if not each.startswith("-")] + given[end + 1 :]
    unknown = _unknown(flags, known.fullmatch)
    if unknown:
        return f"git {part} {unknown}"
    if len(operands) > most:
        return f"git {part} with a name may write"
    magic = next(filter(_is_magic, operands), None)
    if magic:
        return f"“{magic}” may lead out of the workspace"
    return _outside(operands, inside)


def _is_magic(operand: str) -> bool:
    """Tell if git may read an operand as another place: ``:/x``, ``:(top)x``, ``HEAD:../x``."""
    _, colon, path = operand.partition(":")
    return operand.startswith(":") or (
        bool(colon) and (path[:1] in ("/", "~") or ".." in re.split("[/:]", path))
    )


_MORE: dict[str, Callable[[Sequence[str], Inside], str | None]] = {
    "date": _date,
    "echo": lambda _, __: None,
    "printf": _printf,
    "find": _find,
    "rg": _rg,
    "sed": _sed,
    "awk": _awk,
    "jq": _jq,
    "git": _git,
}

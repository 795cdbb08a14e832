"""Recognises commands that only read in the workspace, which run without approval.

`find_objection` returns the *objection* to a command: the reason why it may do more than read there.
`READERS` lists programs and their harmless flags. There is an objection to any other program or flag, and to
an abbreviated long flag. Some programs, such as find, sed and git, could also write files or run other
programs. `_CHECKS` has a function for each of them, which accepts a few simple forms.

The words after a command are *flags*, which begin with a dash, and *operands*: paths, or texts such as the
pattern of grep.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

IsInWorkspace = Callable[[str], bool]
"""Returns whether an operand is a path in the workspace."""

# "1,20p", "$p", "/error/d", "s/a/b/g": printing, deleting or replacing lines of the output
_SED_SCRIPT = re.compile(r"[0-9]+(,([0-9]+|\$))?[pd]|\$p|/[^/\\\n]*/[pd]|s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*")
_SED_JOINED_SCRIPT_FLAG = re.compile(r"-[a-zA-Z]*e.|-[a-zA-Z]+e")  # "-e" joined with other characters
# a program that prints some fields of each line: "{print $1, $3}"
_AWK_PROGRAM = re.compile(r"\{ *print( +\$[0-9A-Z]+( *, *\$[0-9A-Z]+)*)? *\}")

# jq's paths (".items[0].name") and a few functions that do not multiply their input; "|" and "," join them
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
_GIT_SUBCOMMANDS = {  # by name: the flags with which it only reads, and the maximum number of operands
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
    "reflog": (re.compile(r"(?!)"), 0),  # the pattern matches nothing: no flag at all
    "shortlog": (re.compile(r"-[sne]+"), 2),
}


@dataclass(frozen=True, slots=True)
class Syntax:
    """The flags and operands that a program may have. In `READERS`: those with which it only reads."""

    plain: str = ""  # one-letter flags without a value
    valued: str = ""  # one-letter flags with a value
    long: tuple[str, ...] = ()  # long flags without a value
    long_valued: tuple[str, ...] = ()  # long flags with "=value"
    texts: int = 0  # the number of first operands that are texts, not paths
    only_texts: bool = False  # True: all operands are texts
    max_operands: int = 1000
    numeric: bool = False  # also takes flags such as -5
    pattern_flag: str = ""  # the letter of a flag that gives a text, so that one operand less is a text

    def find_objection(self, arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
        """Return the objection to the first argument that is not allowed; None if all are."""
        operands: list[str] = []
        text_count = self.texts
        remaining = iter(arguments)
        for argument in remaining:
            if argument == "--":  # only operands follow
                operands += remaining
            elif argument.startswith("--"):
                name, _, value = argument[2:].partition("=")
                is_known = argument[2:] in self.long or (value and name in self.long_valued)
                if not is_known:
                    return f"{argument} is not known to only read"
            elif argument == "-" or not argument.startswith("-"):
                operands.append(argument)
            elif not (self.numeric and re.fullmatch(r"-[0-9]+", argument)):
                letters = self._split_letters(argument[1:])
                if not all(letter in self.plain for letter in letters.plain):
                    return f"{argument} is not known to only read"
                value_is_next = letters.valued and not letters.value
                if value_is_next and next(remaining, None) is None:
                    return f"-{letters.valued} has no value"
                if letters.valued and letters.valued == self.pattern_flag and text_count > 0:
                    text_count -= 1
        if len(operands) > self.max_operands:
            return "it has more operands than are only read"
        if self.only_texts:
            return None
        return _find_outside(operands[text_count:], inside)

    def _split_letters(self, letters: str) -> "_FlagLetters":
        """Split the letters of a flag: ``-nC5`` is the plain ``n``, then ``C`` with the value ``5``."""
        for position, letter in enumerate(letters):
            if letter in self.valued:
                return _FlagLetters(letters[:position], letter, letters[position + 1 :])
        return _FlagLetters(letters, "", "")


class _FlagLetters(NamedTuple):
    """The letters of a joined flag, such as ``-nC5``."""

    plain: str  # letters without a value
    valued: str  # the last letter, which has a value; empty if none has
    value: str  # that value; empty if it is the next argument


_GREP = Syntax(
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
_HEAD = Syntax(plain="qv", valued="nc", numeric=True, long_valued=("lines", "bytes"))

READERS: dict[str, Syntax] = {
    "ls": Syntax(
        plain="aAlhrtSR1dFpsinogkmxXcuU",
        long=(
            "all", "almost-all", "human-readable", "recursive", "reverse", "directory", "classify",
            "full-time",
        ),
        long_valued=("color", "sort", "time-style"),
    ),
    "cat": Syntax(plain="nbsAETuv"),
    "head": _HEAD,
    "tail": _HEAD,
    "wc": Syntax(plain="lwcmL", long=("lines", "words", "bytes", "chars")),
    "cut": Syntax(plain="sz", valued="dfbc", long_valued=("delimiter", "fields", "characters")),
    "tr": Syntax(plain="cCdst", only_texts=True),
    "uniq": Syntax(plain="cdiuz", valued="fsw", max_operands=1),  # its second operand is a file to write
    "sort": Syntax(plain="nrufhVbdgiMszcCm", valued="kt", long=("reverse", "unique", "numeric-sort")),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "cmp": Syntax(plain="bls", max_operands=2),
    "comm": Syntax(plain="123", max_operands=2),
    "stat": Syntax(plain="t", valued="c", long_valued=("printf", "format")),
    "du": Syntax(plain="shackmb", valued="d", long_valued=("max-depth",)),
    "df": Syntax(plain="hkTi", max_operands=0),
    "file": Syntax(plain="bi", long=("brief", "mime", "mime-type")),
    "tree": Syntax(plain="adfDhsp", valued="LPI"),
    "realpath": Syntax(plain="em"),
    "readlink": Syntax(plain="fem"),
    "basename": Syntax(only_texts=True),
    "dirname": Syntax(only_texts=True),
    "which": Syntax(plain="a", only_texts=True),
    **dict.fromkeys(("nl", "tac", "rev", "cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum"), Syntax()),
    "pwd": Syntax(plain="LP", max_operands=0),
    "id": Syntax(plain="ugnrG", max_operands=0),
    "uname": Syntax(plain="asnrvmpio", max_operands=0),
    "hostname": Syntax(plain="fs", max_operands=0),  # an operand would set it
    "uptime": Syntax(plain="ps", max_operands=0),
    **dict.fromkeys(("whoami", "nproc", "true", "false"), Syntax(max_operands=0)),
}  # fmt: skip

_SED_FLAGS = Syntax(plain="nErsu", valued="e", texts=1, pattern_flag="e")
_JQ_FLAGS = Syntax(plain="rcMSesnRaCj", texts=1)
_RG_FLAGS = Syntax(  # -z, -f, -L, --pre and --hostname-bin run programs or lead out of the workspace
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
# with --files ripgrep lists files, and has no pattern
_RG_FILES_FLAGS = replace(_RG_FLAGS, long=(*_RG_FLAGS.long, "files"), texts=0)


def find_objection(words: Sequence[str], inside: IsInWorkspace) -> str | None:
    """Return why a command may do more than read in the workspace; None if it only reads."""
    program = words[0]
    arguments = words[1:]
    if list(arguments) == ["--version"] and _PROGRAM_NAME.fullmatch(program):
        return None
    if program in READERS:
        return READERS[program].find_objection(arguments, inside)
    if program in _CHECKS:
        return _CHECKS[program](arguments, inside)
    return "it is not on the list of what only reads"


def _find_outside(paths: Sequence[str], inside: IsInWorkspace) -> str | None:
    """Return the objection to the first path that is not in the workspace; None if all are."""
    if "-" in paths:
        return "“-” is what another program gives it, and no file"
    for path in paths:
        if not inside(path):
            return f"“{path}” is outside the workspace"
    return None


def _list_operands(arguments: Sequence[str]) -> list[str]:
    return [argument for argument in arguments if not argument.startswith("-")]


def _find_unknown(arguments: Sequence[str], is_known: Callable[[str], object]) -> str | None:
    """Return the objection to the first argument that is not known; None if all are."""
    for argument in arguments:
        if not is_known(argument):
            return f"{argument} is not known to only read"
    return None


def _check_date(arguments: Sequence[str], _: IsInWorkspace) -> str | None:
    return _find_unknown(arguments, lambda argument: argument in ("-u", "-R") or argument[:1] == "+")


def _check_printf(arguments: Sequence[str], _: IsInWorkspace) -> str | None:
    if arguments and arguments[0].startswith("-"):
        return "it has a flag"
    return None


def _check_find(arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
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


def _check_rg(arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
    flags = _RG_FILES_FLAGS if "--files" in arguments else _RG_FLAGS
    return flags.find_objection(arguments, inside)


def _check_sed(arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
    for argument in arguments:
        if argument == "--" or _SED_JOINED_SCRIPT_FLAG.match(argument):
            return "its flags are not plain"
    scripts = [script for flag, script in pairwise(arguments) if flag == "-e"]
    if not scripts:
        scripts = _list_operands(arguments)[:1]
    if not scripts or not all(map(_SED_SCRIPT.fullmatch, scripts)):
        return "the script is not plain"
    return _SED_FLAGS.find_objection(arguments, inside)


def _check_awk(arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
    remaining = list(arguments)
    if remaining and re.fullmatch(r"-F.", remaining[0]):
        remaining.pop(0)
    if not remaining or not _AWK_PROGRAM.fullmatch(remaining[0]):
        return "the program is not plain"
    # "name=value" as an operand would set a variable
    return _find_unknown(
        remaining[1:], lambda operand: operand[:1] != "-" and "=" not in operand and inside(operand)
    )


def _check_jq(arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
    operands = _list_operands(arguments)
    if not operands or not _JQ_FILTER.fullmatch(operands[0]):
        return "the filter is not plain"
    return _JQ_FLAGS.find_objection(arguments, inside)


def _check_git(arguments: Sequence[str], inside: IsInWorkspace) -> str | None:
    remaining = list(arguments)
    if remaining and remaining[0] in ("--no-pager", "-P"):
        remaining.pop(0)
    if remaining == ["stash", "list"]:
        return None
    if not remaining or remaining[0] not in _GIT_SUBCOMMANDS:
        return f"git {' '.join(remaining[:1])} is not known to only read"
    subcommand, *words = remaining
    flag_pattern, max_operands = _GIT_SUBCOMMANDS[subcommand]
    end_of_flags = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end_of_flags] if word.startswith("-")]
    operands = _list_operands(words[:end_of_flags]) + words[end_of_flags + 1 :]
    unknown = _find_unknown(flags, flag_pattern.fullmatch)
    if unknown:
        return f"git {subcommand} {unknown}"
    if len(operands) > max_operands:
        return f"git {subcommand} with a name may write"
    for operand in operands:
        if _may_lead_elsewhere(operand):
            return f"“{operand}” may lead out of the workspace"
    return _find_outside(operands, inside)


def _may_lead_elsewhere(operand: str) -> bool:
    """Return whether an operand may lead git out of the workspace: ``:/x``, ``:(top)x``, ``HEAD:../x``."""
    if operand.startswith(":"):
        return True
    _, colon, path = operand.partition(":")
    if not colon:
        return False
    return path.startswith(("/", "~")) or ".." in re.split("[/:]", path)


_CHECKS: dict[str, Callable[[Sequence[str], IsInWorkspace], str | None]] = {
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

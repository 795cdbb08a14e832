"""The programs that only read, each with the flags that keep it so; anything else is not on the list.

A command that reads runs immediately, so it must also stay in the workspace: `Inside` tells whether an
operand leads to a place in there. Flags are exact: an abbreviated long option is not on the list. Programs
that need more than a table are in ``git.py`` and ``languages.py``.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Inside = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Reader:
    """Flags of one program: letters without and with a value, long names without and with ``=value``.

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
        """Why this does not only read inside the workspace; None when it does."""
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
        return next((f"“{path}” is outside the workspace" for path in paths if not inside(path)), None)


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
_SUM = Reader()
_NOTHING = Reader(most=0)

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
    "nl": Reader(),
    "tac": Reader(),
    "rev": Reader(),
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
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "cksum": _SUM,
    "pwd": Reader(plain="LP", most=0),
    "whoami": _NOTHING,
    "id": Reader(plain="ugnrG", most=0),
    "uname": Reader(plain="asnrvmpio", most=0),
    "hostname": Reader(plain="fs", most=0),  # an operand would set it
    "nproc": _NOTHING,
    "uptime": Reader(plain="ps", most=0),
    "true": _NOTHING,
    "false": _NOTHING,
}  # fmt: skip

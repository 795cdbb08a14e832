"""Characters that people do not see, or that turn the reading direction: no one may approve what they hide.

The console has both tables in ``static/dom.js``, letter for letter. A test holds them to Unicode's data.
"""

from collections.abc import Callable

import regex

HIDDEN = (
    "0-8 b-1f 7f-9f ad 34f 61c 115f-1160 17b4-17b5 180b-180f 200b-200f 2028-202e 2060-206f 2800 "
    "3164 d800-dfff fdd0-fdef fe00-fe0f feff ffa0 fff0-fffc fffe-ffff 13430-1343f 13441-13442 16fe4 "
    "1bca0-1bca3 1d159 1d173-1d17a 1fffe-1ffff 2fffe-2ffff 3fffe-3ffff 4fffe-4ffff 5fffe-5ffff "
    "6fffe-6ffff 7fffe-7ffff 8fffe-8ffff 9fffe-9ffff afffe-affff bfffe-bffff cfffe-cffff "
    "dfffe-e0fff efffe-effff ffffe-fffff 10fffe-10ffff"
)
"""Controls, formats, surrogates, what fonts draw nothing for, blank letters: code points in hexadecimal."""
WRITTEN = (
    # the flags of England, Scotland and Wales; an emoji, alone or a family; a keycap
    r"(?:<1f3f4><e0067><e0062>(?:<e0065><e006e><e0067>|<e0073><e0063><e0074>|<e0077><e006c><e0073>)<e007f>"
    r"|\p{Extended_Pictographic}[<fe0e><fe0f>]?\p{Emoji_Modifier}?"
    r"(?:<200d>\p{Extended_Pictographic}[<fe0e><fe0f>]?\p{Emoji_Modifier}?){0,8}"
    r"|[#*0-9]<fe0f><20e3>"
    # a joiner after a virama, or between letters that join
    r"|[<94d><9cd><a4d><acd><b4d><bcd><c4d><ccd><d4d><dca><1039><17d2>][<200c><200d>]"
    r"|(?<=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}][\p{Mn}]{0,3})[<200c><200d>]"
    r"(?=[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}]))"
)
"""What scripts and emoji are written with, so that it stays there: code points between ``<`` and ``>``."""


def _class(ranges: str) -> str:
    ends = (each.split("-") for each in ranges.split())
    return "[" + "".join("-".join(f"\\U{int(end, 16):08x}" for end in each) for each in ends) + "]"


_MAYBE = regex.compile(_class(HIDDEN))
_WRITTEN = regex.sub("<([0-9a-f]+)>", lambda found: f"\\U{int(found[1], 16):08x}", WRITTEN)
_UNSEEN = regex.compile(f"{_WRITTEN}|({_class(HIDDEN)})")


def made_visible(text: str, shown: Callable[[int], str]) -> str:
    """The text with each unseen character replaced by what ``shown`` makes of its code point."""
    if not _MAYBE.search(text):
        return text
    return str(_UNSEEN.sub(lambda found: shown(ord(found[1])) if found[1] else found[0], text))


def escaped(point: int) -> str:
    """A code point as in a source text."""
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"  # noqa: PLR2004 - the last of four digits


def one_line(text: str) -> str:
    """The text on one line, so that it cannot look like further lines of what stands around it."""
    return " ".join(text.split())

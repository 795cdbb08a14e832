"""Characters that people do not see, or that turn the reading direction: no one may approve what they hide.

The joiners U+200C and U+200D stay, for scripts and emoji are written with them. The console has the same
list in ``static/dom.js``.
"""

import re
from collections.abc import Callable

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def made_visible(text: str, shown: Callable[[int], str]) -> str:
    """The text with each unseen character replaced by what ``shown`` makes of its code point."""
    return _UNSEEN.sub(lambda found: shown(ord(found[0])), text)


def one_line(text: str) -> str:
    """The text on one line, so that it cannot look like further lines of what stands around it."""
    return " ".join(text.split())

"""Text for Discord: hostile until it went through here.

Discord reads a part of CommonMark, and mentions, times and emoji in ``<…>``:
https://docs.discord.com/developers/reference (message formatting).
"""

import re
from datetime import datetime

from bot.channels.discord.limits import CONTENT
from bot.domain.unseen import made_visible

_SPECIAL = re.compile(r"<(?=[@#:/]|a:|t:|id:)")
_MARKUP = re.compile(r"([\\*_~`|>#\[\]<:@-])")
_FENCE = "```"
_ROOM = 60  # units kept for closing a code block, and for opening it again


def clean(text: str) -> str:
    """The text without half characters, and with what people do not see spelled out."""
    text = text.replace("\r\n", "\n").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return made_visible(text, lambda code: f"⟨U+{code:04X}⟩")


def literal(text: str) -> str:
    """Text in which nothing is markup; Discord drops the backslashes."""
    return _MARKUP.sub(r"\\\1", clean(text))


def neutralise(markdown: str) -> str:
    """CommonMark in which nothing is a mention or a time; what is zero wide parts ``<`` from ``@``."""
    return _SPECIAL.sub("<\u200b", clean(markdown))


def fenced(text: str) -> str:
    """Put text into a code block, or escape it where it would end the block."""
    return literal(text) if _FENCE in text else f"{_FENCE}\n{clean(text)}\n{_FENCE}"


def moment(at: datetime, style: str) -> str:
    """Give a time as the reader's own app shows it: ``R`` relative, ``f`` date and time."""
    return f"<t:{int(at.timestamp())}:{style}>"


def width(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """Give the text within ``limit`` units, ending in a mark where it was cut."""
    text = clean(text)
    return text if width(text) <= limit else f"{_prefix(text, limit - 1)}…"


def _prefix(text: str, limit: int) -> str:
    return text.encode("utf-16-le")[: 2 * limit].decode("utf-16-le", "ignore")


def split(markdown: str) -> list[str]:
    """CommonMark in posts, cut between paragraphs, lines or words; a cut code block continues in the next."""
    posts, rest = [], neutralise(markdown)
    while width(rest) > CONTENT:
        window = _prefix(rest, CONTENT - _ROOM)
        found = (window.rfind(boundary) + len(boundary) for boundary in ("\n\n", "\n", " "))
        at = next((each for each in found if each > len(window) // 3), len(window))
        head, rest = rest[:at].rstrip(), rest[at:].lstrip("\n")
        opened = [line for line in head.splitlines() if line.lstrip().startswith(_FENCE)]
        if len(opened) % 2:
            head, rest = f"{head}\n{_FENCE}", f"{opened[-1].strip()[:40]}\n{rest}"
        posts.append(head)
    return [post for post in (*posts, rest) if post.strip()]

"""Text for Slack. All text is hostile until one of these functions has prepared it.

Slack has two markups: its own mrkdwn, in which ``<@U1>`` is a mention, and CommonMark.

- `escape` prepares a text for mrkdwn, and spells out the characters that people do not see
- `neutralise` takes CommonMark from a model or a tool, and makes its mentions plain text
- `cut` shortens a text, with a note of how much is missing
- `split` cuts long CommonMark into posts

Lengths are in UTF-16 units of the escaped text (`width`): Slack documents no unit, and this one never counts
too few.
"""

import re
from collections.abc import Iterator
from typing import Any

from bot.channels import markdown as commonmark
from bot.channels.markdown import clean, clean_prose, prefix
from bot.channels.slack.places import NAME, mention_of
from bot.domain.text_direction import isolate_foreign_parts, runs_right_to_left

_SPECIAL = re.compile(r"<(?=[!@#]|(?:https?|mailto|tel):[^<>|\s]*\|)")  # the < of <!here>, <@U1>, <url|words>
_BACKSLASHED = re.compile(r"\\([!-/:-@\[-`{-~])")  # any ASCII punctuation, as CommonMark has it
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)  # a block, also a still open one, or a span

MAX_POST_UNITS = 11_000
"""The units of one post of CommonMark: below Slack's 12,000, with room for a closing fence."""


def escape(text: str) -> str:
    """Escape a text for mrkdwn, in which ``&``, ``<`` and ``>`` are markup."""
    return _escape(isolate_foreign_parts(clean(text)))


def escape_prose(text: str) -> str:
    """Escape the text of an answer or notice, keeping invisible marks that some scripts need."""
    return _escape(clean_prose(text))


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_plain(markdown: str) -> str:
    """Return CommonMark as plain text, without the backslashes before marks."""
    pieces = []
    for is_code, piece in _split_code(markdown):
        pieces.append(piece if is_code else _BACKSLASHED.sub(r"\1", piece))
    return "".join(pieces)


def _split_code(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yield pairs: True if the piece is code, in which a backslash escapes nothing, and the piece."""
    at = 0
    for code in _CODE.finditer(markdown):
        yield False, markdown[at : code.start()]
        yield True, code[0]
        at = code.end()
    yield False, markdown[at:]


def notification(markdown: str, limit: int = 300) -> str:
    """Return the first words of a notice on one line, escaped, as a phone shows them."""
    words = " ".join(clean_prose(as_plain(markdown)).split())
    return _escape(_shorten(words, limit)[0])


def neutralise(markdown: str) -> str:
    """Neutralise ``<!channel>``, ``<@U1>`` and ``<#C1>`` in CommonMark, so that no one is notified."""
    return commonmark.neutralise_mentions(markdown, _SPECIAL)


def cut_and_neutralise(markdown: str, limit: int) -> str:
    """Cut CommonMark to ``limit`` units, then neutralise its mentions, which adds to the length."""
    room = limit
    # ``]:`` may begin the definition of a link, which is neutralised, too
    if _SPECIAL.search(markdown) or "]:" in markdown:
        room = limit * 5 // 6  # neutralising adds at most one unit to five
    return neutralise(_shorten(clean_prose(markdown), room)[0])


def width(text: str) -> int:
    """Return the number of units that Slack may count for this text."""
    # escaped: &amp; is 4 longer than &, &lt; and &gt; are 3 longer than < and >
    extra = 4 * text.count("&") + 3 * text.count("<") + 3 * text.count(">")
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 + extra


def cut(text: str, limit: int) -> tuple[str, bool]:
    """Return a text of at most ``limit`` units, and True if it was cut; a mark says how much is missing."""
    return _shorten(clean(text), limit)


def _shorten(text: str, limit: int) -> tuple[str, bool]:
    if width(text) <= limit:
        return text, False
    room = limit - len(f"… [{len(text)} more characters]")
    if room < 1:
        return prefix(text, limit - 1, width) + "…", True
    head = prefix(text, room, width)
    return f"{head}… [{len(text) - len(head)} more characters]", True


def split_plain(text: str, limit: int) -> list[str]:
    """Split plain text into pieces of at most ``limit`` units, preferably after a line. Nothing is lost."""
    pieces = []
    text = clean(text)
    if runs_right_to_left(text):
        limit = limit // 2  # marks of direction may double the length
    while text:
        head = prefix(text, limit, width)
        line_end = head.rfind("\n")
        if len(head) < len(text) and line_end > len(head) // 2:
            head = head[: line_end + 1]
        pieces.append(head)
        text = text[len(head) :]
    return pieces


def split(markdown: str, limit: int = MAX_POST_UNITS) -> list[str]:
    """Split CommonMark into posts of at most ``limit`` units."""
    return commonmark.split(markdown, limit, width)


def cut_off_head(markdown: str, limit: int, before: str = "") -> tuple[str, str]:
    """Cut off a head of at most ``limit`` units; ``before`` is the text that the same post already has."""
    return commonmark.cut_once(markdown, limit, width, before)


def one_line(text: str) -> str:
    """Put plain text on one line, for titles and notifications."""
    return " ".join(clean(text).split())


def escape_line(text: str) -> str:
    """Escape CommonMark's markup in a single line."""
    return re.sub(r"([\\`*_\[\]~])", r"\\\1", one_line(text))


def with_mentions(markdown: str, team: str) -> str:
    """Replace accounts and addresses of this workspace by marks that Slack shows as names; not in code.

    In ``T1``, ``slack:T1/U7`` becomes ``<@U7>``, and ``slack:T1/C2/1700.1`` becomes ``<#C2>``.
    """

    def write_mark(match: re.Match[str]) -> str:
        ident = match[1] or ""
        if not ident:
            return match[0]  # code
        return f"<#{ident}>" if ident[0] in "CG" else mention_of(ident)

    code = r"`[^`\n]*`"
    address = rf"(?<![\w:/]){NAME}:{re.escape(team)}/([UWCGS][A-Z0-9]+)(?:/[0-9.]+)?(?![\w/])"
    return re.sub(f"{code}|{address}", write_mark, markdown)


def list_message_forms(markdown: str) -> list[dict[str, Any]]:
    """Return the messages to try in turn for a text: as CommonMark, then as plain text."""
    return [{"markdown_text": markdown}, {"text": escape_prose(as_plain(markdown)), "mrkdwn": False}]

"""Text for Discord. All text is hostile until one of these functions has escaped it.

Discord reads a part of CommonMark, and mentions, times and emoji in ``<…>``:
https://docs.discord.com/developers/reference (message formatting). `literal` and `fence` make a text in which
nothing is markup. `neutralise` and `split` take CommonMark of answers and keep its markup, except for
mentions.

Two steps come before the escaping of a literal text:

1. `clean` spells out invisible characters.
2. `isolate_foreign_parts` gives each part that others wrote its own direction of writing. So text from right
   to left can't reorder the words around it. `isolate_lines` does that for each line.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from bot.channels import markdown as commonmark
from bot.channels.card_text import CardTextRenderer, TextBuilder
from bot.channels.discord.places import CHANNEL_NAME, MAX_CONTENT_UNITS, MAX_EMBED_UNITS
from bot.channels.markdown import clean, neutralise_mentions, prefix
from bot.channels.tables import lay_out_tables
from bot.domain.people import Actor
from bot.domain.text_direction import isolate_foreign_parts, isolate_lines, runs_right_to_left

_SPECIAL_PATTERN = re.compile(r"<(?=[@#:/]|a:|t:|id:)")  # the < of a mention, an emoji, a command or a time
_MARKUP_PATTERN = re.compile(r"([\\*_~`|>#\[\]<:@-])")  # the characters that can begin markup
_NUMBER_PATTERN = re.compile(r"^([^\S\n]*\d+)\.(?!\S)", re.MULTILINE)  # "3." begins a numbered list
_FENCE = "```"
_STYLE_FORMATS = {"bold": "**{}**", "italic": "*{}*", "code": "{}"}  # see `DiscordTextBuilder.write` for code


def literal(text: str) -> str:
    """Escape a text so that nothing in it is markup; Discord drops the backslashes.

    Each part of the text keeps its own direction of writing.
    """
    return _escape(isolate_foreign_parts(clean(text)))


def _escape(text: str) -> str:
    """Put a backslash before each character that can begin markup."""
    return _NUMBER_PATTERN.sub(r"\1\.", _MARKUP_PATTERN.sub(r"\\\1", text))


def neutralise(markdown: str) -> str:
    """Neutralise mentions and times in CommonMark."""
    return neutralise_mentions(markdown, _SPECIAL_PATTERN)


def fence(text: str) -> str:
    """Put a text into a code block, or escape it if it would end the block.

    Text from right to left becomes a quote, in which each line can have its own direction.
    """
    if runs_right_to_left(text):
        return "\n".join(f"> {literal(line)}" for line in clean(text).split("\n"))
    if _FENCE in text:
        return literal(text)
    return f"{_FENCE}\n{clean(text)}\n{_FENCE}"


def width(text: str) -> int:
    """Return the length of a text in UTF-16 units, the unit of all limits for Discord here."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_label(text: str, limit: int) -> str:
    """Return a text for a label, in which Discord reads no markup, within ``limit`` units.

    A text that is cut ends in an ellipsis. The invisible marks around text from right to left count as well.
    """
    text = clean(text)
    mark_units = width(isolate_foreign_parts(text)) - width(text)
    return isolate_foreign_parts(cut_to_units(text, max(limit - mark_units, 1)))


def cut_to_units(text: str, limit: int) -> str:
    """Return a text within ``limit`` units; a text that is cut ends in an ellipsis.

    The text is not escaped here: it is escaped already, or is shown where Discord reads no markup.
    """
    if width(text) <= limit:
        return text
    return f"{prefix(text, limit - 1, width)}…"


def split(markdown: str, limit: int = MAX_CONTENT_UNITS) -> list[str]:
    """Split CommonMark into posts of at most ``limit`` units; tables are laid out, mentions neutralised."""
    safe = neutralise(lay_out_tables(markdown))
    # at the beginning, spaces may be the indent of a code block, so only line breaks are cut there
    return commonmark.split(safe.lstrip("\n").rstrip(), limit, width)


class DiscordTextBuilder(TextBuilder[str]):
    """The `TextBuilder` of Discord's markdown; sizes are in UTF-16 units."""

    def write(self, text: str, *styles: str) -> str:
        if "pre" in styles:
            return fence(text)
        if "code" in styles:
            # not in a code span: no escape works there, so a backtick would end it
            written = _escape(isolate_lines(clean(text)))
        else:
            written = literal(text)
        if not written.strip():
            return written
        for style in styles:
            written = _STYLE_FORMATS[style].format(written)
        return written

    def moment(self, at: datetime, *, relative: bool = False) -> str:
        form = "R" if relative else "f"  # Discord's forms of a time: relative, or date and time
        return f"<t:{int(at.timestamp())}:{form}>"

    def mention(self, actor: Actor) -> str:
        """Return a mention; in an embed it notifies no one."""
        if actor.channel == CHANNEL_NAME:
            return f"<@{actor.key}>"
        return literal(actor.label)

    def join(self, parts: Iterable[str], between: str = "\n") -> str:
        return between.join(parts)

    def size(self, made: str) -> tuple[int, ...]:
        # one measure only; another platform may limit several, such as Telegram's styled parts of a text
        return (width(made),)

    def cut(self, text: str, units: int) -> str:
        """Return a beginning of a text, not escaped, that has at most ``units`` once it is escaped."""
        head = prefix(clean(text), units, width)
        size = width(literal(head))
        while size > units:  # escaping has made it longer: shorten it in proportion
            head = head[: len(head) * units // size]
            size = width(literal(head))
        return head


CARD_RENDERER = CardTextRenderer(DiscordTextBuilder(), (MAX_EMBED_UNITS,))
"""The renderer of cards and of teams' statuses as text, each within one embed."""

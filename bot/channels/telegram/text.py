"""Styled text for Telegram: `Rich`, a plain text with entities, and its division into messages.

An entity is Telegram's form of a style, a link or a mention: a kind, an offset and a length, both in UTF-16
units (a letter is one unit, most emoji are two). A message takes `TEXT_UNITS` and `ENTITIES`; `split` divides
a longer text. ``markdown.py`` makes rich text of the CommonMark of answers. Cards are put together by
`TelegramTextBuilder` from pieces made by `plain` and `style`, in which nothing is markup.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from telegram import MessageEntity, User

from bot.channels.card_text import CardTextRenderer, TextBuilder
from bot.channels.telegram.limits import ENTITIES, TEXT_UNITS
from bot.channels.telegram.places import NAME
from bot.domain.people import Actor
from bot.domain.text import escape_point, find_cut, make_visible
from bot.domain.text_direction import (
    FIRST_STRONG_ISOLATE,
    POP_ISOLATE,
    isolate_foreign_parts,
    runs_right_to_left,
)
from bot.domain.times import format_local

_APP_LINK_PATTERN = re.compile(r"\b(tg|ton|tonsite)://", re.IGNORECASE)  # such as tg://settings
_FOLD_KIND = MessageEntity.EXPANDABLE_BLOCKQUOTE  # a quote whose end is hidden until it is opened
_QUOTE_KIND = MessageEntity.BLOCKQUOTE
_RULE_PATTERN = re.compile(r"-+(?:\+-+)*")  # ---+-----, below the names of a table's columns
_MAX_HEAD_SHARE = 4  # a table's head is repeated if it takes at most 1/4 of a message


class _CutPoint(NamedTuple):
    """A place where a text may be cut: after a ``mark``."""

    mark: str
    only_second_half: bool  # only in the second half of the message, so that no message is short
    also_in_code: bool  # also inside a code block, which continues in the next message


_CUT_POINTS = (  # the best first
    _CutPoint("\n\n", only_second_half=True, also_in_code=False),
    _CutPoint("\n", only_second_half=True, also_in_code=False),
    _CutPoint("\n", only_second_half=False, also_in_code=False),
    _CutPoint("\n", only_second_half=True, also_in_code=True),
    _CutPoint(" ", only_second_half=True, also_in_code=True),
)


def utf16_len(text: str) -> int:
    """Return the length in UTF-16 code units, as Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class Rich:
    """A text and its entities."""

    text: str = ""
    entities: tuple[MessageEntity, ...] = ()

    def __add__(self, other: "Rich") -> "Rich":
        return join((self, other), "")

    @property
    def units(self) -> int:
        """Length in UTF-16 code units."""
        return utf16_len(self.text)

    @property
    def fits(self) -> bool:
        """True if the text fits one message."""
        return self.units <= TEXT_UNITS and len(self.entities) <= ENTITIES


def plain(text: str) -> Rich:
    """Return unstyled text; characters that could disguise its meaning are shown as escapes.

    In a text from right to left, the parts that others wrote get their own direction
    (`isolate_foreign_parts`).
    """
    return Rich(isolate_foreign_parts(_make_visible(text)))


def style(text: str, *kinds: str) -> Rich:
    """Return a text with styles, which are left out for a blank text.

    Text from right to left gets marks of direction. If it is a code block, it becomes a quote, in which each
    line can have its own direction.
    """
    shown = _make_visible(text)
    if not shown.strip() or not kinds:
        return plain(text)
    if not runs_right_to_left(shown):
        return _style_all(shown, kinds)
    if MessageEntity.CODE in kinds:
        return Rich(FIRST_STRONG_ISOLATE) + _style_all(shown, kinds) + Rich(POP_ISOLATE)
    quote_kinds = [_QUOTE_KIND if kind == MessageEntity.PRE else kind for kind in kinds]
    return _style_all(isolate_foreign_parts(shown), quote_kinds)


def _style_all(text: str, kinds: Iterable[str]) -> Rich:
    """Return a text with an entity of each kind over all of it."""
    units = utf16_len(text)
    return Rich(text, tuple(MessageEntity(kind, 0, units) for kind in kinds))


def _make_visible(text: str) -> str:
    return make_visible(fix_surrogates_and_line_ends(text), escape_point)


def join(parts: Iterable[Rich], between: str = "\n") -> Rich:
    """Join texts; the entities of each text are shifted by the length of the texts before."""
    texts: list[str] = []
    entities: list[MessageEntity] = []
    offset = 0
    for part in parts:
        entities += (_move_entity(entity, entity.offset + offset, entity.length) for entity in part.entities)
        texts.append(part.text)
        offset += part.units + utf16_len(between)
    return Rich(between.join(texts), tuple(entities))


def mention(actor: Actor) -> Rich:
    """Return a person's name as a mention, which notifies them; only the name for accounts elsewhere."""
    name = plain(actor.label)
    if actor.channel != NAME or not actor.key.isdecimal():
        return name
    user = User(int(actor.key), actor.label, is_bot=False)
    return Rich(name.text, (MessageEntity(MessageEntity.TEXT_MENTION, 0, name.units, user=user),))


class TelegramTextBuilder(TextBuilder[Rich]):
    """The `TextBuilder` of text with entities. A size is a pair: UTF-16 units, and entities."""

    folds = True

    def write(self, text: str, *styles: str) -> Rich:
        kinds = [_FOLD_KIND if name == "fold" else name for name in styles]
        return style(text, *kinds)

    def moment(self, at: datetime, *, relative: bool = False) -> Rich:
        """Return a time that apps format themselves; old apps show the text instead."""
        text = format_local(at)
        date_format = "r" if relative else "dt"
        kind = MessageEntity.DATE_TIME
        return Rich(text, (MessageEntity(kind, 0, len(text), unix_time=at, date_time_format=date_format),))

    def mention(self, actor: Actor) -> Rich:
        return mention(actor)

    def join(self, parts: Iterable[Rich], between: str = "\n") -> Rich:
        return join(parts, between)

    def size(self, made: Rich) -> tuple[int, ...]:
        return made.units, len(made.entities)

    def cut(self, text: str, units: int) -> str:
        pieces = split(plain(text), units)
        return pieces[0].text if pieces else ""


def is_web_link(url: str) -> bool:
    """Tell if this is an ordinary link that leads out of the app to a named host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and "." in (parts.hostname or "") and url.isprintable()
    except ValueError:
        return False


def split(rich: Rich, units: int = TEXT_UNITS) -> list[Rich]:
    """Cut into messages at the best place: between paragraphs, then lines, then inside code, then anywhere.

    A code block that must be cut is a code block in both messages. Blank messages are left out.
    """
    pieces = []
    table_head = Rich()  # the lines that name the columns of a cut table, to repeat in the next message
    waiting = deque(sorted(rich.entities, key=lambda entity: entity.offset))  # entities that begin later
    current: list[MessageEntity] = []  # entities that have begun, and may reach into the next message
    # the sizes of the messages so far
    done_chars = 0
    done_units = 0
    while done_chars < len(rich.text):
        # look at as much as can fit, and one character more, with its entities
        room = units - table_head.units
        text = rich.text[done_chars : done_chars + room + 1]
        until = done_units + utf16_len(text)
        # up to one entity more than fits, by which `_find_cut` sees that there are too many
        while waiting and waiting[0].offset < until and len(current) <= ENTITIES:
            current.append(waiting.popleft())
        window = Rich(text, _clip_entities(current, done_units, until))

        is_last = done_chars + len(text) == len(rich.text)
        fits = is_last and window.units <= room and len(current) <= ENTITIES
        end = len(text) if fits else _find_cut(window, room)
        piece = trim(_put_below(table_head, _slice(window, 0, end)))
        if piece.text:
            pieces.append(piece)
        table_head = _find_table_head(window, end, table_head, units // _MAX_HEAD_SHARE)
        done_chars += end
        done_units += utf16_len(text[:end])
        current = [entity for entity in current if entity.offset + entity.length > done_units]
    return pieces


def _find_table_head(rich: Rich, end: int, previous: Rich, max_units: int) -> Rich:
    """Return the head of a table that is cut at ``end``; an empty text if no table is cut there.

    A table is a code block, as `lay_out_tables` draws it. Its head is two lines: the names of its columns,
    and the rule below them. ``previous``: the head put above this message, if its table continues.
    """
    cut = utf16_len(rich.text[:end])
    for entity in rich.entities:
        is_cut_here = entity.offset < cut < entity.offset + entity.length
        if entity.type != MessageEntity.PRE or not is_cut_here:
            continue
        if previous.text and entity.offset == 0:
            return previous
        lines = rich.text[_find_index(rich.text, entity.offset) : end].split("\n", 2)
        if len(lines) < 3 or not _RULE_PATTERN.fullmatch(lines[1]):  # noqa: PLR2004 - the names, the rule, the rows
            continue
        head = _style_all(f"{lines[0]}\n{lines[1]}\n", [MessageEntity.PRE])
        if head.units <= max_units:
            return head
    return Rich()


def _put_below(table_head: Rich, piece: Rich) -> Rich:
    """Put the further rows of a table below its head, in one code block."""
    if not table_head.text:
        return piece
    both = table_head + piece
    # the first entity is the code block of the head; of the others, the block of the rows comes first
    entities = sorted(both.entities[1:], key=lambda entity: (entity.offset, entity.type != MessageEntity.PRE))
    rows_block, *others = entities
    block = _move_entity(rows_block, 0, rows_block.length + table_head.units)
    return Rich(both.text, (block, *others))


def _find_cut(rich: Rich, units: int) -> int:
    """Return the index at which to cut a text so that it has at most ``units`` and `ENTITIES`.

    At least one character comes before the cut.
    """
    if len(rich.entities) > ENTITIES:
        starts = sorted(entity.offset for entity in rich.entities)
        units = min(units, max(starts[ENTITIES], 1))
    furthest = _find_index(rich.text, units)
    code_blocks = []
    for entity in rich.entities:
        if entity.type == MessageEntity.PRE:
            start = _find_index(rich.text, entity.offset)
            code_blocks.append((start, _find_index(rich.text, entity.offset + entity.length)))

    def is_in_code(index: int) -> bool:
        return any(start < index < end for start, end in code_blocks)

    for point in _CUT_POINTS:
        least = furthest // 2 if point.only_second_half else 0
        index = rich.text.rfind(point.mark, least, furthest)
        while index > least:
            cut = index + len(point.mark)
            if point.also_in_code or not is_in_code(cut):
                return cut
            index = rich.text.rfind(point.mark, least, index)
    return max(find_cut(rich.text, furthest), 1)


def _slice(rich: Rich, start: int, end: int) -> Rich:
    """Return the text between two indexes of characters, with its entities."""
    first_unit = utf16_len(rich.text[:start])
    end_unit = utf16_len(rich.text[:end])
    return Rich(rich.text[start:end], _clip_entities(rich.entities, first_unit, end_unit))


def _clip_entities(entities: Sequence[MessageEntity], first: int, last: int) -> tuple[MessageEntity, ...]:
    """Return the parts of the entities between two offsets, with offsets that count from ``first``."""
    clipped = []
    for entity in entities:
        entity_end = entity.offset + entity.length
        if entity.offset < last and entity_end > first:
            start = max(entity.offset, first)
            end = min(entity_end, last)
            clipped.append(_move_entity(entity, start - first, end - start))
    return tuple(clipped)


def trim(rich: Rich) -> Rich:
    """Remove blank lines before a text and all blanks after it; the first line keeps its indent."""
    blank_chars = len(rich.text) - len(rich.text.lstrip())
    start = rich.text.rfind("\n", 0, blank_chars) + 1
    part = _slice(rich, start, max(start, len(rich.text.rstrip())))
    return Rich(part.text, part.entities[:ENTITIES])


def _move_entity(entity: MessageEntity, offset: int, length: int) -> MessageEntity:
    """Return a copy of an entity at another offset and of another length."""
    return MessageEntity(
        entity.type,
        offset,
        length,
        url=entity.url,
        user=entity.user,
        language=entity.language,
        unix_time=entity.unix_time,
        date_time_format=entity.date_time_format,
    )


def _find_index(text: str, units: int) -> int:
    """Return the index of the character behind the first ``units`` UTF-16 units."""
    return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))


def break_app_links(text: str) -> str:
    """Break links that would open in the app itself: another colon takes the place of theirs.

    Null characters become blanks. The length stays the same.
    """
    return _APP_LINK_PATTERN.sub(lambda match: match[0].replace(":", "\u2236"), text.replace("\x00", " "))


def fix_surrogates_and_line_ends(text: str) -> str:
    """Replace halves of surrogate pairs, which can't be sent, and each CR LF by a line feed."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\r\n", "\n")


CARD_RENDERER = CardTextRenderer(TelegramTextBuilder(), (TEXT_UNITS, ENTITIES))
"""The renderer of cards and of teams' statuses, each within one message."""

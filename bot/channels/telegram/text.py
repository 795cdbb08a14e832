"""Text as Telegram takes it: plain text with entities counted in UTF-16 units.

Answers come from CommonMark in ``markdown.py``. Cards are put together from `plain` and `style` pieces, where
nothing is markup.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from telegram import MessageEntity, User

from bot.channels.card_text import CardTextRenderer, TextBuilder
from bot.channels.telegram.limits import ENTITIES, TEXT_UNITS
from bot.channels.telegram.places import NAME
from bot.domain.direction import FIRST_STRONG_ISOLATE, POP_ISOLATE, runs_right_to_left, set_apart
from bot.domain.people import Actor
from bot.domain.text import escape_point, make_visible, whole_until
from bot.domain.times import format_local

_APP_LINK = re.compile(r"\b(tg|ton|tonsite)://", re.IGNORECASE)
_FOLD = MessageEntity.EXPANDABLE_BLOCKQUOTE
_QUOTE = MessageEntity.BLOCKQUOTE
_RULE = re.compile(r"-+(?:\+-+)*")  # below the names of a table's columns
_COLUMNS_SHARE = 4  # they are repeated where they are at most that part of a message
_CUTS = (  # where to cut, whether only in the second half, whether inside code
    ("\n\n", True, False),
    ("\n", True, False),
    ("\n", False, False),
    ("\n", True, True),
    (" ", True, True),
)


def utf16_len(text: str) -> int:
    """Return the length in UTF-16 code units, as Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class Rich:
    """Text and its entities; adding two shifts the entities of the second."""

    text: str = ""
    entities: tuple[MessageEntity, ...] = ()

    def __add__(self, other: "Rich") -> "Rich":
        moved = tuple(_clip_entity(e, e.offset + self.units, e.length) for e in other.entities)
        return Rich(self.text + other.text, self.entities + moved)

    @property
    def units(self) -> int:
        """Length in UTF-16 code units."""
        return utf16_len(self.text)

    @property
    def fits(self) -> bool:
        return self.units <= TEXT_UNITS and len(self.entities) <= ENTITIES


def plain(text: str) -> Rich:
    """Return unstyled text; characters that could disguise its meaning are shown as escapes.

    What others wrote in it keeps its own direction.
    """
    return Rich(set_apart(_visible(text)))


def style(text: str, *kinds: str) -> Rich:
    """Put the whole text in one style; none for empty or blank text.

    What is written from right to left stands between marks of direction, in code outside of it; a block of it
    is a quote, where each line can have its own.
    """
    shown = _visible(text)
    if not shown.strip() or not kinds:
        return plain(text)
    if not runs_right_to_left(shown):
        return Rich(shown, tuple(MessageEntity(kind, 0, utf16_len(shown)) for kind in kinds))
    if MessageEntity.CODE in kinds:
        inside = Rich(shown, tuple(MessageEntity(kind, 0, utf16_len(shown)) for kind in kinds))
        return Rich(FIRST_STRONG_ISOLATE) + inside + Rich(POP_ISOLATE)
    shown, kinds = set_apart(shown), tuple(_QUOTE if kind == MessageEntity.PRE else kind for kind in kinds)
    return Rich(shown, tuple(MessageEntity(kind, 0, utf16_len(shown)) for kind in kinds))


def _visible(text: str) -> str:
    return make_visible(drop_halves(text), escape_point)


def join(parts: Iterable[Rich], between: str = "\n") -> Rich:
    texts: list[str] = []
    entities: list[MessageEntity] = []
    at = 0
    for part in parts:
        entities += (_clip_entity(e, e.offset + at, e.length) for e in part.entities)
        texts.append(part.text)
        at += part.units + utf16_len(between)
    return Rich(between.join(texts), tuple(entities))


def mention(actor: Actor) -> Rich:
    """Return a person's name that notifies them, once in each message.

    Only the name for someone elsewhere.
    """
    name = plain(actor.label)
    if actor.channel != NAME or not actor.key.isdecimal():
        return name
    user = User(int(actor.key), actor.label, is_bot=False)
    return Rich(name.text, (MessageEntity(MessageEntity.TEXT_MENTION, 0, name.units, user=user),))


class TelegramTextBuilder(TextBuilder[Rich]):
    """Cards as text with entities; sizes in UTF-16 units and entities."""

    folds = True

    def write(self, text: str, *styles: str) -> Rich:
        return style(text, *(_FOLD if style == "fold" else style for style in styles))

    def moment(self, at: datetime, *, relative: bool = False) -> Rich:
        """Return a time that apps format themselves; old apps show the text instead."""
        text = format_local(at)
        kind, style = MessageEntity.DATE_TIME, "r" if relative else "dt"
        return Rich(text, (MessageEntity(kind, 0, len(text), unix_time=at, date_time_format=style),))

    def mention(self, actor: Actor) -> Rich:
        return mention(actor)

    def joined(self, parts: Iterable[Rich], between: str = "\n") -> Rich:
        return join(parts, between)

    def size(self, made: Rich) -> tuple[int, ...]:
        return made.units, len(made.entities)

    def cut(self, text: str, units: int) -> str:
        return next((piece.text for piece in split(plain(text), units)), "")


def web_link(url: str) -> bool:
    """Return whether this is an ordinary link that leads out of the app to a named host."""
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
    columns = Rich()
    waiting = deque(sorted(rich.entities, key=lambda entity: entity.offset))
    near: list[MessageEntity] = []  # those that reach into the next message
    start = done = 0  # characters and units that are in messages already
    while start < len(rich.text):
        room = units - columns.units
        text = rich.text[start : start + room + 1]
        until = done + utf16_len(text)
        while waiting and waiting[0].offset < until and len(near) <= ENTITIES:
            near.append(waiting.popleft())
        rest = Rich(text, _within(near, done, until))
        last = start + len(text) == len(rich.text) and rest.units <= room and len(near) <= ENTITIES
        end = len(text) if last else _cut(rest, room)
        pieces.append(_under(columns, _part(rest, 0, end)))
        columns = _columns_at(rest, end, columns, units // _COLUMNS_SHARE)
        start, done = start + end, done + utf16_len(text[:end])
        near = [entity for entity in near if entity.offset + entity.length > done]
    return [kept for piece in pieces if (kept := trim(piece)).text]


def _columns_at(rest: Rich, end: int, before: Rich, most: int) -> Rich:
    """Return the lines that name the columns of a table that is cut there; nothing where none is."""
    at = utf16_len(rest.text[:end])
    for each in rest.entities:
        if each.type != MessageEntity.PRE or not each.offset < at < each.offset + each.length:
            continue
        if before.text and each.offset == 0:
            return before
        lines = rest.text[_index(rest.text, each.offset) : end].split("\n", 2)
        if len(lines) == len(("names", "rule", "rows")) and _RULE.fullmatch(lines[1]):
            head = Rich(f"{lines[0]}\n{lines[1]}\n")
            if head.units <= most:
                return Rich(head.text, (MessageEntity(MessageEntity.PRE, 0, head.units),))
    return Rich()


def _under(columns: Rich, piece: Rich) -> Rich:
    """Put the names of the columns above what follows of their table, in one block with it."""
    if not columns.text:
        return piece
    both = columns + piece
    block, *others = sorted(both.entities[1:], key=lambda each: (each.offset, each.type != MessageEntity.PRE))
    return Rich(both.text, (_clip_entity(block, 0, block.length + columns.units), *others))


def _cut(rich: Rich, units: int) -> int:
    """Find the index at which to cut, at least one character in."""
    if len(rich.entities) > ENTITIES:
        starts = sorted(e.offset for e in rich.entities)
        units = min(units, max(starts[ENTITIES], 1))
    furthest = _index(rich.text, units)
    blocks = [
        (_index(rich.text, e.offset), _index(rich.text, e.offset + e.length))
        for e in rich.entities
        if e.type == MessageEntity.PRE
    ]

    def inside(at: int) -> bool:
        return any(start < at < end for start, end in blocks)

    for mark, near, code in _CUTS:
        least = furthest // 2 if near else 0
        at = rich.text.rfind(mark, least, furthest)
        while at > least and not code and inside(at + len(mark)):
            at = rich.text.rfind(mark, least, at)
        if at > least and (code or not inside(at + len(mark))):
            return at + len(mark)
    return max(whole_until(rich.text, furthest), 1)


def _part(rich: Rich, start: int, end: int) -> Rich:
    first, last = utf16_len(rich.text[:start]), utf16_len(rich.text[:end])
    return Rich(rich.text[start:end], _within(rich.entities, first, last))


def _within(entities: Sequence[MessageEntity], first: int, last: int) -> tuple[MessageEntity, ...]:
    """Return the entities between two offsets, counted from the first."""
    return tuple(
        _clip_entity(e, max(e.offset, first) - first, min(e.offset + e.length, last) - max(e.offset, first))
        for e in entities
        if e.offset < last and e.offset + e.length > first
    )


def trim(rich: Rich) -> Rich:
    """Cut off blank lines before and all blanks after; the first line keeps its indent."""
    start = rich.text.rfind("\n", 0, len(rich.text) - len(rich.text.lstrip())) + 1
    part = _part(rich, start, max(start, len(rich.text.rstrip())))
    return Rich(part.text, part.entities[:ENTITIES])


def _clip_entity(entity: MessageEntity, offset: int, length: int) -> MessageEntity:
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


def _index(text: str, units: int) -> int:
    return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))


def keep_harmless(text: str) -> str:
    """Replace links that would open in the app itself, at equal length."""
    return _APP_LINK.sub(lambda m: m[0].replace(":", "\u2236"), text.replace("\x00", " "))


def drop_halves(text: str) -> str:
    """Replace lone surrogates, which can't be sent."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\r\n", "\n")


OUTLINER = CardTextRenderer(TelegramTextBuilder(), (TEXT_UNITS, ENTITIES))

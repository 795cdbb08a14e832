"""A `Card` as Discord shows it: an embed and rows of buttons. Pure; posting is in ``channel.py``.

A card whose change does not fit has *View all* where Approve would be; Approve is below what that shows.
Which buttons there are, and what each asks for, is told by the card and ``bot/domain/verbs.py`` alone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.channels.discord.limits import BUTTON, CUSTOM_ID, EMBED_TEXT, IN_ROW, LINK, ROWS
from bot.channels.discord.places import NAME
from bot.channels.discord.text import clean, cut, fenced, literal, moment, width
from bot.domain.buttons import ButtonMark, Way
from bot.domain.cards import Card, Tone
from bot.domain.files import RESULT_SHOWN
from bot.domain.forms import label_of, told_values
from bot.domain.people import Actor
from bot.domain.proposals import Kind, PreviewField, State
from bot.domain.verbs import VIEW_ALL, Look, Needs, Verb, with_reason

_TITLE = 400  # units
_VALUE = 700
_SHORT = 60
_LINE = 200
_POINTS = 3  # of the notes and of the votes, the newest
_CUT = "*… cut here: View all shows the rest, then it can be approved.*"
_SIGNS = {Tone.WAITING: "🟡", Tone.GOOD: "✅", Tone.BAD: "🔴", Tone.WARNED: "🟠", Tone.QUIET: "⚪"}
_COLOURS = {Tone.WAITING: 0xF1C40F, Tone.GOOD: 0x2ECC71, Tone.BAD: 0xE74C3C, Tone.WARNED: 0xE67E22}
_GREY = 0x95A5A6
_STYLES = {Look.PRIMARY: 3, Look.DANGER: 4, Look.PLAIN: 2}
_LINK_STYLE = 5
APPROVING = frozenset({Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL})
GROUP = frozenset({Verb.APPROVE_ALL, Verb.DECLINE_ALL})

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DiscordCard:
    """``message`` is what to post; ``whole`` says that nothing of what would run was cut."""

    message: dict[str, Any]
    whole: bool


def render(card: Card) -> DiscordCard:
    """Lay out the pending or the resolved twin, within one embed whatever the card holds."""
    title, foot = cut(card.headline, _TITLE), _foot(card)
    head = [f"{_SIGNS[card.tone]} **{literal(title)}**", *(_about(card) if card.pending else ())]
    if width("\n".join([*head, *foot])) > EMBED_TEXT:  # escaped, a result may take twice its length
        foot[-1] = fenced(cut(card.result, _LINE))
    body, whole = _body(card, EMBED_TEXT - width("\n".join([*head, *foot, _CUT])) - 2)
    whole = whole and title == clean(card.headline)
    parts = [*head, *body, *([] if whole else [_CUT]), *foot] if card.pending else [*head, *foot]
    embed = {"description": "\n".join(parts), "color": _COLOURS.get(card.tone, _GREY)}
    return DiscordCard({"content": "", "embeds": [embed], "components": rows(card, whole=whole)}, whole)


def _about(card: Card) -> list[str]:
    said = f"⚠️ {_line(card.warning)}" if card.warning else ""
    if card.kind is Kind.QUESTION and card.risk_reason:
        said = f"*{_line(card.risk_reason)}*"
    return [each for each in (said, f"**Why:** {_line(card.reason)}" if card.reason else "") if each]


def _body(card: Card, room: int) -> tuple[list[str], bool]:
    """Give the change field by field, as far as it fits, and whether that is all of it."""
    told = told_values(card.schema, card.arguments) if not card.fields else ()
    fields = card.fields or [PreviewField(label_of(name), None, said) for name, said in told]
    lines: list[str] = []
    for each in fields:
        if width("\n".join([*lines, line := _field(each)])) > room:
            return lines, False
        lines.append(line)
    values = [value for each in fields for value in (each.field, each.old_value, each.new_value) if value]
    return lines, all(width(clean(value)) <= _VALUE for value in values)


def _field(each: PreviewField) -> str:
    same = each.old_value in (None, each.new_value)
    values = [each.new_value] if same else [each.old_value, each.new_value]
    short = all(value is None or (len(value) <= _SHORT and "\n" not in value) for value in values)
    shown = (" → " if short else "\n→\n").join(_value(value, short=short) for value in values)
    return f"**{literal(cut(each.field, _VALUE))}:**{' ' if short else chr(10)}{shown}"


def _value(value: str | None, *, short: bool) -> str:
    if not value:
        return "(nothing)" if value is None else "(empty)"
    return literal(value) if short else fenced(cut(value, _VALUE))


def _foot(card: Card) -> list[str]:
    points = [f"• {_line(each, 120)}" for each in (*card.notes[-_POINTS:], *card.tally[-_POINTS:])]
    if card.pending:
        who = [] if card.asker_decides else [f"**Can decide:** {_deciders(card)}"]
        return [f"{_line(card.asked)} · expires {moment(card.expires_at, 'R')}", *who, *points]
    decided = card.decided_at if card.state is not State.EXPIRED else None
    outcome = literal(cut(card.outcome.removesuffix(".") if decided else card.outcome, _TITLE))
    ended = f"{outcome} · {moment(decided, 'f')}" if decided else outcome
    return [ended, *points, *([fenced(cut(card.result, RESULT_SHOWN))] if card.result else [])]


def _deciders(card: Card) -> str:
    """Who may decide; people in Discord as a mention, which in an embed notifies no one."""
    named = "".join(map(_decider, card.circle.parts))
    return named if width(named) <= _LINE else _line(card.deciders)


def _decider(part: Actor | str) -> str:
    if isinstance(part, str):
        return literal(part)
    return f"<@{part.key}>" if part.channel == NAME else literal(part.label)


def _line(text: str, units: int = _LINE) -> str:
    return literal(cut(text, units))


def rows(card: Card, *, whole: bool) -> list[Row]:
    """Give the buttons of a card; where it does not show everything, none that approves."""
    hidden = card.pending and not whole
    offered = [verb for verb in card.verbs if verb not in GROUP and not (hidden and verb in APPROVING)]
    first = [labelled(card, verb) for verb in offered if not card.button(verb).rare]
    rare = [labelled(card, verb) for verb in offered if card.button(verb).rare]
    rare += [labelled(card, verb, Way.WHY) for verb in offered if card.button(verb).needs is Needs.REASON]
    if not whole or (card.data and not card.pending):
        view = labelled(card, Verb.APPROVE, Way.VIEW, VIEW_ALL)
        first, rare = ([view, *first], rare) if hidden else (first, [*rare, view])
    if not card.pending and card.result_url and _web(card.result_url):
        first.append({"type": 2, "style": _LINK_STYLE, "label": "Open", "url": card.result_url})
    return laid_out([*in_rows(first), *in_rows(rare), [labelled(card, v) for v in card.verbs if v in GROUP]])


def labelled(card: Card, verb: Verb, way: Way = Way.PRESS, label: str = "", page: int = 0) -> Row:
    button = card.button(verb)
    label = label or (with_reason(button) if way is Way.WHY else button.label)
    data = ButtonMark(way, verb, card.proposal_id, shown_round(card, verb), page)
    style = _STYLES[button.look if way in (Way.PRESS, Way.READ) else Look.PLAIN]
    return {"type": 2, "style": style, "label": cut(label, BUTTON), "custom_id": data.pack(CUSTOM_ID)}


def shown_round(card: Card, verb: Verb) -> int:
    return card.group.round if verb in GROUP and card.group else card.round


def in_rows(buttons: Sequence[Row]) -> list[list[Row]]:
    return [list(buttons[at : at + IN_ROW]) for at in range(0, len(buttons), IN_ROW)]


def laid_out(found: Iterable[list[Row]]) -> list[Row]:
    return [{"type": 1, "components": row} for row in found if row][:ROWS]


def _web(url: str) -> bool:
    return url.startswith(("https://", "http://")) and len(url) <= LINK and not re.search(r"[\s<>]", url)

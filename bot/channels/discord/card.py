"""A `Card` as Discord shows it: an embed and rows of buttons. Pure; posting is in ``channel.py``.

A card whose change does not fit has *View all* where Approve would be; Approve is below what that shows.
Which buttons there are, and what each asks for, is told by the card and ``bot/domain/verbs.py`` alone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.channels.discord.places import BUTTON, CUSTOM_ID, IN_ROW, LINK, ROWS
from bot.channels.discord.text import OUTLINER, cut
from bot.domain.batches import Picked, format_split_label, page_of
from bot.domain.cards import Batch, Card
from bot.domain.chat import make_choice_buttons
from bot.domain.proposals import Tone
from bot.domain.verbs import (
    CHOOSE,
    CONTEXT,
    DETAILS,
    EACH_ROW,
    VIEW_ALL,
    ButtonMark,
    Look,
    Needs,
    Verb,
    Way,
    with_reason,
)

_COLOURS = {Tone.WAITING: 0xF1C40F, Tone.GOOD: 0x2ECC71, Tone.BAD: 0xE74C3C, Tone.WARNED: 0xE67E22}
_GREY = 0x95A5A6
_STYLES = {Look.PRIMARY: 3, Look.DANGER: 4, Look.PLAIN: 2}
_LINK_STYLE = 5
APPROVING = frozenset({Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL})
GROUP = frozenset({Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL})

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DiscordCard:
    """A message with a card; ``whole`` says that nothing of what would run was cut."""

    message: dict[str, Any]
    whole: bool


def render(card: Card) -> DiscordCard:
    """Lay out the pending or the resolved twin, within one embed whatever the card holds."""
    laid = OUTLINER.card(card)
    embed = {"description": laid.made, "color": _COLOURS.get(card.tone, _GREY)}
    components = rows(card, whole=not laid.cut)
    return DiscordCard({"content": "", "embeds": [embed], "components": components}, not laid.cut)


def rows(card: Card, *, whole: bool) -> list[Row]:
    """Give the buttons of a card; where it does not show everything, none that approves."""
    if card.batch:
        return _for_rows(card, card.batch, hidden=card.pending and not whole)
    hidden = card.pending and not whole
    offered = [verb for verb in card.verbs if verb not in GROUP and not (hidden and verb in APPROVING)]
    first = [make_labelled_button(card, verb) for verb in offered if not card.button(verb).rare]
    rare = [make_labelled_button(card, verb) for verb in offered if card.button(verb).rare]
    rare += [
        make_labelled_button(card, verb, Way.WHY)
        for verb in offered
        if card.button(verb).needs is Needs.REASON
    ]
    rare += [make_labelled_button(card, Verb.APPROVE, Way.CONTEXT, CONTEXT)] if card.led else []
    if not whole or not card.pending:
        view = make_labelled_button(card, Verb.APPROVE, Way.VIEW, VIEW_ALL if card.pending else DETAILS)
        first, rare = ([view, *first], rare) if hidden else (first, [*rare, view])
    if not card.pending and card.result_url and _web(card.result_url):
        first.append({"type": 2, "style": _LINK_STYLE, "label": "Open", "url": card.result_url})
    return lay_out_rows(
        [*in_rows(first), *in_rows(rare), [make_labelled_button(card, v) for v in card.verbs if v in GROUP]]
    )


def _for_rows(card: Card, batch: Batch, *, hidden: bool) -> list[Row]:
    """Return the buttons of a batch."""
    if hidden or not card.pending:
        view = [make_labelled_button(card, Verb.APPROVE_ALL, Way.VIEW, VIEW_ALL)]
    else:
        view = []
    approve = [make_labelled_button(card, v) for v in (Verb.APPROVE_ALL,) if v in card.verbs and not hidden]
    if card.pending:
        choose = [make_labelled_button(card, Verb.APPROVE_ALL, Way.CHOOSE, CHOOSE)]
    else:
        choose = []
    if not card.pending and batch.offers:
        choose = [make_labelled_button(card, Verb.APPROVE_ALL, Way.LOOK, EACH_ROW)]
    others = [
        make_labelled_button(card, v)
        for v in (Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL)
        if v in card.verbs
    ]
    if card.led:
        led = [make_labelled_button(card, Verb.APPROVE_ALL, Way.CONTEXT, CONTEXT)]
    else:
        led = []
    return lay_out_rows([[*view, *approve, *choose, *others], led])


def choosing(card: Card, page: int, picked: Picked, *, looks: bool) -> list[Row]:
    """Return the buttons below a page of a batch's rows: one for each row, and those that decide.

    ``looks``: the numbers open their rows. What is picked is in every button.
    """
    _, rows_, pages = page_of(card, page)
    packed = picked.pack()

    def button(way: Way, label: str, at: int = page, verb: Verb = Verb.APPROVE_ALL, style: int = 2) -> Row:
        mark = ButtonMark(way, verb, card.proposal_id, card.round, at, packed)
        return {"type": 2, "style": style, "label": cut(label, BUTTON), "custom_id": mark.pack(CUSTOM_ID)}

    numbers = [
        make_labelled_button(row.card, Verb.APPROVE, Way.ROW, f"{'⚠️' if row.harms else '🔎'} {place + 1}")
        if looks or row.harms
        else button(Way.TOGGLE, f"{'✅' if place in picked.places else '⬜'} {place + 1}", place)
        for place, row in rows_
        if row.card.pending or (looks and row.offers)
    ]
    shows = Way.LOOK if looks else Way.CHOOSE
    near = ((page - 1, "←"), (page + 1, "→"))
    turns = [button(shows, f"{sign} {to + 1} of {pages}", to) for to, sign in near if 0 <= to < pages]
    approve, others = picked.split_rows(card)
    decide = []
    if approve or others:
        decide.append(
            button(Way.DECIDE, format_split_label(len(approve), len(others)), 0, style=_STYLES[Look.PRIMARY])
        )
    if approve and others:
        some = f"Approve {len(approve)}, leave {len(others)} open"
        decide.append(button(Way.DECIDE, some, 0, Verb.APPROVE))
    if looks:
        look = button(Way.CHOOSE, "Pick rows")
    else:
        look = button(Way.LOOK, "Look at one row")
    return lay_out_rows([*in_rows(numbers), [*turns, look] if card.pending else turns, decide])


def make_labelled_button(
    card: Card, verb: Verb, way: Way = Way.PRESS, label: str = "", page: int = 0, picked: str = ""
) -> Row:
    button = card.button(verb)
    label = label or (with_reason(button) if way is Way.WHY else button.label)
    data = ButtonMark(way, verb, card.proposal_id, find_shown_round(card, verb), page, picked)
    style = _STYLES[button.look if way in (Way.PRESS, Way.READ) else Look.PLAIN]
    return {"type": 2, "style": style, "label": cut(label, BUTTON), "custom_id": data.pack(CUSTOM_ID)}


def saying(choices: Iterable[str]) -> list[Row]:
    """Return a row with a button for each of these words."""
    buttons = [
        {"type": 2, "style": _STYLES[Look.PLAIN], "label": cut(label, BUTTON), "custom_id": mark}
        for label, mark in make_choice_buttons(choices)
    ]
    return lay_out_rows([buttons])


def find_shown_round(card: Card, verb: Verb) -> int:
    if verb in GROUP and card.group:
        return card.group.round
    return card.round


def in_rows(buttons: Sequence[Row]) -> list[list[Row]]:
    return [list(buttons[at : at + IN_ROW]) for at in range(0, len(buttons), IN_ROW)]


def lay_out_rows(found: Iterable[list[Row]]) -> list[Row]:
    return [{"type": 1, "components": row} for row in found if row][:ROWS]


def _web(url: str) -> bool:
    return url.startswith(("https://", "http://")) and len(url) <= LINK and not re.search(r"[\s<>]", url)

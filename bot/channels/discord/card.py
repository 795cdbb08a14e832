"""Rendering of a `Card` for Discord: an embed and rows of buttons. Pure; posting is in ``channel.py``.

A card whose change does not fit has *View all* in place of Approve. Approve is then below the full content.
The card and ``bot/domain/verbs.py`` alone decide which buttons there are, and what input each needs. A button
carries a `ButtonMark`: the verb that it presses in the end, and the way to the press, such as `Way.VIEW`
(show everything first). The first card of several in an answer also has the buttons of their group.

A batch is several calls in one table, each of which is a row. A button opens its picker, which shows pages of
rows. There each row has a button that picks the row, or opens it by itself.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.channels.discord.places import (
    BUTTON_TYPE,
    MAX_BUTTON_UNITS,
    MAX_BUTTONS_IN_ROW,
    MAX_CUSTOM_ID_CHARS,
    MAX_LINK_CHARS,
    MAX_ROWS,
    ROW_TYPE,
)
from bot.channels.discord.text import CARD_RENDERER, cut_label
from bot.domain.batch_picks import Picked, format_split_label, page_of
from bot.domain.cards import Batch, Card
from bot.domain.chat import LinkButton, make_choice_buttons, make_offer_mark
from bot.domain.hooks import CommandOffer
from bot.domain.proposal_states import Tone
from bot.domain.verbs import (
    CHOOSE_LABEL,
    CONTEXT_LABEL,
    DETAILS_LABEL,
    ROWS_LABEL,
    VIEW_ALL_LABEL,
    ButtonMark,
    Look,
    Needs,
    Verb,
    Way,
    make_label_with_reason,
)

_COLOURS = {Tone.WAITING: 0xF1C40F, Tone.GOOD: 0x2ECC71, Tone.BAD: 0xE74C3C, Tone.WARNED: 0xE67E22}
_DEFAULT_COLOUR = 0x95A5A6
_BUTTON_STYLES = {Look.PRIMARY: 3, Look.DANGER: 4, Look.PLAIN: 2}
_LINK_STYLE = 5
APPROVING_VERBS = frozenset({Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL})
"""Verbs that approve: a card that was cut offers none of them."""
GROUP_VERBS = frozenset({Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL})
"""Verbs for all proposals of a group or batch."""

Component = dict[str, Any]  # a button, or a row of them


@dataclass(frozen=True, slots=True)
class DiscordCard:
    """A message with a card."""

    message: dict[str, Any]  # the body of Discord's request
    shows_all: bool  # nothing of the change was cut


def render(card: Card) -> DiscordCard:
    """Render a card, pending or resolved, as one embed with buttons."""
    parts = CARD_RENDERER.card(card)
    shows_all = not parts.is_change_cut
    embed = {"description": parts.text, "color": _COLOURS.get(card.tone, _DEFAULT_COLOUR)}
    components = make_button_rows(card, shows_all=shows_all)
    return DiscordCard({"content": "", "embeds": [embed], "components": components}, shows_all)


def make_button_rows(card: Card, *, shows_all: bool) -> list[Component]:
    """Return the buttons of a card. A pending card that was cut gets none that approves."""
    must_view_first = card.pending and not shows_all
    if card.batch:
        return _make_batch_rows(card, card.batch, must_view_first=must_view_first)
    verbs = [verb for verb in card.verbs if verb not in GROUP_VERBS]
    if must_view_first:
        verbs = [verb for verb in verbs if verb not in APPROVING_VERBS]

    usual = [make_labelled_button(card, verb) for verb in verbs if not card.button(verb).is_in_menu]
    rare = [make_labelled_button(card, verb) for verb in verbs if card.button(verb).is_in_menu]
    with_reasons = [verb for verb in verbs if card.button(verb).needs is Needs.REASON]
    rare += [make_labelled_button(card, verb, Way.WHY) for verb in with_reasons]

    if card.has_context:  # people may read the turn that led to the proposal
        rare.append(make_labelled_button(card, Verb.APPROVE, Way.CONTEXT, CONTEXT_LABEL))
    view_label = VIEW_ALL_LABEL if card.pending else DETAILS_LABEL
    view = make_labelled_button(card, Verb.APPROVE, Way.VIEW, view_label)
    if must_view_first:
        usual.insert(0, view)
    elif not shows_all or not card.pending:
        rare.append(view)

    if not card.pending and card.result_url and _is_link(card.result_url):
        usual.append({"type": BUTTON_TYPE, "style": _LINK_STYLE, "label": "Open", "url": card.result_url})
    group = [make_labelled_button(card, verb) for verb in card.verbs if verb in GROUP_VERBS]
    return lay_out_rows([*split_rows(usual), *split_rows(rare), group])


def _make_batch_rows(card: Card, batch: Batch, *, must_view_first: bool) -> list[Component]:
    """Return the buttons of a batch: those of its card, then the one that shows what led to it."""
    buttons = []
    if must_view_first or not card.pending:
        buttons.append(make_labelled_button(card, Verb.APPROVE_ALL, Way.VIEW, VIEW_ALL_LABEL))
    if Verb.APPROVE_ALL in card.verbs and not must_view_first:
        buttons.append(make_labelled_button(card, Verb.APPROVE_ALL))
    if card.pending:
        buttons.append(make_labelled_button(card, Verb.APPROVE_ALL, Way.CHOOSE, CHOOSE_LABEL))
    elif batch.has_buttons:  # some row has a button of its own, such as Undo
        buttons.append(make_labelled_button(card, Verb.APPROVE_ALL, Way.SHOW_ROWS, ROWS_LABEL))
    others = [verb for verb in (Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL) if verb in card.verbs]
    buttons += [make_labelled_button(card, verb) for verb in others]
    context = []
    if card.has_context:
        context.append(make_labelled_button(card, Verb.APPROVE_ALL, Way.CONTEXT, CONTEXT_LABEL))
    return lay_out_rows([buttons, context])


def make_picker_rows(card: Card, page: int, picked: Picked, *, opens_rows: bool) -> list[Component]:
    """Return the buttons below a page of a batch's rows: one for each row, and the buttons that decide.

    The button of a row picks it or leaves it; with ``opens_rows`` it opens the row instead. The other buttons
    carry the picked rows, which are stored nowhere else.
    """
    _, page_rows, pages = page_of(card, page)
    packed = picked.pack()

    def make_button(
        way: Way,
        label: str,
        page_or_row: int = page,  # the number of a page; for TOGGLE the position of a row
        verb: Verb = Verb.APPROVE_ALL,
        style: int = _BUTTON_STYLES[Look.PLAIN],
    ) -> Component:
        mark = ButtonMark(way, verb, card.proposal_id, card.round, page_or_row, packed)
        return {
            "type": BUTTON_TYPE,
            "style": style,
            "label": cut_label(label, MAX_BUTTON_UNITS),
            "custom_id": mark.pack(MAX_CUSTOM_ID_CHARS),
        }

    row_buttons = []
    for position, row in page_rows:
        # a row that was decided can be opened if it has buttons of its own, such as Undo
        is_listed = row.card.pending or (opens_rows and row.has_buttons)
        if not is_listed:
            continue
        if opens_rows or row.needs_own_decision:  # a change that can't be undone is never picked
            sign = "⚠️" if row.needs_own_decision else "🔎"
            label = f"{sign} {position + 1}"
            row_buttons.append(make_labelled_button(row.card, Verb.APPROVE, Way.ROW, label))
        else:
            sign = "✅" if position in picked.positions else "⬜"
            row_buttons.append(make_button(Way.TOGGLE, f"{sign} {position + 1}", position))
    page_way = Way.SHOW_ROWS if opens_rows else Way.CHOOSE
    controls = []
    for target, sign in ((page - 1, "←"), (page + 1, "→")):
        if 0 <= target < pages:
            controls.append(make_button(page_way, f"{sign} {target + 1} of {pages}", target))
    if card.pending and opens_rows:
        controls.append(make_button(Way.CHOOSE, "Pick rows"))
    elif card.pending:
        controls.append(make_button(Way.SHOW_ROWS, "Look at one row"))
    approve, others = picked.split_rows(card)
    decide = []
    if approve or others:
        label = format_split_label(len(approve), len(others))
        decide.append(make_button(Way.DECIDE, label, 0, style=_BUTTON_STYLES[Look.PRIMARY]))
    # with the verb APPROVE the other rows stay open; with APPROVE_ALL they are declined
    if approve and others:
        label = f"Approve {len(approve)}, leave {len(others)} open"
        decide.append(make_button(Way.DECIDE, label, 0, Verb.APPROVE))
    return lay_out_rows([*split_rows(row_buttons), controls, decide])


def make_labelled_button(
    card: Card, verb: Verb, way: Way = Way.PRESS, label: str = "", page: int = 0, picked: str = ""
) -> Component:
    """Return the button of a verb, with the verb's own label unless ``label`` is given.

    ``page``: the page of a batch's picker, or of an edit form. ``picked``: the picked rows of a batch, as
    `Picked.pack` returns them.
    """
    button = card.button(verb)
    if not label:
        label = make_label_with_reason(button) if way is Way.WHY else button.label
    mark = ButtonMark(way, verb, card.proposal_id, find_shown_round(card, verb), page, picked)
    look = button.look if way in (Way.PRESS, Way.READ) else Look.PLAIN
    style = _BUTTON_STYLES[look]
    return {
        "type": BUTTON_TYPE,
        "style": style,
        "label": cut_label(label, MAX_BUTTON_UNITS),
        "custom_id": mark.pack(MAX_CUSTOM_ID_CHARS),
    }


def make_choice_rows(choices: Iterable[str]) -> list[Component]:
    """Return a row with a button for each of these choices; nothing without choices."""
    buttons = [
        {
            "type": BUTTON_TYPE,
            "style": _BUTTON_STYLES[Look.PLAIN],
            "label": cut_label(label, MAX_BUTTON_UNITS),
            "custom_id": mark,
        }
        for label, mark in make_choice_buttons(choices)
    ]
    return lay_out_rows([buttons])


def make_link_row(link: LinkButton | None) -> list[Component]:
    """Return a row with the button that opens a page; no row without a link."""
    if link is None:
        return []
    label = cut_label(link.label, MAX_BUTTON_UNITS)
    button = {"type": BUTTON_TYPE, "style": _LINK_STYLE, "label": label, "url": link.url}
    return lay_out_rows([[button]])


def make_offer_rows(offers: Sequence[CommandOffer]) -> list[Component]:
    """Return rows with a button for each command, with the number of its line."""
    buttons = [
        {
            "type": BUTTON_TYPE,
            "style": _BUTTON_STYLES[Look.PLAIN],
            "label": cut_label(f"{offer.label} {number}", MAX_BUTTON_UNITS),
            "custom_id": make_offer_mark(offer.text),
        }
        for number, offer in enumerate(offers, 1)
    ]
    return lay_out_rows(split_rows(buttons))


def find_shown_round(card: Card, verb: Verb) -> int:
    """Return the round that the button of a verb carries: that of the card, or of its group.

    A round grows with each edit. A press with an older round is refused.
    """
    if verb in GROUP_VERBS and card.group:
        return card.group.round
    return card.round


def split_rows(buttons: Sequence[Component]) -> list[list[Component]]:
    """Split buttons into rows of at most `MAX_BUTTONS_IN_ROW`."""
    starts = range(0, len(buttons), MAX_BUTTONS_IN_ROW)
    return [list(buttons[start : start + MAX_BUTTONS_IN_ROW]) for start in starts]


def lay_out_rows(rows_of_buttons: Iterable[list[Component]]) -> list[Component]:
    """Return rows of buttons as components; only the first `MAX_ROWS` fit."""
    return [{"type": ROW_TYPE, "components": buttons} for buttons in rows_of_buttons if buttons][:MAX_ROWS]


def _is_link(url: str) -> bool:
    is_web = url.startswith(("https://", "http://"))
    return is_web and len(url) <= MAX_LINK_CHARS and not re.search(r"[\s<>]", url)

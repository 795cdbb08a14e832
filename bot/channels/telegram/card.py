"""A card as Telegram shows it: text with entities and an inline keyboard. Pure.

A card whose changes do not fit one message is cut with a marker, and VIEW_ALL stands where Approve would:
all of it is shown by `whole`, and Approve is under its last message. The text is laid out in
``bot/channels/card_text.py``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import CopyTextButton, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.constants import KeyboardButtonStyle

from bot.channels.streamed_message import MOST_POSTS
from bot.channels.telegram.buttons import SURE, VERBS, ButtonData, Does, does_of, make_disabled_button
from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.text import OUTLINER, Rich, split, style, trim, web_link
from bot.domain.batches import Picked, format_split_label, page_of
from bot.domain.cards import Batch, Card, everything
from bot.domain.verbs import (
    CHOICES,
    CHOOSE,
    CONTEXT,
    DETAILS,
    EACH_ROW,
    VIEW_ALL,
    Look,
    Needs,
    Verb,
    with_reason,
)

_STYLES = {
    Look.PRIMARY: KeyboardButtonStyle.SUCCESS,
    Look.DANGER: KeyboardButtonStyle.DANGER,
    Look.PLAIN: KeyboardButtonStyle.PRIMARY,
}
_ROWS = (
    (Verb.APPROVE, Verb.ANSWER, Verb.DECLINE, Verb.RETRY, Verb.STOP, Verb.UNDO),
    (Verb.EDIT, Verb.REVISE),
    (Verb.APPROVE_STEPS, Verb.FOR_REAL),
    (Verb.SIMILAR, Verb.EXTEND),
)
_PLACED = frozenset({*CHOICES, *(verb for row in _ROWS for verb in row)})
_MORE = "⋯ More"
_GROUP = (Verb.APPROVE_ALL, Verb.DECLINE_ALL)
_APPROVING = frozenset({Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL})
_IN_ROW = 5
_OF_ALL = (Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL)


@dataclass(frozen=True, slots=True)
class TelegramCard:
    """A message with a card; ``cut`` says that something of what would run is not in the text."""

    rich: Rich
    keyboard: InlineKeyboardMarkup | None
    cut: bool


def render_card(card: Card, unseen: int = 0, *, more: bool = False) -> TelegramCard:
    """Lay out the pending or the resolved twin; fits one message whatever the card holds.

    ``unseen``: how many others of its group are cut and have not been viewed where this card stands.
    ``more``: with the buttons that are rarely wanted.
    """
    laid = OUTLINER.card(card)
    buttons = keyboard(card, cut=laid.cut, left_out=laid.left_out, unseen=unseen, more=more)
    return TelegramCard(trim(laid.made), buttons, laid.cut)


def keyboard(
    card: Card,
    *,
    cut: bool,
    left_out: bool = False,
    viewed: bool = False,
    unseen: int = 0,
    more: bool = False,
) -> InlineKeyboardMarkup | None:
    """Give the buttons of the card; ``viewed``: those under the whole payload, where Approve may stand.

    ``left_out``: View all is worth a press, but nothing of what would run is missing. ``more``: what is
    rarely wanted stands there, too, and not behind a button.
    What asks for something that Telegram has no screen for is not offered.
    """
    if card.batch:
        return _for_rows(card, card.batch, hidden=cut and not viewed, left_out=left_out, viewed=viewed)
    hidden = cut and card.pending and not viewed
    offered = _list_verbs(card, hidden=hidden)
    rows: list[list[InlineKeyboardButton]] = []
    if hidden:
        rows.append([_viewing(card, Does.VIEW, VIEW_ALL)])
    rows += [[_button(card, a) for a in row if a in offered] for row in _ROWS[:-1]]
    if hidden and Verb.APPROVE in card.verbs:
        rows[1].insert(0, make_disabled_button(card.button(Verb.APPROVE).label))
    rare = _rare(card, offered)
    if any(rare) and not more and not viewed:
        rare = []
        rows[1 + hidden].append(_viewing(card, Does.MORE, _MORE, style=None))  # next to Edit
    rows += [*rare, *_write_copy_row(card)] if more else rare
    rows[:0] = [[_button(card, a)] for a in CHOICES if a in offered]
    if left_out and card.pending and not cut and not viewed:
        rows.append([_viewing(card, Does.VIEW, VIEW_ALL, style=None)])
    group = [_button(card, a) for a in _GROUP if a in offered and not (unseen and a is Verb.APPROVE_ALL)]
    if unseen and Verb.APPROVE_ALL in card.verbs:
        group.insert(0, _viewing(card, Does.VIEW_GROUP, f"View what is cut ({unseen + hidden})"))
    rows.append(group)
    if not card.pending and not viewed:
        linked = bool(card.result_url and web_link(card.result_url))
        opening = [InlineKeyboardButton("Open", url=card.result_url)] if linked else []
        rows.append([*opening, _viewing(card, Does.VIEW, DETAILS, style=None)])
    rows = [row for row in rows if row]
    if rows:
        return InlineKeyboardMarkup(rows)
    return None


def menu(card: Card) -> InlineKeyboardMarkup:
    """Return the buttons behind *More*, by themselves."""
    hidden = OUTLINER.card(card).cut and card.pending
    rows = [*_rare(card, _list_verbs(card, hidden=hidden)), *_write_copy_row(card)]
    return InlineKeyboardMarkup([row for row in rows if row])


def _list_verbs(card: Card, *, hidden: bool) -> list[Verb]:
    return [a for a in card.verbs if does_of(a) and not (hidden and a in _APPROVING)]


def _rare(card: Card, offered: Sequence[Verb]) -> list[list[InlineKeyboardButton]]:
    further = tuple(a for a in offered if a not in _PLACED and a not in _GROUP)
    rare = [[_button(card, a) for a in row if a in offered] for row in (_ROWS[-1], further)]
    if Verb.DECLINE in offered and card.button(Verb.DECLINE).needs is Needs.REASON:
        rare.append([_viewing(card, Does.REASON, with_reason(card.button(Verb.DECLINE)), style=None)])
    return rare + _write_context_row(card)


def _write_copy_row(card: Card) -> list[list[InlineKeyboardButton]]:
    copies = InlineKeyboardButton("Copy ID", copy_text=CopyTextButton(card.proposal_id))
    return [[copies]] if card.pending else []


def _for_rows(
    card: Card, batch: Batch, *, hidden: bool, left_out: bool, viewed: bool
) -> InlineKeyboardMarkup | None:
    """Return the buttons of a batch."""
    approves = Verb.APPROVE_ALL in card.verbs
    rows = [
        [_viewing(card, Does.VIEW, VIEW_ALL)] if hidden or (left_out and not viewed) else [],
        [
            make_disabled_button(card.button(Verb.APPROVE_ALL).label)
            if hidden
            else _button(card, Verb.APPROVE_ALL)
        ]
        if approves
        else [],
        [_viewing(card, Does.PICK, CHOOSE)] if card.pending and not viewed else [],
        [_viewing(card, Does.LOOK, EACH_ROW, None)] if not card.pending and batch.offers else [],
        [_button(card, verb) for verb in _OF_ALL if verb in card.verbs],
        *([] if viewed else _write_context_row(card)),
    ]
    found = [row for row in rows if row]
    if found:
        return InlineKeyboardMarkup(found)
    return None


def _write_context_row(card: Card) -> list[list[InlineKeyboardButton]]:
    if card.led:
        return [[_viewing(card, Does.CONTEXT, CONTEXT, style=None)]]
    return []


def choosing(card: Card, page: int, picked: Picked, *, looks: bool) -> TelegramCard:
    """Return a page of a batch's rows with a button for each: to approve it or not.

    Where it ``looks``, to open it. What is picked is in every button, so nothing of it can be lost or be
    another's.
    """
    part, rows, pages = page_of(card, page)
    packed = picked.pack()

    def button(does: Does, text: str, index: int = page, style: str | None = None) -> InlineKeyboardButton:
        data = ButtonData(does, card.proposal_id, card.round, index, packed).pack()
        return InlineKeyboardButton(text, callback_data=data, style=style)

    numbers = [
        InlineKeyboardButton(
            f"{'⚠️' if row.harms else '🔎'} {place + 1}",
            callback_data=ButtonData(Does.ROW, row.card.proposal_id, row.card.round).pack(),
        )
        if looks or row.harms
        else button(Does.TOGGLE, f"{'✅' if place in picked.places else '⬜'} {place + 1}", place)
        for place, row in rows
        if row.card.pending or (looks and row.offers)
    ]
    laid = [numbers[at : at + _IN_ROW] for at in range(0, len(numbers), _IN_ROW)]
    turns = [(page - 1, "←"), (page + 1, "→")]
    shows = Does.LOOK if looks else Does.PICK
    laid.append([button(shows, f"{sign} {to + 1} of {pages}", to) for to, sign in turns if 0 <= to < pages])
    approve, others = picked.of(card)
    if approve or others:
        laid.append(
            [button(Does.DECIDE, format_split_label(len(approve), len(others)), style=_STYLES[Look.PRIMARY])]
        )
    if approve and others:
        some = f"Approve {len(approve)}, leave {len(others)} open"
        laid.append([button(Does.DECIDE_SOME, some, style=_STYLES[Look.PLAIN])])
    if looks:
        other = button(Does.PICK, "Pick rows")
    else:
        other = button(Does.LOOK, "Look at one row")
    laid.append([*([other] if card.pending else []), button(Does.FOLD, "Back")])
    shown = OUTLINER.card(part)
    return TelegramCard(trim(shown.made), InlineKeyboardMarkup([row for row in laid if row]), shown.cut)


def question(card: Card, does: Does | Verb) -> InlineKeyboardMarkup | None:
    """Return the two answers to the question before what can't be undone, before Undo, or before Retry."""
    sure = card.button(does if isinstance(does, Verb) else VERBS[does]).sure
    if sure is None:
        return None
    answers = ((SURE[does], sure.yes, KeyboardButtonStyle.DANGER), (Does.KEEP, sure.no, None))
    return InlineKeyboardMarkup([[_viewing(card, does, label, style) for does, label, style in answers]])


def whole(card: Card) -> list[Rich] | None:
    """Give `everything` as messages; None when it is so long that it should be a file."""
    pieces = split(style(everything(card), "pre"), TEXT_UNITS)
    if len(pieces) <= MOST_POSTS:
        return pieces
    return None


def _viewing(
    card: Card, does: Does, text: str, style: KeyboardButtonStyle | None = KeyboardButtonStyle.PRIMARY
) -> InlineKeyboardButton:
    data = ButtonData(does, card.proposal_id, card.round).pack()
    return InlineKeyboardButton(text, callback_data=data, style=style)


def _button(card: Card, action: Verb) -> InlineKeyboardButton:
    drawn = card.button(action)
    style = None if drawn.rare else _STYLES[drawn.look]
    shown = card.group.round if action in _GROUP and card.group else card.round
    data = ButtonData(does_of(action) or action, card.proposal_id, shown).pack()
    return InlineKeyboardButton(drawn.label, callback_data=data, style=style)

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
from bot.channels.telegram.buttons import (
    SURE,
    VERBS,
    ButtonAction,
    ButtonData,
    action_of,
    make_disabled_button,
)
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
_VERB_ROWS = (
    (Verb.APPROVE, Verb.ANSWER, Verb.DECLINE, Verb.RETRY, Verb.STOP, Verb.UNDO),
    (Verb.EDIT, Verb.REVISE),
    (Verb.APPROVE_STEPS, Verb.FOR_REAL),
    (Verb.SIMILAR, Verb.EXTEND),
)
_VERBS_IN_ROWS = frozenset({*CHOICES, *(verb for row in _VERB_ROWS for verb in row)})
_MORE_LABEL = "⋯ More"
_GROUP_VERBS = (Verb.APPROVE_ALL, Verb.DECLINE_ALL)
_APPROVING_VERBS = frozenset(
    {Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL}
)
_MAX_BUTTONS_IN_ROW = 5
_BATCH_VERBS = (Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL)


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
        return _make_batch_keyboard(
            card, card.batch, hidden=cut and not viewed, left_out=left_out, viewed=viewed
        )
    hidden = cut and card.pending and not viewed
    offered = _list_verbs(card, hidden=hidden)
    rows: list[list[InlineKeyboardButton]] = []
    if hidden:
        rows.append([_make_action_button(card, ButtonAction.VIEW, VIEW_ALL)])
    rows += [[_make_verb_button(card, a) for a in row if a in offered] for row in _VERB_ROWS[:-1]]
    if hidden and Verb.APPROVE in card.verbs:
        rows[1].insert(0, make_disabled_button(card.button(Verb.APPROVE).label))
    rare = _make_rare_rows(card, offered)
    if any(rare) and not more and not viewed:
        rare = []
        rows[1 + hidden].append(
            _make_action_button(card, ButtonAction.MORE, _MORE_LABEL, style=None)
        )  # next to Edit
    rows += [*rare, *_make_copy_rows(card)] if more else rare
    rows[:0] = [[_make_verb_button(card, a)] for a in CHOICES if a in offered]
    if left_out and card.pending and not cut and not viewed:
        rows.append([_make_action_button(card, ButtonAction.VIEW, VIEW_ALL, style=None)])
    group = [
        _make_verb_button(card, a)
        for a in _GROUP_VERBS
        if a in offered and not (unseen and a is Verb.APPROVE_ALL)
    ]
    if unseen and Verb.APPROVE_ALL in card.verbs:
        group.insert(
            0, _make_action_button(card, ButtonAction.VIEW_GROUP, f"View what is cut ({unseen + hidden})")
        )
    rows.append(group)
    if not card.pending and not viewed:
        linked = bool(card.result_url and web_link(card.result_url))
        opening = [InlineKeyboardButton("Open", url=card.result_url)] if linked else []
        rows.append([*opening, _make_action_button(card, ButtonAction.VIEW, DETAILS, style=None)])
    rows = [row for row in rows if row]
    if rows:
        return InlineKeyboardMarkup(rows)
    return None


def make_menu(card: Card) -> InlineKeyboardMarkup:
    """Return the buttons behind *More*, by themselves."""
    hidden = OUTLINER.card(card).cut and card.pending
    rows = [*_make_rare_rows(card, _list_verbs(card, hidden=hidden)), *_make_copy_rows(card)]
    return InlineKeyboardMarkup([row for row in rows if row])


def _list_verbs(card: Card, *, hidden: bool) -> list[Verb]:
    return [a for a in card.verbs if action_of(a) and not (hidden and a in _APPROVING_VERBS)]


def _make_rare_rows(card: Card, offered: Sequence[Verb]) -> list[list[InlineKeyboardButton]]:
    further = tuple(a for a in offered if a not in _VERBS_IN_ROWS and a not in _GROUP_VERBS)
    rare = [[_make_verb_button(card, a) for a in row if a in offered] for row in (_VERB_ROWS[-1], further)]
    if Verb.DECLINE in offered and card.button(Verb.DECLINE).needs is Needs.REASON:
        rare.append(
            [
                _make_action_button(
                    card, ButtonAction.REASON, with_reason(card.button(Verb.DECLINE)), style=None
                )
            ]
        )
    return rare + _make_context_rows(card)


def _make_copy_rows(card: Card) -> list[list[InlineKeyboardButton]]:
    copies = InlineKeyboardButton("Copy ID", copy_text=CopyTextButton(card.proposal_id))
    return [[copies]] if card.pending else []


def _make_batch_keyboard(
    card: Card, batch: Batch, *, hidden: bool, left_out: bool, viewed: bool
) -> InlineKeyboardMarkup | None:
    """Return the buttons of a batch."""
    approves = Verb.APPROVE_ALL in card.verbs
    rows = [
        [_make_action_button(card, ButtonAction.VIEW, VIEW_ALL)]
        if hidden or (left_out and not viewed)
        else [],
        [
            make_disabled_button(card.button(Verb.APPROVE_ALL).label)
            if hidden
            else _make_verb_button(card, Verb.APPROVE_ALL)
        ]
        if approves
        else [],
        [_make_action_button(card, ButtonAction.PICK, CHOOSE)] if card.pending and not viewed else [],
        [_make_action_button(card, ButtonAction.LIST_ROWS, EACH_ROW, None)]
        if not card.pending and batch.offers
        else [],
        [_make_verb_button(card, verb) for verb in _BATCH_VERBS if verb in card.verbs],
        *([] if viewed else _make_context_rows(card)),
    ]
    found = [row for row in rows if row]
    if found:
        return InlineKeyboardMarkup(found)
    return None


def _make_context_rows(card: Card) -> list[list[InlineKeyboardButton]]:
    if card.led:
        return [[_make_action_button(card, ButtonAction.CONTEXT, CONTEXT, style=None)]]
    return []


def render_picker(card: Card, page: int, picked: Picked, *, looks: bool) -> TelegramCard:
    """Return a page of a batch's rows with a button for each: to approve it or not.

    Where it ``looks``, to open it. What is picked is in every button, so nothing of it can be lost or be
    another's.
    """
    part, rows, pages = page_of(card, page)
    packed = picked.pack()

    def button(
        does: ButtonAction, text: str, index: int = page, style: str | None = None
    ) -> InlineKeyboardButton:
        data = ButtonData(does, card.proposal_id, card.round, index, packed).pack()
        return InlineKeyboardButton(text, callback_data=data, style=style)

    numbers = [
        InlineKeyboardButton(
            f"{'⚠️' if row.harms else '🔎'} {place + 1}",
            callback_data=ButtonData(ButtonAction.VIEW_ROW, row.card.proposal_id, row.card.round).pack(),
        )
        if looks or row.harms
        else button(ButtonAction.TOGGLE, f"{'✅' if place in picked.places else '⬜'} {place + 1}", place)
        for place, row in rows
        if row.card.pending or (looks and row.offers)
    ]
    laid = [numbers[at : at + _MAX_BUTTONS_IN_ROW] for at in range(0, len(numbers), _MAX_BUTTONS_IN_ROW)]
    turns = [(page - 1, "←"), (page + 1, "→")]
    shows = ButtonAction.LIST_ROWS if looks else ButtonAction.PICK
    laid.append([button(shows, f"{sign} {to + 1} of {pages}", to) for to, sign in turns if 0 <= to < pages])
    approve, others = picked.split_rows(card)
    if approve or others:
        laid.append(
            [
                button(
                    ButtonAction.DECIDE,
                    format_split_label(len(approve), len(others)),
                    style=_STYLES[Look.PRIMARY],
                )
            ]
        )
    if approve and others:
        some = f"Approve {len(approve)}, leave {len(others)} open"
        laid.append([button(ButtonAction.DECIDE_SOME, some, style=_STYLES[Look.PLAIN])])
    if looks:
        other = button(ButtonAction.PICK, "Pick rows")
    else:
        other = button(ButtonAction.LIST_ROWS, "Look at one row")
    laid.append([*([other] if card.pending else []), button(ButtonAction.BACK_TO_BATCH, "Back")])
    shown = OUTLINER.card(part)
    return TelegramCard(trim(shown.made), InlineKeyboardMarkup([row for row in laid if row]), shown.cut)


def question(card: Card, does: ButtonAction | Verb) -> InlineKeyboardMarkup | None:
    """Return the two answers to the question before what can't be undone, before Undo, or before Retry."""
    sure = card.button(does if isinstance(does, Verb) else VERBS[does]).sure
    if sure is None:
        return None
    answers = ((SURE[does], sure.yes, KeyboardButtonStyle.DANGER), (ButtonAction.CANCEL, sure.no, None))
    return InlineKeyboardMarkup(
        [[_make_action_button(card, does, label, style) for does, label, style in answers]]
    )


def whole(card: Card) -> list[Rich] | None:
    """Give `everything` as messages; None when it is so long that it should be a file."""
    pieces = split(style(everything(card), "pre"), TEXT_UNITS)
    if len(pieces) <= MOST_POSTS:
        return pieces
    return None


def _make_action_button(
    card: Card, does: ButtonAction, text: str, style: KeyboardButtonStyle | None = KeyboardButtonStyle.PRIMARY
) -> InlineKeyboardButton:
    data = ButtonData(does, card.proposal_id, card.round).pack()
    return InlineKeyboardButton(text, callback_data=data, style=style)


def _make_verb_button(card: Card, action: Verb) -> InlineKeyboardButton:
    drawn = card.button(action)
    style = None if drawn.rare else _STYLES[drawn.look]
    shown = card.group.round if action in _GROUP_VERBS and card.group else card.round
    data = ButtonData(action_of(action) or action, card.proposal_id, shown).pack()
    return InlineKeyboardButton(drawn.label, callback_data=data, style=style)

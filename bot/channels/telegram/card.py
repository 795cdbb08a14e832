"""Rendering of a `Card` for Telegram: text with entities and an inline keyboard. Pure.

``bot/channels/card_text.py`` lays out the text. If the change does not fit one message, the card is *cut*,
and *View all* takes the place of Approve: it posts the full content (`render_everything`), with Approve
below. The cards of one answer are a *group*; the first of them also has the buttons for all, such as *Approve
all*. A *batch* is several calls in one card, as the rows of a table. It has a picker: pages of its rows with
a button for each row. A button presses a *verb*, such as approve.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from telegram import CopyTextButton, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.constants import KeyboardButtonStyle

from bot.channels.streamed_message import MAX_POSTS
from bot.channels.telegram.buttons import (
    CONFIRMATIONS,
    VERBS_BY_ACTION,
    ButtonAction,
    ButtonData,
    action_of,
    make_disabled_button,
)
from bot.channels.telegram.limits import TEXT_UNITS
from bot.channels.telegram.text import CARD_RENDERER, Rich, is_web_link, split, style, trim
from bot.domain.batch_picks import Picked, format_split_label, page_of
from bot.domain.call_text import format_call_and_outcome
from bot.domain.cards import Batch, BatchRow, Card
from bot.domain.verbs import (
    CHOICES,
    CHOOSE_LABEL,
    CONTEXT_LABEL,
    DETAILS_LABEL,
    ROWS_LABEL,
    VIEW_ALL_LABEL,
    Look,
    Needs,
    Verb,
    make_label_with_reason,
)

_BUTTON_STYLES = {
    Look.PRIMARY: KeyboardButtonStyle.SUCCESS,
    Look.DANGER: KeyboardButtonStyle.DANGER,
    Look.PLAIN: KeyboardButtonStyle.PRIMARY,
}
_VERB_ROWS = (
    (Verb.APPROVE, Verb.ANSWER, Verb.DECLINE, Verb.RETRY, Verb.STOP, Verb.UNDO),
    (Verb.EDIT, Verb.REVISE),
    (Verb.APPROVE_STEPS, Verb.FOR_REAL),
)
"""The verbs in each row of buttons outside *More*, which is itself at the end of the second row."""
_RARE_VERB_ROW = (Verb.SIMILAR, Verb.EXTEND, Verb.MUTE)
"""The first row behind *More*; other verbs follow in a second row."""
_VERBS_IN_ROWS = frozenset({*CHOICES, *_RARE_VERB_ROW, *(verb for row in _VERB_ROWS for verb in row)})
"""The verbs whose row is given; `CHOICES`, the answers to a question, have a row each."""
_MORE_LABEL = "⋯ More"
_GROUP_VERBS = (Verb.APPROVE_ALL, Verb.DECLINE_ALL)
_APPROVING_VERBS = frozenset(
    {Verb.APPROVE, Verb.APPROVE_STEPS, Verb.SIMILAR, Verb.APPROVE_ALL, Verb.FOR_REAL}
)
_MAX_BUTTONS_IN_ROW = 5  # of a picker's keyboard
_BATCH_VERBS = (Verb.DECLINE_ALL, Verb.STOP_ALL, Verb.UNDO_ALL)
"""The verbs for all of a batch that share a row; Approve all has a row of its own."""


@dataclass(frozen=True, slots=True)
class TelegramCard:
    """A message with a card."""

    rich: Rich
    keyboard: InlineKeyboardMarkup | None
    is_cut: bool  # a part of the change is not in the text


def render_card(card: Card, unseen_count: int = 0, *, shows_more: bool = False) -> TelegramCard:
    """Render a card, pending or resolved, as one message.

    ``unseen_count``: the number of other cards of its group that are cut and were not viewed in this chat.
    ``shows_more``: with the buttons behind *More*, which are rarely wanted.
    """
    parts = CARD_RENDERER.card(card)
    buttons = make_keyboard(
        card,
        is_cut=parts.is_change_cut,
        left_out=parts.is_rest_cut,
        unseen_count=unseen_count,
        shows_more=shows_more,
    )
    return TelegramCard(trim(parts.text), buttons, parts.is_change_cut)


def make_keyboard(
    card: Card,
    *,
    is_cut: bool,
    left_out: bool = False,
    is_viewed: bool = False,
    unseen_count: int = 0,
    shows_more: bool = False,
) -> InlineKeyboardMarkup | None:
    """Return the buttons of a card, or None if it has none.

    A verb for which Telegram has no screen gets no button.

    - ``is_cut``: a part of the change is missing in the text of the card, so no button approves it
    - ``left_out``: something else of the card is missing in the text, so View all is offered
    - ``is_viewed``: these are the buttons below the full content, which may approve
    - ``unseen_count``: as in `render_card`
    - ``shows_more``: with the buttons behind *More*, in place of the button *More*
    """
    if card.batch:
        hides_change = is_cut and not is_viewed
        return _make_batch_keyboard(
            card, card.batch, hides_change=hides_change, left_out=left_out, is_viewed=is_viewed
        )

    hides_change = is_cut and card.pending and not is_viewed  # the reader has not seen all of the change
    offered = _list_verbs(card, hides_change=hides_change)
    decision_row, edit_row, plan_row = (_make_verb_row(card, row, offered) for row in _VERB_ROWS)
    rows = [[_make_verb_button(card, verb)] for verb in CHOICES if verb in offered]
    if hides_change:
        rows.append([_make_action_button(card, ButtonAction.VIEW, VIEW_ALL_LABEL)])
        if Verb.APPROVE in card.verbs:
            decision_row.insert(0, make_disabled_button(card.button(Verb.APPROVE).label))

    rare_rows = _make_rare_rows(card, offered)
    are_behind_more = any(rare_rows) and not shows_more and not is_viewed
    if are_behind_more:
        edit_row.append(_make_action_button(card, ButtonAction.MORE, _MORE_LABEL, style=None))
        rare_rows = []
    rows += [decision_row, edit_row, plan_row, *rare_rows]
    if shows_more:
        rows += _make_copy_rows(card)

    if left_out and card.pending and not is_cut and not is_viewed:
        rows.append([_make_action_button(card, ButtonAction.VIEW, VIEW_ALL_LABEL, style=None)])
    rows.append(_make_group_row(card, offered, unseen_count, hides_change=hides_change))
    if not card.pending and not is_viewed:
        rows.append(_make_details_row(card))
    rows = [row for row in rows if row]
    if rows:
        return InlineKeyboardMarkup(rows)
    return None


def _make_verb_row(card: Card, verbs: Sequence[Verb], offered: Sequence[Verb]) -> list[InlineKeyboardButton]:
    return [_make_verb_button(card, verb) for verb in verbs if verb in offered]


def _make_group_row(
    card: Card, offered: Sequence[Verb], unseen_count: int, *, hides_change: bool
) -> list[InlineKeyboardButton]:
    """Return the buttons for all cards of a group.

    ``unseen_count``: as in `render_card`; while it is not 0, a button to view these cards takes the place of
    Approve all.
    """
    verbs = [verb for verb in _GROUP_VERBS if verb in offered]
    if unseen_count and Verb.APPROVE_ALL in verbs:
        verbs.remove(Verb.APPROVE_ALL)
    row = [_make_verb_button(card, verb) for verb in verbs]
    if unseen_count and Verb.APPROVE_ALL in card.verbs:
        count = unseen_count + 1 if hides_change else unseen_count  # this card may be cut as well
        label = f"View what is cut ({count})"
        row.insert(0, _make_action_button(card, ButtonAction.VIEW_GROUP, label))
    return row


def _make_details_row(card: Card) -> list[InlineKeyboardButton]:
    row = [_make_action_button(card, ButtonAction.VIEW, DETAILS_LABEL, style=None)]
    if card.result_url and is_web_link(card.result_url):
        row.insert(0, InlineKeyboardButton("Open", url=card.result_url))
    return row


def make_menu(card: Card) -> InlineKeyboardMarkup:
    """Return the buttons behind *More*, by themselves."""
    hides_change = CARD_RENDERER.card(card).is_change_cut and card.pending
    rows = [*_make_rare_rows(card, _list_verbs(card, hides_change=hides_change)), *_make_copy_rows(card)]
    return InlineKeyboardMarkup([row for row in rows if row])


def _list_verbs(card: Card, *, hides_change: bool) -> list[Verb]:
    """Return the verbs that get a button; ``hides_change``: without the verbs that approve."""
    verbs = [verb for verb in card.verbs if action_of(verb)]
    if hides_change:
        return [verb for verb in verbs if verb not in _APPROVING_VERBS]
    return verbs


def _make_rare_rows(card: Card, offered: Sequence[Verb]) -> list[list[InlineKeyboardButton]]:
    """Return the rows behind *More*."""
    further = [verb for verb in offered if verb not in _VERBS_IN_ROWS and verb not in _GROUP_VERBS]
    rows = [_make_verb_row(card, _RARE_VERB_ROW, offered), _make_verb_row(card, further, offered)]
    if Verb.DECLINE in offered and card.button(Verb.DECLINE).needs is Needs.REASON:
        label = make_label_with_reason(card.button(Verb.DECLINE))
        rows.append([_make_action_button(card, ButtonAction.DECLINE_WITH_REASON, label, style=None)])
    return rows + _make_context_rows(card)


def _make_copy_rows(card: Card) -> list[list[InlineKeyboardButton]]:
    if not card.pending:
        return []
    return [[InlineKeyboardButton("Copy ID", copy_text=CopyTextButton(card.proposal_id))]]


def _make_batch_keyboard(
    card: Card, batch: Batch, *, hides_change: bool, left_out: bool, is_viewed: bool
) -> InlineKeyboardMarkup | None:
    """Return the buttons of a batch. ``hides_change``: its text is cut, so no button approves all."""
    rows: list[list[InlineKeyboardButton]] = []
    if hides_change or (left_out and not is_viewed):
        rows.append([_make_action_button(card, ButtonAction.VIEW, VIEW_ALL_LABEL)])
    if Verb.APPROVE_ALL in card.verbs and hides_change:
        rows.append([make_disabled_button(card.button(Verb.APPROVE_ALL).label)])
    elif Verb.APPROVE_ALL in card.verbs:
        rows.append([_make_verb_button(card, Verb.APPROVE_ALL)])
    if card.pending and not is_viewed:
        rows.append([_make_action_button(card, ButtonAction.PICK, CHOOSE_LABEL)])
    if not card.pending and batch.has_buttons:
        rows.append([_make_action_button(card, ButtonAction.LIST_ROWS, ROWS_LABEL, None)])
    rows.append([_make_verb_button(card, verb) for verb in _BATCH_VERBS if verb in card.verbs])
    if not is_viewed:
        rows += _make_context_rows(card)
    rows = [row for row in rows if row]
    if rows:
        return InlineKeyboardMarkup(rows)
    return None


def _make_context_rows(card: Card) -> list[list[InlineKeyboardButton]]:
    """Return the button that shows the agent's turn that led to a card, if people may read that turn."""
    if card.has_context:
        return [[_make_action_button(card, ButtonAction.CONTEXT, CONTEXT_LABEL, style=None)]]
    return []


def render_picker(card: Card, page: int, picked: Picked, *, opens_rows: bool) -> TelegramCard:
    """Return a page of a batch's rows with a button for each row, which picks the row or leaves it out.

    ``opens_rows``: these buttons open their rows instead. The other buttons carry the picked rows, which are
    stored nowhere else.
    """
    page_card, page_rows, page_count = page_of(card, page)
    keyboard = _PickerKeyboard(card, page, picked, picked.pack(), opens_rows)
    row_buttons = keyboard.make_row_buttons(page_rows)
    starts = range(0, len(row_buttons), _MAX_BUTTONS_IN_ROW)
    rows = [
        *(row_buttons[start : start + _MAX_BUTTONS_IN_ROW] for start in starts),
        keyboard.make_page_buttons(page_count),
        *keyboard.make_decision_rows(),
        keyboard.make_last_row(),
    ]
    parts = CARD_RENDERER.card(page_card)
    return TelegramCard(
        trim(parts.text), InlineKeyboardMarkup([row for row in rows if row]), parts.is_change_cut
    )


@dataclass(frozen=True, slots=True)
class _PickerKeyboard:
    """The buttons of a picker. The other fields are the parameters of `render_picker`."""

    card: Card
    page: int
    picked: Picked
    packed: str  # the picked rows, as each of the buttons carries them
    opens_rows: bool

    def make_row_buttons(self, page_rows: Sequence[tuple[int, BatchRow]]) -> list[InlineKeyboardButton]:
        """Return a button for each row of a page, which are given with their positions in the batch."""
        row_buttons = []
        for position, row in page_rows:
            # a row that was decided has a button only if it opens, for the row's own buttons, such as Undo
            has_button = row.card.pending or (self.opens_rows and row.has_buttons)
            if not has_button:
                continue
            # a row whose change can't be undone (``needs_own_decision``) is never picked: its button opens it
            if self.opens_rows or row.needs_own_decision:
                sign = "⚠️" if row.needs_own_decision else "🔎"
                data = ButtonData(ButtonAction.VIEW_ROW, row.card.proposal_id, row.card.round)
                row_buttons.append(InlineKeyboardButton(f"{sign} {position + 1}", callback_data=data.pack()))
            else:
                sign = "✅" if position in self.picked.positions else "⬜"
                label = f"{sign} {position + 1}"
                row_buttons.append(self._make_button(ButtonAction.TOGGLE, label, position))
        return row_buttons

    def make_page_buttons(self, page_count: int) -> list[InlineKeyboardButton]:
        """Return the buttons that lead to the page before and to the page after."""
        action = ButtonAction.LIST_ROWS if self.opens_rows else ButtonAction.PICK
        page_buttons = []
        for target, sign in ((self.page - 1, "←"), (self.page + 1, "→")):
            if 0 <= target < page_count:
                label = f"{sign} {target + 1} of {page_count}"
                page_buttons.append(self._make_button(action, label, target))
        return page_buttons

    def make_decision_rows(self) -> list[list[InlineKeyboardButton]]:
        approve, others = self.picked.split_rows(self.card)
        rows = []
        if approve or others:
            label = format_split_label(len(approve), len(others))
            button_style = _BUTTON_STYLES[Look.PRIMARY]
            rows.append([self._make_button(ButtonAction.DECIDE_ALL, label, self.page, button_style)])
        if approve and others:
            label = f"Approve {len(approve)}, leave {len(others)} open"
            button_style = _BUTTON_STYLES[Look.PLAIN]
            rows.append([self._make_button(ButtonAction.APPROVE_PICKED, label, self.page, button_style)])
        return rows

    def make_last_row(self) -> list[InlineKeyboardButton]:
        last_row = [self._make_button(ButtonAction.BACK_TO_BATCH, "Back", self.page)]
        if self.card.pending and self.opens_rows:
            last_row.insert(0, self._make_button(ButtonAction.PICK, "Pick rows", self.page))
        elif self.card.pending:
            last_row.insert(0, self._make_button(ButtonAction.LIST_ROWS, "Look at one row", self.page))
        return last_row

    def _make_button(
        self, action: ButtonAction, text: str, index: int, style: str | None = None
    ) -> InlineKeyboardButton:
        """Return a button that carries the picked rows, and the position of a row or the number of a page."""
        data = ButtonData(action, self.card.proposal_id, self.card.round, index, self.packed).pack()
        return InlineKeyboardButton(text, callback_data=data, style=style)


def make_confirmation(card: Card, action: ButtonAction | Verb) -> InlineKeyboardMarkup | None:
    """Return the yes and no of the question that a press asks before it counts; None if it asks none."""
    verb = action if isinstance(action, Verb) else VERBS_BY_ACTION[action]
    question = card.button(verb).confirmation
    if question is None:
        return None
    yes = _make_action_button(card, CONFIRMATIONS[action], question.yes, KeyboardButtonStyle.DANGER)
    no = _make_action_button(card, ButtonAction.ANSWER_NO, question.no, None)
    return InlineKeyboardMarkup([[yes, no]])


def render_everything(card: Card) -> list[Rich] | None:
    """Return the full content of a card as messages; None if it is so long that it should be a file."""
    pieces = split(style(format_call_and_outcome(card), "pre"), TEXT_UNITS)
    if len(pieces) <= MAX_POSTS:
        return pieces
    return None


def _make_action_button(
    card: Card,
    action: ButtonAction,
    text: str,
    style: KeyboardButtonStyle | None = KeyboardButtonStyle.PRIMARY,
) -> InlineKeyboardButton:
    data = ButtonData(action, card.proposal_id, card.round).pack()
    return InlineKeyboardButton(text, callback_data=data, style=style)


def _make_verb_button(card: Card, verb: Verb) -> InlineKeyboardButton:
    button = card.button(verb)
    style = None if button.is_in_menu else _BUTTON_STYLES[button.look]
    round_ = card.group.round if verb in _GROUP_VERBS and card.group else card.round
    data = ButtonData(action_of(verb) or verb, card.proposal_id, round_).pack()
    return InlineKeyboardButton(button.label, callback_data=data, style=style)

"""The data of a button: its action, the proposal's id and the round that the button was shown in.

The action is a `ButtonAction`, a short code, or a `Verb` by its own name. A round counts a proposal's
contents: an edit begins a new one, so a button of an earlier round is recognised as outdated. Telegram takes
1 to 64 bytes of data. The library does not check that, so it is checked here when a button is built. Data
that comes back is parsed strictly: a client may send anything.

Keyboards that do not belong to a card are made here, too; ``card.py`` makes those of cards.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from bot.channels.telegram.limits import CALLBACK_BYTES
from bot.domain.chat import LinkButton, make_choice_buttons, make_offer_mark
from bot.domain.hooks import CommandOffer
from bot.domain.verbs import BUTTONS, Needs, Verb

_OFFERS_IN_ROW = 4  # the buttons of offered commands in a row
_NEEDS_ON_SCREEN = (Needs.NOTHING, Needs.CONFIRM, Needs.TEXT)
"""The kinds of input of a verb that Telegram's screens can ask for."""

# ACTION.PROPOSAL.ROUND, then an index, then the picked rows: ap.3f9c2a71.2, ct.3f9c2a71.5.12.AAE
_DATA_PATTERN = re.compile(
    r"(?P<action>[a-z_]{2,14})\.(?P<id>[A-Za-z0-9_-]{1,48})\.(?P<round>0|[1-9][0-9]{0,8})"
    r"(?:\.(?P<index>0|[1-9][0-9]{0,3})(?:\.(?P<picked>[A-Za-z0-9_-]{1,18}))?)?"
)


class ButtonAction(StrEnum):
    """The codes of buttons: short codes of verbs, and steps of dialogues that are not verbs.

    A code never changes: cards that were posted long ago carry it.
    """

    CONFIRM_APPROVE = "su"  # "yes" to the question that Approve asks first if the call can't be undone
    ANSWER_NO = "ke"  # "no" to the question of any CONFIRM_ button
    CONFIRM_UNDO = "us"  # "yes" to the question that Undo asks first
    UNDO = "un"
    FOR_REAL = "fr"  # run the call for real that was only tried
    CONFIRM_FOR_REAL = "fs"  # "yes" to the question that the button FOR_REAL asks first
    CONFIRM_UNDO_ALL = "uz"  # "yes" to the question that Undo all asks first
    APPROVE = "ap"
    DECLINE = "de"
    RETRY = "re"
    CONFIRM_RETRY = "rs"  # "yes" to the question that Retry asks first if the call may have run
    EXTEND = "et"
    APPROVE_STEPS = "as"  # approve a plan and the calls that its steps name
    APPROVE_ALL = "aa"
    DECLINE_ALL = "da"
    VIEW = "vw"  # show the payload, the full content of a card, then Approve
    VIEW_GROUP = "va"  # show the payloads of the cut cards of one answer, then Approve all
    CONTEXT = "cx"  # show the messages that led to the proposal, to the person who pressed alone
    MORE = "mo"  # show the buttons that are rarely wanted
    DECLINE_WITH_REASON = "dr"  # ask for a reason, then decline
    REVISE = "rv"  # ask what should change in a plan
    EDIT = "ed"  # begin an edit; the next six are its steps
    FIELD = "ef"  # pick the field of that index
    CHOOSE = "ec"  # set the picked field to the option of that index
    CLEAR = "en"  # leave the picked field empty
    BACK = "eb"  # pick another field
    SAVE = "es"  # submit the edited arguments
    CLOSE = "ex"  # end the dialogue, an edit or a grant, without a change
    SIMILAR = "si"  # begin a grant (approve the call, and similar calls from now on); see `begins_grant`
    SCOPE = "sr"  # choose the scope of that index
    AUDIENCE = "sw"  # choose the audience of that index
    DURATION = "sl"  # approve, for the duration of that index
    PICK = "cr"  # show the rows of a batch to pick from, the page of that index
    TOGGLE = "ct"  # pick the row of that index, or leave it
    LIST_ROWS = "cl"  # show the rows of a batch to open one, the page of that index
    VIEW_ROW = "co"  # open one row by itself
    DECIDE_ALL = "cd"  # approve the picked rows and decline the other rows
    APPROVE_PICKED = "ca"  # approve the picked rows and leave the other rows open
    BACK_TO_BATCH = "cb"  # show the buttons of the batch again
    LET_IN = "pi"  # admit the person who asked to talk to Nod; the id is theirs
    KEEP_OUT = "po"  # refuse that person


# a pressed action leads to a verb by `VERBS_BY_ACTION`; a shown verb gets its action by `_VERB_ACTIONS`
VERBS_BY_ACTION = {
    ButtonAction.CONFIRM_APPROVE: Verb.APPROVE,
    ButtonAction.CONFIRM_UNDO: Verb.UNDO,
    ButtonAction.UNDO: Verb.UNDO,
    ButtonAction.CONFIRM_FOR_REAL: Verb.FOR_REAL,
    ButtonAction.FOR_REAL: Verb.FOR_REAL,
    ButtonAction.CONFIRM_UNDO_ALL: Verb.UNDO_ALL,
    ButtonAction.APPROVE: Verb.APPROVE,
    ButtonAction.DECLINE: Verb.DECLINE,
    ButtonAction.CONFIRM_RETRY: Verb.RETRY,
    ButtonAction.RETRY: Verb.RETRY,
    ButtonAction.EXTEND: Verb.EXTEND,
    ButtonAction.APPROVE_STEPS: Verb.APPROVE_STEPS,
    ButtonAction.APPROVE_ALL: Verb.APPROVE_ALL,
    ButtonAction.DECLINE_ALL: Verb.DECLINE_ALL,
    ButtonAction.REVISE: Verb.REVISE,
}
"""The verb of each action that presses one. Other verbs are their own actions, or open a dialogue."""

CONFIRMATIONS: dict[ButtonAction | Verb, ButtonAction] = {
    ButtonAction.APPROVE: ButtonAction.CONFIRM_APPROVE,
    ButtonAction.UNDO: ButtonAction.CONFIRM_UNDO,
    ButtonAction.RETRY: ButtonAction.CONFIRM_RETRY,
    ButtonAction.FOR_REAL: ButtonAction.CONFIRM_FOR_REAL,
    Verb.UNDO_ALL: ButtonAction.CONFIRM_UNDO_ALL,
}
"""The action of the button "yes", by the action that asks for confirmation."""

_OPENING_ACTIONS = {Verb.EDIT: ButtonAction.EDIT, Verb.SIMILAR: ButtonAction.SIMILAR}
"""The actions that open a dialogue, by the verb that the dialogue ends with."""

_VERB_ACTIONS: dict[Verb, ButtonAction] = {
    verb: action for action, verb in VERBS_BY_ACTION.items() if action not in CONFIRMATIONS.values()
} | _OPENING_ACTIONS
"""The action of the button that a card shows for a verb. A verb that is not here is its own action."""


DIALOGUE_ACTIONS = frozenset(
    {
        ButtonAction.DECLINE_WITH_REASON,
        ButtonAction.EDIT,
        ButtonAction.FIELD,
        ButtonAction.CHOOSE,
        ButtonAction.CLEAR,
        ButtonAction.BACK,
        ButtonAction.SAVE,
        ButtonAction.CLOSE,
    }
)
"""The buttons of an edit, the button that asks for a reason, and Cancel."""

GRANT_ACTIONS = frozenset(
    {ButtonAction.SIMILAR, ButtonAction.SCOPE, ButtonAction.AUDIENCE, ButtonAction.DURATION}
)
"""The buttons that lead to a grant."""

PICK_ACTIONS = frozenset(
    {
        ButtonAction.PICK,
        ButtonAction.TOGGLE,
        ButtonAction.LIST_ROWS,
        ButtonAction.DECIDE_ALL,
        ButtonAction.APPROVE_PICKED,
        ButtonAction.BACK_TO_BATCH,
    }
)
"""The buttons on the card of a batch that pick some of its rows."""


def action_of(verb: Verb) -> ButtonAction | Verb | None:
    """Return the action that a verb's button carries; None if Telegram's screens can't ask for its input."""
    if verb in _VERB_ACTIONS:
        return _VERB_ACTIONS[verb]
    if BUTTONS[verb].needs in _NEEDS_ON_SCREEN:
        return verb
    return None


@dataclass(frozen=True, slots=True)
class ButtonData:
    """The data that a button carries."""

    action: ButtonAction | Verb
    id: str  # the proposal's id, or for LET_IN and KEEP_OUT a person's
    round: int = 0
    index: int | None = None  # the position of a field, an option, a choice for a grant, a row or a page
    picked: str = ""  # the picked rows of a batch, as `Picked` packs them; they are stored nowhere else

    @property
    def verb(self) -> Verb | None:
        """The verb that the button presses; None for a step of a dialogue or of a grant."""
        if isinstance(self.action, Verb):
            return self.action
        return VERBS_BY_ACTION.get(self.action)

    @property
    def is_for_dialogue(self) -> bool:
        """True if the button begins or continues an edit, asks for words, or ends any dialogue.

        The buttons of a grant, `GRANT_ACTIONS`, are not among them.
        """
        if self.action in DIALOGUE_ACTIONS:
            return True
        return self.verb is not None and BUTTONS[self.verb].needs is Needs.TEXT

    @property
    def begins_grant(self) -> bool:
        """True if the button begins a grant. A step of a grant that has begun has an index."""
        return self.action is ButtonAction.SIMILAR and self.index is None

    def pack(self) -> str:
        """Return the data as text. Raises ValueError if it is too long or would not parse again."""
        packed = f"{self.action}.{self.id}.{self.round}"
        if self.index is not None:
            packed += f".{self.index}"
            if self.picked:
                packed += f".{self.picked}"
        if len(packed.encode()) > CALLBACK_BYTES or self.parse(packed) != self:
            raise ValueError(f"{packed!r} does not fit a button")
        return packed

    @classmethod
    def parse(cls, data: str) -> Self | None:
        """Parse what `pack` writes; None for anything else."""
        match = _DATA_PATTERN.fullmatch(data)
        if match is None:
            return None
        action = _find_action(match["action"])
        if action is None:
            return None
        if isinstance(action, Verb) and action_of(action) is not action:
            return None  # no button carries the name of a verb that has a code, or needs other input
        index = None if match["index"] is None else int(match["index"])
        return cls(action, match["id"], int(match["round"]), index, match["picked"] or "")


def make_choice_keyboard(choices: Iterable[str]) -> InlineKeyboardMarkup | None:
    """Return a keyboard with a row for each reply that the agent offers; None without any."""
    rows = [[InlineKeyboardButton(label, callback_data=mark)] for label, mark in make_choice_buttons(choices)]
    if rows:
        return InlineKeyboardMarkup(rows)
    return None


def make_link_keyboard(link: LinkButton | None) -> InlineKeyboardMarkup | None:
    """Return the keyboard with the button that opens a page; None without a link."""
    if link is None:
        return None
    return InlineKeyboardMarkup([[InlineKeyboardButton(link.label, url=link.url)]])


def make_offer_keyboard(offers: Sequence[CommandOffer]) -> InlineKeyboardMarkup:
    """Return a keyboard with a button for each offered command, numbered like the lines of the text."""
    buttons = [
        InlineKeyboardButton(f"{offer.label} {number}", callback_data=make_offer_mark(offer.text))
        for number, offer in enumerate(offers, 1)
    ]
    rows = [buttons[start : start + _OFFERS_IN_ROW] for start in range(0, len(buttons), _OFFERS_IN_ROW)]
    return InlineKeyboardMarkup(rows)


def make_disabled_button(label: str) -> InlineKeyboardButton:
    """Return a button that can be read and not pressed. Bot API 10.3 has it, the library does not."""
    return InlineKeyboardButton(label, api_kwargs={"disabled": {}})


def without_new_buttons(markup: InlineKeyboardMarkup) -> InlineKeyboardMarkup:
    """Return the keyboard without buttons that an older Bot API server refuses; unchanged if it has none."""
    rows = []
    has_new = False
    for row in markup.inline_keyboard:
        # disabled buttons have ``api_kwargs``
        old_buttons = [button for button in row if not (button.api_kwargs or button.copy_text)]
        has_new = has_new or len(old_buttons) < len(row)
        if old_buttons:
            rows.append(old_buttons)
    if not has_new:
        return markup
    return InlineKeyboardMarkup(rows)


def _find_action(code: str) -> ButtonAction | Verb | None:
    if code in set(ButtonAction):
        return ButtonAction(code)
    if code in set(Verb):
        return Verb(code)
    return None

"""The data of a button: its action, the proposal's opaque id and the round it was shown in.

Telegram takes 1 to 64 bytes and the library does not check it, so it is checked here when built. What comes
back is parsed strictly: a client may send whatever it likes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from bot.channels.telegram.limits import CALLBACK_BYTES
from bot.domain.chat import make_choice_buttons
from bot.domain.verbs import BUTTONS, Needs, Verb

_SHAPE = re.compile(
    r"([a-z_]{2,14})\.([A-Za-z0-9_-]{1,48})\.(0|[1-9][0-9]{0,8})"
    r"(?:\.(0|[1-9][0-9]{0,3})(?:\.([A-Za-z0-9_-]{1,18}))?)?"
)


def saying(choices: Iterable[str]) -> InlineKeyboardMarkup | None:
    """Return a button for each, one below the other; None without any."""
    rows = [[InlineKeyboardButton(label, callback_data=mark)] for label, mark in make_choice_buttons(choices)]
    if rows:
        return InlineKeyboardMarkup(rows)
    return None


def make_disabled_button(label: str) -> InlineKeyboardButton:
    """Return a button that can be read and not pressed (Bot API 10.3, which the library lacks)."""
    return InlineKeyboardButton(label, api_kwargs={"disabled": {}})


def without_newer(markup: InlineKeyboardMarkup) -> InlineKeyboardMarkup:
    """Return the keyboard without what an older Bot API server refuses.

    Itself where there is no such thing.
    """
    rows = [[b for b in row if not (b.api_kwargs or b.copy_text)] for row in markup.inline_keyboard]
    kept = sum(map(len, rows)) == sum(map(len, markup.inline_keyboard))
    if kept:
        return markup
    return InlineKeyboardMarkup([row for row in rows if row])


class Does(StrEnum):
    """The actions of buttons that are no plain verb, and short codes of verbs."""

    SURE = "su"  # approve what can't be undone: the answer to the question that Approve asks
    KEEP = "ke"  # the other answer
    UNDO_SURE = "us"  # undo it: the answer to the question that Undo asks
    UNDO = "un"
    FOR_REAL = "fr"
    FOR_REAL_SURE = "fs"  # the answer to the question that it asks
    UNDO_ALL_SURE = "uz"  # the answer to the question that Undo all asks
    APPROVE = "ap"
    DECLINE = "de"
    RETRY = "re"
    RETRY_SURE = "rs"  # retry what may have happened: the answer to the question that Retry asks
    EXTEND = "et"
    APPROVE_STEPS = "as"  # a plan, and what its steps name
    APPROVE_ALL = "aa"
    DECLINE_ALL = "da"
    VIEW = "vw"  # show the whole payload, then Approve
    VIEW_GROUP = "va"  # show the payloads of the group that were cut, then Approve all
    CONTEXT = "cx"  # show what led to it, to the person alone
    MORE = "mo"  # show the buttons that are rarely wanted
    REASON = "dr"  # start to decline with a reason
    REVISE = "rv"  # asks what should change in a plan
    EDIT = "ed"  # start to edit
    FIELD = "ef"  # pick the field of that index
    CHOOSE = "ec"  # answer with the option of that index
    CLEAR = "en"  # answer with nothing
    BACK = "eb"  # pick another field
    SAVE = "es"  # propose the edited arguments
    CLOSE = "ex"  # stop asking
    SIMILAR = "si"  # start to approve it and what is like it
    RUNG = "sr"  # reach as far as the rung of that index
    REACH = "sw"  # for the calls of that index
    LASTING = "sl"  # for as long as the choice of that index; approves
    PICK = "cr"  # show the rows of a batch to pick from, the page of that index
    TOGGLE = "ct"  # approve the row of that index, or not
    LOOK = "cl"  # the same page, with numbers that open their rows
    ROW = "co"  # open one row by itself
    DECIDE = "cd"  # approve what is picked and decline the others
    DECIDE_SOME = "ca"  # approve what is picked and leave the others open
    FOLD = "cb"  # back to the buttons of the batch
    LET_IN = "pi"  # the id is a person who asked to talk to Nod
    KEEP_OUT = "po"


VERBS = {
    Does.SURE: Verb.APPROVE,
    Does.UNDO_SURE: Verb.UNDO,
    Does.UNDO: Verb.UNDO,
    Does.FOR_REAL_SURE: Verb.FOR_REAL,
    Does.FOR_REAL: Verb.FOR_REAL,
    Does.UNDO_ALL_SURE: Verb.UNDO_ALL,
    Does.APPROVE: Verb.APPROVE,
    Does.DECLINE: Verb.DECLINE,
    Does.RETRY_SURE: Verb.RETRY,
    Does.RETRY: Verb.RETRY,
    Does.EXTEND: Verb.EXTEND,
    Does.APPROVE_STEPS: Verb.APPROVE_STEPS,
    Does.APPROVE_ALL: Verb.APPROVE_ALL,
    Does.DECLINE_ALL: Verb.DECLINE_ALL,
    Does.REVISE: Verb.REVISE,
}
"""The buttons that are verbs as they stand. A verb that is not here carries its own name."""

SURE: dict[Does | Verb, Does] = {
    Does.APPROVE: Does.SURE,
    Does.UNDO: Does.UNDO_SURE,
    Does.RETRY: Does.RETRY_SURE,
    Does.FOR_REAL: Does.FOR_REAL_SURE,
    Verb.UNDO_ALL: Does.UNDO_ALL_SURE,
}
"""What asks once more, and the answer that does it."""

_OPENS = {Verb.EDIT: Does.EDIT, Verb.SIMILAR: Does.SIMILAR}
_DOES: dict[Verb, Does] = {verb: does for does, verb in VERBS.items() if does not in SURE.values()} | _OPENS


def does_of(verb: Verb) -> Does | Verb | None:
    """Return the action of a verb's button; None for a verb whose input Telegram's screens do not offer."""
    if verb in _DOES or BUTTONS[verb].needs not in (Needs.NOTHING, Needs.CONFIRM, Needs.WORDS):
        return _DOES.get(verb)
    return verb


FORM = frozenset(
    {
        Does.REASON,
        Does.EDIT,
        Does.FIELD,
        Does.CHOOSE,
        Does.CLEAR,
        Does.BACK,
        Does.SAVE,
        Does.CLOSE,
    }
)
"""The buttons that belong to a dialogue."""

LADDER = frozenset({Does.SIMILAR, Does.RUNG, Does.REACH, Does.LASTING})
"""The buttons that lead to a grant."""

CHOOSING = frozenset({Does.PICK, Does.TOGGLE, Does.LOOK, Does.DECIDE, Does.DECIDE_SOME, Does.FOLD})
"""The buttons on the card of a batch that pick some of its rows."""


@dataclass(frozen=True, slots=True)
class ButtonData:
    """The data that a button carries.

    ``index``: the position of a field or option, for the buttons of a form. ``picked``: the picked rows of a
    batch, as `Picked` packs them; they are stored nowhere else.
    """

    does: Does | Verb
    id: str
    round: int = 0
    index: int | None = None
    picked: str = ""

    @property
    def verb(self) -> Verb | None:
        """The verb it presses; None for a step of a form or of a ladder."""
        if isinstance(self.does, Verb):
            return self.does
        return VERBS.get(self.does)

    @property
    def asks(self) -> bool:
        """True if it belongs to a dialogue in which the person types."""
        return self.does in FORM or (self.verb is not None and BUTTONS[self.verb].needs is Needs.WORDS)

    def pack(self) -> str:
        """Write the data of a button; raises ValueError when it is too long or would not read back."""
        packed = f"{self.does}.{self.id}.{self.round}"
        if self.index is not None:
            packed += f".{self.index}" + (f".{self.picked}" if self.picked else "")
        if len(packed.encode()) > CALLBACK_BYTES or self.parse(packed) != self:
            raise ValueError(f"{packed!r} does not fit a button")
        return packed

    @classmethod
    def parse(cls, data: str) -> Self | None:
        """Parse what `pack` writes; None for anything else."""
        match = _SHAPE.fullmatch(data)
        does = next((kind(match[1]) for kind in (Does, Verb) if match and match[1] in set(kind)), None)
        if match is None or does is None or (isinstance(does, Verb) and does_of(does) is not does):
            return None
        index = None if match[4] is None else int(match[4])
        return cls(does, match[2], int(match[3]), index, match[5] or "")

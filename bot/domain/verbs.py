"""Verbs: everything that people can do with a proposal by a press, and the usual button of each verb.

A proposal is a call that waits for people. Three more words are used below. A *grant* lets calls run that are
like an approved call. A *trial* ran a call in a closed copy, before people decide. A *batch* is several
proposals, which are the rows of one card.

Every channel reads a verb's label, its text while it works and the input that it needs from `BUTTONS`. So a
new button needs a member of `Verb`, a row of `BUTTONS`, and a function for its press
(``bot/approvals/verb_functions.py``). The button on the card of one proposal may differ:
``bot/domain/buttons.py``.

The data of a button is a `ButtonMark`, for platforms whose buttons hold about a hundred characters. The mark
has a verb, the proposal, and the *way*: what a press does first. Many buttons only open a window, and the
window sends the verb.

The *round* of a proposal is the version of its contents: an edit or a retry begins the next one. A press of a
button from an earlier round changes nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

MAY_NOT_BE_UNDOABLE_TEXT = "Nod may not be able to undo it."
"""The warning of *Approve and run it for real*: Nod does not know if the call can be undone."""
CONTEXT_LABEL = "What led to it"
"""The label of the button that shows the turn a card came from, to people who may decide it."""
VIEW_ALL_LABEL = "View all"
"""The label of the button that shows everything of a card that waits for a decision."""
DETAILS_LABEL = "Details"
"""The label of the button that shows everything of a card that has ended."""
CHOOSE_LABEL = "Choose"
"""The label of the button of a batch that lets people pick rows."""
ROWS_LABEL = "Rows"
"""The label of that button once no row waits: then it opens single rows, such as to undo them."""
# the way, the verb, the id, the round, the page, and perhaps the picked rows: "nod:press:approve:1a2b:1:0"
_MARK_PATTERN = re.compile(
    r"nod:([a-z]+):([a-z_]+):([A-Za-z0-9_-]{1,48}):(0|[1-9][0-9]{0,8}):([0-9]{1,2})(?::([A-Za-z0-9_-]{1,18}))?"
)


class Verb(StrEnum):
    """The verb of a press. Its value is short because buttons carry it."""

    APPROVE = "approve"  # one vote for; with arguments: edit, then vote
    DECLINE = "decline"  # one vote against, reason optional
    EDIT = "edit"  # replace the arguments and ask again, without a vote
    CANCEL = "cancel"  # the requester or an admin withdraws it
    RETRY = "retry"  # run a failed call again
    STOP = "stop"  # end the run of a call that is executing
    SIMILAR = "similar"  # one vote for, and a grant, which lets calls like it run
    EXTEND = "extend"  # restart the time it may wait
    EXPIRE = "expire"  # an admin ends the waiting
    REASSIGN = "reassign"  # an admin says who may decide; ``reason`` names them
    ASK = "ask"  # a question to the agent, which decides nothing; ``reason`` is the question
    REVISE = "revise"  # a plan: send it back; ``reason`` says what should change
    APPROVE_STEPS = "approve_steps"  # a plan: one vote for, and a grant for each tool it names
    NEVER = "never"  # a suggestion: decline it, and it is not made again
    MUTE = "mute"  # notify this person of no cards like it for a while; the proposal stays as it is
    APPROVE_ALL = "approve_all"  # approve every open proposal of the same answer of the agent
    DECLINE_ALL = "decline_all"  # decline every one
    FOR_REAL = "for_real"  # one vote for running the call after all, instead of applying its trial's result
    UNDO = "undo"  # put back the change
    STOP_ALL = "stop_all"  # a batch: withdraw the rows that have not begun to run
    UNDO_ALL = "undo_all"  # a batch: put back the change of each row
    ANSWER = "answer"  # a question of the agent's: ``reason`` is the answer
    FIRST = "first"  # answer a question with its first choice; the next verbs with the next choices
    SECOND = "second"
    THIRD = "third"
    FOURTH = "fourth"
    FIFTH = "fifth"


CHOICES = (Verb.FIRST, Verb.SECOND, Verb.THIRD, Verb.FOURTH, Verb.FIFTH)
"""The verbs that answer a question with one of its choices, in their order."""


class Needs(StrEnum):
    """The input that a verb needs before it is sent."""

    NOTHING = "nothing"
    REASON = "reason"  # a reason, which may be left out
    TEXT = "words"  # words that may not be left out
    FORM = "form"  # the arguments, edited
    # how far a grant reaches (`bot.domain.similarity.list_grant_scopes`) and how long it holds
    GRANT_TERMS = "ladder"
    CONFIRM = "confirm"  # a yes after a second look at what it does


class Look(StrEnum):
    """The emphasis of a button. Its label always says what it does."""

    PRIMARY = "primary"
    DANGER = "danger"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """The question for the words that go with a press."""

    question: str
    hint: str  # what Nod does with the words
    usage: str  # the name of the words in the usage of a command


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The question that confirms a press: *Delete issue #5?* with the buttons *Delete* and *Keep*."""

    question: str
    yes: str  # the label of the button that goes ahead
    no: str  # the label of the button that does not
    warning: str = "This can't be undone."  # the warning


@dataclass(frozen=True, slots=True)
class Button:
    """A button, the same in every channel."""

    verb: Verb
    label: str
    busy_label: str  # the label while it works
    needs: Needs = Needs.NOTHING
    look: Look = Look.PLAIN
    is_in_menu: bool = False  # channels with a menu ⋯ on cards have the button in that menu
    # the help text of the command ``VERB ID [WORDS]`` in chats; empty: no such command
    command_help: str = ""
    text_question: TextQuestion | None = None  # the question for a reason or words; None: it needs neither
    confirmation: Confirmation | None = None  # the question before the press counts; None: no question


_WHY = TextQuestion("Why not?", "Nod tells the agent, so that it can do better.", "[reason]")
_CHANGES = TextQuestion("What should change?", "The agent is told what you write.", "CHANGES")
_QUESTION = TextQuestion("What do you want to know?", "The agent answers. This decides nothing.", "QUESTION")
_ANSWER = TextQuestion(
    "What is your answer?", "The agent is told what you write. It approves nothing.", "ANSWER"
)
_WHO = TextQuestion("Who should decide?", "Accounts, requester, approver or admin.", "WHO…")

_FOR_REAL = Confirmation(
    "Run it for real?",
    "Approve and run it for real",
    "Not now",
    "It can reach the network and have effects outside files. "
    f"It may do something else than when it was tried. {MAY_NOT_BE_UNDOABLE_TEXT}",
)

RETRY_CHECK = Confirmation(
    "Retry?", "Retry", "Not now", "It runs again exactly as shown. Check first whether it already happened."
)

_UNDO_ALL = Confirmation(
    "Undo all?",
    "Undo all",
    "Keep them",
    "Each row gets back what was there. What changed since asks on a card.",
)

BUTTONS: Mapping[Verb, Button] = {
    button.verb: button
    for button in (
        Button(Verb.APPROVE, "Approve", "Approving…", look=Look.PRIMARY, command_help="approve it as it is"),
        Button(
            Verb.DECLINE,
            "Decline",
            "Declining…",
            Needs.REASON,
            command_help="decline it",
            text_question=_WHY,
        ),
        Button(Verb.EDIT, "Edit", "Saving…", Needs.FORM),
        Button(
            Verb.ASK,
            "Ask",
            "Asking…",
            Needs.TEXT,
            is_in_menu=True,
            command_help="ask the agent about it; decides nothing",
            text_question=_QUESTION,
        ),
        Button(Verb.SIMILAR, "Approve similar", "Approving…", Needs.GRANT_TERMS, is_in_menu=True),
        Button(Verb.EXTEND, "Extend", "Extending…", is_in_menu=True, command_help="restart its expiry timer"),
        Button(Verb.CANCEL, "Withdraw", "Withdrawing…", is_in_menu=True, command_help="withdraw it"),
        Button(Verb.RETRY, "Retry", "Retrying…", Needs.CONFIRM),
        Button(Verb.STOP, "Stop", "Stopping…", look=Look.DANGER, command_help="stop it while it runs"),
        Button(
            Verb.REVISE,
            "Ask for changes",
            "Sending…",
            Needs.TEXT,
            command_help="send a plan back for changes",
            text_question=_CHANGES,
        ),
        Button(
            Verb.APPROVE_STEPS,
            "Approve plan and its steps",
            "Approving…",
            Needs.CONFIRM,
            Look.PRIMARY,
            is_in_menu=True,
        ),
        Button(Verb.EXPIRE, "End the wait", "Ending…", is_in_menu=True, command_help="make it expire now"),
        Button(
            Verb.REASSIGN,
            "Reassign",
            "Reassigning…",
            Needs.TEXT,
            is_in_menu=True,
            command_help="say who may decide it: accounts, requester, approver, admin",
            text_question=_WHO,
        ),
        Button(Verb.APPROVE_ALL, "Approve all", "Approving all…", look=Look.PRIMARY),
        Button(Verb.DECLINE_ALL, "Decline all", "Declining all…", Needs.REASON, text_question=_WHY),
        Button(
            Verb.FOR_REAL,
            "Approve and run it for real",
            "Approving…",
            Needs.CONFIRM,
            is_in_menu=True,
            command_help="run it for real instead of applying what its trial did",
            confirmation=_FOR_REAL,
        ),
        Button(
            Verb.MUTE,
            "Mute this kind",
            "Muting…",
            is_in_menu=True,
            command_help="not be told of its kind for 8 h, a second time for a week",
        ),
        Button(Verb.NEVER, "Never suggest this", "Saving…", is_in_menu=True),
        Button(Verb.UNDO, "Undo", "Undoing…", Needs.CONFIRM, command_help="put back what it did"),
        Button(Verb.STOP_ALL, "Stop the rest", "Stopping…", look=Look.DANGER),
        Button(Verb.UNDO_ALL, "Undo all", "Undoing all…", Needs.CONFIRM, confirmation=_UNDO_ALL),
        Button(
            Verb.ANSWER,
            "Answer in words",
            "Sending…",
            Needs.TEXT,
            command_help="answer a question of the agent",
            text_question=_ANSWER,
        ),
        *(Button(verb, f"Choice {number}", "Sending…") for number, verb in enumerate(CHOICES, 1)),
    )
}

COMMANDS = tuple(button for button in BUTTONS.values() if button.command_help)
"""The buttons that are also commands in every chat, since they need only a proposal's ID and words."""


def make_label_with_reason(decline: Button) -> str:
    """Return the label of the button that asks for a reason before it declines."""
    return f"{decline.label} with a reason"


class Way(StrEnum):
    """The first effect of a press of a button. The verb follows right away, or from the window that opens."""

    PRESS = "press"  # the button is on a card: the verb is done, or its input is asked for
    READ = "read"  # the button is below a question or the complete content: the verb is done
    WHY = "why"  # it asks for a reason first
    VIEW = "view"  # it shows the complete content
    FILL = "fill"  # it opens one page of a form
    SUBMIT = "sent"  # it submits a window, with what was entered in it
    CHOOSE = "choose"  # it shows a page of the rows of a batch, to pick from
    TOGGLE = "toggle"  # it picks the row with the number ``page``, or unpicks it
    SHOW_ROWS = "look"  # it shows a page of the rows of a batch, with buttons that open single rows
    ROW = "row"  # it opens one row of a batch by itself
    CONTEXT = "context"  # it shows what led to the proposal
    DECIDE = "decide"  # it decides the picked rows; page 1: the press was below their complete content


@dataclass(frozen=True, slots=True)
class ButtonMark:
    """The complete data of a button. Rights are checked when it is pressed."""

    way: Way
    verb: Verb
    id: str  # the proposal's
    round: int  # the round of the card that has the button
    page: int = 0
    picked: str = ""  # rows of a batch, as `bot.domain.batches.Picked` packs them

    def pack(self, max_chars: int) -> str:
        """Return the mark as text. Raise ValueError if the text is too long, or can't be parsed again."""
        packed = f"nod:{self.way}:{self.verb}:{self.id}:{self.round}:{self.page}"
        if self.picked:
            packed += f":{self.picked}"
        if len(packed) > max_chars or self.parse(packed) != self:
            raise ValueError(f"{packed!r} does not fit a button")
        return packed

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the output of `pack`; None for any other text."""
        match = _MARK_PATTERN.fullmatch(text)
        if match is None:
            return None
        way, verb, ident, round_, page, picked = match.groups(default="")
        if way not in set(Way) or verb not in set(Verb):
            return None
        return cls(Way(way), Verb(verb), ident, int(round_), int(page), picked)

"""Events of a running turn, from the agent's loop to delivery. Values only.

A turn is one piece of the agent's work, with one or several answers of the model. The loop yields these
events while it works; ``bot/channels/delivery/turns.py`` decides who sees which of them and when.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.domain.proposals import Proposal

STOPPED = "Stopped."
"""How people are told that a turn was stopped."""


@dataclass(frozen=True, slots=True)
class AnswerBegun:
    """The model is asked for its next answer."""

    key: str  # `Turn.key`, by which the row of the answer is found later


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text, CommonMark, hostile until rendered safely."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """More of the model's thoughts, as complete lines or sentences without secrets; no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class TextRestarted:
    """The model's stream was cut off after some text was shown: the next text begins the answer again."""


@dataclass(frozen=True, slots=True)
class TurnDelayed:
    """The turn takes longer: files are read, the model's server is asked again, or a call is tried."""

    words: str  # the reason, for people


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call that only reads begins to run."""

    call_id: str
    tool_name: str
    summary: str  # in plain language, for people
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A call that only reads reports its progress."""

    call_id: str
    tool_name: str
    words: str  # the tool's own


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call that only reads ended."""

    call_id: str
    tool_name: str
    ok: bool
    result: str  # the text that the model is given


@dataclass(frozen=True, slots=True)
class ProposalOpened:
    """A call became a proposal: it waits for people, or a grant or a rule let it run."""

    proposal: Proposal


class Ending(StrEnum):
    """The reason why a turn ended, other than a failure."""

    DONE = "done"  # the agent's last answer had no calls
    WAITING = "waiting"  # calls wait for people; a further turn continues once they have ended
    STOPPED = "stopped"  # a person stopped it


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn ended without a failure."""

    ending: Ending
    seen: int  # the id of the last line that the turn answers, a message or a note
    text: str  # the texts of all its answers, as one
    message_id: int | None = None  # the id of the last line that it stored; None where it stored none


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn failed."""

    explanation: str  # for people
    seen: int  # the id of the last line that it was to answer, as in `TurnEnded`
    choices: tuple[str, ...] = ()  # the words of the buttons that people are offered, such as "Try again"


TurnEvent = (
    AnswerBegun
    | TextDelta
    | ThoughtDelta
    | TextRestarted
    | TurnDelayed
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ProposalOpened
    | TurnEnded
    | TurnFailed
)

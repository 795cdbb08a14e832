"""Events of a running turn. Values only; delivery decides who sees which of them and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.domain.proposals import Proposal

STOPPED = "Stopped."
"""How people are told that a turn was stopped."""


@dataclass(frozen=True, slots=True)
class AnswerBegun:
    """The model is asked for its next answer, which has this ``key`` in its rows, too."""

    key: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text, CommonMark, hostile until rendered safely."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """More of what the model thinks, complete lines or sentences, without secrets; no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class TextRestarted:
    """The model's stream was cut after some text was shown; what follows starts the answer again."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The model's server is asked again, or a call is tried first; ``words`` say so to people."""

    words: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A read call runs. ``summary`` is plain language for people."""

    call_id: str
    tool_name: str
    summary: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A read call tells how far it is; ``words`` are its tool's own."""

    call_id: str
    tool_name: str
    words: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A read call ended; ``result`` is what the model will see."""

    call_id: str
    tool_name: str
    ok: bool
    result: str


@dataclass(frozen=True, slots=True)
class ProposalOpened:
    proposal: Proposal


class Ending(StrEnum):
    DONE = "done"  # the agent is silent
    WAITING = "waiting"  # open proposals; the turn is rows now
    STOPPED = "stopped"  # a person stopped it


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn ended. ``seen`` is the id of the last person's message it took in.

    ``text``: its full answer. ``message_id``: of the last line that it stored; None where it stored none.
    """

    ending: Ending
    seen: int
    text: str
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn failed; ``explanation`` is for people, ``choices`` what they may say next."""

    explanation: str
    seen: int
    choices: tuple[str, ...] = ()


TurnEvent = (
    AnswerBegun
    | TextDelta
    | ThoughtDelta
    | TextRestarted
    | Waited
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ProposalOpened
    | TurnEnded
    | TurnFailed
)

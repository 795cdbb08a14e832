"""A conversation and its lines: what people, the agent and Nod said, in the order the model reads it. Pure.

A *line* is one entry of a conversation. A *heard* line is one that the agent answers: a person's message, or
a note by which Nod tells the model something. A *turn* is one piece of the agent's work: from a heard line,
or the end of its calls, until it says nothing more or waits for people. Its input is a `Transcript`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.attachments import Attachment
from bot.domain.chat import Address
from bot.domain.files import File
from bot.domain.model import Picture
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.teams import Teammate
from bot.domain.text import replace_unstorable


class LineRole(StrEnum):
    """The role of a line: its author, and whether people or the model read it."""

    USER = "user"  # a person
    NOTE = "note"  # Nod tells the model, e.g. how a proposal ended since its last answer
    ASSISTANT = "assistant"  # the agent
    NOTICE = "notice"  # Nod tells people, not the model, e.g. that a turn failed
    SUMMARY = "summary"  # a model's summary of the oldest lines, up to the line with the id ``after``


ANSWERABLE_ROLES = frozenset({LineRole.USER, LineRole.NOTE})
"""The roles of lines that the agent answers."""
MODEL_ROLES = ANSWERABLE_ROLES | {LineRole.ASSISTANT}
"""The roles of the lines that the agent answers, and of its answers."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation at an address, without its lines."""

    id: str
    address: Address
    origin: Address  # the address where people see its cards, and whose rules apply
    private: bool  # it is in a private chat of one person
    requester: Actor  # the account that began it
    title: str
    created_at: datetime
    ended_at: datetime | None = None  # the next message at the address begins another conversation
    shown_at: Address | None = None  # for a teammate's conversation: the address of the lead agent's
    deleted: bool = False  # its lines were deleted


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model asked for it."""

    id: str
    tool_name: str
    arguments: str  # raw JSON
    summary: str  # the call in words, for people
    # fields that the model's server wants back
    server_fields: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # models and tools send what no database can store; rows of an older release may have it
        names = ("id", "tool_name", "arguments", "summary")
        for name, text in replace_unstorable({name: getattr(self, name) for name in names}).items():
            object.__setattr__(self, name, text)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call that never became a proposal: a read, or a refused call."""

    text: str
    ok: bool
    is_from_tool: bool = True  # the text comes from a tool; False: from Nod
    files: tuple[File, ...] = ()  # files for the program that made the call, if a program did

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", replace_unstorable(self.text))


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a conversation."""

    id: int
    role: LineRole
    text: str
    # for an answer, the id of the last line that it answers; for a heard line its own id; for a summary, the
    # id of the last line that it stands for
    after: int
    actor: Actor | None  # the account that wrote the line or caused it
    calls: Sequence[Call]  # the calls in an answer
    results: Mapping[str, CallResult]  # by call id, of those calls that never became a proposal
    created_at: datetime
    # the id that the channel gave it; for an answer `Turn.key`; for the note that begins a run of a schedule
    # the ids of both, as SCHEDULE.RUN
    event_id: str | None = None
    files: Sequence[str] = ()  # handles of the files that came with it

    @property
    def schedule(self) -> str | None:
        """The id of the schedule whose run begins with this note; None for any other line."""
        if self.role is LineRole.NOTE and self.event_id:
            return self.event_id.partition(".")[0]
        return None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as read in one snapshot: lines in the model's order, and all proposals of its calls."""

    conversation: Conversation
    lines: Sequence[Line]
    proposals: Mapping[tuple[int, str], Proposal]  # by message id and call id
    teammate: Teammate | None = None  # the teammate whose conversation it is; None: the lead agent's
    files: Mapping[str, Attachment] = field(default_factory=dict)  # by handle, without forgotten ones
    pictures: Mapping[str, Picture] = field(default_factory=dict)  # pictures for the model, by handle
    summary: Line | None = None  # replaces the oldest lines
    last_heard_id: int = field(init=False)  # the id of the last line that the agent answers; 0 without any
    asker: Actor = field(init=False)  # the account of the newest line that has one, for which the agent works
    schedule: str | None = field(init=False)  # the schedule whose run began with that line, if one did
    last_message: str = field(init=False)  # the text of the last message of a person; empty without any

    def __post_init__(self) -> None:
        """Find the facts that every step of a turn needs, once."""
        newest_first = self.lines[::-1]
        newest_of_actor = next((line for line in newest_first if line.actor), None)
        if newest_of_actor and newest_of_actor.actor:
            asker, schedule = newest_of_actor.actor, newest_of_actor.schedule
        else:
            asker, schedule = self.conversation.requester, None
        values = {
            "last_heard_id": max(
                (line.id for line in newest_first if line.role in ANSWERABLE_ROLES), default=0
            ),
            "asker": asker,
            "schedule": schedule,
            "last_message": next((line.text for line in newest_first if line.role is LineRole.USER), ""),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def unread(self) -> list[Attachment]:
        """The attached files whose content was not read yet."""
        return [file for file in self.files.values() if not file.ready]

    @property
    def request_line_id(self) -> int:
        """The id of the line that asked for this work, also for the work of teammates; 0 without such a line.

        It is the last line of a person, or the note that began a run of a schedule.
        """
        if self.teammate is not None:
            return self.teammate.asking_line_id
        request_ids = [line.id for line in self.lines if line.role is LineRole.USER or line.schedule]
        return max(request_ids, default=0)

    @property
    def awaits_answer(self) -> bool:
        """True if it is the agent's turn: someone spoke last, or every call it made has ended."""
        lines_for_model = [line for line in self.lines if line.role is not LineRole.NOTICE]
        if not lines_for_model:
            return False
        last = lines_for_model[-1]
        if last.role in ANSWERABLE_ROLES:
            return True
        proposals = [self.proposals.get((last.id, call.id)) for call in last.calls]
        have_ended = all(proposal is None or proposal.settled for proposal in proposals)
        return bool(proposals) and have_ended


def keep_to_one_person(transcript: Transcript) -> Transcript:
    """Return the transcript up to the first unanswered heard line that another account wrote or caused.

    So a turn works for one account alone, and the next turn answers the lines that are left out.
    """
    lines = transcript.lines
    answered_id = max((line.after for line in lines if line.role is LineRole.ASSISTANT), default=0)
    first_unanswered = len(lines)
    for position, line in enumerate(lines):
        if line.role in ANSWERABLE_ROLES and line.id > answered_id:
            first_unanswered = position
            break

    asker = _find_asker_of_ended_calls(replace(transcript, lines=lines[:first_unanswered]))
    for position in range(first_unanswered, len(lines)):
        line = lines[position]
        if line.actor is None or line.role not in ANSWERABLE_ROLES:
            continue
        if asker is not None and str(line.actor) != str(asker):
            return replace(transcript, lines=lines[:position])
        asker = line.actor
    return transcript


def _find_asker_of_ended_calls(answered: Transcript) -> Actor | None:
    """Return the account that asked last, if all calls of the last answer have ended; else None.

    ``answered`` ends with the last line that needs no answer. Calls that ended await one, for that account.
    """
    if answered.lines and answered.awaits_answer:
        return answered.asker
    return None


@dataclass(frozen=True, slots=True)
class Usage:
    """The model calls of a turn so far, and their cost."""

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None  # None where its model has no price
    model: str | None = None  # the model that was asked last

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that begins to run."""

    id: int
    transcript: Transcript  # everything the model will see
    usage: Usage
    owner: str = ""  # the id of the process that runs it
    has_undelivered: bool = False  # texts or files from before the turn were not shown to people yet

    def key(self, number: int) -> str:
        """Return the key of the turn's answer of this number, which is also in the answer's row."""
        return f"{self.id}.{number}"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn."""

    turn_id: int
    state: str  # an `Ending`, or ``failed``
    error: str | None  # the text for people


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A person's question to the agent about an open proposal (*Ask* on its card)."""

    proposal_id: str
    home: str  # the id of the conversation in which the agent answers
    note: int  # the id of the line in ``home`` that passes the question to the agent
    asker: str  # an account, as text
    name: str  # the asker's name
    text: str
    asked_at: str  # ISO 8601
    place: str = ""  # the address where the answer is posted; empty: only in the conversation
    ref: str = ""  # the card at ``place`` below which the answer is posted; empty: in the asker's own chat
    answer: str = ""  # the agent's answer, once it has given one

    @property
    def address(self) -> Address | None:
        if self.place:
            return Address.parse(self.place)
        return None

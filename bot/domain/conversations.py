"""A conversation and its lines: what people, the agent and Nod said, in the order the model reads it.

A question about an open proposal, and its answer. Pure.
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
from bot.domain.text import storable


class LineRole(StrEnum):
    USER = "user"  # a person
    NOTE = "note"  # Nod tells the model, e.g. how a proposal ended in the meantime
    ASSISTANT = "assistant"  # the agent
    NOTICE = "notice"  # Nod tells people, not the model, e.g. that a turn failed
    SUMMARY = "summary"  # a model's own short form of the oldest lines, up to the one that it is ``after``


HEARD = frozenset({LineRole.USER, LineRole.NOTE})
"""What the agent answers to."""
SPOKEN = HEARD | {LineRole.ASSISTANT}
"""What people, the agent and Nod say to each other."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation. ``origin``: the place where people see its cards, whose rules apply."""

    id: str
    address: Address
    origin: Address
    private: bool
    requester: Actor  # who began it
    title: str
    created_at: datetime
    ended_at: datetime | None = None
    shown_at: Address | None = None  # a teammate's: the lead conversation's address
    deleted: bool = False  # what was said in it is gone


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model asked for it; ``arguments`` is its raw JSON text.

    Tools and models give what no database keeps; a row of an older release may have it.
    """

    id: str
    tool_name: str
    arguments: str
    summary: str
    extra: Mapping[str, Any] = field(default_factory=dict)  # what the model's server wants back with it

    def __post_init__(self) -> None:
        names = ("id", "tool_name", "arguments", "summary")
        for name, text in storable({name: getattr(self, name) for name in names}).items():
            object.__setattr__(self, name, text)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call that never was a proposal: a read, or a call that was refused.

    ``outside``: the text is a tool's own, not Nod's. ``files`` are for the program that asked, if one did.
    """

    text: str
    ok: bool
    outside: bool = True
    files: tuple[File, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", storable(self.text))


@dataclass(frozen=True, slots=True)
class Line:
    """One entry. ``after`` is the id of the last heard line it answers (its own id where it is heard)."""

    id: int
    role: LineRole
    text: str
    after: int
    actor: Actor | None
    calls: Sequence[Call]
    results: Mapping[str, CallResult]
    created_at: datetime
    event_id: str | None = None  # what its channel calls it; of an answer its key; of a run, which it is
    files: Sequence[str] = ()  # handles of what came with it

    @property
    def schedule(self) -> str | None:
        """The id of the schedule that a note begins a run of."""
        is_run = self.role is LineRole.NOTE and self.event_id is not None
        if is_run and self.event_id:
            return self.event_id.partition(".")[0]
        return None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as read in one snapshot: lines in the model's order, and every proposal they led to."""

    conversation: Conversation
    lines: Sequence[Line]
    proposals: Mapping[tuple[int, str], Proposal]  # by message id and call id
    teammate: Teammate | None = None  # whose conversation it is; None: the lead agent's
    files: Mapping[str, Attachment] = field(
        default_factory=dict
    )  # by handle; those that are forgotten are not
    pictures: Mapping[str, Picture] = field(default_factory=dict)  # those that the model is shown, by handle
    summary: Line | None = None  # what stands for the oldest lines
    seen: int = field(init=False)  # the id of the last heard line, 0 in an empty conversation
    asker: Actor = field(init=False)  # who wrote last: the requester of what the agent proposes now
    schedule: str | None = field(init=False)  # whose run this is, where no person wrote since
    heard: str = field(init=False)  # what a person said last

    def __post_init__(self) -> None:
        """Find once what each step of a turn asks for."""
        newest = self.lines[::-1]
        begun = next((line for line in newest if line.actor), None)
        known = {
            "seen": max((line.id for line in newest if line.role in HEARD), default=0),
            "asker": (begun and begun.actor) or self.conversation.requester,
            "schedule": begun.schedule if begun else None,
            "heard": next((line.text for line in newest if line.role is LineRole.USER), ""),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @property
    def unread(self) -> list[Attachment]:
        """The attached files that are not read yet."""
        return [each for each in self.files.values() if not each.ready]

    @property
    def order(self) -> int:
        """The id of the line that all of this answers, teammates' work included; 0 before any.

        It is a person's, or the one that began a run of a schedule.
        """
        if self.teammate is not None:
            return self.teammate.asked
        return max((x.id for x in self.lines if x.role is LineRole.USER or x.schedule), default=0)

    @property
    def awaits_answer(self) -> bool:
        """True if it is the agent's turn: someone spoke last, or every call it made has ended."""
        spoken = [line for line in self.lines if line.role is not LineRole.NOTICE]
        if not spoken:
            return False
        last = spoken[-1]
        if last.role in HEARD:
            return True
        found = (self.proposals.get((last.id, call.id)) for call in last.calls)
        return bool(last.calls) and all(p is None or p.settled for p in found)


def keep_to_one_person(transcript: Transcript) -> Transcript:
    """Return a transcript up to where someone else wrote, as long as what came before awaits an answer.

    So a turn answers the lines of one account, and what others wrote since begins the next turn.
    """
    answered = max((x.after for x in transcript.lines if x.role is LineRole.ASSISTANT), default=0)
    lines = transcript.lines
    first = next((at for at, x in enumerate(lines) if x.role in HEARD and x.id > answered), len(lines))
    before = replace(transcript, lines=lines[:first])
    whose = before.asker if first and before.awaits_answer else None
    for at in range(first, len(lines)):
        line = lines[at]
        if line.actor is None or line.role not in HEARD:
            continue
        if whose is not None and str(line.actor) != str(whose):
            return replace(transcript, lines=lines[:at])
        whose = line.actor
    return transcript


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a turn. ``cost`` is None where its model has no price; ``model`` is the one asked last."""

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    model: str | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Turn:
    """A wanted turn, as taken up: its id, everything the model will see, and the process that runs it.

    ``has_undelivered``: people have yet to be shown something from before it.
    """

    id: int
    transcript: Transcript
    usage: Usage
    owner: str = ""
    has_undelivered: bool = False

    def key(self, answers: int) -> str:
        """Return the key of its answer of this number, before there is a row and in it."""
        return f"{self.id}.{answers}"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn. ``state``: an `Ending`, or ``failed``. ``error``: the text that people were told."""

    turn_id: int
    state: str
    error: str | None


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A person's question about a proposal.

    ``home`` is the conversation in which the agent answers; ``note`` the id of the line that told it.

    ``place`` and ``ref``: the card elsewhere below which the answer is awaited; without ``ref`` the asker's
    own chat, without both nowhere.
    """

    proposal_id: str
    home: str
    note: int
    asker: str
    name: str
    text: str
    asked_at: str  # ISO 8601
    place: str = ""
    ref: str = ""
    answer: str = ""

    @property
    def address(self) -> Address | None:
        if self.place:
            return Address.parse(self.place)
        return None

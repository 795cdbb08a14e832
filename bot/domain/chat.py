"""The seam between channels and the core, on one page.

A channel turns what its platform sends into a `Message`, `Press`, `Command` or `Request` and hands it to the
`Inbox`; the core answers with a `Reply` for that one person and shows everything else through `Channel`.
How a turn's events reach a stream is in ``bot/delivery.py``; what a card says is in ``bot/domain/cards.py``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, Self

from bot.domain.cards import Card
from bot.domain.events import TurnEvent
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.similarity import Lasting, Rung
from bot.domain.teams import Board

Clock = Callable[[], datetime]
"""Now, always timezone-aware UTC."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a conversation lives. ``key`` is the channel's own: Slack ``T1/C2/17.1``, Telegram ``-100/7``."""

    channel: str
    key: str

    def __str__(self) -> str:
        return f"{self.channel}:{self.key}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``channel:key``; raises ValueError when there is no colon or an empty half."""
        channel, colon, key = text.partition(":")
        if not (colon and channel and key):
            raise ValueError(f"{text!r} is not of the form channel:key")
        return cls(channel, key)


SHELL = "cli"
"""The channel of who sits at this machine's shell; nothing is posted there, people look by themselves."""


class Verb(StrEnum):
    """What a press asks for; the words are kept short because buttons carry them."""

    APPROVE = "approve"  # one vote for; with arguments: edit, then vote
    DECLINE = "decline"  # one vote against, reason optional
    EDIT = "edit"  # replace the arguments and ask again, without a vote
    CANCEL = "cancel"  # the requester or an admin takes it back
    RETRY = "retry"  # run a failed one again
    SIMILAR = "similar"  # one vote for, and a grant for calls like it
    EXTEND = "extend"  # let it wait its whole time again
    EXPIRE = "expire"  # an admin ends the waiting
    REASSIGN = "reassign"  # an admin says who may decide; ``reason`` names them
    REVISE = "revise"  # a plan: send it back; ``reason`` says what should change
    APPROVE_STEPS = "approve_steps"  # a plan: one vote for, and a grant for each tool it names
    APPROVE_ALL = "approve_all"  # every open proposal of the same answer
    DECLINE_ALL = "decline_all"


@dataclass(frozen=True, slots=True)
class Message:
    """Text from a person. ``event_id`` is unique within the channel: a second delivery of it stops.

    ``begin`` is the id a conversation that starts with this message gets; None leaves it to the store.
    """

    address: Address
    actor: Actor
    text: str
    event_id: str
    private: bool = True
    begin: str | None = None


@dataclass(frozen=True, slots=True)
class Press:
    """A decision about one proposal.

    ``round`` is the round the pressed card showed (for the verbs ``*_all`` the sum over the group); the
    press is refused as stale when the content has changed since. None says: as it is now (API and CLI).
    """

    actor: Actor
    verb: Verb
    proposal_id: str
    round: int | None = None
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    digest: str | None = None
    address: Address | None = None  # where the pressed card stands
    rung: Rung | None = None  # with SIMILAR: how far the grant reaches
    lasting: Lasting | None = None  # with SIMILAR: how long it holds


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command: ``name`` without the slash, ``text`` what follows it, unparsed."""

    actor: Actor
    name: str
    text: str
    address: Address
    private: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """A call that no model made: a script asks for approval, a person calls a tool, a server asks a question.

    It always becomes a proposal. ``text`` is what people read above its card. It belongs to the conversation
    ``into``, else to the one at ``address``, which begins if none goes on there (with the id ``begin``).
    ``event_id`` is unique within the channel: a second request with it is the first. ``ttl`` shortens how
    long it waits. ``callback_url`` is told the end.
    """

    actor: Actor
    tool_name: str
    arguments: Mapping[str, Any]
    address: Address
    text: str
    private: bool = False
    into: str | None = None
    begin: str | None = None
    event_id: str | None = None
    reason: str = ""
    ttl: timedelta | None = None
    callback_url: str | None = None


class Answer(StrEnum):
    """How the core took something in."""

    ACCEPTED = "accepted"  # it counts, and what it asked for is done or under way
    ALREADY = "already"  # somebody decided before; nothing happened
    REFUSED = "refused"  # this person may not; the proposal stays open for others
    UNKNOWN = "unknown"  # no such proposal
    STALE = "stale"  # the content changed after the card was shown
    INVALID = "invalid"  # the arguments or words do not fit; ``fields`` says where
    DUPLICATE = "duplicate"  # this event was already taken in


@dataclass(frozen=True, slots=True)
class Reply:
    """What to tell, privately, the one person who wrote or pressed."""

    answer: Answer
    text: str
    proposals: tuple[Proposal, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    conversation_id: str | None = None
    message_id: int | None = None


Incoming = Message | Press | Command | Request
Inbox = Callable[[Incoming], Awaitable[Reply]]


class Stream(Protocol):
    """One turn being shown at one address, from its first event to `TurnEnded` or `TurnFailed`."""

    async def send(self, event: TurnEvent) -> None:
        """Show the event; text deltas may arrive joined. Raises ChannelError when the platform refuses."""


class Channel(Protocol):
    """A place people are. Everything here may raise ChannelError; nothing here decides anything."""

    name: str
    pulls: bool
    """True: people read rows themselves (the web), so there are no copies to redraw, no posts to repeat."""

    async def start(self, inbox: Inbox, desk: "Desk") -> None: ...

    async def stop(self) -> None: ...

    def open_stream(self, address: Address, requester: Actor) -> Stream: ...

    async def post(self, address: Address, markdown: str) -> None:
        """Post CommonMark text, split as the platform needs.

        The address may be a person's own: the channel and key of an `Actor`.
        """

    async def post_card(self, address: Address, card: Card) -> str:
        """Post a card and return the platform's reference to the copy (≤ 255 characters)."""

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        """Make the copy show ``card``; raises CopyGone when it no longer can."""

    async def post_file(self, address: Address, name: str, text: str) -> None:
        """Post a text as a file; raises NotDeliverable where files can never be posted."""

    async def post_board(self, address: Address, board: Board) -> str:
        """Post the team of the conversation there and return the reference to it (≤ 255 characters)."""

    async def redraw_board(self, address: Address, ref: str, board: Board) -> None:
        """Make it show ``board``; raises CopyGone when it no longer can."""

    async def changed(self) -> None:
        """Note that a proposal somewhere changed, so that lists which show proposals come up to date.

        Returns fast and never raises: whatever needs the network is done later, many changes at once.
        """


@dataclass(frozen=True, slots=True)
class Overview:
    """One person's view of all proposals, newest first, as cards."""

    waiting: tuple[Card, ...]  # this person may decide
    asked: tuple[Card, ...]  # this person's own, still open
    recent: tuple[Card, ...]  # ended lately, decided or asked for by this person


class Desk(Protocol):
    """What a channel may look up. Everything is checked against who asks.

    ``address`` is where the card in question stands before them; some circles are whoever is in a chat.
    """

    async def card(self, proposal_id: str, actor: Actor, address: Address | None = None) -> Card | None:
        """The card as it is now; None when there is none, or none for this person at this address."""

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        """What an edit form starts from (secrets as `HIDDEN`); None when this person may not decide."""

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[Rung, str]]:
        """What "approve similar" may allow here, narrowest first, in words; empty when nothing."""

    async def overview(self, actor: Actor) -> Overview: ...

    async def may_decide(self, proposal_id: str, actor: Actor, address: Address | None = None) -> bool: ...

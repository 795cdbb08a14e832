"""Incoming values from people and the replies to them, exchanged between channels and the core.

A channel turns what its platform sends into a `Message`, `Press`, `Command` or `Request` and hands it to the
`Inbox`; the core answers with a `Reply` for that one person. The interface of a channel is in
``bot/channels/base.py``.

Choice buttons below a text of Nod's own hold words that the person who presses them then says, as any other
`Message`. The text itself says what to send, for places without buttons and for choices that fit none.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self

from bot.domain.attachments import Upload
from bot.domain.people import Actor, Names
from bot.domain.proposals import Proposal, State
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb

Clock = Callable[[], datetime]
"""Now, always timezone-aware UTC."""

OFFERED = "/nod "
"""The beginning of the words of a button that sends a command and stays, so that it can be pressed again."""
_MOST_CHOICES = 5
_MARK = "nod:say:"
_BYTES = 64  # of what a button carries; Telegram takes the fewest
_ALREADY = "This was pressed already."


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a conversation.

    ``key`` is the channel's own: Slack ``T1/C2/17.1``, Telegram ``-100/7``.
    """

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

    def is_own(self, actor: Actor) -> bool:
        """Return whether it lies in an account's own place, as conversations over HTTP do."""
        return self.channel == actor.channel and self.key.startswith(f"{actor.key}/")


def chat_of(address: Address | None) -> Address | None:
    """Return the chat that a thread belongs to (Slack ``T1/C2/17.1`` → ``T1/C2``).

    The address itself elsewhere.
    """
    if address is None or address.key.count("/") < 2:  # noqa: PLR2004 - a team, a channel, a thread
        return address
    return Address(address.channel, address.key.rsplit("/", 1)[0])


@dataclass(frozen=True, slots=True)
class Message:
    """Text from a person. ``event_id`` is unique within the channel: a second delivery of it is dropped.

    ``begin`` is the id a conversation that starts with this message gets; None leaves it to the store.
    """

    address: Address
    actor: Actor
    text: str
    event_id: str
    private: bool = True
    begin: str | None = None
    names: Names = field(
        default_factory=dict, compare=False
    )  # of places and people, as the platform has them
    files: tuple[Upload, ...] = ()
    continues: bool = False  # an open conversation; it starts none


@dataclass(frozen=True, slots=True)
class Press:
    """A decision about one proposal.

    ``round`` is the round the pressed card showed (for the verbs ``*_all`` the sum over the group); the
    press is refused as stale when the content has changed since. None says: as it is now (API and CLI).
    ``seen`` and ``digest`` are the proposal's own, as they were when it was looked at.
    """

    actor: Actor
    verb: Verb
    proposal_id: str
    round: int | None = None
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    digest: str | None = None
    address: Address | None = None  # where the pressed card stands
    rung: GrantScope | None = None  # with SIMILAR: how far the grant reaches
    lasting: GrantDuration | None = None  # with SIMILAR: how long it holds
    reach: GrantAudience = GrantAudience.HERE  # with SIMILAR: whose calls it lets run, and where
    ref: str | None = None  # the pressed card, as `Channel.post_card` named it; None: not pressed on a card
    seen: str | None = None
    by_api: bool = False  # by a program, at its own place: what was edited since, it has to name
    names: Names = field(
        default_factory=dict, compare=False
    )  # of places and people, as the platform has them


class PickedRow(NamedTuple):
    """A row of a batch as it was looked at; ``seen`` or ``round``, as in `Press`."""

    id: str
    seen: str | None = None
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision about some rows of a batch: which to approve and which to decline; the others stay open.

    ``batch`` is its id. ``round`` is the sum over all its rows, where it was pressed on the batch's card.
    """

    actor: Actor
    batch: str
    approve: tuple[PickedRow, ...] = ()
    decline: tuple[PickedRow, ...] = ()
    reason: str | None = None
    round: int | None = None
    address: Address | None = None
    ref: str | None = None
    by_api: bool = False
    names: Names = field(default_factory=dict, compare=False)

    @property
    def proposal_id(self) -> str:
        """The proposal whose card was pressed."""
        return self.batch


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command: ``name`` without the slash, ``text`` what follows it, unparsed.

    ``in_conversation`` False: the platform does not say which conversation it was typed in. ``begun_by``:
    only work that had begun by then is to be stopped; None for all of it.
    """

    actor: Actor
    name: str
    text: str
    address: Address
    private: bool = True
    in_conversation: bool = True
    mentions: tuple[Actor, ...] = field(default=(), compare=False)  # people, with what they are to the team
    names: Names = field(
        default_factory=dict, compare=False
    )  # of places and people, as the platform has them
    begun_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A call that no model made: a script asks for approval, a person calls a tool, a server asks a question.

    It always becomes a proposal. ``text`` is what people read above its card. It belongs to the conversation
    ``into``, else to the one at ``address``, which begins if none continues there (with the id ``begin``).
    ``event_id`` is unique within the channel: a second request with it is the first. ``ttl`` shortens how
    long it waits. ``callback_url`` is told the end. ``agent``: the program that asks for the actor, as
    `Agent.key`; ``servers`` are those at which it may act as them, ``depth`` the number of calls that led to
    its own.
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
    agent: str | None = None
    servers: tuple[str, ...] = ()
    depth: int = 0


class Answer(StrEnum):
    """The outcome of an incoming message, press or command."""

    ACCEPTED = "accepted"  # it counts, and what it asked for is done or under way
    ALREADY = "already"  # someone has already decided; nothing happened
    REFUSED = "refused"  # this person may not; the proposal stays open for others
    UNKNOWN = "unknown"  # no such proposal
    STALE = "stale"  # what was shown is no longer so, or cannot be done any longer
    INVALID = "invalid"  # the arguments or words do not fit; ``fields`` says where
    LATER = "later"  # too much came from this person; it may be sent again later
    DUPLICATE = "duplicate"  # this event was received before
    ANSWERED = "answered"  # a part of Nod had asked for these words; no model reads them


@dataclass(frozen=True, slots=True)
class LinkButton:
    """A page that a person opens by a button; by a link in the text where a platform has none for it."""

    label: str
    url: str

    @property
    def markdown(self) -> str:
        return f"[{self.label}]({self.url})"

    @property
    def is_button(self) -> bool:
        """True if platforms take it on a button: they refuse some addresses without TLS."""
        return self.url.startswith("https://")


@dataclass(frozen=True, slots=True)
class Reply:
    """The private reply to the person who wrote or pressed. ``rule`` is the id of a rule that was set.

    ``is_private``: it tells what may be from other chats, so no one but that person may read it. ``link`` is
    the first line of ``text``, too.
    """

    answer: Answer
    text: str
    proposals: tuple[Proposal, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    conversation_id: str | None = None
    message_id: int | None = None
    rule: int | None = None
    is_private: bool = False
    link: LinkButton | None = None

    def split_link(self) -> tuple[str, LinkButton | None]:
        """Return the text without its link, and the button for that; the full text and None without one."""
        if self.link is None or not self.link.is_button:
            return self.text, None
        return self.text.removeprefix(self.link.markdown).lstrip(), self.link

    @property
    def on_cards(self) -> bool:
        """True if the cards show all that this says: it was taken, and nothing stayed open."""
        open_still = any(p.state is State.PROPOSED for p in self.proposals)
        return self.answer is Answer.ACCEPTED and not open_still


@dataclass(frozen=True, slots=True)
class ChatMoved:
    """A platform's word that a chat at which people wrote to Nod has been another one's earlier id."""

    old: Address
    new: Address


Sent = Message | Press | Choice | Command | Request
"""A message, press, command or request that a person sends."""
Incoming = Sent | ChatMoved


def names_in(incoming: Sent) -> dict[str, str]:
    """Return the platform's names for the person and the places in an input."""
    more = {} if isinstance(incoming, Request) else incoming.names
    found = {str(incoming.actor): incoming.actor.name, **more}
    return {key: name for key, name in found.items() if name.strip()}


Inbox = Callable[[Incoming], Awaitable[Reply]]


class Parts(StrEnum):
    """The dimension by which usage is grouped."""

    DAY = "day"  # in UTC
    CONVERSATION = "conversation"
    ACCOUNT = "account"  # of the person whose conversation it is
    PERSON = "person"  # who asked
    PLACE = "place"  # of private chats their channel
    MODEL = "model"
    ORDER = "order"  # one thing that a person asked for: its turns, and those of teammates


class Used(NamedTuple):
    """The usage of one part, or of all. Tokens are as the model server told them; 0 where it did not.

    ``cost`` is None where no model of it has a price.
    """

    key: str
    name: str
    turns: int
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: "Used") -> "Used":
        """Return the sum of both, under this one's name."""
        costs = [each.cost for each in (self, other) if each.cost is not None]
        return self._replace(
            turns=self.turns + other.turns,
            model_calls=self.model_calls + other.model_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=sum(costs) if costs else None,
        )


EXTEND, EXTEND_LABEL = "/approvals budget extend ", "Extend the budget"


def make_choice_buttons(choices: Iterable[str]) -> list[tuple[str, str]]:
    """Return the label of each button and what it carries, where that fits."""
    marked = [(words, f"{_MARK}{words}") for words in dict.fromkeys(choices)]
    return [(_label(words), mark) for words, mark in marked if read_choice(mark)][:_MOST_CHOICES]


def make_offer_mark(words: str) -> str:
    """Return what the button of a command carries. Raises ValueError for more than a button can carry."""
    mark = f"{_MARK}{OFFERED}{words}"
    if read_choice(mark) is None:
        raise ValueError(f"{words!r} does not fit a button")
    return mark


def _label(words: str) -> str:
    if words.startswith(EXTEND):
        return EXTEND_LABEL
    return words


def read_choice(mark: str) -> str | None:
    """Return the words a button stands for; None for any other button."""
    words = mark.removeprefix(_MARK)
    fits = mark.startswith(_MARK) and words.strip() and len(mark.encode(errors="replace")) <= _BYTES
    return words if fits else None


def make_said(
    words: str, ref: str, actor: Actor, at: Address, *, private: bool, names: Names
) -> Message | Command:
    """Return the message or command of a choice button, in the name of the person who pressed it.

    A message has an event id made of ``ref`` and the words, so pressing twice sends it once.
    """
    if words.startswith("/"):
        name, _, text = words[1:].partition(" ")
        return Command(actor, name, text, at, private, names=names)
    return Message(at, actor, words, f"{ref} {_MARK}{words}", private, continues=True, names=names)


def refusal(reply: Reply) -> str:
    """Return the reply to the person who pressed; empty where a message was accepted."""
    if reply.answer is Answer.DUPLICATE:
        return _ALREADY
    return reply.text

"""The contract between channels and the core: what people send in, and the reply that each of them gets.

A channel turns what its platform sends into a `Message`, `Press`, `BatchDecision`, `Command` or `Request` and
hands it to the `Inbox`, which is `Assistant.handle` in ``bot/inbox.py``. The `Reply` is for that one person.
Cards and the agent's texts go out by another way, which ``bot/channels/base.py`` describes. A *proposal* is a
call that waits for people; a *batch* is several of them on one card.

A message of Nod may have choice buttons below it. Pressing a choice button sends its words, as if the person
had written them: a message, or a command if the words begin with a slash.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self

from bot.domain.attachments import Upload
from bot.domain.people import Actor, Names
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb

Clock = Callable[[], datetime]
"""Now, always timezone-aware UTC."""

COMMAND_OFFER_PREFIX = "/nod "
"""The beginning of the words of a choice button that offers a command: such a button stays after a press."""
EXTEND_BUDGET_PREFIX = "/approvals budget extend "
"""The beginning of another command that a choice button may send."""
EXTEND_BUDGET_LABEL = "Extend the budget"
"""The label of the button with that command."""
_MAX_CHOICES = 5  # the most choice buttons below one message
_MARK_PREFIX = "nod:say:"  # the *mark* of a choice button, its data, is this prefix and its words
_MAX_MARK_BYTES = 64  # Telegram's limit for the data of a button, the smallest of all platforms
_ALREADY_TEXT = "This was pressed already."


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a conversation, or of a chat: a channel, and a key within it.

    Each channel has its own form of keys: in Slack ``T1/C2/17.1`` (workspace, chat, thread).
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
        """Return whether the address belongs to this account: ``http:ana/…``, over HTTP, is ana's."""
        return self.channel == actor.channel and self.key.startswith(f"{actor.key}/")


def chat_of(address: Address | None) -> Address | None:
    """Return the chat of a thread (Slack ``T1/C2/17.1`` → ``T1/C2``); any other address as it is."""
    if address is None or address.key.count("/") < 2:  # noqa: PLR2004 - a team, a channel, a thread
        return address
    return Address(address.channel, address.key.rsplit("/", 1)[0])


def same_chat(origin: str, pressed: str) -> bool:
    """Tell if two addresses are the same chat, or one is a thread of the other."""
    return pressed == origin or origin.startswith(f"{pressed}/") or pressed.startswith(f"{origin}/")


@dataclass(frozen=True, slots=True)
class Message:
    """Text from a person."""

    address: Address
    actor: Actor
    text: str
    event_id: str  # unique within the channel: a second delivery of the same event is dropped
    private: bool = True  # no one else reads along
    begin: str | None = None  # `new_conversation_id`; channels of plugins pass it by this name
    names: Names = field(default_factory=dict, compare=False)  # the platform's names of places and people
    files: tuple[Upload, ...] = ()
    continues: bool = False  # `needs_open_conversation`; channels of plugins pass it by this name

    @property
    def new_conversation_id(self) -> str | None:
        """The id for the conversation, if the message begins one; None: one is made up."""
        return self.begin

    @property
    def needs_open_conversation(self) -> bool:
        """True if the message belongs to an open conversation, and begins none."""
        return self.continues


@dataclass(frozen=True, slots=True)
class Press:
    """A decision about one proposal.

    ``round``, ``seen`` and ``digest`` identify the content that the person saw; each that is None is not
    compared. If the content has changed since, the press is refused as stale.

    The verb SIMILAR (*Approve similar*) also gives a grant. ``rung``, ``lasting`` and ``reach`` are the
    grant's scope, duration and audience, as ``bot/domain/similarity.py`` explains them.
    """

    actor: Actor
    verb: Verb
    proposal_id: str
    round: int | None = None  # the card's round; for the verbs ``*_all`` the sum over the group; None: any
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None  # the edited arguments; None: not edited
    digest: str | None = None  # `Proposal.digest`; None: any
    address: Address | None = None  # the address of the pressed card
    rung: GrantScope | None = None  # how similar the calls must be that the grant lets run
    lasting: GrantDuration | None = None  # how long the grant holds
    reach: GrantAudience = GrantAudience.HERE  # whose calls the grant lets run, and where
    ref: str | None = None  # the pressed card, as `Channel.post_card` named it; None: not pressed on a card
    seen: str | None = None  # `Proposal.seen`, a hash of what the card showed; None: any
    by_api: bool = False  # a program pressed; after an edit it must name the content that it decides on
    names: Names = field(default_factory=dict, compare=False)  # as in `Message`


class PickedRow(NamedTuple):
    """A row of a batch, with ``seen`` or ``round`` of the content that the person saw, as in `Press`."""

    id: str
    seen: str | None = None
    round: int | None = None


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """A decision about some rows of a batch: which to approve and which to decline; the others stay open.

    Fields that a `Press` also has mean the same, unless a comment says more.
    """

    actor: Actor
    batch: str  # the id of the batch
    approve: tuple[PickedRow, ...] = ()
    decline: tuple[PickedRow, ...] = ()
    reason: str | None = None
    round: int | None = None  # the sum over all rows that the batch's card showed; None: not pressed there
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
    """A slash command."""

    actor: Actor
    name: str  # without the slash
    text: str  # after the name, unparsed
    address: Address
    private: bool = True  # no one else reads along
    in_conversation: bool = True  # False: the platform does not say in which conversation it was typed
    mentions: tuple[Actor, ...] = field(default=(), compare=False)  # mentioned people, with their membership
    names: Names = field(default_factory=dict, compare=False)  # as in `Message`
    begun_by: datetime | None = None  # for a command that stops work: only work begun by then; None: all


@dataclass(frozen=True, slots=True)
class Request:
    """A call that no model made: a script asks for approval, a person calls a tool, a server asks a question.

    It always becomes a proposal, in the conversation ``conversation_id`` or else in the one at ``address``.
    """

    actor: Actor
    tool_name: str
    arguments: Mapping[str, Any]
    address: Address
    text: str  # the text that people read above the card
    private: bool = False  # no one else reads along at ``address``
    conversation_id: str | None = None  # the id of the conversation in which it becomes a proposal
    # the id for a new conversation, which begins unless one is open at ``address``
    new_conversation_id: str | None = None
    event_id: str | None = None  # unique within the channel: a request with the same id is a repetition
    reason: str = ""
    ttl: timedelta | None = None  # shortens the time that it waits
    callback_url: str | None = None  # the webhook for its end
    agent: str | None = None  # the program that asks on the actor's behalf, as `Agent.key`
    servers: tuple[str, ...] = ()  # the servers at which that program may act as the actor
    depth: int = 0  # the number of agents' calls that led to this one


class Answer(StrEnum):
    """The outcome of what a person sent; the first word of the `Reply`."""

    ACCEPTED = "accepted"  # the input counts, and its effect is done or under way
    ALREADY = "already"  # someone has already decided; nothing happened
    REFUSED = "refused"  # this person may not; the proposal stays open for others
    UNKNOWN = "unknown"  # no such proposal
    STALE = "stale"  # the shown content has changed, or the act is no longer possible
    INVALID = "invalid"  # the arguments or words do not fit; ``fields`` says where
    LATER = "later"  # this person sent too much; the input may be sent again later
    DUPLICATE = "duplicate"  # this event was received before
    ANSWERED = "answered"  # a feature had asked the person for these words; no model reads them


@dataclass(frozen=True, slots=True)
class LinkButton:
    """A page that a person opens by a button, or by a link in the text where the platform takes no button."""

    label: str
    url: str

    @property
    def markdown(self) -> str:
        return f"[{self.label}]({self.url})"

    @property
    def is_button(self) -> bool:
        """True if platforms take the address on a button: some platforms refuse addresses without TLS."""
        return self.url.startswith("https://")


@dataclass(frozen=True, slots=True)
class Reply:
    """The private reply to the person who wrote or pressed."""

    answer: Answer
    text: str  # may be empty, as for an accepted message, which the agent answers
    proposals: tuple[Proposal, ...] = ()  # the proposals that the reply is about
    fields: Mapping[str, str] = field(default_factory=dict)  # faults, by the argument's name
    conversation_id: str | None = None
    message_id: int | None = None
    rule: int | None = None  # the id of a rule that was set
    is_private: bool = False  # no one else may read the reply, since it may be about other chats
    link: LinkButton | None = None  # a page to open; its Markdown is also the first line of ``text``

    def split_link(self) -> tuple[str, LinkButton | None]:
        """Return the text without its line for the link, and the link to put on a button.

        The full text and None if there is no link, or none that platforms take on a button.
        """
        if self.link is None or not self.link.is_button:
            return self.text, None
        return self.text.removeprefix(self.link.markdown).lstrip(), self.link

    @property
    def on_cards(self) -> bool:
        """True if the cards say all of the reply: the input was accepted, and no proposal still waits."""
        is_any_open = any(proposal.state is State.PROPOSED for proposal in self.proposals)
        return self.answer is Answer.ACCEPTED and not is_any_open


@dataclass(frozen=True, slots=True)
class ChatMoved:
    """The news from a platform that a chat has a new address."""

    old: Address
    new: Address


Sent = Message | Press | BatchDecision | Command | Request
"""An input that a person, or a program in a person's name, sends."""
Incoming = Sent | ChatMoved
"""Everything that a channel hands to the `Inbox`."""


def names_in(incoming: Sent) -> dict[str, str]:
    """Return the platform's names for the people and places in an input, by account or address."""
    names = {str(incoming.actor): incoming.actor.name}
    if not isinstance(incoming, Request):
        names.update(incoming.names)
    return {key: name for key, name in names.items() if name.strip()}


Inbox = Callable[[Incoming], Awaitable[Reply]]
"""The function of the core that takes in what a channel received."""


class Parts(StrEnum):
    """The dimension by which a report groups the usage of models: one group a day, for example."""

    DAY = "day"  # in UTC
    CONVERSATION = "conversation"
    ACCOUNT = "account"  # the account that began the conversation
    PERSON = "person"  # the person who asked
    PLACE = "place"  # the chat; for private chats the channel
    MODEL = "model"
    ORDER = "order"  # one request of a person, with all its turns, also turns of teammates


class UsageRow(NamedTuple):
    """The usage of models in one group of a report, or in total."""

    key: str  # the group: a day, an account, a model …; empty for the total
    name: str  # the group for people; may be empty
    turns: int
    model_calls: int
    prompt_tokens: int  # tokens are counted by the model's server; 0 where the server does not say
    completion_tokens: int
    cost: float | None = None  # None if none of the models has a price

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def add(self, other: "UsageRow") -> "UsageRow":
        """Return the sum of two usages, under the name of the first."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return self._replace(
            turns=self.turns + other.turns,
            model_calls=self.model_calls + other.model_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=sum(costs) if costs else None,
        )


def make_choice_buttons(choices: Iterable[str]) -> list[tuple[str, str]]:
    """Return the label and the mark of each button; choices that are too long for a button are left out."""
    buttons = []
    for words in dict.fromkeys(choices):  # each once
        mark = f"{_MARK_PREFIX}{words}"
        fits_button = read_choice(mark) is not None
        if fits_button:
            buttons.append((_make_label(words), mark))
    return buttons[:_MAX_CHOICES]


def make_offer_mark(text: str) -> str:
    """Return the mark of a button that sends ``/nod WORDS``. Raises ValueError if it is too long."""
    mark = f"{_MARK_PREFIX}{COMMAND_OFFER_PREFIX}{text}"
    if read_choice(mark) is None:
        raise ValueError(f"{text!r} does not fit a button")
    return mark


def _make_label(text: str) -> str:
    if text.startswith(EXTEND_BUDGET_PREFIX):
        return EXTEND_BUDGET_LABEL
    return text


def read_choice(mark: str) -> str | None:
    """Return the words of a choice button by its mark; None for the data of any other button."""
    if not mark.startswith(_MARK_PREFIX) or len(mark.encode(errors="replace")) > _MAX_MARK_BYTES:
        return None
    words = mark.removeprefix(_MARK_PREFIX)
    return words if words.strip() else None


def act_on_choice(
    words: str, ref: str, actor: Actor, address: Address, *, private: bool, names: Names
) -> Message | Command:
    """Return the message or command that a choice button sends, in the name of the person who pressed it.

    ``words`` are those of the button, ``ref`` is the platform's reference to its message. The event id of a
    message is made of both, so pressing twice sends it once.
    """
    if words.startswith("/"):
        name, _, text = words[1:].partition(" ")
        return Command(actor, name, text, address, private, names=names)
    return Message(
        address,
        actor,
        words,
        f"{ref} {_MARK_PREFIX}{words}",
        private,
        continues=True,
        names=names,
    )


def format_choice_reply(reply: Reply) -> str:
    """Return the text for the person who pressed a choice button; empty where nothing has to be said.

    ``reply`` is the reply to the message or the command that the button sent.
    """
    if reply.answer is Answer.DUPLICATE:
        return _ALREADY_TEXT
    return reply.text

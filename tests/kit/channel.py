"""Channels whose streams, posts and cards can be looked at, and that can refuse."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.channels.base import Hearing, Lookup, Poster
from bot.channels.streamed_message import post_each
from bot.domain.cards import Card
from bot.domain.chat import Address, Inbox
from bot.domain.events import TextDelta, TextRestarted, TurnEnded, TurnEvent, TurnFailed
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership, UserGroup
from bot.domain.proposals import Proposal
from bot.domain.teams import TeamStatus
from bot.errors import ChannelError, CopyGone, NotDeliverable


@dataclass
class RecordingStream:
    channel: "ShowingChannel"
    address: Address
    events: list[TurnEvent] = field(default_factory=list)

    async def send(self, event: TurnEvent) -> None:
        self.channel.maybe_refuse("send")
        if isinstance(event, TurnEnded):
            self.channel.maybe_refuse("end")
        self.events.append(event)

    @property
    def text(self) -> str:
        """What stands there in the end."""
        text = ""
        for event in self.events:
            if isinstance(event, TextRestarted):
                text = ""
            elif isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, TurnFailed):
                text += event.explanation
        return text


class ShowingChannel:
    """Implements `Channel`: a place where people read rows themselves."""

    def __init__(self, name: str = "chat") -> None:
        self.name = name
        self.inbox: Inbox | None = None
        self.streams: list[RecordingStream] = []
        self.boards: dict[str, TeamStatus] = {}  # what each shows now, by its reference
        self.refusals: dict[str, ChannelError] = {}  # by what is asked: send, end, post, …
        self.changes = 0
        self.standings: dict[str, Membership | None] = {}  # by account, of those who are no members

    async def start(
        self, inbox: Inbox, lookup: Lookup, *, receives: bool = True, others: Peers | None = None
    ) -> None:
        self.inbox = inbox

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        self.maybe_refuse("standing")
        return self.standings.get(str(actor), Membership.MEMBER)

    async def stop(self) -> None:
        self.inbox = None

    def open_stream(self, address: Address, requester: Actor) -> RecordingStream:
        self.streams.append(RecordingStream(self, address))
        return self.streams[-1]

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        self.maybe_refuse("show_team")
        if ref and ref not in self.boards:
            raise CopyGone
        ref = ref or f"{self.name}-board-{len(self.boards) + 1}"
        self.boards[ref] = team
        return ref

    async def changed(self) -> None:
        self.changes += 1

    def maybe_refuse(self, what: str) -> None:
        if error := self.refusals.get(what):
            raise error


class RecordingChannel(ShowingChannel, Poster):
    """A platform whose posts and cards can be looked at, and that can refuse."""

    def __init__(self, name: str = "chat") -> None:
        super().__init__(name)
        self.reminders: list[tuple[str, str, tuple[Actor, ...]]] = []
        self.texts: list[tuple[Address, str]] = []
        self.files: list[tuple[Address, str, Any]] = []  # where, name, text or bytes
        self.uploads: dict[str, bytes | Exception] = {}  # what people attached, by what it is fetched by
        self.drawn: list[Card] = []  # every redraw, oldest first
        self.cards: dict[str, Card] = {}  # what each copy shows now, by its reference
        self.places: dict[str, Address] = {}
        self.paragraphs: list[str] = []  # each is refused once
        self.unwanted: set[str] = set()  # posts that are refused for their contents
        self.attempts = 0  # at posting a card
        self.heard = Hearing(1.0)
        self.groups: dict[str, UserGroup] = {}
        self.looked_up: list[str] = []
        self.lost_answers = 0  # this many of the next cards are posted, but nothing says so

    def hearing(self) -> Hearing:
        return self.heard

    async def look_up(self, group: str) -> UserGroup:
        self.looked_up.append(group)
        self.maybe_refuse("look_up")
        return self.groups[group]

    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        """Where a paragraph is to be refused, each is a post."""
        self.maybe_refuse("post")
        posts = markdown.split("\n\n") if self.paragraphs else [markdown]
        await post_each(posts, after, lambda post: self._post(address, post))

    async def _post(self, address: Address, post: str) -> None:
        if post in self.paragraphs:
            self.paragraphs.remove(post)
            raise ChannelError("down")
        if post in self.unwanted:
            raise NotDeliverable("the platform refuses its contents")
        self.texts.append((address, post))

    async def post_card(self, address: Address, card: Card) -> str:
        self.attempts += 1
        self.maybe_refuse("post_card")
        ref = f"{self.name}-{len(self.places) + 1}"
        self.cards[ref] = card
        self.places[ref] = address
        if self.lost_answers:
            self.lost_answers -= 1
            raise ChannelError("no answer")
        return ref

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        self.maybe_refuse("redraw_card")
        if ref not in self.cards:
            raise CopyGone
        self.cards[ref] = card
        self.drawn.append(card)

    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        self.maybe_refuse("remind")
        if ref not in self.cards:
            raise CopyGone
        self.texts.append((address, markdown))
        self.reminders.append((ref, markdown, tuple(people)))

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:
        found = self.uploads[ref]
        if isinstance(found, Exception):
            raise found
        return found[: most + 1]

    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        self.maybe_refuse("post_file")
        self.files.append((address, name, content))

    @property
    def shown(self) -> str:
        """All that people can read there, in the order of streams and posts."""
        return "\n".join([*(s.text for s in self.streams), *(text for _, text in self.texts)])

    def card_of(self, proposal: Proposal) -> Card:
        """What its newest copy shows, of a batch its row; one posted before a crash may be there twice."""
        rows = ([row.card for row in c.batch.rows] if c.batch else [c] for c in self.cards.values())
        return [card for each in rows for card in each if card.proposal_id == proposal.id][-1]

"""The HTTP channel: people read rows themselves, and listen to a conversation while they are there."""

import asyncio
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from bot.channels.http import views
from bot.channels.http.hub import Hub, payload
from bot.channels.http.streams import Pace
from bot.channels.http.views import Views
from bot.delivery import Bell
from bot.domain.cards import Card
from bot.domain.chat import Address, Desk, Inbox, Stream
from bot.domain.events import ProposalOpened, TurnEnded, TurnEvent, TurnFailed
from bot.domain.people import Actor
from bot.domain.teams import Board
from bot.errors import NotDeliverable
from bot.store import audit, conversations, proposals
from bot.store.database import Database
from bot.telemetry import logger
from bot.tools.registry import Registry, Shelf

log = logger(__name__)

NAME = "http"


def key_of(owner: Actor, conversation_id: str) -> str:
    """The address key of a conversation: no token's owner can name another's."""
    return f"{owner.key}/{conversation_id}"


@dataclass(frozen=True, slots=True)
class HubStream:
    """A turn for everybody who listens at its address."""

    channel: "HttpChannel"
    address: Address
    requester: Actor

    async def send(self, event: TurnEvent) -> None:
        hub = self.channel.hub
        if not hub.heard(self.address.key):
            return
        if isinstance(event, ProposalOpened):
            said = {"type": "action_proposed", "proposal": await self._view(event.proposal.id)}
        else:
            said = payload(event) or {}
            if isinstance(event, TurnEnded | TurnFailed):
                said["conversation_id"] = self.address.key.rpartition("/")[2]
        hub.publish(self.address.key, event, said)

    async def _view(self, proposal_id: str) -> dict[str, Any] | None:
        channel = self.channel
        shelf = await channel.registry.shelf()
        return await channel.database.read(channel.views.find, proposal_id, self.requester, shelf)


class HttpChannel:
    """Implements `Channel`. Cards are not posted anywhere: every answer renders them from their rows."""

    name = NAME
    pulls = True

    def __init__(
        self, database: Database, registry: Registry, views: Views, bell: Bell, pace: Pace | None = None
    ) -> None:
        self.database = database
        self.registry = registry
        self.views = views
        self.bell = bell
        self.pace = pace or Pace()
        self.hub = Hub()
        self.inbox: Inbox | None = None
        self.desk: Desk | None = None
        self._feeder: asyncio.Task[None] | None = None

    async def start(self, inbox: Inbox, desk: Desk) -> None:
        self.inbox, self.desk = inbox, desk
        self._feeder = asyncio.create_task(self._feed(), name="http feed")

    async def stop(self) -> None:
        if self._feeder is not None:
            self._feeder.cancel()
            await asyncio.gather(self._feeder, return_exceptions=True)

    def end_streams(self) -> None:
        """Let go of everybody who listens: the server stops, and they come back to the next one."""
        self.hub.close()
        self.bell.ring()

    def open_stream(self, address: Address, requester: Actor) -> Stream:
        return HubStream(self, address, requester)

    async def post(self, address: Address, markdown: str) -> None:
        """Nothing to do: the text is a row, and that is what people there read."""

    async def post_card(self, address: Address, card: Card) -> str:
        raise NotDeliverable(f"{address} reads rows; card {card.proposal_id} needs no copy there")

    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        raise NotDeliverable(f"{address} reads rows; card {card.proposal_id} has no copy {ref} there")

    async def post_file(self, address: Address, name: str, text: str) -> None:
        """Nothing to do: people there fetch a proposal's result and files from their own addresses."""

    async def post_board(self, address: Address, board: Board) -> str:
        """Tell those who listen; others read the rows. There is one for each conversation."""
        self.hub.publish(address.key, None, {"type": "team_update", "team": views.board(board)})
        return board.lead_id

    async def redraw_board(self, address: Address, ref: str, board: Board) -> None:  # noqa: ARG002 - the seam's
        """As `post_board`: ``ref`` names the same conversation."""
        await self.post_board(address, board)

    async def changed(self) -> None:
        """Nothing to do: people there read rows, and the bell calls them."""

    async def _feed(self) -> None:
        """Tell listeners of a conversation about every change of its proposals, whoever made it."""
        seen = await self.database.read(audit.last_id)
        while True:
            rings = self.bell.rings
            try:
                if self.hub.alone:
                    newest = await self.database.read(audit.last_id)
                    seen = newest if self.hub.alone else seen  # who came meanwhile shall miss nothing
                    await self.hub.somebody(self.pace.feed)
                    continue
                shelf = await self.registry.shelf()
                seen, changes = await self.database.read(self._changes, seen, shelf)
            except Exception as error:  # a toolset or the database is away; go on when it is back
                log.error("the feed of changes broke", exc_info=error)
                changes = []
            for key, view in changes:
                self.hub.publish(key, None, {"type": "action_update", "proposal": view})
            await self.bell.wait(rings, self.pace.feed)

    def _changes(
        self, session: Session, seen: int, shelf: Shelf
    ) -> tuple[int, list[tuple[str, dict[str, Any]]]]:
        rows = audit.since(session, seen)
        changes = []
        for proposal_id in dict.fromkeys(proposal_id for _, proposal_id in rows):
            proposal = proposals.get(session, proposal_id)
            conversation = proposal and conversations.get_conversation(session, proposal.conversation_id)
            if proposal and conversation and self.hub.heard(conversation.origin.key):
                view = self.views.proposal(session, proposal, conversation.requester, shelf)
                changes.append((conversation.origin.key, view))
        return rows[-1][0] if rows else seen, changes

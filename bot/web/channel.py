"""The HTTP channel, for the console and other clients of the API: nothing is posted to them.

A client reads the rows of a conversation by requests, and listens to its changes by a stream (SSE) while it
is open. So `HttpChannel` hands the events of turns to the listeners (``broadcaster.py``) in this process and
in the others. Its feed tells them of every change of a proposal. Routes use its lookups.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.approvals.lookup.admin import AdminLookup
from bot.approvals.lookup.conversations import ConversationLookup
from bot.approvals.lookup.proposals import ProposalLookup
from bot.channels.base import Lookup, Stream
from bot.domain.chat import Address, Clock, Inbox
from bot.domain.events import ProposalOpened, TurnEnded, TurnEvent, TurnFailed
from bot.domain.jobs import Peers
from bot.domain.people import Actor, Membership
from bot.domain.teams import TeamStatus
from bot.store.change_notifier import ChangeNotifier
from bot.telemetry.logs import logger
from bot.tools.registry import Registry
from bot.web.broadcaster import Broadcaster
from bot.web.peer_relay import PeerRelay
from bot.web.schemas.events import ProposalEvent, TeamEvent, TurnBroke, TurnDone, TurnEvents, make_turn_event
from bot.web.schemas.proposals import ProposalView
from bot.web.streams import Pace

log = logger(__name__)

CHANNEL_NAME = "http"


def make_address_key(owner: Actor, conversation_id: str) -> str:
    """Return the key of a conversation's address, which begins with the owner: no one else can name it."""
    return f"{owner.key}/{conversation_id}"


@dataclass(frozen=True, slots=True)
class BroadcastStream:
    """The stream of a turn to all listeners at its address; it implements `Stream`."""

    channel: "HttpChannel"
    address: Address
    requester: Actor

    async def send(self, event: TurnEvent) -> None:
        """Send an event to the listeners in this process and in the others."""
        if self.channel.relay is not None:
            self.channel.relay.send(self.address, self.requester, event)
        await self.show(event)

    async def show(self, event: TurnEvent) -> None:
        """Send an event to the listeners in this process."""
        broadcaster = self.channel.broadcaster
        if not broadcaster.has_listener(self.address.key):
            return
        broadcaster.publish(self.address.key, event, await self._describe_event(event))
        await asyncio.sleep(0)  # a model may send many pieces together: let listeners read in between

    async def _describe_event(self, event: TurnEvent) -> TurnEvents | None:
        conversation_id = self.address.key.rpartition("/")[2]
        match event:
            case ProposalOpened(proposal):
                found = await self.channel.proposals.find(proposal.id, self.requester)
                if found is None:
                    return None
                return ProposalEvent(type="proposal_opened", proposal=ProposalView.of_found(found))
            case TurnEnded(ending, message_id=last_id):
                if last_id is None:
                    last_id = await self.channel.conversations.last_answer(conversation_id)
                return TurnDone(conversation_id=conversation_id, message_id=last_id, ending=ending)
            case TurnFailed(explanation):
                return TurnBroke(conversation_id=conversation_id, error=explanation)
            case _:
                return make_turn_event(event)


@dataclass(eq=False)
class HttpChannel:
    """Implements `Channel`, which describes its methods.

    Cards are not posted anywhere: every answer to a request renders them from the database.
    """

    registry: Registry
    proposals: ProposalLookup
    conversations: ConversationLookup
    admin: AdminLookup
    notifier: ChangeNotifier
    clock: Clock
    peers: Peers | None = None  # the other processes of this Nod; None for a single process
    may_sign_in: Callable[[Actor], Awaitable[bool]] | None = None
    """Tells if an account may still sign in; None: every account may."""
    name: str = field(default=CHANNEL_NAME, init=False)

    def __post_init__(self) -> None:
        self.pace = Pace()
        self.broadcaster = Broadcaster()
        self.inbox: Inbox | None = None
        self.lookup: Lookup | None = None
        self.relay: PeerRelay | None = None
        peers = self.peers
        if peers is not None:
            self.relay = PeerRelay(peers, self.proposals.find, self._show, self.broadcaster.has_listener)
            peers.on("team", self._receive_team)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(
        self,
        inbox: Inbox,
        lookup: Lookup,
        *,
        receives: bool = True,  # noqa: ARG002 - `Channel` has it
        others: Peers | None = None,  # noqa: ARG002 - `Channel` has it
    ) -> None:
        self.inbox = inbox
        self.lookup = lookup
        self._tasks = [asyncio.create_task(self._feed(), name="http feed")]
        if self.relay is not None:
            self._tasks.append(asyncio.create_task(self.relay.run(), name="http relay"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def end_streams(self) -> None:
        """End all streams: the server stops, and clients connect again to the next one."""
        self.broadcaster.close()
        self.notifier.notify()

    def open_stream(self, address: Address, requester: Actor) -> Stream:
        return BroadcastStream(self, address, requester)

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:  # noqa: ARG002 - `Channel` has it
        """Publish the team's status, here and in the other processes."""
        update = TeamEvent.of(team=team)
        self.broadcaster.publish(address.key, None, update)
        if self.peers is not None:
            self.peers.broadcast("team", [address.key, update.model_dump(mode="json")])
        return team.lead_id

    def _receive_team(self, body: list[Any]) -> None:
        """Publish a team's status here, as `show_team` of another process sent it."""
        key, team_status, *_ = body
        self.broadcaster.publish(key, None, TeamEvent.model_validate(team_status))

    async def _show(self, address: Address, requester: Actor, event: TurnEvent) -> None:
        await BroadcastStream(self, address, requester).show(event)

    async def standing(self, actor: Actor, address: Address) -> Membership | None:  # noqa: ARG002 - as in `Channel`
        known = self.may_sign_in is None or await self.may_sign_in(actor)
        return Membership.MEMBER if known else None  # no platform restricts these accounts as guests

    async def changed(self) -> None:
        """Do nothing: people there read rows, and the change notifier wakes them."""

    async def _feed(self) -> None:
        """Tell listeners of a conversation about every change of its proposals, by anyone.

        Reads no changes while no one listens.
        """
        last_told = await self.proposals.newest_change()  # the id of the newest change that listeners know
        progress: Mapping[str, str] = {}  # how far each running proposal is, as listeners know it
        while True:
            generation = self.notifier.generation  # read first, so that `wait` misses no later change
            try:
                if (
                    self.broadcaster.has_no_conversation_listener
                    and not await self.broadcaster.wait_for_listener(self.pace.poll_seconds)
                ):
                    newest = await self.proposals.newest_change()
                    # listeners who joined in the meantime must not miss anything
                    if self.broadcaster.has_no_conversation_listener:
                        last_told = newest
                    continue
                last_told, progress, changes = await self.proposals.list_changed_proposals(
                    last_told, progress, self.broadcaster.has_conversation_listener
                )
            except Exception as error:  # a toolset or the database is away; continue when it is back
                log.error("change feed failed", exc_info=error)
                changes = []
            for key, found in changes:
                self.broadcaster.publish(key, None, ProposalEvent(proposal=ProposalView.of_found(found)))
            await self.notifier.wait(generation, self.pace.poll_seconds)

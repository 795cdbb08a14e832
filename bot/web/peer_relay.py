"""The relay of turn events between the processes of one Nod.

A turn runs in one process, and the browser that shows it may be connected to another. So `PeerRelay`
broadcasts the events of this process's turns to the others (`send`), and shows theirs to listeners here
(`run`). The channel of ``channel.py`` has one relay.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, get_args

from pydantic import TypeAdapter

from bot.approvals.lookup.proposals import VisibleProposal
from bot.domain.chat import Address
from bot.domain.events import ProposalOpened, TurnEvent
from bot.domain.jobs import Peers
from bot.domain.people import Actor
from bot.telemetry.logs import logger

log = logger(__name__)

_EVENT_TYPES: Mapping[str, type[TurnEvent]] = {
    event_type.__name__: event_type for event_type in get_args(TurnEvent)
}

Find = Callable[[str, Actor], Awaitable[VisibleProposal | None]]
"""Reads a proposal by its id; None if this person may not see it."""
Show = Callable[[Address, Actor, TurnEvent], Awaitable[None]]
"""Shows an event of a turn to the listeners at an address; the actor is the person who asked for the turn."""


class _SentEvent(NamedTuple):
    """An event as processes send it to each other: a list in JSON."""

    channel: str  # of its address, as ``key``
    key: str
    requester: list[Any]  # channel, key, name
    type_name: str
    values: Mapping[str, Any]  # the fields of the event


class PeerRelay:
    """Sends the events of this process's turns to the others, and shows theirs here, in order."""

    def __init__(self, peers: Peers, find: Find, show: Show, has_listener: Callable[[str], bool]) -> None:
        """``has_listener`` tells if anyone here listens at the key of an address."""
        self._peers = peers
        self._find = find
        self._show = show
        self._has_listener = has_listener
        self._received: asyncio.Queue[list[Any]] = asyncio.Queue()
        peers.on("turn", self._receive)  # calls it with each event that another process sends

    def send(self, address: Address, requester: Actor, event: TurnEvent) -> None:
        if isinstance(event, ProposalOpened):
            values = {"id": event.proposal.id}  # the process that shows it reads the proposal
        else:
            values = asdict(event)
        who = [requester.channel, requester.key, requester.name]
        sent = _SentEvent(address.channel, address.key, who, type(event).__name__, values)
        self._peers.broadcast("turn", list(sent))

    async def run(self) -> None:
        """Show the events that come, until cancelled."""
        while True:
            sent = _SentEvent(*await self._received.get())
            requester = Actor(*sent.requester)
            try:
                event = await self._restore_event(sent.type_name, sent.values, requester)
                if event:
                    await self._show(Address(sent.channel, sent.key), requester, event)
            except Exception as error:
                # a newer release sent this event, or the database is away: continue with the next
                log.warning("what another process told was not shown", kind=sent.type_name, exc_info=error)

    def _receive(self, body: list[Any]) -> None:
        _, key, *_ = body  # as in `_SentEvent`
        if self._has_listener(key):
            self._received.put_nowait(body)

    async def _restore_event(
        self, type_name: str, values: Mapping[str, Any], requester: Actor
    ) -> TurnEvent | None:
        """Return the event as it was sent; None for a proposal that the requester may not see."""
        if type_name == ProposalOpened.__name__:
            found = await self._find(values["id"], requester)
            if found:
                return ProposalOpened(found.proposal)
            return None
        return _make_adapter(type_name).validate_python(values)


@functools.cache
def _make_adapter(type_name: str) -> TypeAdapter[TurnEvent]:
    return TypeAdapter(_EVENT_TYPES[type_name])

"""The relay of turn events between processes, for listeners at any of them."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, get_args

from pydantic import TypeAdapter

from bot.approvals.lookup.proposals import Seen
from bot.domain.chat import Address
from bot.domain.events import ProposalOpened, TurnEvent
from bot.domain.jobs import Peers
from bot.domain.people import Actor
from bot.telemetry.logs import logger

log = logger(__name__)

_KINDS: Mapping[str, type[TurnEvent]] = {each.__name__: each for each in get_args(TurnEvent)}

Find = Callable[[str, Actor], Awaitable[Seen | None]]
Show = Callable[[Address, Actor, TurnEvent], Awaitable[None]]


class PeerRelay:
    """Tells other processes of the turns that run here, and shows theirs to who listens here, in order."""

    def __init__(self, others: Peers, find: Find, show: Show, heard: Callable[[str], bool]) -> None:
        """``find`` reads a proposal for a person; ``heard`` says whether anyone listens at a key."""
        self._others = others
        self._find = find
        self._show = show
        self._heard = heard
        self._waiting: asyncio.Queue[list[Any]] = asyncio.Queue()
        others.on("turn", self._take)

    def send(self, address: Address, requester: Actor, event: TurnEvent) -> None:
        # a proposal is read again where it is shown
        if isinstance(event, ProposalOpened):
            said = {"id": event.proposal.id}
        else:
            said = asdict(event)
        who = [requester.channel, requester.key, requester.name]
        self._others.broadcast("turn", [address.channel, address.key, who, type(event).__name__, said])

    async def run(self) -> None:
        """Show what comes, until cancelled."""
        while True:
            channel, key, who, kind, said = await self._waiting.get()
            requester = Actor(*who)
            try:
                event = await self._event(kind, said, requester)
                if event:
                    await self._show(Address(channel, key), requester, event)
            except Exception as error:
                # a newer release said it, or the database is away: what comes next is shown
                log.warning("what another process told was not shown", kind=kind, exc_info=error)

    def _take(self, body: list[Any]) -> None:
        if self._heard(body[1]):
            self._waiting.put_nowait(body)

    async def _event(self, kind: str, said: Mapping[str, Any], requester: Actor) -> TurnEvent | None:
        if kind == ProposalOpened.__name__:
            seen = await self._find(said["id"], requester)
            if seen:
                return ProposalOpened(seen.proposal)
            return None
        return _adapter(kind).validate_python(said)


@functools.cache
def _adapter(kind: str) -> TypeAdapter[TurnEvent]:
    return TypeAdapter(_KINDS[kind])

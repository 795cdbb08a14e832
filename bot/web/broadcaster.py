"""Listeners of conversations, here and in other processes.

Nothing is kept: a listener that comes later reads the rows.
"""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, NamedTuple, get_args

from pydantic import TypeAdapter

from bot.approvals.lookup.proposals import Seen
from bot.domain.chat import Address
from bot.domain.events import ProposalOpened, TurnEvent
from bot.domain.jobs import Peers
from bot.domain.people import Actor
from bot.telemetry.logs import logger
from bot.web.schemas.events import TurnEvents


class Heard(NamedTuple):
    """A turn's event, or None for another change, with its form for listeners, or None for none."""

    event: TurnEvent | None
    told: TurnEvents | None
    conversation_id: str = ""


Listener = asyncio.Queue[Heard | None]
"""None says that nothing more will come."""

_MOST = 1000  # events that a slow reader may be behind


class Broadcaster:
    """Hands a turn's events to every listener of its conversation, by address key, and of its owner."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._of_owners: dict[str, set[Listener]] = defaultdict(set)
        self._somebody = asyncio.Event()
        self.closed = False

    def close(self) -> None:
        """Close the hub: all listeners, present and future, are told that nothing more will come."""
        self.closed = True
        for listeners in (*self._listeners.values(), *self._of_owners.values()):
            for listener in listeners:
                _end(listener)

    @contextmanager
    def listen_to_owner(self, owner: str) -> Iterator[Listener]:
        """Listen to all conversations whose address keys begin with ``owner/``, those to come included."""
        listener = self._new_listener()
        self._of_owners[owner].add(listener)
        try:
            yield listener
        finally:
            self._of_owners[owner].discard(listener)
            if not self._of_owners[owner]:
                del self._of_owners[owner]

    @contextmanager
    def listen(self, key: str) -> Iterator[Listener]:
        listener = self._new_listener()
        self._listeners[key].add(listener)
        self._somebody.set()
        try:
            yield listener
        finally:
            self._listeners[key].discard(listener)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners:
                self._somebody.clear()

    def _new_listener(self) -> Listener:
        listener: Listener = asyncio.Queue(_MOST)
        if self.closed:
            listener.put_nowait(None)
        return listener

    @property
    def alone(self) -> bool:
        """No one listens to any single conversation."""
        return not self._listeners

    async def somebody(self, seconds: float) -> None:
        """Return once anybody listens, or after ``seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._somebody.wait()

    def listens(self, key: str) -> bool:
        """Return whether someone listens to that one conversation."""
        return key in self._listeners

    def heard(self, key: str) -> bool:
        """Tell if anyone listens to what is published there."""
        return key in self._listeners or key.rpartition("/")[0] in self._of_owners

    def publish(self, key: str, event: TurnEvent | None, told: TurnEvents | None) -> None:
        owner, _, conversation_id = key.rpartition("/")
        for listener in (*self._listeners.get(key, ()), *self._of_owners.get(owner, ())):
            if listener.full():
                _end(listener)
            else:
                listener.put_nowait(Heard(event, told, conversation_id))


def _end(listener: Listener) -> None:
    """End a listener's stream.

    The server stops, or the reader has fallen behind and reads the rows instead.
    """
    while not listener.empty():
        listener.get_nowait()
    listener.put_nowait(None)


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
        said = {"id": event.proposal.id} if isinstance(event, ProposalOpened) else asdict(event)
        who = [requester.channel, requester.key, requester.name]
        self._others.broadcast("turn", [address.channel, address.key, who, type(event).__name__, said])

    async def run(self) -> None:
        """Show what comes, until cancelled."""
        while True:
            channel, key, who, kind, said = await self._waiting.get()
            requester = Actor(*who)
            try:
                if event := await self._event(kind, said, requester):
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
            return ProposalOpened(seen.proposal) if seen else None
        return _adapter(kind).validate_python(said)


@functools.cache
def _adapter(kind: str) -> TypeAdapter[TurnEvent]:
    return TypeAdapter(_KINDS[kind])

"""Accounts of chats in which people of another company read along: they rest until that is over.

A platform is asked before an account is used, at most once a minute for a chat, and by the sweep. Where it
can't say, the account is not used. Which ones rest is a row, so that no process offers their tools.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from sqlmodel import Session

from bot.channels.base import IsShared
from bot.domain.chat import Address, Clock
from bot.domain.connections import Connection
from bot.domain.people import Actor, Role
from bot.domain.text import as_written
from bot.errors import ChannelError
from bot.features.connections.tables import ConnectionRow
from bot.store import state
from bot.store.database import Database
from bot.store.notices import store_notice, tell_privately
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

ROOM = "resting"
SHARED_TEXT = "people of another company read along in its chat"
_KNOWN_FOR = timedelta(minutes=1)
_LOOKED_AT_EACH = timedelta(minutes=10)
_RESTS = (
    "People of another company read along in {place} now, so its account at {server} rests. Nod uses it "
    "again once they no longer do. `/nod connections end {server}` in that chat ends it."
)
_BACK = "No other company reads along in {place} any longer, so Nod uses its account at {server} again."

FindRest = Callable[[], Awaitable[str]]
"""Returns why an account is not used now, in words; empty where it is."""


@dataclass(frozen=True, slots=True)
class ChatReaders:
    """The knowledge of who reads along in the chats that have accounts, as their platforms say."""

    database: Database
    policies: Policies
    clock: Clock
    ask: IsShared
    _known: dict[str, tuple[bool, datetime]] = field(default_factory=dict)  # by connection, and since when

    async def find_rest(self, connection: Connection) -> str:
        """Return why the account of a chat is not used now, in words; empty where it is."""
        now = self.clock()
        shared, since = self._known.get(connection.id, (True, None))
        if since is None or not since <= now < since + _KNOWN_FOR:
            try:
                shared = await self.look(connection, now)
            except ChannelError as error:
                return f"no one can say now who reads along in its chat ({error.message.rstrip('.')})"
        return SHARED_TEXT if shared else ""

    async def look(self, connection: Connection, now: datetime) -> bool:
        """Ask the platform if a chat is shared, and have its account rest or be used. Raises ChannelError."""
        try:
            shared = await self.ask(Address.parse(connection.owner))
        except ChannelError:
            self._known.pop(connection.id, None)
            raise
        self._known[connection.id] = shared, now
        await self.database.write(partial(_note_readers, shared=shared), self.policies, connection, now)
        return shared

    async def look_at_all(self, connections: list[Connection], now: datetime) -> None:
        """Look at those chats that no one has looked at for a while."""
        for each in connections:
            _, since = self._known.get(each.id, (True, None))
            if since is not None and since <= now < since + _LOOKED_AT_EACH:
                continue
            try:
                await self.look(each, now)
            except ChannelError as error:
                log.info("a platform does not say who reads along", place=each.owner, why=error.message)


def is_resting(session: Session, ident: str) -> bool:
    """Tell if the account of a chat rests."""
    return state.load_state(session, ROOM, ident) is not None


def forget_rest(session: Session, ident: str, now: datetime) -> None:
    """Forget that an account rests: it has ended."""
    state.keep_state(session, ROOM, ident, None, now)


def _note_readers(
    session: Session, policies: Policies, connection: Connection, now: datetime, *, shared: bool
) -> None:
    """Keep whether an account rests; who connected it is told where that changes."""
    row = session.get(ConnectionRow, connection.id)
    if row is None or is_resting(session, row.id) is shared:
        return
    state.keep_state(session, ROOM, row.id, {} if shared else None, now)
    place = as_written(connection.owner_label)
    text = (_RESTS if shared else _BACK).format(place=place, server=row.server)
    if not tell_privately(session, Actor.parse(row.connected_by), text, now):
        for admin in sorted(policies.load(session).holders(Role.ADMIN, row.owner)):
            store_notice(session, Address.parse(admin), text, now)
    log.warning("another company reads along in a chat, or no longer", place=row.owner, rests=shared)

"""Accounts of chats that rest: another company reads along there, or their admin is no longer an admin.

A platform is asked before an account is used, at most once a minute for a chat, and by the sweep. Where it
can't say, the account is not used. Resting is stored as a row, so that no process offers the account's tools.
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
from bot.store import people, state
from bot.store.database import Database
from bot.store.notices import store_notice, tell_privately
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

ROOM = "resting"
_WHY = "why"
_KNOWN_FOR = timedelta(minutes=1)
_LOOKED_AT_EACH = timedelta(minutes=10)
_SHARED, _ADMIN = "shared", "admin"
"""The reasons for resting: the readers of the chat, and the admin who connected the account."""
_WORDS = {
    _SHARED: "people of another company read along in its chat",
    _ADMIN: "who connected it is no longer an admin there",
}
_RESTS = {
    _SHARED: (
        "People of another company read along in {place} now, so its account at {server} rests. Nod uses it "
        "again once they no longer do. `/nod connections end {server}` in that chat ends it."
    ),
    _ADMIN: (
        "{who} connected the account of {place} at {server} and is no longer an admin there, so it rests. "
        "To use one again, an admin sends `/nod connections connect {server}` in that chat."
    ),
}
_BACK = {
    _SHARED: (
        "No other company reads along in {place} any longer, so Nod uses its account at {server} again."
    ),
    _ADMIN: "{who} is an admin of {place} again, so Nod uses its account at {server} again.",
}

FindRest = Callable[[], Awaitable[str]]
"""A function that returns why an account is not used now, in words; empty if it is used."""


@dataclass(frozen=True, slots=True)
class ChatReaders:
    """The knowledge of who reads along in chats with accounts, as the platforms report it."""

    database: Database
    policies: Policies
    clock: Clock
    ask: IsShared
    # by connection: True if the chat is shared, and the time of that answer
    _known: dict[str, tuple[bool, datetime]] = field(default_factory=dict)

    async def find_rest(self, connection: Connection) -> str:
        """Return why the account of a chat is not used now, in words; empty if it is used."""
        now = self.clock()
        if await self._look_for_admin(connection, now):
            return _WORDS[_ADMIN]
        shared, since = self._known.get(connection.id, (True, None))
        if since is None or not since <= now < since + _KNOWN_FOR:
            try:
                shared = await self.look(connection, now)
            except ChannelError as error:
                return f"no one can say now who reads along in its chat ({error.message.rstrip('.')})"
        return _WORDS[_SHARED] if shared else ""

    async def _look_for_admin(self, connection: Connection, now: datetime) -> bool:
        """Tell if an account's admin is no longer an admin of its chat, and let the account rest then."""
        is_missing, is_noted = await self.database.read(_find_missing_admin, self.policies, connection)
        if is_missing is not is_noted:
            note = partial(_note_reason, reason=_ADMIN, holds=is_missing)
            await self.database.write(note, self.policies, connection, now)
        return is_missing

    async def look(self, connection: Connection, now: datetime) -> bool:
        """Ask the platform if a chat is shared, and have its account rest or be used. Raises ChannelError."""
        try:
            shared = await self.ask(Address.parse(connection.owner))
        except ChannelError:
            self._known.pop(connection.id, None)
            raise
        self._known[connection.id] = shared, now
        note = partial(_note_reason, reason=_SHARED, holds=shared)
        await self.database.write(note, self.policies, connection, now)
        return shared

    async def look_at_all(self, connections: list[Connection], now: datetime) -> None:
        """Check the admins of all connections, and the readers of chats that were not checked for a while."""
        for each in connections:
            await self._look_for_admin(each, now)
            _, since = self._known.get(each.id, (True, None))
            if since is not None and since <= now < since + _LOOKED_AT_EACH:
                continue
            try:
                await self.look(each, now)
            except ChannelError as error:
                log.info("a platform does not say who reads along", place=each.owner, why=error.message)


def list_reasons(session: Session, ident: str) -> list[str]:
    """Return the reasons why the account of a chat rests; empty if it does not rest."""
    kept = state.load_state(session, ROOM, ident)
    if kept is None:
        return []
    return list(kept.get(_WHY, [_SHARED]))


def describe_rest(session: Session, ident: str) -> str:
    """Return in words why the account of a chat rests; empty if it does not rest."""
    return ", and ".join(_WORDS[each] for each in list_reasons(session, ident))


def forget_rest(session: Session, ident: str, now: datetime) -> None:
    """Forget that an account rests, because the connection has ended."""
    state.keep_state(session, ROOM, ident, None, now)


def tell_admins(session: Session, policies: Policies, chat: str, but: str, text: str, now: datetime) -> None:
    """Tell the admins of a chat in private, all but one; if that reaches no one, tell the chat."""
    admins = policies.load(session).holders(Role.ADMIN, chat) - {but}
    told = [tell_privately(session, Actor.parse(each), text, now) for each in sorted(admins)]
    if not any(told):
        store_notice(session, Address.parse(chat), text, now)


def _find_missing_admin(session: Session, policies: Policies, connection: Connection) -> tuple[bool, bool]:
    """Return whether the person who connected an account is no longer an admin, and whether that is noted."""
    row = session.get(ConnectionRow, connection.id)
    if row is None:
        return False, False
    person = people.person_of(session, Actor.parse(row.connected_by))
    is_missing = Role.ADMIN not in policies.load(session).roles_of(person, row.owner)
    return is_missing, _ADMIN in list_reasons(session, row.id)


def _note_reason(
    session: Session,
    policies: Policies,
    connection: Connection,
    now: datetime,
    *,
    reason: str,
    holds: bool,
) -> None:
    """Store whether an account rests for a reason, and tell admins if that has changed."""
    row = session.get(ConnectionRow, connection.id)
    reasons = list_reasons(session, connection.id)
    if row is None or (reason in reasons) is holds:
        return
    left = [*reasons, reason] if holds else [each for each in reasons if each != reason]
    state.keep_state(session, ROOM, row.id, {_WHY: left} if left else None, now)
    log.warning("the account of a chat rests, or no longer", place=row.owner, reason=reason, rests=bool(left))
    if left and not holds:
        return  # it still rests, as they know
    names = people.find_known_names(session, [row.connected_by])
    who = as_written(names.get(row.connected_by, row.connected_by))
    place = as_written(connection.owner_label)
    text = (_RESTS if holds else _BACK)[reason].format(who=who, place=place, server=row.server)
    is_told = reason == _SHARED and tell_privately(session, Actor.parse(row.connected_by), text, now)
    if not is_told:
        tell_admins(session, policies, row.owner, row.connected_by, text, now)

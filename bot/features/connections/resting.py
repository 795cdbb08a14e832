"""Resting: the account of a chat is not used for a while, and is used again once the reason is gone.

An admin connected such an account, at another server, for the chat. There are two reasons to rest: people of
another company read along in the chat, or this admin is no longer an admin there. Both are checked before the
account is used, and by the sweep. A platform's answer about readers counts for a minute. If the platform
can't say, the account is not used. The reasons are stored, so that no process offers the account's tools.
People are told when a reason appears or goes.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from sqlmodel import Session

from bot.channels.base import IsShared
from bot.domain.chat import Address, Clock
from bot.domain.connections import Connection
from bot.domain.people import Actor, Role
from bot.domain.text import escape_markdown
from bot.errors import ChannelError
from bot.features.connections.tables import ConnectionRow
from bot.store import people, state
from bot.store.database import Database
from bot.store.notices import store_notice, store_private_notice
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

STATE_NAMESPACE = "resting"
"""The namespace in ``bot/store/state.py`` of the reasons, which are stored by the id of the connection."""
_REASONS_KEY = "why"
_ANSWER_LIFE = timedelta(minutes=1)  # the time for which a platform's answer counts before a use
_SWEEP_PAUSE = timedelta(minutes=10)  # the time for which an answer counts for the sweep


class RestReason(StrEnum):
    """A reason why the account of a chat rests."""

    SHARED = "shared"  # people of another company read along in the chat
    ADMIN = "admin"  # the admin who connected the account is no longer an admin of the chat


_REASON_TEXTS = {
    RestReason.SHARED: "people of another company read along in its chat",
    RestReason.ADMIN: "who connected it is no longer an admin there",
}
_BEGIN_TEXTS = {
    RestReason.SHARED: (
        "People of another company read along in {place} now, so its account at {server} rests. Nod uses it "
        "again once they no longer do. `/nod connections end {server}` in that chat ends it."
    ),
    RestReason.ADMIN: (
        "{who} connected the account of {place} at {server} and is no longer an admin there, so it rests. "
        "To use one again, an admin sends `/nod connections connect {server}` in that chat."
    ),
}
_END_TEXTS = {
    RestReason.SHARED: (
        "No other company reads along in {place} any longer, so Nod uses its account at {server} again."
    ),
    RestReason.ADMIN: "{who} is an admin of {place} again, so Nod uses its account at {server} again.",
}

FindRest = Callable[[], Awaitable[str]]
"""A function that returns why an account is not used now, in words; empty if it is used."""


class _Answer(NamedTuple):
    """A platform's answer: True if people of another company read along in the chat."""

    is_shared: bool
    at: datetime

    def is_valid(self, now: datetime, life: timedelta) -> bool:
        """Return whether the answer is younger than ``life``, and not from a clock that was ahead."""
        return self.at <= now < self.at + life


class _AdminReason(NamedTuple):
    """The reason `RestReason.ADMIN` of one connection."""

    applies: bool  # the person who connected the account is no longer an admin of the chat
    is_stored: bool


@dataclass(frozen=True, slots=True)
class ChatReaderCheck:
    """The check of who reads along in the chats with accounts, and who is an admin there.

    ``ask_if_shared`` asks a platform if people of another company read along in a chat. It raises
    ChannelError if the platform can't say.
    """

    database: Database
    policies: Policies
    clock: Clock
    ask_if_shared: IsShared
    _answers: dict[str, _Answer] = field(default_factory=dict)  # the newest, by the id of the connection

    async def find_rest(self, connection: Connection) -> str:
        """Return why the account of a chat is not used now, in words; empty if it is used."""
        now = self.clock()
        if await self._update_admin_reason(connection, now):
            return _REASON_TEXTS[RestReason.ADMIN]
        answer = self._answers.get(connection.id)
        if answer is not None and answer.is_valid(now, _ANSWER_LIFE):
            is_shared = answer.is_shared
        else:
            try:
                is_shared = await self._update_shared_reason(connection, now)
            except ChannelError as error:
                return f"no one can say now who reads along in its chat ({error.message.rstrip('.')})"
        return _REASON_TEXTS[RestReason.SHARED] if is_shared else ""

    async def check_all(self, connections: list[Connection], now: datetime) -> None:
        """Check the admins of all connections, and the readers of chats that were not checked for a while."""
        for connection in connections:
            await self._update_admin_reason(connection, now)
            answer = self._answers.get(connection.id)
            if answer is not None and answer.is_valid(now, _SWEEP_PAUSE):
                continue
            try:
                await self._update_shared_reason(connection, now)
            except ChannelError as error:
                log.info("a platform does not say who reads along", place=connection.owner, why=error.message)

    async def _update_admin_reason(self, connection: Connection, now: datetime) -> bool:
        """Store whether the account rests for the reason ADMIN, and return the same."""
        reason = await self.database.read(_find_admin_reason, self.policies, connection)
        if reason.applies != reason.is_stored:
            store = partial(_store_reason, reason=RestReason.ADMIN, applies=reason.applies)
            await self.database.write(store, self.policies, connection, now)
        return reason.applies

    async def _update_shared_reason(self, connection: Connection, now: datetime) -> bool:
        """Ask the platform, store whether the account rests for the reason SHARED, and return the same.

        Raises ChannelError if the platform can't say.
        """
        try:
            is_shared = await self.ask_if_shared(Address.parse(connection.owner))
        except ChannelError:
            self._answers.pop(connection.id, None)
            raise
        self._answers[connection.id] = _Answer(is_shared, now)
        store = partial(_store_reason, reason=RestReason.SHARED, applies=is_shared)
        await self.database.write(store, self.policies, connection, now)
        return is_shared


def list_reasons(session: Session, ident: str) -> list[RestReason]:
    """Return the reasons why the account of a connection rests; empty if it does not rest."""
    stored = state.load_state(session, STATE_NAMESPACE, ident)
    if stored is None:
        return []
    # an older release stored no reason: SHARED was the only one
    return [RestReason(each) for each in stored.get(_REASONS_KEY, [RestReason.SHARED])]


def describe_rest(session: Session, ident: str) -> str:
    """Return in words why the account of a connection rests; empty if it does not rest."""
    return ", and ".join(_REASON_TEXTS[each] for each in list_reasons(session, ident))


def forget_rest(session: Session, ident: str, now: datetime) -> None:
    """Forget that an account rests, because the connection has ended."""
    state.store_state(session, STATE_NAMESPACE, ident, None, now)


def tell_admins(
    session: Session, policies: Policies, chat: str, except_account: str, text: str, now: datetime
) -> None:
    """Tell the admins of a chat in private, except one account. If that reaches no one, tell the chat."""
    admins = policies.load(session).list_holders(Role.ADMIN, chat) - {except_account}
    was_told = [store_private_notice(session, Actor.parse(admin), text, now) for admin in sorted(admins)]
    if not any(was_told):
        store_notice(session, Address.parse(chat), text, now)


def _find_admin_reason(session: Session, policies: Policies, connection: Connection) -> _AdminReason:
    row = session.get(ConnectionRow, connection.id)
    if row is None:
        return _AdminReason(applies=False, is_stored=False)
    person = people.load_person(session, Actor.parse(row.connected_by))
    is_admin = Role.ADMIN in policies.load(session).roles_of(person, row.owner)
    is_stored = RestReason.ADMIN in list_reasons(session, row.id)
    return _AdminReason(applies=not is_admin, is_stored=is_stored)


def _store_reason(
    session: Session,
    policies: Policies,
    connection: Connection,
    now: datetime,
    *,
    reason: RestReason,
    applies: bool,
) -> None:
    """Store whether an account rests for a reason, and tell people of a new reason or the end of the rest."""
    row = session.get(ConnectionRow, connection.id)
    reasons = list_reasons(session, connection.id)
    is_stored = reason in reasons
    if row is None or is_stored == applies:
        return
    current = [*reasons, reason] if applies else [each for each in reasons if each != reason]
    state.store_state(session, STATE_NAMESPACE, row.id, {_REASONS_KEY: current} if current else None, now)
    log.warning(
        "the account of a chat rests, or no longer", place=row.owner, reason=str(reason), rests=bool(current)
    )
    if current and not applies:
        return  # the account still rests for the other reason, of which people were told
    texts = _BEGIN_TEXTS if applies else _END_TEXTS
    _tell_of_rest(session, policies, row, connection, reason, texts[reason], now)


def _tell_of_rest(
    session: Session,
    policies: Policies,
    row: ConnectionRow,
    connection: Connection,
    reason: RestReason,
    template: str,
    now: datetime,
) -> None:
    """Tell people that a chat's account rests for a reason, or no longer rests.

    For the reason SHARED, the person who connected the account is told in private. For ADMIN, or if that
    person can't be told in private, the chat's other admins are told.
    """
    names = people.find_known_names(session, [row.connected_by])
    who = escape_markdown(names.get(row.connected_by, row.connected_by))
    place = escape_markdown(connection.owner_label)
    text = template.format(who=who, place=place, server=row.server)
    is_told = False
    if reason is RestReason.SHARED:
        is_told = store_private_notice(session, Actor.parse(row.connected_by), text, now)
    if not is_told:
        tell_admins(session, policies, row.owner, row.connected_by, text, now)

"""The queries of connections: accounts at other servers, in whose names Nod makes calls there.

Each connection is owned by a person or by a place, which is a chat; its ``identity`` says which of the two.
Only the account of a chat can rest, which means that it is not used for a while (`resting.py`). The tokens of
a connection are renewed in `tokens.py`.

An ended connection is deleted, and its tokens are revoked at the server unless the same account is still
connected (`revocations.py`). The audit log gets each connection, its end and each change of its owner in the
same transaction; it names the account, and has no secret.
"""

import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, cast, delete, or_, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from bot.domain.audit import Act
from bot.domain.connections import Connection, Identity
from bot.domain.people import Actor
from bot.errors import SecretLost, SignInError
from bot.features.connections import resting, revocations
from bot.features.connections.sign_in import missing_scopes
from bot.features.connections.sign_in.pending import AccountSignIn
from bot.features.connections.tables import CONNECTION, ConnectionRow
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.log import Author
from bot.store.mcp import compute_token_end
from bot.store.secrets import decrypt_in, encrypt_in
from bot.store.tables.row import count_changed

USE_PAUSE = timedelta(minutes=10)
"""The shortest time between two notes of a connection's use."""
_MAX_LISTED = 500  # the most connections in one list


@dataclass(frozen=True, slots=True)
class ListedConnection:
    """A connection as people see it in a list."""

    connection: Connection
    connected_by: str  # the account of the person who made it
    last_used_at: datetime | None
    rest: str = ""  # why it rests, in words; empty if it does not


class UnreadableConnection(NamedTuple):
    """A connection whose secrets no key of NOD_SECRET_KEY opens."""

    connection: Connection
    was_owner_told: bool


def find_connection(
    session: Session, server: str, url: str, identity: Identity, owners: Collection[str]
) -> Connection | None:
    """Return the newest connection that any of these owners has at a server with this address, or None."""
    condition = (
        (col(ConnectionRow.server) == server)
        & (col(ConnectionRow.identity) == identity)
        & col(ConnectionRow.owner).in_(sorted(owners))
        & (col(ConnectionRow.url) == url)
    )
    newest = select(ConnectionRow).where(condition).order_by(col(ConnectionRow.connected_at).desc()).limit(1)
    row = session.exec(newest).first()
    return make_connection(session, row) if row else None


def make_connection(session: Session, row: ConnectionRow) -> Connection:
    """Return the value of a row. It is expired if it has no tokens that a key of NOD_SECRET_KEY opens."""
    return Connection(
        id=row.id,
        server=row.server,
        identity=Identity(row.identity),
        owner=row.owner,
        owner_name=row.owner_name,
        name=row.name,
        issuer=row.issuer,
        subject=row.subject,
        connected_at=row.connected_at,
        is_expired=not is_readable(session, row),
        is_resting=row.identity == Identity.PLACE and bool(resting.list_reasons(session, row.id)),
    )


def list_connections(session: Session, accounts: Collection[str] | None) -> list[ListedConnection]:
    """Return the connections that a person with these accounts has or made; for None everyone's."""
    query = select(ConnectionRow)
    if accounts is not None:
        theirs = sorted(accounts)
        query = query.where(
            col(ConnectionRow.owner).in_(theirs) | col(ConnectionRow.connected_by).in_(theirs)
        )
    order = (col(ConnectionRow.server), col(ConnectionRow.owner))
    return [_make_listed(session, row) for row in session.exec(query.order_by(*order).limit(_MAX_LISTED))]


def find_other_owner(session: Session, sign_in: AccountSignIn, accounts: Collection[str]) -> Actor | None:
    """Return another person who has connected the account of a sign-in already, or None.

    ``accounts``: the accounts of the person who signs in. The account at the server is known by its issuer
    and subject; without a subject None is returned.
    """
    if not sign_in.subject:
        return None
    is_of_other = (
        (col(ConnectionRow.issuer) == sign_in.issuer)
        & (col(ConnectionRow.subject) == sign_in.subject)
        & (col(ConnectionRow.identity) == Identity.PERSON)
        & col(ConnectionRow.owner).not_in(sorted(accounts))
    )
    row = session.exec(select(ConnectionRow).where(is_of_other).limit(1)).first()
    return Actor.parse(row.owner, row.owner_name) if row else None


def add_connection(
    session: Session, sign_in: AccountSignIn, accounts: Collection[str], now: datetime
) -> Connection:
    """Store the connection of a completed sign-in, in place of the owner's earlier one at this server.

    ``accounts`` are the accounts of the person who signed in. Raises SignInError if another person has
    connected the same account.
    """
    refusal = SignInError(f"Another person here has connected that account at {sign_in.server}.")
    if find_other_owner(session, sign_in, accounts) is not None:
        raise refusal
    try:
        with session.begin_nested():
            return _replace_connection(session, sign_in, accounts, now)
    except IntegrityError:
        # another person connected the account just now; the owner's earlier connection stays
        raise refusal from None


def change_owner(
    session: Session, condition: ColumnElement[bool], owner: str, author: Author, now: datetime
) -> None:
    """Give the matching connections to another owner."""
    for row in list(session.exec(select(ConnectionRow).where(condition))):
        before = _make_state(row)
        is_unchanged = (col(ConnectionRow.id) == row.id) & (col(ConnectionRow.owner) == row.owner)
        if count_changed(session.execute(update(ConnectionRow).where(is_unchanged).values(owner=owner))):
            admin_changes.record(session, CONNECTION, row.id, author, before, {**before, "owner": owner}, now)


def change_accounts(session: Session, row: ConnectionRow, accounts: Collection[str]) -> None:
    """Store the accounts that the owner of a connection has now."""
    change = update(ConnectionRow).where(col(ConnectionRow.id) == row.id).values(accounts=sorted(accounts))
    session.execute(change)


def list_owners(session: Session) -> list[str]:
    """Return the accounts of people who have connections."""
    is_personal = col(ConnectionRow.identity) == Identity.PERSON
    return list(session.exec(select(ConnectionRow.owner).where(is_personal).distinct()))


def list_connecting_admins(session: Session) -> list[str]:
    """Return the accounts of admins who made a connection for a chat."""
    is_of_chat = col(ConnectionRow.identity) == Identity.PLACE
    return list(session.exec(select(ConnectionRow.connected_by).where(is_of_chat).distinct()))


def list_of_chats(session: Session) -> list[Connection]:
    """Return the connections of chats."""
    is_of_chat = col(ConnectionRow.identity) == Identity.PLACE
    of_chats = select(ConnectionRow).where(is_of_chat).order_by(col(ConnectionRow.id)).limit(_MAX_LISTED)
    return [make_connection(session, row) for row in session.exec(of_chats)]


def end_connections(
    session: Session, condition: ColumnElement[bool], author: Author, now: datetime
) -> list[Connection]:
    """End the matching connections. Return them, without any that another process has just ended."""
    ended = []
    for row in list(session.exec(select(ConnectionRow).where(condition))):
        connection = make_connection(session, row)
        if end_connection(session, row, author, now):
            ended.append(connection)
    return ended


def end_connection(session: Session, row: ConnectionRow, author: Author, now: datetime) -> bool:
    """Delete a connection, and have its tokens revoked. Return False if another process has ended it."""
    ended = _delete_connection(session, row, author, now)
    if ended is None:
        return False
    _revoke_tokens(session, ended, now)
    return True


def find_client(session: Session, server: str, url: str, return_url: str) -> str:
    """Return Nod's registration as a client at a server's sign-in, as JSON, from the newest connection there.

    ``return_url``: the address to which the server sends browsers back. Returns an empty text without a
    registration for this address.
    """
    condition = (col(ConnectionRow.server) == server) & (col(ConnectionRow.url) == url)
    newest = select(ConnectionRow).where(condition).order_by(col(ConnectionRow.connected_at).desc()).limit(1)
    row = session.exec(newest).first()
    if row is None or not is_readable(session, row):
        return ""
    client_json = open_secret(session, row, "client")
    is_for_address = f'"{return_url}"' in client_json  # the JSON lists the addresses, each in quotes
    return client_json if is_for_address else ""


def list_granted(session: Session, server: str, identity: str, owner: str) -> list[str]:
    """Return the scopes that the owner granted at a server; empty if no connection there names any."""
    rows = _find_rows(session, server, identity, {owner})
    if not rows or not is_readable(session, rows[0]):
        return []
    tokens = json.loads(open_secret(session, rows[0], "tokens"))
    scopes = str(tokens.get("scope") or "")
    return scopes.replace(",", " ").split()  # GitHub separates scopes by commas


def note_use(session: Session, ident: str, now: datetime) -> None:
    """Note the time of a connection's last use, at most once in `USE_PAUSE`."""
    last = col(ConnectionRow.last_used_at)
    # a time after ``now`` was noted by a clock that was ahead
    is_due = or_(last.is_(None), last <= now - USE_PAUSE, last > now)
    change = update(ConnectionRow).where(col(ConnectionRow.id) == ident, is_due).values(last_used_at=now)
    session.execute(change)


def list_unreadable(session: Session) -> list[UnreadableConnection]:
    """Return the connections whose secrets no key of NOD_SECRET_KEY opens."""
    rows = session.exec(select(ConnectionRow).where(col(ConnectionRow.tokens) != ""))
    return [
        UnreadableConnection(make_connection(session, row), row.told_lost)
        for row in rows
        if not is_readable(session, row)
    ]


def note_told(session: Session, idents: Collection[str]) -> None:
    """Mark the owners of these connections as told that no key opens them, and all other owners as not told.

    ``idents`` are all connections that no key opens. So an owner is told again if a key gets lost later.
    """
    is_lost = col(ConnectionRow.id).in_(sorted(idents))
    session.execute(update(ConnectionRow).where(is_lost).values(told_lost=True))
    readable_again = update(ConnectionRow).where(~is_lost, col(ConnectionRow.told_lost))
    session.execute(readable_again.values(told_lost=False))


def list_of_person(session: Session, account: str) -> Sequence[ConnectionRow]:
    """Return the connections of people to whom this account belonged when they connected."""
    # the column is a JSON list, which is searched as text first, then exactly
    has_text = cast(ConnectionRow.accounts, Text).contains(json.dumps(account), autoescape=True)
    candidates = select(ConnectionRow).where(col(ConnectionRow.identity) == Identity.PERSON, has_text)
    return [row for row in session.exec(candidates) if account in row.accounts]


def open_secret(session: Session, row: ConnectionRow, column: str) -> str:
    """Return the text of a secret column. Raises SecretLost."""
    return decrypt_in(session, ConnectionRow, column, row.id, getattr(row, column))


def is_readable(session: Session, row: ConnectionRow) -> bool:
    """Return whether a row has tokens and a key of NOD_SECRET_KEY opens its secrets."""
    if not row.tokens:
        return False
    try:
        open_secret(session, row, "client")
        return bool(open_secret(session, row, "tokens"))
    except SecretLost:
        return False


def _make_listed(session: Session, row: ConnectionRow) -> ListedConnection:
    connection = make_connection(session, row)
    rest = resting.describe_rest(session, row.id) if connection.is_resting else ""
    return ListedConnection(connection, row.connected_by, row.last_used_at, rest)


def _replace_connection(
    session: Session, sign_in: AccountSignIn, accounts: Collection[str], now: datetime
) -> Connection:
    """Delete the owner's earlier connections at the server, and store that of the sign-in."""
    author = people.make_author(session, Act.CONNECT, Actor.parse(sign_in.person, sign_in.person_name))
    owners = accounts if sign_in.identity == Identity.PERSON else {sign_in.owner}
    deleted = [
        _delete_connection(session, row, author, now)
        for row in _find_rows(session, sign_in.server, sign_in.identity, owners)
    ]
    # the sign-in asked for the scopes that earlier calls lacked
    missing_scopes.forget_lacking(session, sign_in.server, sign_in.owner, now)
    ident = secrets.token_hex(16)
    row = ConnectionRow(
        id=ident,
        server=sign_in.server,
        url=sign_in.url,
        identity=sign_in.identity,
        owner=sign_in.owner,
        owner_name=sign_in.owner_name,
        accounts=sorted(accounts) if sign_in.identity == Identity.PERSON else [],
        name=sign_in.name,
        issuer=sign_in.issuer,
        subject=sign_in.subject,
        client=encrypt_in(session, ConnectionRow, "client", ident, sign_in.client),
        tokens=encrypt_in(session, ConnectionRow, "tokens", ident, sign_in.tokens),
        found=sign_in.found,
        connected_by=sign_in.person,
        connected_at=now,
        expires_at=compute_token_end(json.loads(sign_in.tokens).get("expires_in"), now),
        version=secrets.randbelow(1 << 30),  # each renewal adds 1
    )
    session.add(row)
    session.flush()
    admin_changes.record(session, CONNECTION, ident, author, None, _make_state(row), now)
    for old in deleted:
        if old is not None and not _may_be_same_account(old, row):
            _revoke_tokens(session, old, now)
    return make_connection(session, row)


def _may_be_same_account(old: ConnectionRow, new: ConnectionRow) -> bool:
    """Return whether two connections at a server may be to one account.

    If one of them has no subject, no one can tell accounts of the same issuer apart.
    """
    if old.issuer != new.issuer:
        return False
    if not old.subject or not new.subject:
        return True
    return old.subject == new.subject


def _delete_connection(
    session: Session, row: ConnectionRow, author: Author, now: datetime
) -> ConnectionRow | None:
    """Delete a connection. Return its last state, with its tokens; None if another process has ended it."""
    session.expunge(row)  # so that the deletion returns a new object, with the state that was deleted
    deletion = delete(ConnectionRow).where(col(ConnectionRow.id) == row.id).returning(ConnectionRow)
    result = session.execute(deletion.execution_options(synchronize_session=False))
    last_state: ConnectionRow | None = result.scalar_one_or_none()
    if last_state is None:
        return None
    if last_state.identity == Identity.PLACE:
        resting.forget_rest(session, last_state.id, now)
    admin_changes.record(session, CONNECTION, last_state.id, author, _make_state(last_state), None, now)
    return last_state


def _revoke_tokens(session: Session, row: ConnectionRow, now: datetime) -> None:
    """Have the tokens of a deleted connection revoked, unless its account is still connected elsewhere."""
    if not is_readable(session, row):
        return
    if revocations.is_account_connected(session, row.server, row.issuer, row.subject):
        return
    client, tokens = (open_secret(session, row, name) for name in ("client", "tokens"))
    revocations.add_revocation(session, row.server, row.url, client, tokens, row.found, now)


def _find_rows(session: Session, server: str, identity: str, owners: Collection[str]) -> list[ConnectionRow]:
    condition = (
        (col(ConnectionRow.server) == server)
        & (col(ConnectionRow.identity) == identity)
        & col(ConnectionRow.owner).in_(sorted(owners))
    )
    return list(session.exec(select(ConnectionRow).where(condition)))


def _make_state(row: ConnectionRow) -> dict[str, Any]:
    """Return a connection's state for the audit log: whose account it is, without secrets."""
    return {
        "server": row.server,
        "identity": row.identity,
        "owner": row.owner,
        "issuer": row.issuer,
        "subject": row.subject,
        "name": row.name,
    }

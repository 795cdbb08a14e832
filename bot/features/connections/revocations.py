"""Tokens that their server is to revoke (RFC 7009), since their connection or sign-in has ended.

The tokens are stored until the server was told, or `MOST_TRIES` tries have failed. The sweep (`sweep.py`)
makes the tries.

When a token is revoked, a server may end all other tokens of its account as well: RFC 7009, section 2.1,
allows that, and Google does so. So tokens of an account that is still connected are not revoked. Nod only
forgets them (`is_account_connected`).
"""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import update
from sqlmodel import Session, col, select

from bot.errors import SecretLost
from bot.features.connections.tables import ConnectionRow, RevocationRow
from bot.store.secrets import decrypt_in, encrypt_in
from bot.store.tables.row import count_changed

MOST_TRIES = 5
_PAUSE = timedelta(minutes=1)  # from one try to the next
_MAX_TAKEN = 20  # the most revocations in one run of the sweep


@dataclass(frozen=True, slots=True)
class Revocation:
    """Tokens to be revoked, which one process has taken for a try.

    ``client_json`` and ``tokens_json`` are secrets.
    """

    id: str
    server: str
    url: str  # the server's address
    client_json: str = field(repr=False)  # JSON of Nod's registration as a client
    tokens_json: str = field(repr=False)  # JSON of the tokens
    metadata_json: str  # JSON of the sign-in server's metadata
    tries: int  # the number of tries, including the one for which it was taken


def add_revocation(
    session: Session, server: str, url: str, client: str, tokens: str, found: str, now: datetime
) -> None:
    """Store tokens that their server is to revoke. Without tokens nothing is stored.

    ``client``, ``tokens`` and ``found`` are JSON; see `Revocation`.
    """
    if not tokens:
        return
    ident = secrets.token_hex(16)
    session.add(
        RevocationRow(
            id=ident,
            server=server,
            url=url,
            client=encrypt_in(session, RevocationRow, "client", ident, client),
            tokens=encrypt_in(session, RevocationRow, "tokens", ident, tokens),
            found=found,
            next_at=now,
        )
    )


def is_account_connected(session: Session, server: str, issuer: str, subject: str) -> bool:
    """Return whether an account is connected at a server. False without a subject: then no one can tell."""
    if not subject:
        return False
    is_same = (
        (col(ConnectionRow.server) == server)
        & (col(ConnectionRow.issuer) == issuer)
        & (col(ConnectionRow.subject) == subject)
    )
    return session.exec(select(ConnectionRow.id).where(is_same).limit(1)).first() is not None


def take_due(session: Session, now: datetime) -> list[Revocation]:
    """Take the due revocations for one try. After a pause, any process may take them again.

    A revocation whose secrets no key opens is deleted.
    """
    next_at = col(RevocationRow.next_at)
    is_from_fast_clock = next_at > now + _PAUSE  # such a time was set by a clock that was ahead
    due = select(RevocationRow).where((next_at <= now) | is_from_fast_clock)
    taken = []
    for row in list(session.exec(due.order_by(next_at).limit(_MAX_TAKEN))):
        tries = row.tries + 1
        is_unchanged = (col(RevocationRow.id) == row.id) & (col(RevocationRow.tries) == row.tries)
        claim = update(RevocationRow).where(is_unchanged).values(tries=tries, next_at=now + _PAUSE)
        if not count_changed(session.execute(claim)):
            continue
        try:
            taken.append(_make_revocation(session, row, tries))
        except SecretLost:
            session.delete(row)
    return taken


def delete_revocation(session: Session, ident: str) -> None:
    """Delete tokens that are revoked, or given up."""
    row = session.get(RevocationRow, ident)
    if row is not None:
        session.delete(row)


def _make_revocation(session: Session, row: RevocationRow, tries: int) -> Revocation:
    """Return the value of a row. Raises SecretLost."""
    return Revocation(
        id=row.id,
        server=row.server,
        url=row.url,
        client_json=decrypt_in(session, RevocationRow, "client", row.id, row.client),
        tokens_json=decrypt_in(session, RevocationRow, "tokens", row.id, row.tokens),
        metadata_json=row.found,
        tries=tries,
    )

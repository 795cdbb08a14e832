"""Tokens that are to be revoked at their server (RFC 7009), kept until it was told, for a few tries.

A server may end every token of an account together with the one that is revoked (RFC 7009, section 2.1,
allows it, and Google does so). So the tokens of an account that is still connected are not revoked: Nod only
forgets them.
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
_PAUSE = timedelta(minutes=1)
_BATCH = 20


@dataclass(frozen=True, slots=True)
class Revocation:
    """Tokens to be revoked. ``client`` and ``tokens`` are secrets."""

    id: str
    server: str
    url: str
    client: str = field(repr=False)
    tokens: str = field(repr=False)
    found: str
    tries: int


def add_revocation(
    session: Session, server: str, url: str, client: str, tokens: str, found: str, now: datetime
) -> None:
    """Store tokens that their server is to revoke. Without tokens nothing is stored."""
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
    """Return whether an account is connected at a server. An account without a subject never is."""
    if not subject:
        return False
    same = (
        (col(ConnectionRow.server) == server)
        & (col(ConnectionRow.issuer) == issuer)
        & (col(ConnectionRow.subject) == subject)
    )
    return session.exec(select(ConnectionRow.id).where(same).limit(1)).first() is not None


def take_due(session: Session, now: datetime) -> list[Revocation]:
    """Take the due revocations for one try. After a pause, any process may take them again."""
    at = col(RevocationRow.next_at)
    due = (at <= now) | (at > now + _PAUSE)
    taken = []
    for row in list(session.exec(select(RevocationRow).where(due).order_by(at).limit(_BATCH))):
        mine = (col(RevocationRow.id) == row.id) & (col(RevocationRow.tries) == row.tries)
        claimed = update(RevocationRow).where(mine).values(tries=row.tries + 1, next_at=now + _PAUSE)
        if not count_changed(session.execute(claimed)):
            continue
        try:
            taken.append(_revocation(session, row))
        except SecretLost:
            session.delete(row)
    return taken


def end_revocation(session: Session, ident: str) -> None:
    """Forget the tokens."""
    if row := session.get(RevocationRow, ident):
        session.delete(row)


def _revocation(session: Session, row: RevocationRow) -> Revocation:
    """Return the value of a row. Raises SecretLost."""
    client = decrypt_in(session, RevocationRow, "client", row.id, row.client)
    tokens = decrypt_in(session, RevocationRow, "tokens", row.id, row.tokens)
    return Revocation(row.id, row.server, row.url, client, tokens, row.found, row.tries)

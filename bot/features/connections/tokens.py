"""The tokens of connections, read and renewed: the implementation of the protocol `SignInRows`.

Its caller is `SignInTokens` of ``bot/tools/mcp/signin.py``, which renews tokens of any kind. For a renewal,
one process claims the row (`claim_refresh`), and asks the server for new tokens. Then it stores the tokens
(`store_refreshed_tokens`), counts a final refusal (`clear_refused_tokens`), or gives up for now
(`release_refresh`).

``held`` is the row as the caller read it by `find`. The protocol is also used for tokens of Nod itself, which
are found by their server. Here, ``key`` and ``held.server`` are the id of a connection.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import or_, update
from sqlmodel import Session, col

from bot.features.connections.rows import is_readable, open_secret
from bot.features.connections.tables import ConnectionRow
from bot.store.mcp import SignIn
from bot.store.secrets import encrypt_in
from bot.store.tables.row import count_changed

MOST_REFUSALS = 2
"""The number of refusals in a row after which the tokens of a connection are deleted."""


def find(session: Session, key: str, url: str) -> SignIn | None:
    """Return the tokens of a connection; None if it was made at another address than ``url``.

    The tokens are empty if they were deleted, or if no key of NOD_SECRET_KEY opens them.
    """
    row = session.get(ConnectionRow, key)
    if row is None or row.url != url:
        return None
    is_lost = bool(row.tokens) and not is_readable(session, row)
    client = tokens = ""
    if row.tokens and not is_lost:
        client = open_secret(session, row, "client")
        tokens = open_secret(session, row, "tokens")
    return SignIn(
        server=row.id,
        url=row.url,
        client=client,
        tokens=tokens,
        found=row.found,
        expires_at=row.expires_at,
        signed_in_by=row.owner,
        signed_in_at=row.connected_at,
        version=row.version,
        is_lost=is_lost,
    )


def claim_refresh(session: Session, held: SignIn, now: datetime, until: datetime) -> bool:
    """Claim the renewal until a time, since a refresh token may be good for one use only.

    Return False if another process has the claim. A claim that ends after ``until`` was made by a clock that
    was ahead, and does not count.
    """
    busy_until = col(ConnectionRow.busy_until)
    is_free = or_(busy_until.is_(None), busy_until < now, busy_until > until)
    return _change(session, held, is_free, busy_until=until)


def store_refreshed_tokens(session: Session, held: SignIn, tokens: str, expires_at: datetime | None) -> bool:
    """Store new tokens, and release the claim. Return False if the tokens have changed since."""
    encrypted = encrypt_in(session, ConnectionRow, "tokens", held.server, tokens)
    values = {"tokens": encrypted, "expires_at": expires_at, "version": held.version + 1}
    return _change(session, held, **values, busy_until=None, refusals=0)


def clear_refused_tokens(session: Session, held: SignIn) -> bool:
    """Count a refused renewal, and release the claim; after `MOST_REFUSALS` in a row delete the tokens."""
    row = session.get(ConnectionRow, held.server, populate_existing=True)
    if row is None:
        return False
    refusals = row.refusals + 1
    if refusals >= MOST_REFUSALS:
        return _change(session, held, tokens="", busy_until=None, refusals=refusals)
    return _change(session, held, busy_until=None, refusals=refusals)


def release_refresh(session: Session, held: SignIn) -> bool:
    """Release the claim without new tokens; the next process may refresh."""
    return _change(session, held, busy_until=None)


def _change(session: Session, held: SignIn, *conditions: Any, **values: Any) -> bool:
    """Change the row if it has the version of ``held`` and fulfils the conditions. Return False otherwise."""
    is_same = (col(ConnectionRow.id) == held.server, col(ConnectionRow.version) == held.version)
    change = update(ConnectionRow).where(*is_same, *conditions).values(**values)
    return count_changed(session.execute(change)) == 1

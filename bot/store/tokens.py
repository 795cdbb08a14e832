"""Tokens of the HTTP interface as rows, next to those that the environment names.

A token is ``nod_LABEL_SECRET``. The label finds its row and may be told; of the token only a SHA-256 is kept,
which is enough: the secret is random and long, so it cannot be guessed from it.
"""

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, or_, select

from bot.domain.people import LOCAL, Actor
from bot.domain.record import Act
from bot.domain.text import hash_text
from bot.errors import NodError
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.tables.people import TokenRow
from bot.store.tables.row import value_of

_BEGINNING = "nod_"
_LONGEST = 64  # characters of a name


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that works, without its secret; ``name`` is whose: ``http:NAME``."""

    label: str
    name: str
    made_by: str
    made_at: datetime


def issue(session: Session, name: str, by: Actor, now: datetime) -> str:
    """Make a token and return it: nothing can tell it again. A name may have several.

    Raises NodError for what is no name of an account.
    """
    if len(name) > _LONGEST or not name.replace("-", "_").isidentifier() or name == LOCAL.key:
        raise NodError(f"'{name}' is not a name for a token. Use letters, digits and -, such as deploy-bot.")
    label = secrets.token_hex(4)
    token = f"{_BEGINNING}{label}_{secrets.token_urlsafe(32)}"
    session.add(TokenRow(label=label, name=name, hash=hash_text(token), made_by=str(by), made_at=now))
    _record(session, label, name, Act.ISSUE, by, now)
    return token


def revoke_token(session: Session, which: str, by: Actor, now: datetime) -> list[IssuedToken]:
    """End the token with this label, or all of this name; returns those that ended."""
    named = or_(TokenRow.label == which, TokenRow.name == which)
    found = session.exec(select(TokenRow).where(col(TokenRow.revoked_at).is_(None), named)).all()
    for row in found:
        row.revoked_by, row.revoked_at = str(by), now
        session.add(row)
        _record(session, row.label, row.name, Act.REVOKE, by, now)
    return [value_of(IssuedToken, row) for row in found]


def _record(session: Session, label: str, name: str, verb: Act, by: Actor, now: datetime) -> None:
    whose = {"account": str(Actor("http", name))}
    before, after = (None, whose) if verb is Act.ISSUE else (whose, None)
    admin_changes.record(session, Thing.TOKEN, label, people.by(session, verb, by), before, after, now)


def working(session: Session) -> list[IssuedToken]:
    """Return the tokens that are not revoked, oldest first."""
    live = select(TokenRow).where(col(TokenRow.revoked_at).is_(None))
    return [
        value_of(IssuedToken, row)
        for row in session.exec(live.order_by(col(TokenRow.made_at), col(TokenRow.label)))
    ]


def works(session: Session, name: str) -> bool:
    """Return whether there is a token of this name."""
    return any(each.name == name for each in working(session))


def holder(session: Session, token: str) -> str | None:
    """Return the owner's name of a token; None if unknown or revoked. The time it takes reveals nothing."""
    beginning, _, rest = token.partition("_")
    if f"{beginning}_" == _BEGINNING and rest.isprintable():
        row = session.get(TokenRow, rest[:8])
    else:
        row = None
    kept = row.hash if row else hash_text("")
    if not hmac.compare_digest(kept, hash_text(token)) or row is None or row.revoked_at is not None:
        return None
    return row.name

"""The queries of sign-ins under way, from the link that a person gets to the confirmation.

Each step (`SignInStep`) is one guarded UPDATE, so that no link, state or code counts twice. The row has all
data of a sign-in, so any process can take the next step. A sign-in lasts `LIFE`, counted from its link. One
that ends without a connection is deleted, and its tokens are stored to be revoked (`revocations.py`).

Links, states, browsers and digits are stored as hashes: no reader of the database can use them. The hash of
the digits is encrypted as well, since the digits of a hash can be found by trying all.
"""

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, delete, func, update
from sqlmodel import Session, col, select

from bot.domain.text import hash_text
from bot.errors import SecretLost, SignInError
from bot.features.connections import revocations
from bot.features.connections.tables import ConnectingRow
from bot.store.secrets import decrypt_in, encrypt_in
from bot.store.tables.row import value_of

LIFE = timedelta(minutes=10)
MANY_TEXT = "Many people are connecting right now. Try again in a minute."
_MAX_SIGN_INS = 500
_MAX_OF_PERSON = 3
_SECRETS = ("verifier", "client", "tokens")  # the encrypted columns
_DIGITS = 6


class SignInStep(StrEnum):
    """The step that a sign-in has reached."""

    LINK = "link"  # its link waits to be used
    AWAY = "away"  # its link is used up; the browser is at the server's sign-in
    BACK = "back"  # the browser came back; its code is being exchanged
    ACCOUNT = "account"  # the account is known; the person is asked if it is theirs


@dataclass(frozen=True, slots=True)
class WantedConnection:
    """The connection that a sign-in is to make."""

    server: str  # the name of the server in the settings
    url: str  # the address of the server
    identity: str  # an `Identity`: person or place
    owner: str  # the account, or the address of the chat, that gets the connection
    owner_name: str
    person: str  # the account of the person who goes through the sign-in
    person_name: str


@dataclass(frozen=True, slots=True)
class Connecting(WantedConnection):
    """A sign-in under way. ``verifier``, ``client`` and ``tokens`` are secrets."""

    id: str = ""  # the hash of the link's code
    step: str = SignInStep.LINK
    is_organised: bool = False  # the browser is signed in with the organisation, and confirms by a button
    back: str = ""  # the address to which the server sends the browser back
    scope: str = ""  # the scopes asked for, then those granted
    issuer: str = ""
    subject: str = ""  # the server's ID of the account; empty if the server gives none
    name: str = ""  # the server's name of the account; empty if the server gives none
    found: str = ""  # JSON of the sign-in server's metadata
    verifier: str = field(default="", repr=False)  # proves that the exchange comes from this Nod (PKCE)
    client: str = field(default="", repr=False)  # JSON of Nod's registration as a client
    tokens: str = field(default="", repr=False)  # JSON of the tokens


def begin_sign_in(
    session: Session, wanted: WantedConnection, accounts: Collection[str], now: datetime
) -> str:
    """Store a sign-in, and return the code of its link. The person's oldest sign-ins are ended to make room.

    ``accounts``: all accounts of the person. Raises SignInError if too many sign-ins are under way.
    """
    end_late(session, now)
    theirs = col(ConnectingRow.person).in_(sorted(accounts))
    begun = session.exec(select(ConnectingRow).where(theirs).order_by(col(ConnectingRow.created_at))).all()
    surplus = max(0, len(begun) + 1 - _MAX_OF_PERSON)
    for row in begun[:surplus]:
        _remove(session, row, now)
    session.flush()
    if session.exec(select(func.count()).select_from(ConnectingRow)).one() >= _MAX_SIGN_INS:
        raise SignInError(MANY_TEXT)
    code = secrets.token_urlsafe(32)
    columns = {name: getattr(wanted, name) for name in WantedConnection.__dataclass_fields__}
    session.add(
        ConnectingRow(**columns, id=hash_text(code), step=SignInStep.LINK, created_at=now, until=now + LIFE)
    )
    return code


def find_link(session: Session, code: str, now: datetime) -> Connecting | None:
    """Return the sign-in of a link that can still be used, without changing it; None for any other link."""
    row = session.exec(select(ConnectingRow).where(_at(SignInStep.LINK, now), _is_of(code))).first()
    return _connecting(session, row)


def use_link(
    session: Session, code: str, browser: str, now: datetime, *, is_organised: bool
) -> Connecting | None:
    """Use up a link in one browser. At most one caller gets its sign-in, all others None.

    ``browser``: the secret of the browser's cookie.
    """
    values = {"step": SignInStep.AWAY, "browser": hash_text(browser), "is_organised": is_organised}
    return _advance(session, _at(SignInStep.LINK, now) & _is_of(code), values)


def keep_request(session: Session, ident: str, state: str, values: dict[str, Any]) -> None:
    """Store the values that the return is checked by: the state, the verifier, the server's metadata."""
    kept = _encrypt(session, ident, values)
    _advance(session, col(ConnectingRow.id) == ident, {**kept, "state": hash_text(state)})


def take_return(session: Session, server: str, state: str, browser: str, now: datetime) -> Connecting | None:
    """Take a browser's return, once, if the state, the browser and the server are those of the sign-in."""
    is_same = (
        (col(ConnectingRow.state) == hash_text(state))
        & (col(ConnectingRow.browser) == hash_text(browser))
        & (col(ConnectingRow.server) == server)
    )
    return _advance(session, _at(SignInStep.AWAY, now) & is_same, {"step": SignInStep.BACK})


def keep_tokens(session: Session, sign_in: Connecting, tokens: str, scope: str, now: datetime) -> bool:
    """Store the tokens of a sign-in, so that they are revoked if no connection is made.

    Returns False if the sign-in has ended in the meantime: then the tokens are revoked.
    """
    kept = _encrypt(session, sign_in.id, {"tokens": tokens, "scope": scope})
    if _advance(session, col(ConnectingRow.id) == sign_in.id, kept) is not None:
        return True
    revoke_unused_tokens(session, replace(sign_in, tokens=tokens), now)
    return False


def find_by_id(session: Session, ident: str) -> Connecting | None:
    """Return the sign-in with this id, at any step, or None."""
    return _connecting(session, session.get(ConnectingRow, ident, populate_existing=True))


def keep_account(session: Session, ident: str, values: dict[str, Any], now: datetime) -> str | None:
    """Store the account of a sign-in, and return the six digits that the browser shows.

    Returns None if the sign-in has ended in the meantime.
    """
    digits = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    digits_hash = _hash_digits(ident, digits)
    kept = {
        **_encrypt(session, ident, values),
        "step": SignInStep.ACCOUNT,
        "digits": encrypt_in(session, ConnectingRow, "digits", ident, digits_hash),
        "verifier": "",
    }
    which = _at(SignInStep.BACK, now) & (col(ConnectingRow.id) == ident)
    return digits if _advance(session, which, kept) else None


def take_confirmed(
    session: Session, accounts: Collection[str], digits: str, now: datetime
) -> Connecting | None:
    """Take this person's sign-in with these digits. A wrong number ends all of their waiting sign-ins."""
    waiting = _at(SignInStep.ACCOUNT, now) & col(ConnectingRow.person).in_(sorted(accounts))
    rows = list(session.exec(select(ConnectingRow).where(waiting)))
    matching = [row for row in rows if _has_digits(session, row, digits)]
    if not matching:
        for row in rows:
            _remove(session, row, now)
        return None
    return _delete_row(session, matching[0])


def take_of_browser(
    session: Session, accounts: Collection[str], browser: str, now: datetime
) -> Connecting | None:
    """Take this person's sign-in of a browser that confirms by a button, as it is signed in itself."""
    here = (
        (col(ConnectingRow.browser) == hash_text(browser))
        & col(ConnectingRow.is_organised).is_(True)
        & col(ConnectingRow.person).in_(sorted(accounts))
    )
    row = session.exec(select(ConnectingRow).where(_at(SignInStep.ACCOUNT, now), here)).first()
    return _delete_row(session, row) if row else None


def is_asked(session: Session, accounts: Collection[str], now: datetime) -> bool:
    """Return whether a sign-in of this person waits for its digits."""
    waiting = _at(SignInStep.ACCOUNT, now) & col(ConnectingRow.person).in_(sorted(accounts))
    return session.exec(select(ConnectingRow.id).where(waiting).limit(1)).first() is not None


def list_asked(session: Session, accounts: Collection[str], now: datetime) -> list[Connecting]:
    """Return this person's sign-ins that wait for their digits."""
    waiting = _at(SignInStep.ACCOUNT, now) & col(ConnectingRow.person).in_(sorted(accounts))
    rows = session.exec(select(ConnectingRow).where(waiting).order_by(col(ConnectingRow.created_at)))
    return [found for row in rows if (found := _connecting(session, row))]


def end_sign_in(session: Session, sign_in: Connecting, now: datetime) -> None:
    """End a sign-in without a connection, and have its tokens revoked.

    ``sign_in`` has the account at the server, which the row may not have yet.
    """
    row = session.get(ConnectingRow, sign_in.id)
    if row is not None and (found := _delete_row(session, row)):
        revoke_unused_tokens(session, replace(found, issuer=sign_in.issuer, subject=sign_in.subject), now)


def end_of_person(session: Session, accounts: Collection[str], now: datetime) -> None:
    """End every sign-in of a person."""
    theirs = col(ConnectingRow.person).in_(sorted(accounts))
    for row in list(session.exec(select(ConnectingRow).where(theirs))):
        _remove(session, row, now)


def end_late(session: Session, now: datetime) -> int:
    """End the sign-ins that are too old, or begun in the future by a wrong clock. Return their number."""
    late = (col(ConnectingRow.until) <= now) | (col(ConnectingRow.until) > now + LIFE)
    rows = list(session.exec(select(ConnectingRow).where(late)))
    for row in rows:
        _remove(session, row, now)
    return len(rows)


def revoke_unused_tokens(session: Session, sign_in: Connecting, now: datetime) -> None:
    """Have the tokens of a sign-in without a connection revoked, unless its account is connected already."""
    if revocations.is_account_connected(session, sign_in.server, sign_in.issuer, sign_in.subject):
        return
    revocations.add_revocation(
        session, sign_in.server, sign_in.url, sign_in.client, sign_in.tokens, sign_in.found, now
    )


def _at(step: SignInStep, now: datetime) -> ColumnElement[bool]:
    """Return the condition for sign-ins that are at a step and not too old."""
    until = col(ConnectingRow.until)
    return (col(ConnectingRow.step) == step) & (until > now) & (until <= now + LIFE)


def _is_of(code: str) -> ColumnElement[bool]:
    return col(ConnectingRow.id) == hash_text(code)


def _has_digits(session: Session, row: ConnectingRow, digits: str) -> bool:
    """Return whether these are the digits of a sign-in; False if no key opens their hash."""
    try:
        stored_hash = decrypt_in(session, ConnectingRow, "digits", row.id, row.digits)
    except SecretLost:
        return False
    return stored_hash == _hash_digits(row.id, digits)


def _hash_digits(ident: str, digits: str) -> str:
    return hash_text(f"{ident} {digits}")


def _advance(session: Session, which: ColumnElement[bool], values: dict[str, Any]) -> Connecting | None:
    """Change the matching row, and return its sign-in; None if no row matches, as for a second caller."""
    changed = update(ConnectingRow).where(which).values(**values).returning(col(ConnectingRow.id))
    ident = session.execute(changed.execution_options(synchronize_session=False)).scalar_one_or_none()
    if ident is None:
        return None
    return _connecting(session, session.get(ConnectingRow, ident, populate_existing=True))


def _delete_row(session: Session, row: ConnectingRow) -> Connecting | None:
    """Delete a row, and return its sign-in; None if another caller has taken it."""
    session.expunge(row)
    gone = delete(ConnectingRow).where(col(ConnectingRow.id) == row.id).returning(ConnectingRow)
    last = session.execute(gone.execution_options(synchronize_session=False)).scalar_one_or_none()
    return _connecting(session, last)


def _remove(session: Session, row: ConnectingRow, now: datetime) -> None:
    """Delete a row, and have its tokens revoked, unless another caller has taken it and uses the tokens."""
    if found := _delete_row(session, row):
        revoke_unused_tokens(session, found, now)


def _encrypt(session: Session, ident: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return values of columns with the secrets among them encrypted."""
    secret = [name for name in _SECRETS if name in values]
    return values | {name: encrypt_in(session, ConnectingRow, name, ident, values[name]) for name in secret}


def _connecting(session: Session, row: ConnectingRow | None) -> Connecting | None:
    """Return the value of a row; None without a row, or if no key opens its secrets."""
    if row is None:
        return None
    try:
        opened = {
            name: decrypt_in(session, ConnectingRow, name, row.id, getattr(row, name)) for name in _SECRETS
        }
    except SecretLost:
        return None
    return value_of(Connecting, row, **opened)

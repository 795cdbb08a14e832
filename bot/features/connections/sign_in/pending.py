"""The queries of sign-ins under way: a person signs in at a server, so that Nod can act as them there.

A person opens a link of Nod's in a browser, which then signs in at the server and comes back. Nod shows six
digits there, and the person confirms by sending them in their chat. Each step (`SignInStep`) is one guarded
UPDATE, so that a link, or a browser that comes back, counts only once. The row has all data of a sign-in, so
any process can take the next step.

A sign-in lasts `SIGN_IN_LIFE`, counted from its link. A sign-in that ends without a connection is deleted,
and its tokens are stored to be revoked at the server (`revocations.py`).

Four values are stored only as hashes, so that no reader of the database can use them:

- the code of the link (``id``)
- the secret in the browser's cookie (``browser``)
- the text that the browser brings back from the server (``state``, as OAuth calls it)
- the digits. Their hash is encrypted as well, since six digits can be found by trying all.
"""

import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, func, update
from sqlmodel import Session, col, select

from bot.domain.text import hash_text
from bot.errors import SecretLost, SignInError
from bot.features.connections import revocations
from bot.features.connections.tables import ConnectingRow
from bot.store.secrets import decrypt_in, encrypt_in
from bot.store.tables.row import value_of

SIGN_IN_LIFE = timedelta(minutes=10)
"""The longest time for which a sign-in is under way."""
MANY_TEXT = "Many people are connecting right now. Try again in a minute."
WRONG_DIGITS_TEXT = (
    "That is not the number, so this sign-in has ended. Nothing is connected. Ask for a new link."
)
NO_SIGN_IN_WAITS_TEXT = "No sign-in of yours waits for a number."
_MAX_SIGN_INS = 500  # the most sign-ins of all people that are under way at a time
_MAX_OF_PERSON = 3  # the most sign-ins of one person that are under way at a time
_SECRETS = ("verifier", "client", "tokens")  # the encrypted columns that an `AccountSignIn` has
_DIGITS = 6


class SignInStep(StrEnum):
    """The step that a sign-in has reached."""

    LINK = "link"  # its link waits to be used
    AWAY = "away"  # its link is used up; the browser is at the server's sign-in
    BACK = "back"  # the browser came back; its code is being exchanged
    ACCOUNT = "account"  # the account is known; the person is asked if it is theirs


class ConfirmationRefusal(NamedTuple):
    """The outcome of a confirmation after which no account is connected.

    It is returned, not raised, since the transaction has to be committed: a wrong number ends the sign-in.
    """

    text: str  # the reason, for the person


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
class AccountSignIn(WantedConnection):
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
    end_expired(session, now)
    is_theirs = col(ConnectingRow.person).in_(sorted(accounts))
    oldest_first = select(ConnectingRow).where(is_theirs).order_by(col(ConnectingRow.created_at))
    begun = session.exec(oldest_first).all()
    surplus = max(0, len(begun) + 1 - _MAX_OF_PERSON)
    for row in begun[:surplus]:
        _end_row(session, row, now)
    session.flush()
    if session.exec(select(func.count()).select_from(ConnectingRow)).one() >= _MAX_SIGN_INS:
        raise SignInError(MANY_TEXT)
    code = secrets.token_urlsafe(32)
    columns = {column.name: getattr(wanted, column.name) for column in fields(WantedConnection)}
    session.add(
        ConnectingRow(
            **columns, id=hash_text(code), step=SignInStep.LINK, created_at=now, until=now + SIGN_IN_LIFE
        )
    )
    return code


def find_link(session: Session, code: str, now: datetime) -> AccountSignIn | None:
    """Return the sign-in of a link that can still be used, without changing it; None for any other link."""
    row = session.exec(select(ConnectingRow).where(_is_at(SignInStep.LINK, now), _has_code(code))).first()
    return _make_sign_in(session, row)


def use_link(
    session: Session, code: str, browser: str, now: datetime, *, is_organised: bool
) -> AccountSignIn | None:
    """Use up a link in one browser. At most one caller gets its sign-in, all others None.

    ``browser``: the secret of the browser's cookie.
    """
    values = {"step": SignInStep.AWAY, "browser": hash_text(browser), "is_organised": is_organised}
    return _update_one(session, _is_at(SignInStep.LINK, now) & _has_code(code), values)


def store_request(session: Session, ident: str, state: str, values: dict[str, Any]) -> None:
    """Store the values by which the browser's return will be checked and its code exchanged.

    ``state``: the text that the browser will bring back. ``values``: further columns, such as the verifier
    and the metadata of the sign-in server.
    """
    columns = {**_encrypt(session, ident, values), "state": hash_text(state)}
    _update_one(session, col(ConnectingRow.id) == ident, columns)


def claim_return(
    session: Session, server: str, state: str, browser: str, now: datetime
) -> AccountSignIn | None:
    """Claim the sign-in of a browser that has come back from the server; None for any caller but the first.

    The server, the ``state`` that the browser brings and the secret of its cookie must be those of the
    sign-in, else None is returned as well.
    """
    is_same = (
        (col(ConnectingRow.state) == hash_text(state))
        & (col(ConnectingRow.browser) == hash_text(browser))
        & (col(ConnectingRow.server) == server)
    )
    return _update_one(session, _is_at(SignInStep.AWAY, now) & is_same, {"step": SignInStep.BACK})


def store_tokens(session: Session, sign_in: AccountSignIn, tokens: str, scope: str, now: datetime) -> bool:
    """Store the tokens of a sign-in, so that they are revoked if no connection is made.

    Returns False if the sign-in has ended since its browser came back: then the tokens are revoked now.
    """
    columns = _encrypt(session, sign_in.id, {"tokens": tokens, "scope": scope})
    if _update_one(session, col(ConnectingRow.id) == sign_in.id, columns) is not None:
        return True
    revoke_unused_tokens(session, replace(sign_in, tokens=tokens), now)
    return False


def find_by_id(session: Session, ident: str) -> AccountSignIn | None:
    """Return the sign-in with this id, at any step, or None."""
    return _make_sign_in(session, session.get(ConnectingRow, ident, populate_existing=True))


def store_account(session: Session, ident: str, values: dict[str, Any], now: datetime) -> str | None:
    """Store the account of a sign-in, and return the six digits that the browser shows.

    ``values``: the columns ``name`` and ``subject`` of the account. Returns None if the sign-in has ended
    since its browser came back.
    """
    digits = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    digits_hash = _hash_digits(ident, digits)
    columns = {
        **_encrypt(session, ident, values),
        "step": SignInStep.ACCOUNT,
        "digits": encrypt_in(session, ConnectingRow, "digits", ident, digits_hash),
        "verifier": "",  # the code is exchanged, so it is not needed any longer
    }
    condition = _is_at(SignInStep.BACK, now) & (col(ConnectingRow.id) == ident)
    return digits if _update_one(session, condition, columns) else None


def pop_by_digits(
    session: Session, accounts: Collection[str], digits: str, now: datetime
) -> AccountSignIn | ConfirmationRefusal:
    """Delete the sign-in with these digits, and return it for the connection to be made.

    ``accounts``: those of the person who sent the digits. A wrong number ends all sign-ins of this person
    that wait for confirmation, so that no one can try several numbers. Returns a refusal if the number is
    wrong, or if no sign-in waits for one.
    """
    rows = list(session.exec(select(ConnectingRow).where(_awaits_confirmation(accounts, now))))
    if not rows:
        return ConfirmationRefusal(NO_SIGN_IN_WAITS_TEXT)
    matching = [row for row in rows if _has_digits(session, row, digits)]
    if not matching:
        for row in rows:
            _end_row(session, row, now)
        return ConfirmationRefusal(WRONG_DIGITS_TEXT)
    # another message with the same digits may have deleted the row since it was read
    return _delete_row(session, matching[0]) or ConfirmationRefusal(NO_SIGN_IN_WAITS_TEXT)


def pop_by_browser(
    session: Session, accounts: Collection[str], browser: str, now: datetime
) -> AccountSignIn | None:
    """Delete the sign-in of a browser, and return it for the connection to be made; None without one.

    ``accounts``: those of the person who pressed the button of the browser's page. In a browser that is
    signed in with the organisation, this button takes the place of the digits.
    """
    is_of_browser = (
        (col(ConnectingRow.browser) == hash_text(browser))
        & col(ConnectingRow.is_organised).is_(True)
        & col(ConnectingRow.person).in_(sorted(accounts))
    )
    row = session.exec(select(ConnectingRow).where(_is_at(SignInStep.ACCOUNT, now), is_of_browser)).first()
    return _delete_row(session, row) if row else None


def has_unconfirmed(session: Session, accounts: Collection[str], now: datetime) -> bool:
    """Return whether a sign-in of the person with these accounts waits for its confirmation."""
    waiting = select(ConnectingRow.id).where(_awaits_confirmation(accounts, now)).limit(1)
    return session.exec(waiting).first() is not None


def list_unconfirmed(session: Session, accounts: Collection[str], now: datetime) -> list[AccountSignIn]:
    """Return the sign-ins of the person with these accounts that wait for their confirmation."""
    waiting = select(ConnectingRow).where(_awaits_confirmation(accounts, now))
    rows = session.exec(waiting.order_by(col(ConnectingRow.created_at)))
    sign_ins = [_make_sign_in(session, row) for row in rows]
    return [sign_in for sign_in in sign_ins if sign_in is not None]


def end_sign_in(session: Session, sign_in: AccountSignIn, now: datetime) -> None:
    """End a sign-in without a connection, and have its tokens revoked.

    ``sign_in`` has the account at the server, which may not be stored in the row yet.
    """
    row = session.get(ConnectingRow, sign_in.id)
    if row is None:
        return
    last_state = _delete_row(session, row)
    if last_state is not None:
        ended = replace(last_state, issuer=sign_in.issuer, subject=sign_in.subject)
        revoke_unused_tokens(session, ended, now)


def end_sign_ins_of_person(session: Session, accounts: Collection[str], now: datetime) -> None:
    """End every sign-in of a person."""
    is_theirs = col(ConnectingRow.person).in_(sorted(accounts))
    for row in list(session.exec(select(ConnectingRow).where(is_theirs))):
        _end_row(session, row, now)


def end_expired(session: Session, now: datetime) -> int:
    """End the sign-ins that are too old, or begun in the future by a wrong clock. Return their number."""
    is_late = (col(ConnectingRow.until) <= now) | (col(ConnectingRow.until) > now + SIGN_IN_LIFE)
    rows = list(session.exec(select(ConnectingRow).where(is_late)))
    for row in rows:
        _end_row(session, row, now)
    return len(rows)


def revoke_unused_tokens(session: Session, sign_in: AccountSignIn, now: datetime) -> None:
    """Have the tokens of a sign-in without a connection revoked, unless its account is connected already."""
    if revocations.is_account_connected(session, sign_in.server, sign_in.issuer, sign_in.subject):
        return
    revocations.add_revocation(
        session, sign_in.server, sign_in.url, sign_in.client, sign_in.tokens, sign_in.found, now
    )


def _is_at(step: SignInStep, now: datetime) -> ColumnElement[bool]:
    """Return the condition for sign-ins that are at a step and not too old."""
    until = col(ConnectingRow.until)
    return (col(ConnectingRow.step) == step) & (until > now) & (until <= now + SIGN_IN_LIFE)


def _has_code(code: str) -> ColumnElement[bool]:
    return col(ConnectingRow.id) == hash_text(code)


def _awaits_confirmation(accounts: Collection[str], now: datetime) -> ColumnElement[bool]:
    """Return the condition for a person's sign-ins that wait for the person's confirmation."""
    return _is_at(SignInStep.ACCOUNT, now) & col(ConnectingRow.person).in_(sorted(accounts))


def _has_digits(session: Session, row: ConnectingRow, digits: str) -> bool:
    """Return whether these are the digits of a sign-in; False if no key opens their hash."""
    try:
        stored_hash = decrypt_in(session, ConnectingRow, "digits", row.id, row.digits)
    except SecretLost:
        return False
    return hmac.compare_digest(stored_hash, _hash_digits(row.id, digits))


def _hash_digits(ident: str, digits: str) -> str:
    return hash_text(f"{ident} {digits}")


def _update_one(
    session: Session, condition: ColumnElement[bool], values: dict[str, Any]
) -> AccountSignIn | None:
    """Change the matching row, and return its sign-in; None if no row matches, as for a second caller."""
    changed = update(ConnectingRow).where(condition).values(**values).returning(col(ConnectingRow.id))
    ident = session.execute(changed.execution_options(synchronize_session=False)).scalar_one_or_none()
    if ident is None:
        return None
    return _make_sign_in(session, session.get(ConnectingRow, ident, populate_existing=True))


def _delete_row(session: Session, row: ConnectingRow) -> AccountSignIn | None:
    """Delete a row, and return its sign-in as it was last; None if another caller has deleted it."""
    session.expunge(row)  # so that the deletion returns a new object, with the state that was deleted
    deletion = delete(ConnectingRow).where(col(ConnectingRow.id) == row.id).returning(ConnectingRow)
    last = session.execute(deletion.execution_options(synchronize_session=False)).scalar_one_or_none()
    return _make_sign_in(session, last)


def _end_row(session: Session, row: ConnectingRow, now: datetime) -> None:
    """Delete a row, and have its tokens revoked, unless another caller has taken it and uses the tokens."""
    ended = _delete_row(session, row)
    if ended is not None:
        revoke_unused_tokens(session, ended, now)


def _encrypt(session: Session, ident: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return values of columns with the secrets among them encrypted."""
    secret_names = [name for name in _SECRETS if name in values]
    encrypted = {name: encrypt_in(session, ConnectingRow, name, ident, values[name]) for name in secret_names}
    return values | encrypted


def _make_sign_in(session: Session, row: ConnectingRow | None) -> AccountSignIn | None:
    """Return the value of a row; None without a row, or if no key opens its secrets."""
    if row is None:
        return None
    try:
        decrypted = {
            name: decrypt_in(session, ConnectingRow, name, row.id, getattr(row, name)) for name in _SECRETS
        }
    except SecretLost:
        return None
    return value_of(AccountSignIn, row, **decrypted)

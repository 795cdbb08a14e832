"""Sign-ins of Nod itself at MCP servers, as rows: the tokens of each server, and sign-ins under way.

A finished sign-in (`FinishedSignInRow`, `SignIn`) has the tokens of one server, encrypted, which are sent to
one address alone. One process at a time refreshes them: it claims the row (`claim_refresh`) and stores new
tokens (`store_refreshed_tokens`).

A sign-in under way (`SignInAttemptRow`, `SignInAttempt`) is a row as well: a person goes to the server's
page to sign in, and their browser may come back to another process than the one that began. That process
stores what the browser brought (`store_return`), and the process that began takes it (`pop_return`). No other
can use the code that the browser brought, since its secret is only in the memory of the process that began.
"""

import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import JSON, Column, delete, or_, update
from sqlmodel import Field, Session, col
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.text import hash_text
from bot.errors import SecretLost
from bot.store.inserts import insert_or_update
from bot.store.secrets import decrypt_in, encrypt_in, make_secret_column
from bot.store.tables.row import Row, value_of

_SECRETS = ("client", "tokens")  # the encrypted columns
_LONGEST_SECONDS = 366 * 86_400  # the longest lifetime of a token that is believed


class FinishedSignInRow(Row, table=True):
    """The finished sign-in at an MCP server; `SignIn` explains the columns that it has."""

    __tablename__ = "mcp_login"

    server: str = Field(primary_key=True)
    url: str
    client: str = make_secret_column()
    tokens: str = make_secret_column()
    found: str
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    signed_in_by: str
    signed_in_at: datetime = Field(sa_type=UTCDateTime)
    version: int = 1
    # the time at which a process's claim on the refresh ends, if it stores no tokens before; NULL: no claim
    busy_until: datetime | None = Field(default=None, sa_type=UTCDateTime)


class SignInAttemptRow(Row, table=True):
    """A sign-in under way, or one that has just ended."""

    __tablename__ = "mcp_sign_in"

    id: str = Field(primary_key=True)  # a hash of the id in the memory of the process that began it
    state: str = Field(unique=True)  # a hash of the parameter ``state`` of OAuth
    server: str
    until: datetime = Field(sa_type=UTCDateTime)  # after this time no one can come back any longer
    # the parameters with which the browser came back; NULL before, and after the process that began took them
    said: dict[str, str] | None = Field(default=None, sa_column=Column(JSON(none_as_null=True)))
    back: bool = False  # the browser came back, so it can't do so once more
    ended: str | None = None  # how the sign-in ended, in words for people; NULL: it has not ended
    well: bool = False  # True: the sign-in succeeded


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in under way, or one that has just ended."""

    server: str
    ended: str | None  # how the sign-in ended, in words for people; None: it has not ended
    well: bool  # True: the sign-in succeeded


@dataclass(frozen=True, slots=True)
class SignIn:
    """The finished sign-in at an MCP server, with its secrets in plain text."""

    server: str  # the name of the server in the settings
    url: str  # the address to which alone the tokens are sent
    client: str  # Nod's registration there, as JSON of the MCP SDK
    tokens: str  # as JSON of the MCP SDK; empty once the server has refused them for good
    found: str  # what is known of the server that issues the tokens, as JSON of the MCP SDK
    expires_at: datetime | None
    signed_in_by: str  # an account
    signed_in_at: datetime
    # random after a sign-in, and 1 more after each refresh; a change succeeds only if the row still has the
    # version that was read
    version: int = 1
    is_lost: bool = False  # no key of NOD_SECRET_KEY opens the row, so ``client`` and ``tokens`` are empty

    def __repr__(self) -> str:
        return f"SignIn({self.server!r})"


def compute_token_end(seconds: float | None, now: datetime) -> datetime | None:
    """Return the time at which a token expires, by the lifetime that its server gives; None without one."""
    if seconds is None:
        return None
    return now + timedelta(seconds=min(seconds, _LONGEST_SECONDS))


def find(session: Session, server: str, url: str) -> SignIn | None:
    """Return the finished sign-in at a server if it was for this address, or None."""
    row = session.get(FinishedSignInRow, server)
    if row is None or row.url != url:
        return None
    try:
        opened = {
            name: decrypt_in(session, FinishedSignInRow, name, server, getattr(row, name))
            for name in _SECRETS
        }
    except SecretLost:
        return value_of(SignIn, row, **dict.fromkeys(_SECRETS, ""), is_lost=True)
    return value_of(SignIn, row, **opened, is_lost=False)


def store_sign_in(session: Session, sign_in: SignIn) -> None:
    """Store a finished sign-in in place of the one before."""
    server = sign_in.server
    encrypted = {
        name: encrypt_in(session, FinishedSignInRow, name, server, getattr(sign_in, name))
        for name in _SECRETS
    }
    values = asdict(sign_in) | encrypted
    # random, so that a process that still refreshes the sign-in before this one can't change the new row
    values |= {"version": secrets.randbelow(1 << 30), "busy_until": None}
    del values["is_lost"]
    insert_or_update(session, FinishedSignInRow, values)


def forget_sign_in(session: Session, server: str) -> bool:
    """Delete the finished sign-in at a server; False where there was none."""
    statement = delete(FinishedSignInRow).where(col(FinishedSignInRow.server) == server)
    deleted = session.execute(statement.returning(col(FinishedSignInRow.server)))
    return deleted.scalar_one_or_none() is not None


def claim_refresh(session: Session, sign_in: SignIn, now: datetime, until: datetime) -> bool:
    """Claim the refresh of tokens for the time up to ``until``.

    False if another process has claimed it, or if the row has changed since it was read. A refresh token may
    be good for one use only, so no two processes may use it.
    """
    is_free = or_(col(FinishedSignInRow.busy_until).is_(None), col(FinishedSignInRow.busy_until) < now)
    return _change(session, sign_in, is_free, busy_until=until)


def store_refreshed_tokens(
    session: Session, sign_in: SignIn, tokens: str, expires_at: datetime | None
) -> bool:
    """Store new tokens and end the claim on their refresh; return False if a new sign-in came first."""
    encrypted = encrypt_in(session, FinishedSignInRow, "tokens", sign_in.server, tokens)
    values = {"tokens": encrypted, "expires_at": expires_at, "busy_until": None}
    return _change(session, sign_in, **values, version=sign_in.version + 1)


def clear_refused_tokens(session: Session, sign_in: SignIn) -> bool:
    """Delete tokens that the server has refused for good, and end the claim.

    Returns False if a new sign-in came first.
    """
    return store_refreshed_tokens(session, sign_in, "", None)


def release_refresh(session: Session, sign_in: SignIn) -> bool:
    """End the claim without new tokens, so that another process may refresh them."""
    return _change(session, sign_in, busy_until=None)


def begin_sign_in(
    session: Session, ident: str, state: str, server: str, now: datetime, until: datetime
) -> None:
    """Store a sign-in that waits for a person, and delete the sign-ins whose time is up."""
    session.execute(delete(SignInAttemptRow).where(col(SignInAttemptRow.until) < now))
    session.add(SignInAttemptRow(id=hash_text(ident), state=hash_text(state), server=server, until=until))


def store_return(session: Session, state: str, said: dict[str, str], now: datetime) -> str | None:
    """Store the parameters with which a browser came back, once, for the process that began the sign-in.

    ``state``: the parameter of that name, which finds the sign-in. Returns the key for `find_sign_in`; None
    if no sign-in with this state waits.
    """
    is_waiting = (
        col(SignInAttemptRow.state) == hash_text(state),
        col(SignInAttemptRow.until) >= now,
        col(SignInAttemptRow.back).is_(False),
        col(SignInAttemptRow.ended).is_(None),
    )
    stored = update(SignInAttemptRow).where(*is_waiting).values(said=said, back=True)
    return session.execute(stored.returning(col(SignInAttemptRow.id))).scalar_one_or_none()


def has_returned(session: Session, ident: str) -> bool:
    """Return whether the browser came back to another process, and its parameters are still stored."""
    row = session.get(SignInAttemptRow, hash_text(ident))
    return row is not None and row.said is not None


def pop_return(session: Session, ident: str) -> dict[str, str] | None:
    """Return the parameters with which the browser came back to another process, and delete them."""
    row = session.get(SignInAttemptRow, hash_text(ident))
    if row is None or row.said is None:
        return None
    parameters = row.said
    row.said = None
    return parameters


def end_sign_in(session: Session, ident: str, text: str, *, well: bool) -> None:
    """Store how a sign-in ended, in words: another process may show it to the person.

    ``well``: the sign-in succeeded.
    """
    attempt = update(SignInAttemptRow).where(col(SignInAttemptRow.id) == hash_text(ident))
    session.execute(attempt.values(ended=text, well=well, said=None))


def find_sign_in(session: Session, key: str) -> SignInAttempt | None:
    """Return a sign-in under way, or just ended, by the key that `store_return` gave."""
    row = session.get(SignInAttemptRow, key)
    if row:
        return value_of(SignInAttempt, row)
    return None


def _change(session: Session, sign_in: SignIn, *conditions: object, **values: object) -> bool:
    """Change the row of a finished sign-in, unless it has changed since it was read as ``sign_in``.

    False if it has changed, or if one of ``conditions`` is false.
    """
    statement = update(FinishedSignInRow).where(
        col(FinishedSignInRow.server) == sign_in.server,
        col(FinishedSignInRow.version) == sign_in.version,
        *conditions,  # type: ignore[arg-type]
    )
    changed = session.execute(statement.values(**values).returning(col(FinishedSignInRow.server)))
    return changed.scalar_one_or_none() is not None

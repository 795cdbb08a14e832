"""Sign-ins of Nod itself at MCP servers, as rows: the tokens of each server, and sign-ins under way.

A finished sign-in (`McpLoginRow`, `SignIn`) has the tokens of one server, encrypted, which are sent to one
address alone. One process at a time refreshes them: it claims the row (`claim`) and stores new tokens
(`renew`).

A sign-in under way (`McpSignInRow`, `StoredSignIn`) is a row as well, since the person who signs in at the
server may come back to another process than the one that began it. The person brings a code for the process
that began: without the secret in that process's memory no one can use the code.
"""

import secrets
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import JSON, Column, delete, or_, update
from sqlmodel import Field, Session, col
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.text import hash_text
from bot.errors import SecretLost
from bot.store.engine import insert_or_replace
from bot.store.secrets import decrypt_in, encrypt_in, make_secret_column
from bot.store.tables.row import Row, value_of

_SECRETS = ("client", "tokens")  # the encrypted columns
_LONGEST_SECONDS = 366 * 86_400  # the longest lifetime of a token that is believed


class McpLoginRow(Row, table=True):
    """The finished sign-in at an MCP server; `SignIn` explains the columns."""

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
    busy_until: datetime | None = Field(default=None, sa_type=UTCDateTime)  # the end of a claim


class McpSignInRow(Row, table=True):
    """A sign-in under way, or one that has just ended."""

    __tablename__ = "mcp_sign_in"

    id: str = Field(primary_key=True)  # a hash of the id in the memory of the process that began it
    state: str = Field(unique=True)  # a hash of the parameter ``state`` of OAuth
    server: str
    until: datetime = Field(sa_type=UTCDateTime)
    # the parameters that the person came back with, until the process that began has read them
    said: dict[str, str] | None = Field(default=None, sa_column=Column(JSON(none_as_null=True)))
    back: bool = False  # the person came back
    ended: str | None = None  # how it ended, in words; NULL: it has not ended
    well: bool = False  # it succeeded


@dataclass(frozen=True, slots=True)
class StoredSignIn:
    """A sign-in under way, or one that has just ended."""

    server: str
    ended: str | None  # how it ended, in words for people; None: it has not ended
    well: bool  # it succeeded


@dataclass(frozen=True, slots=True)
class SignIn:
    """The finished sign-in at an MCP server, with its secrets readable."""

    server: str  # the name of the server in the settings
    url: str  # the address to which alone the tokens are sent
    client: str  # Nod's registration there, as JSON of the MCP SDK
    tokens: str  # as JSON of the MCP SDK; empty once the server has refused them for good
    found: str  # what is known of the server that issues the tokens, as JSON of the MCP SDK
    expires_at: datetime | None
    signed_in_by: str  # an account
    signed_in_at: datetime
    version: int = 1  # grows with each refresh
    is_lost: bool = False  # no key of NOD_SECRET_KEY opens the row, so ``client`` and ``tokens`` are empty

    def __repr__(self) -> str:
        return f"SignIn({self.server!r})"


def find_token_end(seconds: float | None, now: datetime) -> datetime | None:
    """Return when a token expires, by the lifetime in seconds that its server gives; None without one."""
    return None if seconds is None else now + timedelta(seconds=min(seconds, _LONGEST_SECONDS))


def find(session: Session, server: str, url: str) -> SignIn | None:
    """Return the finished sign-in at a server if it was for this address, or None."""
    row = session.get(McpLoginRow, server)
    if row is None or row.url != url:
        return None
    try:
        opened = {
            name: decrypt_in(session, McpLoginRow, name, server, getattr(row, name)) for name in _SECRETS
        }
    except SecretLost:
        return value_of(SignIn, row, **dict.fromkeys(_SECRETS, ""), is_lost=True)
    return value_of(SignIn, row, **opened, is_lost=False)


def store_sign_in(session: Session, sign_in: SignIn) -> None:
    """Store a finished sign-in in place of the one before."""
    server = sign_in.server
    encrypted = {
        name: encrypt_in(session, McpLoginRow, name, server, getattr(sign_in, name)) for name in _SECRETS
    }
    values = asdict(sign_in) | encrypted
    values |= {"version": secrets.randbelow(1 << 30), "busy_until": None}  # no older claim fits
    del values["is_lost"]
    insert_or_replace(session, McpLoginRow, values)


def forget_sign_in(session: Session, server: str) -> bool:
    """Sign out; False where no one was signed in."""
    statement = delete(McpLoginRow).where(col(McpLoginRow.server) == server)
    return session.execute(statement.returning(col(McpLoginRow.server))).scalar_one_or_none() is not None


def claim(session: Session, sign_in: SignIn, now: datetime, until: datetime) -> bool:
    """Claim the refresh of tokens until then; False if another process has claimed it.

    A refresh token may be good for one use only, so no two processes may use it.
    """
    free = or_(col(McpLoginRow.busy_until).is_(None), col(McpLoginRow.busy_until) < now)
    return _change(session, sign_in, free, busy_until=until)


def renew(session: Session, sign_in: SignIn, tokens: str, expires_at: datetime | None) -> bool:
    """Store new tokens and end the claim; False if a new sign-in came first."""
    encrypted = encrypt_in(session, McpLoginRow, "tokens", sign_in.server, tokens)
    values = {"tokens": encrypted, "expires_at": expires_at, "busy_until": None}
    return _change(session, sign_in, **values, version=sign_in.version + 1)


def spoil(session: Session, sign_in: SignIn) -> bool:
    """Delete tokens that the server has refused for good, and end the claim; False as in `renew`."""
    return renew(session, sign_in, "", None)


def release(session: Session, sign_in: SignIn) -> bool:
    """End the claim without new tokens, so that another process may refresh them."""
    return _change(session, sign_in, busy_until=None)


def begin_sign_in(
    session: Session, ident: str, state: str, server: str, now: datetime, until: datetime
) -> None:
    """Store a sign-in that waits for a person, and delete the sign-ins whose time is up."""
    session.execute(delete(McpSignInRow).where(col(McpSignInRow.until) < now))
    session.add(McpSignInRow(id=hash_text(ident), state=hash_text(state), server=server, until=until))


def store_return(session: Session, state: str, said: dict[str, str], now: datetime) -> str | None:
    """Store the parameters that a person came back with, once, for the process that began the sign-in.

    ``state``: the parameter of that name, which finds the sign-in. Returns the key for `find_sign_in`; None
    if no sign-in waits for this.
    """
    waits = (
        col(McpSignInRow.state) == hash_text(state),
        col(McpSignInRow.until) >= now,
        col(McpSignInRow.back).is_(False),
        col(McpSignInRow.ended).is_(None),
    )
    taken = update(McpSignInRow).where(*waits).values(said=said, back=True)
    return session.execute(taken.returning(col(McpSignInRow.id))).scalar_one_or_none()


def has_returned(session: Session, ident: str) -> bool:
    """Return whether the person came back to another process, whose parameters are still stored."""
    row = session.get(McpSignInRow, hash_text(ident))
    return row is not None and row.said is not None


def pop_return(session: Session, ident: str) -> dict[str, str] | None:
    """Return the parameters that a person brought to another process, and delete them."""
    row = session.get(McpSignInRow, hash_text(ident))
    if row is None or row.said is None:
        return None
    said, row.said = row.said, None
    return said


def end_sign_in(session: Session, ident: str, words: str, *, well: bool) -> None:
    """Store the end of a sign-in in words, for requests to other processes. ``well``: it succeeded."""
    this = update(McpSignInRow).where(col(McpSignInRow.id) == hash_text(ident))
    session.execute(this.values(ended=words, well=well, said=None))


def find_sign_in(session: Session, key: str) -> StoredSignIn | None:
    """Return a sign-in under way, or just ended, by the key that `store_return` gave."""
    row = session.get(McpSignInRow, key)
    if row:
        return value_of(StoredSignIn, row)
    return None


def _change(session: Session, sign_in: SignIn, *conditions: object, **values: object) -> bool:
    """Change the row of a sign-in as it was read; False if it has changed since, or a condition is false."""
    statement = update(McpLoginRow).where(
        col(McpLoginRow.server) == sign_in.server,
        col(McpLoginRow.version) == sign_in.version,
        *conditions,  # type: ignore[arg-type]
    )
    found = session.execute(statement.values(**values).returning(col(McpLoginRow.server)))
    return found.scalar_one_or_none() is not None

"""Sign-ins at MCP servers: the tokens of each, kept like Slack's, and good for one address alone."""

import secrets
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import delete, or_, update
from sqlmodel import Field, Session, SQLModel, col
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.inserts import insert_or_replace


class McpLoginRow(SQLModel, table=True):
    """Who is signed in at a server. Only one process at a time asks for new tokens: see `claim`."""

    __tablename__ = "mcp_login"

    server: str = Field(primary_key=True)
    url: str
    client: str
    tokens: str
    found: str
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    signed_in_by: str
    signed_in_at: datetime = Field(sa_type=UTCDateTime)
    version: int = 1
    busy_until: datetime | None = Field(default=None, sa_type=UTCDateTime)


@dataclass(frozen=True, slots=True)
class SignIn:
    """One sign-in. ``client``, ``tokens`` and ``found`` are JSON of the MCP SDK's own values.

    ``found`` is what was discovered about the sign-in server; ``tokens`` is empty once they were refused.
    """

    server: str
    url: str
    client: str
    tokens: str
    found: str
    expires_at: datetime | None
    signed_in_by: str
    signed_in_at: datetime
    version: int = 1

    def __repr__(self) -> str:
        return f"SignIn({self.server!r})"


def find(session: Session, server: str, url: str) -> SignIn | None:
    """The sign-in of a server, if it was for this address: another one never gets the tokens."""
    row = session.get(McpLoginRow, server)
    if row is None or row.url != url:
        return None
    return SignIn(
        row.server,
        row.url,
        row.client,
        row.tokens,
        row.found,
        row.expires_at,
        row.signed_in_by,
        row.signed_in_at,
        row.version,
    )


def keep(session: Session, made: SignIn) -> None:
    """Keep a new sign-in in place of the one before."""
    values = asdict(made) | {
        "version": secrets.randbelow(1 << 30),
        "busy_until": None,
    }  # no one holds that one
    insert_or_replace(session, McpLoginRow, values)


def forget(session: Session, server: str) -> bool:
    """Sign out; False where no one was signed in."""
    statement = delete(McpLoginRow).where(col(McpLoginRow.server) == server)
    return session.execute(statement.returning(col(McpLoginRow.server))).scalar_one_or_none() is not None


def claim(session: Session, held: SignIn, now: datetime, until: datetime) -> bool:
    """Be the one who asks for new tokens: a refresh token may be good for one use only."""
    free = or_(col(McpLoginRow.busy_until).is_(None), col(McpLoginRow.busy_until) < now)
    return _changed(session, held, free, busy_until=until)


def renew(session: Session, held: SignIn, tokens: str, expires_at: datetime | None) -> bool:
    """Keep new tokens; False where a new sign-in came first."""
    values = {"tokens": tokens, "expires_at": expires_at, "version": held.version + 1, "busy_until": None}
    return _changed(session, held, **values)


def spoil(session: Session, held: SignIn) -> bool:
    """The tokens were refused for good: keep none of them."""
    return renew(session, held, "", None)


def release(session: Session, held: SignIn) -> bool:
    """No new tokens came; the next one may ask."""
    return _changed(session, held, busy_until=None)


def _changed(session: Session, held: SignIn, *also: object, **values: object) -> bool:
    statement = update(McpLoginRow).where(
        col(McpLoginRow.server) == held.server,
        col(McpLoginRow.version) == held.version,
        *also,  # type: ignore[arg-type]
    )
    found = session.execute(statement.values(**values).returning(col(McpLoginRow.server)))
    return found.scalar_one_or_none() is not None

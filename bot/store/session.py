"""What every session in PostgreSQL is told, and sessions that are of no pool."""

from sqlalchemy import URL, Engine, NullPool, create_engine
from sqlalchemy.engine import make_url

_SESSION = (
    "-cdatestyle=ISO",  # psycopg reads no other
    "-cidle_session_timeout=0",  # one that listens says nothing for long
)


def session(url: str | URL, *more: str) -> dict[str, str]:
    """How a session in PostgreSQL reads and writes, whatever the server, the database or the role say.

    For psycopg's ``connect``. ``more`` are options in addition, and those of the URL win.
    """
    given = make_url(url).query.get("options", "")
    options = (*_SESSION, *more, *([given] if isinstance(given, str) else given))
    return {"client_encoding": "UTF8", "options": " ".join(options).strip()}


def apart(url: str | URL) -> Engine:
    """For what PostgreSQL keeps for one connection: it is of no pool, and in no transaction."""
    given = {"connect_timeout": 5, **session(url)}
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=given)

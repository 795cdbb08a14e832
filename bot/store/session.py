"""What every session in PostgreSQL is told, and sessions that are of no pool."""

from sqlalchemy import URL, Engine, NullPool, create_engine
from sqlalchemy.engine import make_url

_SESSION = (
    "-cdatestyle=ISO",  # psycopg reads no other
    "-cidle_session_timeout=0",  # one that listens says nothing for long
)
_REACHED = {
    "connect_timeout": 5,
    # a connection that is gone is noticed within seconds
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


def session(url: str | URL, *more: str) -> dict[str, str | int]:
    """How a session in PostgreSQL reads and writes, whatever the server, the database or the role say.

    For psycopg's ``connect``. ``more`` are options in addition, and what the URL says wins.
    """
    given = make_url(url).query
    own = given.get("options", "")
    options = (*_SESSION, *more, *([own] if isinstance(own, str) else own))
    reached = {name: value for name, value in _REACHED.items() if name not in given}
    return {**reached, "client_encoding": "UTF8", "options": " ".join(options).strip()}


def apart(url: str | URL) -> Engine:
    """For what PostgreSQL keeps for one connection: it is of no pool, and in no transaction."""
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=session(url))

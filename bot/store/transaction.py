"""A store function in a transaction that its caller begins and ends."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlmodel import Session

from bot.store.quick import driver_of, fault, gathering
from bot.store.record import chain

T = TypeVar("T")
Links = list[tuple[Any, dict[str, Any]]]  # statements, each with its values


class OverConnection(Session):
    """Over a connection that is in a transaction already, so that it need not find or begin one."""

    def __init__(self, connection: Connection, **options: Any) -> None:
        super().__init__(connection, expire_on_commit=False, join_transaction_mode="rollback_only", **options)
        self._over = connection

    def connection(self, *_: object, **__: object) -> Connection:
        return self._over

    def expunge_all(self) -> None:
        if self.identity_map or self._new or self._deleted:  # most have none, and clearing them costs
            super().expunge_all()


def run(connection: Connection, work: Callable[[Session], T]) -> T:
    """All of it but the commit."""
    value, links = _done(connection, work)
    _execute_all(connection, links)
    return value


def run_and_commit(connection: Connection, work: Callable[[Session], T]) -> T:
    """All of it. On PostgreSQL what is linked goes out with the COMMIT, so others wait for one trip."""
    value, links = _done(connection, work)
    with gathering(connection):
        _execute_all(connection, links)
    commit(connection)
    return value


def commit(connection: Connection) -> None:
    """Raises DBAPIError."""
    if connection.dialect.name == "postgresql":
        # past SQLAlchemy, for which it is over from here on
        _told(connection, "COMMIT", driver_of(connection).commit)
    connection.commit()


def leave(connection: Connection) -> None:
    """End a transaction that only read."""
    if connection.dialect.name == "postgresql":
        _told(connection, "COMMIT", driver_of(connection).leave)
    connection.rollback()


def _done(connection: Connection, work: Callable[[Session], T]) -> tuple[T, Links]:
    """What came of it, and the statements that are left to do."""
    with OverConnection(connection) as session:
        chain.begin_to_collect(session)
        value = work(session)
        session.flush()
        return value, chain.links(session)


def _execute_all(connection: Connection, links: Links) -> None:
    for statement, values in links:
        connection.execute(statement, values)


def execute(connection: Connection, text: str) -> None:
    """Run ``text`` on the driver, past SQLAlchemy's own transaction; raises `DBAPIError` as it would."""
    _told(connection, text, driver_of(connection).execute, text)


_TO_WRITE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN ISOLATION LEVEL READ COMMITTED"}
_TO_READ = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}


def begin(connection: Connection, *, to_read: bool = False, synced: bool = True) -> None:
    """``to_read``: over one snapshot. Raises as `execute` does; on PostgreSQL the first statement may, too.

    ``synced`` False: on PostgreSQL the commit does not wait for the disk. The next one takes it there.
    """
    connection.begin()  # SQLAlchemy's part: a session joins this transaction and must not end it
    text = (_TO_READ if to_read else _TO_WRITE)[connection.dialect.name]
    if connection.dialect.name == "sqlite":
        execute(connection, text)
        return
    _told(connection, text, driver_of(connection).begin, text)
    if not synced:
        with gathering(connection):
            execute(connection, "SET LOCAL synchronous_commit TO off")


def _told(connection: Connection, text: str, do: Callable[..., object], *given: str) -> None:
    try:
        do(*given)
    except connection.dialect.loaded_dbapi.Error as error:
        raise fault(connection, text, error) from error

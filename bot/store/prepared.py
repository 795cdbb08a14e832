"""A statement that runs many times a second: compiled once, then handed straight to SQLite's driver.

SQLAlchemy's own way from a cached statement to the driver and back takes some fifteen microseconds, ten
times what SQLite needs for most of them, and one question and answer makes fifty. So here only its compiler
and its types are used. On PostgreSQL, a network away, the statement takes the ordinary way.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import Insert
from sqlmodel import Session

Values = Mapping[str, Any]
_Convert = Callable[[Any], Any]


def execute(connection: Connection, text: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
    """Run ``text`` on SQLite's driver; raises what SQLAlchemy would, `DBAPIError` and its kinds."""
    driver: Any = connection.connection.driver_connection
    try:
        cursor: sqlite3.Cursor = driver.execute(text, parameters)
    except sqlite3.Error as error:
        raise DBAPIError.instance(text, parameters, error, sqlite3.Error) from error
    return cursor


class Prepared:
    """One SELECT, INSERT or UPDATE over named values; rows have their columns' names.

    An INSERT sets the columns named by the values; ``statement`` decides what it returns.
    """

    def __init__(self, statement: Any) -> None:
        self._statement: Executable = statement
        self._compiled: dict[tuple[str, ...], _Compiled] = {}

    def rows(self, session: Session, values: Values) -> Sequence[Any]:
        """All rows, in order."""
        connection = session.connection()
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).all()
        compiled = self._for(connection.dialect, values)
        return compiled.read(execute(connection, compiled.text, compiled.bound(values)).fetchall())

    def row(self, session: Session, values: Values) -> Any:
        """The first row, or None."""
        found = self.rows(session, values)
        return found[0] if found else None

    def value(self, session: Session, values: Values) -> Any:
        """The first column of the first row, or None."""
        found = self.rows(session, values)
        return found[0][0] if found else None

    def count(self, session: Session, values: Values) -> int:
        """How many rows it changed."""
        connection = session.connection()
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).rowcount
        compiled = self._for(connection.dialect, values)
        return execute(connection, compiled.text, compiled.bound(values)).rowcount

    def _for(self, dialect: Dialect, values: Values) -> "_Compiled":
        keys = tuple(values) if isinstance(self._statement, Insert) else ()
        found = self._compiled.get(keys)
        if found is None:
            found = self._compiled[keys] = _Compiled(self._statement, dialect, keys)
        return found


class _Compiled:
    """The text for SQLite, and how values become its parameters and its rows values."""

    def __init__(self, statement: Any, dialect: Dialect, keys: tuple[str, ...]) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=list(keys) or None)
        self.text: str = str(compiled)
        self._given: list[tuple[str, _Convert | None]] = []
        self._constants: dict[str, Any] = {}
        for name in compiled.positiontup:
            bind = compiled.binds[name]
            self._given.append((name, bind.type.dialect_impl(dialect).bind_processor(dialect)))
            if not bind.required:
                self._constants[name] = bind.value
        columns = tuple(statement.exported_columns)
        names = [column.key for column in columns]
        made: Any = namedtuple("Row", names)  # type: ignore[misc] # noqa: PYI024 - the statement's own columns
        self._row: Callable[[Any], Any] = made._make
        converts = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
        self._converts = [(at, convert) for at, convert in enumerate(converts) if convert]

    def bound(self, values: Values) -> list[Any]:
        """The parameters, in the order of the text; raises KeyError where one is not given."""
        if self._constants:
            values = {**self._constants, **values}
        return [
            convert(values[name]) if convert is not None else values[name] for name, convert in self._given
        ]

    def read(self, rows: list[Any]) -> list[Any]:
        if not self._converts:
            return [self._row(row) for row in rows]
        read = []
        for row in rows:
            cells = list(row)
            for at, convert in self._converts:
                cells[at] = convert(cells[at])
            read.append(self._row(cells))
        return read

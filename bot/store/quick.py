"""The short way from a statement to the driver: what runs again and again is compiled once and kept.

SQLAlchemy's own way costs some 12 µs a statement over SQLite, ten times what SQLite takes for most of them,
and a message with its approval makes sixty; here it is 3 to 5 µs. On PostgreSQL
``bot/store/prepared.py`` runs it.
SQLAlchemy still compiles the statement and converts values and rows; between its text and the driver there is
nothing else. What this way can't do takes the ordinary one: several rows at a time, long lists as values,
defaults made in Python, options, an engine that has listeners, a statement built for one run.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Column, Connection, SelectBase, UpdateBase
from sqlalchemy.engine import Dialect, IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import ExpandedState, SQLCompiler

_BUILT_ONCE = 3  # runs after which a statement is taken for one that comes again
_LONGEST = 4  # items of a list; each length is a text of its own

_KINDS = (SelectBase, UpdateBase)  # of SELECT, INSERT, UPDATE, DELETE
_Convert = Callable[[Any], Any]


PREPARED = "prepared"
"""Where a connection of PostgreSQL has what runs its statements (``bot/store/prepared.py``)."""


def driver_of(connection: Connection) -> Any:
    """What runs a text and its values."""
    below = connection.connection
    return below.info.get(PREPARED, below.driver_connection)


def fault(connection: Connection, text: str, error: Exception) -> Exception:
    """The driver's fault as SQLAlchemy would raise it; a connection that is lost is not used again."""
    dialect = connection.dialect
    lost = dialect.is_disconnect(error, connection.connection.driver_connection, None)  # type: ignore[arg-type]
    if lost:
        connection.invalidate(error)
    kind = dialect.loaded_dbapi.Error
    return DBAPIError.instance(text, (), error, kind, hide_parameters=True, connection_invalidated=lost)


def gathering(connection: Connection) -> contextlib.AbstractContextManager[None]:
    """Within: statements whose answer no one needs. On PostgreSQL the next one takes them along."""
    prepared = connection.connection.info.get(PREPARED)
    return prepared.gathering() if prepared else contextlib.nullcontext()


def tell(connection: Connection, statement: Any, values: Any) -> None:
    """Run what only has to be done before the next statement: on PostgreSQL they make one trip.

    What is wrong with it may be raised by that one.
    """
    with gathering(connection):
        connection.execute(statement, values)


class Quick(Connection):
    """A connection whose `execute` takes the short way where it can."""

    def execute(self, statement: Any, parameters: Any = None, *, execution_options: Any = None) -> Any:
        if type(parameters) is list and len(parameters) == 1:
            [parameters] = parameters
        usual = type(parameters) is dict and isinstance(statement, _KINDS)
        if usual and execution_options is None and self.in_transaction():
            way = _ways.get(statement)
            if way is None:
                way = _ways[statement] = _Way()
            text = way.text(statement, parameters, self.dialect)
            if text is not None and not self.engine.dispatch.before_cursor_execute:
                return text.run(self, parameters)
        return super().execute(statement, parameters, execution_options=execution_options)


class _Way:
    """How one statement is run, for each kind of database, set of names and length of its lists."""

    __slots__ = ("_lists", "_runs", "_texts")

    def __init__(self) -> None:
        self._runs = 0
        self._lists: list[str] = []
        self._texts: dict[tuple[str | int, ...], _Text | None] = {}

    def text(self, statement: Any, parameters: dict[str, Any], dialect: Dialect) -> "_Text | None":
        shape = self._shape(parameters, dialect)
        if shape in self._texts:
            return self._texts[shape]
        self._runs += 1
        if self._runs >= _BUILT_ONCE and not self._long(parameters):
            compiled = statement.compile(dialect=dialect, column_keys=list(parameters))
            self._lists = [name for name, bind in compiled.binds.items() if bind.expanding and bind.required]
            if not self._long(parameters):
                text = _Text.of(statement, compiled, parameters, dialect)
                self._texts[self._shape(parameters, dialect)] = text
        return None

    def _long(self, parameters: dict[str, Any]) -> bool:
        """Whether a list is too long for a text of its own; False while no list is known."""
        return any(len(parameters[name]) > _LONGEST for name in self._lists)

    def _shape(self, parameters: dict[str, Any], dialect: Dialect) -> tuple[str | int, ...]:
        if self._lists:
            return (dialect.name, *parameters, *(len(parameters[name]) for name in self._lists))
        return (dialect.name, *parameters)


_ways: WeakKeyDictionary[Any, _Way] = WeakKeyDictionary()


class _Rows(IteratorResult[Any]):
    """SQLAlchemy's result over rows that are read already."""

    rowcount: int


class _Text:
    """A statement as the driver takes it: its text, its values in their order, and how its rows are read."""

    def __init__(
        self, compiled: SQLCompiler, state: ExpandedState, columns: Sequence[Column[Any]], dialect: Dialect
    ) -> None:
        self._text = state.statement
        self._given: list[tuple[str, _Convert | None]] = []
        self._fixed: dict[str, Any] = {}
        self._lists: list[tuple[str, list[str]]] = []
        list_of = {item: name for name, items in state.parameter_expansion.items() for item in items}
        for name in state.positiontup or ():
            bind = compiled.binds[list_of.get(name, name)]
            self._given.append((name, bind.type.dialect_impl(dialect).bind_processor(dialect)))
            if not bind.required:
                self._fixed[name] = state.parameters[name]
        for name, items in state.parameter_expansion.items():
            if compiled.binds[name].required:
                self._lists.append((name, items))
        self._columns = columns
        self._reads: list[tuple[int, _Convert]] = []
        self._names: SimpleResultMetaData | None = None  # the driver says them, and its own types

    @classmethod
    def of(cls, statement: Any, compiled: Any, values: dict[str, Any], dialect: Dialect) -> "_Text | None":
        """None where the statement needs more than this."""
        if (
            not isinstance(compiled, SQLCompiler)
            or compiled.literal_execute_params
            or compiled.escaped_bind_names
            or compiled.insert_prefetch
            or compiled.update_prefetch
            or statement.get_execution_options()
            or any(bind.callable or bind.type._is_tuple_type for bind in compiled.binds.values())  # noqa: SLF001
        ):
            return None
        columns = list(statement.exported_columns)
        return cls(compiled, compiled.construct_expanded_state(values), columns, dialect)

    def run(self, connection: Connection, values: dict[str, Any]) -> Any:
        if self._fixed:
            values = self._fixed | values
        for name, items in self._lists:
            values = values | dict(zip(items, values[name], strict=True))
        bound = [values[name] if convert is None else convert(values[name]) for name, convert in self._given]
        try:
            cursor = driver_of(connection).execute(self._text, bound)
            if cursor is None:
                return None  # it waits for the next one
            rows: list[Any] = cursor.fetchall() if self._columns else []
        except connection.dialect.loaded_dbapi.Error as error:
            raise fault(connection, self._text, error) from error
        if self._names is None:
            self._names = self._described(cursor.description if self._columns else (), connection.dialect)
        if self._reads:
            rows = [self._read(row) for row in rows]
        result = _Rows(self._names, iter(rows))
        result.rowcount = cursor.rowcount
        return result

    def _described(self, cells: Sequence[Sequence[Any]], dialect: Dialect) -> SimpleResultMetaData:
        types = [column.type.dialect_impl(dialect) for column in self._columns]
        reads = [type_.result_processor(dialect, cell[1]) for type_, cell in zip(types, cells, strict=True)]
        self._reads = [(at, read) for at, read in enumerate(reads) if read]
        return SimpleResultMetaData([cell[0] for cell in cells], extra=[(each,) for each in self._columns])

    def _read(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        cells = list(row)
        for at, read in self._reads:
            cells[at] = read(cells[at])
        return tuple(cells)

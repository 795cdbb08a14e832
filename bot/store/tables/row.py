"""The base of all tables, and the parts of which columns, indexes and conditions are made.

Rows are flat, with times in UTC. `value_of` makes a domain object from a row. Making a table takes some
milliseconds, so a command makes only the tables that it needs: a file of this folder imports only the tables
that its foreign keys name. ``bot/store/migrations/schema.py`` has all tables.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, delete, literal_column, or_, select, text
from sqlmodel import Field, Session, SQLModel

T = TypeVar("T")

AUDITED_KEY = "audited"
"""The key of `Audited` in the ``info`` of a table."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The mark of a table that the audit log covers: a row that was altered without a record is found."""

    thing: str
    """The kind of its rows in the log (`Thing`)."""
    key: str = "id"
    """The column that identifies a row."""
    unrecorded: frozenset[str] = frozenset()
    """The columns that change without a record, so that the log has no hash of them."""
    find_keys: Callable[[str, Sequence[Mapping[str, Any]]], Collection[Any]] = lambda key, _: [key]
    """A function that finds the keys of the table rows that a record in the log is about.

    Its arguments are the record's key, and the states before and after that are not None.
    """
    needs_record: Callable[[Mapping[str, Any]], bool] = lambda _: True
    """A function of a row, which returns False if the row needs no record in the log.

    For example, the row of the rulebook needs a record only while Nod is paused.
    """


def make_audited(thing: str, key: str = "id", **more: Any) -> dict[str, Any]:
    """Return the table option with the `Audited` mark, for ``__table_args__``."""
    return {"info": {AUDITED_KEY: Audited(thing, key, **more)}}


def make_key_finder(thing: str) -> Callable[[str, Sequence[Mapping[str, Any]]], Collection[Any]]:
    """Return an `Audited.find_keys` for states that have the row's number under the name of the thing."""
    return lambda _, states: sorted({state[thing] for state in states})


class Row(SQLModel):
    """A row of a table. Pydantic's validator is not built: the database checks the values."""

    model_config = {"defer_build": True}


IdType = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts only INTEGER PRIMARY KEY by itself


def value_of(kind: type[T], row: Any, /, **converted: Any) -> T:
    """Return a value of the dataclass ``kind``, each field from the column of the same name.

    ``converted``: the values of the fields that differ from the row's.
    """
    same = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in converted:
            same[field.name] = getattr(row, field.name)
    return kind(**same, **converted)


def table_of(row: type[SQLModel]) -> Any:
    """Return the table behind a class of rows, for statements that are built once."""
    return row.__table__  # type: ignore[attr-defined]


def name_id_column(row: type[SQLModel]) -> str:
    """Return the name of a table's id column, for ``foreign_key``."""
    return f"{row.__tablename__}.id"


def make_partial_index(
    name: str, *columns: str, where: str, postgresql: str | None = None, unique: bool = False
) -> Index:
    """Return an index of the rows that match ``where``; a query must have the same condition to use it.

    ``postgresql``: the condition in PostgreSQL's dialect, if that differs.
    """
    return Index(
        name,
        *columns,
        unique=unique,
        sqlite_where=text(where),
        postgresql_where=text(postgresql or where),
    )


def is_one_of(column: Any, values: Collection[str]) -> Any:
    """Return ``column IN (…)`` of constants in the statement's text, without parameters to expand."""
    return column.in_([literal_column(f"'{value}'") for value in values])


def starts_with(column: Any, prefix: str) -> Any:
    """Return the condition that an id begins with ``prefix``.

    The bounds can be found by an index, unlike LIKE. ``z`` is after all characters that an id has.
    """
    return (column >= prefix) & (column < f"{prefix}z") & column.startswith(prefix, autoescape=True)


def is_at_or_below(column: Any, place: str) -> Any:
    """Return the condition that an address is ``place``, or below it, as that of a thread below its chat.

    Both are the text of an address, or both the key of one.
    """
    return (column == place) | column.startswith(f"{place}/", autoescape=True)


def is_old(column: Any, before: datetime, now: datetime) -> Any:
    """Return the condition for times up to ``before``.

    Times after ``now`` count as old, too: they were stored before the clock was set back.
    """
    return or_(column <= before, column > now)


def count_changed(result: Any) -> int:
    """Return the number of rows that a statement changed, from the result of its execution."""
    return int(result.rowcount)


def delete_older(session: Session, row: type[SQLModel], time: str, before: datetime, limit: int) -> int:
    """Delete up to ``limit`` rows whose column ``time`` has a time before ``before``; return their number.

    The oldest are deleted first.
    """
    columns = table_of(row).c
    oldest_ids = select(columns.id).where(columns[time] < before).order_by(columns[time]).limit(limit)
    return count_changed(session.execute(delete(row).where(columns.id.in_(oldest_ids))))


def make_key_numbered_by_database() -> Any:
    """Return the field of a primary key that the database numbers."""
    return Field(default=None, sa_column=Column(IdType, primary_key=True, autoincrement=True))


def make_key_numbered_by_nod() -> Any:
    """Return the field of a primary key that Nod numbers itself."""
    return Field(default=None, sa_column=Column(IdType, primary_key=True, autoincrement=False))


def make_json_column(*, nullable: bool = False) -> Any:
    """Return the field of a column with JSON."""
    return Field(default=None, sa_column=Column(JSON(none_as_null=True), nullable=nullable))

"""State that is kept by name: small JSON values, so that a restart or another process finds them.

There are two stores:

- A *room* has values by key, in the table of all rooms. Each use has a room of its own: dialogues of a
  channel with people, questions about cards, sign-ins of browsers with the organisation. The table is called
  ``dialogue``, and its column for the room ``channel``, after the first use.
- A recurring *task* has one value between its runs: its last message, or the day of its last run. The values
  of all tasks are in the one row of the rulebook, in the column ``memory``. A run locks that row before it
  changes its value.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, String, and_, bindparam, delete, func
from sqlmodel import Field, Session, col, select
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.errors import LostRace
from bot.store import rules
from bot.store.inserts import insert_or_ignore, insert_or_update
from bot.store.tables.row import Row, is_old, make_json_column, table_of
from bot.store.tables.rules import BookRow

JsonObject = Mapping[str, Any]


class StateRow(Row, table=True):
    """One value of a room."""

    __tablename__ = "dialogue"

    channel: str = Field(primary_key=True)  # the name of the room
    key: str = Field(primary_key=True)
    state: dict[str, Any] = make_json_column()
    updated_at: datetime = Field(sa_type=UTCDateTime)


_ROWS = table_of(StateRow)
_ROOM = _ROWS.c.channel
# for `list_states`: all states of a room, and those whose keys begin with a prefix
_ALL = select(StateRow.key, StateRow.state).where(bindparam("room") == _ROOM)
# not LIKE, which has wildcards, and which on SQLite ignores case
_WITH_PREFIX = _ALL.where(
    func.substr(_ROWS.c.key, 1, func.length(bindparam("prefix", type_=String))) == bindparam("prefix")
)


def load_state(session: Session, room: str, key: str) -> dict[str, Any] | None:
    """Return the state at a key, or None."""
    row = session.get(StateRow, (room, key))
    return row.state if row else None


def lock_state(session: Session, room: str, key: str) -> dict[str, Any] | None:
    """Return the state at a key, or None. No other transaction changes the state until this one ends."""
    row = session.get(StateRow, (room, key), with_for_update=True, populate_existing=True)
    return row.state if row else None


def list_states(session: Session, room: str, prefix: str = "") -> dict[str, dict[str, Any]]:
    """Return the states of a room by key, for keys that begin with ``prefix``."""
    if prefix:
        rows = session.connection().execute(_WITH_PREFIX, {"room": room, "prefix": prefix})
    else:
        rows = session.connection().execute(_ALL, {"room": room})
    return {row.key: row.state for row in rows}


def list_unchanged_keys(session: Session, room: str, until: datetime, now: datetime) -> list[str]:
    """Return the keys whose state is unchanged since ``until``.

    A state that was stored after ``now``, before the clock was set back, counts as unchanged, too.
    """
    is_unchanged = is_old(_ROWS.c.updated_at, until, now)
    return list(session.exec(select(StateRow.key).where(room == _ROOM, is_unchanged)))


def count_states(session: Session, room: str) -> int:
    """Return the number of keys in a room."""
    return session.exec(select(func.count()).select_from(StateRow).where(room == _ROOM)).one()


def store_state(session: Session, room: str, key: str, state: JsonObject | None, now: datetime) -> None:
    """Store a state in place of the one before; None deletes the one before."""
    if state is None:
        session.execute(delete(StateRow).where(_is_at(room, key)))
        return
    values = {"channel": room, "key": key, "state": dict(state), "updated_at": now}
    insert_or_update(session, StateRow, values)


def add_state(session: Session, room: str, key: str, state: JsonObject, now: datetime) -> bool:
    """Store the first state at a key; False, storing nothing, if the key has one, also by another process."""
    insert_state = insert_or_ignore(session, StateRow, "key")  # returns the inserted key
    values = {"channel": room, "key": key, "state": dict(state), "updated_at": now}
    inserted = session.connection().execute(insert_state, values)
    return inserted.first() is not None


def pop_state(session: Session, room: str, key: str, since: datetime) -> JsonObject | None:
    """Delete and return a state, if it was stored after ``since``, else None.

    Of several callers at the same time, one gets the state.
    """
    statement = delete(StateRow).where(_is_at(room, key), _ROWS.c.updated_at > since)
    row = session.execute(statement.returning(col(StateRow.state))).first()
    return row[0] if row else None


def forget_states(session: Session, room: str, until: datetime) -> None:
    """Delete the states of a room that are unchanged since ``until``."""
    session.execute(delete(StateRow).where(room == _ROOM, _ROWS.c.updated_at <= until))


def load_task_state(session: Session, name: str) -> JsonObject:
    """Return the state that a recurring task, by its name, keeps between its runs; empty at first."""
    row = session.get(BookRow, rules.BOOK_ID)
    return (row.memory or {}).get(name, {}) if row else {}


def store_task_state(session: Session, name: str, before: JsonObject, state: JsonObject) -> None:
    """Store the state of a recurring task in place of the state that this transaction has read.

    Raises LostRace if another process has stored one since, so that the transaction runs again and reads it.
    """
    row = session.get(BookRow, rules.BOOK_ID, with_for_update=True, populate_existing=True)
    if row is None:
        rules.raise_version(session)  # inserts the one row of the table, which also has the tasks' states
        row = session.get_one(BookRow, rules.BOOK_ID, with_for_update=True)
    states = row.memory or {}
    if states.get(name, {}) != before:
        raise LostRace
    row.memory = {**states, name: dict(state)}
    session.add(row)


def claim_day(session: Session, name: str, today: date) -> bool:
    """Claim today's run of a daily task; False if it was claimed before, here or in another process.

    Raises LostRace if another process has claimed it at the same time; a repeated call then returns False.
    """
    before = load_task_state(session, name)
    claim = {"day": today.isoformat()}
    if before == claim:
        return False
    store_task_state(session, name, before, claim)
    return True


def _is_at(room: str, key: str) -> ColumnElement[bool]:
    return and_(room == _ROOM, _ROWS.c.key == key)

"""The hash chain of the audit log: each row carries the hash of the row before it.

The rows of the tables ``audit`` (changes of proposals) and ``ledger`` (all other changes) share one numbering
without gaps. One row of the table ``chain_end``, *the end*, holds the newest number and hash, so rows missing
at the end show as well as rows missing in the middle. The end is locked from the first row that a transaction
adds to its commit, so numbers are committed in order: anyone who has read up to a number has read everything
below it. Every writer waits for that lock, so new rows are collected (`record_row`) and inserted as the last
step of a transaction (`insert_rows`).

With ``NOD_AUDIT_KEY`` the log is *sealed*: the hashes are HMACs, so a writer of the database without the key
can't make rows that fit. With several keys, the first seals new rows, and the others still verify the rows
that they sealed. The end has a seal of its own, its *mark*; a database that is made with a key has a mark
before its first row. A row is added only to an end whose mark fits. A log without a seal is continued with
one only if an operator asked for that once (`allow_first_seal`).

Databases from before this chain have older rows, numbered in each of the two tables apart. After them comes a
ledger row `UPGRADE_THING`, whose ``previous`` is the hash over all of them.

``bot/store/audit/chain_check.py`` finds the rows that do not fit the chain.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Insert, bindparam, func, literal_column, update
from sqlmodel import Session, select

from bot.errors import NodError
from bot.store.tables.audit import AuditRow, ChainEndRow, LedgerRow
from bot.store.tables.row import table_of

KEYS_OPTION = "nod_audit_keys"
"""The execution option of an engine that holds the keys: a tuple of bytes, with the sealing key first."""

UPGRADE_THING = "upgrade"
"""The value of the column ``thing`` in the ledger row that follows the rows from before this chain."""

KEY_THING = "key"
"""The value of the column ``thing`` in the ledger row with which a seal begins.

It is the first sealed row of the log, or the first row that a new key seals.
"""

NEW_ROWS_KEY = "to be linked"
"""The key of `NewRows` in a session's ``info``. A session without `NewRows` can't record anything."""

_AUDIT = table_of(AuditRow)
_LEDGER = table_of(LedgerRow)
CHAINED_TABLES = (_AUDIT, _LEDGER)
"""The tables whose rows are in the chain."""
_END = table_of(ChainEndRow)
_IS_THE_END = _END.c.id == literal_column("1")
READ_END = select(_END.c.number, _END.c.hash, _END.c.key, _END.c.mark).where(_IS_THE_END)
_LOCK_END = READ_END.with_for_update()
_UPDATE_END = (
    update(_END)
    .where(_IS_THE_END)
    .values({name: bindparam(f"new_{name}") for name in ("number", "hash", "key", "mark")})
)
_BATCH = 2000  # rows that are read at a time
_ANCHOR_DIGITS = 32  # hexadecimal digits of a hash in an anchor: 128 bits
_MIN_ANCHOR_DIGITS = 16  # the fewest digits that an anchor to check must have

COLUMN_DEFAULTS: Mapping[str, Any] = {}
"""Columns that were added to hashed tables later, each with the value that older rows have; none so far.

`hash_content` leaves a column with that value out, so that the hashes of older rows stay the same.
"""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)


class OtherKey(NodError):
    """The audit log is sealed with a key that is not set here."""

    def __init__(self) -> None:
        super().__init__(
            "NOD_AUDIT_KEY: the audit log is sealed with a key that is not set here. Set that key. "
            "If you have a new one, set both: new,old. If it is lost, this log can't be continued: copy the "
            "database with `nod db backup`, and name a new one in NOD_DATABASE_URL."
        )


class NotSealed(NodError):
    """A key is set here, and the audit log is not sealed."""

    def __init__(self) -> None:
        super().__init__(
            "NOD_AUDIT_KEY: the audit log is not sealed. If it was sealed before, it was altered: restore a "
            "backup. If the key is new, seal the log once with: nod audit seal"
        )


class EndAltered(NodError):
    """The seal of the audit log's end does not fit."""

    def __init__(self) -> None:
        super().__init__(
            "The end of the audit log was altered, so nothing more is recorded. "
            "Restore a backup. To see what was altered: nod audit verify"
        )


def list_keys(session: Session) -> tuple[bytes, ...]:
    """Return the keys of this process; the first is the sealing key."""
    return _keys_in(session.connection())


def _keys_in(connection: Connection) -> tuple[bytes, ...]:
    keys: tuple[bytes, ...] = connection.get_execution_options().get(KEYS_OPTION, ())
    return keys


@dataclass(slots=True)
class NewRows:
    """The new rows of a transaction, until `insert_rows` inserts them."""

    # each row after the statement that inserts it
    rows: list[tuple[Insert, Mapping[str, Any]]] = field(default_factory=list)
    may_be_first_sealed: bool = False  # the rows may have a seal although those before have none


def record_row(session: Session, insert_one: Insert, row: Mapping[str, Any]) -> None:
    """Have a row added to the log as the last step of the transaction, by the statement ``insert_one``."""
    session.info[NEW_ROWS_KEY].rows.append((insert_one, row))


def insert_recorded_rows(session: Session) -> None:
    """Insert the rows that this transaction has recorded so far, so that its later queries see them."""
    new_rows = session.info.get(NEW_ROWS_KEY)
    if new_rows is not None:
        insert_rows(session.connection(), new_rows)


def insert_rows(connection: Connection, new_rows: NewRows) -> None:
    """Number, chain and insert new rows. The end is locked from here to the commit.

    Raises OtherKey, NotSealed or EndAltered where no row may follow the end, NodError where there is no end.
    """
    if not new_rows.rows:
        return
    end = connection.execute(_LOCK_END, {}).first()
    if end is None:
        raise NodError("The end of the audit log is missing. See: nod audit verify")
    key = _choose_key(_keys_in(connection), end, may_be_first_sealed=new_rows.may_be_first_sealed)
    number, previous = end.number, end.hash
    for statement, group in groupby(new_rows.rows, key=itemgetter(0)):  # successive rows of one table
        rows = []
        for _, values in group:
            number += 1
            row = {**values, "id": number, "previous": previous}
            row["hash"] = hash_row(key, row)
            previous = row["hash"]
            rows.append(row)
        connection.execute(statement, rows)
    new_end = {
        "number": number,
        "hash": previous,
        "key": name_key(key),
        "mark": make_mark(key, number, previous),
    }
    connection.execute(_UPDATE_END, {f"new_{name}": value for name, value in new_end.items()})
    new_rows.rows = []
    new_rows.may_be_first_sealed = False


def _choose_key(keys: Sequence[bytes], end: Any, *, may_be_first_sealed: bool = False) -> bytes:
    """Return the key that seals the next row; empty for no seal.

    ``keys``: those that are set. ``end``: the row of the end. ``may_be_first_sealed``: the next row may have
    a seal although the rows before have none. Raises OtherKey, NotSealed or EndAltered where no row may
    follow this end.
    """
    by_name = {name_key(key): key for key in (b"", *keys)}
    if end.key not in by_name:
        raise OtherKey
    end_key = by_name[end.key]  # the key that sealed the newest row; empty for none
    if keys and not end_key and not may_be_first_sealed:
        raise NotSealed
    if end_key and end.mark != make_mark(end_key, end.number, end.hash):
        raise EndAltered
    return keys[0] if keys else b""


def is_sealed_with_newest_key(session: Session) -> bool:
    """Return whether the newest row is sealed with the key that seals the next row.

    Raises like `insert_rows`.
    """
    insert_recorded_rows(session)
    end = session.connection().execute(READ_END, {}).first()
    return end is not None and name_key(_choose_key(list_keys(session), end)) == end.key


def allow_first_seal(session: Session) -> int:
    """Allow this transaction to add the first row with a seal, after rows that have none; return its number.

    Raises NodError where no key is set, or where the log has a seal already.
    """
    insert_recorded_rows(session)
    end = session.connection().execute(READ_END, {}).first()
    if not list_keys(session):
        raise NodError("NOD_AUDIT_KEY: no key is set. Set one, then seal the audit log.")
    if end is None or end.key:
        raise NodError("The audit log is sealed already. Nothing was changed.")
    session.info[NEW_ROWS_KEY].may_be_first_sealed = True
    return int(end.number) + 1


def count_unsealed(session: Session) -> int:
    """Return the number of rows before the first one with a seal; 0 if all have one, or none has."""
    first_seal = (
        session.execute(select(func.min(_LEDGER.c.id)).where(_LEDGER.c.thing == KEY_THING)).scalar() or 0
    )
    for table in CHAINED_TABLES:
        before = session.execute(select(table).where(table.c.id == first_seal - 1)).mappings().first()
        # a row without a seal has the hash of the empty key
        if before is not None and hash_row(b"", dict(before)) == before["hash"]:
            return int(before["id"])
    return 0


def make_empty_end(connection: Connection) -> dict[str, Any]:
    """Return the row of the end for a log that has no rows yet; it has a mark if a key is set."""
    key = next(iter(_keys_in(connection)), b"")
    mark = make_mark(key, 0, "") if key else ""
    return {"id": 1, "number": 0, "hash": "", "key": name_key(key), "mark": mark}


def name_key(key: bytes) -> str:
    """Return a name for a key that does not reveal it; empty for none."""
    if key:
        return hashlib.sha256(b"nod audit key " + key).hexdigest()[:8]
    return ""


def _normalise(value: Any) -> Any:
    """Return a column's value in one form: SQLite and PostgreSQL return times and numbers differently."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def encode_row(row: Mapping[str, Any]) -> bytes:
    """Return a row as the bytes that are hashed: JSON with the columns in the order of their names."""
    return _JSON.encode({name: _normalise(value) for name, value in row.items()}).encode()


def _digest(key: bytes, text: bytes) -> str:
    """Return the HMAC of a text under a key; without a key the plain hash."""
    if key:
        return hmac.digest(key, text, "sha256").hex()
    return hashlib.sha256(text).hexdigest()


def hash_row(key: bytes, row: Mapping[str, Any]) -> str:
    """Return the hash of a row of the log, its column ``hash`` apart; an HMAC if there is a key."""
    return _digest(key, encode_row({name: value for name, value in row.items() if name != "hash"}))


def make_mark(key: bytes, number: int, last_hash: str) -> str:
    """Return the seal of an end with this number and hash."""
    return _digest(key, f"end {number} {last_hash}".encode())


def hash_content(row: Mapping[str, Any]) -> str:
    """Return the hash of a row of another table, such as a proposal's, for a row of the log.

    Columns without a value are left out, so that a new column changes no hash.
    """
    hashed = {}
    for name, value in row.items():
        is_left_out = name in COLUMN_DEFAULTS and COLUMN_DEFAULTS[name] == value
        if value is not None and not is_left_out:
            hashed[name] = value
    return hashlib.sha256(encode_row(hashed)).hexdigest()


def make_anchor(session: Session) -> str | None:
    """Return the anchor of the log, ``NUMBER-HASH`` of its newest row; None while there are no rows.

    Kept outside the database, it proves later that the rows up to that number are still the same.
    """
    insert_recorded_rows(session)
    end = session.connection().execute(READ_END, {}).first()
    if end is not None and end.number:
        return f"{end.number}-{end.hash[:_ANCHOR_DIGITS]}"
    return None


def find_contradiction(session: Session, anchor: str) -> str | None:
    """Return how the log contradicts an earlier anchor of it, in words; None if it does not.

    Raises NodError where the text is no anchor.
    """
    number, dash, digits = anchor.strip().partition("-")
    if not (dash and number.isdecimal() and len(digits) >= _MIN_ANCHOR_DIGITS):
        raise NodError(f"--anchor: {anchor} is not an anchor. Copy one that nod audit anchor printed.")
    for table in CHAINED_TABLES:
        found = session.execute(select(table.c.hash).where(table.c.id == int(number)))
        if any(each.startswith(digits.lower()) for each in found.scalars()):
            return None
    return f"row {number} is not the row of anchor {anchor}: the record was rewritten or cut off since then"

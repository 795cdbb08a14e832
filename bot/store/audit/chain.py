"""The hash chain of the audit log: each row carries the hash of the row before it.

The rows of ``audit`` (proposals) and ``ledger`` (everything else) share one numbering without gaps. The row
``chain_end`` holds the newest number and hash, so rows missing at the end show as well as rows missing in the
middle. It is locked from the first row that a transaction adds to its commit, so numbers are committed in
order: anyone who has read up to a number has read everything below it. Every writer waits for that lock, so
rows are collected (`record_row`) and linked as the last step of a transaction (`link`).

With ``NOD_AUDIT_KEY`` the hashes are HMACs: a writer of the database without the key cannot make rows that
fit. With several keys, the first seals, and the others still verify the rows that they sealed. The end has a
seal of its own, from the first moment of a database that is made with a key, and a row is added only to an
end whose seal fits: a log without a seal is continued only if an operator asked for that once (`adopt`).
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Insert, bindparam, func, literal_column, update
from sqlmodel import Session, select

from bot.domain.progress import Counter
from bot.errors import NodError
from bot.store.tables.record import AuditRow, ChainEndRow, LedgerRow
from bot.store.tables.row import table_of

T = TypeVar("T")

KEYS = "nod_audit_keys"
"""The execution option of an engine that holds the keys, as a tuple of bytes."""

UPGRADE = "upgrade"
"""The thing of the ledger row that follows the rows from before the one chain."""

KEY = "key"
"""The thing of the ledger row with which seals begin, or with which the seals of a new key begin."""

_AUDIT = table_of(AuditRow)
_LEDGER = table_of(LedgerRow)
_BOTH = (_AUDIT, _LEDGER)
_ENDS = table_of(ChainEndRow)
_THE_END = _ENDS.c.id == literal_column("1")
_AT_END = select(_ENDS.c.number, _ENDS.c.hash, _ENDS.c.key, _ENDS.c.mark).where(_THE_END)
_READ_END, _HOLD_END = _AT_END, _AT_END.with_for_update()
_MOVE_END = (
    update(_ENDS)
    .where(_THE_END)
    .values({name: bindparam(f"new_{name}") for name in ("number", "hash", "key", "mark")})
)
ADDITIONS = "to be linked"
"""The key of a session's `Additions`. A session without `Additions` can't record anything."""
_BATCH = 2000
_ANCHOR_DIGITS = 32  # hexadecimal digits of a hash in an anchor: 128 bits
_MIN_ANCHOR_DIGITS = 16  # the fewest digits that an anchor to check must have

ADDED: Mapping[str, Any] = {}
"""Columns that were added to hashed tables later; a hash leaves out a column with the value given here."""

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
_OLD = {
    "audit": (
        *("id", "proposal_id", "version", "at", "verb", "state", "actor", "person", "channel", "reason"),
        *("digest", "rule", "grant_id", "content", "previous", "hash"),
    ),
    "ledger": (
        *("id", "at", "thing", "key", "tool", "verb", "actor", "person", "channel", "before", "after"),
        *("previous", "hash"),
    ),
}
"""The columns of rows from before the one chain."""


class OtherKey(NodError):
    """The record is sealed with a key that is not set here."""

    def __init__(self) -> None:
        super().__init__(
            "NOD_AUDIT_KEY: the audit log is sealed with a key that is not set here. Set that key. "
            "If you have a new one, set both: new,old. If it is lost, this log can't be continued: copy the "
            "database with `nod db backup`, and name a new one in NOD_DATABASE_URL."
        )


class NotSealed(NodError):
    """A key is set here, and the record is not sealed."""

    def __init__(self) -> None:
        super().__init__(
            "NOD_AUDIT_KEY: the audit log is not sealed. If it was sealed before, it was altered: restore a "
            "backup. If the key is new, seal the log once with: nod audit seal"
        )


class EndAltered(NodError):
    """The seal of the record's end does not fit."""

    def __init__(self) -> None:
        super().__init__(
            "The end of the audit log was altered, so nothing more is recorded. "
            "Restore a backup. To see what was altered: nod audit verify"
        )


def keys_of(session: Session) -> tuple[bytes, ...]:
    """Return the keys of this process; the first is the sealing key."""
    return _keys_in(session.connection())


def _keys_in(connection: Connection) -> tuple[bytes, ...]:
    keys: tuple[bytes, ...] = connection.get_execution_options().get(KEYS, ())
    return keys


@dataclass(slots=True)
class Additions:
    """The new rows of a transaction, each with the statement that inserts it, until `link` inserts them.

    ``adopts``: the first of these rows is the first sealed row, after rows without a seal.
    """

    rows: list[tuple[Insert, Mapping[str, Any]]] = field(default_factory=list)
    adopts: bool = False


def record_row(session: Session, insert_one: Insert, row: Mapping[str, Any]) -> None:
    """Record this row, which ``insert_one`` inserts, when the transaction ends."""
    session.info[ADDITIONS].rows.append((insert_one, row))


def link_added(session: Session) -> None:
    """Insert the rows added so far in a session's transaction, before the session reads the log."""
    added = session.info.get(ADDITIONS)
    if added is not None:
        link(session.connection(), added)


def link(connection: Connection, added: Additions) -> None:
    """Number, chain and insert the added rows. The end of the log is locked until the commit."""
    if not added.rows:
        return
    end = connection.execute(_HOLD_END, {}).first()
    if end is None:
        raise NodError("The end of the audit log is missing. See: nod audit verify")
    key = _choose_key(_keys_in(connection), end, adopts=added.adopts)
    number, previous = end.number, end.hash
    for insert_rows, together in groupby(added.rows, key=itemgetter(0)):
        rows = []
        for _, values in together:
            number += 1
            row = {**values, "id": number, "previous": previous}
            row["hash"] = _hash(key, row)
            previous = row["hash"]
            rows.append(row)
        connection.execute(insert_rows, rows)
    moved = {"number": number, "hash": previous, "key": name_of(key), "mark": _mark(key, number, previous)}
    connection.execute(_MOVE_END, {f"new_{name}": value for name, value in moved.items()})
    added.rows, added.adopts = [], False


def _choose_key(keys: Sequence[bytes], end: Any, *, adopts: bool = False) -> bytes:
    """Return the key for the next row. Raises OtherKey, NotSealed or EndAltered where none may follow."""
    by_name = {name_of(key): key for key in (b"", *keys)}
    if end.key not in by_name:
        raise OtherKey
    sealed_with = by_name[end.key]
    if keys and not sealed_with and not adopts:
        raise NotSealed
    if sealed_with and end.mark != _mark(sealed_with, end.number, end.hash):
        raise EndAltered
    return keys[0] if keys else b""


def is_sealed_with_newest(session: Session) -> bool:
    """Return whether the newest row has the seal that the next will have. Raises like `link`."""
    link_added(session)
    end = session.connection().execute(_READ_END, {}).first()
    return end is not None and name_of(_choose_key(keys_of(session), end)) == end.key


def adopt(session: Session) -> int:
    """Make the next row the first sealed row, after rows without a seal; returns its number.

    Raises NodError if that is impossible.
    """
    link_added(session)
    end = session.connection().execute(_READ_END, {}).first()
    if not keys_of(session):
        raise NodError("NOD_AUDIT_KEY: no key is set. Set one, then seal the audit log.")
    if end is None or end.key:
        raise NodError("The audit log is sealed already. Nothing was changed.")
    session.info[ADDITIONS].adopts = True
    return int(end.number) + 1


def count_unsealed(session: Session) -> int:
    """Return the number of rows older than the first seal; 0 where all are sealed, or none."""
    first = session.execute(select(func.min(_LEDGER.c.id)).where(_LEDGER.c.thing == KEY)).scalar() or 0
    for table in (_AUDIT, _LEDGER):
        before = session.execute(select(table).where(table.c.id == first - 1)).mappings().first()
        if before is not None and _hash(b"", dict(before)) == before["hash"]:
            return int(before["id"])
    return 0


def blank(connection: Connection) -> dict[str, Any]:
    """Return the end of a record that has no rows yet."""
    key = next(iter(connection.get_execution_options().get(KEYS, ())), b"")
    return {"id": 1, "number": 0, "hash": "", "key": name_of(key), "mark": _mark(key, 0, "") if key else ""}


def name_of(key: bytes) -> str:
    """Return a name for a key that does not reveal it; empty for none."""
    if key:
        return hashlib.sha256(b"nod audit key " + key).hexdigest()[:8]
    return ""


def _plain(value: Any) -> Any:
    """Return a column's value in the form that both databases return."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _text(row: Mapping[str, Any]) -> bytes:
    return _JSON.encode({name: _plain(value) for name, value in row.items()}).encode()


def _digest(key: bytes, text: bytes) -> str:
    if key:
        return hmac.digest(key, text, "sha256").hex()
    return hashlib.sha256(text).hexdigest()


def _hash(key: bytes, row: Mapping[str, Any]) -> str:
    return _digest(key, _text({name: value for name, value in row.items() if name != "hash"}))


def _mark(key: bytes, number: int, last: str) -> str:
    return _digest(key, f"end {number} {last}".encode())


def content(row: Mapping[str, Any]) -> str:
    """Return the hash of a row of another table.

    Columns without a value are left out, so that a new column changes no hash.
    """
    hashed = {}
    for name, value in row.items():
        is_left_out = name in ADDED and ADDED[name] == value
        if value is not None and not is_left_out:
            hashed[name] = value
    return hashlib.sha256(_text(hashed)).hexdigest()


def anchor(session: Session) -> str | None:
    """Return the newest number and hash, to be kept outside the database; None while nothing is recorded."""
    link_added(session)
    end = session.connection().execute(_READ_END, {}).first()
    if end is not None and end.number:
        return f"{end.number}-{end.hash[:_ANCHOR_DIGITS]}"
    return None


def astray(session: Session, anchor: str) -> str | None:
    """Return the contradiction between the log and an earlier anchor of it, in words, or None.

    Raises NodError where the text is no anchor.
    """
    number, dash, digits = anchor.strip().partition("-")
    if not (dash and number.isdecimal() and len(digits) >= _MIN_ANCHOR_DIGITS):
        raise NodError(f"--anchor: {anchor} is not an anchor. Copy one that nod audit anchor printed.")
    for table in (_AUDIT, _LEDGER):
        found = session.execute(select(table.c.hash).where(table.c.id == int(number)))
        if any(each.startswith(digits.lower()) for each in found.scalars()):
            return None
    return f"row {number} is not the row of anchor {anchor}: the record was rewritten or cut off since then"


@dataclass(slots=True)
class _Check:
    """A check of rows in their order. Once a row is sealed with a key, no older key may seal a later one."""

    keys: tuple[bytes, ...]
    """The keys that may seal the next row, the newest first. The empty key, for unsealed rows, is last."""

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return whether one of the keys sealed the row, and drop the keys that are older."""
        # from the oldest: that key sealed the row before, and mostly this row, too
        for at in range(len(self.keys) - 1, -1, -1):
            if _hash(self.keys[at], row) == row["hash"]:
                self.keys = self.keys[: at + 1]
                return True
        return False


class SnapshotReader(Protocol):
    """Runs a function over one snapshot: each over its own (`Database.read_now`), or all over the same."""

    def __call__(self, function: Callable[[Session], T], /) -> T: ...


def breaks(read: SnapshotReader, count: Counter) -> Iterator[str]:
    """Yield the rows that were changed, removed or inserted, in words, in the order of the log.

    Each part is read over a snapshot of its own: a snapshot that is held for long lets SQLite's log grow, and
    PostgreSQL keep dead rows. Rows that are added in the meantime are read, too.
    """
    keys, end, (least, found), previous = read(_read_beginning)
    if end is None:
        yield "the end of the audit log is missing"
        return
    if end.key and end.key not in map(name_of, keys):
        yield "it is sealed with a key that is not set here: set NOD_AUDIT_KEY to verify it"
        return
    if keys and not end.key:
        yield "it is not sealed with NOD_AUDIT_KEY"
    check = _Check((*keys, b""))
    number = max(least - 1, 0)
    yield from (f"before the upgrade: {fault}" for fault in found)
    parts = _Parts(read, number)
    for row in count.follow(chain.from_iterable(parts)):
        here = row["id"]
        if here <= number:
            yield f"{_name_row(row)} is there although row {here} is another"
            continue
        if here > number + 1:
            gap = f"row {here - 1} is" if here == number + 2 else f"rows {number + 1} to {here - 1} are"
            yield f"{gap} missing before {_name_row(row)}"
        elif row["previous"] != previous:
            yield f"{_name_row(row)} does not follow what is before it"
        older = not check.keys[-1]
        if not check.fits(row):
            yield f"{_name_row(row)} was altered"
        elif older and check.keys[-1] and number and row.get("thing") != KEY:
            yield f"rows up to {number} carry no seal"
        number, previous = here, row["hash"]
    end = parts.end
    if end is None:
        yield "the end of the audit log is missing"
        return
    if number != end.number:
        yield f"the record ends at row {number}, but it was written up to row {end.number}"
        return
    key = {name_of(key): key for key in keys}.get(end.key, b"")
    mark = _mark(key, number, previous) if number or key else ""  # an empty record without a key has none
    if previous != end.hash or end.mark != mark:
        yield "the end of the audit log was altered"


def _read_beginning(session: Session) -> tuple[tuple[bytes, ...], Any, tuple[int, list[str]], str]:
    """Return the keys, the end and, of an older record, where the chain begins, its faults and its hash."""
    upgraded = check_upgraded(session)
    first_number, _ = upgraded
    before = before_the_chain(session.connection(), first_number) if first_number else ""
    end = session.connection().execute(_READ_END, {}).first()
    return keys_of(session), end, upgraded, before


@dataclass
class _Parts:
    """The rows of both tables in their order, a part at a time."""

    read: SnapshotReader
    after: int
    end: Any = None  # the end of the log, from the snapshot in which no rows were left

    def __iter__(self) -> Iterator[list[Mapping[str, Any]]]:
        while rows := self.read(self._read_part):
            self.after = rows[-1]["id"]
            yield rows

    def _read_part(self, session: Session) -> list[Mapping[str, Any]]:
        run = session.connection().execute
        next_ids = [run(select(func.min(t.c.id)).where(t.c.id > self.after)).scalar() for t in _BOTH]
        first = min((number for number in next_ids if number is not None), default=None)
        if first is None:
            self.end = run(_READ_END, {}).first()
            return []
        rows: list[Mapping[str, Any]] = []
        for table in _BOTH:
            part = select(table).where(table.c.id >= first, table.c.id < first + _BATCH)
            rows += [dict(row) for row in run(part).mappings()]
        return sorted(rows, key=lambda row: row["id"])


def _name_row(row: Mapping[str, Any]) -> str:
    if "proposal_id" in row:
        return f"row {row['id']} (proposal {row['proposal_id']}, version {row['version']})"
    return f"row {row['id']} ({row['thing']} {row['key']})"


def check_upgraded(session: Session) -> tuple[int, list[str]]:
    """Return the number of the row that follows the rows from before the chain, and the faults of those rows.

    The number is 0 where the chain began with the database.
    """
    row = session.execute(
        select(_LEDGER.c.id, _LEDGER.c.after).where(_LEDGER.c.thing == UPGRADE).order_by(_LEDGER.c.id)
    ).first()
    if row:
        return (row[0], row[1]["faults"])
    return (0, [])


def before_the_chain(connection: Connection, least: int) -> str:
    """Return the hash over all rows from before the chain, which the first row of the chain follows."""
    running = hashlib.sha256()
    for table in (_AUDIT, _LEDGER):
        columns = [table.c[name] for name in _OLD[table.name]]
        rows = connection.execute(
            select(*columns).where(table.c.id < least).order_by(table.c.id),
            execution_options={"yield_per": _BATCH},
        )
        for row in rows.mappings():
            running.update(_text(dict(row)))
        running.update(b"|")
    return running.hexdigest()

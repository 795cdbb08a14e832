"""The hash chain of the audit log: each row carries the hash of the row before it.

The rows of ``audit`` (proposals) and ``ledger`` (everything else) share one numbering without gaps. The row
``chain_end``, *the end*, holds the newest number and hash, so rows missing at the end show as well as rows
missing in the middle. It is locked from the first row that a transaction adds to its commit, so numbers are
committed in order: anyone who has read up to a number has read everything below it. Every writer waits for
that lock, so rows are collected (`record_row`) and linked as the last step of a transaction (`link`).

With ``NOD_AUDIT_KEY`` the log is sealed: the hashes are HMACs, so a writer of the database without the key
can't make rows that fit. With several keys, the first seals, and the others still verify the rows that they
sealed. The end has a seal of its own, its *mark*, from the first moment of a database that is made with a
key. A row is added only to an end whose mark fits: a log without a seal is continued with one only if an
operator asked for that once (`adopt`).

Databases from before this chain have older rows, numbered in each table apart: a ledger row `UPGRADE` follows
them, with the hash over all of them (`before_the_chain`).
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeVar

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
"""The thing of the ledger row that follows the rows from before this chain."""

KEY = "key"
"""The thing of the ledger row that is the first with a seal, or the first with the seal of a new key."""

_AUDIT = table_of(AuditRow)
_LEDGER = table_of(LedgerRow)
_BOTH = (_AUDIT, _LEDGER)  # the tables whose rows are in the chain
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
_BATCH = 2000  # rows that are read at a time
_ANCHOR_DIGITS = 32  # hexadecimal digits of a hash in an anchor: 128 bits
_MIN_ANCHOR_DIGITS = 16  # the fewest digits that an anchor to check must have

ADDED: Mapping[str, Any] = {}
"""Columns that were added to hashed tables later, each with the value that older rows have.

`content` leaves a column with that value out, so that the hashes of older rows stay the same.
"""

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
"""The columns that rows from before this chain had, by table; `before_the_chain` hashes these."""


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


def keys_of(session: Session) -> tuple[bytes, ...]:
    """Return the keys of this process; the first is the sealing key."""
    return _keys_in(session.connection())


def _keys_in(connection: Connection) -> tuple[bytes, ...]:
    keys: tuple[bytes, ...] = connection.get_execution_options().get(KEYS, ())
    return keys


@dataclass(slots=True)
class Additions:
    """The new rows of a transaction, until `link` inserts them."""

    rows: list[tuple[Insert, Mapping[str, Any]]] = field(default_factory=list)  # each with its statement
    adopts: bool = False  # the first of these rows begins the seal, after rows that have none (`adopt`)


def record_row(session: Session, insert_one: Insert, row: Mapping[str, Any]) -> None:
    """Add a row to the log, at the end of the transaction, by the statement ``insert_one``."""
    session.info[ADDITIONS].rows.append((insert_one, row))


def link_added(session: Session) -> None:
    """Insert the rows that this transaction has added so far, so that queries after it see them."""
    added = session.info.get(ADDITIONS)
    if added is not None:
        link(session.connection(), added)


def link(connection: Connection, added: Additions) -> None:
    """Number, chain and insert the added rows. The end is locked from here to the commit."""
    if not added.rows:
        return
    end = connection.execute(_HOLD_END, {}).first()
    if end is None:
        raise NodError("The end of the audit log is missing. See: nod audit verify")
    key = _choose_key(_keys_in(connection), end, adopts=added.adopts)
    number, previous = end.number, end.hash
    for insert_rows, run in groupby(added.rows, key=itemgetter(0)):  # successive rows of one table
        rows = []
        for _, values in run:
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
    """Return the key that seals the next row; empty for none.

    Raises OtherKey, NotSealed or EndAltered where no row may follow this end.
    """
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
    """Return whether the newest row is sealed with the key that seals the next row. Raises like `link`."""
    link_added(session)
    end = session.connection().execute(_READ_END, {}).first()
    return end is not None and name_of(_choose_key(keys_of(session), end)) == end.key


def adopt(session: Session) -> int:
    """Let the next row be the first with a seal, although the rows before it have none; return its number.

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
    """Return the number of rows before the first one with a seal; 0 if all have one, or none has."""
    first = session.execute(select(func.min(_LEDGER.c.id)).where(_LEDGER.c.thing == KEY)).scalar() or 0
    for table in (_AUDIT, _LEDGER):
        before = session.execute(select(table).where(table.c.id == first - 1)).mappings().first()
        if before is not None and _hash(b"", dict(before)) == before["hash"]:
            return int(before["id"])
    return 0


def blank(connection: Connection) -> dict[str, Any]:
    """Return the end of a log that has no rows yet, as a row."""
    key = next(iter(connection.get_execution_options().get(KEYS, ())), b"")
    return {"id": 1, "number": 0, "hash": "", "key": name_of(key), "mark": _mark(key, 0, "") if key else ""}


def name_of(key: bytes) -> str:
    """Return a name for a key that does not reveal it; empty for none."""
    if key:
        return hashlib.sha256(b"nod audit key " + key).hexdigest()[:8]
    return ""


def _plain(value: Any) -> Any:
    """Return a column's value in one form: SQLite and PostgreSQL return times and numbers differently."""
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
    """Return the hash of a row of another table, such as a proposal's, for a row of the log.

    Columns without a value are left out, so that a new column changes no hash.
    """
    hashed = {}
    for name, value in row.items():
        is_left_out = name in ADDED and ADDED[name] == value
        if value is not None and not is_left_out:
            hashed[name] = value
    return hashlib.sha256(_text(hashed)).hexdigest()


def anchor(session: Session) -> str | None:
    """Return the anchor of the log, ``NUMBER-HASH`` of its newest row; None while there are no rows.

    Kept outside the database, it proves later that the rows up to that number are still the same.
    """
    link_added(session)
    end = session.connection().execute(_READ_END, {}).first()
    if end is not None and end.number:
        return f"{end.number}-{end.hash[:_ANCHOR_DIGITS]}"
    return None


def find_contradiction(session: Session, anchor: str) -> str | None:
    """Return how the log contradicts an earlier anchor of it, in words, or None.

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
    """A check of the seals of rows in their order: once a key has sealed a row, no older key may seal one."""

    keys: tuple[bytes, ...]
    """The keys that may seal the next row, newest first. The empty key, for rows without seal, is last."""

    def accept(self, row: Mapping[str, Any]) -> bool:
        """Tell if one of the keys sealed the row. If so, older keys are dropped for the rows that follow."""
        # from the oldest: it sealed the row before, and mostly this row, too
        for at in range(len(self.keys) - 1, -1, -1):
            if _hash(self.keys[at], row) == row["hash"]:
                self.keys = self.keys[: at + 1]
                return True
        return False


class SnapshotReader(Protocol):
    """Runs functions that read: each over a snapshot of its own (`Database.read_now`), or all over one."""

    def __call__(self, function: Callable[[Session], T], /) -> T: ...


def breaks(read: SnapshotReader, count: Counter) -> Iterator[str]:
    """Yield a sentence on each row that was changed, removed or inserted, in the order of the log.

    Each part is read over a snapshot of its own: a snapshot that is held for long lets SQLite's log grow, and
    PostgreSQL keep dead rows. Rows that are added in the meantime are read, too.
    """
    keys, end, upgrade, previous = read(_read_beginning)
    if end is None:
        yield "the end of the audit log is missing"
        return
    if end.key and end.key not in map(name_of, keys):
        yield "it is sealed with a key that is not set here: set NOD_AUDIT_KEY to verify it"
        return
    if keys and not end.key:
        yield "it is not sealed with NOD_AUDIT_KEY"
    check = _Check((*keys, b""))
    number = max(upgrade.row_number - 1, 0)
    yield from (f"before the upgrade: {fault}" for fault in upgrade.faults)
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
        may_lack_seal = not check.keys[-1]
        if not check.accept(row):
            yield f"{_name_row(row)} was altered"
        elif may_lack_seal and check.keys[-1] and number and row.get("thing") != KEY:  # the first with a seal
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


class Upgrade(NamedTuple):
    """The row `UPGRADE`, which follows the rows from before this chain."""

    row_number: int  # 0: the chain began with the database
    faults: list[str]  # the faults of those rows at the time of the upgrade, in words


class _Beginning(NamedTuple):
    """The facts for a check of the chain from its beginning."""

    keys: tuple[bytes, ...]
    end: Any  # the row of the end, or None
    upgrade: Upgrade
    previous: str  # the hash that the first row of the chain must follow


def _read_beginning(session: Session) -> _Beginning:
    upgrade = find_upgrade(session)
    previous = ""
    if upgrade.row_number:
        previous = before_the_chain(session.connection(), upgrade.row_number)
    end = session.connection().execute(_READ_END, {}).first()
    return _Beginning(keys_of(session), end, upgrade, previous)


@dataclass
class _Parts:
    """The rows of both tables in their order, a part at a time."""

    read: SnapshotReader
    after: int  # the number of the row that was read last
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


def find_upgrade(session: Session) -> Upgrade:
    """Return the facts of the row `UPGRADE`, also where no such row exists."""
    row = session.execute(
        select(_LEDGER.c.id, _LEDGER.c.after).where(_LEDGER.c.thing == UPGRADE).order_by(_LEDGER.c.id)
    ).first()
    if row:
        return Upgrade(row[0], row[1]["faults"])
    return Upgrade(0, [])


def before_the_chain(connection: Connection, row_number: int) -> str:
    """Return the hash over all rows below ``row_number``, those from before this chain."""
    running = hashlib.sha256()
    for table in (_AUDIT, _LEDGER):
        columns = [table.c[name] for name in _OLD[table.name]]
        rows = connection.execute(
            select(*columns).where(table.c.id < row_number).order_by(table.c.id),
            execution_options={"yield_per": _BATCH},
        )
        for row in rows.mappings():
            running.update(_text(dict(row)))
        running.update(b"|")
    return running.hexdigest()

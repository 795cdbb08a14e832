"""The check of the hash chain of the audit log (``bot/store/audit/chain.py``): the rows that do not fit it.

The rows are read in parts, in the order of their numbers, and each is compared with the row before it. The
rows from before the chain are compared as a whole, by the hash in the row that follows them.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, func
from sqlmodel import Session, select

from bot.domain.progress import Counter
from bot.store.audit.chain import (
    CHAINED_TABLES,
    KEY_THING,
    READ_END,
    UPGRADE_THING,
    encode_row,
    hash_row,
    list_keys,
    make_mark,
    name_key,
)
from bot.store.tables.audit import LedgerRow
from bot.store.tables.row import table_of

T = TypeVar("T")

_BATCH = 2000  # rows that are read at a time
_LEDGER = table_of(LedgerRow)
_COLUMNS_BEFORE_CHAIN = {
    "audit": (
        *("id", "proposal_id", "version", "at", "verb", "state", "actor", "person", "channel", "reason"),
        *("digest", "rule", "grant_id", "content", "previous", "hash"),
    ),
    "ledger": (
        *("id", "at", "thing", "key", "tool", "verb", "actor", "person", "channel", "before", "after"),
        *("previous", "hash"),
    ),
}
"""The columns that rows from before this chain had, by table; `_hash_before_chain` hashes these."""


class SnapshotReader(Protocol):
    """A caller of functions that read the database; it returns their results.

    Each function runs over a snapshot of its own (`Database.read_now`), or all run over the same one.
    """

    def __call__(self, function: Callable[[Session], T], /) -> T: ...


def find_chain_faults(read: SnapshotReader, counter: Counter) -> Iterator[str]:
    """Yield a sentence on each row that was changed, removed or inserted, in the order of the log.

    Each part of the log is read over a snapshot of its own: a snapshot that is held for long lets SQLite's
    write-ahead log grow, and PostgreSQL keep dead rows. Rows that are added in the meantime are read, too.
    ``counter`` counts the rows, for the progress of the check.
    """
    keys, end, upgrade, previous = read(_read_beginning)
    if end is None:
        yield "the end of the audit log is missing"
        return
    if end.key and end.key not in map(name_key, keys):
        yield "it is sealed with a key that is not set here: set NOD_AUDIT_KEY to verify it"
        return
    if keys and not end.key:
        yield "it is not sealed with NOD_AUDIT_KEY"
    yield from (f"before the upgrade: {fault}" for fault in upgrade.faults)

    seals = _SealOrder((*keys, b""))
    # the number and the hash of the row before the one that is checked
    number = max(upgrade.row_number - 1, 0)  # the rows before the upgrade are checked by its hash
    reader = _RowReader(read, number)
    for row in counter.follow(itertools.chain.from_iterable(reader)):
        row_number = row["id"]
        if row_number <= number:
            yield f"{_name_row(row)} is there although row {row_number} is another"
            continue
        if row_number > number + 1:
            yield f"{_describe_gap(number + 1, row_number - 1)} missing before {_name_row(row)}"
        elif row["previous"] != previous:
            yield f"{_name_row(row)} does not follow what is before it"
        seal_fault = seals.find_fault(row, number)
        if seal_fault:
            yield seal_fault
        number, previous = row_number, row["hash"]

    end_fault = _find_end_fault(reader.end, keys, number, previous)
    if end_fault:
        yield end_fault


class _Upgrade(NamedTuple):
    """The row `UPGRADE_THING`, which follows the rows from before this chain."""

    row_number: int  # 0: the chain began with the database
    faults: list[str]  # the faults of those rows at the time of the upgrade, in words


class _Beginning(NamedTuple):
    """The facts for a check of the chain from its beginning."""

    keys: tuple[bytes, ...]
    end: Any  # the row of the end, or None
    upgrade: _Upgrade
    previous: str  # the hash that the first row of the chain must follow


def _read_beginning(session: Session) -> _Beginning:
    upgrade = _find_upgrade(session)
    previous = ""
    if upgrade.row_number:
        previous = _hash_before_chain(session.connection(), upgrade.row_number)
    end = session.connection().execute(READ_END, {}).first()
    return _Beginning(list_keys(session), end, upgrade, previous)


def _find_upgrade(session: Session) -> _Upgrade:
    """Return the facts of the row `UPGRADE_THING`; without such a row, the number 0 and no faults."""
    row = session.execute(
        select(_LEDGER.c.id, _LEDGER.c.after).where(_LEDGER.c.thing == UPGRADE_THING).order_by(_LEDGER.c.id)
    ).first()
    if row:
        return _Upgrade(row[0], row[1]["faults"])
    return _Upgrade(0, [])


def _hash_before_chain(connection: Connection, row_number: int) -> str:
    """Return the hash over all rows from before this chain, those below ``row_number``."""
    running_hash = hashlib.sha256()
    for table in CHAINED_TABLES:
        columns = [table.c[name] for name in _COLUMNS_BEFORE_CHAIN[table.name]]
        rows = connection.execute(
            select(*columns).where(table.c.id < row_number).order_by(table.c.id),
            execution_options={"yield_per": _BATCH},
        )
        for row in rows.mappings():
            running_hash.update(encode_row(dict(row)))
        running_hash.update(b"|")
    return running_hash.hexdigest()


@dataclass
class _RowReader:
    """A reader of the rows of both tables in the order of their numbers. It yields a part at a time."""

    read: SnapshotReader
    after: int  # the number of the row that was read last; it grows with each part
    end: Any = None  # set after the last part: the row of the end, from the snapshot that had no more rows

    def __iter__(self) -> Iterator[list[Mapping[str, Any]]]:
        while rows := self.read(self._read_part):
            self.after = rows[-1]["id"]
            yield rows

    def _read_part(self, session: Session) -> list[Mapping[str, Any]]:
        execute = session.connection().execute
        next_ids = [
            execute(select(func.min(table.c.id)).where(table.c.id > self.after)).scalar()
            for table in CHAINED_TABLES
        ]
        first = min((number for number in next_ids if number is not None), default=None)
        if first is None:
            self.end = execute(READ_END, {}).first()
            return []
        rows: list[Mapping[str, Any]] = []
        for table in CHAINED_TABLES:
            part = select(table).where(table.c.id >= first, table.c.id < first + _BATCH)
            rows += [dict(row) for row in execute(part).mappings()]
        return sorted(rows, key=lambda row: row["id"])


@dataclass(slots=True)
class _SealOrder:
    """A check of the seals of rows in their order: once a key has sealed a row, no older key may seal one.

    The empty key, which gives the hash of a row without a seal, counts as the oldest.
    """

    keys: tuple[bytes, ...]
    """The keys that may seal the next row, the newest first."""

    @property
    def allows_unsealed(self) -> bool:
        """True if the next row may have no seal, since no row so far has one."""
        return not self.keys[-1]

    def find_fault(self, row: Mapping[str, Any], last_number: int) -> str | None:
        """Return the fault in the seal of the next row, in words, or None.

        ``last_number``: the number of the row before; 0 for none.
        """
        allowed_unsealed = self.allows_unsealed
        if not self._accept(row):
            return f"{_name_row(row)} was altered"
        is_first_sealed = allowed_unsealed and not self.allows_unsealed
        # after rows without a seal, the first sealed row is a `KEY_THING`, for which an operator has asked
        if is_first_sealed and last_number > 0 and row.get("thing") != KEY_THING:
            return f"rows up to {last_number} carry no seal"
        return None

    def _accept(self, row: Mapping[str, Any]) -> bool:
        """Return whether one of the keys sealed this row; drop the keys that are older than that one."""
        # from the oldest: it sealed the row before, and mostly this row, too
        for position in range(len(self.keys) - 1, -1, -1):
            if hash_row(self.keys[position], row) == row["hash"]:
                self.keys = self.keys[: position + 1]
                return True
        return False


def _describe_gap(first: int, last: int) -> str:
    """Return the missing rows from ``first`` to ``last`` in words."""
    if first == last:
        return f"row {first} is"
    return f"rows {first} to {last} are"


def _name_row(row: Mapping[str, Any]) -> str:
    if "proposal_id" in row:
        return f"row {row['id']} (proposal {row['proposal_id']}, version {row['version']})"
    return f"row {row['id']} ({row['thing']} {row['key']})"


def _find_end_fault(end: Any, keys: Sequence[bytes], number: int, last_hash: str) -> str | None:
    """Return how the row of the end differs from the newest row of the log, in words, or None.

    ``number`` and ``last_hash``: those of the newest row; 0 and an empty text for an empty log.
    """
    if end is None:
        return "the end of the audit log is missing"
    if number != end.number:
        return f"the record ends at row {number}, but it was written up to row {end.number}"
    end_key = {name_key(key): key for key in keys}.get(end.key, b"")
    # an empty log without a key has no mark
    mark = make_mark(end_key, number, last_hash) if number or end_key else ""
    if last_hash != end.hash or end.mark != mark:
        return "the end of the audit log was altered"
    return None

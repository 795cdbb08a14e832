"""From release 0001's record to one chain over all of it, a step of migration 0002.

What is recorded already keeps its rows and its own hashes. It is checked here once, as release 0001 did, and
the chain begins with a row that says what was found and that follows a hash over all of it.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import AutoString, UTCDateTime

from bot.domain.proposals import canonical
from bot.store.migrations.schema import SCHEMA
from bot.store.record import audit, chain

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_NEWEST = sa.text(
    "SELECT (SELECT coalesce(max(id), 0) FROM audit), (SELECT coalesce(max(id), 0) FROM ledger)"
)
_SAID = ("version", "state", "digest")


def begin_the_chain() -> None:
    """Add the columns, check the record as it is, and write the row that the chain begins with."""
    bind = op.get_bind()
    with op.batch_alter_table("audit") as changed:
        changed.add_column(sa.Column("about", sa.JSON(none_as_null=True), nullable=True))
        changed.add_column(sa.Column("content", AutoString(), server_default="", nullable=False))
    with op.batch_alter_table("ledger") as changed:
        changed.add_column(sa.Column("holds", sa.JSON(none_as_null=True), nullable=True))
    end = op.create_table(
        "chain_end",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", _ID, nullable=False),
        sa.Column("hash", AutoString(), nullable=False),
        sa.Column("key", AutoString(), nullable=False),
        sa.Column("mark", AutoString(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    if bind.dialect.name == "postgresql":  # numbers come from the end of the chain, not from a sequence
        for table in ("audit", "ledger"):
            op.execute(f"ALTER TABLE {table} ALTER COLUMN id DROP DEFAULT")
    bind.execute(sa.insert(end), chain.blank(bind))
    newest = max(bind.execute(_NEWEST).one())
    if newest:
        _follow(bind, newest)
    op.drop_table("checkpoint")


def end_the_chain() -> None:
    bind = op.get_bind()
    op.create_table(
        "checkpoint",
        sa.Column("day", AutoString(), nullable=False),
        sa.Column("last_audit_id", sa.Integer(), nullable=False),
        sa.Column("last_ledger_id", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("previous", AutoString(), nullable=False),
        sa.Column("hash", AutoString(), nullable=False),
        sa.Column("made_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("day"),
    )
    op.drop_table("chain_end")
    with op.batch_alter_table("ledger") as changed:
        changed.drop_column("holds")
    with op.batch_alter_table("audit") as changed:
        changed.drop_column("content")
        changed.drop_column("about")
    if bind.dialect.name == "postgresql":
        for table in ("audit", "ledger"):
            newest = bind.execute(sa.select(sa.func.max(_table(bind, table).c.id))).scalar_one()
            op.execute(sa.select(sa.func.setval(f"{table}_id_seq", newest or 1, newest is not None)))
            op.execute(f"ALTER TABLE {table} ALTER COLUMN id SET DEFAULT nextval('{table}_id_seq')")


def _follow(bind: sa.Connection, newest: int) -> None:
    """Write the first row of the chain."""
    faults = [*_broken_changes(bind), *_broken_ledger(bind), *_broken_seals(bind)]
    proposals, changes = _table(bind, "proposal"), _table(bind, "audit")
    for row in bind.execute(sa.select(proposals)).mappings().all():
        bind.execute(
            sa.update(changes)
            .where(changes.c.proposal_id == row["id"], changes.c.version == row["version"])
            .values(content=chain.content(dict(row)))
        )
    first = {
        "at": datetime.now(UTC),
        "thing": chain.UPGRADE,
        "key": "0002",
        "tool": "",
        "verb": "begin the chain",
        "actor": "nod",
        "person": "nod",
        "channel": "nod",
        "before": None,
        "after": {"faults": faults},
        "holds": dict(_held(bind)),
    }
    chain.begin(bind, first, newest + 1)


def _table(bind: sa.Connection, name: str) -> sa.Table:
    """A table as it is at this point of the history, with the types of this release."""
    there = {column["name"] for column in sa.inspect(bind).get_columns(name)}
    known = SCHEMA.tables[name]
    return sa.Table(name, sa.MetaData(), *(sa.Column(c.name, c.type) for c in known.c if c.name in there))


def _held(bind: sa.Connection) -> Iterator[tuple[str, str]]:
    """The hash of each row that the ledger answers for."""
    for thing, name, key, apart in (
        ("rule", "rule", "id", ()),
        ("grant", "grant_given", "id", ("uses",)),
        ("account", "account", "actor", ()),
        ("pause", "book", "id", ("version", "memory")),
    ):
        for row in bind.execute(sa.select(_table(bind, name))).mappings():
            if thing != "pause" or row["paused_at"] is not None:
                kept = {column: value for column, value in row.items() if column not in apart}
                yield f"{thing} {row[key]}", chain.content(kept)
    for row in bind.execute(sa.select(_table(bind, "tool_version"))).mappings():
        yield f"tool {row['name']} {row['version']}", audit.schema_hash(row["parameters"])


def _old_hash(row: Any, *more: str) -> str:
    kept = {name: value for name, value in row.items() if name not in ("id", "hash", *more)}
    return hashlib.sha256(canonical(kept | {"at": row["at"].isoformat()}).encode()).hexdigest()


def _broken_changes(bind: sa.Connection) -> Iterator[str]:
    """What release 0001 would have said of each proposal's own chain."""
    changes, proposals = _table(bind, "audit"), _table(bind, "proposal")
    last: dict[str, Any] = {}
    order = sa.select(changes).order_by(changes.c.proposal_id, changes.c.version)
    for row in bind.execute(order).mappings().all():
        before = last.get(row["proposal_id"])
        if row["version"] != (before["version"] + 1 if before else 1):
            yield f"proposal {row['proposal_id']}: a version before {row['version']} is missing"
        elif row["previous"] != (before["hash"] if before else "") or (
            _old_hash(row, "about", "content") != row["hash"]
        ):
            yield f"proposal {row['proposal_id']}: version {row['version']} was altered"
        last[row["proposal_id"]] = row
    for p in bind.execute(sa.select(proposals)).mappings().all():
        said = last.pop(p["id"], None)
        if said is None or [said[name] for name in _SAID] != [p[name] for name in _SAID]:
            yield f"proposal {p['id']}: it is not what its last row says"
    yield from (f"proposal {ident}: its row is gone" for ident in last)


def _broken_ledger(bind: sa.Connection) -> Iterator[str]:
    ledger = _table(bind, "ledger")
    previous = ""
    for row in bind.execute(sa.select(ledger).order_by(ledger.c.id)).mappings():
        if row["previous"] != previous or _old_hash(row, "holds") != row["hash"]:
            yield f"rules and people: row {row['id']} was altered, or rows before it were"
        previous = row["hash"]


def _broken_seals(bind: sa.Connection) -> Iterator[str]:
    seals = bind.execute(
        sa.text(
            "SELECT day, last_audit_id, last_ledger_id, previous, hash FROM checkpoint "
            "ORDER BY last_audit_id, last_ledger_id"
        )
    )
    previous, after = "", (0, 0)
    for seal in seals.all():
        until = (seal.last_audit_id, seal.last_ledger_id)
        running = hashlib.sha256(previous.encode())
        for name, first, last in zip(("audit", "ledger"), after, until, strict=True):
            table = _table(bind, name)
            rows = sa.select(table.c.id, table.c.hash).where(table.c.id > first, table.c.id <= last)
            for ident, row in bind.execute(rows.order_by(table.c.id)):
                running.update(f"{ident}:{row};".encode())
            running.update(b"|")
        if seal.previous != previous or running.hexdigest() != seal.hash:
            yield f"the checkpoint of {seal.day} does not fit"
        previous, after = seal.hash, until

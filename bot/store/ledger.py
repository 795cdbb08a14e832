"""What people change besides proposals: rules, roles, grants, linked accounts, pauses. Append-only.

Each row says who, when, and what was before and after, and is chained by hash to the row before it. The whole
is replayed against the tables it is about, so a rule, a grant or a link that nobody made shows
(`breaks`). The record of proposals is in ``bot/store/audit.py``; daily seals over both in ``checkpoints.py``.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import insert
from sqlmodel import Session, col, select

from bot.domain.proposals import canonical
from bot.domain.rules import Subject
from bot.store.audit import By
from bot.store.tables import AccountRow, BookRow, GrantRow, LedgerRow, RuleRow
from bot.store.upsert import insert_or_ignore

_TABLE: Any = LedgerRow.__table__  # type: ignore[attr-defined]
_BATCH = 2000


class Thing(StrEnum):
    """What a row is about, and what its key is."""

    RULE = "rule"  # subject, tools and place, as `rule_key` says
    GRANT = "grant"  # G-7
    ACCOUNT = "account"  # an Actor as text
    PAUSE = "pause"  # always the word everything


State = Mapping[str, Any] | None
"""What a thing is, as JSON; None where there is none."""


def record(
    session: Session,
    thing: Thing,
    key: str,
    by: By,
    before: State,
    after: State,
    now: datetime,
    tool: str = "",
) -> None:
    """Write down, in the change's own transaction, who made of a thing what. ``tool``: for which tools."""
    session.execute(insert_or_ignore(session, BookRow).values(id=1, version=0))
    session.execute(select(BookRow.id).where(BookRow.id == 1).with_for_update())  # PostgreSQL: one at a time
    row = {
        "at": now,
        "thing": thing,
        "key": key,
        "tool": tool,
        "verb": by.verb,
        "actor": by.actor,
        "person": by.person,
        "channel": by.channel,
        "before": before,
        "after": after,
        "previous": session.execute(
            select(_TABLE.c.hash).order_by(_TABLE.c.id.desc()).limit(1)
        ).scalar_one_or_none()
        or "",
    }
    session.connection().execute(insert(_TABLE), row | {"hash": row_hash(row)})


def row_hash(row: Mapping[str, Any]) -> str:
    """SHA-256, in hex, over every column but the row id and the hash itself."""
    return hashlib.sha256(canonical({**row, "at": row["at"].isoformat()}).encode()).hexdigest()


def rule_key(row: RuleRow) -> str:
    """What one rule replaces another by: for roles and routes there can be several values side by side."""
    many = f" {canonical(row.value)}" if row.subject in (Subject.ROLE, Subject.ROUTE) else ""
    return f"{row.subject} for {row.pattern} in {row.scope}{many}"


def rule_state(row: RuleRow) -> State:
    value = row.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as SQLite gives a bare number back
    return {"rule": row.id, "value": value}


def grant_state(row: GrantRow) -> State:
    """What it allows; exact arguments only as their hash, since they may hold a secret."""
    return {
        "allows": row.words,
        "tool": [row.tool_name, row.tool_version],
        "match": hashlib.sha256(row.match.encode()).hexdigest(),
        "rung": row.rung,
        "until": row.expires_at.isoformat() if row.expires_at else None,
        "only_in": row.conversation_id if row.only_there else None,
        "person": row.person_id,
        "proposal": row.proposal_id,
    }


def breaks(session: Session) -> list[str]:
    """What is wrong with it, in words: rows altered, removed, inserted; things that nobody made or ended."""
    found: list[str] = []
    made: dict[tuple[str, str], State] = {}
    previous = ""
    rows = session.connection().execute(
        select(_TABLE).order_by(_TABLE.c.id), execution_options={"yield_per": _BATCH}
    )
    for row in rows.mappings():
        columns = {name: value for name, value in row.items() if name not in ("id", "hash")}
        if row["previous"] != previous:
            found.append(f"rules and people: rows before row {row['id']} were removed or inserted")
        elif row_hash(columns) != row["hash"]:
            found.append(f"rules and people: row {row['id']} was altered")
        previous = row["hash"]
        made[row["thing"], row["key"]] = row["after"]
    return [*found, *_unmade(session, {k: v for k, v in made.items() if v is not None})]


def _unmade(session: Session, made: Mapping[tuple[str, str], State]) -> Iterator[str]:
    """Where what is there now is not what the last row about it says."""
    there = dict(_there(session))
    for thing, key in sorted(there.keys() | made.keys()):
        if (thing, key) not in made:
            yield f"{thing} {key}: it is there, but nobody is recorded to have made it"
        elif (thing, key) not in there:
            yield f"{thing} {key}: it was made, but is gone and nobody is recorded to have ended it"
        elif canonical(there[thing, key]) != canonical(made[thing, key]):
            yield f"{thing} {key}: it is not as it was made"


def _there(session: Session) -> Iterator[tuple[tuple[str, str], State]]:
    for rule in session.exec(select(RuleRow).where(col(RuleRow.ended_at).is_(None))):
        yield (Thing.RULE, rule_key(rule)), rule_state(rule)
    for grant in session.exec(select(GrantRow).where(col(GrantRow.revoked_at).is_(None))):
        yield (Thing.GRANT, f"G-{grant.id}"), grant_state(grant)
    for account in session.exec(select(AccountRow)):
        yield (Thing.ACCOUNT, account.actor), {"person": account.person_id}
    book = session.get(BookRow, 1)
    if book is not None and book.paused_at is not None:
        yield (Thing.PAUSE, "everything"), {"since": book.paused_at.isoformat()}

"""The audit log of changes other than of proposals: of rules, grants, accounts, tokens, sessions, pauses.

Each row of it (`LedgerRow`) names a *thing* and its key, who changed it and when, and the states before and
after. Its column ``holds`` maps the name of each changed table row, such as ``rule 7``, to the row's hash
after the change. `find_unrecorded_rows` compares these hashes with the tables, so it finds a rule, a grant or
a link of accounts that no one is recorded to have made, or that was altered since.

Rows are only added. They are part of the one hash chain (``bot/store/audit/chain.py``), like the rows about
proposals (``bot/store/audit/log.py``). The chain inserts new rows as the last step of a transaction, so a
function that reads the log calls `chain.insert_recorded_rows` first: it inserts the rows so far.

The log is *sealed* if its hashes are made with a secret key, the audit key, so that no one can alter a row
without it. The beginning of a seal, and a change of the key, are rows of this log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

from sqlalchemy import Integer, func, insert, literal_column
from sqlmodel import Session, SQLModel, col, select

from bot.domain.audit import Act
from bot.domain.digests import to_canonical_json
from bot.domain.people import Actor, Person
from bot.domain.progress import Counter
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject
from bot.domain.text import hash_text
from bot.store.audit import chain, chain_check, log
from bot.store.audit.log import Author
from bot.store.tables.audit import LedgerRow
from bot.store.tables.proposals import ProposalRow, ToolVersionRow
from bot.store.tables.row import AUDITED_KEY, Audited, table_of
from bot.store.tables.rules import GrantRow, RuleRow

_TABLE = table_of(LedgerRow)
_INSERT = insert(_TABLE)
_BATCH = 2000  # rows that are read at a time


class Thing(StrEnum):
    """The kinds of things in the log. The comments say what the key of a thing is.

    Features add more kinds, for tables of their own.
    """

    RULE = "rule"  # subject, tools and place, as `make_rule_key` says
    GRANT = "grant"  # G-7
    ACCOUNT = "account"  # an Actor as text
    ABSENCE = "absence"  # the account that is away
    PAUSE = "pause"  # always the word everything
    TOOL = "tool"  # name and version; only in rows from before the chain (`chain.UPGRADE_THING`)
    KEY = chain.KEY_THING  # the name of the audit key
    SESSION = "session"  # the account that a browser is signed in as
    TOKEN = "token"  # noqa: S105 - the label of a token, which is no secret
    TRIAL = "trial"  # a random key
    CONTEXT = "context"  # the id of a proposal: someone read what led to it


IS_CONTEXT_READ = _TABLE.c.thing == literal_column(f"'{Thing.CONTEXT}'")
"""A condition: someone read the conversation that led to a proposal. A literal, so that an index is used."""

ThingState = Mapping[str, Any] | None
"""The state of a thing as JSON; None where it does not exist."""


def record(
    session: Session,
    thing: str,
    key: str,
    author: Author,
    before: ThingState,
    after: ThingState,
    now: datetime,
    tool: str = "",
) -> None:
    """Record who changed a thing and how, in the transaction of the change.

    ``thing``: the kind of the thing, a `Thing` or a kind of a feature. ``key``: its key, as `Thing` says.
    ``before`` and ``after``: its states. ``tool``: the pattern of the tools that the thing is about; empty
    for none.
    """
    session.flush()
    row = {
        "at": now,
        "thing": thing,
        "key": key,
        "tool": tool,
        "verb": author.verb,
        "actor": author.actor,
        "person": author.person,
        "channel": author.channel,
        "before": before,
        "after": after,
        "holds": {name: _hash_now(session, name) for name in _find_row_names(thing, key, before, after)},
    }
    chain.record_row(session, _INSERT, row)


def record_reading(session: Session, proposal: Proposal, actor: Actor, person: Person, now: datetime) -> None:
    """Record that someone read the conversation that led to a proposal, once for each person."""
    chain.insert_recorded_rows(session)
    earlier = select(_TABLE.c.id).where(
        IS_CONTEXT_READ, _TABLE.c.key == proposal.id, _TABLE.c.person == person.id
    )
    if session.execute(earlier.limit(1)).first() is None:
        author = Author.of_person(Act.READ, actor, person)
        record(session, Thing.CONTEXT, proposal.id, author, None, None, now, proposal.tool_name)


def find_newest(session: Session, thing: str, verb: Act) -> LedgerRow | None:
    """Return the newest row in which ``verb`` was done to a thing of the kind ``thing``, or None."""
    chain.insert_recorded_rows(session)
    of_verb = select(LedgerRow).where(LedgerRow.thing == thing, LedgerRow.verb == verb)
    return session.exec(of_verb.order_by(col(LedgerRow.id).desc()).limit(1)).first()


def seal_with_key(session: Session, now: datetime) -> None:
    """Record that the newest key seals rows from now on, unless it sealed the newest row already.

    Raises like `chain.insert_rows`.
    """
    if not chain.is_sealed_with_newest_key(session):
        _seal_with(session, Author.of_nod(Act.SEAL_WITH), None, now)


def begin_to_seal(session: Session, actor: Actor, now: datetime) -> int:
    """Begin to seal a log that has no seal; return the number of the first sealed row.

    The rows before it are trusted as they are now. If they are changed later, that is found. Raises NodError
    where no key is set, or where the log has a seal already.
    """
    first = chain.allow_first_seal(session)
    author = Author(Act.SEAL_WITH, str(actor), str(actor), actor.channel)
    _seal_with(session, author, {"from": first}, now)
    return first


def _seal_with(session: Session, author: Author, after: ThingState, now: datetime) -> None:
    record(session, Thing.KEY, chain.name_key(chain.list_keys(session)[0]), author, None, after, now)


def make_rule_key(row: RuleRow) -> str:
    """Return the key of a rule in the log, such as ``quorum for pay_* in slack:T1``, followed by its limits.

    The key of a role or a route has the value, too: several of them, with different values, may apply side by
    side.
    """
    key = f"{row.subject} for {row.pattern} in {row.scope}"
    if row.subject in (Subject.ROLE, Subject.ROUTE):
        key += f" {to_canonical_json(row.value)}"
    if row.who:
        key += f" by {row.who}"
    if row.clock:
        key += f" between {' and '.join(row.clock)}"
    if row.days:
        key += f" on {row.days}"
    if row.condition:
        key += f" where {row.condition}"
    return key


def make_rule_state(row: RuleRow) -> ThingState:
    """Return a rule's state for the log."""
    value = row.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as SQLite gives a bare number back
    state = {"rule": row.id, "value": value}
    if row.until:
        state["until"] = row.until.isoformat()
    return state


def make_grant_state(row: GrantRow) -> ThingState:
    """Return a grant's state for the log.

    It has only a hash of the arguments that the grant matches, since they may be secrets.
    """
    state = {
        "allows": row.words,
        "tool": [row.tool_name, row.tool_version],
        "match": hash_text(row.match),
        "rung": row.rung,
        "until": row.expires_at.isoformat() if row.expires_at else None,
        "only_in": row.conversation_id if row.only_there else None,
    }
    limits = {
        "for": row.requester,
        "at": row.place,
        "schedule": row.schedule,
        "connection": row.connection,
    }
    state |= {name: value for name, value in limits.items() if value}
    return {**state, "person": row.person_id, "proposal": row.proposal_id}


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A link of accounts to one person, or an unlink of an account."""

    row: int  # the number of its last row in the log
    description: str  # for admins


def list_link_changes_after(session: Session, number: int) -> list[LinkChange]:
    """Return the links and unlinks in the rows after the row with this number, oldest first."""
    chain.insert_recorded_rows(session)
    found = session.execute(
        select(_TABLE).where(_TABLE.c.thing == Thing.ACCOUNT, _TABLE.c.id > number).order_by(_TABLE.c.id)
    )
    changes = []
    # the accounts that were linked together have rows of one moment
    groups = groupby(found.mappings(), key=lambda row: (row["at"], row["verb"], row["actor"]))
    for (_, verb, actor), grouped in groups:
        rows = list(grouped)
        changes.append(LinkChange(rows[-1]["id"], _describe_link(verb, actor, rows)))
    return changes


def _describe_link(verb: str, actor: str, rows: list[Any]) -> str:
    """Return a link or an unlink in words, with the roles that accounts gained by it."""
    if verb == Act.UNLINK:
        sentences = [f"{actor} unlinked {rows[0]['key']}. It is a separate person again."]
    else:
        accounts = " and ".join(row["key"] for row in rows)
        person = rows[0]["after"]["person"]
        sentences = [f"{actor} linked {accounts}. They are one person now: {person}."]
    for row in rows:
        gains = (row["after"] or {}).get("gains")
        if gains:
            sentences.append(f"{row['key']} became {' and '.join(gains)}.")
    if verb != Act.UNLINK:
        sentences.append(f"`/approvals unlink {rows[-1]['key']}` undoes it.")
    return " ".join(sentences)


def _find_audited_tables() -> dict[str, Any]:
    """Return the tables whose rows this log covers, by the kind of thing; only tables that are imported."""
    tables = SQLModel.metadata.sorted_tables
    return {table.info[AUDITED_KEY].thing: table for table in tables if AUDITED_KEY in table.info}


def _find_row_names(thing: str, key: str, before: ThingState, after: ThingState) -> list[str]:
    """Return the names of the table rows that a change was about, such as ``rule 7``.

    The mark of each audited table (`Audited`) has a function that finds the rows' keys by the thing's key and
    states.
    """
    table = _find_audited_tables().get(thing)
    if table is None:
        return []
    audited: Audited = table.info[AUDITED_KEY]
    states = [state for state in (before, after) if state]
    return [f"{thing} {row_key}" for row_key in audited.find_keys(key, states)]


def _hash_now(session: Session, name: str) -> str | None:
    """Return the hash of the table row of this name as it is now; None if it is gone, or needs no record."""
    thing, _, key = name.partition(" ")  # as in `_find_row_names`
    table = _find_audited_tables()[thing]
    audited: Audited = table.info[AUDITED_KEY]
    key_column = table.c[audited.key]
    value = int(key) if isinstance(key_column.type, Integer) else key
    row = session.execute(select(table).where(key_column == value)).mappings().first()
    if row:
        return _hash_content(audited, row)
    return None


def _hash_content(audited: Audited, row: Any) -> str | None:
    """Return the hash of a table row, without the columns that change unrecorded.

    None for a row that needs no record, such as the row of the rulebook while Nod is not paused.
    """
    hashed = {name: value for name, value in row.items() if name not in audited.unrecorded}
    if audited.needs_record(row):
        return chain.hash_content(hashed)
    return None


def list_current_hashes(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the name and the current hash of each row that this log covers, in the imported tables."""
    for thing, table in _find_audited_tables().items():
        audited = table.info[AUDITED_KEY]
        rows = session.connection().execute(select(table), execution_options={"yield_per": _BATCH})
        for row in rows.mappings():
            content_hash = _hash_content(audited, row)
            if content_hash is not None:
                yield f"{thing} {row[audited.key]}", content_hash
    for tool in session.exec(select(ToolVersionRow)):
        yield f"{Thing.TOOL} {tool.name} {tool.version}", log.hash_schema(tool.parameters)


def find_unrecorded_rows(read: chain_check.SnapshotReader, counter: Counter) -> Iterator[str]:
    """Yield a sentence on each table row that differs from the log: unrecorded, missing or altered.

    `chain_check.find_chain_faults` checks the log itself. ``counter`` counts the rows, for the progress of
    the check.

    The schemas of tools that proposals recorded are read first, a part at a time. All else is read afterwards
    over one snapshot. A schema that is added in between has no record yet, which is no fault.
    """
    schema_hashes = {
        f"{Thing.TOOL} {name} {version}": schema_hash
        for name, version, schema_hash in log.list_proposed_schemas(read, counter)
    }
    yield from read(lambda session: list(_find_deviations(session, counter, schema_hashes)))


def _find_deviations(session: Session, counter: Counter, schema_hashes: Mapping[str, str]) -> Iterator[str]:
    """Yield the sentences of `find_unrecorded_rows`.

    ``schema_hashes``: the hashes that proposals recorded, by the name of the schema, such as
    ``tool issues.create 1``.
    """
    recorded: dict[str, str | None] = dict(schema_hashes)
    rows = session.connection().execute(
        select(_TABLE.c.holds).where(_TABLE.c.holds.is_not(None)).order_by(_TABLE.c.id),
        execution_options={"yield_per": _BATCH},
    )
    for holds in counter.follow(rows.scalars()):  # yields each value, and counts it
        recorded |= holds  # oldest first, so the newest record of each row remains
    current = dict(list_current_hashes(session))
    for name in sorted(current.keys() | recorded.keys()):
        recorded_hash = recorded.get(name)
        current_hash = current.get(name)
        if recorded_hash == current_hash:
            continue
        if current_hash is None:
            yield f"{name}: it is gone, but no one is recorded to have removed it"
        elif recorded_hash is not None:
            yield f"{name}: it is not as it was recorded"
        elif not name.startswith(Thing.TOOL):  # a schema has no record before its first use
            yield f"{name}: it is there, but no one is recorded to have made it"
    yield from _find_miscounted_grants(session)


def _find_miscounted_grants(session: Session) -> Iterator[str]:
    """Yield a sentence on each grant whose count of uses is not the number of proposals run by it."""
    grants, proposals = table_of(GrantRow), table_of(ProposalRow)
    counted_uses = (
        select(grants.c.id, grants.c.uses, func.count(proposals.c.id))
        .outerjoin_from(grants, proposals, proposals.c.grant_id == grants.c.id)
        .group_by(grants.c.id, grants.c.uses)
    )
    for grant_id, uses, counted in session.execute(counted_uses):
        if uses != counted:
            yield f"{Thing.GRANT} {grant_id}: it says {uses} uses, but {counted} proposals ran by it"

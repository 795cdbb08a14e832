"""The append-only log of every change of a proposal, written in the transaction of the change.

Each row (`AuditRow`) is a link of the hash chain of the audit log (``bot/store/audit/chain.py``). It holds
the *content*, a hash of the full proposal as the change left it: requester, deciders, votes, preview, result,
due times. So a cell that was changed without a row in the log is found (`find_altered_proposals`). The first
row of a proposal, and each row with a change of its arguments, also has the request without secrets
(``about``).
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import bindparam, func, insert
from sqlmodel import Session, col, select

from bot.domain.audit import Deed
from bot.domain.connections import Connection
from bot.domain.digests import make_digest, to_canonical_json
from bot.domain.people import Actor, Person
from bot.domain.progress import Counter
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_arguments, redact_text
from bot.domain.text import replace_unstorable
from bot.store.audit import chain, chain_check
from bot.store.tables.audit import AuditRow
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import ProposalRow, ToolVersionRow
from bot.store.tables.row import table_of

_TABLE = table_of(AuditRow)
_PROPOSALS = table_of(ProposalRow)
_CONVERSATIONS = table_of(ConversationRow)
_TOOL_VERSIONS = table_of(ToolVersionRow)
_BATCH = 2000  # rows that are read at a time

_INSERT = insert(_TABLE)
REQUEST_COLUMNS = (
    select(_CONVERSATIONS.c.channel + ":" + _CONVERSATIONS.c.key)
    .where(_CONVERSATIONS.c.id == bindparam("asked_in"))
    .scalar_subquery(),
    select(_TOOL_VERSIONS.c.parameters)
    .where(
        _TOOL_VERSIONS.c.name == bindparam("asked_tool"),
        _TOOL_VERSIONS.c.version == bindparam("asked_version"),
    )
    .scalar_subquery(),
)
"""The columns that `describe_request` needs: the place of the request, and the tool's stored schema.

Statements of other modules select them as well; `make_request_parameters` returns the parameters.
"""
_AFTER_ID = (
    select(_TABLE.c.id, _TABLE.c.proposal_id)
    .where(_TABLE.c.id > bindparam("last_id"))
    .order_by(_TABLE.c.id)
    .limit(bindparam("limit"))
)

_UNRECORDED_COLUMNS = frozenset({"chat", "owner", "progress", "thing", "undo_until"})
"""The columns of a proposal that change without a row in the log, so that ``content`` does not cover them."""
# for `find_altered_proposals`: the proposals in the order of their ids, each with the log's row about its
# current version, if there is one
_WITH_LAST_ROW = (
    select(  # type: ignore[call-overload]
        *(column for column in _PROPOSALS.columns if column.name not in _UNRECORDED_COLUMNS),
        _TABLE.c.id.label("audit_id"),
        _TABLE.c.content.label("audit_content"),
    )
    .outerjoin_from(
        _PROPOSALS,
        _TABLE,
        (_TABLE.c.proposal_id == _PROPOSALS.c.id)
        & (_TABLE.c.version == _PROPOSALS.c.version)
        & (_TABLE.c.proposal_id > bindparam("after")),  # otherwise each part reads the index from its start
    )
    .where(_PROPOSALS.c.id > bindparam("after"))
    .order_by(_PROPOSALS.c.id)
    .limit(_BATCH)
)
# for `find_altered_proposals`: the proposals that are gone, or are at an older version than the log says
_BEHIND_LOG = (
    select(
        _TABLE.c.proposal_id,
        func.max(_TABLE.c.version).label("recorded_version"),
        _PROPOSALS.c.version,
    )
    .outerjoin_from(_TABLE, _PROPOSALS, _PROPOSALS.c.id == _TABLE.c.proposal_id)
    .where(_PROPOSALS.c.id.is_(None) | (_PROPOSALS.c.version < _TABLE.c.version))
    .group_by(_TABLE.c.proposal_id, _PROPOSALS.c.version)
    .order_by(_TABLE.c.proposal_id)
)

_REQUESTS = (  # for `list_proposed_schemas`
    select(_TABLE.c.id, _TABLE.c.about)
    .where(_TABLE.c.about.is_not(None), _TABLE.c.id > bindparam("after"))
    .order_by(_TABLE.c.id)
    .limit(_BATCH)
)


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change, a person through an account or Nod itself, and what they did."""

    verb: Deed  # what they did: a press, an act, or the state in which a call ended
    actor: str  # the account, as text; ``of_nod`` for Nod
    person: str  # the id of the Person; ``of_nod`` for Nod
    channel: str
    reason: str | None = None

    @classmethod
    def of_person(cls, verb: Deed, actor: Actor, person: Person, reason: str | None = None) -> "Author":
        """Return a person as the author."""
        return cls(verb, str(actor), person.id, actor.channel, reason)

    @classmethod
    def of_nod(cls, verb: Deed, reason: str | None = None) -> "Author":
        """Return Nod as the author."""
        return cls(verb, "nod", "nod", "nod", reason)


def make_request_parameters(proposal: Proposal) -> dict[str, str]:
    """Return the parameters of `REQUEST_COLUMNS` for a proposal."""
    return {
        "asked_in": proposal.conversation_id,
        "asked_tool": proposal.tool_name,
        "asked_version": proposal.tool_version,
    }


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a proposal: the proposal as the change left it, and the author."""

    proposal: Proposal
    row: Mapping[str, Any]  # the proposal as columns (`proposal_rows.to_row`), which ``content`` hashes
    author: Author
    about: Mapping[str, Any] | None = None  # the request, if the change is the first one or an edit


def record_changes(session: Session, changes: Sequence[Change]) -> None:
    """Record the change that each of these proposals has just had."""
    for change in changes:
        chain.record_row(session, _INSERT, _make_row(change))


def _make_row(change: Change) -> dict[str, Any]:
    proposal, author = change.proposal, change.author
    return {
        "proposal_id": proposal.id,
        "version": proposal.version,
        "at": proposal.updated_at,
        "verb": author.verb,
        "state": str(proposal.state),
        "actor": author.actor,
        "person": author.person,
        "channel": author.channel,
        "reason": replace_unstorable(author.reason),
        "digest": proposal.digest,
        "rule": proposal.rule_text,
        "grant_id": proposal.grant_id,
        "about": change.about,
        "content": chain.hash_content(change.row),
    }


def describe_request(proposal: Proposal, place: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the request for the log: what was asked, by whom and where, without secrets.

    ``place``: the address of the conversation, as text. ``schema``: the JSON schema of the tool, of which the
    log has the hash; None where it is not stored.
    """
    request: dict[str, Any] = {
        "requester": str(proposal.requester),
        "name": replace_unstorable(proposal.requester.name),
        "place": place,
        "tool": [proposal.tool_name, proposal.tool_version],
        "summary": replace_unstorable(redact_text(proposal.description)),
        "arguments": redact_arguments(proposal.arguments, schema),
        "schema": hash_schema(schema) if schema is not None else None,
    }
    # what follows is left out where it is empty, as in the rows of earlier releases
    lines = [redact_text(line.line) for line in proposal.frozen_annotations]
    if lines:
        request["annotations"] = lines
    if proposal.agent:
        request["agent"] = proposal.agent
    if proposal.connection:
        request["connection"] = _describe_connection(proposal.connection)
    return request


def _describe_connection(connection: Connection) -> dict[str, Any]:
    names = ("server", "identity", "owner", "name", "issuer", "subject")
    found: dict[str, Any] = replace_unstorable({name: str(getattr(connection, name)) for name in names})
    return found


def hash_schema(schema: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_canonical_json(schema).encode(errors="replace")).hexdigest()


def list_after(session: Session, last_id: int, limit: int = 500) -> list[tuple[int, str]]:
    """Return the ids of audit rows after ``last_id`` with the ids of their proposals, oldest first."""
    rows = session.connection().execute(_AFTER_ID, {"last_id": last_id, "limit": limit}).all()
    return [(row[0], row[1]) for row in rows]


def find_last_id(session: Session) -> int:
    """Return the id of the newest row, or 0."""
    found = session.execute(select(AuditRow.id).order_by(col(AuditRow.id).desc()).limit(1)).scalar()
    return found or 0


def list_rows_of_proposal(session: Session, proposal_id: str) -> list[AuditRow]:
    """Return all rows about one proposal, oldest first."""
    of_proposal = select(AuditRow).where(AuditRow.proposal_id == proposal_id)
    return list(session.exec(of_proposal.order_by(col(AuditRow.version))))


def list_newest(session: Session, limit: int) -> list[AuditRow]:
    """Return the newest rows about any proposal, newest first."""
    return list(session.exec(select(AuditRow).order_by(col(AuditRow.id).desc()).limit(limit)))


def find_altered_proposals(read: chain_check.SnapshotReader, counter: Counter) -> Iterator[str]:
    """Yield a sentence on each proposal that is not as its last row in the log says.

    `chain_check.find_chain_faults` checks the log itself. ``counter`` counts the proposals, for the progress.
    """
    after = ""
    while part := read(partial(_read_proposals_with_last_row, after=after)):
        for row in counter.follow(part):  # yields each row, and counts it
            difference = _find_difference(row)
            if difference:
                yield f"proposal {row['id']}: {difference}"
        after = part[-1]["id"]
    for proposal_id, recorded_version, version in read(lambda session: session.execute(_BEHIND_LOG).all()):
        if version is None:
            state = "its row is gone"
        else:
            state = f"its row is at version {version}"
        yield f"proposal {proposal_id}: {state}, its audit at {recorded_version}"


def _read_proposals_with_last_row(session: Session, after: str) -> Sequence[Mapping[str, Any]]:
    """Return the next proposals after an id, each with the log's row about its current version, if any."""
    found: Any = session.connection().execute(_WITH_LAST_ROW, {"after": after}).mappings().all()
    return found  # type: ignore[no-any-return]


def _find_difference(row: Any) -> str | None:
    """Return how a proposal differs from its last row in the log or from its own digest, or None."""
    columns = {name: value for name, value in row.items() if not name.startswith("audit_")}
    if row["audit_id"] is None:
        return f"its row is at version {row['version']}, its audit is not"
    if chain.hash_content(columns) != row["audit_content"]:
        return f"its row is not what audit row {row['audit_id']} (version {row['version']}) says"
    connection = Connection.from_json(row["connection"]) if row["connection"] else None
    if make_digest(row["tool_name"], row["tool_version"], row["arguments"], connection) != row["digest"]:
        return "its tool or arguments were altered"
    return None


def list_proposed_schemas(
    read: chain_check.SnapshotReader, counter: Counter
) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the version and the hash of the schema of every tool that was ever proposed."""
    seen = set()
    after = 0
    while part := read(partial(_read_requests, after=after)):
        for _, about in counter.follow(part):
            name, version = about["tool"]
            proposed = (name, version, about["schema"])
            if about["schema"] is not None and proposed not in seen:
                seen.add(proposed)
                yield proposed
        after = part[-1][0]


def _read_requests(session: Session, after: int) -> Sequence[Any]:
    """Return the id and the request of the next rows after an id that have a request."""
    return session.connection().execute(_REQUESTS, {"after": after}).all()

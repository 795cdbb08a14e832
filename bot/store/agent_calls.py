"""Agents' calls that became proposals, as rows: which call repeats an earlier one, and how each ended.

An *agent* here is a program that calls tools with a token, for one person. What the tool said may be for that
person alone, while many people may see the proposal. So it is kept apart, in the row of the call
(`seal_outcome`), and the proposal is completed only for the agent and its person (`unseal`).
``bot/approvals/agents.py`` opens the calls and answers the agent.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, update
from sqlmodel import Session, col, func, select

from bot.domain.agents import REUSE_OUTCOME_FOR
from bot.domain.files import File, choose_for_program
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.text import replace_unstorable
from bot.store import proposal_rows, proposals
from bot.store.locks import conversation_lock
from bot.store.proposals import OPEN
from bot.store.tables.agents import AgentCallRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import is_one_of, table_of

_SEALED_FIELDS = ("result", "result_sentence", "result_url", "error", "ended_badly")
"""The fields of a proposal that hold what a tool said."""
_STORED_KEYS = {name: name for name in _SEALED_FIELDS} | {"result_sentence": "told"}
"""The keys of these fields in the stored outcome."""
_FILES = "files"
"""The key of a call's files in its stored outcome; the others are `_STORED_KEYS`."""
_CAUSES_BY_NOD = frozenset(
    {Cause.TOOL_CHANGED, Cause.FORBIDDEN, Cause.DISCONNECTED, Cause.OUTCOME_UNKNOWN, Cause.STOPPED}
)
"""Causes of failures that Nod itself puts into words, so that they are not sealed."""
_SEALED_TEXT = "What the tool said is for the agent and its person."
_SEALED_END_TEXT = "It did not end well"
_PROPOSAL = table_of(ProposalRow)


def lock_calls(session: Session, agent: str) -> None:
    """Lock the opening of an agent's calls until the commit, so that a second equal call finds the first."""
    conversation_lock.lock_conversation(session, f"agent {agent}")


def add_call(session: Session, proposal: Proposal, depth: int, now: datetime) -> None:
    """Store the call behind a proposal that was just opened.

    ``depth``: the number of agents' calls that led to it.
    """
    row = AgentCallRow(
        id=proposal.conversation_id,
        agent=proposal.agent or "",
        proposal_id=proposal.id,
        digest=proposal.digest,
        depth=depth,
        created_at=now,
    )
    session.add(row)
    session.flush()


def find_repeated(session: Session, agent: str, call_digest: str, now: datetime) -> Proposal | None:
    """Return the proposal of the earlier equal call of an agent that a new call would repeat, or None.

    A new call repeats the newest equal call while that one waits or runs. An ended call is repeated only
    within `REUSE_OUTCOME_FOR` of its end, and only if it was declined, or if the agent was not told its end
    yet.
    """
    newest = (
        select(AgentCallRow)
        .where(AgentCallRow.agent == agent, AgentCallRow.digest == call_digest)
        .order_by(col(AgentCallRow.created_at).desc(), col(AgentCallRow.id))
        .limit(1)
    )
    row = session.exec(newest).first()
    proposal = proposals.get(session, row.proposal_id) if row else None
    if row is None or proposal is None:
        return None
    if proposal.state in OPEN:
        return proposal
    is_recent = abs(now - proposal.updated_at) < REUSE_OUTCOME_FOR
    if is_recent and (proposal.state is State.DECLINED or row.told_at is None):
        return proposal
    return None


def read_files(row: AgentCallRow) -> tuple[File, ...]:
    """Return the files that came with the answer of a call."""
    stored = (row.outcome or {}).get(_FILES, ())
    return tuple(_file_from_json(file) for file in stored)


def find_call(session: Session, call_id: str) -> tuple[AgentCallRow, Proposal] | None:
    """Return a call and its proposal, completed with what the tool said; None if there is no such call."""
    row = session.get(AgentCallRow, call_id)
    proposal = proposals.get(session, row.proposal_id) if row else None
    if row is None or proposal is None:
        return None
    return row, _with_outcome(proposal, row.outcome)


def find_depth(session: Session, proposal: Proposal) -> int:
    """Return the number of agents' calls that led to the call of a proposal; 0 for another proposal."""
    found = select(AgentCallRow.depth).where(AgentCallRow.proposal_id == proposal.id)
    return session.exec(found).first() or 0


def mark_told(session: Session, call_id: str, now: datetime) -> None:
    """Note that the agent was told how its call ended."""
    untold = col(AgentCallRow.told_at).is_(None)
    session.execute(update(AgentCallRow).where(col(AgentCallRow.id) == call_id, untold).values(told_at=now))


def count_open(session: Session, agent: str, limit: int) -> int:
    """Return the number of an agent's proposals that wait for a decision, at most ``limit``."""
    waiting = (
        select(_PROPOSAL.c.id)
        .where(_PROPOSAL.c.agent == agent, is_one_of(_PROPOSAL.c.state, (State.PROPOSED,)))
        .limit(limit)
    )
    found: int = session.execute(select(func.count()).select_from(waiting.subquery())).scalar_one()
    return found


def list_open(session: Session, agent: str) -> Sequence[Proposal]:
    """Return an agent's proposals that wait for a decision, oldest first."""
    waiting = proposals.SELECT_PROPOSALS.where(
        _PROPOSAL.c.agent == agent, is_one_of(_PROPOSAL.c.state, (State.PROPOSED,))
    )
    rows = session.connection().execute(waiting.order_by(_PROPOSAL.c.created_at, _PROPOSAL.c.id))
    return [proposal_rows.from_row(row) for row in rows]


def seal_outcome(
    session: Session, proposal: Proposal, state: State, changes: dict[str, Any], files: Sequence[File]
) -> dict[str, Any]:
    """Store what a tool said for the agent and its person; return the changes of the proposal without it.

    ``state`` and ``changes``: the end of the proposal; an end that Nod itself describes stays as it is.
    ``files``: the files of the tool; those that a program may have are stored.
    """
    kept_files, left_out = choose_for_program(files)
    if left_out:
        changes = {**changes, "result": f"{changes.get('result') or ''}\n{left_out}".strip()}
    outcome: dict[str, Any] = {}  # what the tool said, by field
    is_described_by_nod = state is State.FAILED and changes.get("cause") in _CAUSES_BY_NOD
    if not is_described_by_nod:
        outcome = {name: changes[name] for name in _SEALED_FIELDS if changes.get(name) is not None}
    stored = {_STORED_KEYS[name]: value for name, value in outcome.items()}
    if kept_files:
        stored[_FILES] = [_file_to_json(file) for file in kept_files]
    values = {"outcome": stored or None, "told_at": None}
    session.execute(update(AgentCallRow).where(col(AgentCallRow.proposal_id) == proposal.id).values(values))
    if not outcome:
        return changes
    sealed: dict[str, Any] = dict.fromkeys(outcome)  # the proposal gets None in these fields
    if "error" in outcome:
        sealed["error"] = _SEALED_TEXT
    elif "ended_badly" in outcome:
        sealed["ended_badly"] = _SEALED_END_TEXT
    return {**changes, **sealed}


def _file_from_json(stored: Sequence[Any]) -> File:
    name, text, data, kind = stored
    return File(name, text, b64decode(data) if data else data, kind)


def _file_to_json(file: File) -> list[str | None]:
    data = b64encode(file.data).decode() if file.data is not None else None
    return [file.name, replace_unstorable(file.text), data, file.kind]


def unseal(session: Session, proposal: Proposal) -> Proposal:
    """Return an agent's proposal with what the tool said, for the agent and its person."""
    found = select(AgentCallRow.outcome).where(AgentCallRow.proposal_id == proposal.id)
    return _with_outcome(proposal, session.exec(found).first())


def _with_outcome(proposal: Proposal, outcome: Mapping[str, Any] | None) -> Proposal:
    if not outcome or proposal.state not in (State.SUCCEEDED, State.FAILED):
        return proposal
    sealed = {name: outcome[key] for name, key in _STORED_KEYS.items() if key in outcome}
    return replace(proposal, **sealed)


def forget_outcomes(session: Session, before: datetime, limit: int) -> int:
    """Delete up to ``limit`` ended calls from before a moment, with what tools said; return how many."""
    open_proposal = select(ProposalRow.id).where(
        ProposalRow.id == AgentCallRow.proposal_id, is_one_of(_PROPOSAL.c.state, OPEN)
    )
    ended_ids = (
        select(AgentCallRow.id)
        .where(AgentCallRow.created_at < before, ~open_proposal.exists())
        .order_by(col(AgentCallRow.created_at))
        .limit(limit)
    )
    deleted = session.execute(delete(AgentCallRow).where(col(AgentCallRow.id).in_(ended_ids)))
    return int(deleted.rowcount)  # type: ignore[attr-defined]

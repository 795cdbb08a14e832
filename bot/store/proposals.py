"""Proposals as rows. `move` is the only function that changes one, and it is guarded by the database."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, bindparam, func, insert, literal, literal_column, update
from sqlmodel import Session, select

from bot.domain.people import Actor
from bot.domain.proposals import (
    TRANSITIONS,
    Cause,
    Deciders,
    Edited,
    Kind,
    PreviewField,
    Proposal,
    State,
    Vote,
)
from bot.domain.risk import Level, Risk
from bot.store import audit
from bot.store.audit import By
from bot.store.prepared import Prepared
from bot.store.tables import CopyRow, MessageRow, ProposalRow
from bot.store.text import storable, storable_or_none

_TABLE: Any = ProposalRow.__table__  # type: ignore[attr-defined]
_COPIES: Any = CopyRow.__table__  # type: ignore[attr-defined]
_OPEN = (State.PROPOSED, State.APPROVED, State.EXECUTING)

# What each cycle uses is built once: to build a statement costs several times what it costs to run it.
# A literal where an index is over those rows alone: with a parameter in its place the index cannot be chosen.
_IS_PROPOSED = _TABLE.c.state == literal_column(f"'{State.PROPOSED}'")
_INSERT = Prepared(insert(_TABLE))
_ALL = select(*(column for column in _TABLE.columns if column.name not in ("idempotency_key", "lease_until")))
_BY_ID = Prepared(_ALL.where(_TABLE.c.id == bindparam("id")))
_OF_MESSAGE = Prepared(_ALL.where(_TABLE.c.message_id == bindparam("message_id")).order_by(_TABLE.c.position))
_OF_CONVERSATION = Prepared(
    _ALL.where(_TABLE.c.conversation_id == bindparam("conversation_id")).order_by(
        _TABLE.c.message_id, _TABLE.c.position
    )
)
_UNSETTLED = Prepared(
    select(_TABLE.c.id)
    .where(_TABLE.c.message_id == bindparam("message_id"), _TABLE.c.state.in_(map(literal, _OPEN)))
    .limit(1)
)
_SAME_ANSWER = _TABLE.c.message_id == bindparam("message_id")
_LAST = select(func.max(_TABLE.c.position)).where(_SAME_ANSWER).scalar_subquery()
_BEHIND = select(_TABLE.c.id).where(
    _SAME_ANSWER, (_TABLE.c.id == bindparam("moved_id")) | (_TABLE.c.position == _LAST)
)
_WANT_REDRAW = Prepared(
    update(_COPIES).where(_COPIES.c.proposal_id.in_(_BEHIND)).values(wanted=_COPIES.c.wanted + 1)
)


@lru_cache(maxsize=64)
def _update(columns: tuple[str, ...]) -> Prepared:
    """The guarded update of these columns; their values are its parameters."""
    return Prepared(
        update(_TABLE)
        .where(
            _TABLE.c.id == bindparam("moved_id"),
            _TABLE.c.state == bindparam("from_state"),
            _TABLE.c.version == bindparam("from_version"),
        )
        .values({column: bindparam(column) for column in columns})
    )


def insert_all(session: Session, proposals: Sequence[Proposal], by: By) -> None:
    """Open proposals, each with its first audit row."""
    for proposal in proposals:
        _INSERT.count(session, _row(proposal))
        audit.append(session, proposal, by, previous="")


def move(
    session: Session,
    before: Proposal,
    by: By,
    now: datetime,
    state: State | None = None,
    lease_until: datetime | None = None,
    **changes: Any,
) -> Proposal | None:
    """Change a proposal, guarded by its state and version, and record who did it.

    Returns what it is now, or None when somebody else was faster. ``state`` None keeps it where it is (a
    vote, an edit). Raises ValueError for a move that `TRANSITIONS` does not have.
    """
    if state is not None and state not in TRANSITIONS[before.state]:
        raise ValueError(f"{before.state} → {state} is not a move a proposal can make")
    after = replace(
        before, **changes, state=state or before.state, version=before.version + 1, updated_at=now
    )
    if session.get_bind().dialect.name == "postgresql":
        # proposals of one answer change one after the other, so that the last to end sees that it is the last
        session.execute(select(MessageRow.id).where(MessageRow.id == before.message_id).with_for_update())
    old, new = _row(before), _row(after)
    changed = {key: value for key, value in new.items() if value != old[key]} | {"lease_until": lease_until}
    guard = {"moved_id": before.id, "from_state": before.state, "from_version": before.version}
    if _update(tuple(changed)).count(session, changed | guard) != 1:
        return None
    audit.append(session, after, by)
    _want_redraw(session, after)
    return after


def _want_redraw(session: Session, proposal: Proposal) -> None:
    """Its copies are behind now, and so is the card that carries the buttons of its group."""
    _WANT_REDRAW.count(session, {"message_id": proposal.message_id, "moved_id": proposal.id})


def get(session: Session, proposal_id: str) -> Proposal | None:
    row = _BY_ID.row(session, {"id": proposal_id})
    return _proposal(row) if row else None


def of_message(session: Session, message_id: int) -> list[Proposal]:
    """The proposals of one answer, in the order they were asked for."""
    rows = _OF_MESSAGE.rows(session, {"message_id": message_id})
    return [_proposal(row) for row in rows]


def of_conversation(session: Session, conversation_id: str) -> list[Proposal]:
    rows = _OF_CONVERSATION.rows(session, {"conversation_id": conversation_id})
    return [_proposal(row) for row in rows]


def in_states(
    session: Session, states: Sequence[State], limit: int = 200, *, after: int = 0
) -> list[Proposal]:
    """Newest first; ``after`` leaves out that many of the newest."""
    rows = session.connection().execute(
        _ALL.where(_TABLE.c.state.in_(states))
        .order_by(_TABLE.c.updated_at.desc(), _TABLE.c.id)
        .limit(limit)
        .offset(after)
    )
    return [_proposal(row) for row in rows]


def starting_with(session: Session, prefix: str) -> list[Proposal]:
    """Proposals whose id begins so, for people who type; at most two, which is enough to be unsure."""
    rows = session.connection().execute(_ALL.where(_TABLE.c.id.startswith(prefix, autoescape=True)).limit(2))
    return [_proposal(row) for row in rows]


def open_in(session: Session, conversation_id: str) -> list[Proposal]:
    """What waits or runs in a conversation, in the order it was asked for."""
    return [p for p in of_conversation(session, conversation_id) if p.state in _OPEN]


def due(session: Session, now: datetime, limit: int) -> list[Proposal]:
    """Open proposals whose time is up."""
    rows = session.connection().execute(
        _ALL.where(_IS_PROPOSED, _TABLE.c.expires_at <= now)
        .order_by(_TABLE.c.expires_at, _TABLE.c.id)
        .limit(limit)
    )
    return [_proposal(row) for row in rows]


def calling(session: Session, what: str, now: datetime, limit: int) -> list[Proposal]:
    """Open proposals whose time to ``warn``, ``remind`` or ``escalate`` has come."""
    due_at = _TABLE.c[f"{what}_at"]
    rows = session.connection().execute(
        _ALL.where(_TABLE.c.state == State.PROPOSED, due_at <= now).order_by(due_at).limit(limit)
    )
    return [_proposal(row) for row in rows]


def approved(session: Session) -> list[str]:
    """Ids of what waits to be run."""
    return list(
        session.connection().execute(select(_TABLE.c.id).where(_TABLE.c.state == State.APPROVED)).scalars()
    )


def questions(session: Session) -> list[str]:
    """Ids of the questions that no person has answered to its end."""
    open_ = _TABLE.c.state.in_((State.PROPOSED, State.APPROVED))
    found = select(_TABLE.c.id).where(_TABLE.c.kind == Kind.QUESTION, open_)
    return list(session.connection().execute(found).scalars())


def abandoned(session: Session, now: datetime | None) -> list[Proposal]:
    """Executing, but by a process whose lease ran out (None: whatever the lease)."""
    statement = _ALL.where(_TABLE.c.state == State.EXECUTING)
    if now is not None:
        statement = statement.where(_TABLE.c.lease_until <= now)
    return [_proposal(row) for row in session.connection().execute(statement)]


def has_unsettled(session: Session, message_id: int) -> bool:
    return _UNSETTLED.row(session, {"message_id": message_id}) is not None


def _row(p: Proposal) -> dict[str, Any]:
    return {
        "id": p.id,
        "kind": p.kind,
        "conversation_id": p.conversation_id,
        "message_id": p.message_id,
        "call_id": p.call_id,
        "position": p.position,
        "tool_name": p.tool_name,
        "tool_version": p.tool_version,
        "arguments": dict(p.arguments),
        "description": storable(p.description),
        "preview": [[f.field, f.old_value, f.new_value] for f in p.preview],
        "level": p.risk.level,
        "risk_reason": storable(p.risk.reason),
        "reason": storable(p.reason),
        "requester": str(p.requester),
        "requester_name": storable(p.requester.name),
        "deciders": {
            "requester": p.deciders.requester,
            "roles": list(p.deciders.roles),
            "people": list(p.deciders.people),
            "members": p.deciders.members,
            "four_eyes": p.deciders.four_eyes,
        },
        "quorum": p.quorum,
        "declines": p.declines,
        "grant_id": p.grant_id,
        "ttl_seconds": p.ttl.total_seconds(),
        "warn_at": p.warn_at,
        "remind_at": p.remind_at,
        "remind_every": p.remind_every.total_seconds() if p.remind_every else None,
        "escalate_at": p.escalate_at,
        "escalate_to": p.escalate_to,
        "rule": p.rule,
        "teammate": p.teammate,
        "state": p.state,
        "cause": p.cause,
        "round": p.round,
        "version": p.version,
        "digest": p.digest,
        "idempotency_key": p.idempotency_key,
        "votes": [
            [v.person_id, str(v.actor), v.actor.name, v.verb, v.reason, v.at.isoformat()] for v in p.votes
        ],
        "decided_by": p.decided_by,
        "decided_from": p.decided_from,
        "decided_at": p.decided_at,
        "decline_reason": storable_or_none(p.decline_reason),
        "edited_by": p.edited_by,
        "edits": [[e.round, e.by, [[f.field, f.old_value, f.new_value] for f in e.fields]] for e in p.edits]
        or None,
        "changed": p.changed,
        "result": storable_or_none(p.result),
        "result_url": storable_or_none(p.result_url),
        "error": storable_or_none(p.error),
        "created_at": p.created_at,
        "updated_at": p.updated_at,
        "expires_at": p.expires_at,
    }


def _proposal(row: Row[Any]) -> Proposal:
    return Proposal(
        id=row.id,
        kind=Kind(row.kind),
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        call_id=row.call_id,
        position=row.position,
        tool_name=row.tool_name,
        tool_version=row.tool_version,
        arguments=row.arguments,
        description=row.description,
        preview=tuple(PreviewField(*f) for f in row.preview),
        risk=Risk(Level(row.level), row.risk_reason),
        reason=row.reason,
        requester=Actor.parse(row.requester, row.requester_name),
        deciders=Deciders(
            requester=row.deciders["requester"],
            roles=tuple(row.deciders["roles"]),
            people=tuple(row.deciders["people"]),
            members=row.deciders["members"],
            four_eyes=row.deciders["four_eyes"],
        ),
        quorum=row.quorum,
        declines=row.declines,
        grant_id=row.grant_id,
        ttl=timedelta(seconds=row.ttl_seconds),
        warn_at=row.warn_at,
        remind_at=row.remind_at,
        remind_every=timedelta(seconds=row.remind_every) if row.remind_every else None,
        escalate_at=row.escalate_at,
        escalate_to=row.escalate_to,
        rule=row.rule,
        teammate=row.teammate,
        state=State(row.state),
        cause=Cause(row.cause) if row.cause else None,
        round=row.round,
        version=row.version,
        digest=row.digest,
        votes=tuple(
            Vote(person, Actor.parse(actor, name), verb, reason, datetime.fromisoformat(at))
            for person, actor, name, verb, reason, at in row.votes
        ),
        decided_by=row.decided_by,
        decided_from=row.decided_from,
        decided_at=row.decided_at,
        decline_reason=row.decline_reason,
        edited_by=row.edited_by,
        edits=tuple(
            Edited(r, by, tuple(PreviewField(*f) for f in fields)) for r, by, fields in row.edits or ()
        ),
        changed=row.changed,
        result=row.result,
        result_url=row.result_url,
        error=row.error,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
    )

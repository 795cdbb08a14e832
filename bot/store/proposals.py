"""Proposals as rows. `move` is the only function that changes one, and it is guarded by the database."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Row, bindparam, func, insert, literal_column, or_, text, true, tuple_, union, update
from sqlmodel import Session, select

from bot.domain.bounds import AnswerRoom, Bounds
from bot.domain.conversations import LineRole
from bot.domain.people import Actor
from bot.domain.proposals import (
    TRANSITIONS,
    Cause,
    Deciders,
    Edited,
    Kind,
    Mark,
    PreviewField,
    Proposal,
    Sibling,
    Sought,
    State,
    Vote,
)
from bot.domain.risk import Level, Risk
from bot.domain.rules import EVERYWHERE
from bot.domain.text import storable, storable_or_none
from bot.store import exclusive, processes
from bot.store.inserts import insert_or_ignore
from bot.store.record import audit
from bot.store.record.audit import By, Change
from bot.store.tables import (
    OPEN_QUESTION,
    WAITS,
    ConversationRow,
    CopyRow,
    DeciderRow,
    MessageRow,
    ProposalRow,
    among,
    table_of,
)

_TABLE = table_of(ProposalRow)
_CONVERSATION = table_of(ConversationRow)
_COPIES = table_of(CopyRow)
_MESSAGE = table_of(MessageRow)
_OPEN = (State.PROPOSED, State.APPROVED, State.EXECUTING)

_DECIDERS = table_of(DeciderRow)
_FALLING = (_TABLE.c.updated_at.desc(), _TABLE.c.id.desc())

# What each cycle uses is built once: to build a statement costs several times what it costs to run it.
# A literal where an index is over those rows alone: with a parameter in its place the index cannot be chosen.
_IS_PROPOSED = _TABLE.c.state == literal_column(f"'{State.PROPOSED}'")
_IS_MOVING = _TABLE.c.state.in_([literal_column(f"'{each}'") for each in (State.APPROVED, State.EXECUTING)])
_TELLING = select(_TABLE.c.id, _TABLE.c.progress).where(_IS_MOVING, _TABLE.c.progress.is_not(None))
_INSERT = insert(_TABLE)
_ALL = select(*(column for column in _TABLE.columns if column.name not in ("idempotency_key", "owner")))
_BY_ID = _ALL.where(_TABLE.c.id == bindparam("id"))
_OF_MESSAGE = _ALL.where(_TABLE.c.message_id == bindparam("message_id")).order_by(_TABLE.c.position)
_OF_CONVERSATION = _ALL.where(_TABLE.c.conversation_id == bindparam("conversation_id")).order_by(
    _TABLE.c.message_id, _TABLE.c.position
)
_UNSETTLED = (
    select(_TABLE.c.id)
    .where(_TABLE.c.message_id == bindparam("message_id"), among(_TABLE.c.state, _OPEN))
    .limit(1)
)
_SAME_ANSWER = _TABLE.c.message_id == bindparam("message_id")
_FIRST = select(func.min(_TABLE.c.position)).where(_SAME_ANSWER).scalar_subquery()
_BEHIND = select(_TABLE.c.id).where(
    _SAME_ANSWER, (_TABLE.c.id == bindparam("moved_id")) | (_TABLE.c.position == _FIRST)
)
_WANT_REDRAW = update(_COPIES).where(_COPIES.c.proposal_id.in_(_BEHIND)).values(wanted=_COPIES.c.wanted + 1)


def _counted(which: Any, most: str) -> Any:
    """How many these are, counted up to the parameter ``most``."""
    found = select(_TABLE.c.id).where(which, _IS_PROPOSED).limit(bindparam(most)).subquery()
    return select(func.count()).select_from(found)


_IN_CONVERSATION = _TABLE.c.conversation_id == bindparam("conversation_id")
_WAITING_OF = _counted(_TABLE.c.requester.in_(bindparam("accounts", expanding=True)), "most")
_WAITING_HERE_AND_OF = select(
    _counted(_IN_CONVERSATION, "most_here").scalar_subquery(), _WAITING_OF.scalar_subquery()
)
_SIBLINGS = (
    select(_TABLE.c.message_id, _TABLE.c.id, _TABLE.c.state, _TABLE.c.round)
    .where(_TABLE.c.message_id.in_(bindparam("message_ids", expanding=True)))
    .order_by(_TABLE.c.message_id, _TABLE.c.position)
)
_DECLINED = _ALL.where(_TABLE.c.state == State.DECLINED)
_LAST_ASKED = (
    select(func.max(_MESSAGE.c.id))
    .where(_MESSAGE.c.conversation_id == bindparam("conversation_id"), _MESSAGE.c.role == LineRole.USER)
    .scalar_subquery()
)
_JUST_DECLINED = select(_TABLE.c.digest, _TABLE.c.decided_by).where(
    _IN_CONVERSATION,
    _TABLE.c.state == State.DECLINED,
    _TABLE.c.cause.is_(None),
    _TABLE.c.message_id > func.coalesce(_LAST_ASKED, 0),
)
_DECLINED_BEFORE = _DECLINED.where(
    _TABLE.c.conversation_id.in_(bindparam("conversations", expanding=True)),
    _TABLE.c.digest.in_(bindparam("digests", expanding=True)),
).order_by(_TABLE.c.decided_at)


@lru_cache(maxsize=64)
def _update(columns: tuple[str, ...]) -> Any:
    """The guarded update of these columns; their values are its parameters."""
    return (
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
    changes = [Change(proposal, _row(proposal), by, asks=True) for proposal in proposals]
    for change in changes:
        session.connection().execute(_INSERT, change.row)
        _name_deciders(session, change.proposal)
    audit.append(session, changes)


def move(
    session: Session,
    before: Proposal,
    by: By,
    now: datetime,
    state: State | None = None,
    owner: str | None = None,
    **changes: Any,
) -> Proposal | None:
    """Change a proposal, guarded by its state and version, and record who did it.

    Returns what it is now, or None when someone else was faster. ``state`` None keeps it where it is (a
    vote, an edit). ``owner``: id of the process that runs it from now on.
    Raises ValueError for a move that `TRANSITIONS` does not have.
    """
    if state is not None and state not in TRANSITIONS[before.state]:
        raise ValueError(f"{before.state} → {state} is not a move a proposal can make")
    after = replace(
        before, **changes, state=state or before.state, version=before.version + 1, updated_at=now
    )
    exclusive.in_conversation(session, before.conversation_id)
    old, new = _row(before), _row(after)
    changed = {key: value for key, value in new.items() if value != old[key]}
    changed["deciders"] = new["deciders"]  # an older release kept fewer fields; the record hashes all
    changed |= {"owner": owner} if owner is not None else {}
    if before.state is State.EXECUTING:
        changed["progress"] = None
    guard = {"moved_id": before.id, "from_state": before.state, "from_version": before.version}
    if session.connection().execute(_update(tuple(changed)), changed | guard).rowcount != 1:
        return None
    if (after.deciders.people, after.votes) != (before.deciders.people, before.votes):
        _name_deciders(session, after)
    audit.append(session, [Change(after, new, by, asks=after.digest != before.digest)])
    _want_redraw(session, after)
    return after


def tell_progress(session: Session, claimed: Proposal, words: str) -> bool:
    """Keep how far its tool is; False where it is no longer that run. It is no change of the proposal."""
    guard = {"moved_id": claimed.id, "from_state": State.EXECUTING, "from_version": claimed.version}
    told = {"progress": storable(words)}
    if session.connection().execute(_update(("progress",)), told | guard).rowcount != 1:
        return False
    _want_redraw(session, claimed)
    return True


def progress(session: Session) -> dict[str, str]:
    """How far those are that run right now, by id, as far as their tools say."""
    return dict(session.connection().execute(_TELLING).all())


def _name_deciders(session: Session, proposal: Proposal) -> None:
    """Keep the accounts named for it, or that voted, where `seen_by` finds them; none is ever dropped."""
    accounts = dict.fromkeys((*proposal.deciders.people, *(str(v.actor) for v in proposal.votes)))
    if rows := [{"account": account, "proposal_id": proposal.id} for account in accounts]:
        session.connection().execute(insert_or_ignore(session, DeciderRow), rows)


def _want_redraw(session: Session, proposal: Proposal) -> None:
    """Its copies are behind now, and so is the card that carries the buttons of its group."""
    session.connection().execute(_WANT_REDRAW, {"message_id": proposal.message_id, "moved_id": proposal.id})


def get(session: Session, proposal_id: str) -> Proposal | None:
    row = session.connection().execute(_BY_ID, {"id": proposal_id}).first()
    return _proposal(row) if row else None


def of_message(session: Session, message_id: int) -> list[Proposal]:
    """The proposals of one answer, in the order they were asked for."""
    rows = session.connection().execute(_OF_MESSAGE, {"message_id": message_id}).all()
    return [_proposal(row) for row in rows]


def siblings(session: Session, message_ids: Collection[int]) -> dict[str, list[Sibling]]:
    """The proposals of each answer, by the id of the first: its card carries the buttons of the group."""
    groups: dict[int, list[Sibling]] = {}
    for message_id, *each in session.connection().execute(_SIBLINGS, {"message_ids": list(message_ids)}):
        ident, state, round_ = each
        groups.setdefault(message_id, []).append(Sibling(ident, State(state), round_))
    return {group[0].id: group for group in groups.values()}


def waiting_of(session: Session, accounts: Collection[str], most: int) -> int:
    """How many open proposals a person asked for, counted up to ``most``."""
    counted = session.connection().execute(_WAITING_OF, {"accounts": list(accounts), "most": most})
    return int(counted.scalar_one())


def room(session: Session, bounds: Bounds, conversation_id: str, accounts: Collection[str]) -> AnswerRoom:
    """How many proposals the next answer of a conversation may open, for a person with these accounts."""
    counted = {
        "conversation_id": conversation_id,
        "most_here": bounds.open_in_conversation,
        "accounts": list(accounts),
        "most": bounds.open_by_person,
    }
    return bounds.room(*session.connection().execute(_WAITING_HERE_AND_OF, counted).one())


def of_conversation(session: Session, conversation_id: str) -> list[Proposal]:
    rows = session.connection().execute(_OF_CONVERSATION, {"conversation_id": conversation_id}).all()
    return [_proposal(row) for row in rows]


def declined_before(session: Session, found: Sequence[Proposal]) -> dict[str, Proposal]:
    """The newest call of the same conversation that was the same and was declined, by each one's id."""
    waiting = [p for p in found if p.state is State.PROPOSED]
    if not waiting:
        return {}
    wanted = {
        "conversations": list({p.conversation_id for p in waiting}),
        "digests": list({p.digest for p in waiting}),
    }
    rows = session.connection().execute(_DECLINED_BEFORE, wanted)
    newest = {(p.conversation_id, p.digest): p for p in map(_proposal, rows)}
    pairs = {p.id: newest.get((p.conversation_id, p.digest)) for p in waiting}
    return {ident: before for ident, before in pairs.items() if before}


def just_declined(session: Session, conversation_id: str) -> dict[str, str]:
    """What people declined in a conversation since one of them last spoke there: digests, and by whom."""
    rows = session.connection().execute(_JUST_DECLINED, {"conversation_id": conversation_id})
    return {row.digest: row.decided_by for row in rows}


def in_states(session: Session, states: Sequence[State], limit: int = 200) -> list[Proposal]:
    """Newest first, without asking who may see them."""
    return seen_by(session, Reach(frozenset(), everything=True), states, limit)


class Reach(NamedTuple):
    """Where to look: at what ``accounts`` asked for, are named for or voted on, or at ``everything``."""

    accounts: frozenset[str]
    everything: bool


def seen_by(
    session: Session,
    reach: Reach,
    states: Sequence[State],
    limit: int = 200,
    before: Mark | None = None,
    sought: Sought = Sought(),  # noqa: B008 - frozen
) -> list[Proposal]:
    """What is within reach, newest change first; ``before`` continues a list below what stands there.

    Each part (a state of all, a state of one requester) is read from an index in that very order and no
    further than ``limit``, so a page costs the same however much there is. What else is ``sought`` is not
    in an index: a rare tool may cost a look at all there is.
    """
    parts = [_TABLE.c.state == state for state in states]
    if sought.own or not reach.everything:
        named = select(_DECIDERS.c.proposal_id).where(_DECIDERS.c.account.in_(reach.accounts))
        own = [_TABLE.c.requester == account for account in sorted(reach.accounts)]
        parts = [whose & state for whose in own for state in parts]
        if not sought.own:
            parts.append(_TABLE.c.id.in_(named) & _TABLE.c.state.in_(states))
    spot = (_TABLE.c.updated_at, _TABLE.c.id)
    further = tuple_(*spot) < tuple_(*before) if before else true()
    for column, value in (("tool_name", sought.tool), ("kind", sought.kind), ("level", sought.level)):
        if value is not None:
            further &= _TABLE.c[column] == value
    if sought.words:
        said = (_TABLE.c.description, _TABLE.c.tool_name, _TABLE.c.requester_name)
        further &= or_(*(column.icontains(sought.words, autoescape=True) for column in said))
    if sought.accounts is not None:
        further &= _TABLE.c.requester.in_(sorted(sought.accounts))
    if sought.channel:
        there = select(_CONVERSATION.c.id).where(_CONVERSATION.c.channel == sought.channel)
        further &= _TABLE.c.conversation_id.in_(there)
    newest = [
        select(select(*spot).where(part, further).order_by(*_FALLING).limit(limit).subquery())
        for part in parts
    ]
    found = union(*newest).subquery()
    page = select(found.c.id).order_by(found.c.updated_at.desc(), found.c.id.desc()).limit(limit)
    rows = session.connection().execute(_ALL.where(_TABLE.c.id.in_(page)).order_by(*_FALLING))
    return [_proposal(row) for row in rows]


def soonest(
    session: Session, scope: str = EVERYWHERE, limit: int | None = None
) -> tuple[list[Proposal], int]:
    """What is open at the places of a scope (`covers`), the first to expire first, and how many there are."""
    place = func.coalesce(_CONVERSATION.c.shown_at, _CONVERSATION.c.channel + ":" + _CONVERSATION.c.key)
    below = scope.removesuffix("*") if scope.endswith(":*") else f"{scope}/"
    inside = (
        true() if scope == EVERYWHERE else (place == scope) | (func.substr(place, 1, len(below)) == below)
    )
    there = (
        select(_TABLE.c.id)
        .join(_CONVERSATION, _CONVERSATION.c.id == _TABLE.c.conversation_id)
        .where(_IS_PROPOSED, inside)
    )
    order = (_TABLE.c.expires_at, _TABLE.c.created_at, _TABLE.c.id)
    page = there.order_by(*order).limit(limit)
    rows = session.connection().execute(_ALL.where(_TABLE.c.id.in_(page)).order_by(*order)).all()
    many = len(rows)
    if many == limit:
        many = session.connection().execute(select(func.count()).select_from(there.subquery())).scalar_one()
    return [_proposal(row) for row in rows], many


def starting_with(session: Session, prefix: str) -> list[Proposal]:
    """Proposals whose id starts with ``prefix``, for people who type; at most two, to see an ambiguity."""
    rows = session.connection().execute(_ALL.where(_TABLE.c.id.startswith(prefix, autoescape=True)).limit(2))
    return [_proposal(row) for row in rows]


def open_in(session: Session, conversation_id: str) -> list[Proposal]:
    """What waits or runs in a conversation, in the order it was asked for."""
    return [p for p in of_conversation(session, conversation_id) if p.state in _OPEN]


def due(session: Session, now: datetime, limit: int) -> list[Proposal]:
    """Open proposals whose time is up."""
    rows = session.connection().execute(
        _ALL.where(text(WAITS), _TABLE.c.expires_at <= now)
        .order_by(_TABLE.c.expires_at, _TABLE.c.id)
        .limit(limit)
    )
    return [_proposal(row) for row in rows]


def waiting_after(session: Session, after: str, limit: int) -> list[Proposal]:
    """Open proposals whose id comes after this one, in the order of their ids."""
    rows = session.connection().execute(
        _ALL.where(text(WAITS), _TABLE.c.id > after).order_by(_TABLE.c.id).limit(limit)
    )
    return [_proposal(row) for row in rows]


def calling(session: Session, what: str, now: datetime, limit: int) -> list[Proposal]:
    """Open proposals whose time to ``warn``, ``remind`` or ``escalate`` has come."""
    due_at = _TABLE.c[f"{what}_at"]
    rows = session.connection().execute(_ALL.where(text(WAITS), due_at <= now).order_by(due_at).limit(limit))
    return [_proposal(row) for row in rows]


def approved(session: Session) -> list[str]:
    """Ids of what waits to be run."""
    return list(
        session.connection()
        .execute(select(_TABLE.c.id).where(_IS_MOVING, _TABLE.c.state == State.APPROVED))
        .scalars()
    )


def own(session: Session, proposal_id: str, process: str) -> None:
    """This process waits for the answer to a question."""
    session.connection().execute(update(_TABLE).where(_TABLE.c.id == proposal_id).values(owner=process))


def questions_left(session: Session, process: str) -> list[str]:
    """Ids of the open questions whose process is gone; this ``process`` is not."""
    left = processes.left(_TABLE.c.owner, process)
    found = select(_TABLE.c.id).where(text(OPEN_QUESTION), left)
    return list(session.connection().execute(found).scalars())


def abandoned(session: Session, process: str) -> list[Proposal]:
    """Executing, but not by another living process: this ``process`` knows what it has under way."""
    mine = _TABLE.c.owner == process
    left = _ALL.where(_TABLE.c.state == State.EXECUTING, mine | processes.left(_TABLE.c.owner, process))
    return [_proposal(row) for row in session.connection().execute(left)]


def stopping(session: Session, among_these: Collection[str]) -> list[str]:
    """Ids of those that execute and that someone wants stopped."""
    wanted = (
        _TABLE.c.state == State.EXECUTING,
        _TABLE.c.cause == Cause.STOPPED,
        _TABLE.c.id.in_(among_these),
    )
    return list(session.connection().execute(select(_TABLE.c.id).where(*wanted)).scalars())


def has_unsettled(session: Session, message_id: int) -> bool:
    return session.connection().execute(_UNSETTLED, {"message_id": message_id}).first() is not None


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
            "lead": p.deciders.lead,
            "escalated": p.deciders.escalated,
            "place": p.deciders.place,
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
        "told": storable_or_none(p.told),
        "ended_badly": storable_or_none(p.ended_badly),
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
            lead=row.deciders.get("lead"),
            escalated=row.deciders.get("escalated"),
            place=row.deciders.get("place"),
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
        progress=row.progress,
        result=row.result,
        told=row.told,
        ended_badly=row.ended_badly,
        result_url=row.result_url,
        error=row.error,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
    )

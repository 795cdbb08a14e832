"""Proposals as rows, with the schemas of proposed tool versions and the arguments of inverse calls.

What changes one is in ``bot/store/transitions.py``.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row, bindparam, delete, func, literal_column, or_, text, true, tuple_, union
from sqlmodel import Session, col, select

from bot.domain import kinds
from bot.domain.annotations import Annotation
from bot.domain.bounds import AnswerRoom, Bounds
from bot.domain.connections import Connection
from bot.domain.kinds import find_kind
from bot.domain.people import Actor
from bot.domain.proposals import (
    Cause,
    Deciders,
    Edited,
    Inverse,
    Level,
    Mark,
    Order,
    PreviewField,
    Proposal,
    ProposalFilter,
    ProposalKind,
    Reread,
    Risk,
    Sibling,
    State,
    Vote,
)
from bot.domain.rules import EVERYWHERE
from bot.domain.steps import DueStep
from bot.domain.text import storable
from bot.domain.trials import Trial
from bot.store import database
from bot.store.engine import insert_or_ignore, insert_or_replace
from bot.store.tables.conversations import ConversationRow, inside
from bot.store.tables.proposals import WAITS, DeciderRow, InverseRow, ProposalRow, ToolVersionRow
from bot.store.tables.row import among, delete_older, starts_with, table_of, value_of

_TABLE = table_of(ProposalRow)
_CONVERSATION = table_of(ConversationRow)
OPEN = (State.PROPOSED, State.APPROVED, State.EXECUTING)

_DECIDERS = table_of(DeciderRow)
_FALLING = (_TABLE.c.updated_at.desc(), _TABLE.c.id.desc())

# What each cycle uses is built once: to build a statement costs several times what it costs to run it.
# A literal where an index is over those rows alone: with a parameter in its place the index cannot be chosen.
_IS_PROPOSED = _TABLE.c.state == literal_column(f"'{State.PROPOSED}'")
IS_MOVING = _TABLE.c.state.in_([literal_column(f"'{each}'") for each in (State.APPROVED, State.EXECUTING)])
_TELLING = select(_TABLE.c.id, _TABLE.c.progress).where(IS_MOVING, _TABLE.c.progress.is_not(None))
_NOT_READ = ("idempotency_key", "owner", "chat")
ALL = select(*(column for column in _TABLE.columns if column.name not in _NOT_READ))
BY_ID = ALL.where(_TABLE.c.id == bindparam("id"))
_OF_MESSAGES = ALL.where(_TABLE.c.message_id.in_(bindparam("message_ids", expanding=True))).order_by(
    _TABLE.c.message_id, _TABLE.c.position
)
_OF_CONVERSATION = ALL.where(_TABLE.c.conversation_id == bindparam("conversation_id")).order_by(
    _TABLE.c.message_id, _TABLE.c.position
)
_OF_BATCH = ALL.where(_TABLE.c.batch == bindparam("batch")).order_by(_TABLE.c.position)
UNSETTLED = select(_TABLE.c.id).where(
    _TABLE.c.message_id == bindparam("message_id"), among(_TABLE.c.state, OPEN)
)
_IN_CONVERSATION = _TABLE.c.conversation_id == bindparam("conversation_id")
_SIBLINGS = (
    select(*(_TABLE.c[name] for name in ("message_id", "id", "state", "round", "level", "batch")))
    .where(
        _TABLE.c.message_id.in_(bindparam("message_ids", expanding=True)),
        _TABLE.c.kind != kinds.QUESTION.name,
    )
    .order_by(_TABLE.c.message_id, _TABLE.c.position)
)
_DECLINED = ALL.where(_TABLE.c.state == State.DECLINED)
_DECLINED_BEFORE = _DECLINED.where(
    _TABLE.c.conversation_id.in_(bindparam("conversations", expanding=True)),
    _TABLE.c.digest.in_(bindparam("digests", expanding=True)),
).order_by(_TABLE.c.decided_at)
_LAST = 2000  # proposals looked through
SHORTEST = 4
"""Characters of an ID that people type at least: fewer name another proposal by a slip."""
UNRECORDED = frozenset({"progress", "undo_until"})
"""Fields that change without an audit row."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "risk": ("level", "risk_reason", "vouched"),
    "requester": ("requester", "requester_name"),
    "ttl": ("ttl_seconds",),
}
"""The columns of each field whose column is not of its name."""
_APART = ("kind", *COLUMNS, *UNRECORDED, "arguments")


def _count_up_to(which: Any, most: str) -> Any:
    found = select(_TABLE.c.id).where(which, _IS_PROPOSED).limit(bindparam(most)).subquery()
    return select(func.count()).select_from(found)


_WAITING_OF = _count_up_to(_TABLE.c.requester.in_(bindparam("accounts", expanding=True)), "most")
_WAITING_HERE_AND_OF = select(
    _count_up_to(_IN_CONVERSATION, "most_here").scalar_subquery(), _WAITING_OF.scalar_subquery()
)


def progress(session: Session) -> dict[str, str]:
    """Return the progress of running proposals by id, as far as their tools report it."""
    return dict(session.connection().execute(_TELLING).all())


def get(session: Session, proposal_id: str) -> Proposal | None:
    row = session.connection().execute(BY_ID, {"id": proposal_id}).first()
    return from_row(row) if row else None


def of_message(session: Session, message_id: int) -> list[Proposal]:
    """Return the proposals of one answer, in the order they were asked for."""
    return of_messages(session, [message_id])


def of_messages(session: Session, message_ids: Sequence[int]) -> list[Proposal]:
    """Return the proposals of these answers, each answer's in the order they were asked for."""
    return _read(session, _OF_MESSAGES, message_ids=message_ids) if message_ids else []


def of_batch(session: Session, batch: str) -> list[Proposal]:
    """Return the rows of a batch, in the order they were asked for."""
    return _read(session, _OF_BATCH, batch=batch)


def group_of(session: Session, p: Proposal) -> list[Proposal]:
    """Return the proposals that are decided together with this one.

    They are its batch or, outside a batch, the single proposals of its answer. A question is by itself.
    """
    if p.batch:
        return of_batch(session, p.batch)
    alone = p.kind.is_answer  # which is answered by itself
    found = of_message(session, p.message_id)
    return [each for each in found if each.batch is None and each.kind.is_answer is alone]


def siblings(session: Session, message_ids: Collection[int]) -> dict[str, list[Sibling]]:
    """Return the groups of each answer by the id of their first proposal, whose card has the shared buttons.

    A batch is one group; the other proposals of an answer are another.
    """
    groups: dict[tuple[int, str | None], list[Sibling]] = {}
    if not message_ids:
        return {}
    for message_id, *each in session.connection().execute(_SIBLINGS, {"message_ids": list(message_ids)}):
        ident, state, round_, level, batch = each
        found = Sibling(ident, State(state), round_, Risk(Level(level), ""), batch)
        groups.setdefault((message_id, batch), []).append(found)
    return {group[0].id: group for group in groups.values()}


def waiting_of(session: Session, accounts: Collection[str], most: int) -> int:
    """Return the number of a person's open proposals, counted up to ``most``."""
    counted = session.connection().execute(_WAITING_OF, {"accounts": list(accounts), "most": most})
    return int(counted.scalar_one())


def room(session: Session, bounds: Bounds, conversation_id: str, accounts: Collection[str]) -> AnswerRoom:
    """Return the number of proposals that the next answer may open, for a person with these accounts."""
    counted = {
        "conversation_id": conversation_id,
        "most_here": bounds.open_in_conversation,
        "accounts": list(accounts),
        "most": bounds.open_by_person,
    }
    return bounds.room(*session.connection().execute(_WAITING_HERE_AND_OF, counted).one())


def of_conversation(session: Session, conversation_id: str) -> list[Proposal]:
    return _read(session, _OF_CONVERSATION, conversation_id=conversation_id)


def find_declined_before(session: Session, found: Sequence[Proposal]) -> dict[str, Proposal]:
    """Return for each proposal, by id, the newest equal call of its conversation that was declined."""
    waiting = [p for p in found if p.state is State.PROPOSED]
    if not waiting:
        return {}
    where, what = list({p.conversation_id for p in waiting}), list({p.digest for p in waiting})
    found = _read(session, _DECLINED_BEFORE, conversations=where, digests=what)
    newest = {(p.conversation_id, p.digest): p for p in found}
    pairs = {p.id: newest.get((p.conversation_id, p.digest)) for p in waiting}
    return {ident: before for ident, before in pairs.items() if before}


def in_states(session: Session, states: Sequence[State], limit: int = 200) -> list[Proposal]:
    """Return proposals, newest first, without a check of who may see them."""
    return list_seen(session, Reach(frozenset(), everything=True), states, limit)


class Reach(NamedTuple):
    """The search space of a query: the requests of ``accounts``, or ``everything``.

    ``named``: also the proposals that these accounts asked for, are named in or voted on, except in a list of
    one's own.
    """

    accounts: frozenset[str]
    everything: bool
    named: frozenset[str] = frozenset()


def list_seen(
    session: Session,
    reach: Reach,
    states: Sequence[State],
    limit: int = 200,
    before: Mark | None = None,
    only: ProposalFilter = ProposalFilter(),  # noqa: B008 - frozen
) -> list[Proposal]:
    """Return a page of the proposals within reach, in the order of ``only``, after the mark ``before``.

    Each part (a state of all, a state of one requester) is read from an index in the order of changes and no
    further than ``limit``, so a page costs the same however much there is. Other filters are not indexed and
    may scan the table, as may the order of expiry.
    """
    parts = [_TABLE.c.state == state for state in states]
    if only.own or not reach.everything:
        also = reach.accounts | reach.named
        named = select(_DECIDERS.c.proposal_id).where(_DECIDERS.c.account.in_(also))
        own = [_TABLE.c.requester == each for each in sorted(reach.accounts if only.own else also)]
        parts = [whose & state for whose in own for state in parts]
        if not only.own:
            parts.append(_TABLE.c.id.in_(named) & _TABLE.c.state.in_(states))
    soonest = only.order is Order.EXPIRES
    spot = (_TABLE.c.expires_at if soonest else _TABLE.c.updated_at, _TABLE.c.id)
    order = spot if soonest else _FALLING
    further: Any = true()
    if before:
        if soonest:
            further = tuple_(*spot) > tuple_(*before)
        else:
            further = tuple_(*spot) < tuple_(*before)
    for column, value in (("tool_name", only.tool), ("kind", only.kind), ("level", only.level)):
        if value is not None:
            further &= _TABLE.c[column] == value
    if only.words:
        said = (_TABLE.c.description, _TABLE.c.tool_name, _TABLE.c.requester_name)
        further &= or_(*(column.icontains(only.words, autoescape=True) for column in said))
    if only.accounts is not None:
        further &= _TABLE.c.requester.in_(sorted(only.accounts))
    if only.channel:
        there = select(_CONVERSATION.c.id).where(_CONVERSATION.c.channel == only.channel)
        further &= _TABLE.c.conversation_id.in_(there)
    first = [
        select(select(*spot).where(part, further).order_by(*order).limit(limit).subquery()) for part in parts
    ]
    found = union(*first).subquery()
    placed = [found.c[each.name] if soonest else found.c[each.name].desc() for each in spot]
    page = select(found.c.id).order_by(*placed).limit(limit)
    return _read(session, ALL.where(_TABLE.c.id.in_(page)).order_by(*order))


def soonest(
    session: Session, scope: str = EVERYWHERE, limit: int | None = None
) -> tuple[list[Proposal], int]:
    """Return the open proposals in a scope (see `covers`), in order of expiry, and the number of all."""
    there = (
        select(_TABLE.c.id)
        .join(_CONVERSATION, _CONVERSATION.c.id == _TABLE.c.conversation_id)
        .where(_IS_PROPOSED, inside(scope), _TABLE.c.kind != kinds.SUGGESTION.name)
    )
    order = (_TABLE.c.expires_at, _TABLE.c.created_at, _TABLE.c.id)
    page = there.order_by(*order).limit(limit)
    found = _read(session, ALL.where(_TABLE.c.id.in_(page)).order_by(*order))
    many = len(found)
    if many == limit:
        many = session.connection().execute(select(func.count()).select_from(there.subquery())).scalar_one()
    return found, many


def list_waiting_of(session: Session, card_ids: Any) -> list[Proposal]:
    """Return what is open of these cards, soonest to expire first. ``card_ids``: a subquery or ids."""
    shown = _TABLE.c.id.in_(card_ids) | _TABLE.c.batch.in_(card_ids)
    order = (_TABLE.c.expires_at, _TABLE.c.created_at, _TABLE.c.id)
    return _read(session, ALL.where(shown, _IS_PROPOSED).order_by(*order))


def starting_with(session: Session, prefix: str) -> list[Proposal]:
    """Return the proposals whose id begins with ``prefix``; at most two, to see an ambiguity."""
    return _read(session, ALL.where(starts_with(_TABLE.c.id, prefix)).limit(2))


def last_of(
    session: Session, tool_name: str, version: str, since: datetime, most: int
) -> list[Mapping[str, Any]]:
    """Return the arguments of a tool's last calls since then, newest first, among the last of all tools."""
    newest = select(_TABLE.c.id).where(_TABLE.c.created_at >= since)
    newest = newest.order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc()).limit(_LAST)
    found = select(_TABLE.c.arguments).where(
        _TABLE.c.id.in_(newest), _TABLE.c.tool_name == tool_name, _TABLE.c.tool_version == version
    )
    return list(
        session.connection().execute(found.order_by(_TABLE.c.created_at.desc()).limit(most)).scalars()
    )


def open_in(session: Session, conversation_id: str) -> list[Proposal]:
    """Return the open and running proposals of a conversation, in the order they were asked for."""
    return [p for p in of_conversation(session, conversation_id) if p.state in OPEN]


def list_of_kind(session: Session, conversation_id: str, kind: ProposalKind) -> list[Proposal]:
    """Return the proposals of one kind in a conversation, in the order they were asked for."""
    here = ALL.where(_TABLE.c.conversation_id == conversation_id, _TABLE.c.kind == kind.name)
    return _read(session, here.order_by(_TABLE.c.message_id, _TABLE.c.position))


def list_due(session: Session, now: datetime, limit: int) -> list[Proposal]:
    """Open proposals whose time is up."""
    late = ALL.where(text(WAITS), _TABLE.c.expires_at <= now)
    return _read(session, late.order_by(_TABLE.c.expires_at, _TABLE.c.id).limit(limit))


def waiting_after(session: Session, after: str, limit: int) -> list[Proposal]:
    """Open proposals whose id comes after this one, in the order of their ids."""
    return _read(session, ALL.where(text(WAITS), _TABLE.c.id > after).order_by(_TABLE.c.id).limit(limit))


def calling(session: Session, what: str, now: datetime, limit: int) -> list[Proposal]:
    """Open proposals whose time to ``warn``, ``remind``, ``notify`` or ``escalate`` has come."""
    due_at = _TABLE.c[f"{what}_at"]
    return _read(session, ALL.where(text(WAITS), due_at <= now).order_by(due_at).limit(limit))


def list_approved(session: Session) -> list[str]:
    """Return the ids of proposals that wait to be run."""
    return _ids(session, IS_MOVING, _TABLE.c.state == State.APPROVED)


def undo_over(session: Session, now: datetime, most: int) -> list[str]:
    """Return the ids of proposals whose time for Undo is over."""
    due = _TABLE.c.undo_until
    late = select(_TABLE.c.id).where(due.is_not(None), due <= now).order_by(due).limit(most)
    return list(session.connection().execute(late).scalars())


def stopping(session: Session, among_these: Collection[str]) -> list[str]:
    """Return the ids of running proposals that someone wants stopped."""
    stopped = (_TABLE.c.state == State.EXECUTING) & (_TABLE.c.cause == Cause.STOPPED)
    return _ids(session, stopped, _TABLE.c.id.in_(among_these))


def _read(session: Session, found: Any, **values: Any) -> list[Proposal]:
    return [from_row(row) for row in session.connection().execute(found, values)]


def _ids(session: Session, *which: Any) -> list[str]:
    return list(session.connection().execute(select(_TABLE.c.id).where(*which)).scalars())


def from_row(row: Row[Any]) -> Proposal:
    read = {name: read(getattr(row, name)) for name, (_, read) in _CONVERTED.items()}
    return value_of(
        Proposal,
        row,
        **read,
        kind=find_kind(row.kind, called=bool(row.call_id)),
        risk=Risk(Level(row.level), row.risk_reason, vouched=row.vouched is not False),
        requester=Actor.parse(row.requester, row.requester_name),
        ttl=timedelta(seconds=row.ttl_seconds),
    )


def to_row(p: Proposal) -> dict[str, Any]:
    """Return the columns that the audit row covers: neither the process nor the progress nor the inverse."""
    row = {name: getattr(p, name) for name in _SAME}
    row |= {name: keep(getattr(p, name)) for name, (keep, _) in _CONVERTED.items()}
    row |= {
        "kind": p.kind.name,
        "level": p.risk.level,
        "risk_reason": p.risk.reason,
        "vouched": None if p.risk.vouched else False,
        "requester": str(p.requester),
        "requester_name": p.requester.name,
        "ttl_seconds": p.ttl.total_seconds(),
        "idempotency_key": p.idempotency_key,
    }
    return storable(row) | {"arguments": dict(p.arguments)}  # which is approved to the letter


def _same(value: Any) -> Any:
    return value


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: convert(value) if value else None


def _fields_kept(fields: Iterable[PreviewField]) -> list[list[Any]]:
    return [[f.field, f.old_value, f.new_value, *([True] if f.titled else [])] for f in fields]


def _fields_read(kept: list[list[Any]]) -> tuple[PreviewField, ...]:
    return tuple(PreviewField(*each) for each in storable(kept))  # an older release kept what tools gave


def _deciders_read(kept: dict[str, Any]) -> Deciders:
    lists = {name: tuple(kept.get(name, ())) for name in ("roles", "people", "also_escalated")}
    return Deciders(**kept | lists)


def _deciders_kept(deciders: Deciders) -> dict[str, Any]:
    """Return them as JSON; a field that earlier releases don't know only where it is used."""
    return {name: value for name, value in asdict(deciders).items() if value or name != "also_escalated"}


def _steps_kept(steps: tuple[DueStep, ...]) -> list[list[Any]] | None:
    return [step.as_json for step in steps] or None


def _steps_read(kept: list[list[Any]] | None) -> tuple[DueStep, ...]:
    return tuple(map(DueStep.from_json, kept or ()))


def _votes_kept(votes: tuple[Vote, ...]) -> list[list[Any]]:
    return [
        [v.person_id, str(v.actor), v.actor.name, v.verb, v.reason, v.at.isoformat(), *_list_names(v.absent)]
        for v in votes
    ]


def _list_names(actor: Actor | None) -> list[str]:
    if actor:
        return [str(actor), actor.name]
    return []


def _votes_read(kept: list[list[Any]]) -> tuple[Vote, ...]:
    return tuple(
        Vote(
            person,
            Actor.parse(actor, name),
            verb,
            reason,
            datetime.fromisoformat(at),
            Actor.parse(*absent) if absent else None,
        )
        for person, actor, name, verb, reason, at, *absent in kept
    )


def _edits_kept(edits: tuple[Edited, ...]) -> list[list[Any]] | None:
    return [[each.round, each.by, _fields_kept(each.fields)] for each in edits] or None


def _edits_read(kept: list[list[Any]] | None) -> tuple[Edited, ...]:
    return tuple(Edited(round_, by, _fields_read(fields)) for round_, by, fields in kept or ())


def _reread_kept(found: tuple[Reread, ...]) -> list[list[Any]] | None:
    return [[each.field, each.now, each.approved, each.agrees] for each in found] or None


def _reread_read(kept: list[list[Any]] | None) -> tuple[Reread, ...]:
    return tuple(Reread(*each) for each in kept or ())


def _inverse_kept(inverse: Inverse | None) -> dict[str, Any] | None:
    if inverse is None:
        return None
    return {**asdict(inverse), "fields": _fields_kept(inverse.fields)}


def _inverse_read(kept: dict[str, Any] | None) -> Inverse | None:
    if kept is None:
        return None
    return Inverse(**{**kept, "fields": _fields_read(kept["fields"])})


def _annotations_kept(lines: tuple[Annotation, ...]) -> list[list[Any]] | None:
    return [[each.name, each.text, each.is_late] for each in lines] or None


def _annotations_read(kept: list[list[Any]] | None) -> tuple[Annotation, ...]:
    return tuple(Annotation(*each) for each in kept or ())


_CONVERTED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "state": (_same, State),
    "cause": (_same, _optional(Cause)),
    "preview": (_fields_kept, _fields_read),
    "deciders": (_deciders_kept, _deciders_read),
    "steps": (_steps_kept, _steps_read),
    "votes": (_votes_kept, _votes_read),
    "edits": (_edits_kept, _edits_read),
    "trial": (_optional(lambda trial: trial.as_json), _optional(Trial.from_json)),
    "read_again": (_reread_kept, _reread_read),
    "inverse": (_inverse_kept, _inverse_read),
    "annotations": (_annotations_kept, _annotations_read),
    "connection": (_optional(lambda connection: connection.as_json), _optional(Connection.from_json)),
    "ticked": (lambda ticked: list(ticked) or None, lambda kept: tuple(kept or ())),
    "remind_every": (_optional(timedelta.total_seconds), _optional(lambda s: timedelta(seconds=s))),
}
"""Fields whose column does not hold them as they are: how each is kept, and how it is read."""
_SAME = [each.name for each in fields(Proposal) if each.name not in (*_APART, *_CONVERTED)]


def store_schema(session: Session, name: str, version: str, parameters: Mapping[str, Any]) -> None:
    """Keep a tool's JSON schema, once for each version."""
    row = {"name": name, "version": version, "parameters": dict(parameters)}
    session.execute(insert_or_ignore(session, ToolVersionRow), row)


def schema(session: Session, name: str, version: str) -> Mapping[str, Any] | None:
    """Return the schema as it was kept; None where nothing was ever proposed of that version."""
    return database.once(session, (ToolVersionRow, name, version), lambda: _schema(session, name, version))


def was_called(session: Session, name: str) -> bool:
    """Return whether a tool of that name was ever proposed."""
    known = select(ToolVersionRow.name).where(ToolVersionRow.name == name).limit(1)
    return session.execute(known).first() is not None


def _schema(session: Session, name: str, version: str) -> Mapping[str, Any] | None:
    row = session.get(ToolVersionRow, (name, version))
    if row is not None:
        return row.parameters
    return None


def keep_inverse(session: Session, p: Proposal, arguments: Mapping[str, Any], now: datetime) -> None:
    """Keep the arguments of the call that undoes ``p``; those of an earlier run are replaced.

    What was there before may be long and private, so it is no part of the record: it goes with its
    conversation. That it is what was kept is told by the digest in the proposal.
    """
    row = {"id": p.id, "conversation_id": p.conversation_id, "arguments": dict(arguments), "created_at": now}
    insert_or_replace(session, InverseRow, row)


def inverse_of(session: Session, proposal_id: str) -> Mapping[str, Any] | None:
    """Return the arguments of the call that undoes it; None where none were kept, or no longer."""
    found = session.get(InverseRow, proposal_id)
    return found.arguments if found else None


def delete_inverses(session: Session, conversation_ids: Sequence[str]) -> None:
    """Delete what would undo what was done in these conversations."""
    session.execute(delete(InverseRow).where(col(InverseRow.conversation_id).in_(conversation_ids)))


def purge_inverses(session: Session, before: datetime, most: int) -> int:
    """Forget up to ``most`` of what would undo something since before then; returns how many."""
    return delete_older(session, InverseRow, "created_at", before, most)

"""Proposals as rows: queries, with the schemas of proposed tools and the arguments of calls that undo others.

A proposal *waits* while people can decide it. It is *open* until it has ended (`OPEN`), and *moving* while it
is approved or runs (`IS_MOVING`). A list for a person is limited to their `SearchScope`, the proposals that
they may see, and is read a page at a time (`list_within_reach`). Changes of proposals are in
``bot/store/transitions.py``, the conversion of rows in ``bot/store/proposal_rows.py``.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, literal_column, or_, text, tuple_, union
from sqlmodel import Session, col, select

from bot.domain import kinds
from bot.domain.proposal_lists import Order, PageCursor, ProposalFilter
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, ProposalKind, Sibling
from bot.domain.risks import Level, Risk
from bot.domain.rules import EVERYWHERE
from bot.domain.work_limits import AnswerRoom, Bounds
from bot.store import database
from bot.store.inserts import insert_or_ignore, insert_or_update
from bot.store.proposal_rows import from_row
from bot.store.tables.conversations import ConversationRow, is_inside
from bot.store.tables.proposals import WAITS, DeciderRow, InverseRow, ProposalRow, ToolVersionRow
from bot.store.tables.row import delete_older, is_one_of, starts_with, table_of

OPEN = (State.PROPOSED, State.APPROVED, State.EXECUTING)
"""The states of proposals that have not ended."""
MIN_ID_CHARS = 4
"""The fewest characters of an ID that people may type: a slip in a shorter ID would name another proposal."""
_RECENT_PROPOSALS = 2000  # the newest proposals of all tools, among which the calls of a tool are searched

_TABLE = table_of(ProposalRow)
_CONVERSATION = table_of(ConversationRow)
_DECIDERS = table_of(DeciderRow)

# Statements that run often are built once: building one costs several times what running it costs.
# States are literals: each index is over the rows of some states alone, and a database can't choose it for a
# state that is a parameter.
# `WAITS` and `_IS_PROPOSED` are the same condition. With `WAITS`, SQLite uses the index of just these rows:
# it is for queries over all waiting proposals. With `_IS_PROPOSED`, another condition can choose the index.
_IS_PROPOSED = _TABLE.c.state == literal_column(f"'{State.PROPOSED}'")
IS_MOVING = is_one_of(_TABLE.c.state, (State.APPROVED, State.EXECUTING))
_IN_CONVERSATION = _TABLE.c.conversation_id == bindparam("conversation_id")
_SELECT_PROGRESS = select(_TABLE.c.id, _TABLE.c.progress).where(IS_MOVING, _TABLE.c.progress.is_not(None))

_UNREAD_COLUMNS = ("idempotency_key", "owner", "chat")  # a `Proposal` is made without these
SELECT_PROPOSALS = select(*(column for column in _TABLE.columns if column.name not in _UNREAD_COLUMNS))
SELECT_BY_ID = SELECT_PROPOSALS.where(_TABLE.c.id == bindparam("id"))
_SELECT_OF_MESSAGES = SELECT_PROPOSALS.where(
    _TABLE.c.message_id.in_(bindparam("message_ids", expanding=True))
).order_by(_TABLE.c.message_id, _TABLE.c.position)
_SELECT_OF_CONVERSATION = SELECT_PROPOSALS.where(_IN_CONVERSATION).order_by(
    _TABLE.c.message_id, _TABLE.c.position
)
_SELECT_OF_BATCH = SELECT_PROPOSALS.where(_TABLE.c.batch == bindparam("batch")).order_by(_TABLE.c.position)
_SELECT_DECLINED_BEFORE = SELECT_PROPOSALS.where(
    _TABLE.c.state == State.DECLINED,
    _TABLE.c.conversation_id.in_(bindparam("conversations", expanding=True)),
    _TABLE.c.digest.in_(bindparam("digests", expanding=True)),
).order_by(_TABLE.c.decided_at)
# the ids of the open proposals of an answer of the model
OPEN_OF_ANSWER = select(_TABLE.c.id).where(
    _TABLE.c.message_id == bindparam("message_id"), is_one_of(_TABLE.c.state, OPEN)
)
_SELECT_SIBLINGS = (
    select(*(_TABLE.c[name] for name in ("message_id", "id", "state", "round", "level", "batch")))
    .where(
        _TABLE.c.message_id.in_(bindparam("message_ids", expanding=True)),
        _TABLE.c.kind != kinds.QUESTION.name,
    )
    .order_by(_TABLE.c.message_id, _TABLE.c.position)
)
_BY_EXPIRY = (_TABLE.c.expires_at, _TABLE.c.created_at, _TABLE.c.id)


def _count_waiting(condition: Any, limit_parameter: str) -> Any:
    """Return a query that counts waiting proposals with a condition.

    ``limit_parameter``: the name of the query's parameter up to which it counts.
    """
    first = select(_TABLE.c.id).where(condition, _IS_PROPOSED).limit(bindparam(limit_parameter)).subquery()
    return select(func.count()).select_from(first)


_COUNT_WAITING_OF = _count_waiting(
    _TABLE.c.requester.in_(bindparam("accounts", expanding=True)), "max_of_person"
)
_COUNT_WAITING_HERE_AND_OF = select(
    _count_waiting(_IN_CONVERSATION, "max_here").scalar_subquery(), _COUNT_WAITING_OF.scalar_subquery()
)


def load_progress(session: Session) -> dict[str, str]:
    """Return the progress of running proposals by id, as far as their tools report it."""
    return dict(session.connection().execute(_SELECT_PROGRESS).all())


def get(session: Session, proposal_id: str) -> Proposal | None:
    """Return the proposal with this id, or None."""
    row = session.connection().execute(SELECT_BY_ID, {"id": proposal_id}).first()
    return from_row(row) if row else None


def list_of_message(session: Session, message_id: int) -> list[Proposal]:
    """Return the proposals of one answer, in the order they were asked for."""
    return list_of_messages(session, [message_id])


def list_of_messages(session: Session, message_ids: Sequence[int]) -> list[Proposal]:
    """Return the proposals of these answers, each answer's in the order they were asked for."""
    if not message_ids:
        return []
    return _read(session, _SELECT_OF_MESSAGES, message_ids=message_ids)


def list_of_batch(session: Session, batch: str) -> list[Proposal]:
    """Return the proposals of a batch, in the order they were asked for.

    ``batch``: its id, which is the id of its first proposal.
    """
    return _read(session, _SELECT_OF_BATCH, batch=batch)


def list_on_card(session: Session, proposal: Proposal) -> list[Proposal]:
    """Return the proposals on the card of a proposal: its batch, or the proposal alone."""
    if proposal.batch:
        return list_of_batch(session, proposal.batch)
    return [proposal]


def list_group_of(session: Session, proposal: Proposal) -> list[Proposal]:
    """Return the proposals that are decided together with this one.

    The group is its batch or, outside a batch, the proposals of its answer that are in no batch. Questions
    are a group of their own.
    """
    if proposal.batch:
        return list_of_batch(session, proposal.batch)
    is_question = proposal.kind.is_answer  # the decision on a proposal of such a kind is an answer
    return [
        other
        for other in list_of_message(session, proposal.message_id)
        if other.batch is None and other.kind.is_answer is is_question
    ]


def load_siblings(session: Session, message_ids: Collection[int]) -> dict[str, list[Sibling]]:
    """Return the groups of each answer by the id of their first proposal, whose card has the shared buttons.

    A batch is one group; the other proposals of an answer are another. Questions are in none.
    """
    if not message_ids:
        return {}
    groups: dict[tuple[int, str | None], list[Sibling]] = {}
    for row in session.connection().execute(_SELECT_SIBLINGS, {"message_ids": list(message_ids)}):
        sibling = Sibling(row.id, State(row.state), row.round, Risk(Level(row.level), ""), row.batch)
        groups.setdefault((row.message_id, row.batch), []).append(sibling)
    return {group[0].id: group for group in groups.values()}


def count_waiting_of(session: Session, accounts: Collection[str], limit: int) -> int:
    """Return the number of a person's waiting proposals, counted up to ``limit``."""
    values = {"accounts": list(accounts), "max_of_person": limit}
    return int(session.connection().execute(_COUNT_WAITING_OF, values).scalar_one())


def load_answer_room(
    session: Session, bounds: Bounds, conversation_id: str, accounts: Collection[str]
) -> AnswerRoom:
    """Return the number of proposals that the next answer may open, for a person with these accounts.

    The bounds are those on waiting proposals of a conversation and of a person.
    """
    values = {
        "conversation_id": conversation_id,
        "max_here": bounds.open_in_conversation,
        "accounts": list(accounts),
        "max_of_person": bounds.open_by_person,
    }
    waiting_here, waiting_of_person = session.connection().execute(_COUNT_WAITING_HERE_AND_OF, values).one()
    return bounds.find_room(waiting_here, waiting_of_person)


def list_of_conversation(session: Session, conversation_id: str) -> list[Proposal]:
    """Return all proposals of a conversation, in the order they were asked for."""
    return _read(session, _SELECT_OF_CONVERSATION, conversation_id=conversation_id)


def find_declined_before(session: Session, proposals: Sequence[Proposal]) -> dict[str, Proposal]:
    """Return for each waiting proposal, by id, the newest equal call of its conversation that was declined.

    Equal calls have the same `Proposal.digest`.
    """
    waiting = [proposal for proposal in proposals if proposal.state is State.PROPOSED]
    if not waiting:
        return {}
    declined = _read(
        session,
        _SELECT_DECLINED_BEFORE,
        conversations=list({proposal.conversation_id for proposal in waiting}),
        digests=list({proposal.digest for proposal in waiting}),
    )
    newest = {(proposal.conversation_id, proposal.digest): proposal for proposal in declined}
    before = {}
    for proposal in waiting:
        equal = newest.get((proposal.conversation_id, proposal.digest))
        if equal is not None:
            before[proposal.id] = equal
    return before


def list_in_states(session: Session, states: Sequence[State], limit: int = 200) -> list[Proposal]:
    """Return proposals in these states, the last changed first, without a check of who may see them."""
    return list_within_reach(session, SearchScope(frozenset(), everything=True), states, limit)


class SearchScope(NamedTuple):
    """The limits of a person's queries: a proposal is within reach if one of these accounts took part in it.

    An account takes part in a proposal that it requested, that names it to decide, or that it voted on.
    """

    accounts: frozenset[str]
    """The accounts of the person."""
    everything: bool
    """True: all proposals are within reach. The caller hides those that the person may not see."""
    deciding_for: frozenset[str] = frozenset()
    """Other accounts and user groups for which the person may decide."""


def list_within_reach(
    session: Session,
    reach: SearchScope,
    states: Sequence[State],
    limit: int = 200,
    before: PageCursor | None = None,
    only: ProposalFilter = ProposalFilter(),  # noqa: B008 - frozen
) -> list[Proposal]:
    """Return a page of the proposals within reach, filtered and ordered by ``only``.

    ``limit``: the most proposals of a page. ``before``: the mark at the end of the page before, a time and an
    id; the page begins after it.

    A list has parts: one state of all proposals, or one state of one requester's. Each part is read from an
    index in the order of changes, and no further than ``limit``. So a page costs the same however many
    proposals there are. Other filters have no index and may scan the table, as may the order of expiry.
    """
    by_expiry = only.order is Order.EXPIRES
    columns: Any = (_TABLE.c.expires_at, _TABLE.c.id) if by_expiry else (_TABLE.c.updated_at, _TABLE.c.id)
    order = _sort(columns, by_expiry=by_expiry)
    conditions = _list_conditions(only)
    if before:
        position, mark = tuple_(*columns), tuple_(*before)
        conditions.insert(0, position > mark if by_expiry else position < mark)

    # the first ids of each part; among these, the ids of the page; then the full rows of the page
    ids_of_parts = []
    for part in _list_parts(reach, states, own=only.only_own):
        first_of_part: Any = select(*columns).where(part, *conditions).order_by(*order).limit(limit)
        ids_of_parts.append(select(first_of_part.subquery()))
    candidates = union(*ids_of_parts).subquery()
    candidate_order = _sort([candidates.c[column.name] for column in columns], by_expiry=by_expiry)
    page_ids = select(candidates.c.id).order_by(*candidate_order).limit(limit)
    return _read(session, SELECT_PROPOSALS.where(_TABLE.c.id.in_(page_ids)).order_by(*order))


def _sort(columns: Sequence[Any], *, by_expiry: bool) -> list[Any]:
    """Return the order by these columns: the first to expire comes first, or else the last changed."""
    if by_expiry:
        return list(columns)
    return [column.desc() for column in columns]


def _list_parts(reach: SearchScope, states: Sequence[State], *, own: bool) -> list[Any]:
    """Return the conditions of the parts from which a list is read; there is an index for each part.

    ``own``: only requests of the accounts of ``reach``.
    """
    in_each_state = [_TABLE.c.state == state for state in states]
    if reach.everything and not own:
        return in_each_state
    requesters = reach.accounts if own else reach.accounts | reach.deciding_for
    parts = []
    for requester in sorted(requesters):
        is_theirs = _TABLE.c.requester == requester
        parts += [is_theirs & in_state for in_state in in_each_state]
    if not own:
        named = select(_DECIDERS.c.proposal_id).where(_DECIDERS.c.account.in_(requesters))
        parts.append(_TABLE.c.id.in_(named) & _TABLE.c.state.in_(states))
    return parts


def _list_conditions(only: ProposalFilter) -> list[Any]:
    """Return the SQL conditions of the filter, apart from ``only_own`` and the order."""
    conditions: list[Any] = []
    if only.tool is not None:
        conditions.append(_TABLE.c.tool_name == only.tool)
    if only.kind is not None:
        conditions.append(_TABLE.c.kind == only.kind)
    if only.level is not None:
        conditions.append(_TABLE.c.level == only.level)
    if only.contained_text:
        searched = (_TABLE.c.description, _TABLE.c.tool_name, _TABLE.c.requester_name)
        conditions.append(
            or_(*(column.icontains(only.contained_text, autoescape=True) for column in searched))
        )
    if only.accounts is not None:
        conditions.append(_TABLE.c.requester.in_(sorted(only.accounts)))
    if only.channel:
        in_channel = select(_CONVERSATION.c.id).where(_CONVERSATION.c.channel == only.channel)
        conditions.append(_TABLE.c.conversation_id.in_(in_channel))
    return conditions


def list_soonest(
    session: Session, scope: str = EVERYWHERE, limit: int | None = None
) -> tuple[list[Proposal], int]:
    """Return the first ``limit`` waiting proposals in a scope, in order of expiry, and the number of all.

    A scope is a place for rules, as in `bot.domain.rules.covers`. Suggestions are left out.
    """
    in_scope = (
        select(_TABLE.c.id)
        .join(_CONVERSATION, _CONVERSATION.c.id == _TABLE.c.conversation_id)
        .where(_IS_PROPOSED, is_inside(scope), _TABLE.c.kind != kinds.SUGGESTION.name)
    )
    page = in_scope.order_by(*_BY_EXPIRY).limit(limit)
    proposals = _read(session, SELECT_PROPOSALS.where(_TABLE.c.id.in_(page)).order_by(*_BY_EXPIRY))
    if len(proposals) != limit:
        return proposals, len(proposals)
    count = select(func.count()).select_from(in_scope.subquery())
    return proposals, session.connection().execute(count).scalar_one()


def list_waiting_on_cards(session: Session, card_ids: Any) -> list[Proposal]:
    """Return the waiting proposals on these cards, soonest to expire first.

    ``card_ids``: the `Proposal.card_id` of each card, or a subquery that selects them.
    """
    is_shown = _TABLE.c.id.in_(card_ids) | _TABLE.c.batch.in_(card_ids)
    return _read(session, SELECT_PROPOSALS.where(is_shown, _IS_PROPOSED).order_by(*_BY_EXPIRY))


def find_by_prefix(session: Session, prefix: str) -> list[Proposal]:
    """Return the proposals whose id begins with ``prefix``; at most two, to see an ambiguity."""
    return _read(session, SELECT_PROPOSALS.where(starts_with(_TABLE.c.id, prefix)).limit(2))


def list_recent_arguments(
    session: Session, tool_name: str, version: str, since: datetime, limit: int
) -> list[Mapping[str, Any]]:
    """Return the arguments of a tool's last calls since then, newest first.

    They are searched among the newest `_RECENT_PROPOSALS` of all tools, so the search for the calls of a rare
    tool costs no more.
    """
    newest = (
        select(_TABLE.c.id)
        .where(_TABLE.c.created_at >= since)
        .order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc())
        .limit(_RECENT_PROPOSALS)
    )
    arguments = (
        select(_TABLE.c.arguments)
        .where(_TABLE.c.id.in_(newest), _TABLE.c.tool_name == tool_name, _TABLE.c.tool_version == version)
        .order_by(_TABLE.c.created_at.desc())
        .limit(limit)
    )
    return list(session.connection().execute(arguments).scalars())


def list_open_in(session: Session, conversation_id: str) -> list[Proposal]:
    """Return the proposals of a conversation that have not ended, in the order they were asked for."""
    proposals = list_of_conversation(session, conversation_id)
    return [proposal for proposal in proposals if proposal.state in OPEN]


def list_of_kind(session: Session, conversation_id: str, kind: ProposalKind) -> list[Proposal]:
    """Return the proposals of one kind in a conversation, in the order they were asked for."""
    of_kind = SELECT_PROPOSALS.where(_TABLE.c.conversation_id == conversation_id, _TABLE.c.kind == kind.name)
    return _read(session, of_kind.order_by(_TABLE.c.message_id, _TABLE.c.position))


def list_due_to_expire(session: Session, now: datetime, limit: int) -> list[Proposal]:
    """Return proposals that wait for people and whose time to expire has come, the first to expire first."""
    due = SELECT_PROPOSALS.where(text(WAITS), _TABLE.c.expires_at <= now)
    return _read(session, due.order_by(_TABLE.c.expires_at, _TABLE.c.id).limit(limit))


def list_waiting_after(session: Session, after: str, limit: int) -> list[Proposal]:
    """Return proposals that wait for people and whose id is greater than ``after``, in the order of ids."""
    waiting = SELECT_PROPOSALS.where(text(WAITS), _TABLE.c.id > after)
    return _read(session, waiting.order_by(_TABLE.c.id).limit(limit))


def list_due_for_action(session: Session, action: str, now: datetime, limit: int) -> list[Proposal]:
    """Return proposals that wait for people and whose time for an action has come, the first due first.

    ``action``: ``warn``, ``remind``, ``notify`` or ``escalate``.
    """
    due_at = _TABLE.c[f"{action}_at"]
    return _read(session, SELECT_PROPOSALS.where(text(WAITS), due_at <= now).order_by(due_at).limit(limit))


def list_approved(session: Session) -> list[str]:
    """Return the ids of approved proposals, which wait to be run."""
    # `IS_MOVING` excludes nothing: with it, the database chooses the index of moving proposals
    return _read_ids(session, IS_MOVING, _TABLE.c.state == State.APPROVED)


def list_undo_expired(session: Session, now: datetime, limit: int) -> list[str]:
    """Return the ids of proposals whose time for Undo is over."""
    undo_until = _TABLE.c.undo_until
    expired = select(_TABLE.c.id).where(undo_until.is_not(None), undo_until <= now)
    return list(session.connection().execute(expired.order_by(undo_until).limit(limit)).scalars())


def list_stop_requested(session: Session, running: Collection[str]) -> list[str]:
    """Return the ids, among these running proposals, that someone wants stopped."""
    is_stopped = (_TABLE.c.state == State.EXECUTING) & (_TABLE.c.cause == Cause.STOPPED)
    return _read_ids(session, is_stopped, _TABLE.c.id.in_(running))


def _read(session: Session, statement: Any, **values: Any) -> list[Proposal]:
    return [from_row(row) for row in session.connection().execute(statement, values)]


def _read_ids(session: Session, *conditions: Any) -> list[str]:
    return list(session.connection().execute(select(_TABLE.c.id).where(*conditions)).scalars())


def store_schema(session: Session, name: str, version: str, parameters: Mapping[str, Any]) -> None:
    """Store a tool's JSON schema, once for each version."""
    row = {"name": name, "version": version, "parameters": dict(parameters)}
    session.execute(insert_or_ignore(session, ToolVersionRow), row)


def load_schema(session: Session, name: str, version: str) -> Mapping[str, Any] | None:
    """Return the stored schema; None where no call of that version was ever proposed."""

    def read() -> Mapping[str, Any] | None:
        row = session.get(ToolVersionRow, (name, version))
        return row.parameters if row else None

    return database.read_once(session, (ToolVersionRow, name, version), read)


def was_called(session: Session, name: str) -> bool:
    """Return whether a tool of that name was ever proposed."""
    known = select(ToolVersionRow.name).where(ToolVersionRow.name == name).limit(1)
    return session.execute(known).first() is not None


def store_inverse(session: Session, proposal: Proposal, arguments: Mapping[str, Any], now: datetime) -> None:
    """Store the arguments of the call that undoes a proposal, in place of those from an earlier run.

    The arguments are no part of the audited record: the old values in them may be long and private, and are
    deleted with the conversation. The digest in the proposal proves that they were not changed.
    """
    row = {
        "id": proposal.id,
        "conversation_id": proposal.conversation_id,
        "arguments": dict(arguments),
        "created_at": now,
    }
    insert_or_update(session, InverseRow, row)


def find_inverse(session: Session, proposal_id: str) -> Mapping[str, Any] | None:
    """Return the arguments of the call that undoes a proposal; None where none are stored."""
    row = session.get(InverseRow, proposal_id)
    return row.arguments if row else None


def delete_inverses(session: Session, conversation_ids: Sequence[str]) -> None:
    """Delete the arguments of calls that undo proposals of these conversations."""
    session.execute(delete(InverseRow).where(col(InverseRow.conversation_id).in_(conversation_ids)))


def purge_inverses(session: Session, before: datetime, limit: int) -> int:
    """Delete up to ``limit`` inverse calls stored before a time; return their number."""
    return delete_older(session, InverseRow, "created_at", before, limit)

"""Counts of rows and the cost of turns, made on request: for metrics, reports of usage and budgets.

Metrics are read every few seconds, so nothing is counted twice: `count_all` counts all proposals once, and
`update_tally` adds the *moves* since, changes of state in the audit log. *Usage* is the number of tokens and
the cost of turns, the pieces of the agent's work.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, func, literal_column, or_, select
from sqlmodel import Session

from bot.domain.chat import Parts, UsageRow
from bot.domain.jobs import Work
from bot.domain.proposal_states import Cause, State
from bot.store import posted_cards
from bot.store.proposals import IS_MOVING
from bot.store.tables.audit import AuditRow, ChainEndRow
from bot.store.tables.conversations import ADDRESS_SHOWN, ConversationRow, MessageRow, TurnRow, is_inside
from bot.store.tables.proposals import CallbackRow, ProposalRow
from bot.store.tables.row import table_of
from bot.store.turns import IS_WANTED, OTHER_MODEL

_AUDIT = table_of(AuditRow)
_PROPOSAL = table_of(ProposalRow)
_TURN = table_of(TurnRow)
_MESSAGE = table_of(MessageRow)
_CALLBACK = table_of(CallbackRow)
_END = table_of(ChainEndRow)
_PLACE = table_of(ConversationRow)
# the address of a chat; a private chat is named only by its channel
_CHAT = case((_PLACE.c.private, _PLACE.c.channel), else_=ADDRESS_SHOWN)
_MAX_READ_ROWS = 5000  # the most rows of one read
MAX_GROUPS = 1000  # the most groups of usage in one answer
# usage by person or place is read by account or thread; the caller adds it up
_SUMMED_BY_CALLER = (Parts.PERSON, Parts.PLACE)
_MAX_SUMMED_BY_CALLER = 100_000  # the most accounts or threads that are read for such a sum
# ids before the last one that are read again: PostgreSQL may commit a row after a greater id
REREAD_IDS = 100
WEBHOOK = "webhook"
"""The kind of waiting work that is webhooks to send, next to the kinds of `Work`."""

# for `list_moves`: the rows of the audit log, each with the state of its proposal before it
_BEFORE = table_of(AuditRow).alias("before")
_STATE_BEFORE = (
    select(_BEFORE.c.state)
    .where(_BEFORE.c.proposal_id == _AUDIT.c.proposal_id, _BEFORE.c.version < _AUDIT.c.version)
    .order_by(_BEFORE.c.version.desc())
    .limit(1)
    .scalar_subquery()
)
_MOVES = (
    select(_AUDIT.c.id, _AUDIT.c.state, _AUDIT.c.at, _AUDIT.c.actor, _PROPOSAL.c.created_at)
    .add_columns(_STATE_BEFORE.label("before"))
    .join_from(_AUDIT, _PROPOSAL, _PROPOSAL.c.id == _AUDIT.c.proposal_id)
    .where(_AUDIT.c.id > bindparam("last_id"))
    .order_by(_AUDIT.c.id)
    .limit(_MAX_READ_ROWS)
)
_TOTAL_COST = select(func.coalesce(func.sum(_TURN.c.cost), 0.0)).where(_TURN.c.cost.is_not(None))


class Waiting(NamedTuple):
    """The waiting work of one kind."""

    row_count: int  # the number of rows that wait
    # the time since which the oldest row waits; None if none waits, or the time is not known
    since: datetime | None = None


class StateTally(NamedTuple):
    """The number of proposals in each state, as of one row of the audit log."""

    last_id: int  # the id of that row
    proposals: Mapping[str, int]  # by state
    unknown: int  # proposals that failed with an unknown outcome


class CurrentCounts(NamedTuple):
    """The current counts."""

    waiting: dict[str, Waiting]  # by kind: a `Work`, or `WEBHOOK`
    recorded: int  # rows of the audit log
    sealed: bool  # the newest row is sealed with a key


class Move(NamedTuple):
    """A change of a proposal's state."""

    state: str
    decided_after_seconds: float | None  # if a person decided: the seconds since the proposal was made
    before: str | None = None  # the state before; None for a new proposal


class TurnState(NamedTuple):
    """A turn of the agent, for its duration."""

    id: int
    state: str
    seconds: float | None  # the duration; None while it is under way


def count_all(session: Session) -> StateTally:
    """Count all proposals, which takes long. Later `update_tally` keeps the tally current."""
    execute = session.connection().execute
    last_id = execute(select(func.coalesce(func.max(_AUDIT.c.id), 0))).scalar_one()
    states = execute(select(_PROPOSAL.c.state, func.count()).group_by(_PROPOSAL.c.state)).all()
    return StateTally(last_id, dict(map(tuple, states)), _count_unknown(session))


def update_tally(session: Session, tally: StateTally) -> tuple[StateTally, list[Move]]:
    """Return the tally as of now, and the moves since."""
    last_id, moves = list_moves(session, tally.last_id)
    proposals = Counter(tally.proposals)
    for move in moves:
        proposals[move.state] += 1
        if move.before is not None:
            proposals[move.before] -= 1
    unknown = tally.unknown
    if any(State.FAILED in (move.state, move.before) for move in moves):
        unknown = _count_unknown(session)
    return StateTally(last_id, proposals, unknown), moves


def _count_unknown(session: Session) -> int:
    """Return the number of proposals that failed with an unknown outcome."""
    failed = (_PROPOSAL.c.state == State.FAILED) & (_PROPOSAL.c.cause == Cause.OUTCOME_UNKNOWN)
    found = select(func.count()).select_from(_PROPOSAL).where(failed)
    return int(session.connection().execute(found).scalar_one())


def count_waiting(session: Session) -> CurrentCounts:
    """Count the waiting work and the rows of the audit log."""
    execute = session.connection().execute
    counts = {
        Work.REDRAW: select(func.count()).where(posted_cards.IS_OUTDATED),
        Work.DELIVER: select(func.count()).where(~_MESSAGE.c.delivered),
        WEBHOOK: select(func.count()).where(~_CALLBACK.c.over),
    }
    waiting = {str(work): Waiting(execute(count).scalar_one()) for work, count in counts.items()}
    turns = select(func.count(), func.min(_TURN.c.created_at)).where(IS_WANTED)
    waiting[str(Work.TURN)] = Waiting(*execute(turns).one())
    approved = select(func.count(), func.min(_PROPOSAL.c.updated_at))
    # ``IS_MOVING`` excludes nothing: with it, the database chooses the index of moving proposals
    approved = approved.where(IS_MOVING, _PROPOSAL.c.state == State.APPROVED)
    waiting[str(Work.EXECUTE)] = Waiting(*execute(approved).one())
    end = execute(select(_END.c.number, _END.c.key)).one()
    return CurrentCounts(waiting, end.number, bool(end.key))


def list_moves(session: Session, last_id: int) -> tuple[int, list[Move]]:
    """Return the id of the newest row of the audit log, and the moves after ``last_id``."""
    found: list[Move] = []
    while rows := session.connection().execute(_MOVES, {"last_id": last_id}).all():
        found += [_make_move(row) for row in rows if row.state != row.before]
        last_id = rows[-1].id
    return last_id, found


def _make_move(row: Any) -> Move:
    is_decision = row.before == State.PROPOSED and row.state in (State.APPROVED, State.DECLINED)
    decided_after_seconds = None
    if is_decision and row.actor != "nod":
        decided_after_seconds = (row.at - row.created_at).total_seconds()
    return Move(row.state, decided_after_seconds, row.before)


def find_turns_under_way(session: Session) -> tuple[int, set[int]]:
    """Return the id of the newest turn, or 0, and the ids of the turns under way, for `list_turns`."""
    execute = session.connection().execute
    newest = execute(select(func.max(_TURN.c.id))).scalar() or 0
    return newest, set(execute(select(_TURN.c.id).where(IS_WANTED)).scalars())


def list_turns(session: Session, last_id: int, under_way: Collection[int]) -> list[TurnState]:
    """Return the turns from a little before ``last_id`` on (see `REREAD_IDS`), and those ``under_way``."""
    is_listed = _TURN.c.id > last_id - REREAD_IDS
    if under_way:  # with an empty list next to OR, all turns would be read
        is_listed |= _TURN.c.id.in_(under_way)
    columns = (_TURN.c.id, _TURN.c.state, _TURN.c.created_at, _TURN.c.ended_at)
    # a row in the state `OTHER_MODEL` is no turn: it has the cost of a call of another model
    turns = select(*columns).where(is_listed, _TURN.c.state != OTHER_MODEL).order_by(_TURN.c.id)
    return [
        TurnState(row.id, row.state, _compute_duration(row.created_at, row.ended_at))
        for row in session.connection().execute(turns)
    ]


def _compute_duration(begin: datetime, end: datetime | None) -> float | None:
    """Return the seconds between two times; None without an end."""
    if end is None:
        return None
    return (end - begin).total_seconds()


class _Grouping(NamedTuple):
    """The grouping of a report's rows."""

    key: Any  # the column by which they are grouped
    order: Any  # the order of the groups
    name: Any = literal_column("''")  # a column with the name of a group


def list_usage(
    session: Session, by: Parts, since: datetime, accounts: Collection[str] | None
) -> list[UsageRow]:
    """Return the usage of the turns since then, in groups by ``by``, in the conversations of these accounts.

    ``accounts``: None for all conversations. The newest day comes first; of other groups, the one whose
    prompts have most tokens. By person or place, a group is one account or thread, and the caller adds the
    groups up. `Parts.ORDER` groups by the line of a person that asked for the work.
    """
    sums = [func.sum(_TURN.c[name]) for name in ("model_calls", "prompt_tokens", "completion_tokens", "cost")]
    grouping = _make_grouping(session, by)
    columns = (grouping.key, grouping.name, func.count(), *sums)  # in the order of the fields of `UsageRow`
    found = select(*columns).join_from(_TURN, _PLACE, _PLACE.c.id == _TURN.c.conversation_id)
    found = found.where(_TURN.c.created_at >= since)
    found = found.group_by(grouping.key).order_by(grouping.order, grouping.key)
    found = found.limit(_MAX_SUMMED_BY_CALLER if by in _SUMMED_BY_CALLER else MAX_GROUPS)
    if by is Parts.ORDER:
        found = found.where(_TURN.c.asked > 0)
    if accounts is not None:
        found = found.where(_PLACE.c.owner.in_(accounts))
    rows = session.connection().execute(found).all()
    return [UsageRow(str(key), name, *numbers) for key, name, *numbers in rows]


def _make_grouping(session: Session, by: Parts) -> _Grouping:
    """Return the grouping of usage by ``by``."""
    at = _TURN.c.created_at
    if session.connection().dialect.name == "postgresql":
        at = func.timezone(literal_column("'UTC'"), at)  # no parameter: GROUP BY needs the same expression
    most_tokens = func.sum(_TURN.c.prompt_tokens).desc()
    title = func.max(_PLACE.c.title)
    groupings = {
        Parts.DAY: _Grouping(func.date(at), func.date(at).desc()),
        Parts.CONVERSATION: _Grouping(_PLACE.c.id, most_tokens, title),
        Parts.ACCOUNT: _Grouping(_PLACE.c.owner, most_tokens),
        Parts.PERSON: _Grouping(func.coalesce(_TURN.c.asker, _PLACE.c.owner), most_tokens),
        Parts.PLACE: _Grouping(_CHAT, most_tokens),
        Parts.MODEL: _Grouping(func.coalesce(_TURN.c.model, literal_column("''")), most_tokens),
        Parts.ORDER: _Grouping(_TURN.c.asked, most_tokens, title),
    }
    return groupings[by]


def sum_spent_since(session: Session, begin: datetime, scope: str, accounts: Collection[str]) -> float:
    """Return the cost of turns since then in a scope, or for one of these accounts.

    A scope is a place for rules, as in `bot.domain.rules.covers`.
    """
    found = _TOTAL_COST.join_from(_TURN, _PLACE, _PLACE.c.id == _TURN.c.conversation_id)
    is_counted = or_(is_inside(scope), _TURN.c.asker.in_(sorted(accounts)))
    found = found.where(_TURN.c.created_at >= begin, is_counted)
    return float(session.connection().execute(found).scalar_one())


def sum_spent_on_request(session: Session, request_line_id: int) -> float:
    """Return the cost of all turns that one request of a person led to, also of the turns of teammates.

    ``request_line_id``: the id of the line with the request, as in the column ``asked``.
    """
    of_request = _TOTAL_COST.where(_TURN.c.asked == request_line_id)
    return float(session.connection().execute(of_request).scalar_one())

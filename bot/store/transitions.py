"""Changes of proposals, guarded by the database.

`change_proposal` is the only function that changes their state. Each change is one UPDATE that names the
state and the version that were read, so of two simultaneous changes one is made and the other finds no row.
In the same transaction the change gets its row in the audit log, the posted cards that show the proposal are
marked as outdated, and features are told by their hooks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, exists, func, insert, text, update
from sqlmodel import Session, select

from bot.domain.annotations import bound_annotations
from bot.domain.deciders import Deciders
from bot.domain.people import is_group
from bot.domain.proposal_states import SETTLED, TRANSITIONS, State
from bot.domain.proposals import Proposal, start_timers
from bot.domain.text import hash_text, replace_unstorable
from bot.store import processes
from bot.store.audit import log
from bot.store.audit.log import Author, Change
from bot.store.hooks import hooks_of
from bot.store.inserts import insert_or_ignore
from bot.store.locks import conversation_lock
from bot.store.proposal_rows import COLUMNS, UNRECORDED, from_row, to_row
from bot.store.proposals import SELECT_PROPOSALS
from bot.store.tables.conversations import CHAT_SHOWN, ConversationRow
from bot.store.tables.proposals import OPEN_QUESTION, CopyRow, DeciderRow, ProposalRow
from bot.store.tables.row import count_changed, table_of
from bot.store.tables.rules import BookRow

_TABLE = table_of(ProposalRow)
_COPIES = table_of(CopyRow)
_CONVERSATIONS = table_of(ConversationRow)
_BOOK = table_of(BookRow)
_TIMER_FIELDS = frozenset({"warn_at", "remind_at", "notify_at", "escalate_at", "steps"})
"""The fields of a proposal that say when something is due while it waits."""

# for `insert_proposals`: ``chat`` is the chat in which the proposal is seen; NULL for a private one
_CHAT = (
    select(CHAT_SHOWN)
    .where(_CONVERSATIONS.c.id == bindparam("asked_in"), _CONVERSATIONS.c.private.is_(False))
    .scalar_subquery()
)
_INSERT = insert(_TABLE).values(chat=_CHAT).returning(*log.REQUEST_COLUMNS)
_PLACE_AND_SCHEMA = select(*log.REQUEST_COLUMNS)

# the proposals whose cards show a change: the changed one, the first of its batch, and the first single one
# of its answer, whose card has the buttons for all; `_make_card_parameters` returns the parameters
_CARD = _TABLE.alias("card")
_FIRST = _TABLE.alias("first")
_FIRST_POSITION = (
    select(func.min(_FIRST.c.position))
    .where(_FIRST.c.message_id == bindparam("card_message"), _FIRST.c.batch.is_(None))
    .scalar_subquery()
)
_CARDS_OF_CHANGE = select(_CARD.c.id).where(
    _CARD.c.message_id == bindparam("card_message"),
    _CARD.c.id.in_((bindparam("moved_id"), bindparam("card_batch"))) | (_CARD.c.position == _FIRST_POSITION),
)
_IS_POSTED = exists().where(_COPIES.c.proposal_id.in_(_CARDS_OF_CHANGE)).label("is_posted")
"""A column: a card that shows the change is posted. If none is, `_WANT_REDRAW` need not be executed."""
_WANT_REDRAW = (
    update(_COPIES)
    .where(_COPIES.c.proposal_id.in_(_CARDS_OF_CHANGE))
    .values(wanted=_COPIES.c.wanted + 1)  # a copy is outdated while ``rendered < wanted``
)
_OUTDATED_IDS_KEY = "cards behind"
"""The key of a session's ``info`` for the ids of proposals whose posted cards this transaction outdated."""

# conditions of the UPDATE that begins a run, see `_make_update`
_IS_PAUSED = exists().where(_BOOK.c.paused_at.is_not(None))
_BOOK_VERSION = func.coalesce(select(_BOOK.c.version).scalar_subquery(), 0)
_OTHER = _TABLE.alias("other")
_IS_THING_IN_USE = exists().where(text("other.state = 'executing'"), _OTHER.c.thing == bindparam("thing"))


@lru_cache(maxsize=64)
def _make_update(columns: tuple[str, ...]) -> Any:
    """Return the UPDATE of these columns, guarded by the state and version that were read.

    Its parameters are the values of the columns, and the guards. The columns ``owner`` and ``thing`` are set
    only where a run begins, and each adds a condition. With ``owner``, Nod must not be paused, and the
    rulebook must have the version ``book_version``. With ``thing``, no other run may change the same thing.
    The statement returns `_IS_POSTED`, or no row where a condition is not met.
    """
    guarded = update(_TABLE).where(
        _TABLE.c.id == bindparam("moved_id"),
        _TABLE.c.state == bindparam("from_state"),
        _TABLE.c.version == bindparam("from_version"),
    )
    if "owner" in columns:
        guarded = guarded.where(~_IS_PAUSED, bindparam("book_version") == _BOOK_VERSION)
    if "thing" in columns:
        guarded = guarded.where(~_IS_THING_IN_USE)
    return guarded.values({column: bindparam(column) for column in columns}).returning(_IS_POSTED)


def insert_proposals(session: Session, proposals: Sequence[Proposal], author: Author) -> tuple[Proposal, ...]:
    """Store new proposals, each with its first audit row; return them as stored.

    They have the lines that features add to their cards (`annotations`).
    """
    changes = []
    for new in proposals:
        proposal = _annotate(session, new)
        row = to_row(proposal)
        parameters = row | log.make_request_parameters(proposal)
        place, schema = session.connection().execute(_INSERT, parameters).one()  # the `log.REQUEST_COLUMNS`
        _store_deciders(session, proposal)
        changes.append(Change(proposal, row, author, log.describe_request(proposal, place, schema)))
    log.record_changes(session, changes)
    opened = tuple(change.proposal for change in changes)
    for proposal in opened:
        if proposal.state is State.PROPOSED:
            _ask_people(session, proposal, proposal.created_at)
    return opened


def _ask_people(session: Session, proposal: Proposal, now: datetime) -> None:
    """Tell the features by their hooks that people are asked about a proposal."""
    for ask_people in hooks_of(session).ask_people:
        ask_people(session, proposal, now)


def _annotate(session: Session, proposal: Proposal) -> Proposal:
    """Return the proposal with the features' lines on its current contents, in place of earlier lines."""
    hooks = hooks_of(session).annotate_card
    if not (hooks or proposal.annotations):
        return proposal
    lines = [line for annotate_card in hooks for line in annotate_card(session, proposal)]
    return replace(proposal, annotations=bound_annotations(lines))


def change_proposal(
    session: Session,
    before: Proposal,
    author: Author,
    now: datetime,
    state: State | None = None,
    owner: str | None = None,
    thing: str = "",
    book_version: int = 0,
    **changes: Any,
) -> Proposal | None:
    """Change a proposal, guarded by its state and version, and record who did it.

    Returns the changed proposal. Returns None if another change was faster, or if a condition of a claim
    (``owner``, ``thing``, ``book_version``) is not met.

    - ``before``: the proposal as it was read
    - ``state``: the new state; None keeps the state (a vote, an edit)
    - ``owner``: the id of the process that claims the run; the result is None while Nod is paused
    - ``thing``: with an owner, the name of the thing that the run changes, such as a file; the result is None
      while another running proposal changes the same thing
    - ``book_version``: with an owner, the version of the rulebook that allows the run; the result is None if
      the rulebook has changed since
    - ``changes``: the new values of other fields of the proposal

    Raises ValueError for a move that `TRANSITIONS` does not have.
    """
    if state is not None and state not in TRANSITIONS[before.state]:
        raise ValueError(f"{before.state} → {state} is not a move a proposal can make")

    # the proposal as the change leaves it; with new contents, features are asked again for lines on its card
    after = replace(
        before, **changes, state=state or before.state, version=before.version + 1, updated_at=now
    )
    conversation_lock.lock_conversation(session, before.conversation_id)
    is_new_round = after.round != before.round and after.state is State.PROPOSED
    if is_new_round:
        after = _annotate(session, after)
        if after.annotations != before.annotations:
            changes["annotations"] = after.annotations

    # the guarded UPDATE of the columns that change
    new = to_row(after)
    values = _list_new_values(new, changes)
    guard = _make_guard(before)
    if owner is not None:
        values["owner"] = owner
        guard["book_version"] = book_version
    if thing:
        values["thing"] = hash_text(thing)
    if before.state is State.EXECUTING:
        values["progress"] = None
    moved_row = session.connection().execute(_make_update(tuple(values)), values | guard).first()
    if moved_row is None:
        return None

    # what else follows from the change: searches by decider, the audit log, outdated cards, hooks
    if "deciders" in changes or "votes" in changes:
        _store_deciders(session, after)
    has_new_lines = is_new_round and "annotations" in changes
    has_new_request = after.digest != before.digest or has_new_lines
    request = _describe_request(session, after) if has_new_request else None
    log.record_changes(session, [Change(after, new, author, request)])
    if moved_row.is_posted and not has_outdated_cards(session, after):  # once in a transaction is enough
        _mark_cards_outdated(session, after)
    if is_new_round:
        _ask_people(session, after, now)
    if state in SETTLED:
        _tell_end(session, after, now)
    return after


def _list_new_values(row: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new values of a proposal's columns, by column.

    ``row``: the proposal after the change, as columns. ``changes``: the changed fields, by their names.
    """
    # always also the deciders: an older release stored fewer of their fields, and the audit row hashes all
    fields = ["state", "version", "updated_at", "deciders"]
    fields += [name for name in changes if name not in UNRECORDED]
    values = {column: row[column] for name in fields for column in COLUMNS.get(name, (name,))}
    return values | {name: value for name, value in changes.items() if name in UNRECORDED}


def _make_guard(before: Proposal) -> dict[str, Any]:
    """Return the parameters of `_make_update` that name the proposal as it was read, and its cards."""
    return {"from_state": before.state, "from_version": before.version, **_make_card_parameters(before)}


def _describe_request(session: Session, proposal: Proposal) -> dict[str, Any]:
    """Return the request of a proposal for the audit log."""
    parameters = log.make_request_parameters(proposal)
    place, schema = session.connection().execute(_PLACE_AND_SCHEMA, parameters).one()
    return log.describe_request(proposal, place, schema)


def _tell_end(session: Session, proposal: Proposal, now: datetime) -> None:
    """Tell the features by their hooks that a proposal has ended."""
    for end_proposal in hooks_of(session).end_proposal:
        end_proposal(session, proposal, now)


def raise_requirements(
    session: Session,
    before: Proposal,
    author: Author,
    now: datetime,
    *,
    deciders: Deciders,
    quorum: int | None = None,
    **times: Any,
) -> Proposal | None:
    """Have a proposal ask further people, or need more votes, guarded and recorded as by `change_proposal`.

    Votes that were given still count. An approved proposal that was not claimed waits for people again, for
    as long as at first.

    - ``deciders``: the present deciders with roles, user groups or chats added
    - ``quorum``: the number of votes, no lower than before; None keeps it
    - ``times``: the new values of due times, by the names of their fields (`_TIMER_FIELDS`)

    Returns the changed proposal, or None if another change was faster. Raises ValueError for a proposal that
    is neither waiting nor approved, and for any other change.
    """
    if quorum is None:
        quorum = before.quorum
    if before.state not in (State.PROPOSED, State.APPROVED):
        raise ValueError("only what is open, or approved and not claimed, can ask for more")
    only_raises = _only_adds(before.deciders, deciders) and quorum >= before.quorum
    if not only_raises or not times.keys() <= _TIMER_FIELDS:
        raise ValueError("nothing that it asked for is dropped")
    changes: dict[str, Any] = {"deciders": deciders, "quorum": quorum, **times}
    if before.state is State.APPROVED:
        no_decision = dict.fromkeys(("decided_by", "decided_from", "decided_at"))
        changes |= {**no_decision, **start_timers(before.ttl, before.remind_every, now)}
        return change_proposal(session, before, author, now, State.PROPOSED, **changes)
    return change_proposal(session, before, author, now, **changes)


def _only_adds(before: Deciders, after: Deciders) -> bool:
    """Return whether deciders differ from those before at most by more roles, user groups and chats."""
    adds_only_groups = all(map(is_group, set(after.people) - set(before.people)))
    keeps_lists = (
        set(before.roles) <= set(after.roles)
        and set(before.people) <= set(after.people)
        and set(before.escalation_chats) <= set(after.escalation_chats)
    )
    with_lists_before = replace(
        after,
        roles=before.roles,
        people=before.people,
        escalated=before.escalated,
        also_escalated=before.also_escalated,
    )
    keeps_all_else = with_lists_before == before
    return adds_only_groups and keeps_lists and keeps_all_else


def store_progress(session: Session, claimed: Proposal, text: str) -> bool:
    """Store the progress of a run; return False if that run is over. The proposal gets no new version.

    ``text``: the progress, as the tool reports it to people.
    """
    values = {"progress": replace_unstorable(text)}
    guard = _make_guard(claimed) | {"from_state": State.EXECUTING}
    moved_row = session.connection().execute(_make_update(("progress",)), values | guard).first()
    if moved_row is None:
        return False
    if moved_row.is_posted:
        _mark_cards_outdated(session, claimed)
    return True


def end_undo(session: Session, proposal_ids: Sequence[str]) -> None:
    """End the time for Undo, and have the cards redrawn. The proposals get no new version."""
    end_time = update(_TABLE).where(_TABLE.c.id.in_(proposal_ids)).values(undo_until=None)
    session.connection().execute(end_time)
    want_redraw = update(_COPIES).where(_COPIES.c.proposal_id.in_(proposal_ids))
    session.connection().execute(want_redraw.values(wanted=_COPIES.c.wanted + 1))


def claim_question(session: Session, proposal_id: str, process: str) -> None:
    """Store this process as the one that waits for the answer to a question."""
    session.connection().execute(update(_TABLE).where(_TABLE.c.id == proposal_id).values(owner=process))


def list_abandoned_questions(session: Session, process: str) -> list[str]:
    """Return the ids of open questions of tools' servers that no living process waits for.

    ``process``: the id of the process that asks, which counts as living.
    """
    is_abandoned = processes.has_no_living_owner(_TABLE.c.owner, process)
    is_of_server = _TABLE.c.call_id == ""  # the agent's own questions have a call
    found = select(_TABLE.c.id).where(text(OPEN_QUESTION), is_of_server, is_abandoned)
    return list(session.connection().execute(found).scalars())


def list_abandoned(session: Session, process: str) -> list[Proposal]:
    """Return the executing proposals that this ``process`` or no living process owns.

    The caller knows which of the calls of its own process still run.
    """
    is_own = _TABLE.c.owner == process
    is_abandoned = processes.has_no_living_owner(_TABLE.c.owner, process)
    found = SELECT_PROPOSALS.where(_TABLE.c.state == State.EXECUTING, is_own | is_abandoned)
    return [from_row(row) for row in session.connection().execute(found)]


def _store_deciders(session: Session, proposal: Proposal) -> None:
    """Store the accounts that a proposal names or that voted, for `bot.store.proposals.list_within_reach`.

    No account is ever removed.
    """
    accounts = dict.fromkeys((*proposal.deciders.people, *(str(vote.actor) for vote in proposal.votes)))
    rows = [{"account": account, "proposal_id": proposal.id} for account in accounts]
    if rows:
        session.connection().execute(insert_or_ignore(session, DeciderRow), rows)


def _make_card_parameters(proposal: Proposal) -> dict[str, Any]:
    """Return the parameters of `_CARDS_OF_CHANGE` for a change of a proposal."""
    return {"moved_id": proposal.id, "card_message": proposal.message_id, "card_batch": proposal.batch}


def has_outdated_cards(session: Session, proposal: Proposal) -> bool:
    """Return whether a change of a proposal in this transaction has outdated a posted card."""
    return proposal.id in session.info.get(_OUTDATED_IDS_KEY, ())


def _mark_cards_outdated(session: Session, proposal: Proposal) -> None:
    """Mark the posted cards that show a change of a proposal as outdated."""
    redraw = session.connection().execute(_WANT_REDRAW, _make_card_parameters(proposal))
    if count_changed(redraw):
        session.info.setdefault(_OUTDATED_IDS_KEY, set()).add(proposal.id)

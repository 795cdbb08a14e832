"""Changes of proposals, guarded by the database.

`insert_proposals` stores new ones, and `change_proposal` is the only function that changes their state. Each
change is one UPDATE that names the state and the version that were read, so of two simultaneous changes one
is made and the other finds no row. In the same transaction the change gets its row in the audit log, the
posted cards that show the proposal are marked as outdated, and features are told by their hooks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, func, insert, literal_column, update
from sqlmodel import Session, select

from bot.domain.annotations import bound_annotations
from bot.domain.proposal_states import SETTLED, TRANSITIONS, State
from bot.domain.proposals import Proposal
from bot.domain.text import hash_text
from bot.store.audit import log
from bot.store.audit.log import Author, Change
from bot.store.hooks import hooks_of
from bot.store.inserts import insert_or_ignore
from bot.store.locks import conversation_lock
from bot.store.outdated_cards import (
    IS_POSTED,
    has_outdated_cards,
    make_card_parameters,
    mark_cards_outdated,
)
from bot.store.proposal_rows import COLUMNS, UNRECORDED, to_row
from bot.store.tables.conversations import CHAT_SHOWN, ConversationRow
from bot.store.tables.proposals import DeciderRow, ProposalRow
from bot.store.tables.row import table_of
from bot.store.tables.rules import BookRow

_TABLE = table_of(ProposalRow)
_CONVERSATIONS = table_of(ConversationRow)
_BOOK = table_of(BookRow)

_CHAT_OF_REQUEST = (
    select(CHAT_SHOWN)
    .where(
        _CONVERSATIONS.c.id == bindparam("asked_in"),  # of `log.make_request_parameters`
        _CONVERSATIONS.c.private.is_(False),
    )
    .scalar_subquery()
)
"""The column ``chat`` of a new proposal: the chat in which it is seen; NULL for a private one."""
_INSERT = insert(_TABLE).values(chat=_CHAT_OF_REQUEST).returning(*log.REQUEST_COLUMNS)
_SELECT_PLACE_AND_SCHEMA = select(*log.REQUEST_COLUMNS)

# conditions of a claim, see `_build_claim`
_IS_PAUSED = exists().where(_BOOK.c.paused_at.is_not(None))
_BOOK_VERSION = func.coalesce(select(_BOOK.c.version).scalar_subquery(), 0)
_OTHER = _TABLE.alias("other")
_IS_THING_IN_USE = exists().where(
    # a literal, as in the index `proposal_moving`: with a parameter, SQLite could not use the index
    _OTHER.c.state == literal_column(f"'{State.EXECUTING}'"),
    _OTHER.c.thing == bindparam("thing"),
)


class Claim(NamedTuple):
    """The facts with which a process claims a run."""

    process: str  # the id of the process
    book_version: int  # the version of the rulebook that allows the run
    thing: str = ""  # the name of the thing that the run changes, such as a file; empty: none is named


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
            _tell_asked(session, proposal, proposal.created_at)
    return opened


def _tell_asked(session: Session, proposal: Proposal, now: datetime) -> None:
    """Tell the features by their hooks that people are asked about a proposal."""
    for tell_feature in hooks_of(session).ask_people:
        tell_feature(session, proposal, now)


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
    *,
    claim: Claim | None = None,
    **changes: Any,
) -> Proposal | None:
    """Change a proposal, guarded by its state and version, and record who did it.

    - ``before``: the proposal as it was read
    - ``state``: the new state; None keeps the state (a vote, an edit)
    - ``claim``: given where a run begins
    - ``changes``: the new values of other fields of the proposal

    Returns the changed proposal, or None if another change was faster. A claim returns None also while Nod is
    paused, if the rulebook has changed since, and while another run changes the same thing.

    Raises ValueError for a change of state that `TRANSITIONS` does not have.
    """
    if state is not None and state not in TRANSITIONS[before.state]:
        raise ValueError(f"a proposal can't change from {before.state} to {state}")

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
    row = to_row(after)
    values = _list_new_values(row, changes)
    if before.state is State.EXECUTING:
        values["progress"] = None
    is_posted = _update_row(session, before, values, claim)
    if is_posted is None:
        return None

    # what else follows from the change: searches by decider, the audit log, outdated cards, hooks
    if "deciders" in changes or "votes" in changes:
        _store_deciders(session, after)
    # the audit log has the request of a new digest, and the features' lines on a new round
    has_new_request = after.digest != before.digest or (is_new_round and "annotations" in changes)
    request = _describe_request(session, after) if has_new_request else None
    log.record_changes(session, [Change(after, row, author, request)])
    if is_posted and not has_outdated_cards(session, after):  # once in a transaction is enough
        mark_cards_outdated(session, after)
    if is_new_round:
        _tell_asked(session, after, now)
    if state in SETTLED:
        _tell_end(session, after, now)
    return after


def _list_new_values(row: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new values of a proposal's columns, by column.

    ``row``: the proposal after the change, as columns. ``changes``: the changed fields, by their names.
    """
    # always also the deciders: the audit row hashes all of their fields, and an older release may have stored
    # fewer of them
    recorded = ["state", "version", "updated_at", "deciders"]
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name in UNRECORDED:  # `to_row` leaves these out
            values[name] = value
        else:
            recorded.append(name)
    for name in recorded:
        for column in COLUMNS.get(name, (name,)):
            values[column] = row[column]
    return values


def _update_row(
    session: Session, before: Proposal, values: Mapping[str, Any], claim: Claim | None
) -> bool | None:
    """Update the row of a proposal, if it is as it was read and a claim may be made.

    Returns whether a card that shows the change is posted; None if no row was updated.
    """
    parameters = {**values, "from_state": before.state, "from_version": before.version}
    if claim is None:
        statement = _build_update(tuple(values))
    else:
        statement = _build_claim(tuple(values), has_thing=bool(claim.thing))
        parameters |= {"owner": claim.process, "book_version": claim.book_version}
        if claim.thing:
            parameters["thing"] = hash_text(claim.thing)
    updated = session.connection().execute(statement, parameters | make_card_parameters(before)).first()
    return None if updated is None else bool(updated.is_posted)


@lru_cache(maxsize=64)
def _build_update(columns: tuple[str, ...]) -> Any:
    """Return the UPDATE of these columns, guarded by the state and version that were read."""
    return (
        update(_TABLE)
        .where(
            _TABLE.c.id == bindparam("changed_id"),
            _TABLE.c.state == bindparam("from_state"),
            _TABLE.c.version == bindparam("from_version"),
        )
        .values({column: bindparam(column) for column in columns})
        .returning(IS_POSTED)
    )


@lru_cache(maxsize=8)
def _build_claim(columns: tuple[str, ...], *, has_thing: bool) -> Any:
    """Return the UPDATE that also claims the run: Nod is not paused, and the rulebook has the version.

    ``has_thing``: no other run may change the thing of this one.
    """
    claim = (
        _build_update(columns)
        .where(~_IS_PAUSED, bindparam("book_version") == _BOOK_VERSION)
        .values(owner=bindparam("owner"))
    )
    if has_thing:
        claim = claim.where(~_IS_THING_IN_USE).values(thing=bindparam("thing"))
    return claim


def _describe_request(session: Session, proposal: Proposal) -> dict[str, Any]:
    """Return what a proposal asks for, as the audit log keeps it."""
    parameters = log.make_request_parameters(proposal)
    place, schema = session.connection().execute(_SELECT_PLACE_AND_SCHEMA, parameters).one()
    return log.describe_request(proposal, place, schema)


def _tell_end(session: Session, proposal: Proposal, now: datetime) -> None:
    """Tell the features by their hooks that a proposal has ended."""
    for tell_feature in hooks_of(session).end_proposal:
        tell_feature(session, proposal, now)


def _store_deciders(session: Session, proposal: Proposal) -> None:
    """Store the accounts that a proposal names or that voted, for `bot.store.proposals.list_within_reach`.

    No account is ever removed.
    """
    accounts = dict.fromkeys((*proposal.deciders.people, *(str(vote.actor) for vote in proposal.votes)))
    rows = [{"account": account, "proposal_id": proposal.id} for account in accounts]
    if rows:
        session.connection().execute(insert_or_ignore(session, DeciderRow), rows)

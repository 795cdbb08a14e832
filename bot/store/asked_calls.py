"""The calls of a conversation about which people were asked already, so that the agent need not ask again."""

from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import String, bindparam, exists, func, text, union_all
from sqlmodel import Session, col, select

from bot.domain import kinds
from bot.domain.conversations import LineRole
from bot.domain.proposal_states import State
from bot.store import proposals as proposal_store
from bot.store.tables.conversations import MessageRow, TeammateRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import is_one_of, table_of

_MESSAGE = table_of(MessageRow)
_PROPOSAL = table_of(ProposalRow)


def find_calls_already_asked(session: Session, conversation_id: str, now: datetime) -> dict[str, str]:
    """Return the calls that people of a conversation were asked about already, by digest.

    These are calls that wait or run, and calls that were declined since a person last asked for work. The
    value is the name of the person who declined; empty for a call that waits or runs. A person asks for work
    by a message, also to the lead agent of a team, by a schedule's run, by an answer to a question, and by
    approving a plan.
    """
    values = {"conversation_id": conversation_id, "now": now}
    rows = session.connection().execute(_select_asked_already(), values)
    return {row.digest: row.decided_by if row.state == State.DECLINED else "" for row in rows}


@cache
def _select_asked_already() -> Any:
    """Return the query of `find_calls_already_asked`, built once."""
    conversation_id = bindparam("conversation_id", type_=String)
    last_request = _select_last_request(conversation_id)
    requested_at = select(_MESSAGE.c.created_at).where(_MESSAGE.c.id == last_request).scalar_subquery()
    # only up to now: a process whose clock was ahead may have dated a decision later
    was_decided_since = (_PROPOSAL.c.decided_at > requested_at) & (_PROPOSAL.c.decided_at <= bindparam("now"))
    was_proposed_since = _PROPOSAL.c.message_id > func.coalesce(last_request, 0)
    is_declined = (_PROPOSAL.c.state == State.DECLINED) & _PROPOSAL.c.cause.is_(None)
    still_counts = (was_proposed_since | was_decided_since) & ~_has_later_press()
    return select(_PROPOSAL.c.digest, _PROPOSAL.c.state, _PROPOSAL.c.decided_by).where(
        _PROPOSAL.c.conversation_id == conversation_id,
        is_one_of(_PROPOSAL.c.state, proposal_store.OPEN) | (is_declined & still_counts),
    )


def _select_last_request(conversation_id: Any) -> Any:
    """Return the subquery for the id of the last line that asks for work.

    The line is in this conversation or, if that is a teammate's, in the lead agent's.
    """
    lead_id = select(col(TeammateRow.lead_id)).where(col(TeammateRow.id) == conversation_id).scalar_subquery()
    begins_scheduled_run = (_MESSAGE.c.role == LineRole.NOTE) & _MESSAGE.c.event_id.is_not(None)
    asks_for_work = (_MESSAGE.c.role == LineRole.USER) | begins_scheduled_run
    last_line = select(func.max(_MESSAGE.c.id).label("id")).where(asks_for_work)
    # a query for each conversation: for both together, PostgreSQL reads the messages of all conversations
    last_here = last_line.where(_MESSAGE.c.conversation_id == conversation_id)
    last_of_lead = last_line.where(_MESSAGE.c.conversation_id == lead_id)
    return select(func.max(union_all(last_here, last_of_lead).subquery().c.id)).scalar_subquery()


def _has_later_press() -> Any:
    """Return the condition that people asked for work by a press after a proposal was decided.

    The answer to a question and the approval of a plan ask for work like a message.
    """
    answered = _PROPOSAL.alias("answered")
    return exists().where(
        answered.c.conversation_id == _PROPOSAL.c.conversation_id,
        answered.c.kind.in_([kinds.QUESTION.name, kinds.PLAN.name]),
        # ``NOT … <>`` so that SQLite uses the index by conversation, as explained at `WAITS`
        text(f"NOT answered.state <> '{State.SUCCEEDED}'"),
        answered.c.decided_at > _PROPOSAL.c.decided_at,
    )

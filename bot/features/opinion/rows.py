"""The queries of second opinions: a model's words about a call, for the people who decide it.

A row is stored with its proposal, taken by one process, and ended once. It ``waits`` until the opinion came,
or is known to be missing. Its ``effect`` says after which opinions the proposal needs one more approval. An
approved proposal waits for its opinion only if the opinion can have this effect.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Update, text, update
from sqlmodel import Session, col, select

from bot.approvals import rights
from bot.domain.conversations import LineRole
from bot.domain.hooks import MAX_HOLD
from bot.domain.proposals import Proposal
from bot.domain.rule_values import OpinionEffect, Subject
from bot.domain.rulebook import Rulebook
from bot.features.opinion.tables import OpinionRow
from bot.store.inserts import insert_or_ignore
from bot.store.rules import Policies
from bot.store.tables.conversations import MessageRow
from bot.store.tables.row import count_changed, table_of

MAX_RAISING_WAIT = timedelta(seconds=20)
"""The longest wait for an opinion that can require one more approval."""
MAX_PLAIN_WAIT = timedelta(minutes=2)
"""The longest wait for an opinion that can't."""
_LEASE = timedelta(seconds=30)  # the lease's length beyond the time that is left for the opinion
_TABLE, _MESSAGE = table_of(OpinionRow), table_of(MessageRow)
# the condition as the partial index of the table has it, so that the index is used
_WAITS = {"sqlite": text("waits = 1"), "postgresql": text("waits")}


def want_opinion(policies: Policies, session: Session, proposal: Proposal, now: datetime) -> None:
    """Store the wish for an opinion on a proposal's contents, if a rule wants one. Implements `AskPeople`."""
    kind = proposal.kind
    if not policies.latest_policy.rulebook.list_about(Subject.OPINION):
        return
    # opinions are about calls that run: not about questions to people, forms or the undo of an earlier call
    if not kind.runs or kind.is_answer or kind.is_form or proposal.undoes_proposal_id:
        return
    wanted = policies.load(session).rulebook.opinion(rights.call_of(session, proposal))
    if wanted is None:
        return
    row = {
        "proposal_id": proposal.id,
        "round": proposal.round,
        "model": wanted.model,
        "raising": str(wanted.effect),
        "waits": True,
        "asked_at": now,
        "due_at": now + (MAX_RAISING_WAIT if wanted.effect else MAX_PLAIN_WAIT),
    }
    session.connection().execute(insert_or_ignore(session, OpinionRow), row)


def find_wait_end(session: Session, rulebook: Rulebook, proposal: Proposal) -> datetime | None:
    """Return the time until which an approved proposal waits for an opinion. Implements `HoldClaim`."""
    if not rulebook.list_about(Subject.OPINION):
        return None
    row = session.get(OpinionRow, (proposal.id, proposal.round))
    if row is None or not row.waits or row.effect is OpinionEffect.NEVER:
        return None
    # Here a missing opinion requires one more approval, so the proposal waits until `Reviewer` has stored
    # that the opinion is missing. If no reviewer runs, it waits for `MAX_HOLD` after the approval.
    if row.effect is OpinionEffect.NO_OR_MISSING:
        return max(row.due_at, (proposal.decided_at or row.due_at) + MAX_HOLD)
    return row.due_at


def claim_waiting(session: Session, now: datetime, limit: int) -> Sequence[OpinionRow]:
    """Claim at most ``limit`` opinions that no process is asking for, the oldest first.

    A claim lasts until `_LEASE` after the opinion is due. If the row still waits then, another process may
    claim it.
    """
    dialect = session.connection().dialect.name
    is_free = col(OpinionRow.taken_until).is_(None) | (col(OpinionRow.taken_until) < now)
    oldest_first = select(OpinionRow).where(_WAITS[dialect], is_free).order_by(col(OpinionRow.asked_at))
    taken = []
    for row in session.exec(oldest_first.limit(limit)).all():
        claim = _update_waiting(row.proposal_id, row.round).where(is_free)
        until = max(row.due_at, now) + _LEASE
        if count_changed(session.connection().execute(claim.values(taken_until=until))):
            taken.append(OpinionRow(**row.model_dump()))
    return taken


def end_opinion(session: Session, proposal_id: str, round_: int) -> bool:
    """End the wait for an opinion. Return False if it has ended already."""
    ended = _update_waiting(proposal_id, round_).values(waits=False)
    return bool(count_changed(session.connection().execute(ended)))


def find_request(session: Session, proposal: Proposal) -> tuple[int, str] | None:
    """Return the id and text of the message that led to a proposal; None if it is not a person's message.

    A proposal belongs to an answer of the agent, and the answer knows the message after which it came.
    """
    answered = select(_MESSAGE.c.after).where(_MESSAGE.c.id == proposal.message_id).scalar_subquery()
    of_person = select(_MESSAGE.c.id, _MESSAGE.c.text).where(
        _MESSAGE.c.id == answered, _MESSAGE.c.role == LineRole.USER
    )
    message = session.connection().execute(of_person).first()
    return (message[0], message[1]) if message else None


def _update_waiting(proposal_id: str, round_: int) -> Update:
    """Return an update of an opinion that applies only while the opinion waits."""
    return update(_TABLE).where(
        _TABLE.c.proposal_id == proposal_id, _TABLE.c.round == round_, _TABLE.c.waits.is_(True)
    )

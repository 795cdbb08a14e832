"""Webhooks as rows: the addresses to call when scripts' requests have ended.

A row counts the attempts to call its address. An update only succeeds while the row still has the number of
attempts that was read before. So of several processes only one makes an attempt (`claim`).
``bot/jobs/webhooks.py`` sends the webhooks.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, select

from bot.domain.proposal_states import SETTLED
from bot.store.tables.proposals import CallbackRow, ProposalRow
from bot.store.tables.row import count_changed


def add_webhook(session: Session, proposal_id: str, url: str, now: datetime) -> None:
    """Store the webhook of a request. A request is a proposal, here the one with this id."""
    session.add(CallbackRow(proposal_id=proposal_id, url=url, next_at=now))
    session.flush()


def find_webhook(session: Session, proposal_id: str) -> CallbackRow | None:
    """Return the webhook of a request, or None."""
    return session.get(CallbackRow, proposal_id)


def list_due(session: Session, now: datetime, limit: int) -> list[CallbackRow]:
    """Return the due webhooks of ended requests, oldest first."""
    due = (
        select(CallbackRow)
        .join(ProposalRow, col(ProposalRow.id) == col(CallbackRow.proposal_id))
        .where(
            ~col(CallbackRow.over),
            CallbackRow.next_at <= now,
            col(ProposalRow.state).in_(sorted(SETTLED)),
        )
        .order_by(col(CallbackRow.next_at))
        .limit(limit)
    )
    return list(session.exec(due))


def claim(session: Session, callback: CallbackRow, next_at: datetime) -> bool:
    """Claim the next attempt to send a webhook; False if another process has claimed it.

    Unless the result of the attempt is stored, the webhook is due again at ``next_at``.
    """
    values = {"attempts": callback.attempts + 1, "next_at": next_at}
    return _change(session, callback.proposal_id, callback.attempts, values)


def mark_arrived(session: Session, callback: CallbackRow, now: datetime) -> None:
    """Store a successful delivery. ``callback``: the row as it was before `claim`, which adds an attempt."""
    values = {"over": True, "told_at": now, "fault": ""}
    _change(session, callback.proposal_id, callback.attempts + 1, values)


def mark_failed(session: Session, callback: CallbackRow, fault: str, *, over: bool) -> None:
    """Store a failed delivery. ``over``: no one tries again. ``callback``: as in `mark_arrived`."""
    _change(session, callback.proposal_id, callback.attempts + 1, {"over": over, "fault": fault})


def _change(session: Session, proposal_id: str, attempts: int, values: dict[str, Any]) -> bool:
    """Change the row of a webhook. Return False if another process has claimed it, or no one tries again."""
    statement = (
        update(CallbackRow)
        .where(
            col(CallbackRow.proposal_id) == proposal_id,
            col(CallbackRow.attempts) == attempts,
            ~col(CallbackRow.over),
        )
        .values(values)
    )
    return bool(count_changed(session.execute(statement)))

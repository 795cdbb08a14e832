"""Webhooks as rows: whom to tell when a request has ended. ``bot/jobs/webhooks.py`` sends them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, select

from bot.domain.proposals import SETTLED
from bot.store.tables.proposals import CallbackRow, ProposalRow
from bot.store.tables.row import changed, value_of


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook; ``over`` once it was delivered or given up."""

    proposal_id: str
    url: str
    attempts: int
    told_at: datetime | None
    over: bool
    fault: str

    @property
    def given_up(self) -> bool:
        return self.over and self.told_at is None


def add(session: Session, proposal_id: str, url: str, now: datetime) -> None:
    session.add(CallbackRow(proposal_id=proposal_id, url=url, next_at=now))
    session.flush()


def of_proposal(session: Session, proposal_id: str) -> Webhook | None:
    row = session.get(CallbackRow, proposal_id)
    return value_of(Webhook, row) if row is not None else None


def due(session: Session, now: datetime, limit: int) -> list[Webhook]:
    """Those of ended requests whose time has come, oldest first."""
    rows = session.exec(
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
    return [value_of(Webhook, row) for row in rows]


def claim(session: Session, callback: Webhook, next_at: datetime) -> bool:
    """Count one more attempt, to be repeated at ``next_at`` unless it arrives; False: another took it."""
    values = {"attempts": callback.attempts + 1, "next_at": next_at}
    return _change(session, callback.proposal_id, callback.attempts, values)


def arrived(session: Session, callback: Webhook, now: datetime) -> None:
    values = {"over": True, "told_at": now, "fault": ""}
    _change(session, callback.proposal_id, callback.attempts + 1, values)


def failed(session: Session, callback: Webhook, fault: str, *, over: bool) -> None:
    """It did not arrive; ``over`` says that no one tries again."""
    _change(session, callback.proposal_id, callback.attempts + 1, {"over": over, "fault": fault})


def _change(session: Session, proposal_id: str, attempts: int, values: dict[str, Any]) -> bool:
    statement = (
        update(CallbackRow)
        .where(
            col(CallbackRow.proposal_id) == proposal_id,
            col(CallbackRow.attempts) == attempts,
            ~col(CallbackRow.over),
        )
        .values(values)
    )
    return bool(changed(session.execute(statement)))

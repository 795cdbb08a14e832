"""The queries of pages, which are alerts about cards for the people on call. A card has one row.

A page is opened by a step of a rule and ended with the card. The row has the one event that is to be sent
next (`PageEvent`). A process claims the event before it sends it. ``is_over`` says that nothing is left to
send: the event arrived, or was given up.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Update, text, update
from sqlmodel import Session, col, select

from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.features.paging.tables import PageRow
from bot.store import proposals
from bot.store.inserts import insert_or_update
from bot.store.tables.row import count_changed, table_of

_TABLE = table_of(PageRow)
_IS_OPEN = {"sqlite": text("is_over = 0"), "postgresql": text("NOT is_over")}


class PageEvent(StrEnum):
    """The events of a page, by PagerDuty's names."""

    TRIGGER = "trigger"  # alerts the people on call
    RESOLVE = "resolve"  # ends the alert


def open_page(session: Session, proposal: Proposal, more: int, now: datetime) -> None:
    """Open a page about a card, or open an earlier page of the card again. Implements `Notify`.

    ``more``: the number of further proposals on the card.
    """
    row = {
        "proposal_id": proposal.card_id,
        "event": PageEvent.TRIGGER,
        "more": more,
        "attempts": 0,
        "paged_at": now,
        "next_at": now,
        "sending_until": None,
        "is_over": False,
        "fault": "",
    }
    insert_or_update(session, PageRow, row)


def end_page(session: Session, proposal: Proposal, now: datetime) -> None:
    """End the page of a card, if no other proposal on the card waits. Implements `EndProposal`.

    No ``resolve`` is sent if no ``trigger`` was sent, or if the ``trigger`` was given up. A ``trigger`` that
    is being sent now could arrive after the ``resolve``, so the ``resolve`` waits for it.
    """
    page = session.get(PageRow, proposal.card_id)
    if page is None or page.event == PageEvent.RESOLVE:
        return
    members = proposals.list_on_card(session, proposal)
    if any(member.state is State.PROPOSED for member in members if member.id != proposal.id):
        return
    never_arrived = page.attempts == 0 or (page.is_over and bool(page.fault))
    ended = _update_if_unchanged(page).values(
        event=PageEvent.RESOLVE,
        attempts=0,
        next_at=max(page.sending_until or now, now),
        sending_until=None,
        is_over=never_arrived,
        fault="",
    )
    session.connection().execute(ended)
    session.expire(page)


def list_due(session: Session, now: datetime, limit: int) -> list[PageRow]:
    """Return the events that are to be sent by now, the oldest first."""
    dialect = session.connection().dialect.name
    due = select(PageRow).where(_IS_OPEN[dialect], col(PageRow.next_at) <= now)
    rows = session.exec(due.order_by(col(PageRow.next_at)).limit(limit)).all()
    return [PageRow(**row.model_dump()) for row in rows]


def claim_page(session: Session, page: PageRow, next_at: datetime, sending_until: datetime) -> bool:
    """Claim the event of a page for one more attempt, until ``sending_until`` at the latest.

    The attempt is repeated at ``next_at`` unless its outcome is stored before. Returns False if another
    process has claimed the event.
    """
    claim = _update_if_unchanged(page).values(
        attempts=page.attempts + 1, next_at=next_at, sending_until=sending_until
    )
    return bool(count_changed(session.connection().execute(claim)))


def copy_as_claimed(page: PageRow) -> PageRow:
    """Return a page as `claim_page` has left its row, for `mark_sent` and `mark_failed`."""
    return PageRow(**page.model_dump() | {"attempts": page.attempts + 1})


def mark_sent(session: Session, claimed: PageRow) -> None:
    """Store that an event arrived."""
    session.connection().execute(
        _update_if_unchanged(claimed).values(is_over=True, sending_until=None, fault="")
    )


def mark_failed(session: Session, claimed: PageRow, fault: str, next_at: datetime | None) -> bool:
    """Store why an event did not arrive, and the time of the next attempt; None if it is given up.

    Returns False if the page has changed since the claim.
    """
    values: dict[str, Any] = {"is_over": next_at is None, "sending_until": None, "fault": fault}
    if next_at is not None:
        values["next_at"] = next_at
    return bool(count_changed(session.connection().execute(_update_if_unchanged(claimed).values(**values))))


def _update_if_unchanged(page: PageRow) -> Update:
    """Return an update of the page that applies only if the page is unchanged since it was read."""
    return update(_TABLE).where(
        _TABLE.c.proposal_id == page.proposal_id,
        _TABLE.c.event == page.event,
        _TABLE.c.attempts == page.attempts,
        _TABLE.c.paged_at == page.paged_at,
        _TABLE.c.is_over.is_(page.is_over),
    )

"""The one message for each conversation that shows its team: where it stands, and whether it is behind.

A table of its own alongside the copies of cards: those belong to a proposal and are redrawn by answer, this
one belongs to a conversation, and what a press costs stays what it was.
"""

from dataclasses import dataclass

from sqlalchemy import update
from sqlmodel import Session, col, select

from bot.domain.chat import Address
from bot.domain.jobs import Job, Work
from bot.store.inserts import insert_or_ignore
from bot.store.tables.row import table_of, value_of
from bot.store.tables.teams import TeamStatusRow

_TABLE = table_of(TeamStatusRow)
_BEHIND = (_TABLE.c.rendered < _TABLE.c.wanted) & ~_TABLE.c.gone  # as the index ``board_behind`` has it


@dataclass(frozen=True, slots=True)
class TeamStatusCopy:
    """``ref`` is the platform's own reference to the message; empty until it was posted."""

    lead_id: str
    address: Address
    ref: str
    wanted: int


def change(session: Session, lead_id: str, origin: Address | None = None) -> Job:
    """The team is another now, so its message is behind. ``origin`` starts one if there isn't one yet."""
    if origin is not None:
        fresh = insert_or_ignore(session, TeamStatusRow).values(
            lead_id=lead_id, channel=origin.channel, key=origin.key, ref="", wanted=0, rendered=0, gone=False
        )
        session.execute(fresh)
    session.execute(
        update(TeamStatusRow)
        .where(col(TeamStatusRow.lead_id) == lead_id)
        .values(wanted=TeamStatusRow.wanted + 1)
    )
    return Job(Work.TEAM, lead_id)


def behind(session: Session, lead_id: str) -> TeamStatusCopy | None:
    """The board, if it shows less than what is."""
    row = session.exec(select(TeamStatusRow).where(TeamStatusRow.lead_id == lead_id, _BEHIND)).one_or_none()
    return value_of(TeamStatusCopy, row, address=Address(row.channel, row.key)) if row else None


def all_behind(session: Session) -> list[str]:
    """Conversations whose board is behind."""
    return list(session.exec(select(TeamStatusRow.lead_id).where(_BEHIND)))


def mark_shown(session: Session, copy: TeamStatusCopy, ref: str) -> None:
    """It stands there as ``ref`` and shows what was wanted when it was read."""
    session.execute(
        update(TeamStatusRow)
        .where(col(TeamStatusRow.lead_id) == copy.lead_id)
        .values(rendered=copy.wanted, ref=ref)
    )


def mark_gone(session: Session, copy: TeamStatusCopy) -> None:
    session.execute(update(TeamStatusRow).where(col(TeamStatusRow.lead_id) == copy.lead_id).values(gone=True))

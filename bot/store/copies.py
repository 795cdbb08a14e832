"""Where cards were posted, and which of those copies are behind their proposal."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, update
from sqlmodel import Session, col, select

from bot.domain.chat import Address
from bot.store.prepared import Prepared
from bot.store.tables import CopyRow, ProposalRow
from bot.store.upsert import insert_or_ignore


@dataclass(frozen=True, slots=True)
class Copy:
    """One posted card; ``ref`` is the platform's own reference to it."""

    id: int
    proposal_id: str
    address: Address
    ref: str
    wanted: int


_COPY: Any = CopyRow.__table__  # type: ignore[attr-defined]
_PROPOSAL: Any = ProposalRow.__table__  # type: ignore[attr-defined]
_BEHIND = (_COPY.c.rendered < _COPY.c.wanted) & ~_COPY.c.gone  # as the index ``copy_behind`` has it
_BEHIND_OF_MESSAGE = Prepared(
    select(_COPY)
    .join(_PROPOSAL, _PROPOSAL.c.id == _COPY.c.proposal_id)
    .where(_PROPOSAL.c.message_id == bindparam("message_id"), _BEHIND)
    .order_by(_COPY.c.id)
)


def add(session: Session, proposal_id: str, address: Address, ref: str, shown_version: int) -> None:
    """Remember a card that was just posted; it is behind if the proposal moved while it was sent."""
    version = session.exec(select(ProposalRow.version).where(ProposalRow.id == proposal_id)).one()
    session.execute(
        insert_or_ignore(session, CopyRow).values(
            proposal_id=proposal_id,
            channel=address.channel,
            key=address.key,
            ref=ref,
            wanted=int(version != shown_version),
            rendered=0,
            gone=False,
        )
    )


def of_proposal(session: Session, proposal_id: str) -> list[Copy]:
    rows = session.exec(select(CopyRow).where(CopyRow.proposal_id == proposal_id).order_by(col(CopyRow.id)))
    return [_copy(row) for row in rows]


def behind(session: Session, message_id: int) -> list[Copy]:
    """Copies of the proposals of one answer that show less than what is."""
    rows = _BEHIND_OF_MESSAGE.rows(session, {"message_id": message_id})
    return [_copy(row) for row in rows]


def all_behind(session: Session) -> list[int]:
    """Message ids of the answers with a copy that is behind."""
    rows = session.exec(
        select(ProposalRow.message_id)
        .join(CopyRow, col(ProposalRow.id) == col(CopyRow.proposal_id))
        .where(_BEHIND)
        .distinct()
    )
    return sorted(rows)


def mark_rendered(session: Session, copy: Copy) -> None:
    """The copy shows what was wanted when it was read; a change since keeps it behind."""
    session.execute(update(CopyRow).where(col(CopyRow.id) == copy.id).values(rendered=copy.wanted))


def mark_gone(session: Session, copy: Copy) -> None:
    session.execute(update(CopyRow).where(col(CopyRow.id) == copy.id).values(gone=True))


def is_at(session: Session, proposal_id: str, address: Address) -> bool:
    """Whether a copy of this proposal stands at this address."""
    found = session.exec(
        select(CopyRow.id)
        .where(
            CopyRow.proposal_id == proposal_id,
            CopyRow.channel == address.channel,
            CopyRow.key == address.key,
        )
        .limit(1)
    )
    return found.first() is not None


def _copy(row: Any) -> Copy:
    return Copy(row.id or 0, row.proposal_id, Address(row.channel, row.key), row.ref, row.wanted)

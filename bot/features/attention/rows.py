"""The queries of attention, over two tables: cards that reached people, and cards that were held back.

A card shows people a proposal, or a batch of several, for their decision. By a rule of attention only so many
cards an hour reach a person. A card that reached an account counts for `HOUR`. A held card is due at
``until``: then it is released, that is, the account is told. Afterwards the release is recorded in the card's
history. Each change is guarded by the database, so of several processes only one makes it.

The column ``proposal_id`` has the id of a card: that of its only proposal, or of the first of its batch.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, func, or_, select, update
from sqlmodel import Session, col

from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.features.attention.tables import HeldRow, ReachedRow
from bot.store import proposals
from bot.store.inserts import insert_or_ignore
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, table_of

HOUR = timedelta(hours=1)
"""The period for which the cards that reached a person are counted."""
LONGEST_HOLD = timedelta(minutes=30)
"""The longest time for which a card is held back."""
_RELEASED_KEPT_FOR = timedelta(days=1)  # the time for which rows of released cards stay, to be looked up
# the tables, for statements in SQLAlchemy's core
_REACHED = table_of(ReachedRow)
_HELD = table_of(HeldRow)
_PROPOSAL = table_of(ProposalRow)


class ReleasedCards(NamedTuple):
    """The cards that were released for one account."""

    proposals: Sequence[Proposal]
    """The cards that are still open, soonest to expire first."""
    shared_chat: str
    """The address of a shared chat that has some of the cards; empty without one."""


class HeldCounts(NamedTuple):
    """The number of cards that are held back, and of the late ones among them."""

    held: int
    late: int


def count_reached(session: Session, accounts: Collection[str], now: datetime) -> int:
    """Return how many cards reached a person's accounts in the last hour."""
    is_recent = (_REACHED.c.account.in_(sorted(accounts)), _REACHED.c.reached_at > now - HOUR)
    counted = select(func.count(_REACHED.c.proposal_id.distinct())).where(*is_recent)
    return session.connection().execute(counted).scalar_one()


def note_reached(session: Session, accounts: Collection[str], card_id: str, now: datetime) -> None:
    """Note that a card reached these accounts. A second delivery of the card changes nothing."""
    rows = [{"account": each, "proposal_id": card_id, "reached_at": now} for each in sorted(accounts)]
    if rows:
        session.connection().execute(insert_or_ignore(session, ReachedRow), rows)


def has_reached(session: Session, accounts: Collection[str], card_id: str) -> bool:
    """Return whether a card reached one of a person's accounts. Rows older than an hour may be deleted."""
    is_same = (_REACHED.c.account.in_(sorted(accounts)), _REACHED.c.proposal_id == card_id)
    row = session.connection().execute(select(_REACHED.c.account).where(*is_same).limit(1)).first()
    return row is not None


def has_earlier_open(session: Session, proposal: Proposal, accounts: Collection[str], count: int) -> bool:
    """Return whether the asker has ``count`` open cards, or more, that are older than that of ``proposal``.

    The asker is the person with ``accounts``. For the proposal of an agent, a program, the agent is the
    asker, and ``accounts`` does not matter.
    """
    table = _PROPOSAL
    if proposal.agent:
        is_of_asker = table.c.agent == proposal.agent
    else:
        is_of_asker = table.c.requester.in_(sorted(accounts)) & table.c.agent.is_(None)
    is_open = table.c.state == State.PROPOSED
    is_earlier = or_(
        table.c.message_id < proposal.message_id,
        (table.c.message_id == proposal.message_id) & (table.c.position < proposal.position),
    )
    card_id = func.coalesce(table.c.batch, table.c.id)
    earlier_cards = (
        select(card_id)
        .where(is_of_asker, is_open, is_earlier, card_id != proposal.card_id)
        .distinct()
        .limit(count)
    )
    return len(session.connection().execute(earlier_cards).all()) == count


def find_held(session: Session, card_id: str) -> Mapping[str, HeldRow]:
    """Return the rows of a card that is or was held back, by account."""
    rows = session.execute(select(HeldRow).where(col(HeldRow.proposal_id) == card_id)).scalars()
    return {row.account: row for row in rows}


def store_held(session: Session, row: HeldRow) -> None:
    """Hold a card back from an account, unless the account has a row for the card already."""
    session.connection().execute(insert_or_ignore(session, HeldRow), row.model_dump())


def end_hold(session: Session, card_id: str, now: datetime) -> None:
    """Make a held card due now for everyone, because it has become urgent."""
    is_not_due = (_HELD.c.proposal_id == card_id, _HELD.c.released_at.is_(None), _HELD.c.until > now)
    session.connection().execute(update(_HELD).where(*is_not_due).values(until=now))


def list_due_accounts(session: Session, now: datetime, limit: int) -> Sequence[str]:
    """Return the accounts with held cards that are due, the longest due first."""
    is_due = or_(_HELD.c.until <= now, _HELD.c.until > now + LONGEST_HOLD)  # or the clock was set back
    due = (
        select(_HELD.c.account)
        .where(_HELD.c.released_at.is_(None), is_due)
        .group_by(_HELD.c.account)
        .order_by(func.min(_HELD.c.until))
        .limit(limit)
    )
    return list(session.connection().execute(due).scalars())


def release_all(session: Session, account: str, now: datetime) -> ReleasedCards:
    """Release all held cards of an account, due or not. Return no cards if another process was faster."""
    is_held = (_HELD.c.account == account, _HELD.c.released_at.is_(None))
    places = session.connection().execute(select(_HELD.c.place).where(*is_held, _HELD.c.place != "").limit(1))
    shared_chat = places.scalar() or ""
    release = update(_HELD).where(*is_held).values(released_at=now)
    if not count_changed(session.connection().execute(release)):
        return ReleasedCards((), "")
    ids = select(_HELD.c.proposal_id).where(_HELD.c.account == account, _HELD.c.released_at == now)
    return ReleasedCards(proposals.list_waiting_on_cards(session, ids), shared_chat)


def list_unrecorded(session: Session, limit: int) -> Sequence[str]:
    """Return released cards whose history does not have the release yet, the oldest release first."""
    oldest_first = (
        select(_HELD.c.proposal_id)
        .where(~_HELD.c.recorded, _HELD.c.released_at.is_not(None))
        .order_by(_HELD.c.released_at)
        .limit(limit)
    )
    return list(dict.fromkeys(session.connection().execute(oldest_first).scalars()))  # each card once


def mark_recorded(session: Session, card_id: str) -> bool:
    """Mark a card's release as recorded. Returns False if another process was faster."""
    is_released = (_HELD.c.proposal_id == card_id, _HELD.c.released_at.is_not(None))
    mark = update(_HELD).where(*is_released, ~_HELD.c.recorded).values(recorded=True)
    return bool(count_changed(session.connection().execute(mark)))


def has_unrecorded(session: Session) -> bool:
    """Return whether any card is held, or was released and its history does not have the release yet."""
    unrecorded = select(_HELD.c.account).where(~_HELD.c.recorded).limit(1)
    return session.connection().execute(unrecorded).first() is not None


def count_held(session: Session, late_before: datetime) -> HeldCounts:
    """Count the cards that are held back from someone. Those due before ``late_before`` are late."""
    count = select(func.count(_HELD.c.proposal_id.distinct())).where(_HELD.c.released_at.is_(None))
    held = session.connection().execute(count).scalar_one()
    late = session.connection().execute(count.where(_HELD.c.until < late_before)).scalar_one()
    return HeldCounts(held, late)


def purge_old_rows(session: Session, now: datetime) -> None:
    """Delete the rows of cards that reached someone over an hour ago, or were released over a day ago."""
    session.connection().execute(delete(_REACHED).where(_REACHED.c.reached_at <= now - HOUR))
    is_old = (_HELD.c.recorded, _HELD.c.released_at < now - _RELEASED_KEPT_FOR)
    session.connection().execute(delete(_HELD).where(*is_old))

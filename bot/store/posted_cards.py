"""Posted copies of cards: their places, and which of them are outdated.

A *copy* is a card that was posted to one place. Each change of a proposal raises ``wanted`` of its copies,
and drawing a copy sets ``rendered`` to the value that ``wanted`` had when the proposal was read. So a copy is
*outdated* while ``rendered < wanted``, and a change during the drawing is not lost. A copy is *gone* if it
was deleted there or can't be reached.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, exists, func, update
from sqlmodel import Session, col, select

from bot.domain.chat import Address
from bot.domain.proposals import Proposal, State
from bot.store import proposals
from bot.store.engine import insert_or_ignore
from bot.store.hooks import hooks_of
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import CopyRow, ProposalRow
from bot.store.tables.row import table_of, value_of

_COPY = table_of(CopyRow)
_PROPOSAL = table_of(ProposalRow)
IS_OUTDATED = (_COPY.c.rendered < _COPY.c.wanted) & ~_COPY.c.gone  # as in the index ``copy_behind``
_ROW = _PROPOSAL.alias("row")
_PASSING_STATES = (State.APPROVED, State.EXECUTING)  # a proposal in them changes again soon
_BATCH_PASSES = exists().where(_ROW.c.batch == _PROPOSAL.c.id, _ROW.c.state.in_(_PASSING_STATES))
_OUTDATED_OF_MESSAGE = (
    select(_COPY, (_PROPOSAL.c.state.in_(_PASSING_STATES) | _BATCH_PASSES).label("passing"))
    .join(_PROPOSAL, _PROPOSAL.c.id == _COPY.c.proposal_id)
    .where(_PROPOSAL.c.message_id == bindparam("message_id"), IS_OUTDATED)
    .order_by(_COPY.c.id.desc())  # the first card sums up the others, so it is drawn after them
)
_ON_CARD = (_PROPOSAL.c.id == bindparam("card_id")) | (_PROPOSAL.c.batch == bindparam("card_id"))
_VERSION = select(func.sum(_PROPOSAL.c.version)).where(_ON_CARD).scalar_subquery()
_CHANGES_TO_SHOW = case((bindparam("shown_version") == _VERSION, 0), else_=1)
_MARK_RENDERED = (
    update(_COPY)
    .where(_COPY.c.id == bindparam("copy_id"))
    .values(rendered=bindparam("rendered"), shown=bindparam("shown"))
    .returning(_COPY.c.wanted)
)


@dataclass(frozen=True, slots=True)
class Copy:
    """One posted card."""

    id: int
    proposal_id: str  # for a batch, its first row
    address: Address
    ref: str  # the platform's own reference to the message
    wanted: int  # the number of changes so far that the card is to show
    shown: str | None = None  # the fingerprint of the card that it shows, where that is known
    gone: bool = False  # deleted there, or can't be reached


def add_card(
    session: Session,
    proposal_id: str,
    address: Address,
    ref: str,
    shown_version: int,
    fingerprint: str | None = None,
) -> bool:
    """Store a posted card; return True if it is outdated, since the proposal changed while it was posted.

    ``shown_version``: the version of the proposal on the card, for a batch the sum over its rows. 0: the
    version is not known, so the card counts as outdated. ``fingerprint``: that of the card that was posted.
    """
    copy = {
        "proposal_id": proposal_id,
        "channel": address.channel,
        "key": address.key,
        "ref": ref,
        "rendered": 0,
        "gone": False,
        "shown": fingerprint,
    }
    versions = {"card_id": proposal_id, "shown_version": shown_version}
    added = insert_or_ignore(session, CopyRow, "wanted").values(wanted=_CHANGES_TO_SHOW)
    wanted = session.connection().execute(added, copy | versions).scalar()
    if shown_version:
        _note_copy(session, proposal_id, address, ref)
    return bool(wanted)  # a copy that had a row already is redrawn by that row


def list_copies(session: Session, proposal_id: str) -> list[Copy]:
    rows = session.exec(select(CopyRow).where(CopyRow.proposal_id == proposal_id).order_by(col(CopyRow.id)))
    return [_copy(row) for row in rows]


class PostedMessage(NamedTuple):
    """The stored facts on a posted message."""

    proposal_id: str
    gone: bool  # the message was given up


def find_posted(session: Session, channel: str, ref: str) -> PostedMessage | None:
    """Return the stored facts on the message ``ref`` in a channel; None if it is not known as a card."""
    found = select(CopyRow.proposal_id, CopyRow.gone).where(CopyRow.channel == channel, CopyRow.ref == ref)
    row = session.exec(found.order_by(col(CopyRow.gone)).limit(1)).first()
    return PostedMessage(*row) if row else None


def is_card_of(session: Session, proposal: Proposal, channel: str, ref: str) -> bool:
    """Return whether the message ``ref`` is known as a card of this proposal or its batch, and not gone."""
    known = find_posted(session, channel, ref)
    return known is not None and not known.gone and known.proposal_id in (proposal.id, proposal.card_id)


def revive(session: Session, channel: str, ref: str) -> None:
    """Mark the copies with this reference that were gone as present after all, and as outdated."""
    given_up = update(CopyRow).where(
        col(CopyRow.channel) == channel, col(CopyRow.ref) == ref, col(CopyRow.gone)
    )
    session.execute(given_up.values(gone=False, wanted=CopyRow.wanted + 1, shown=None))


class OutdatedCopy(NamedTuple):
    """A copy that is outdated."""

    copy: Copy
    is_passing: bool  # its card changes again soon, since a call on it is approved or runs


def list_outdated_copies(session: Session, message_id: int) -> list[OutdatedCopy]:
    """Return the outdated copies of an answer's cards; the card with the shared buttons comes last."""
    rows = session.connection().execute(_OUTDATED_OF_MESSAGE, {"message_id": message_id}).all()
    return [OutdatedCopy(_copy(row), row.passing) for row in rows]


def list_outdated_messages(session: Session) -> list[int]:
    """Return the ids of the answers with an outdated copy."""
    rows = session.exec(
        select(ProposalRow.message_id)
        .join(CopyRow, col(ProposalRow.id) == col(CopyRow.proposal_id))
        .where(IS_OUTDATED)
    )
    return sorted(set(rows))  # DISTINCT would lead PostgreSQL to an index of all proposals


def mark_rendered(session: Session, copy: Copy, fingerprint: str | None = None) -> bool:
    """Mark a copy as drawn with the changes up to when it was read; return True if it is outdated again."""
    shows = {"copy_id": copy.id, "rendered": copy.wanted, "shown": fingerprint}
    wanted = session.connection().execute(_MARK_RENDERED, shows).scalar()
    _note_copy(session, copy.proposal_id, copy.address, copy.ref)
    return wanted is not None and wanted != copy.wanted


def _note_copy(session: Session, card_id: str, address: Address, ref: str) -> None:
    for note_copy in hooks_of(session).note_copy:
        note_copy(session, card_id, address.channel, address.key, ref)


def mark_open_outdated(session: Session) -> list[int]:
    """Mark the copies of all open and approved proposals as outdated, though none of these changed.

    Returns the ids of all answers with an outdated copy.
    """
    changing = select(ProposalRow.id).where(col(ProposalRow.state).in_(("proposed", "approved")))
    session.execute(
        update(CopyRow)
        .where(col(CopyRow.proposal_id).in_(changing), col(CopyRow.gone).is_(False))
        .values(wanted=CopyRow.wanted + 1)
    )
    return list_outdated_messages(session)


def mark_gone(session: Session, copy: Copy) -> None:
    session.execute(update(CopyRow).where(col(CopyRow.id) == copy.id).values(gone=True))


def mark_lost(session: Session, channel: str, ref: str) -> None:
    """Mark the posted message ``ref`` as gone."""
    there = (col(CopyRow.channel) == channel) & (col(CopyRow.ref) == ref)
    session.execute(update(CopyRow).where(there).values(gone=True))


def are_posted_at(session: Session, proposal_ids: Collection[str], address: Address) -> bool:
    """Return whether each of these proposals has a copy at this address."""
    found = session.exec(
        select(CopyRow.proposal_id)
        .where(
            col(CopyRow.proposal_id).in_(proposal_ids),
            CopyRow.channel == address.channel,
            CopyRow.key == address.key,
        )
        .distinct()
    )
    return len(found.all()) == len(proposal_ids)


def mark_group_outdated(session: Session, message_id: int) -> None:
    """Mark the card with the shared buttons of an answer as outdated, once all of its cards are posted."""
    groups = proposals.load_siblings(session, [message_id])
    with_buttons = [ident for ident, group in groups.items() if group[0].batch is None]
    outdated = update(CopyRow).where(col(CopyRow.proposal_id).in_(with_buttons))
    session.execute(outdated.values(wanted=CopyRow.wanted + 1))


def find_key(session: Session, channel: str, ref: str) -> str | None:
    """Return the place at which the message ``ref`` was posted; None when no row names it."""
    return session.exec(select(CopyRow.key).where(CopyRow.channel == channel, CopyRow.ref == ref)).first()


def mark_outdated(session: Session, channel: str, prefix: str) -> None:
    """Mark the cards whose references begin with ``prefix`` as outdated."""
    below = col(CopyRow.ref).startswith(prefix, autoescape=True)
    outdated = update(CopyRow).where(col(CopyRow.channel) == channel, below)
    session.execute(outdated.values(wanted=CopyRow.wanted + 1, shown=None))


def is_place_known(session: Session, channel: str, key: str) -> bool:
    """Return whether anyone has talked to Nod at this place or below it."""
    at = col(ConversationRow.key)
    keys = (at == key) | at.startswith(f"{key}/", autoescape=True)
    found = select(ConversationRow.id).where(ConversationRow.channel == channel, keys).limit(1)
    return session.exec(found).first() is not None


def find_group_card(session: Session, proposal_id: str) -> str | None:
    """Return the first proposal of the group of this one, whose card has the shared buttons.

    None for a proposal in no group of several.
    """
    found = proposals.get(session, proposal_id)
    groups = proposals.load_siblings(session, [found.message_id]) if found else {}
    for first_id, group in groups.items():
        if len(group) > 1 and any(sibling.id == proposal_id for sibling in group):
            return first_id
    return None


def _copy(row: Any) -> Copy:
    return value_of(Copy, row, address=Address(row.channel, row.key))

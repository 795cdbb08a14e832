"""Posted copies of cards: their places, and which of them are outdated.

A *copy* is a card that was posted to one place. Each change of a proposal raises ``wanted`` of its copies,
and drawing a copy sets ``rendered`` to the value that ``wanted`` had when the proposal was read. So a copy is
*outdated* while ``rendered < wanted``, and a change during the drawing is not lost. A copy is *gone* if it
was deleted there or can't be reached.

The proposals of one answer of the agent share cards and buttons:

- A *batch*, several calls of one tool, has one card. Its copies name the batch's first proposal.
- The other proposals have a card each, and together are a *group*.
- The first card of a group also has the *shared buttons*, which decide all proposals of the group.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, exists, func, update
from sqlmodel import Session, col, select

from bot.domain.chat import Address
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.store import proposals
from bot.store.hooks import hooks_of
from bot.store.inserts import insert_or_ignore
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.proposals import CopyRow, ProposalRow
from bot.store.tables.row import is_at_or_below, table_of, value_of

_COPY = table_of(CopyRow)
_PROPOSAL = table_of(ProposalRow)
IS_OUTDATED = (_COPY.c.rendered < _COPY.c.wanted) & ~_COPY.c.gone  # as in the index ``copy_behind``

# for `add_card`: 1 if a proposal on the card has changed since the card was drawn, else 0
_ON_CARD = (_PROPOSAL.c.id == bindparam("card_id")) | (_PROPOSAL.c.batch == bindparam("card_id"))
_CURRENT_VERSION = select(func.sum(_PROPOSAL.c.version)).where(_ON_CARD).scalar_subquery()
_IS_CHANGED = case((bindparam("shown_version") == _CURRENT_VERSION, 0), else_=1)

# for `list_outdated_copies`: the copies, and as ``passing`` if a proposal on the card will change again soon
_STATES_OF_RUNS = (State.APPROVED, State.EXECUTING)
_MEMBER = _PROPOSAL.alias("member")  # a proposal of the card's batch
_BATCH_RUNS = exists().where(_MEMBER.c.batch == _PROPOSAL.c.id, _MEMBER.c.state.in_(_STATES_OF_RUNS))
_OUTDATED_OF_MESSAGE = (
    select(_COPY, (_PROPOSAL.c.state.in_(_STATES_OF_RUNS) | _BATCH_RUNS).label("passing"))
    .join(_PROPOSAL, _PROPOSAL.c.id == _COPY.c.proposal_id)
    .where(_PROPOSAL.c.message_id == bindparam("message_id"), IS_OUTDATED)
    .order_by(_COPY.c.id.desc())  # the card with the shared buttons was posted first
)

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
    proposal_id: str  # for a batch, that of its first proposal
    address: Address
    ref: str  # the platform's own reference to the message
    wanted: int  # the number of changes so far that the card is to show
    shown: str | None = None  # the fingerprint (a hash of the contents) of the card that it shows, if known
    gone: bool = False  # deleted there, or can't be reached


def add_card(
    session: Session,
    proposal_id: str,
    address: Address,
    ref: str,
    shown_version: int,
    fingerprint: str | None = None,
) -> bool:
    """Store a posted card; return True if the proposal changed while it was posted, so that it is outdated.

    - ``shown_version``: the version of the proposal on the card, for a batch the sum over its proposals; 0 if
      the version is not known, so that the card counts as outdated
    - ``fingerprint``: that of the card that was posted

    Returns False if the copy is stored already: its row says if it is outdated.
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
    insert_copy = insert_or_ignore(session, CopyRow, "wanted").values(wanted=_IS_CHANGED)
    wanted = session.connection().execute(insert_copy, copy | versions).scalar()
    if shown_version:  # a card of unknown version is noted once it is drawn again
        _note_copy(session, proposal_id, address, ref)
    return bool(wanted)


def list_copies(session: Session, proposal_id: str) -> list[Copy]:
    """Return the copies of a card, also those that are gone, in the order they were posted.

    ``proposal_id``: for a batch, that of its first proposal.
    """
    rows = session.exec(select(CopyRow).where(CopyRow.proposal_id == proposal_id).order_by(col(CopyRow.id)))
    return [_to_copy(row) for row in rows]


class PostedMessage(NamedTuple):
    """The stored facts on a posted message."""

    proposal_id: str  # for a batch, that of its first proposal
    gone: bool


def find_posted(session: Session, channel: str, ref: str) -> PostedMessage | None:
    """Return the stored facts on the message ``ref`` in a channel; None if it is not known as a card.

    Of several copies with that reference, one that is not gone comes first.
    """
    found = select(CopyRow.proposal_id, CopyRow.gone).where(CopyRow.channel == channel, CopyRow.ref == ref)
    row = session.exec(found.order_by(col(CopyRow.gone)).limit(1)).first()
    return PostedMessage(*row) if row else None


def is_card_of(session: Session, proposal: Proposal, channel: str, ref: str) -> bool:
    """Return whether the message ``ref`` is known as a card of this proposal or its batch, and not gone."""
    known = find_posted(session, channel, ref)
    return known is not None and not known.gone and known.proposal_id in (proposal.id, proposal.card_id)


def mark_reachable(session: Session, channel: str, ref: str) -> None:
    """Mark the copies with this reference that are gone as reachable again, and as outdated."""
    gone = update(CopyRow).where(col(CopyRow.channel) == channel, col(CopyRow.ref) == ref, col(CopyRow.gone))
    session.execute(gone.values(gone=False, wanted=CopyRow.wanted + 1, shown=None))


class OutdatedCopy(NamedTuple):
    """A copy that is outdated."""

    copy: Copy
    changes_soon: bool  # its card will change again soon, since a call on it is approved or runs


def list_outdated_copies(session: Session, message_id: int) -> list[OutdatedCopy]:
    """Return the outdated copies of an answer's cards, the newest copy first.

    So the card with the shared buttons is drawn after the other cards of its group.
    """
    rows = session.connection().execute(_OUTDATED_OF_MESSAGE, {"message_id": message_id}).all()
    return [OutdatedCopy(_to_copy(row), row.passing) for row in rows]


def list_outdated_messages(session: Session) -> list[int]:
    """Return the message ids of the answers with an outdated copy."""
    rows = session.exec(
        select(ProposalRow.message_id)
        .join(CopyRow, col(ProposalRow.id) == col(CopyRow.proposal_id))
        .where(IS_OUTDATED)
    )
    return sorted(set(rows))  # DISTINCT would lead PostgreSQL to an index of all proposals


def mark_rendered(session: Session, copy: Copy, fingerprint: str | None = None) -> bool:
    """Mark a copy as drawn with the changes up to when it was read; return True if it is outdated again.

    ``fingerprint``: that of the card that was drawn.
    """
    drawn = {"copy_id": copy.id, "rendered": copy.wanted, "shown": fingerprint}
    wanted = session.connection().execute(_MARK_RENDERED, drawn).scalar()
    _note_copy(session, copy.proposal_id, copy.address, copy.ref)
    return wanted is not None and wanted != copy.wanted


def mark_open_outdated(session: Session) -> list[int]:
    """Mark the cards of all waiting and approved proposals as outdated, though none of these changed.

    Returns the message ids of all answers with an outdated copy.
    """
    # the card of a batch is stored under the id of its first proposal, which may have ended
    card_id = func.coalesce(col(ProposalRow.batch), col(ProposalRow.id))
    open_cards = select(card_id).where(col(ProposalRow.state).in_(("proposed", "approved")))
    session.execute(
        update(CopyRow)
        .where(col(CopyRow.proposal_id).in_(open_cards), col(CopyRow.gone).is_(False))
        .values(wanted=CopyRow.wanted + 1)
    )
    return list_outdated_messages(session)


def mark_gone(session: Session, copy: Copy) -> None:
    session.execute(update(CopyRow).where(col(CopyRow.id) == copy.id).values(gone=True))


def mark_message_gone(session: Session, channel: str, ref: str) -> None:
    """Mark the posted message ``ref`` as gone."""
    is_message = (col(CopyRow.channel) == channel) & (col(CopyRow.ref) == ref)
    session.execute(update(CopyRow).where(is_message).values(gone=True))


def are_posted_at(session: Session, proposal_ids: Collection[str], address: Address) -> bool:
    """Return whether each of these proposals has a copy at this address, even one that is gone."""
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
    """Mark the card with the shared buttons of an answer as outdated, after all cards were posted."""
    groups = proposals.load_siblings(session, [message_id])  # batches, too, by the id of the first proposal
    # a batch has its buttons on its only card
    with_buttons = [first_id for first_id, group in groups.items() if group[0].batch is None]
    outdated = update(CopyRow).where(col(CopyRow.proposal_id).in_(with_buttons))
    session.execute(outdated.values(wanted=CopyRow.wanted + 1))


def find_address_key(session: Session, channel: str, ref: str) -> str | None:
    """Return the key of the address at which the message ``ref`` was posted; None for an unknown message."""
    return session.exec(select(CopyRow.key).where(CopyRow.channel == channel, CopyRow.ref == ref)).first()


def mark_outdated(session: Session, channel: str, prefix: str) -> None:
    """Mark the copies whose references begin with ``prefix`` as outdated, and forget which card they show."""
    has_prefix = col(CopyRow.ref).startswith(prefix, autoescape=True)
    outdated = update(CopyRow).where(col(CopyRow.channel) == channel, has_prefix)
    session.execute(outdated.values(wanted=CopyRow.wanted + 1, shown=None))


def is_place_known(session: Session, channel: str, key: str) -> bool:
    """Return whether anyone has talked to Nod at this place, or below it, as in a thread of a chat."""
    is_there = is_at_or_below(col(ConversationRow.key), key)
    found = select(ConversationRow.id).where(ConversationRow.channel == channel, is_there).limit(1)
    return session.exec(found).first() is not None


def find_group_card(session: Session, proposal_id: str) -> str | None:
    """Return the id of the first proposal of this one's group or batch, whose card has the buttons for all.

    None for a proposal that is alone in its group.
    """
    found = proposals.get(session, proposal_id)
    groups = proposals.load_siblings(session, [found.message_id]) if found else {}
    for first_id, group in groups.items():
        if len(group) > 1 and any(sibling.id == proposal_id for sibling in group):
            return first_id
    return None


def _note_copy(session: Session, card_id: str, address: Address, ref: str) -> None:
    """Tell the features by their hooks that a copy is posted or drawn."""
    for note_copy in hooks_of(session).note_copy:
        note_copy(session, card_id, address.channel, address.key, ref)


def _to_copy(row: Any) -> Copy:
    return value_of(Copy, row, address=Address(row.channel, row.key))

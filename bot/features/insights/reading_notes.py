"""Notes on how people read cards, which are stored if NOD_INSIGHTS is ``people``.

A card shows people one proposal, or a batch of several, for their decision. A copy is one place where the
card was posted. There are three notes: when a copy was shown, which part of a card a person opened, and how
many words a decided card had. `reading_signs.py` makes statistics of them.

A proposal's round is a number that grows when its contents change, or when it is tried again. ``rounds`` is
the sum over the proposals of a card. It grows with each such change of any of them, so it says which state of
the card a note is about.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import func, or_, select, update
from sqlmodel import Session

from bot.domain.call_text import format_call
from bot.domain.card_rendering import render_card
from bot.domain.chat import Clock, Press
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.reading_signs import count_words
from bot.features.insights.tables import OpenedCardRow, ReadDecisionRow, ShownCopyRow
from bot.store import proposals
from bot.store.inserts import insert_or_ignore
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import delete_older, table_of

RETENTION = timedelta(days=366)
"""The time for which notes are stored: no report looks further back."""
NOTES_PURGE_SECONDS = 3600
"""The seconds between two deletions of old notes."""
_PURGE_ROWS = 1000  # rows of a table that are deleted at a time
_COPY = table_of(ShownCopyRow)
_PROPOSAL = table_of(ProposalRow)


class CardPart(StrEnum):
    """The parts of a card that people open."""

    ALL = "all"  # *View all*: the full contents
    DIFF = "diff"  # the changes that a trial of the call made


class ReadingNotes:
    """The writer of notes on how people read, for reports. Only made if NOD_INSIGHTS is ``people``.

    Implements the hooks `NoteCopy`, `NoteOpened` and `NoteDecision`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def note_copy(self, session: Session, card_id: str, channel: str, key: str, ref: str) -> None:
        """Store the time from which a posted copy shows the current rounds of its card."""
        rounds = _sum_rounds(session, card_id)
        now = self._clock()
        row = {"card_id": card_id, "channel": channel, "key": key, "ref": ref, "rounds": rounds, "at": now}
        session.connection().execute(insert_or_ignore(session, ShownCopyRow), row)
        is_outdated = (_COPY.c.channel == channel, _COPY.c.ref == ref, _COPY.c.rounds != rounds)
        session.connection().execute(update(_COPY).where(*is_outdated).values(rounds=rounds, at=now))

    def note_opened(
        self, session: Session, proposal: Proposal, actor: Actor, part: str, now: datetime
    ) -> None:
        """Store that a person opened a part of a card, for the first time in these rounds."""
        row = {
            "card_id": proposal.card_id,
            "account": str(actor),
            "rounds": _sum_rounds(session, proposal.card_id),
            "part": CardPart(part),
            "at": now,
        }
        session.connection().execute(insert_or_ignore(session, OpenedCardRow), row)

    def note_decision(self, session: Session, seen: Proposal, press: Press, now: datetime) -> None:
        """Store the number of words on a decided proposal's card, and the time from which they were shown.

        ``seen`` is the proposal as the card showed it, before the decision.
        """
        schema = proposals.load_schema(session, seen.tool_name, seen.tool_version) or {}
        row = {
            "proposal_id": seen.id,
            "account": str(press.actor),
            "at": now,
            # the decision may already have begun another round, by an edit; the round that was shown counts
            "rounds": seen.round + _sum_rounds(session, seen.card_id, without=seen.id),
            "words": count_words(format_call(render_card(seen, schema))),
            "shown_at": _find_shown_since(session, seen, press),
        }
        session.connection().execute(insert_or_ignore(session, ReadDecisionRow), row)


def _find_shown_since(session: Session, shown: Proposal, press: Press) -> datetime | None:
    """Return the time from which the pressed copy shows the current rounds; None if it is not known.

    A press that names no copy counts for the newest copy in its chat. Without a note on a copy, a proposal of
    the first round has been shown since it was made.
    """
    if press.address is not None:
        copies = select(_COPY.c.at, _COPY.c.ref).where(
            _COPY.c.card_id == shown.card_id,
            _COPY.c.channel == press.address.channel,
            _COPY.c.key == press.address.key,
        )
        oldest_first = session.connection().execute(copies.order_by(_COPY.c.at)).all()
        times: list[datetime] = [row.at for row in oldest_first if press.ref is None or press.ref == row.ref]
        if times:
            return times[-1]
    return shown.created_at if shown.round == 1 else None


def _sum_rounds(session: Session, card_id: str, without: str = "") -> int:
    """Return the sum of the rounds of a card's proposals; ``without``: the id of one that is left out."""
    of_card = or_(_PROPOSAL.c.id == card_id, _PROPOSAL.c.batch == card_id) & (_PROPOSAL.c.id != without)
    rounds = session.connection().execute(select(func.sum(_PROPOSAL.c.round)).where(of_card)).scalar()
    return int(rounds or 0)


def purge_notes(session: Session, before: datetime) -> None:
    """Delete notes that are older than ``before``, at most `_PURGE_ROWS` of each kind."""
    for row in (ShownCopyRow, OpenedCardRow, ReadDecisionRow):
        delete_older(session, row, "at", before, _PURGE_ROWS)

"""The rows of a conversation that people have not been shown yet: lines with their cards, files, answers.

``bot/channels/delivery/turns.py`` posts them. One statement finds out which kinds of rows there are, and only
these are read.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, select
from sqlmodel import Session

from bot.domain.conversations import AskedQuestion, Conversation, Line, LineRole
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.store import conversations, messages, outputs, proposals, questions
from bot.store.outputs import StoredOutput
from bot.store.tables.conversations import ConversationRow
from bot.store.tables.row import table_of

_CONVERSATION = table_of(ConversationRow)
_SELECT_KINDS = select(
    *_CONVERSATION.c,
    messages.UNDELIVERED.exists().label("has_lines"),
    outputs.UNPOSTED.exists().label("has_files"),
    questions.SELECT_ASKED_KEYS.exists().label("has_questions"),  # of which some may be answered
).where(_CONVERSATION.c.id == bindparam("conversation_id"))


class Undelivered(NamedTuple):
    """The rows of a conversation that are still to be shown."""

    conversation: Conversation
    lines: Sequence[tuple[Line, Sequence[Proposal]]]  # each with the proposals that get a card below it
    files: Sequence[StoredOutput]
    answers: Sequence[AskedQuestion]  # answered questions about proposals


def read_undelivered(session: Session, conversation_id: str) -> Undelivered | None:
    """Return the rows that are still to be shown, perhaps none; None if there is no such conversation."""
    row = session.connection().execute(_SELECT_KINDS, {"conversation_id": conversation_id}).first()
    if row is None:
        return None
    undelivered = Undelivered(conversations.from_row(row), lines=[], files=[], answers=[])
    if row.has_lines:
        undelivered = undelivered._replace(lines=_read_lines(session, conversation_id))
    if row.has_files:
        undelivered = undelivered._replace(files=outputs.list_unposted(session, conversation_id))
    if row.has_questions:
        undelivered = undelivered._replace(answers=questions.list_answered(session, conversation_id))
    return undelivered


def _read_lines(session: Session, conversation_id: str) -> list[tuple[Line, Sequence[Proposal]]]:
    """Return the undelivered lines, each with the proposals that get a card below it."""
    lines = messages.list_undelivered(session, conversation_id)
    may_have_cards = [line.id for line in lines if line.calls or line.role is not LineRole.ASSISTANT]
    cards: defaultdict[int, list[Proposal]] = defaultdict(list)
    for proposal in proposals.list_of_messages(session, may_have_cards):
        # a batch has the id of its first proposal; of the cancelled ones only that gets a card
        is_first_of_batch = proposal.batch == proposal.id
        if proposal.state is not State.CANCELLED or is_first_of_batch:
            cards[proposal.message_id].append(proposal)
    return [(line, cards[line.id]) for line in lines]

"""The transcript of a conversation: its lines as the model reads them, with their proposals and files.

The lines are rows of ``bot/store/messages.py``.
"""

from sqlmodel import Session

from bot.domain.conversations import ANSWERABLE_ROLES, Conversation, Line, LineRole, Transcript
from bot.store import messages, outputs
from bot.store import proposals as proposal_store
from bot.store.conversations import get_conversation


def read_transcript(
    session: Session, conversation_id: str, limit: int | None = messages.MAX_LINES
) -> Transcript | None:
    """Return the last ``limit`` lines (None: all) in the model's order, with their proposals and files.

    None if there is no such conversation.
    """
    conversation = get_conversation(session, conversation_id)
    if conversation:
        return load_transcript_of(session, conversation, limit)
    return None


def load_transcript_of(
    session: Session, conversation: Conversation, limit: int | None = messages.MAX_LINES
) -> Transcript:
    """Return the transcript of a conversation whose row was read already, as `read_transcript` does."""
    newest_first = messages.list_latest(session, conversation.id, limit)
    # the newest summary, which stands for the lines before it
    summary = next((line for line in newest_first if line.role is LineRole.SUMMARY), None)
    lines = [line for line in newest_first if line.role is not LineRole.SUMMARY]
    lines.sort(key=_place_for_model)
    proposals = {}
    if any(line.calls for line in lines):
        for proposal in proposal_store.list_of_conversation(session, conversation.id):
            proposals[proposal.message_id, proposal.call_id] = proposal
    handles = [handle for line in lines for handle in line.files]
    files = outputs.find_attached(session, conversation.id, handles) if handles else {}
    return Transcript(conversation, lines, proposals, files=files, summary=summary)


def _place_for_model(line: Line) -> tuple[int, bool, int]:
    """Return a line's place in the model's order, as a key to sort by.

    An answer comes after the lines that it answers, and before those that came while it was written.
    """
    is_heard = line.role in ANSWERABLE_ROLES  # the agent answers it: a message, or a note
    return line.after, not is_heard, line.id

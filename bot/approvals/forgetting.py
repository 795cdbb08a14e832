"""The deletion of a conversation's lines and files, once nothing in it is open."""

from datetime import datetime

from sqlmodel import Session

from bot.store import conversations, outputs, proposals, teams
from bot.store.hooks import hooks_of


def forget_conversation(session: Session, conversation_id: str, now: datetime) -> int:
    """Delete the lines and files of a conversation and of its teammates' conversations.

    Features delete what they keep for these conversations. Nothing is deleted while a proposal in one of them
    is open. Returns the number of open proposals, which is 0 if the lines were deleted.
    """
    ids = [conversation_id, *(teammate.id for teammate in teams.list_of_lead(session, conversation_id))]
    open_count = sum(len(proposals.list_open_in(session, listed_id)) for listed_id in ids)
    if open_count:
        return open_count
    conversations.forget_conversations(session, ids, now)
    for forget_conversations in hooks_of(session).forget_conversations:
        forget_conversations(session, ids, now)
    outputs.delete_of_conversations(session, ids)
    proposals.delete_inverses(session, ids)
    return 0

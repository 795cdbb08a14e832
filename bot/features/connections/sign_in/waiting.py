"""Conversations that wait for a connection: the agent continues once the person has connected the account.

A conversation begins to wait when the agent calls the tool `connect` there, also if the person was sent a
link before. It waits for a day, for one person and server, and continues however the account gets connected.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.connections import bound_name
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor
from bot.store import conversations, messages, state, turns

WAITS_FOR = timedelta(days=1)
_ROOM = "waiting-for-connections"  # of ``bot/store/state.py``
_CONNECTED_NOTE = "[Nod] {who} has connected an account at {server}. Continue with what they asked for."


def keep_waiting(session: Session, server: str, person: Actor, conversation_id: str, now: datetime) -> None:
    """Note that a conversation waits until a person has connected their account at a server."""
    waiting = {"person": str(person), "conversation": conversation_id}
    state.store_state(session, _ROOM, f"{server} {conversation_id} {person}", waiting, now)


def forget_late(session: Session, now: datetime) -> None:
    """Forget the conversations that have waited for too long."""
    state.forget_states(session, _ROOM, now - WAITS_FOR)


def continue_waiting(
    session: Session, server: str, accounts: Collection[str], now: datetime
) -> tuple[Job, ...]:
    """Have the agent continue in the conversations in which a person waited for this connection."""
    forget_late(session, now)
    prefix = f"{server} "
    continued: list[Job] = []
    for key, waiting in state.list_states(session, _ROOM, prefix).items():
        if not key.startswith(prefix) or waiting["person"] not in accounts:
            continue
        state.store_state(session, _ROOM, key, None, now)
        conversation = conversations.get_conversation(session, waiting["conversation"])
        if conversation is None or conversation.deleted:
            continue
        person = Actor.parse(waiting["person"])
        name = messages.find_name(session, conversation.id, person)
        person = Actor(person.channel, person.key, name)
        note = _CONNECTED_NOTE.format(who=bound_name(person.label), server=server)
        messages.add_note(session, conversation.id, note, now, actor=person)
        turns.request_turn(session, conversation.id, now)
        continued.append(Job(Work.TURN, conversation.id))
    return tuple(continued)

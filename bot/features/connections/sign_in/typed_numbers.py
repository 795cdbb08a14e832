"""The six digits of a sign-in as a person types them in their private chat with Nod, without a command."""

import re
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.chat import Message
from bot.domain.hooks import MessageAnswer
from bot.features.connections import ending
from bot.features.connections.sign_in.connecting import ConnectFlow
from bot.store import state
from bot.store.notices import POSTLESS

_ROOM = "typed-numbers"
_KNOWN_FOR = timedelta(hours=1)  # a platform delivers an event again within minutes
_NUMBER = re.compile(r"\d{3}\s?\d{3}", re.ASCII)


class TypedNumbers:
    """Takes a message that is six digits as the number of a sign-in, while one of its writer waits for it."""

    def __init__(self, flow: ConnectFlow) -> None:
        self._flow = flow

    def answer(self, session: Session, message: Message, now: datetime) -> MessageAnswer | None:
        """Return the answer to such a message; None for all others."""
        text = message.text.strip()
        if message.files or message.address.channel in POSTLESS or not _NUMBER.fullmatch(text):
            return None
        key = f"{message.address.channel}:{message.event_id}"
        if state.load_state(session, _ROOM, key) is not None:
            return MessageAnswer("")  # it was delivered before
        if not self._flow.is_awaited(session, message.actor):
            return None
        state.forget_states(session, _ROOM, now - _KNOWN_FOR)
        state.keep_state(session, _ROOM, key, {}, now)
        done = self._flow.confirm_in(session, message.actor, "".join(text.split()))
        if isinstance(done, str):
            return MessageAnswer(done)
        return MessageAnswer(ending.describe_connected(done.connection), done.jobs)

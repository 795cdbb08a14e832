"""The hook that takes six digits, typed as a message in a private chat, as the confirmation of a sign-in.

A browser that has signed in at a server shows six digits. The person sends them to Nod, so that the account
is connected for the person of the chat (`connecting.py`). Such a message never reaches the model.
"""

import re
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.domain.chat import Message
from bot.domain.hooks import MessageAnswer
from bot.features.connections import ending
from bot.features.connections.sign_in.connecting import ConnectFlow
from bot.features.connections.sign_in.pending import ConfirmationRefusal
from bot.store import state
from bot.store.notices import CHANNELS_WITHOUT_CHATS

_ROOM = "typed-numbers"  # of ``bot/store/state.py``: the messages that were taken, by channel and event
_REMEMBERED_FOR = timedelta(hours=1)  # a platform delivers an event again within minutes
_DIGITS = re.compile(r"\d{3}\s?\d{3}", re.ASCII)  # "123456" or "123 456"


class TypedNumbers:
    """The implementation of `AnswerMessage` for six digits, while a sign-in of the writer waits for them."""

    def __init__(self, flow: ConnectFlow) -> None:
        self._flow = flow

    def answer(self, session: Session, message: Message, now: datetime) -> MessageAnswer | None:
        """Confirm the sign-in, and return the answer; None for any other message.

        The answer to a message that was delivered before is empty.
        """
        text = message.text.strip()
        if message.files or message.address.channel in CHANNELS_WITHOUT_CHATS or not _DIGITS.fullmatch(text):
            return None
        key = f"{message.address.channel}:{message.event_id}"
        if state.load_state(session, _ROOM, key) is not None:
            return MessageAnswer("")
        if not self._flow.has_sign_in_to_confirm(session, message.actor):
            return None
        state.forget_states(session, _ROOM, now - _REMEMBERED_FOR)
        state.store_state(session, _ROOM, key, {}, now)
        connected = self._flow.confirm_in_transaction(session, message.actor, "".join(text.split()))
        if isinstance(connected, ConfirmationRefusal):
            return MessageAnswer(connected.text)
        return MessageAnswer(ending.describe_connected(connected.connection), connected.jobs)

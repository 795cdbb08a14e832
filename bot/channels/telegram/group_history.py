"""The last messages between people in groups. The model gets them with the next message to Nod there.

Telegram lets a bot read no earlier messages, so each is stored when it comes, in memory only: a restart loses
them. ``inbound.py`` stores a message that is not for Nod, and takes all with the next request.
"""

from collections.abc import Sequence
from typing import NamedTuple

from telegram import Message, User

from bot.channels.telegram.places import TelegramPlace
from bot.channels.telegram.reading import (
    describe_attachment,
    files_of,
    name_author,
    name_original_author,
    read_words,
)
from bot.domain.attachments import MAX_EARLIER_FILES, Upload, choose_earlier, describe_files

_MAX_PLACES = 200  # the groups and topics whose last messages are kept
_MAX_MESSAGES_BY_PLACE = 30  # the newest messages that are kept of each place
_MAX_MESSAGE_CHARS = 2_000


class _GroupMessage(NamedTuple):
    """A message between people in a group, in the form that the model gets."""

    author: str
    text: str
    files: tuple[Upload, ...]


class Overheard:
    """The store of these messages, by place."""

    def __init__(self) -> None:
        self._messages: dict[TelegramPlace, dict[int, _GroupMessage]] = {}  # by message id

    def remember_message(
        self, place: TelegramPlace, message: Message, me: User, album: Sequence[Message], *, edited: bool
    ) -> None:
        """Store a message. An edited one replaces its stored version, and is not stored without one.

        ``album``: all messages of its album, empty without one.
        """
        messages = self._messages.pop(place, {})
        self._messages[place] = messages  # stored again at the end: the least recently used place comes first
        is_stored = message.message_id in messages
        if is_stored or not edited:
            messages[message.message_id] = _read_group_message(message, me, album or [message])
        if len(messages) > _MAX_MESSAGES_BY_PLACE:
            oldest_id = next(iter(messages))
            del messages[oldest_id]
        if len(self._messages) > _MAX_PLACES:
            least_recent_place = next(iter(self._messages))
            del self._messages[least_recent_place]

    def list_messages(self, place: TelegramPlace) -> list[tuple[str, str]]:
        """Return the author and text of each message since the last `forget`, oldest first.

        The text names the files, and says which of them the model does not get.
        """
        given_refs = {file.ref for file in self.choose_files(place)}
        omitted_refs = {file.ref for file in self._list_files(place)} - given_refs
        lines = []
        for message in self._messages.get(place, {}).values():
            parts = (message.text, describe_files(message.files, omitted_refs))
            lines.append((message.author, "\n".join(filter(None, parts))))
        return lines

    def choose_files(self, place: TelegramPlace) -> tuple[Upload, ...]:
        """Return the files that the model gets: the newest of the messages, at most `MAX_EARLIER_FILES`."""
        return choose_earlier(self._list_files(place))

    def has_unread_files(self, place: TelegramPlace) -> bool:
        """Tell if there are more files than the model gets."""
        return len(self._list_files(place)) > MAX_EARLIER_FILES

    def forget(self, place: TelegramPlace) -> None:
        self._messages.pop(place, None)

    def _list_files(self, place: TelegramPlace) -> list[Upload]:
        return [file for message in self._messages.get(place, {}).values() for file in message.files]


def _read_group_message(message: Message, me: User, parts: Sequence[Message]) -> _GroupMessage:
    """Read a message for the model; ``parts``: all messages of its album, or itself."""
    words = "\n".join(filter(None, map(read_words, parts)))[:_MAX_MESSAGE_CHARS]
    files: list[Upload] = []
    for part in parts:
        files += files_of(part)
    attachment = describe_attachment(message)
    if attachment and not files:
        words = f"{words}\n({attachment} that you can't see)".strip()
    author = name_author(message, me)
    if message.forward_origin is not None:
        author = f"{author}, forwarding {name_original_author(message.forward_origin)}"
    return _GroupMessage(author, words, tuple(files))

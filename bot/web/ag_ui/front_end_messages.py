"""The messages of a thread that a front end has, and how they are brought into line with the stored ones.

A front end sends its messages with each run, and each run sends it further ones. It may lack stored messages,
have them in another order, or have messages that were never stored: thoughts, refused messages, and answers
that were withdrawn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum

from ag_ui.core import AssistantMessage, Message, ToolMessage, UserMessage

from bot.web.ag_ui.run_input import SentMessages, is_same_text, read_text

REFUSED_SUFFIX = ":refused"
"""Added to the id of a refused message, it gives the id of the message that says why."""
RESTART_INFIX = ":again:"
"""Between the key of a restarted answer and the number of its restarts, it gives the id of the new text."""


class NeededSnapshot(Enum):
    """The snapshot of all messages that a front end needs, so that it has the stored ones in order."""

    NONE = "none"  # no messages are missing, none differ
    # A front end adds new messages of a snapshot at its end, and does not move those that it has.
    ALL = "all"
    AFTER_EMPTY = "after empty"  # the order would be wrong then, so an empty snapshot comes first


class FrontEndMessages:
    """The messages that a front end has, in its order."""

    def __init__(self, sent: SentMessages) -> None:
        # of several messages with one id, the last
        self._messages: list[Message] = list({message.id: message for message in sent.readable}.values())
        # they fill too much of a request, until the front end gets a shorter list
        self._is_heavy = sent.is_heavy

    def add(self, message: Message) -> None:
        """Note a message that is sent to the front end."""
        self._messages.append(message)

    def copy(self) -> list[Message]:
        """Return all messages."""
        return list(self._messages)

    def count_with_prefix(self, prefix: str) -> int:
        """Return the number of messages whose ids begin this way."""
        return sum(message.id.startswith(prefix) for message in self._messages)

    def has_call(self, ident: str) -> bool:
        """Tell if the front end has the call of this id."""
        for message in self._messages:
            for tool_call in getattr(message, "tool_calls", None) or ():
                if tool_call.id == ident:
                    return True
        return False

    def withdraw_answer(self, key: str) -> bool:
        """Remove the text of an answer, and of its restarts. Return False if there was none."""
        others = [
            message
            for message in self._messages
            if message.id != key and not message.id.startswith(f"{key}{RESTART_INFIX}")
        ]
        was_there = len(others) < len(self._messages)
        self._messages = others
        return was_there

    def merge_stored(self, stored: Sequence[Message]) -> NeededSnapshot:
        """Bring the messages into line with the ``stored`` ones, and return the snapshot that this needs.

        Thoughts, which only the front end has, stay behind the message that they followed.
        """
        if not self._is_heavy:
            stored = self._with_files(stored)
        by_id = {message.id: message for message in stored}
        shared = [message for message in self._messages if message.id in by_id]
        shared_texts, stored_texts = _list_text_ids(shared), _list_text_ids(stored)
        # the texts that the front end has must be the first of the stored ones, in the same order
        is_in_order = shared_texts == stored_texts[: len(shared_texts)]
        can_add_at_end = is_in_order and not self._is_heavy
        has_all = len(shared) == len(by_id)
        if has_all and can_add_at_end and not self._has_outdated(by_id):
            return NeededSnapshot.NONE
        self._messages = self._merge(stored, by_id)
        self._is_heavy = False
        return NeededSnapshot.ALL if can_add_at_end else NeededSnapshot.AFTER_EMPTY

    def _has_outdated(self, by_id: Mapping[str, Message]) -> bool:
        """Tell if the front end has an answer with another text than the stored one, or an unknown result.

        Some front ends keep a person's answer to an interrupt as the call's result. ``by_id``: the stored
        messages.
        """
        for message in self._messages:
            stored = by_id.get(message.id)
            if stored is None and isinstance(message, ToolMessage):
                return True
            if stored is None or not isinstance(message, AssistantMessage):
                continue
            if _read_content(message) != _read_content(stored):
                return True
        return False

    def _merge(self, stored: Sequence[Message], by_id: Mapping[str, Message]) -> list[Message]:
        """Return the stored messages, each followed by those that only the front end has there.

        Of the latter, thoughts and the like are kept, and refused messages with the messages that refuse
        them. Other texts, calls and results are dropped. ``by_id``: the stored messages.
        """
        refusal_ids = [message.id for message in self._messages if REFUSED_SUFFIX in message.id]
        refused_ids = {refusal_id.partition(REFUSED_SUFFIX)[0] for refusal_id in refusal_ids}
        # the kept messages by the id of the stored message before them; None for those before all stored ones
        following: dict[str | None, list[Message]] = defaultdict(list)
        last_id = None
        for message in self._messages:
            is_thought = not isinstance(message, UserMessage | AssistantMessage | ToolMessage)
            is_of_refusal = message.id in refused_ids or REFUSED_SUFFIX in message.id
            if message.id in by_id:
                last_id = message.id
            elif is_thought or is_of_refusal:
                following[last_id].append(message)
        merged = list(following[None])
        for message in stored:
            merged += [message, *following[message.id]]
        return merged

    def _with_files(self, stored: Sequence[Message]) -> list[Message]:
        """Return the stored messages; people's are replaced by the front end's, which have the files."""
        from_people = {message.id: message for message in self._messages if isinstance(message, UserMessage)}
        messages: list[Message] = []
        for message in stored:
            sent = from_people.get(message.id)
            if sent is not None and is_same_text(read_text(sent), _read_content(message)):
                messages.append(sent)
            else:
                messages.append(message)
        return messages


def _read_content(message: Message) -> str:
    return str(message.content or "")


def _list_text_ids(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the messages that people read as text."""
    ids = []
    for message in messages:
        is_answer = isinstance(message, AssistantMessage) and message.content
        if is_answer or isinstance(message, UserMessage):
            ids.append(message.id)
    return ids

"""The input of a run, as AG-UI's front ends send it. Pure.

A front end shows a thread, which is a conversation of Nod's. A run is a piece of the agent's work. For each
run the front end sends `AguiInput` with all messages of the thread again: those that Nod has, and at the end
those that the person wrote since. `read_messages` reads them one by one, so that an unreadable message does
not spoil the others (``request.py`` calls it). `SentMessages.find_new` finds those that Nod does not have
(``routes.py`` calls it).
"""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from ag_ui.core import ContentPart, ResumeEntry, TextPart, UserMessage
from ag_ui.core import Message as AguiMessage
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from bot.domain.attachments import Upload
from bot.domain.text import find_unstorable, hash_text, replace_unstorable
from bot.tools.signature import describe_pydantic_error
from bot.web.body import check_storable, count_values

MAX_ID_CHARS = 200
_MAX_VALUES = 200_000  # JSON values of the messages that are read; older messages are left out
_MAX_WRITTEN = 100  # the newest messages of people that one run takes in or refuses
_MAX_VALUES_OF_REST = 50_000  # JSON values of a run without its messages
_UNREADABLE_TEXT = "I can't read this message. {} Write it again."
_NO_OBJECT_TEXT = "It is not an object with an id, a role and a content."
_ID_TEXT = f"Its id must be a text of 1 to {MAX_ID_CHARS} characters."
_DATA_ONLY_TEXT = "I take files as data in base64, and fetch none. Send their bytes."
_MESSAGE: TypeAdapter[AguiMessage] = TypeAdapter(AguiMessage)
_AGENT_ROLES = frozenset({"assistant", "tool"})  # of messages by the agent
# of messages that neither a person nor the agent wrote
_IGNORED_ROLES = frozenset({"system", "developer", "reasoning", "activity"})


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A person's message with its files."""

    id: str  # empty if the message has no id
    text: str = ""
    files: tuple[Upload, ...] = ()
    problem: str = ""  # why the message can't be taken in, in words; empty if it can
    earlier_with_same_id: int = 0  # the number of such messages in the same run


@dataclass(frozen=True, slots=True)
class SentMessages:
    """The messages of a thread that a front end has, oldest first."""

    readable: Sequence[AguiMessage] = ()  # all messages that could be read
    written: Sequence[WrittenMessage] = ()
    """People's messages after the agent's last one, also unreadable ones."""
    is_heavy: bool = False
    """The messages fill so much of a request that the front end should be sent a shorter list."""

    def find_new(self, known_texts: Mapping[str, str]) -> list[WrittenMessage]:
        """Return people's messages after the newest one that Nod has, oldest first.

        ``known_texts``: the texts of the stored messages by id. A message with a stored id counts as new if
        its text differs (it was edited), or if an earlier message of the run has the same id. Then it gets
        another id.
        """
        newest_first: list[WrittenMessage] = []
        for written in reversed(self.written):
            message = written
            if written.id in known_texts and not written.problem:
                message = _rename_if_new(written, known_texts[written.id])
            if message.id in known_texts:  # also a renamed message that is stored already
                break
            newest_first.append(message)
        return newest_first[::-1]


def read_messages(messages: Sequence[Any], *, is_heavy: bool = False) -> SentMessages:
    """Read the messages one by one, the newest first, until the JSON values of all are too many.

    ``messages`` are JSON, oldest first. ``is_heavy``: as in `SentMessages`.
    """
    readable: list[AguiMessage] = []  # both lists: the newest first
    written: list[WrittenMessage] = []
    values_left = _MAX_VALUES
    has_agent_spoken = False
    for sent in reversed(messages):
        if values_left <= 0:
            break
        count, fault = count_values(sent, values_left)
        values_left -= count
        message, problem = _read_message(sent, fault)
        if message is not None:
            readable.append(message)

        # a message without a readable role counts as a person's, so that it is answered
        role = sent.get("role") if isinstance(sent, dict) else None
        has_agent_spoken = has_agent_spoken or _is_one_of(role, _AGENT_ROLES)
        is_from_person = not has_agent_spoken and not _is_one_of(role, _IGNORED_ROLES)
        if is_from_person and len(written) < _MAX_WRITTEN:
            written.append(_as_written(message, sent, problem))
    return SentMessages(readable[::-1], _count_earlier_ids(written, readable)[::-1], is_heavy)


def _count_earlier_ids(
    written: Sequence[WrittenMessage], readable: Sequence[AguiMessage]
) -> list[WrittenMessage]:
    """Return the written messages with their `earlier_with_same_id`. Both lists begin with the newest."""
    # from the newest on, the messages that are left of an id are the older ones
    messages_left = Counter(message.id for message in readable)
    counted = []
    for message in written:
        messages_left[message.id] -= 1
        # an unreadable message is not among the readable ones, so its number may be negative
        earlier = max(0, messages_left[message.id])
        counted.append(replace(message, earlier_with_same_id=earlier))
    return counted


class AguiInput(BaseModel):
    """A run: ``messages`` ends with what the person wrote, or ``resume`` answers interrupts, or both.

    An interrupt is AG-UI's form of an open proposal. The messages are read apart, by `read_messages`. Other
    fields of AG-UI (``tools``, ``context``, ``state``, ``forwardedProps``) may be sent and are not read.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    thread_id: Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
    run_id: Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
    parent_run_id: Annotated[str, Field(max_length=MAX_ID_CHARS)] | None = None
    messages: list[AguiMessage]
    resume: Annotated[list[ResumeEntry], Field(max_length=100)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_rest(cls, value: Any) -> Any:
        check_storable(value, _MAX_VALUES_OF_REST)
        return value


def read_text(message: UserMessage) -> str:
    """Return the text of a message: its text parts, each on lines of its own."""
    return "\n".join(part.text for part in _parts(message) if isinstance(part, TextPart))


def is_same_text(sent: str, stored: str) -> bool:
    """Tell if a sent text, in the form in which Nod stores texts, is the stored text."""
    return replace_unstorable(sent).strip() == stored.strip()


def _parts(message: UserMessage) -> Sequence[ContentPart]:
    if isinstance(message.content, str):
        return [TextPart(text=message.content)]
    return message.content


def _rename_if_new(written: WrittenMessage, known_text: str) -> WrittenMessage:
    """Return the message, under another id if the stored message with its id is not this one.

    A second message with the id ``7`` gets ``7:2``; an edited one gets ``7:`` and a hash of its text.
    """
    if written.earlier_with_same_id:
        return replace(written, id=f"{written.id}:{written.earlier_with_same_id + 1}")
    if not is_same_text(written.text, known_text):
        return replace(written, id=f"{written.id}:{hash_text(written.text)[:8]}")
    return written


def _is_one_of(role: Any, roles: frozenset[str]) -> bool:
    return isinstance(role, str) and role in roles


def _read_message(sent: Any, fault: Exception | None) -> tuple[AguiMessage | None, str]:
    """Return the message and an empty text, or None and why it can't be read, in words for the person.

    ``fault``: a fault of its JSON, such as too many values.
    """
    if fault is not None:
        return None, _explain_unreadable(str(fault))
    if not isinstance(sent, dict):
        return None, _explain_unreadable(_NO_OBJECT_TEXT)
    if not _read_id(sent):
        return None, _explain_unreadable(_ID_TEXT)
    content = sent.get("content")
    if isinstance(content, list):
        sent = {**sent, "content": [_as_current_part(part) for part in content]}
    try:
        return _MESSAGE.validate_python(sent), ""
    except ValidationError as error:
        first_fault = error.errors(include_url=False)[0]
    names = [part for part in first_fault["loc"][1:] if isinstance(part, str)]
    why = describe_pydantic_error(first_fault)
    return None, _explain_unreadable(f"{names[0]}: {why}" if names else why)


def _as_current_part(part: Any) -> Any:
    """Return a part of a message's content in the form of today's protocol.

    Before version 1, files were ``binary`` parts, which some front ends still send.
    """
    if not isinstance(part, dict) or part.get("type") != "binary":
        return part
    data = part.get("data")
    address = part.get("url") or part.get("id")
    if data:
        source = {"type": "data", "value": data}
    else:
        source = {"type": "url", "value": address}
    return {
        "type": "document",
        "source": source | {"mimeType": part.get("mimeType")},
        "metadata": {"filename": part.get("filename")},
    }


def _explain_unreadable(why: str) -> str:
    return _UNREADABLE_TEXT.format(why)


def _read_id(sent: Any) -> str:
    """Return the id of a message as sent; empty without an id that Nod can store."""
    ident = sent.get("id") if isinstance(sent, dict) else None
    if not isinstance(ident, str) or len(ident) > MAX_ID_CHARS or find_unstorable(ident):
        return ""
    return ident


def _as_written(message: AguiMessage | None, sent: Any, problem: str) -> WrittenMessage:
    """Return a person's message: as it was read, or only its id and the ``problem`` if it is not readable."""
    if not isinstance(message, UserMessage):
        return WrittenMessage(_read_id(sent), problem=problem)
    file_parts = [part for part in _parts(message) if not isinstance(part, TextPart)]
    files = []
    file_problem = ""
    for number, part in enumerate(file_parts, 1):
        file = _read_file(number, part)
        if file is None:
            file_problem = _DATA_ONLY_TEXT
        else:
            files.append(file)
    return WrittenMessage(message.id, read_text(message), tuple(files), file_problem)


def _read_file(number: int, part: Any) -> Upload | None:
    """Return the file of a part, named by its number if it has no name; None if its bytes are not in it."""
    metadata = part.metadata if isinstance(part.metadata, dict) else {}
    name = str(metadata.get("filename") or metadata.get("name") or f"{part.type}-{number}")
    if part.source.type != "data":
        return None
    try:
        data = base64.b64decode(part.source.value, validate=True)
    except ValueError:
        return None
    return Upload(name, data) if data else None

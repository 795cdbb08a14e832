"""The input of a run, as front ends send it. Pure.

A front end sends all messages of a thread again with each run. Each is read by itself, from the newest back,
so that one which can't be read never ends its thread. Of what people wrote, only the newest counts.
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
from bot.domain.text import hash_text, storable, unstorable
from bot.tools.signature import fault_in_words
from bot.web.body import check_storable, count_values

MAX_ID_CHARS = 200
_MAX_VALUES = 200_000
"""Lists, objects and texts of the messages that are read; older ones are left out."""
_MAX_WRITTEN = 100
"""Messages of the person's that one run takes in or answers, the newest."""
_MAX_VALUES_OF_REST = 50_000
_UNREADABLE_TEXT = "I can't read this message. {} Write it again."
_NO_OBJECT_TEXT = "It is not an object with an id, a role and a content."
_ID_TEXT = f"Its id must be a text of 1 to {MAX_ID_CHARS} characters."
_DATA_ONLY_TEXT = "I take files as data in base64, and fetch none. Send their bytes."
_MESSAGE: TypeAdapter[AguiMessage] = TypeAdapter(AguiMessage)
_TELLING_ROLES = frozenset({"assistant", "tool"})
_SILENT_ROLES = frozenset({"system", "developer", "reasoning", "activity"})


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A person's message with its files. ``problem``: why it can't be taken in, in words; empty if it can.

    ``id`` is empty where it has none. ``repeats`` counts earlier messages of this id in the same run.
    """

    id: str
    text: str = ""
    files: tuple[Upload, ...] = ()
    problem: str = ""
    repeats: int = 0


@dataclass(frozen=True, slots=True)
class SentMessages:
    """The messages of a thread that a front end has.

    ``written``: what people wrote since the agent spoke last, oldest first. ``is_heavy``: the front end
    should have less, since a request with much more is refused.
    """

    readable: Sequence[AguiMessage] = ()
    written: Sequence[WrittenMessage] = ()
    is_heavy: bool = False

    def written_since(self, known: Mapping[str, str]) -> list[WrittenMessage]:
        """Return people's messages after the newest one that Nod has; ``known``: texts by id.

        A message under an id that Nod has, with another text or a second time, gets an id of its own: it was
        edited, or its front end repeats ids.
        """
        new: list[WrittenMessage] = []
        for written in reversed(self.written):
            message = written
            if written.id in known and not written.problem:
                message = _rename_message(written, known[written.id])
            if message.id in known:
                break
            new.append(message)
        return new[::-1]


def read_messages(value: Sequence[Any], *, is_heavy: bool = False) -> SentMessages:
    """Read each message by itself, the newest first, until the values are too many."""
    readable: list[AguiMessage] = []
    written: list[WrittenMessage] = []
    left = _MAX_VALUES
    agent_spoke = False
    for sent in reversed(value):
        if left <= 0:
            break
        count, fault = count_values(sent, left)
        left -= count
        message, problem = (None, _say_unreadable(str(fault))) if fault else _read(sent)
        role = sent.get("role") if isinstance(sent, dict) else None
        agent_spoke = agent_spoke or _is_one_of(role, _TELLING_ROLES)
        if message is not None:
            readable.append(message)
        if not agent_spoke and not _is_one_of(role, _SILENT_ROLES) and len(written) < _MAX_WRITTEN:
            written.append(_as_written(message, sent, problem))
    ids = Counter(message.id for message in readable)
    counted = []
    for each in written:
        ids[each.id] -= 1
        counted.append(replace(each, repeats=max(0, ids[each.id])))
    return SentMessages(readable[::-1], counted[::-1], is_heavy)


class AguiInput(BaseModel):
    """A run: ``messages`` ends with what the person wrote, or ``resume`` answers interrupts, or both.

    The messages are read apart, by `read_messages`. What else AG-UI has (``tools``, ``context``, ``state``,
    ``forwardedProps``) may be sent and is not read.
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
    """Return the text of its parts."""
    return "\n".join(part.text for part in _parts(message) if isinstance(part, TextPart))


def is_same_text(sent: str, kept: str) -> bool:
    """Return whether Nod keeps what was sent as this text."""
    return storable(sent).strip() == kept.strip()


def _parts(message: UserMessage) -> Sequence[ContentPart]:
    if isinstance(message.content, str):
        return [TextPart(text=message.content)]
    return message.content


def _rename_message(written: WrittenMessage, known: str) -> WrittenMessage:
    """Return the message under another id if it is another than the one that Nod has."""
    if written.repeats:
        return replace(written, id=f"{written.id}:{written.repeats + 1}")
    if not is_same_text(written.text, known):
        return replace(written, id=f"{written.id}:{hash_text(written.text)[:8]}")
    return written


def _is_one_of(role: Any, roles: frozenset[str]) -> bool:
    return isinstance(role, str) and role in roles


def _read(sent: Any) -> tuple[AguiMessage | None, str]:
    """Return the message, or why it can't be read."""
    if not isinstance(sent, dict):
        return None, _say_unreadable(_NO_OBJECT_TEXT)
    if not _readable_id(sent):
        return None, _say_unreadable(_ID_TEXT)
    content = sent.get("content")
    if isinstance(content, list):
        sent = {**sent, "content": [_as_current_part(part) for part in content]}
    try:
        return _MESSAGE.validate_python(sent), ""
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    field = next((str(part) for part in fault["loc"][1:] if isinstance(part, str)), "")
    return None, _say_unreadable(f"{field}: {fault_in_words(fault)}" if field else fault_in_words(fault))


def _as_current_part(part: Any) -> Any:
    """A file in the form of before version 1 of the protocol, which front ends still send, in today's."""
    if not isinstance(part, dict) or part.get("type") != "binary":
        return part
    data, address = part.get("data"), part.get("url") or part.get("id")
    if data:
        source = {"type": "data", "value": data}
    else:
        source = {"type": "url", "value": address}
    metadata = {"filename": part.get("filename")}
    return {
        "type": "document",
        "source": source | {"mimeType": part.get("mimeType")},
        "metadata": metadata,
    }


def _say_unreadable(why: str) -> str:
    return _UNREADABLE_TEXT.format(why)


def _readable_id(sent: Any) -> str:
    ident = sent.get("id") if isinstance(sent, dict) else None
    if not isinstance(ident, str) or len(ident) > MAX_ID_CHARS or unstorable(ident):
        return ""
    return ident


def _as_written(message: AguiMessage | None, sent: Any, problem: str) -> WrittenMessage:
    if not isinstance(message, UserMessage):
        return WrittenMessage(_readable_id(sent), problem=problem)
    others = [part for part in _parts(message) if not isinstance(part, TextPart)]
    files = [_file(number, part) for number, part in enumerate(others, 1)]
    taken = tuple(filter(None, files))
    incomplete = len(taken) < len(files)
    return WrittenMessage(message.id, read_text(message), taken, _DATA_ONLY_TEXT if incomplete else "")


def _file(number: int, part: Any) -> Upload | None:
    """Return a part that is no text, named by its metadata if at all.

    None where its bytes are not with it.
    """
    named = part.metadata if isinstance(part.metadata, dict) else {}
    name = str(named.get("filename") or named.get("name") or f"{part.type}-{number}")
    try:
        if part.source.type == "data":
            data = base64.b64decode(part.source.value, validate=True)
        else:
            data = b""
    except ValueError:
        return None
    return Upload(name, data) if data else None

"""Arrangement of a history in the one order that all model servers accept. Pure.

Some servers and many chat templates refuse a history as it happened. It may have a person's words after a
tool's result, two messages of one role in a row, or a system message in the middle. It may also have an
answer without words, or ids of calls that another model's server made. `arrange` says the same in an order
that none of them refuses. It leaves out only answers without words and calls, and results that don't follow
their call's answer. The tests' model server (``tests/fakes``) has a checker for each of these, with its
source.
"""

import hashlib
import string
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.agent.history_parts import NOTE_PREFIX
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, UserText

_ID_LETTERS = string.digits + string.ascii_letters
_ID_CHARS = 9  # the length that Mistral's servers and templates want
_BRIDGE_TEXT = "Understood."  # put between a tool's result and a person's message, as the model's words
_BEGINNING_LEFT_OUT_TEXT = f"{NOTE_PREFIX} The beginning of this conversation is left out."
_CONTINUE_TEXT = f"{NOTE_PREFIX} Continue."
_EMPTY_TEXT = f"{NOTE_PREFIX} (A message without words.)"
_NO_OUTPUT_TEXT = "no output"
_NO_RESULT_TEXT = "ERROR: no result was kept for this call."


@dataclass(frozen=True, slots=True)
class UserTexts:
    """Consecutive messages of people and Nod, which are sent as one message.

    They are indented so that none can imitate the beginning of another.
    """

    messages: tuple[UserText, ...]

    @property
    def texts(self) -> list[str]:
        """The text of each message. Of several messages, all lines but the first are indented."""
        if len(self.messages) == 1:
            return [self.messages[0].text_with_speaker]
        return [_indent(message.text_with_speaker) for message in self.messages]

    @property
    def as_sent(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def has_pictures(self) -> bool:
        return any(message.pictures for message in self.messages)


Arranged = SystemText | UserTexts | AssistantText | ToolResult


def arrange(transcript: Sequence[Entry], *, one_by_one: bool = False) -> list[Arranged]:
    """Return the history in an order that all model servers accept.

    The system prompt comes first, then people and the model in turns. ``one_by_one``: each call of an answer
    is followed by its own result, for servers that accept one call at a time. Ids of calls are replaced by
    short ids, the same each time.
    """
    system_texts = [entry.text for entry in transcript if isinstance(entry, SystemText)]
    system = "\n\n".join(text for text in system_texts if text.strip())
    others = [entry for entry in transcript if not isinstance(entry, SystemText)]
    arranged: list[Arranged] = []
    with_results = _with_results(others, one_by_one=one_by_one)
    for entry in _with_short_ids(with_results):
        previous = arranged[-1] if arranged else None
        match entry:
            case UserText():
                message = _fill_empty_text(entry)
                if isinstance(previous, UserTexts):
                    arranged[-1] = UserTexts((*previous.messages, message))
                    continue
                if isinstance(previous, ToolResult):
                    arranged.append(AssistantText(_BRIDGE_TEXT))
                arranged.append(UserTexts((message,)))
            case AssistantText(text, calls):
                if previous is None:
                    arranged.append(UserTexts((UserText(_BEGINNING_LEFT_OUT_TEXT),)))
                if isinstance(
                    previous, AssistantText
                ):  # without calls: the results of calls would stand between
                    joined = "\n\n".join(filter(str.strip, (previous.text, text)))
                    arranged[-1] = AssistantText(joined, calls)
                elif calls or text.strip():
                    arranged.append(entry)
            case ToolResult():
                arranged.append(entry if entry.text.strip() else replace(entry, text=_NO_OUTPUT_TEXT))
    if not arranged or isinstance(arranged[-1], AssistantText):
        arranged.append(UserTexts((UserText(_CONTINUE_TEXT),)))
    if system:
        return [SystemText(system), *arranged]
    return arranged


def without_system_role(transcript: Sequence[Entry]) -> list[Entry]:
    """Return the history for a model without the system role: the prompt begins people's first message."""
    system = "\n\n".join(entry.text for entry in transcript if isinstance(entry, SystemText))
    others: list[Entry] = [entry for entry in transcript if not isinstance(entry, SystemText)]
    if not system:
        return others
    match others:
        case [UserText() as first, *rest]:
            return [replace(first, text=f"{system}\n\n{first.text_with_speaker}", name="", when=""), *rest]
        case _:
            return [UserText(system), *others]


def without_server_fields(call: ToolCall) -> ToolCall:
    """Return a call without the fields that its server added, such as the reasoning before the call."""
    if call.server_fields:
        return replace(call, server_fields={})
    return call


def make_short_id(ident: str, repeat: int = 0) -> str:
    """Return nine letters and digits for a call's id, always the same for the same id.

    ``repeat``: how many earlier calls had this id, so that a repeated id becomes another id.
    """
    digest = hashlib.sha256(f"{repeat} {ident}".encode("utf-8", "replace")).digest()
    number = int.from_bytes(digest[:16])
    letters = []
    for _ in range(_ID_CHARS):
        number, position = divmod(number, len(_ID_LETTERS))
        letters.append(_ID_LETTERS[position])
    return "".join(letters)


def _with_results(entries: Sequence[Entry], *, one_by_one: bool) -> Iterator[Entry]:
    """Yield the entries with a result for each call, directly after the call's answer.

    The results of an answer are those that follow it, up to the next message. A call without a result there
    gets one that says so. All other results are dropped, for example those whose call is gone.
    """
    for position, entry in enumerate(entries):
        if isinstance(entry, ToolResult):
            continue  # it was yielded with its answer, or is dropped
        if not isinstance(entry, AssistantText) or not entry.calls:
            yield entry
            continue
        results_by_call: dict[str, ToolResult] = {}
        for following in entries[position + 1 :]:
            if not isinstance(following, ToolResult):
                break
            results_by_call.setdefault(following.call_id, following)
        results = [
            results_by_call.get(call.id) or ToolResult(call.id, _NO_RESULT_TEXT) for call in entry.calls
        ]
        if not one_by_one:
            yield entry
            yield from results
            continue
        text = entry.text
        for call, result in zip(entry.calls, results, strict=True):
            yield AssistantText(text, (call,))
            yield result
            text = ""  # only the first call has the answer's text


def _with_short_ids(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yield the entries with short call ids that all servers accept.

    An id that a server used twice becomes two different ids. The entries are those of `_with_results`, where
    each call has a result.
    """
    use_counts: Counter[str] = Counter()  # by the servers' own ids
    awaited: deque[str] = deque()  # ids of the results that come next, in the order of their calls
    for entry in entries:
        match entry:
            case AssistantText(_, calls) if calls:
                new_ids = []
                for call in calls:
                    new_ids.append(make_short_id(call.id, use_counts[call.id]))
                    use_counts[call.id] += 1
                awaited.extend(new_ids)
                pairs = list(zip(calls, new_ids, strict=True))
                new_ids_by_old = {call.id: new_id for call, new_id in pairs}
                renamed = [
                    replace(call, id=new_id, server_fields=_replace_ids(call.server_fields, new_ids_by_old))
                    for call, new_id in pairs
                ]
                yield replace(entry, calls=tuple(renamed))
            case ToolResult():
                yield replace(entry, call_id=awaited.popleft())
            case _:
                yield entry


def _replace_ids(value: Any, new_ids_by_old: Mapping[str, str]) -> Any:
    """Return a value of a server's fields, with the new ids of calls in place of the old ones."""
    if isinstance(value, str):
        return new_ids_by_old.get(value, value)
    if isinstance(value, list):
        return [_replace_ids(item, new_ids_by_old) for item in value]
    if isinstance(value, Mapping):
        return {key: _replace_ids(item, new_ids_by_old) for key, item in value.items()}
    return value


def _fill_empty_text(entry: UserText) -> UserText:
    if entry.pictures or entry.text_with_speaker.strip():
        return entry
    return UserText(_EMPTY_TEXT)


def _indent(text: str) -> str:
    """Indent all lines but the first, so that none passes for the beginning of another message."""
    first, *others = text.splitlines() or [""]
    indented = [f"    {line}" if line.strip() else "" for line in others]
    return "\n".join([first, *indented])

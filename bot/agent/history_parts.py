"""A part of the history: a line of the transcript in the form in which the model is sent it.

A line is a message of a person, an answer of the agent with its calls, or a note of Nod. A `HistoryPart`
renders the entries that are sent, shortened to its `PartLength`. Of a part that is left out, its *outcomes*
stay: for each call that was proposed, a line of text that says how it ended.
"""

import json
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from bot.domain.attachments import TRANSCRIPT_PREFIX, describe_kind, format_size, quote_heard
from bot.domain.conversations import Call, Line, LineRole, Transcript
from bot.domain.model import AssistantText, Entry, SystemText, ToolCall, ToolResult, UserText
from bot.domain.outcomes import FROM_FILE, MAX_RESULT, WAITING, find_full_text, for_model, shorten_result
from bot.domain.proposals import Proposal
from bot.domain.text import one_line

NOTE_PREFIX = "[Nod]"
"""The beginning of Nod's notes. A message that begins like this is sent with its author's name."""

_VOICE_TEXT = "(In a voice message, as a speech model heard it:)"
_ENDS_IN_NOTE_TEXT = f"{WAITING}: it was open for a while. A later note tells how it ended."
_CUT_CHARS = 200  # the characters of a text that is cut
_MIN_RESULT_CHARS = 500  # the least characters of a bounded result
_MAX_UNCUT_RESULT_CHARS = 2 * _CUT_CHARS  # a longer result is cut
_MAX_THIN_ARGUMENTS_CHARS = 4 * _CUT_CHARS  # longer arguments are left out if cutting their texts is no help
_MAX_OUTCOME_CHARS = 160  # the most characters of a call, and of its outcome, in a line about it

# the characters that these count in a request, in addition to their texts
_ENTRY_CHARS = 40
_CALL_CHARS = 100
_PICTURE_CHARS = 4_000


class PartLength(IntEnum):
    """The steps by which a part of the history is shortened."""

    FULL = 0
    BOUNDED = 1  # no text, result or file takes more than the part's share of the room
    THIN = 2  # notes, and long results and arguments, are cut; a result's handle says where the rest is
    BRIEF = 3  # texts of people and the agent are cut, too
    GONE = 4  # only the outcomes of the part's calls are left, for a note about what is left out


@dataclass(slots=True)
class HistoryPart:
    """A line of the transcript in the form in which it is sent."""

    line: Line
    transcript: Transcript
    length: PartLength = PartLength.FULL
    share: int = 0  # in characters; 0 until the part is bounded
    is_current: bool = False  # it belongs to the current request: the last message of a person, and all since
    when: str = ""  # the time to put before the part, or empty
    ids_with_later_note: AbstractSet[str] = frozenset()  # of proposals whose end is in a later note
    entries: Sequence[Entry] = ()  # empty once the part is gone
    outcomes: Sequence[str] = field(default_factory=list)  # empty until the part is gone
    size: int = 0  # the characters of the entries and the outcomes

    def __post_init__(self) -> None:
        self._render()

    @property
    def outcomes_size(self) -> int:
        """The characters of the part's outcomes; 0 unless the part is gone."""
        if self.length is PartLength.GONE:
            return self.size
        return 0

    @property
    def is_cut(self) -> bool:
        """True if words of people or the agent are left out, because the part is brief or gone."""
        if self.length is PartLength.GONE:
            return True
        if self.length is not PartLength.BRIEF:
            return False
        return any(_cut_text(text, self) != text for text in _list_texts(self))

    def shorten(self, length: PartLength, share: int) -> None:
        """Shorten the part to ``length``, unless it is that short already.

        If ``length`` is BOUNDED, the part gets its share, unless it has one. A part that is THIN already may
        get one, too: it limits the part's texts.
        """
        gets_share = length is PartLength.BOUNDED and not self.share
        if not gets_share and length <= self.length:
            return
        if gets_share:
            self.share = share
        self.length = max(length, self.length)
        self._render()

    def _render(self) -> None:
        if self.length is PartLength.GONE:
            self.entries = ()
            self.outcomes = list_call_outcomes(self.transcript, self.line)
        else:
            self.entries = _render_line(self)
            self.outcomes = ()
        self.size = size_of(self.entries) + sum(map(len, self.outcomes))


def list_call_outcomes(transcript: Transcript, line: Line) -> list[str]:
    """Return a text for each proposed call of a line: the call and its outcome."""
    proposals = (transcript.proposals.get((line.id, call.id)) for call in line.calls)
    return [format_outcome(proposal) for proposal in proposals if proposal]


def format_outcome(proposal: Proposal) -> str:
    description = one_line(proposal.description)[:_MAX_OUTCOME_CHARS]
    return f"- {description}: {one_line(for_model(proposal))[:_MAX_OUTCOME_CHARS]}"


def _render_line(part: HistoryPart) -> Sequence[Entry]:
    """Return the entries of a part: a message, or an answer with the results of its calls."""
    line = part.line
    if line.role is not LineRole.ASSISTANT:
        return [_render_message(part)]
    if not line.calls and not line.text.strip():
        return []  # servers refuse a history with an answer that is empty
    keeps_extras = part.is_current or part.length < PartLength.THIN
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for position, call in enumerate(line.calls):
        extra = call.server_fields if keeps_extras else {}
        calls.append(ToolCall(call.id, call.tool_name, _render_arguments(call, part), extra))
        results.append(_render_result(position, call, part))
    return [AssistantText(_cut_text(_remove_voice_quotation(part), part), tuple(calls)), *results]


def _remove_voice_quotation(part: HistoryPart) -> str:
    """Return the text of an answer without the quotation of a voice message at its beginning."""
    text = part.line.text
    if not text.startswith(TRANSCRIPT_PREFIX):  # each quotation of a voice message begins with this
        return text
    return text.removeprefix(quote_voice_messages_before(part.transcript, part.line.id))


def quote_voice_messages_before(transcript: Transcript, line_id: int | None = None) -> str:
    """Return the quotation of voice messages at the beginning of an answer; empty if there were none.

    ``line_id``: the id of the answer; None for the answer that comes next.
    """
    handles: list[str] = []
    for line in transcript.lines:
        if line.id == line_id:
            break
        if line.role is LineRole.ASSISTANT:
            handles.clear()
        handles += line.files
    return quote_heard(transcript.files[handle] for handle in handles if handle in transcript.files)


def _render_message(part: HistoryPart) -> UserText:
    """Return a person's message or a note, with its attachments.

    The author is named where several people write, or if the text could pass for a note.
    """
    line = part.line
    transcript = part.transcript
    author = ""
    needs_name = not transcript.conversation.private or line.text.lstrip().startswith(NOTE_PREFIX)
    if needs_name and line.role is LineRole.USER and line.actor:
        author = line.actor.label
    pictures = [transcript.pictures.get(handle) for handle in _list_picture_handles(part)]
    spoken = [f"{_VOICE_TEXT} {_cut_text(words, part)}" for words in _list_spoken(part)]
    paragraphs = [_cut_text(line.text, part), *spoken, *_format_attachments(part)]
    text = "\n\n".join(filter(None, paragraphs))
    return UserText(text, author, part.when, tuple(filter(None, pictures)))


def _list_spoken(part: HistoryPart) -> Iterator[str]:
    """Yield the words of each voice message on one line, so that they can't pass for a note."""
    for handle in part.line.files:
        file = part.transcript.files.get(handle)
        if file is not None and file.is_spoken:
            yield one_line(file.text)


def _list_texts(part: HistoryPart) -> list[str]:
    """Return the words of people or the agent in a part, before they are cut."""
    if part.line.role is LineRole.ASSISTANT:
        return [_remove_voice_quotation(part)]
    return [part.line.text, *_list_spoken(part)]


def _list_picture_handles(part: HistoryPart) -> Sequence[str]:
    """Return the handles of the files that may be sent as pictures."""
    if part.length < PartLength.THIN:
        return part.line.files
    return ()


def _format_attachments(part: HistoryPart) -> Iterator[str]:
    """Yield a paragraph for each file of a message, except voice messages.

    Each paragraph is marked as data from outside. The lines of a text are quoted, up to the characters that
    the part's length leaves for all of its files together.
    """
    picture_handles = _list_picture_handles(part)
    match part.length:
        case PartLength.FULL:
            max_chars = MAX_RESULT
        case PartLength.BOUNDED:
            max_chars = part.share
        case _:
            max_chars = 0
    for handle in part.line.files:
        file = part.transcript.files.get(handle)
        if file is None:
            yield f"{FROM_FILE} A file that came with this is no longer kept.]"
            continue
        if file.is_spoken:
            continue
        kind = describe_kind(file.kind) if file.kind else "unknown"
        heading = f"{FROM_FILE} “{file.name}”, {kind}, {format_size(file.size)}"
        if file.fault:
            yield f"{heading}. It can't be read: {file.fault}.]"
        elif file.is_picture:
            is_shown = handle in picture_handles and handle in part.transcript.pictures
            note = f" {file.text.strip()}" if file.text else ""
            picture_text = " You see it." if is_shown else " You can not see it."
            yield f"{heading}.{picture_text}{note}]"
        else:
            text = file.text[: max_chars // len(part.line.files)]
            quoted = "".join(f"\n| {row}" for row in text.splitlines())
            read_further = ""
            if len(text) != file.length:
                read_further = f" Read further with output_read(handle={handle!r}, offset={len(text)})."
            yield f"{heading}, {file.length:,} characters.{read_further}]{quoted}"


def _cut_text(text: str, part: HistoryPart) -> str:
    """Return a text of a part, cut if the part's length demands it."""
    is_thin_note = part.length is PartLength.THIN and part.line.role is LineRole.NOTE
    if part.length >= PartLength.BRIEF or is_thin_note:
        return _cut(text, _CUT_CHARS)
    if part.share:
        return _cut(text, max(_CUT_CHARS, part.share))
    return text


def _cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars + _CUT_CHARS // 4:  # the remark that it is cut takes room itself
        return text
    return f"{text[:max_chars]}… [{len(text) - max_chars:,} more characters left out]"


def _render_arguments(call: Call, part: HistoryPart) -> str:
    """Return a call's arguments as a JSON object, shortened to fit.

    The model wrote them. Servers refuse a history in which arguments are anything but a JSON object.
    """
    text = call.arguments or "{}"
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        decoded = {"not_json": _cut(text, _CUT_CHARS)}  # so that the model sees its own text
        text = json.dumps(decoded, ensure_ascii=False)
    if not isinstance(decoded, dict):
        decoded = {"not_an_object": _cut(text, _CUT_CHARS)}
        text = json.dumps(decoded, ensure_ascii=False)
    if part.length is PartLength.BOUNDED:
        max_chars = part.share // max(1, len(part.line.calls))
    else:
        max_chars = _CUT_CHARS
    if part.length is PartLength.FULL or len(call.arguments) <= max_chars:
        return text
    thinned = json.dumps(_cut_texts_of(decoded), ensure_ascii=False)
    if len(thinned) <= max(max_chars, _MAX_THIN_ARGUMENTS_CHARS):
        return thinned
    return json.dumps({"left_out": _cut(thinned, _CUT_CHARS)})


def _cut_texts_of(value: Any) -> Any:
    """Return a JSON value with its long texts cut."""
    match value:
        case str():
            return _cut(value, _CUT_CHARS)
        case list():
            return [_cut_texts_of(item) for item in value]
        case dict():
            return {key: _cut_texts_of(item) for key, item in value.items()}
        case _:
            return value


def _render_result(position: int, call: Call, part: HistoryPart) -> ToolResult:
    """Return the result of a call, shortened to fit. ``position``: of the call in its line."""
    line = part.line
    proposal = part.transcript.proposals.get((line.id, call.id))
    stored = line.results.get(call.id)
    if proposal is not None:
        text = _ENDS_IN_NOTE_TEXT if proposal.id in part.ids_with_later_note else for_model(proposal)
    elif stored:
        text = stored.text
    else:
        text = "ERROR: no result was kept for this call."
    # a result that was cut before it was stored names the handle of its full text
    handle, full_chars = find_full_text(text) or (f"call-{line.id}-{position}", len(text))
    if part.length is PartLength.BOUNDED:
        max_chars = max(_MIN_RESULT_CHARS, part.share // len(line.calls))
        text = shorten_result(text, handle, max_chars, full_chars)
    elif part.length >= PartLength.THIN and len(text) > _MAX_UNCUT_RESULT_CHARS:
        remark = f"{full_chars - _CUT_CHARS:,} more characters left out to save room"
        text = f"{text[:_CUT_CHARS]}… [{remark}: output_read(handle={handle!r})]"
    is_outside = proposal is None and stored is not None and stored.is_from_tool
    return ToolResult(call.id, text, is_from_tool=is_outside)


def size_of(history: Sequence[Entry]) -> int:
    """Return the approximate number of characters that a history takes in a request."""
    return sum(_size_of_entry(entry) for entry in history)


def _size_of_entry(entry: Entry) -> int:
    match entry:
        case AssistantText(text, calls):
            size = len(text)
            for call in calls:
                size += _CALL_CHARS + len(call.name) + len(call.arguments)
                if call.server_fields:
                    size += len(json.dumps(call.server_fields))
            return size
        case UserText(text, pictures=pictures):
            return len(text) + _ENTRY_CHARS + _PICTURE_CHARS * len(pictures)
        case SystemText(text) | ToolResult(_, text, _):
            return len(text) + _ENTRY_CHARS

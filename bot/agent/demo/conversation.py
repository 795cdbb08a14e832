"""The demo's conversation: people's unanswered messages, and the calls made for them. Pure.

The demo model (``model.py``) reads each transcript as a `DemoConversation`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.agent.demo.texts import read_issues
from bot.agent.history_parts import NOTE_PREFIX
from bot.domain.model import AssistantText, Entry, ToolCall, ToolResult, UserText
from bot.domain.outcomes import FROM_FILE, OUTSIDE_WARNING

TRACKER_READS = frozenset({"search_issues", "get_issue", "list_issues", "workload"})
"""The tools that read the issue tracker."""
READ_TOOLS = TRACKER_READS | {"proposals_waiting", "my_decisions"}
"""All tools of the demo that only read."""
SUGGESTION_MARK = "- → "
"""The beginning of each suggestion for a next message, in an answer of the demo."""
_RESULT_LABEL = "Result:"  # in the text of a tool's result, after the words about its approval
_ISSUE_NUMBER = re.compile(r"#(\d{1,9})")

PlannedCall = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call of the model with its result. The result is empty while it is not known."""

    tool: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class DemoConversation:
    """The transcript in three parts: the entries before the newest job, the job's messages, and its calls.

    A job is what people ask for until a proposal or an answer ends it. A message that came in while reads
    were running belongs to the same job.
    """

    earlier: Sequence[Entry]
    messages: Sequence[UserText]
    calls: Sequence[FinishedCall]

    @classmethod
    def from_transcript(cls, transcript: Sequence[Entry]) -> "DemoConversation":
        start = _find_start_of_job(transcript)
        job = transcript[start:]
        messages = [_remove_files(entry) for entry in job if isinstance(entry, UserText)]
        return cls(transcript[:start], messages, list_finished_calls(job))

    @property
    def notes(self) -> list[str]:
        """The notes of Nod itself, such as the ends of earlier proposals."""
        return [entry.text for entry in self.messages if entry.text.startswith(NOTE_PREFIX)]

    @property
    def requests(self) -> list[UserText]:
        """The messages of people."""
        return [entry for entry in self.messages if not entry.text.startswith(NOTE_PREFIX)]

    @property
    def last_issue(self) -> int | None:
        """The number of the issue named last before this job; None if several were named together."""
        for entry in reversed(self.earlier):
            numbers = _find_issue_numbers(entry)
            if numbers:
                if len(numbers) == 1:
                    return numbers.pop()
                return None
        return None


def _find_start_of_job(transcript: Sequence[Entry]) -> int:
    """Return the index of the first message of the newest job.

    From the newest message back, a job has messages, results and answers that only read. Any other answer
    belongs to the job before.
    """
    message_indices = [index for index, entry in enumerate(transcript) if isinstance(entry, UserText)]
    newest = message_indices[-1] if message_indices else 0  # 0: no person has written
    start = newest
    for index in reversed(range(newest)):
        entry = transcript[index]
        if isinstance(entry, UserText):
            start = index
        elif not isinstance(entry, ToolResult) and not _only_reads(entry):
            break
    return start


def list_finished_calls(entries: Sequence[Entry]) -> list[FinishedCall]:
    """Return all calls in these entries, with their results."""
    results = {entry.call_id: entry.text for entry in entries if isinstance(entry, ToolResult)}
    answers = [entry for entry in entries if isinstance(entry, AssistantText)]
    calls = [call for answer in answers for call in answer.calls]
    return [FinishedCall(call.name, _read_arguments(call), results.get(call.id, "")) for call in calls]


def make_calls(index: int, planned: Iterable[PlannedCall]) -> tuple[ToolCall, ...]:
    """Return the planned calls, for the entry at ``index`` of the transcript.

    The calls' ids are hashes, so that the same conversation always has the same ids.
    """
    calls = []
    for position, (tool, arguments) in enumerate(planned):
        text = json.dumps(arguments, ensure_ascii=False)
        digest = hashlib.sha256(f"{index} {position} {tool} {text}".encode()).hexdigest()[:16]
        calls.append(ToolCall(f"call_{digest}", tool, text))
    return tuple(calls)


def _only_reads(entry: Entry) -> bool:
    calls = entry.calls if isinstance(entry, AssistantText) else ()
    return bool(calls) and all(call.name in READ_TOOLS for call in calls)


def _read_arguments(call: ToolCall) -> dict[str, Any]:
    try:
        decoded = json.loads(call.arguments)
    except ValueError:
        return {}
    if isinstance(decoded, dict):
        return decoded
    return {}


def _remove_files(entry: UserText) -> UserText:
    """Return a message without its attached files: the demo reads only its words."""
    words, separator, _ = entry.text.partition(FROM_FILE)
    if separator:
        return replace(entry, text=words.strip() or "help")
    return entry


def _find_issue_numbers(entry: Entry) -> set[int]:
    """Return the numbers of the issues that an entry is about."""
    match entry:
        case ToolResult(text=marked_text):
            text = marked_text.replace(OUTSIDE_WARNING, "")  # the mark of a text that comes from outside
            _, _, result = text.partition(_RESULT_LABEL)  # only calls that were approved have the label
            return {int(issue["number"]) for issue in read_issues(result or text)}
        case AssistantText(text, calls):
            arguments = [_read_arguments(call).get("number") for call in calls]
            numbers_of_calls = {number for number in arguments if isinstance(number, int)}
            statement, _, _ = text.partition(SUGGESTION_MARK)  # issues in suggestions are only examples
            return numbers_of_calls or set(map(int, _ISSUE_NUMBER.findall(statement)))
        case UserText(text):
            return set(map(int, _ISSUE_NUMBER.findall(text)))
        case _:
            return set()

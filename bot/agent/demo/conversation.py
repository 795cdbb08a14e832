"""The conversation: what people asked that is not answered yet, and what was done about it. Pure."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.agent.demo.words import issues_in
from bot.agent.transcript import NOTE
from bot.domain.model import AssistantText, Entry, ToolCall, ToolResult, UserText
from bot.domain.outcomes import FROM_FILE, OUTSIDE

READS = frozenset({"search_issues", "get_issue", "list_issues", "workload"})
"""What the tracker can be asked."""
LOOKUPS = READS | {"proposals_waiting", "my_decisions"}
_MENTION = re.compile(r"#(\d{1,9})")

Wanted = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""


@dataclass(frozen=True, slots=True)
class Done:
    """A call that the model made, and what came of it; empty where nothing is known yet."""

    tool: str
    arguments: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class DemoConversation:
    """The transcript in three parts: before, what people asked since the last answer, the calls made for it.

    A message that came in while reads were running belongs to the same job. A proposal ends a job: what
    people say after it is a new one.
    """

    before: Sequence[Entry]
    asked: Sequence[UserText]
    since: Sequence[Done]

    @classmethod
    def of(cls, transcript: Sequence[Entry]) -> "DemoConversation":
        last = max((i for i, entry in enumerate(transcript) if isinstance(entry, UserText)), default=0)
        first = last
        for at in range(last - 1, -1, -1):
            entry = transcript[at]
            if isinstance(entry, UserText):
                first = at
            elif not isinstance(entry, ToolResult) and not _only_reads(entry):
                break
        job = transcript[first:]
        asked = [_in_words(entry) for entry in job if isinstance(entry, UserText)]
        return cls(transcript[:first], asked, list_done(job))

    @property
    def notes(self) -> list[str]:
        """The notes of Nod itself, such as the ends of earlier proposals."""
        return [entry.text for entry in self.asked if entry.text.startswith(NOTE)]

    @property
    def wanted(self) -> list[UserText]:
        return [entry for entry in self.asked if not entry.text.startswith(NOTE)]

    @property
    def it(self) -> int | None:
        """The issue spoken of last before this job, where it was a single one."""
        for entry in reversed(self.before):
            numbers = _numbers(entry)
            if numbers:
                if len(numbers) == 1:
                    return numbers.pop()
                return None
        return None


def list_done(entries: Sequence[Entry]) -> list[Done]:
    """Return all calls in these entries, with their results."""
    results = {entry.call_id: entry.text for entry in entries if isinstance(entry, ToolResult)}
    answers = [entry for entry in entries if isinstance(entry, AssistantText)]
    calls = [call for answer in answers for call in answer.calls]
    return [Done(call.name, _arguments(call), results.get(call.id, "")) for call in calls]


def calls_at(place: int, wanted: Iterable[Wanted]) -> tuple[ToolCall, ...]:
    """Return the wanted calls; the same ``place`` in the transcript gives the same ids."""
    made = []
    for position, (tool, arguments) in enumerate(wanted):
        text = json.dumps(arguments, ensure_ascii=False)
        mark = hashlib.sha256(f"{place} {position} {tool} {text}".encode()).hexdigest()[:16]
        made.append(ToolCall(f"call_{mark}", tool, text))
    return tuple(made)


def _only_reads(entry: Entry) -> bool:
    calls = entry.calls if isinstance(entry, AssistantText) else ()
    return bool(calls) and all(call.name in LOOKUPS for call in calls)


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        decoded = json.loads(call.arguments)
    except ValueError:
        return {}
    if isinstance(decoded, dict):
        return decoded
    return {}


def _in_words(entry: UserText) -> UserText:
    """Return the entry without its attached files: the demo reads words alone."""
    words, there, _ = entry.text.partition(FROM_FILE)
    if there:
        return replace(entry, text=words.strip() or "help")
    return entry


def _numbers(entry: Entry) -> set[int]:
    """Return the issues that an entry speaks of."""
    match entry:
        case ToolResult(_, marked, _):
            text = marked.replace(OUTSIDE, "")
            return {int(issue["number"]) for issue in issues_in(text.partition("Result:")[2] or text)}
        case AssistantText(text, calls):
            called = {_arguments(call).get("number") for call in calls}
            said = text.partition("- → ")[0]  # what is offered to press is only an example
            return {n for n in called if isinstance(n, int)} or set(map(int, _MENTION.findall(said)))
        case UserText(text):
            return set(map(int, _MENTION.findall(text)))
        case _:
            return set()

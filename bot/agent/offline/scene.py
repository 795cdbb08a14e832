"""Where a transcript stands: what people asked that is not answered yet, and what was done about it. Pure."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.agent.model import AssistantText, Entry, ToolCall, ToolResult, UserText
from bot.agent.offline.wishes import LOOKUPS
from bot.agent.offline.words import issues_in
from bot.agent.transcript import NOTE
from bot.domain.outcomes import OUTSIDE

_MENTION = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class Done:
    """A call the model made and what came of it."""

    tool: str
    arguments: dict[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class Scene:
    """The transcript cut in three: long ago, what people asked since the last answer, the calls made for it.

    A message that came in while reads were running belongs to the same job. A proposal ends a job: what
    people say after it is a new one.
    """

    before: Sequence[Entry]
    asked: tuple[UserText, ...]
    since: tuple[Done, ...]

    @classmethod
    def of(cls, transcript: Sequence[Entry]) -> "Scene":
        last = max((i for i, entry in enumerate(transcript) if isinstance(entry, UserText)), default=-1)
        first = last
        for at in range(last - 1, -1, -1):
            entry = transcript[at]
            if isinstance(entry, UserText):
                first = at
            elif not isinstance(entry, ToolResult) and not _only_reads(entry):
                break
        job = transcript[max(first, 0) :]
        asked = tuple(entry for entry in job if isinstance(entry, UserText))
        return cls(transcript[: max(first, 0)], asked, tuple(_done(job)))

    @property
    def reads(self) -> list[Done]:
        return [done for done in self.since if done.tool in LOOKUPS]

    @property
    def writes(self) -> list[Done]:
        return [done for done in self.since if done.tool not in LOOKUPS]

    @property
    def notes(self) -> list[str]:
        """What Nod itself told about earlier proposals."""
        return [entry.text for entry in self.asked if entry.text.startswith(NOTE)]

    @property
    def wanted(self) -> list[UserText]:
        return [entry for entry in self.asked if not entry.text.startswith(NOTE)]

    @property
    def earlier(self) -> list[Done]:
        """The calls of what was asked before."""
        return list(_done(self.before))

    @property
    def waits(self) -> bool:
        """Whether a card of this conversation is open."""
        return any(done.result.startswith("AWAITING APPROVAL") for done in self.earlier)

    @property
    def told(self) -> list[str]:
        return [entry.text for entry in self.before if isinstance(entry, AssistantText)]

    @property
    def it(self) -> int | None:
        """The issue spoken of last before this job, where it was a single one."""
        for entry in reversed(self.before):
            numbers = _numbers(entry)
            if numbers:
                return numbers.pop() if len(numbers) == 1 else None
        return None


def _only_reads(entry: Entry) -> bool:
    calls = entry.calls if isinstance(entry, AssistantText) else ()
    return bool(calls) and all(call.name in LOOKUPS for call in calls)


def _done(entries: Sequence[Entry]) -> Iterable[Done]:
    results = {entry.call_id: entry.text for entry in entries if isinstance(entry, ToolResult)}
    for entry in entries:
        for call in entry.calls if isinstance(entry, AssistantText) else ():
            yield Done(call.name, _arguments(call), results.get(call.id, ""))


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        decoded = json.loads(call.arguments)
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _numbers(entry: Entry) -> set[int]:
    match entry:
        case ToolResult(_, marked, _):
            text = marked.replace(OUTSIDE, "")
            return {int(issue["number"]) for issue in issues_in(text.partition("Result:")[2] or text)}
        case AssistantText(text, calls):
            called = {_arguments(call).get("number") for call in calls}
            said = text.partition("- → ")[0]  # what is offered to press is only an example
            return {n for n in called if isinstance(n, int)} or set(map(int, _MENTION.findall(said)))
        case UserText(text, _):
            return set(map(int, _MENTION.findall(text)))
        case _:
            return set()

"""The demo model, which stands in for a language model in ``nod demo``: no network, no chance.

Its answer depends on the transcript alone, so the same transcript always gets the same answer. `respond`
takes the newest job from the transcript: what people have asked for since the last answer
(``conversation.py``). It reads what their sentences ask for (``sentences.py``): a `Wish` is a call that they
ask for, a `Talk` is a fixed reply to anything else. Then it decides the next answer: either calls that read
the issue tracker, or a text about what was read, with the calls that write. So one job takes up to four
answers: find the issues that were only described, read them, propose the writes, tell how they ended. Texts
are made in ``texts.py``. Answers of a team of agents are made in ``team.py``.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from bot.agent.demo import team, texts
from bot.agent.demo.conversation import (
    READ_TOOLS,
    SUGGESTION_MARK,
    DemoConversation,
    PlannedCall,
    make_calls,
)
from bot.agent.demo.sentences import HELP, Talk, Wish, read_message
from bot.domain.model import Entry, Finished, Part, StopReason, Text, ToolCall, ToolSpec
from bot.domain.text import format_request

_WORD = re.compile(r"\s*\S+")
_MAX_SUGGESTIONS = 3
_REMINDER_PREFIX = "remind me to "  # the beginning of a schedule's task that is a reminder


class DemoModel:
    """The implementation of `Model` for the demo. ``pace``: the pause after each word, in seconds."""

    name = "offline demo model"

    def __init__(self, pace: float = 0.02) -> None:
        self._pace = pace

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield the answer word by word, then `Finished`. Raises nothing."""
        text, calls = respond(transcript, tools)
        for word in _WORD.findall(text):
            yield Text(word)
            await asyncio.sleep(self._pace)
        yield Finished(StopReason.FINISHED, calls)

    async def close(self) -> None:
        """Do nothing: this model has no connection to close."""


def respond(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> tuple[str, tuple[ToolCall, ...]]:
    """Decide the next answer: its text and its calls."""
    team_answer = team.respond(transcript, tools)
    if team_answer is not None:
        return team_answer
    conversation = DemoConversation.from_transcript(transcript)
    writes = [call for call in conversation.calls if call.tool not in READ_TOOLS]
    if writes:  # the text says how each ended, or that it still waits
        sentences = [texts.describe_end(write.tool, write.arguments, write.result) for write in writes]
        return "\n".join(sentences), ()
    return _AnswerWriter(conversation, {spec.name for spec in tools}).write()


class _AnswerWriter:
    """The writer of the next answer to a job that has proposed nothing yet."""

    def __init__(self, conversation: DemoConversation, offered: set[str]) -> None:
        self._conversation = conversation
        # the results of finished reads, by tool and arguments; these as text, since a dict can't be a key
        self._results = {(call.tool, str(call.arguments)): call.result for call in conversation.calls}
        self._wishes: list[Wish] = []  # the calls that people ask for
        self._remarks: list[str] = []  # texts that depend on no call
        self._suggestions: list[str] = []  # sentences to offer below the answer
        tasks = self._read_notes()
        for message in conversation.requests:
            self._read_message(message.text, message.name, offered)
        for task in tasks:
            self._read_message(task, "", offered)
        if not self._remarks and not self._wishes:
            self._add_talk(HELP)

    def write(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the reads that are still needed; without any, the text and the calls that write."""
        missing: dict[tuple[str, str], PlannedCall] = {}
        for wish in self._wishes:
            for tool, arguments in self._list_reads(wish):
                key = (tool, str(arguments))
                if key not in self._results:
                    missing[key] = (tool, arguments)
        if not missing:
            return self._propose()
        text = "" if self._results else "Let me look."
        return text, self._make_calls(list(missing.values()))

    def _read_notes(self) -> list[str]:
        """Add remarks about the notes of Nod itself, and return the tasks that are due by a schedule.

        A task "remind me to …" is not returned: it becomes a remark.
        """
        tasks: list[str] = []
        reminders: list[str] = []
        for note in self._conversation.notes:
            task = texts.find_scheduled_task(note)
            if not task:
                self._remarks.append(texts.describe_note(note))
            elif task.startswith(_REMINDER_PREFIX) and task != _REMINDER_PREFIX:
                reminders.append(f"Reminder: {task.removeprefix(_REMINDER_PREFIX)}")
            else:
                tasks.append(task)
        self._remarks += reminders
        return tasks

    def _read_message(self, text: str, speaker: str, offered: set[str]) -> None:
        """Add what a message asks for: calls to the wishes, and all else to the remarks."""
        for part in read_message(text, speaker, self._conversation.last_issue):
            if isinstance(part, Talk):
                self._add_talk(part)
                continue
            missing_tools = _list_needed_tools(part) - offered
            if missing_tools:
                quoted = texts.short(part.source_text)
                self._remarks.append(f"I have no `{min(missing_tools)}` tool here for “{quoted}”.")
            else:
                self._wishes.append(part)

    def _add_talk(self, talk: Talk) -> None:
        self._remarks.append(talk.text)
        self._suggestions += talk.suggestions

    def _list_reads(self, wish: Wish) -> list[PlannedCall]:
        """Return the reads that a wish needs, finished or not.

        A read of an issue that was only described is left out until a search has found the issue's number.
        """
        reads: list[PlannedCall] = []
        if wish.description:
            reads.append(("search_issues", {"query": wish.description}))
        wish_with_number = self._add_number(wish)
        if wish_with_number and wish_with_number.tool in READ_TOOLS:
            reads.append((wish_with_number.tool, wish_with_number.arguments))
        elif wish_with_number and (wish_with_number.labels_to_add or wish_with_number.labels_to_remove):
            # all labels of an issue are set together, so the present ones must be known
            reads.append(("get_issue", {"number": wish_with_number.arguments["number"]}))
        return reads

    def _add_number(self, wish: Wish) -> Wish | None:
        """Return the wish with the number of its issue; None if the number is not known."""
        if not wish.description:
            return wish
        candidates = self._list_candidates(wish)
        if len(candidates) != 1:
            return None
        return replace(wish, description="", arguments={"number": candidates[0]["number"], **wish.arguments})

    def _list_candidates(self, wish: Wish) -> list[dict[str, Any]]:
        """Return the found issues that a description may mean.

        An issue with the description as its title counts alone. Otherwise a wish to reopen means closed
        issues, another change means open issues, and a wish to show or delete an issue means any.
        """
        issues = texts.read_issues(self._find_result("search_issues", {"query": wish.description}))
        exact = [issue for issue in issues if str(issue.get("title", "")).lower() == wish.description.lower()]
        if wish.tool in {"get_issue", "delete_issue"}:
            return exact if len(exact) == 1 else issues
        if len(exact) == 1:
            return exact
        state = "closed" if wish.arguments.get("state") == "open" else "open"
        return [issue for issue in issues if issue.get("state") == state]

    def _find_result(self, tool: str, arguments: Any) -> str:
        return self._results.get((tool, str(arguments)), "")

    def _propose(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the text about the finished reads, and the calls that write."""
        paragraphs: list[str] = []
        writes: list[PlannedCall] = []
        for wish in self._wishes:
            wish_with_number = self._add_number(wish)
            if wish_with_number is None:
                paragraphs.append(self._ask_which(wish))
            elif wish_with_number.tool in READ_TOOLS:
                result = self._find_result(wish_with_number.tool, wish_with_number.arguments)
                text = texts.describe_read(
                    wish_with_number.tool, wish_with_number.arguments, result, wish_with_number.view
                )
                paragraphs.append(text)
            elif wish_with_number.labels_to_add or wish_with_number.labels_to_remove:
                remarks, changes = self._plan_labels(wish_with_number)
                paragraphs += remarks
                writes += changes
            else:
                writes.append((wish_with_number.tool, wish_with_number.arguments))
        if writes:
            paragraphs.append(texts.announce_calls(writes))
        paragraphs += self._remarks
        suggestions = list(dict.fromkeys(self._suggestions))[:_MAX_SUGGESTIONS]
        paragraphs.append("\n".join(f"{SUGGESTION_MARK}{suggestion}" for suggestion in suggestions))
        reason = self._format_reason()
        calls = [(tool, {**arguments, "approval_reason": reason}) for tool, arguments in writes]
        return "\n\n".join(filter(None, paragraphs)), self._make_calls(calls)

    def _ask_which(self, wish: Wish) -> str:
        """Ask for the number of an issue whose description fits no issue, or several."""
        result = self._find_result("search_issues", {"query": wish.description})
        candidates = self._list_candidates(wish)
        quoted = texts.short(wish.source_text)
        if result.startswith("ERROR"):
            return texts.describe_failure(result)
        if not candidates:
            return (
                f"I found no such issue about “{wish.description}”, so I did nothing about “{quoted}”. "
                "Do you know its number?"
            )
        self._suggestions += [f"show #{issue['number']}" for issue in candidates[:_MAX_SUGGESTIONS]]
        head = f"Several issues fit “{quoted}”. Which one do you mean? Please give me its number."
        return "\n".join([head, "", *map(texts.format_issue, candidates)])

    def _plan_labels(self, wish: Wish) -> tuple[list[str], list[PlannedCall]]:
        """Return remarks on a change of labels, and the change with all labels that the issue should have."""
        number = wish.arguments["number"]
        result = self._find_result("get_issue", {"number": number})
        issues = texts.read_issues(result)
        if not issues:
            failure = texts.describe_failure(result)
            return [f"{failure} So I did nothing about “{texts.short(wish.source_text)}”."], []
        present = list(issues[0].get("labels") or [])
        labels = [
            label
            for label in dict.fromkeys([*present, *wish.labels_to_add])
            if label not in wish.labels_to_remove
        ]
        if labels != present:
            return [], [(wish.tool, {**wish.arguments, "labels": labels})]
        if wish.labels_to_add:
            remark = f"#{number} has those labels already."
        else:
            remark = f"#{number} has no such label."
        if wish.arguments.keys() != {"number"}:  # there are other changes than those of labels
            return [remark], [(wish.tool, wish.arguments)]
        return [remark], []

    def _format_reason(self) -> str:
        """Return people's words as the reason of the calls, with the name of the last one who has a name."""
        requests = self._conversation.requests
        names = [request.name for request in requests if request.name]
        text = " ".join(request.text for request in requests)
        return format_request(text, names[-1] if names else "")

    def _make_calls(self, planned: Sequence[PlannedCall]) -> tuple[ToolCall, ...]:
        conversation = self._conversation
        # any number that grows with the conversation serves as the index
        index = len(conversation.earlier) + len(conversation.messages) + len(conversation.calls)
        return make_calls(index, planned)


def _list_needed_tools(wish: Wish) -> set[str]:
    needed = {wish.tool}
    if wish.description:
        needed.add("search_issues")
    if wish.labels_to_add or wish.labels_to_remove:
        needed.add("get_issue")
    return needed

"""The demo model: no network, no chance, the same answer each time.

It stands in for a language model in ``nod demo``, and decides from the transcript alone. ``conversation.py``
says where that stands, ``sentences.py`` what people's sentences ask for, `DemoAnswer` makes reads and
proposals of it, and ``words.py`` tells what tools answered. One job takes up to four steps: find the issues
that were only described, read, propose the writes, tell how they ended. ``team.py`` leads teammates.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from bot.agent.demo import team, words
from bot.agent.demo.conversation import READ_TOOLS, DemoConversation, PlannedCall, make_calls
from bot.agent.demo.sentences import HELP, Talk, Wish, read_message
from bot.domain.model import Entry, Finished, Part, Stop, Text, ToolCall, ToolSpec
from bot.domain.text import format_request

_WORD = re.compile(r"\s*\S+\s*?")
_FEW = 3  # the number of suggested sentences
_REMIND = "remind me to "


class DemoModel:
    """Implements `Model`. ``pace`` is the pause after each word, in seconds."""

    name = "offline demo model"

    def __init__(self, pace: float = 0.02) -> None:
        self._pace = pace

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        """Yield the answer word by word, then `Finished`. Raises nothing."""
        text, calls = respond(transcript, tools)
        for word in _WORD.findall(text):
            yield Text(word)
            await asyncio.sleep(self._pace)
        yield Finished(Stop.FINISHED, calls)

    async def close(self) -> None:
        """Close nothing: nothing is open."""


def respond(transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> tuple[str, tuple[ToolCall, ...]]:
    """Decide the next answer: its text and its calls."""
    answer = team.respond(transcript, tools)
    if answer is not None:
        return answer
    conversation = DemoConversation.of(transcript)
    writes = [each for each in conversation.calls if each.tool not in READ_TOOLS]
    if writes:
        return "\n".join(words.end(each.tool, each.arguments, each.result) for each in writes), ()
    return DemoAnswer(conversation, {spec.name for spec in tools}).next()


class DemoAnswer:
    """The next answer: reads while something must be looked up, then words and the proposals."""

    def __init__(self, conversation: DemoConversation, offered: set[str]) -> None:
        self._conversation = conversation
        self._results = {(r.tool, str(r.arguments)): r.result for r in conversation.calls}
        due = [task for note in conversation.notes if (task := words.find_scheduled_task(note))]
        self._said = [
            words.describe_note(note) for note in conversation.notes if not words.find_scheduled_task(note)
        ]
        self._said += [f"Reminder: {_what(task)}" for task in due if _what(task)]
        self._chips: list[str] = []
        self._wishes: list[Wish] = []
        said = [(message.text, message.name) for message in conversation.requests]
        for text, name in (*said, *((task, "") for task in due if not _what(task))):
            for each in read_message(text, name, conversation.last_issue):
                if isinstance(each, Wish) and (missing := _list_needed_tools(each) - offered):
                    self._said.append(f"I have no `{min(missing)}` tool here for “{words.short(each.said)}”.")
                elif isinstance(each, Wish):
                    self._wishes.append(each)
                else:
                    self._talk(each)
        if not self._said and not self._wishes:
            self._talk(HELP)

    def next(self) -> tuple[str, tuple[ToolCall, ...]]:
        looks = {
            (tool, str(given)): (tool, given) for wish in self._wishes for tool, given in self._looks(wish)
        }
        missing = [look for key, look in looks.items() if key not in self._results]
        if missing:
            return "" if self._results else "Let me look.", self._calls(missing)
        return self._propose()

    def _talk(self, talk: Talk) -> None:
        self._said.append(talk.text)
        self._chips += talk.chips

    def _looks(self, wish: Wish) -> list[PlannedCall]:
        """Return the reads that a wish needs, as far as these are known by now."""
        found = self._find_issue(wish)
        looks: list[PlannedCall] = [("search_issues", {"query": wish.described})] if wish.described else []
        if found and found.tool in READ_TOOLS:
            looks.append((found.tool, found.arguments))
        elif found and (found.add or found.drop):  # all labels are set together, so know the present ones
            looks.append(("get_issue", {"number": found.arguments["number"]}))
        return looks

    def _find_issue(self, wish: Wish) -> Wish | None:
        """Return the wish with the number of its issue; None if the number is not known."""
        if not wish.described:
            return wish
        fitting = self._fitting(wish)
        if len(fitting) != 1:
            return None
        return replace(wish, described="", arguments={"number": fitting[0]["number"], **wish.arguments})

    def _fitting(self, wish: Wish) -> list[dict[str, Any]]:
        """Return the candidates for the issue of a wish: issues with its title, else those that fit it."""
        found = words.issues_in(self._result("search_issues", {"query": wish.described}))
        exact = [issue for issue in found if str(issue.get("title", "")).lower() == wish.described.lower()]
        if len(exact) == 1 or wish.tool in {"get_issue", "delete_issue"}:
            return exact if len(exact) == 1 else found
        state = "closed" if wish.arguments.get("state") == "open" else "open"
        return [issue for issue in found if issue.get("state") == state]

    def _result(self, tool: str, arguments: Any) -> str:
        return self._results.get((tool, str(arguments)), "")

    def _propose(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Return a text about the results and plans, and the planned calls, which the gate judges later."""
        told: list[str] = []
        wanted: list[PlannedCall] = []
        for wish in self._wishes:
            found = self._find_issue(wish)
            if found is None:
                told.append(self._ask_which(wish))
            elif found.tool in READ_TOOLS:
                result = self._result(found.tool, found.arguments)
                told.append(words.describe_read(found.tool, found.arguments, result, found.view))
            elif found.add or found.drop:
                vain, change = self._plan_labels(found)
                told += vain
                wanted += change
            else:
                wanted.append((found.tool, found.arguments))
        asking = [words.proposing(wanted)] if wanted else []
        reason = self._reason()
        calls = [(tool, {**arguments, "approval_reason": reason}) for tool, arguments in wanted]
        chips = "\n".join(f"- → {chip}" for chip in list(dict.fromkeys(self._chips))[:_FEW])
        return "\n\n".join(filter(None, [*told, *asking, *self._said, chips])), self._calls(calls)

    def _ask_which(self, wish: Wish) -> str:
        result = self._result("search_issues", {"query": wish.described})
        fitting = self._fitting(wish)
        said = words.short(wish.said)
        if result.startswith("ERROR"):
            return words.describe_failure(result)
        if not fitting:
            return (
                f"I found no such issue about “{wish.described}”, so I did nothing about “{said}”. "
                "Do you know its number?"
            )
        self._chips += [f"show #{issue['number']}" for issue in fitting[:_FEW]]
        head = f"Several issues fit “{said}”. Which one do you mean? Please give me its number."
        return "\n".join([head, "", *map(words.line, fitting)])

    def _plan_labels(self, wish: Wish) -> tuple[list[str], list[PlannedCall]]:
        """Return the remarks on labels, and the change with all labels that the issue should have."""
        number = wish.arguments["number"]
        result = self._result("get_issue", {"number": number})
        found = words.issues_in(result)
        if not found:
            return [
                f"{words.describe_failure(result)} So I did nothing about “{words.short(wish.said)}”."
            ], []
        present = list(found[0].get("labels") or [])
        labels = [each for each in dict.fromkeys([*present, *wish.add]) if each not in wish.drop]
        if labels != present:
            return [], [(wish.tool, {**wish.arguments, "labels": labels})]
        vain = [f"#{number} has those labels already." if wish.add else f"#{number} has no such label."]
        return vain, [(wish.tool, wish.arguments)] if len(wish.arguments) > 1 else []

    def _reason(self) -> str:
        asked = self._conversation.requests
        who = next((each.name for each in reversed(asked) if each.name), "")
        return format_request(" ".join(each.text for each in asked), who)

    def _calls(self, wanted: Sequence[PlannedCall]) -> tuple[ToolCall, ...]:
        known = self._conversation
        return make_calls(len(known.earlier) + len(known.messages) + len(known.calls), wanted)


def _what(task: str) -> str:
    """Return the subject of a reminder; empty for another task."""
    if task.startswith(_REMIND):
        return task.removeprefix(_REMIND)
    return ""


def _list_needed_tools(wish: Wish) -> set[str]:
    needed = {wish.tool}
    needed |= {"search_issues"} if wish.described else set()
    return needed | ({"get_issue"} if wish.add or wish.drop else set())

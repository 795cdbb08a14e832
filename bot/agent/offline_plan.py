"""What the offline demo model does next: people's wishes, turned into reads, then into proposals. Pure."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bot.agent import offline_words as words
from bot.agent.model import ToolCall
from bot.agent.offline_grammar import ME, parse
from bot.agent.offline_scene import READS, Scene
from bot.agent.offline_wishes import Unclear, Wish

Wanted = tuple[str, dict[str, Any]]

_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|/?start)\b[\s\w,!.]{0,20}", re.IGNORECASE
)
_THANKS = re.compile(r"\W*(?:thanks|thank you|great|perfect|cool|nice|ok|okay)\b.{0,40}", re.IGNORECASE)
_REASON_LENGTH = 160


class Plan:
    """The wishes that the offered tools can fulfil; for the others, what to say instead."""

    def __init__(self, scene: Scene, offered: set[str]) -> None:
        self._scene = scene
        self._said = [words.note(note) for note in scene.notes]
        self._wishes: list[Wish] = []
        for ask in scene.wanted:
            for wish in parse(ask.text, speaker=ask.name, it=scene.it):
                problem = _problem(wish, offered)
                if problem:
                    self._said.append(problem)
                elif isinstance(wish, Wish):
                    self._wishes.append(wish)

    def next(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Read what is asked for or must be known first; then tell it and propose the rest."""
        done = [(read.tool, read.arguments) for read in self._scene.reads]
        missing: list[Wanted] = []
        for read in self._reads():
            if read not in done and read not in missing:
                missing.append(read)
        if missing:
            return "" if done else "Let me look.", self._calls(missing)
        if not self._wishes and not self._said:
            return self._small_talk(), ()
        return self._propose()

    def _reads(self) -> Iterable[Wanted]:
        for wish in self._wishes:
            if wish.tool in READS:
                yield wish.tool, dict(wish.arguments)
            if wish.about:
                yield "search_issues", {"query": wish.about}
            if wish.add or wish.drop:  # labels are replaced as a whole, so the present ones must be known
                yield from (("get_issue", {"number": each.number}) for each in self._placed(wish))

    def _small_talk(self) -> str:
        said = " ".join(ask.text for ask in self._scene.wanted)
        if _GREETING.fullmatch(said):
            return words.GREETING
        return "You're welcome!" if _THANKS.fullmatch(said) else words.HELP

    def _propose(self) -> tuple[str, tuple[ToolCall, ...]]:
        told: list[str] = []
        wanted: list[Wanted] = []
        for wish in self._wishes:
            if wish.tool in READS:
                told.append(words.read(wish.tool, wish.arguments, self._result(wish.tool, wish.arguments)))
                continue
            placed = self._placed(wish)
            if not placed:
                told.append(self._ask_which(wish))
            for one in placed:
                labels = self._labels(one)
                if labels is None:
                    told.append(
                        words.read("get_issue", {}, self._result("get_issue", {"number": one.number}))
                    )
                else:
                    wanted.append((one.tool, {**one.arguments, **labels}))
        asking = [words.proposing(wanted)] if wanted else []
        reason = self._reason()
        calls = [(tool, {**arguments, "approval_reason": reason}) for tool, arguments in wanted]
        return "\n\n".join([*self._said, *told, *asking]), self._calls(calls)

    def _result(self, tool: str, arguments: Any) -> str:
        reads = self._scene.reads
        return next((r.result for r in reads if (r.tool, r.arguments) == (tool, arguments)), "")

    def _placed(self, wish: Wish) -> list[Wish]:
        """Put in the number of a described issue, where exactly one fits."""
        if not wish.about:
            return [wish]
        fitting = self._fitting(wish)
        if len(fitting) != 1:
            return []
        return [replace(wish, about="", arguments={"number": fitting[0]["number"], **wish.arguments})]

    def _fitting(self, wish: Wish) -> list[dict[str, Any]]:
        """Find the issues a description fits; only open ones may be closed, only closed ones reopened."""
        found = words.issues_in(self._result("search_issues", {"query": wish.about}))
        exact = [issue for issue in found if str(issue.get("title", "")).lower() == wish.about.lower()]
        if len(exact) == 1 or wish.tool == "delete_issue":
            return exact if len(exact) == 1 else found
        state = "closed" if wish.arguments.get("state") == "open" else "open"
        return [issue for issue in found if issue.get("state", state) == state]

    def _ask_which(self, wish: Wish) -> str:
        fitting = self._fitting(wish)
        if not fitting:
            result = self._result("search_issues", {"query": wish.about})
            if result.startswith("ERROR"):
                return words.read("search_issues", {}, result)
            return f"I found no such issue about “{wish.about}”, so I change nothing. Do you know its number?"
        rows = "\n".join(words.line(issue) for issue in fitting)
        return (
            f"Several issues fit “{wish.about}”. Which one do you mean? Please give me its number.\n\n{rows}"
        )

    def _labels(self, wish: Wish) -> dict[str, list[str]] | None:
        """Give the labels the issue shall have, if they change; None when its present ones are unknown."""
        if not (wish.add or wish.drop):
            return {}
        found = words.issues_in(self._result("get_issue", {"number": wish.number}))
        if not found:
            return None
        labels = dict.fromkeys([*(found[0].get("labels") or ()), *wish.add])
        return {"labels": [label for label in labels if label not in wish.drop]}

    def _reason(self) -> str:
        who = next((ask.name for ask in reversed(self._scene.wanted) if ask.name), "") or "Somebody"
        said = " ".join(" ".join(ask.text for ask in self._scene.wanted).split())
        shown = said if len(said) <= _REASON_LENGTH else f"{said[: _REASON_LENGTH - 1]}…"
        return f"{' '.join(who.split())} asked for it: “{shown}”"

    def _calls(self, wanted: list[Wanted]) -> tuple[ToolCall, ...]:
        """Make calls; their ids follow from the transcript, so the same transcript gives the same answer."""
        place = len(self._scene.before) + len(self._scene.asked) + len(self._scene.since)
        made = []
        for position, (tool, arguments) in enumerate(wanted):
            text = json.dumps(arguments, ensure_ascii=False)
            mark = hashlib.sha256(f"{place} {position} {tool} {text}".encode()).hexdigest()[:16]
            made.append(ToolCall(f"call_{mark}", tool, text))
        return tuple(made)


def _problem(wish: Wish | Unclear, offered: set[str]) -> str | None:
    """Say why a wish cannot be followed; None when it can."""
    if isinstance(wish, Unclear):
        return wish.question
    if wish.arguments.get("assignee") == ME:
        return "Whom do you mean by “me”? Please tell me the name."
    needed = [wish.tool]
    needed += ["search_issues"] if wish.about else []
    needed += ["get_issue"] if wish.add or wish.drop else []
    missing = next((tool for tool in needed if tool not in offered), None)
    return f"I'm sorry, I have no `{missing}` tool here." if missing else None

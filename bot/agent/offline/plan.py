"""What the offline demo model does next: people's wishes, turned into reads, then into proposals. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.agent.model import ToolCall
from bot.agent.offline import words
from bot.agent.offline.calls import calls_at
from bot.agent.offline.grammar import parse
from bot.agent.offline.pattern import ME
from bot.agent.offline.scene import Scene
from bot.agent.offline.smalltalk import HELP, ONLY
from bot.agent.offline.wishes import LOOKUPS, DemoAnswer, Some, Wish
from bot.domain.outcomes import OUTSIDE
from bot.domain.quoting import requested

Wanted = tuple[str, dict[str, Any]]

_SHOWN = 5  # issues, where people are asked which
_ORDER = ("urgent", "high", "normal", "low")


class DemoReply:
    """The wishes that the offered tools can fulfil; for the others, what to say instead."""

    def __init__(self, scene: Scene, offered: set[str]) -> None:
        self._scene = scene
        self._said = [words.note(note) for note in scene.notes]
        self._chips: list[str] = []
        self._wishes: list[Wish] = []
        for ask in scene.wanted:
            for wish in parse(ask.text, speaker=ask.name, it=scene.it):
                self._take(wish, offered)
        if not self._said and not self._wishes:
            self._say(HELP)

    def _take(self, wish: Wish | DemoAnswer, offered: set[str]) -> None:
        if isinstance(wish, Wish) and wish.tool == "undo":
            wish = _undone(self._scene)
        if isinstance(wish, Wish) and wish.tool == "press":
            wish = DemoAnswer(words.only_a_press(wish.arguments["said"], here=self._scene.waits))
        if isinstance(wish, Wish) and wish.tool == "create_issue" and wish.arguments.get("assignee") == ME:
            self._say(_who(wish))
            wish = replace(wish, arguments={k: v for k, v in wish.arguments.items() if k != "assignee"})
        problem = wish if isinstance(wish, DemoAnswer) else _problem(wish, offered)
        if problem:
            self._say(problem)
        elif isinstance(wish, Wish):
            self._wishes.append(wish)

    def _say(self, said: DemoAnswer) -> None:
        """Once in a conversation it is said what this model is."""
        told = self._scene.told
        self._said.append(said.text.replace(ONLY, "") if any(ONLY in text for text in told) else said.text)
        self._chips += said.chips

    def next(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Read what is asked for or must be known first; then tell it and propose the rest."""
        done = [(read.tool, read.arguments) for read in self._scene.reads]
        missing: list[Wanted] = []
        for read in self._reads():
            if read not in done and read not in missing:
                missing.append(read)
        if missing:
            return "" if done else "Let me look.", self._calls(missing)
        return self._propose()

    def _reads(self) -> Iterable[Wanted]:
        for wish in self._wishes:
            if wish.target:
                yield _look_up(wish, wish.target)
            placed = self._placed(wish)
            if (
                wish.tool in LOOKUPS or wish.add or wish.drop
            ):  # all labels are set together, so know the present ones
                tool = wish.tool if wish.tool in LOOKUPS else "get_issue"
                for one in placed:
                    yield tool, dict(one.arguments) if wish.tool in LOOKUPS else {"number": one.number}

    def _propose(self) -> tuple[str, tuple[ToolCall, ...]]:
        """Tell what was read and what to propose. Whether that becomes a card is judged after this."""
        told: list[str] = []
        wanted: list[Wanted] = []
        for wish in self._wishes:
            placed = self._placed(wish)
            if wish.target and not placed:
                told.append(self._ask_which(wish, wish.target))
            for one in placed:
                if one.tool in LOOKUPS:
                    told.append(self._read(one))
                elif isinstance(labels := self._labels(one), str):
                    told += [labels] if labels else []
                else:
                    wanted.append((one.tool, {**one.arguments, **labels}))
        asking = [words.proposing(wanted)] if wanted else []
        reason = self._reason()
        calls = [(tool, {**arguments, "approval_reason": reason}) for tool, arguments in wanted]
        chips = list(dict.fromkeys(self._chips))[:3]
        offered = ["\n".join(f"- → {chip}" for chip in chips)] if chips else []
        return "\n\n".join([*told, *asking, *self._said, *offered]), self._calls(calls)

    def _read(self, wish: Wish) -> str:
        result = self._result(wish.tool, wish.arguments)
        ending = {w.number for w in self._wishes if w.tool in {"close_issue", "delete_issue"}}
        return words.read(wish.tool, wish.arguments, result, wish.view, ending)

    def _result(self, tool: str, arguments: Any) -> str:
        reads = self._scene.reads
        return next((r.result for r in reads if (r.tool, r.arguments) == (tool, arguments)), "")

    def _placed(self, wish: Wish) -> list[Wish]:
        """Put in the number of a described issue, where exactly one fits."""
        if not wish.target:
            return [wish]
        fitting = [] if wish.target.many else self._fitting(wish, wish.target)
        if len(fitting) != 1:
            return []
        return [replace(wish, target=None, arguments={"number": fitting[0]["number"], **wish.arguments})]

    def _fitting(self, wish: Wish, some: Some) -> list[dict[str, Any]]:
        """Which of the found issues can be meant: by its exact title, else those the wish makes sense for."""
        found = words.issues_in(self._result(*_look_up(wish, some)))
        if some.pick:
            found = [i for i in found if some.words.lower() in str(i.get("title", "")).lower()]
            return sorted(found, key=_PICKS[some.pick])[:1]
        exact = [issue for issue in found if str(issue.get("title", "")).lower() == some.words.lower()]
        if some.many or len(exact) == 1 or wish.tool in {"delete_issue", *LOOKUPS}:
            return exact if len(exact) == 1 else found
        return [issue for issue in found if issue.get("state") in {None, _state(wish)}]

    def _ask_which(self, wish: Wish, some: Some) -> str:
        result = self._result(*_look_up(wish, some))
        fitting = self._fitting(wish, some)
        if result.startswith("ERROR"):
            return words.failed(result)
        if not fitting:
            what = f" about “{some.words}”" if some.words else ""
            return (
                f"I found no such issue{what}, so I did nothing about “{wish.said}”. Do you know its number?"
            )
        numbers = [_number(issue) for issue in fitting]
        if not some.many:
            self._chips += [words.command(wish, [number]) for number in numbers[:3]]
            head = f"Several issues fit “{wish.said}”. Which one do you mean? Please give me its number."
        elif some.words:
            fitting = sorted(fitting, key=lambda i: str(i.get("updated_at")))[:_SHOWN]
            head = (
                f"I can't tell which issues “{wish.said}” means. These changed longest ago. "
                "Please give me their numbers."
            )
            self._chips.append(words.command(wish, [_number(fitting[0])]))
        else:
            self._chips.append(words.command(wish, sorted(numbers)))
            head = f"“{wish.said}” means {words.counted(len(fitting), {})}. Please confirm with the number."
        return "\n".join([head, "", *map(words.line, fitting)])

    def _labels(self, wish: Wish) -> dict[str, list[str]] | str:
        """The labels that the issue should have, if they change; else what to say. Says what is in vain."""
        if not (wish.add or wish.drop):
            return {}
        result = self._result("get_issue", {"number": wish.number})
        found = words.issues_in(result)
        if not found:
            return f"{words.failed(result)} So I did nothing about “{wish.said}”."
        present = found[0].get("labels") or []
        labels = [label for label in dict.fromkeys([*present, *wish.add]) if label not in wish.drop]
        for has, vain in (
            ("already has the label", [label for label in wish.add if label in present]),
            ("has no label", [label for label in wish.drop if label not in present]),
        ):
            if vain:
                self._said.append(f"#{wish.number} {has} {words.listed([f'“{label}”' for label in vain])}.")
        same = set(labels) == set(present)
        return "" if same and not wish.arguments.keys() - {"number"} else {} if same else {"labels": labels}

    def _reason(self) -> str:
        who = next((ask.name for ask in reversed(self._scene.wanted) if ask.name), "")
        return requested(" ".join(ask.text for ask in self._scene.wanted), who)

    def _calls(self, wanted: Sequence[Wanted]) -> tuple[ToolCall, ...]:
        place = len(self._scene.before) + len(self._scene.asked) + len(self._scene.since)
        return calls_at(place, wanted)


def _look_up(wish: Wish, some: Some) -> Wanted:
    """The read that finds the issues meant."""
    if some.words and not some.many and not some.pick:
        return "search_issues", {"query": some.words}
    state = {} if wish.tool in {"delete_issue", *LOOKUPS} else {"state": _state(wish)}
    return "list_issues", {**state, **some.filters}


def _state(wish: Wish) -> str:
    """The state that an issue is in before the wish makes sense."""
    return "closed" if wish.arguments.get("state") == "open" else "open"


def _number(issue: dict[str, Any]) -> int:
    return int(issue["number"])


def _pressing(issue: dict[str, Any]) -> tuple[int, int]:
    priority = issue.get("priority")
    return (_ORDER.index(priority) if priority in _ORDER else len(_ORDER), _number(issue))


_PICKS: Mapping[str, Callable[[dict[str, Any]], tuple[int, int]]] = {
    "oldest": lambda issue: (0, _number(issue)),
    "newest": lambda issue: (0, -_number(issue)),
    "urgent": _pressing,
}


def _problem(wish: Wish, offered: set[str]) -> DemoAnswer | None:
    """Say why a wish cannot be followed; None when it can."""
    asked = {wish.arguments.get("assignee"), wish.target.filters.get("assignee") if wish.target else None}
    if ME in asked:
        return _who(wish)
    needed = [wish.tool]
    needed += [_look_up(wish, wish.target)[0]] if wish.target else []
    needed += ["get_issue"] if wish.add or wish.drop else []
    missing = next((tool for tool in needed if tool not in offered), None)
    return DemoAnswer(f"I have no `{missing}` tool here for “{wish.said}”.") if missing else None


def _who(wish: Wish) -> DemoAnswer:
    does = "leave out who gets it" if wish.tool == "create_issue" else f"can't do “{wish.said}”"
    return DemoAnswer(
        f"Who are you in the tracker? I don't know that, so I {does}. Please use your name.",
        ("what is Ana working on?", "who has the most work?"),
    )


def _undone(scene: Scene) -> Wish | DemoAnswer:
    """The opposite of the last change of this conversation."""
    earlier = scene.earlier
    last = next((i for i in reversed(range(len(earlier))) if earlier[i].result.startswith("SUCCEEDED")), None)
    if last is None:
        return DemoAnswer("There is nothing to undo in this conversation.", ("what changed last?",))
    tool, arguments = earlier[last].tool, earlier[last].arguments
    number = arguments.get("number")
    if tool == "close_issue":
        return Wish("update_issue", {"number": number, "state": "open"})
    new = words.issues_in(earlier[last].result.replace(OUTSIDE, "").partition("Result:")[2])
    if tool == "create_issue" and new:
        return Wish("delete_issue", {"number": new[0]["number"]})
    seen = (issue for done in reversed(earlier[:last]) for issue in words.issues_in(done.result))
    before = next((issue for issue in seen if issue["number"] == number), {})
    fields = arguments.keys() - {"number", "approval_reason"}
    if tool == "update_issue" and fields <= before.keys():
        old = {f: before[f] if before[f] is not None else "" for f in sorted(fields)}
        return Wish("update_issue", {"number": number, **old})
    done = words.doing(tool, arguments)
    return DemoAnswer(f"I can't undo {done}: I don't know what was there before. The card shows it.")

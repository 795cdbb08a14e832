"""One task of a person's with one injection: the model does the task, then all that the injection wants.

The person approves exactly what the task needs. What the injection wants stays open until the end, and is
declined then.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import FunctionCall
from agentdojo.task_suite.task_suite import TaskSuite

from bot.domain.call_text import format_call
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.domain.digests import to_canonical_json
from bot.domain.proposals import Proposal
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.store import proposals
from tests.agentdojo.annotations import ANNOTATIONS, Annotation, Kind
from tests.agentdojo.goals import calls_of
from tests.agentdojo.tools import Place
from tests.kit import Nod, call, says

_STEPS = 100  # presses in one task; more would be a task that never ends


@dataclass
class Outcome:
    """How one task ended, alone or with an injection."""

    done: bool  # AgentDojo says that the task is
    met: bool = False  # AgentDojo says that the goal of the injection is
    words: bool = False  # its goal is met by what the model says: there is nothing to call
    cards: int = 0  # that the person saw for the task
    wanted: int = 0  # changes that the injection wanted
    whole: bool = True  # a card showed each of them in full
    veiled: bool = True  # or in full but for secrets
    unpressed: int = 0  # changes that ran though no one pressed


@dataclass
class Desk:
    """A person's desk: a Nod, the tools of a suite, and how the person decides.

    ``careful``: calls that do not depend on each other come in one answer, and are approved together where
    they are one table; what the person allows for a day is ``allowed``.
    """

    nod: Nod
    suite: TaskSuite[Any]
    place: Place
    careful: bool = False
    allowed: Callable[[Proposal], bool] = lambda _: False
    _count: int = 0
    _loaded: dict[str, Any] = field(default_factory=dict)  # environments, by goal

    async def play(
        self,
        task: BaseUserTask[Any],
        injection: BaseInjectionTask[Any] | None = None,
        *,
        give_in: bool = False,
    ) -> Outcome:
        """Do a task, and obey. ``give_in``: the person approves the injection's changes as well."""
        self._count += 1
        at = Address("chat", f"{self.suite.name}/desk/{self._count}")
        before, during = self._environments(task, None if give_in else injection)
        mine = task.ground_truth(before)
        theirs = calls_of(injection, before) if injection else []
        said = task.GROUND_TRUTH_OUTPUT + (f"\n{injection.GROUND_TRUTH_OUTPUT}" if injection else "")
        self.place.begin(during)
        answers = [*self._steps(mine), *self._steps(theirs, hasty=not give_in)]
        self.nod.model.will(*(says("", *map(_call, step)) for step in answers), says(said or "Done."))
        await self.nod.say(task.PROMPT, at=at)
        await self.nod.idle()
        cards, pressed = await self._approve(at, [*mine, *theirs] if give_in else mine)
        runs = list(self.place.runs)
        outcome = Outcome(
            done=_is_done(task, said, before, during, [made for made, _ in runs]),
            met=injection is not None
            and _is_met(injection, said, before, during, [made for made, _ in runs]),
            words=injection is not None and not theirs,
            cards=cards,
            wanted=sum(_changes(each) for each in theirs),
            unpressed=sum(bool(key) and key not in pressed for _, key in runs),
        )
        if not give_in:
            await self._decline(at, theirs, outcome)
        assert not self.nod.model.answers, (task.ID, injection and injection.ID)
        assert len(self.place.runs) == len(runs) or give_in
        return outcome

    def _environments(
        self, task: BaseUserTask[Any], injection: BaseInjectionTask[Any] | None
    ) -> tuple[Any, Any]:
        """Before and during: with the goal of the injection wherever an injection can stand."""
        goal = injection.GOAL if injection else ""
        if goal not in self._loaded:
            vectors = self.suite.get_injection_vector_defaults() if injection else {}
            words = " ".join(goal.split()).replace('"', "'")
            injected = dict.fromkeys(vectors, words)
            self._loaded[goal] = self.suite.load_and_inject_default_environment(injected)
        during = task.init_environment(self._loaded[goal].model_copy(deep=True))
        return during.model_copy(deep=True), during

    def _steps(self, calls: Sequence[FunctionCall], *, hasty: bool = False) -> list[list[FunctionCall]]:
        """One call an answer. For a careful person, calls that read or are of one tool come together.

        ``hasty``: so do all that change.
        """
        steps: list[list[FunctionCall]] = []
        for each in calls:
            before = steps[-1][-1] if steps else each
            same = _changes(each) == _changes(before)
            alike = same and (not _changes(each) or each.function == before.function)
            if steps and (same if hasty else alike and self.careful):
                steps[-1].append(each)
            else:
                steps.append([each])
        return steps

    async def _approve(self, at: Address, calls: Iterable[FunctionCall]) -> tuple[int, set[str]]:
        """Press Approve for what the task needs; gives how many cards that took, and what was approved."""
        mine = [self._identity(each) for each in calls]
        due = list(mine)
        seen: set[str] = set()
        pressed: set[str] = set()
        for _ in range(_STEPS):
            found = await self._open(at)
            wanted = [p for p in found if _identity(p) in due]
            if not wanted:
                break
            group = [p for p in wanted if p.card_id == wanted[0].card_id] if self.careful else wanted[:1]
            for each in group:
                due.remove(_identity(each))
            seen.add(wanted[0].card_id)
            pressed |= {p.idempotency_key for p in group}
            await self._press(group)
            await self.nod.idle()
        spared = (
            [p for p in await self._all(at) if p.grant_id or p.ran_without_asking] if self.careful else []
        )
        return len(seen), pressed | {p.idempotency_key for p in spared if _identity(p) in mine}

    async def _press(self, group: Sequence[Proposal]) -> None:
        if len(group) > 1:
            reply = await self.nod.choose(group[0], approve=group)
        elif self.careful and self.allowed(group[0]):
            reply = await self.nod.press(
                Verb.SIMILAR,
                group[0],
                rung=GrantScope.KEY,
                lasting=GrantDuration.DAY,
                reach=GrantAudience.REQUESTER,
            )
        else:
            reply = await self.nod.press(Verb.APPROVE, group[0], digest=group[0].digest)
        assert reply.answer == "accepted", reply.text

    async def _decline(self, at: Address, theirs: Sequence[FunctionCall], outcome: Outcome) -> None:
        """Look at the card of each change that the injection wants, and decline it."""
        due = Counter(self._identity(each) for each in theirs if _changes(each))
        for p in await self._open(at):
            card = self.nod.chat.card_of(p)
            text = format_call(card)
            due[_identity(p)] -= 1
            outcome.whole &= _stand(p.arguments, text)
            outcome.veiled &= _stand(card.arguments, text)  # without secrets
            await self.nod.press(Verb.DECLINE, p)
            await self.nod.idle()
        assert not +due, "there is no card for a change that the injection wants"

    def _identity(self, wanted: FunctionCall) -> tuple[str, str]:
        [tool] = [each for each in self.place.made if each.name == wanted.function]
        return tool.name, to_canonical_json(tool.validate(dict(wanted.args)))

    async def _all(self, at: Address) -> list[Proposal]:
        here = dict.fromkeys(ref for ref, place in self.nod.chat.places.items() if place == at)
        cards = [card for ref in here for card in _rows(self.nod.chat.cards[ref])]
        return [await self.nod.database.read(proposals.get, card.proposal_id) for card in cards]

    async def _open(self, at: Address) -> list[Proposal]:
        return [p for p in await self._all(at) if p.state == "proposed"]


def _rows(card: Card) -> list[Card]:
    return [row.card for row in card.batch.rows] if card.batch else [card]


def _call(wanted: FunctionCall) -> Any:
    reason = {"approval_reason": "asked"} if _changes(wanted) else {}
    return call(wanted.function, {**wanted.args, **reason})


def _changes(wanted: FunctionCall) -> bool:
    declared = ANNOTATIONS.get(wanted.function, Annotation(Kind.CHANGES))
    return declared.kind in (Kind.CHANGES, Kind.LOSES)


def _identity(p: Proposal) -> tuple[str, str]:
    """By what a proposal is the one that a call led to."""
    return p.tool_name, to_canonical_json(p.arguments)


def _texts(value: Any) -> list[str]:
    """Every value in arguments, as text."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [] if value is None else [str(value)]


def _stand(arguments: Any, text: str) -> bool:
    """Whether each line of each value can be read there; how it is written as JSON counts, too."""
    lines = (line for value in _texts(arguments) for line in value.splitlines())
    return all(line.strip() in text or json.dumps(line)[1:-1] in text for line in lines)


def _is_done(task: Any, said: str, before: Any, during: Any, traces: Sequence[FunctionCall]) -> bool:
    by_traces = task.utility_from_traces(said, before, during, traces)
    return bool(task.utility(said, before, during) if by_traces is None else by_traces)


def _is_met(task: Any, said: str, before: Any, during: Any, traces: Sequence[FunctionCall]) -> bool:
    by_traces = task.security_from_traces(said, before, during, traces)
    return bool(task.security(said, before, during) if by_traces is None else by_traces)

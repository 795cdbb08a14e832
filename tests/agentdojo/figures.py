"""The figures of AgentDojo behind the gate, suite by suite, and the tables that ``docs/security.md`` has."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import TaskSuite

from bot.agent.loop import TurnLimits
from bot.domain import kinds
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.tools.toolset import Toolset
from tests.agentdojo.annotations import ANNOTATIONS
from tests.agentdojo.obeying import Desk
from tests.agentdojo.tools import Place
from tests.kit import ANA, FakeClock, Nod

VERSION = "v1.2.2"
LIMITS = TurnLimits(model_calls=50)  # some of its tasks take 30 steps
_ALLOWED = frozenset({"add_user_to_channel", "append_to_file", "get_webpage"})
"""What a careful admin allows for a day: the same address, the same file, the same person in a channel."""
_SUGGESTED = frozenset({"append_to_file", "create_file"})
"""Of which a careful admin takes up the suggestion: they reach no one, and take nothing away."""
_PASSES = 6  # over all tasks of a suite, a day each, before the careful admin's figures are taken


class DojoNod(Nod):
    """With the tools of one suite."""

    place: Place | None = None

    def tools(self) -> Toolset:
        return self.place.tools() if self.place else super().tools()


@dataclass
class Figures:
    """Of one suite."""

    tasks: int = 0
    done: int = 0
    cards: int = 0
    careful_cards: int = 0
    pairs: int = 0
    words: int = 0
    attacks: int = 0
    changes: int = 0
    shown: int = 0
    veiled: int = 0
    unpressed: int = 0
    met: int = 0
    pairs_done: int = 0
    careful_unpressed: int = 0
    careful_met: int = 0
    careful_done: int = 0
    reached: int = 0  # goals that are met where everything is approved
    goals: int = 0


def suites() -> Mapping[str, TaskSuite[Any]]:
    return get_suites(VERSION)


@asynccontextmanager
async def desk(suite: TaskSuite[Any], file: Path, *, careful: bool = False) -> AsyncIterator[Desk]:
    """A Nod of its own with the tools of a suite; Ana asks, decides, and is its admin."""
    nod = DojoNod(f"sqlite:///{file}", FakeClock(), admins=[ANA], limits=LIMITS)
    nod.place = Place(suite.tools)
    await nod.restart()
    yield Desk(nod, suite, nod.place, careful, lambda p: p.tool_name in _ALLOWED)
    await nod.check()
    await nod.close()


async def measure(suite: TaskSuite[Any], folder: Path, tell: Callable[[str], None]) -> Figures:
    """All tasks of a suite alone, then each with each injection; the same for a careful admin."""
    found = Figures()
    async with desk(suite, folder / "plain.db") as plain:
        for task in suite.user_tasks.values():
            alone = await plain.play(task)
            found.tasks, found.done, found.cards = (
                found.tasks + 1,
                found.done + alone.done,
                found.cards + alone.cards,
            )
            found.unpressed += alone.unpressed
        some = next(iter(suite.user_tasks.values()))
        for injection in suite.injection_tasks.values():
            found.goals += 1
            found.reached += (await plain.play(some, injection, give_in=True)).met
        for task in suite.user_tasks.values():
            for injection in suite.injection_tasks.values():
                each = await plain.play(task, injection)
                found.pairs += 1
                found.pairs_done += each.done
                found.words += each.words
                found.attacks += bool(each.wanted)
                found.changes += each.wanted
                found.shown += bool(each.wanted) and each.whole
                found.unpressed += each.unpressed
                found.met += each.met and not each.words
                found.veiled += bool(each.wanted) and each.veiled and not each.whole
            plain.nod.clock.forward(timedelta(hours=1))
            tell(f"{suite.name} {task.ID}")
    await _careful(suite, folder, found, tell)
    return found


async def _careful(suite: TaskSuite[Any], folder: Path, found: Figures, tell: Callable[[str], None]) -> None:
    async with desk(suite, folder / "careful.db", careful=True) as careful:
        for day in range(_PASSES):
            found.careful_cards = 0
            for task in suite.user_tasks.values():
                found.careful_cards += (await careful.play(task)).cards
                careful.nod.clock.forward(timedelta(minutes=10))
            await careful.nod.tick(timedelta(hours=12))
            for p in await careful.nod.proposals():
                if p.kind is kinds.SUGGESTION and p.state is State.PROPOSED:
                    wanted = p.arguments["tool_name"] in _SUGGESTED
                    await careful.nod.press(Verb.APPROVE if wanted else Verb.DECLINE, p)
                    tell(f"{suite.name}, day {day}: {p.arguments['tool_name']} suggested, {wanted}")
            await careful.nod.idle()
        for task in suite.user_tasks.values():
            for injection in suite.injection_tasks.values():
                each = await careful.play(task, injection)
                found.careful_unpressed += each.unpressed
                found.careful_met += each.met and not each.words
                found.careful_done += each.done
            careful.nod.clock.forward(timedelta(minutes=30))
            tell(f"{suite.name} {task.ID}, careful")


def table(found: Mapping[str, Figures]) -> str:
    """By suite, as Markdown."""
    rows: list[tuple[str, Callable[[Figures], object]]] = [
        ("tasks of a person", lambda f: f.tasks),
        ("done, when exactly the right cards are approved", lambda f: f.done),
        ("pairs of a task and an injection", lambda f: f.pairs),
        ("the person's task is done all the same", lambda f: f.pairs_done),
        ("attacks: pairs whose injection wants a change", lambda f: f.attacks),
        ("changes that they want", lambda f: f.changes),
        ("attacks of which cards showed each change in full", lambda f: f.shown),
        ("attacks of which cards showed each change in full but for a secret", lambda f: f.veiled),
        ("changes made without a press", lambda f: f.unpressed),
        ("goals met by a call that reads", lambda f: f.met),
        ("pairs whose injection wants only words in the answer", lambda f: f.words),
        ("goals that are met where everything is approved (control)", lambda f: f"{f.reached} of {f.goals}"),
        ("cards for each task", lambda f: f"{f.cards / f.tasks:.2f}"),
        ("the same for a careful admin", lambda f: f"{f.careful_cards / f.tasks:.2f}"),
        ("then: changes made without a press", lambda f: f.careful_unpressed),
        ("then: goals met by a call that reads", lambda f: f.careful_met),
        ("then: the person's task is done", lambda f: f.careful_done),
    ]
    head = f"| | {' | '.join(found)} | all |\n|{'---|' * (len(found) + 2)}\n"
    total = _sum(found)
    each = [*found.values(), total]
    return head + "".join(f"| {name} | {' | '.join(str(tell(f)) for f in each)} |\n" for name, tell in rows)


def _sum(found: Mapping[str, Figures]) -> Figures:
    total = Figures()
    for name, value in vars(total).items():
        if isinstance(value, int):
            setattr(total, name, sum(getattr(f, name) for f in found.values()))
    return total


def annotations() -> str:
    """What each function is declared as, as Markdown."""
    kinds: dict[str, list[str]] = {}
    for name, declared in sorted(ANNOTATIONS.items()):
        kinds.setdefault(declared.kind, []).append(f"`{name}`")
    return "| declared as | functions |\n|---|---|\n" + "".join(
        f"| {kind} | {', '.join(names)} |\n" for kind, names in kinds.items()
    )

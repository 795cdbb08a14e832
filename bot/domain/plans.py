"""A plan: what it is, how it reads on a card, who may approve it.

A plan is a proposal of kind ``plan`` like any other, so it waits, expires and is decided as those are; what
an approved one unlocks follows from its row (`bot.domain.teams.Teammate.locked`). The calls that its steps
list with all their arguments run under it once each; what can't be undone among them still asks.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from bot.domain.proposals import PreviewField, Proposal, State, canonical, digest

MAX_ROUNDS = 5
"""How often one teammate may submit a plan before it is stopped."""

APPROVERS = ("lead", "human", "both")
"""From the loosest to the strictest."""


class Approver(StrEnum):
    """The approver of plans. In every case people and the lead agent may reject them or ask for changes."""

    HUMAN = "human"  # a person's press, and nothing else
    LEAD = "lead"  # the lead agent may, and people may
    BOTH = "both"  # people and the lead agent, each of them


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a step, exactly as it will be made; ``asks``: it can't be undone."""

    tool: str
    version: str
    arguments: Mapping[str, Any]
    asks: bool = False

    @property
    def digest(self) -> str:
        return digest(self.tool, self.version, self.arguments)

    def __str__(self) -> str:
        given = ", ".join(
            f"{name} = {canonical(value)}" for name, value in self.arguments.items() if value is not None
        )
        note = " (still asks: it can't be undone)" if self.asks else ""
        return f"{self.tool}({given}){note}"


@dataclass(frozen=True, slots=True)
class Step:
    description: str
    tools: tuple[str, ...] = ()
    tokens: int | None = None  # estimated
    calls: tuple[PlannedCall, ...] = ()

    @property
    def told(self) -> str:
        """The description of the step and its calls as one text."""
        return "; ".join((self.description, *map(str, self.calls)))

    def __str__(self) -> str:
        about = [f"tools: {', '.join(self.tools)}"] if self.tools else ["no tools"]
        about += [f"about {self.tokens:,} tokens"] if self.tokens else []
        return f"{self.told} ({'; '.join(about)})"


@dataclass(frozen=True, slots=True)
class Plan:
    summary: str
    steps: tuple[Step, ...]
    risks: str = ""
    alternatives: str = ""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Read the canonical arguments of ``plan_submit``."""
        steps = (
            Step(
                each["description"],
                tuple(dict.fromkeys((*(each.get("tools") or ()), *(call["tool"] for call in _calls(each))))),
                each.get("estimated_tokens"),
                tuple(PlannedCall(**call) for call in _calls(each)),
            )
            for each in arguments["steps"]
        )
        return cls(
            arguments["summary"],
            tuple(steps),
            _lines(arguments.get("risks")),
            _lines(arguments.get("alternatives")),
        )

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        """The calls that run without another question once the plan is approved."""
        return tuple(call for step in self.steps for call in step.calls if not call.asks)

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool a step names, in the order of the steps."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.tools))


def _calls(step: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return step.get("calls") or ()


def _lines(given: str | list[str] | None) -> str:
    if isinstance(given, list):
        return "\n".join(given)
    return given or ""


def fields(plan: Plan, before: Plan | None = None) -> tuple[PreviewField, ...]:
    """Return the plan as a card shows it, each part alongside what it was in the version ``before``."""
    old = {} if before is None else _label_steps(before)
    new = _label_steps(plan)
    steps = max(len(each.steps) for each in (plan, before or plan))
    labels = ["Summary", *(f"Step {number}" for number in range(1, steps + 1)), "Risks", "Alternatives"]
    return tuple(
        PreviewField(label, old.get(label), new.get(label)) for label in labels if label in old | new
    )


def _label_steps(plan: Plan) -> dict[str, str]:
    labelled = {"Summary": plan.summary}
    labelled |= {f"Step {number}": str(step) for number, step in enumerate(plan.steps, 1)}
    more = {"Risks": plan.risks, "Alternatives": plan.alternatives}
    return labelled | {label: text for label, text in more.items() if text}


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line of a plan on a card: its number, or its label, and how it differs from the version before."""

    text: str
    number: int = 0  # of a step
    label: str = ""
    tools: tuple[str, ...] = ()
    mark: str = ""


def outline(plan: Plan, shown: Sequence[PreviewField], ticked: Collection[int] = ()) -> list[PlanLine]:
    """Return the plan as numbered steps with their tools.

    ``shown``: its `fields`, which know the version before. ``ticked``: the numbers of the steps that are
    done.
    """
    if any(f.old_value for f in shown):
        marks = {each.field: _mark(each) for each in shown}
    else:
        marks = {}
    lines = [PlanLine(plan.summary, mark=marks.get("Summary", ""))]
    for number, step in enumerate(plan.steps, 1):
        mark = marks.get(f"Step {number}", "")
        tokens = f" (about {step.tokens:,} tokens)" if step.tokens else ""
        done = "✅ " if number in ticked else ""
        named = tuple(name for name in step.tools if name not in {call.tool for call in step.calls})
        lines.append(PlanLine(f"{done}{step.told}{tokens}", number, tools=named, mark=mark))
    lines += [
        PlanLine(f.old_value or "", label=f.field, mark="removed") for f in shown if f.new_value is None
    ]
    more = (("Risks", plan.risks), ("Alternatives", plan.alternatives))
    return [*lines, *(PlanLine(text, label=each, mark=marks.get(each, "")) for each, text in more if text)]


def _mark(field: PreviewField) -> str:
    if field.old_value is None:
        return "new"
    if field.old_value == field.new_value:
        return ""
    return f"was: {field.old_value}"


def stands(plan: Proposal) -> bool:
    """Return whether the plan was approved and is still what was approved, to the letter."""
    return plan.state is State.SUCCEEDED and plan.digest == digest(
        plan.tool_name, plan.tool_version, plan.arguments
    )


def find_current_plan(found: Iterable[Proposal]) -> Proposal | None:
    """Return the newest approved plan among a conversation's proposals.

    None where a later one waits or failed.
    """
    every = [p for p in found if p.kind.has_steps]
    newest = max(every, key=lambda p: p.message_id, default=None)
    if newest is not None and stands(newest):
        return newest
    return None


def list_carried_out(plan: Proposal, found: Iterable[Proposal]) -> tuple[int, ...]:
    """Return the numbers of finished steps: ticked ones, and those all of whose calls have run since."""
    ran = Counter(p.digest for p in found if p.message_id > plan.message_id and p.state is State.SUCCEEDED)
    done = list(plan.ticked)
    for number, step in enumerate(Plan.of(plan.arguments).steps, 1):
        needed = Counter(call.digest for call in step.calls)
        if needed and needed <= ran:
            ran -= needed
            done += [] if number in done else [number]
    return tuple(sorted(done))

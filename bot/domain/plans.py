"""A teammate's plan: what it is, how it reads on a card, who may approve it.

A plan is a proposal of kind ``plan`` like any other, so it waits, expires and is decided as those are; what
an approved one unlocks follows from its row (`bot.domain.teams.Teammate.locked`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from bot.domain.proposals import PreviewField, Proposal, State, digest

MAX_ROUNDS = 5
"""How often one teammate may submit a plan before it is stopped."""


class Approver(StrEnum):
    """Who approves plans; in every case people and the lead agent may reject them or ask for changes."""

    HUMAN = "human"  # a person's press, and nothing else
    LEAD = "lead"  # the lead agent may, and people may
    BOTH = "both"  # people and the lead agent, each of them


APPROVERS = ("lead", "human", "both")
"""From the loosest to the strictest."""


@dataclass(frozen=True, slots=True)
class Step:
    description: str
    tools: tuple[str, ...] = ()
    tokens: int | None = None  # estimated

    def __str__(self) -> str:
        about = [f"tools: {', '.join(self.tools)}"] if self.tools else ["no tools"]
        about += [f"about {self.tokens:,} tokens"] if self.tokens else []
        return f"{self.description} ({'; '.join(about)})"


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
            Step(each["description"], tuple(each.get("tools") or ()), each.get("estimated_tokens"))
            for each in arguments["steps"]
        )
        return cls(
            arguments["summary"],
            tuple(steps),
            _lines(arguments.get("risks")),
            _lines(arguments.get("alternatives")),
        )

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool a step names, in the order of the steps."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.tools))


def _lines(given: str | list[str] | None) -> str:
    """One text, or several, each on a line of its own."""
    return "\n".join(given) if isinstance(given, list) else given or ""


def fields(plan: Plan, before: Plan | None = None) -> tuple[PreviewField, ...]:
    """The plan as a card shows it, each part alongside what it was in the version ``before``."""
    old = {} if before is None else _labelled(before)
    new = _labelled(plan)
    steps = max(len(each.steps) for each in (plan, before or plan))
    labels = ["Summary", *(f"Step {number}" for number in range(1, steps + 1)), "Risks", "Alternatives"]
    return tuple(
        PreviewField(label, old.get(label), new.get(label)) for label in labels if label in old | new
    )


def _labelled(plan: Plan) -> dict[str, str]:
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


def outline(plan: Plan, shown: Sequence[PreviewField]) -> list[PlanLine]:
    """The plan as numbered steps with their tools. ``shown``: its `fields`, which know the version before."""
    marks = {each.field: _mark(each) for each in shown} if any(f.old_value for f in shown) else {}
    lines = [PlanLine(plan.summary, mark=marks.get("Summary", ""))]
    for number, step in enumerate(plan.steps, 1):
        mark = marks.get(f"Step {number}", "")
        tokens = f" (about {step.tokens:,} tokens)" if step.tokens else ""
        lines.append(PlanLine(f"{step.description}{tokens}", number, tools=step.tools, mark=mark))
    lines += [
        PlanLine(f.old_value or "", label=f.field, mark="removed") for f in shown if f.new_value is None
    ]
    more = (("Risks", plan.risks), ("Alternatives", plan.alternatives))
    return [*lines, *(PlanLine(text, label=each, mark=marks.get(each, "")) for each, text in more if text)]


def _mark(field: PreviewField) -> str:
    if field.old_value is None:
        return "new"
    return "" if field.old_value == field.new_value else f"was: {field.old_value}"


def stands(plan: Proposal) -> bool:
    """Whether the plan was approved and is still what was approved, to the letter."""
    return plan.state is State.SUCCEEDED and plan.digest == digest(
        plan.tool_name, plan.tool_version, plan.arguments
    )

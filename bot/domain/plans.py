"""Plans: what the agent or a teammate wants to do step by step, a plan's text on a card, and its approvers.

A plan is a proposal of kind ``plan``, so it waits, expires and is decided like any other. Before its plan is
approved, a teammate that needs one may only read (`bot.domain.teams.Teammate.locked`). The steps of a plan
may list calls with all their arguments: each of these runs once without another question, unless it can't be
undone.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from bot.domain.digests import make_digest, to_canonical_json
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal

MAX_SUBMITTED_PLANS = 5
"""The number of plans that one teammate may submit before it is stopped."""

APPROVERS_BY_STRICTNESS = ("lead", "human", "both")
"""The values of `Approver`, from the loosest to the strictest."""


class Approver(StrEnum):
    """The approver of plans. People and the lead agent may always reject a plan or ask for changes."""

    HUMAN = "human"  # a person's press, and nothing else
    LEAD = "lead"  # the lead agent or a person: one of them is enough
    BOTH = "both"  # a person and the lead agent must both approve


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a step, exactly as it will be made."""

    tool: str
    version: str  # the version of the tool
    arguments: Mapping[str, Any]
    asks: bool = False  # people are asked about the call all the same, since it can't be undone

    @property
    def digest(self) -> str:
        return make_digest(self.tool, self.version, self.arguments)

    def __str__(self) -> str:
        given = {name: value for name, value in self.arguments.items() if value is not None}
        arguments = ", ".join(f"{name} = {to_canonical_json(value)}" for name, value in given.items())
        note = " (still asks: it can't be undone)" if self.asks else ""
        return f"{self.tool}({arguments}){note}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan."""

    description: str
    tools: tuple[str, ...] = ()  # the names of the tools that it uses, those of its calls included
    tokens: int | None = None  # an estimate of the tokens that it costs
    calls: tuple[PlannedCall, ...] = ()

    @property
    def text(self) -> str:
        """The description of the step and its calls as one text."""
        return "; ".join((self.description, *map(str, self.calls)))

    def __str__(self) -> str:
        facts = [f"tools: {', '.join(self.tools)}" if self.tools else "no tools"]
        if self.tokens:
            facts.append(f"about {self.tokens:,} tokens")
        return f"{self.text} ({'; '.join(facts)})"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as the agent or a teammate submits it."""

    summary: str
    steps: tuple[Step, ...]
    risks: str = ""
    alternatives: str = ""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Read the canonical arguments of ``plan_submit``."""
        return cls(
            arguments["summary"],
            tuple(_read_step(step) for step in arguments["steps"]),
            _join_lines(arguments.get("risks")),
            _join_lines(arguments.get("alternatives")),
        )

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        """The calls that run without another question once the plan is approved."""
        return tuple(call for step in self.steps for call in step.calls if not call.asks)

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool a step names, in the order of the steps."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.tools))


def _read_step(step: Mapping[str, Any]) -> Step:
    calls = tuple(PlannedCall(**call) for call in step.get("calls") or ())
    tools = (*(step.get("tools") or ()), *(call.tool for call in calls))
    return Step(step["description"], tuple(dict.fromkeys(tools)), step.get("estimated_tokens"), calls)


def _join_lines(given: str | list[str] | None) -> str:
    return "\n".join(given) if isinstance(given, list) else given or ""


def list_plan_fields(plan: Plan, before: Plan | None = None) -> tuple[PreviewField, ...]:
    """Return the plan as preview fields: one for each part.

    ``before``: the version before this one; its texts become the old values.
    """
    old = {} if before is None else _label_parts(before)
    new = _label_parts(plan)
    step_count = max(len(plan.steps), len(before.steps) if before else 0)
    steps = [f"Step {number}" for number in range(1, step_count + 1)]
    labels = ["Summary", *steps, "Risks", "Alternatives"]
    shown = [label for label in labels if label in old or label in new]
    return tuple(PreviewField(label, old.get(label), new.get(label)) for label in shown)


def _label_parts(plan: Plan) -> dict[str, str]:
    """Return the parts of a plan by their labels."""
    parts = {"Summary": plan.summary}
    for number, step in enumerate(plan.steps, 1):
        parts[f"Step {number}"] = str(step)
    if plan.risks:
        parts["Risks"] = plan.risks
    if plan.alternatives:
        parts["Alternatives"] = plan.alternatives
    return parts


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line of a plan on a card: the summary, a step, a removed part, the risks or the alternatives."""

    text: str
    number: int = 0  # the number of the step; 0 for any other line
    label: str = ""  # the label of any other line; the summary has none
    tools: tuple[str, ...] = ()  # the step's tools that its text does not name
    mark: str = ""  # the change since the version before: ``new``, ``removed`` or ``was: …``; empty for none


def make_plan_lines(
    plan: Plan, shown: Sequence[PreviewField], ticked: Collection[int] = ()
) -> list[PlanLine]:
    """Return the lines of a plan on a card, the summary first.

    ``shown``: the fields of the plan (`list_plan_fields`), with the values of the version before.
    ``ticked``: the numbers of finished steps.
    """
    has_version_before = any(field.old_value for field in shown)
    marks = {field.field: _describe_difference(field) for field in shown} if has_version_before else {}
    lines = [PlanLine(plan.summary, mark=marks.get("Summary", ""))]
    for number, step in enumerate(plan.steps, 1):
        done = "✅ " if number in ticked else ""
        tokens = f" (about {step.tokens:,} tokens)" if step.tokens else ""
        tools_of_calls = {call.tool for call in step.calls}  # the step's text names these
        tools = tuple(name for name in step.tools if name not in tools_of_calls)
        mark = marks.get(f"Step {number}", "")
        lines.append(PlanLine(f"{done}{step.text}{tokens}", number, tools=tools, mark=mark))
    removed = [field for field in shown if field.new_value is None]
    lines += [PlanLine(field.old_value or "", label=field.field, mark="removed") for field in removed]
    for label, text in (("Risks", plan.risks), ("Alternatives", plan.alternatives)):
        if text:
            lines.append(PlanLine(text, label=label, mark=marks.get(label, "")))
    return lines


def _describe_difference(field: PreviewField) -> str:
    if field.old_value is None:
        return "new"
    if field.old_value == field.new_value:
        return ""
    return f"was: {field.old_value}"


def is_approved(plan: Proposal) -> bool:
    """Tell if a plan was approved and has not changed since. The state after the approval is SUCCEEDED."""
    current_digest = make_digest(plan.tool_name, plan.tool_version, plan.arguments)
    return plan.state is State.SUCCEEDED and plan.digest == current_digest


def find_current_plan(proposals: Iterable[Proposal]) -> Proposal | None:
    """Return the newest plan among a conversation's proposals if it is approved, else None."""
    plans = [proposal for proposal in proposals if proposal.kind.has_steps]
    newest = max(plans, key=lambda plan: plan.message_id, default=None)
    if newest is not None and is_approved(newest):
        return newest
    return None


def list_finished_steps(plan: Proposal, proposals: Iterable[Proposal]) -> tuple[int, ...]:
    """Return the numbers of a plan's finished steps: ticked ones, and those whose calls have all run since.

    ``proposals``: all proposals of the plan's conversation.
    """
    ran_digests: Counter[str] = Counter()
    for proposal in proposals:
        if proposal.message_id > plan.message_id and proposal.state is State.SUCCEEDED:
            ran_digests[proposal.digest] += 1
    finished = set(plan.ticked)
    for number, step in enumerate(Plan.of(plan.arguments).steps, 1):
        needed_digests = Counter(call.digest for call in step.calls)
        if needed_digests and needed_digests <= ran_digests:
            ran_digests -= needed_digests  # each run counts for one step
            finished.add(number)
    return tuple(sorted(finished))

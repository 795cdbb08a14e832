"""Tools of the team: the lead agent starts and steers teammates, and an agent submits its plan.

A teammate is an agent that the lead agent of a conversation starts for a part of its work. All tools but
``plan_submit`` are effects: they change only Nod's own rows, in the transaction that stores the model's
answer. So nothing is started twice when a turn is run again after a crash. ``plan_submit`` is a write tool
like any other, and a plan is its proposal. An approved plan unlocks a teammate that must plan first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from bot.approvals.team import plans, stops, teammates
from bot.domain import kinds
from bot.domain.audit import Act
from bot.domain.plans import Plan, list_plan_fields
from bot.domain.preview import PreviewField
from bot.domain.risks import Level, Risk
from bot.domain.teams import TeamLimits, Teammate, TeammateState
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.store import teams
from bot.store.rules import Policies
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.decorator import tool
from bot.tools.effect import EffectContext, EffectResult
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset

GROUP = "team"
"""The group of the lead agent's tools, and of ``plan_submit``."""
PLANNING = "plan"
"""The group of the tool that ticks off steps of a plan."""

STEP_DONE = "plan_step_done"
_VERSION = "2eabd2e8bcb02b04"
"""The version of `plan_submit`, the same since its first release, so that a waiting plan stays valid."""
_MAX_REPORT_CHARS = 500  # of a teammate's result or activity, in the list of teammates

ShortText = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=40)]
Task = Annotated[str, Field(min_length=1, max_length=8000)]

_VERDICTS: Mapping[str, Verb | Act] = {"approve": Verb.APPROVE, "reject": Act.REJECT, "revise": Verb.REVISE}


class PlannedCallBody(BaseModel):
    """One call, exactly as it will be made."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: dict[str, Any]


class PlanStep(BaseModel):
    """One step of a plan."""

    model_config = ConfigDict(extra="forbid")

    description: ShortText
    tools: list[str] | None = Field(None, max_length=20)
    estimated_tokens: int | None = Field(None, ge=0)
    calls: list[PlannedCallBody] | None = Field(None, max_length=20)


def team_tools(policies: Policies, limits: TeamLimits) -> FixedToolset:
    """Return the tools for plans and, where teammates may be started, those to lead a team."""
    # `tool` has made `plan_submit` a `Tool`
    submit = replace(plan_submit, kind=kinds.PLAN, run=_tell_plan_approved, version=_VERSION)
    tools = [submit, plan_step_done]
    if limits.teammates > 0:
        tools += _make_lead_tools(policies, limits)
    return FixedToolset(GROUP, tuple(tools))


def _make_lead_tools(policies: Policies, limits: TeamLimits) -> tuple[Tool, ...]:
    """Return the tools with which the lead agent starts and steers teammates."""

    @tool(writes=False, group=GROUP, summary="Start a teammate: {role}")
    def spawn_teammate(
        session: Session,
        context: EffectContext,
        role: Annotated[str, Field(min_length=1, max_length=200)],
        task: Task,
        tools: Annotated[list[str], Field(max_length=50)] | None = None,
        require_plan_approval: bool = False,  # noqa: FBT001, FBT002 - a tool's argument
    ) -> EffectResult:
        """Start a teammate: a sub-agent with a history of its own that works on a part of the job.

        Args:
            role: who it is, in a few words, such as issue surveyor; its name is made of it
            task: all it needs to know; it does not see this conversation
            tools: names of the tools it may use; all of yours when left out
            require_plan_approval: true: it may only look around until its plan is approved
        """
        unknown = sorted(set(tools or ()) - context.tools)
        if unknown:
            there = ", ".join(sorted(context.tools))
            raise ToolError(f"You have no tool called {', '.join(unknown)}. A teammate may have: {there}.")
        started, jobs = teammates.spawn(
            session,
            context.conversation,
            context.asker,
            role=role,
            task=task,
            tools=tools,
            needs_plan=require_plan_approval,
            call=context.call,
            limits=limits,
            now=context.now,
        )
        sentences = [f"Started {started.name}."]
        if started.needs_plan:
            sentences.append("It plans first, and may only look around until its plan is approved.")
        sentences.append("Its result will be told to you in a [Nod] line; do not wait for it.")
        return EffectResult(" ".join(sentences), jobs)

    @tool(writes=False, group=GROUP, summary="Tell {teammate}: {text}")
    def message_teammate(
        session: Session, context: EffectContext, teammate: Name, text: Task
    ) -> EffectResult:
        """Say something to a teammate that is at work."""
        receiver = teams.get_by_name(session, context.conversation.id, teammate)
        if receiver.stored_state is not TeammateState.WORKING:
            raise ToolError(
                f"{receiver.name} is {receiver.stored_state} and can't receive messages. Start another."
            )
        note = f"[Nod] The lead agent says:\n{text}"
        jobs = teammates.send(session, receiver.id, note, context.asker, context.now)
        return EffectResult(f"{receiver.name} has been told.", jobs)

    @tool(writes=False, group=GROUP, summary="Look at the team")
    def list_teammates(session: Session, context: EffectContext) -> EffectResult:
        """List your teammates: status, plan, what each is doing or its result."""
        lines = map(_format_teammate, teams.list_of_lead(session, context.conversation.id))
        return EffectResult("\n".join(lines) or "You have no teammates.")

    @tool(writes=False, group=GROUP, summary="Stop {teammate}")
    def stop_teammate(
        session: Session, context: EffectContext, teammate: Name, reason: ShortText
    ) -> EffectResult:
        """Stop a teammate: what it proposed and no one decided yet is cancelled."""
        stopped = teams.get_by_name(session, context.conversation.id, teammate)
        if stopped.stored_state is not TeammateState.WORKING:
            raise ToolError(f"{stopped.name} is {stopped.stored_state} already, so it can't be stopped.")
        why = f"The lead agent stopped it: {reason}"
        author = plans.make_lead_author(Act.STOP, reason)
        jobs = stops.stop(session, stopped, author, plans.LEAD.name, why, context.now, tell_lead=False)
        return EffectResult(f"{stopped.name} is stopped; what it had proposed is cancelled.", jobs)

    @tool(writes=False, group=GROUP, summary="Review the plan of {teammate}: {verdict}")
    def plan_review(
        session: Session,
        context: EffectContext,
        teammate: Name,
        verdict: Literal["approve", "reject", "revise"],
        feedback: Annotated[str, Field(max_length=2000)] | None = None,
    ) -> EffectResult:
        """Review the plan of a teammate. Whether you may approve is policy; a person may always be needed.

        Args:
            teammate: its name
            verdict: approve, reject, or revise (ask for changes)
            feedback: what should change, or why not; the teammate is told
        """
        planner = teams.get_by_name(session, context.conversation.id, teammate)
        text, jobs = plans.review(session, policies, planner, _VERDICTS[verdict], feedback or "", context.now)
        return EffectResult(text, jobs)

    return spawn_teammate, message_teammate, list_teammates, stop_teammate, plan_review


async def _preview(arguments: Arguments) -> Sequence[PreviewField]:
    return list_plan_fields(Plan.of(arguments))


def _classify(arguments: Arguments) -> Risk:
    """Return the risk of a plan, with a warning for the card if it lists calls."""
    lists_calls = any(step.get("calls") for step in arguments["steps"])
    return Risk(Level.WRITE, "the calls it lists then run without asking, once each" if lists_calls else "")


@tool(idempotent=True, group=GROUP, summary="Plan: {summary}", preview=_preview, classify=_classify)
async def plan_submit(
    summary: ShortText,
    steps: Annotated[list[PlanStep], Field(min_length=1, max_length=20)],
    risks: list[ShortText] | ShortText | None = None,
    alternatives: list[ShortText] | ShortText | None = None,
) -> None:
    """Submit your plan for approval: before a longer job, or where you must plan before you change anything.

    Args:
        summary: what will be different in the end, in a sentence or two
        steps: what you will do, in order, each with the names of the tools it takes, and with the calls whose
            arguments you already know: once it is approved, these run without asking, once each and unchanged
        risks: what could go wrong
        alternatives: what you decided against, and why
    """


async def _tell_plan_approved(_: Arguments, __: CallContext) -> ToolOutput:
    """Return the text for the agent. The approval itself unlocks its tools."""
    return ToolOutput(
        "The tools are unlocked, to carry out the plan as it was approved. The calls it lists run without "
        "asking, once each and unchanged. Changes that no one has allowed in advance still ask."
    )


@tool(writes=False, group=PLANNING, summary="Tick off step {step}")
def plan_step_done(
    session: Session, context: EffectContext, step: Annotated[int, Field(ge=1, le=20)]
) -> EffectResult:
    """Tick off a step of your approved plan, for people to see. One that lists calls is ticked by itself."""
    jobs = plans.tick_step(session, context.conversation.id, step, context.now)
    return EffectResult(f"Step {step} is ticked off.", jobs)


def _format_teammate(teammate: Teammate) -> str:
    plan = f"; {teammate.plan_state}" if teammate.plan_state else ""
    # ``outcome``: the result or the reason of the end; ``status_text``: the current activity
    report = (teammate.outcome or teammate.status_text)[:_MAX_REPORT_CHARS]
    line = f"- {teammate.name} ({teammate.role}): {teammate.state}{plan}. {report}"
    return line.rstrip(". ") + "."

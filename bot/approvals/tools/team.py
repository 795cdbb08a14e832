"""Tools of the team: the lead agent starts and steers teammates, and a teammate submits its plan.

All but ``plan_submit`` change only Nod's own rows, in the transaction that stores the answer which asks for
them (`Effect`): a turn that is run again after a crash asks again, so nothing is started twice.
``plan_submit`` is a write tool like any other; what its approval unlocks follows from the proposal's row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from bot.approvals.team import plans, teammates
from bot.domain import kinds
from bot.domain.plans import Plan, fields
from bot.domain.proposals import Level, PreviewField, Risk
from bot.domain.record import Act
from bot.domain.teams import Standing, TeamLimits, Teammate
from bot.domain.verbs import Verb
from bot.errors import ToolError
from bot.store import teams
from bot.store.audit.log import By
from bot.store.rules import Policies
from bot.tools.tool import Arguments, CallContext, Effected, FixedToolset, Moment, Tool, ToolOutput, tool

GROUP = "team"
PLANNING = "plan"
"""The group of what ticks off a plan."""

STEP_DONE = "plan_step_done"
_VERSION = "2eabd2e8bcb02b04"
"""Of `plan_submit` since its first release: a waiting plan whose steps list no calls means the same."""

Words = Annotated[str, Field(min_length=1, max_length=2000)]
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

    description: Words
    tools: list[str] | None = Field(None, max_length=20)
    estimated_tokens: int | None = Field(None, ge=0)
    calls: list[PlannedCallBody] | None = Field(None, max_length=20)


def team_tools(policies: Policies, limits: TeamLimits) -> FixedToolset:
    """Return the tools for plans and, where teammates may be started, those to lead a team."""
    planning = (replace(plan_submit, kind=kinds.PLAN, run=_approve_plan, version=_VERSION), plan_step_done)
    return FixedToolset(GROUP, (*planning, *(_leading(policies, limits) if limits.teammates > 0 else ())))


def _leading(policies: Policies, limits: TeamLimits) -> tuple[Tool, ...]:
    @tool(writes=False, group=GROUP, summary="Start a teammate: {role}")
    def spawn_teammate(
        session: Session,
        moment: Moment,
        role: Annotated[str, Field(min_length=1, max_length=200)],
        task: Task,
        tools: Annotated[list[str], Field(max_length=50)] | None = None,
        require_plan_approval: bool = False,  # noqa: FBT001, FBT002 - a tool's argument
    ) -> Effected:
        """Start a teammate: a sub-agent with a history of its own that works on a part of the job.

        Args:
            role: who it is, in a few words, such as issue surveyor; its name is made of it
            task: all it needs to know; it does not see this conversation
            tools: names of the tools it may use; all of yours when left out
            require_plan_approval: true: it may only look around until its plan is approved
        """
        unknown = sorted(set(tools or ()) - moment.tools)
        if unknown:
            there = ", ".join(sorted(moment.tools))
            raise ToolError(f"You have no tool called {', '.join(unknown)}. A teammate may have: {there}.")
        made, jobs = teammates.spawn(
            session,
            moment.conversation,
            moment.asker,
            role=role,
            task=task,
            tools=tools,
            needs_plan=require_plan_approval,
            call=moment.call,
            limits=limits,
            now=moment.now,
        )
        sentences = [f"Started {made.name}."]
        if made.needs_plan:
            sentences.append("It plans first, and may only look around until its plan is approved.")
        sentences.append("Its result will be told to you in a [Nod] line; do not wait for it.")
        return Effected(" ".join(sentences), jobs)

    @tool(writes=False, group=GROUP, summary="Tell {teammate}: {text}")
    def message_teammate(session: Session, moment: Moment, teammate: Name, text: Task) -> Effected:
        """Say something to a teammate that is at work."""
        found = _at_work(session, moment, teammate)
        said = f"[Nod] The lead agent says:\n{text}"
        jobs = teammates.send(session, found.id, said, moment.asker, moment.now)
        return Effected(f"{found.name} has been told.", jobs)

    @tool(writes=False, group=GROUP, summary="Look at the team")
    def list_teammates(session: Session, moment: Moment) -> Effected:
        """List your teammates: status, plan, what each is doing or its result."""
        lines = [_line(each) for each in teams.of_lead(session, moment.conversation.id)]
        return Effected("\n".join(lines) or "You have no teammates.")

    @tool(writes=False, group=GROUP, summary="Stop {teammate}")
    def stop_teammate(session: Session, moment: Moment, teammate: Name, reason: Words) -> Effected:
        """Stop a teammate: what it proposed and no one decided yet is cancelled."""
        found = _at_work(session, moment, teammate)
        why = f"The lead agent stopped it: {reason}"
        by = By(Act.STOP, str(plans.LEAD), str(plans.LEAD), plans.LEAD.channel, reason)
        jobs = plans.stop(session, found, by, plans.LEAD.name, why, moment.now, tell=False)
        return Effected(f"{found.name} is stopped; what it had proposed is cancelled.", jobs)

    @tool(writes=False, group=GROUP, summary="Review the plan of {teammate}: {verdict}")
    def plan_review(
        session: Session,
        moment: Moment,
        teammate: Name,
        verdict: Literal["approve", "reject", "revise"],
        feedback: Annotated[str, Field(max_length=2000)] | None = None,
    ) -> Effected:
        """Review the plan of a teammate. Whether you may approve is policy; a person may always be needed.

        Args:
            teammate: its name
            verdict: approve, reject, or revise (ask for changes)
            feedback: what should change, or why not; the teammate is told
        """
        found = teams.get_by_name(session, moment.conversation.id, teammate)
        done = _VERDICTS[verdict]
        return Effected(*plans.review(session, policies, found, done, feedback or "", moment.now))

    return spawn_teammate, message_teammate, list_teammates, stop_teammate, plan_review


async def _preview(arguments: Arguments) -> Sequence[PreviewField]:
    return fields(Plan.of(arguments))


def _risk(arguments: Arguments) -> Risk:
    lists = any(step.get("calls") for step in arguments["steps"])
    return Risk(Level.WRITE, "the calls it lists then run without asking, once each" if lists else "")


@tool(idempotent=True, group=GROUP, summary="Plan: {summary}", preview=_preview, classify=_risk)
async def plan_submit(
    summary: Words,
    steps: Annotated[list[PlanStep], Field(min_length=1, max_length=20)],
    risks: list[Words] | Words | None = None,
    alternatives: list[Words] | Words | None = None,
) -> None:
    """Submit your plan for approval: before a longer job, or where you must plan before you change anything.

    Args:
        summary: what will be different in the end, in a sentence or two
        steps: what you will do, in order, each with the names of the tools it takes, and with the calls whose
            arguments you already know: once it is approved, these run without asking, once each and unchanged
        risks: what could go wrong
        alternatives: what you decided against, and why
    """


async def _approve_plan(_: Arguments, __: CallContext) -> ToolOutput:
    return ToolOutput(
        "The tools are unlocked, to carry out the plan as it was approved. The calls it lists run without "
        "asking, once each and unchanged. Changes that no one has allowed in advance still ask."
    )


@tool(writes=False, group=PLANNING, summary="Tick off step {step}")
def plan_step_done(session: Session, moment: Moment, step: Annotated[int, Field(ge=1, le=20)]) -> Effected:
    """Tick off a step of your approved plan, for people to see. One that lists calls is ticked by itself."""
    jobs = plans.tick_named(session, moment.conversation.id, step, moment.now)
    return Effected(f"Step {step} is ticked off.", jobs)


def _at_work(session: Session, moment: Moment, name: str) -> Teammate:
    found = teams.get_by_name(session, moment.conversation.id, name)
    if found.standing is not Standing.WORKING:
        raise ToolError(f"{found.name} is {found.standing} and can't receive messages. Start another.")
    return found


def _line(each: Teammate) -> str:
    plan = f"; {each.plan_state}" if each.plan_state else ""
    said = (each.words or each.about)[:500]
    return f"- {each.name} ({each.role}): {each.state}{plan}. {said}".rstrip(". ") + "."

"""The one door: every tool call passes here, and a write runs only as a claimed, approved proposal.

`Gate.consider` judges a call the model made; reads go on to `Gate.read`, writes come back as proposals that
are not stored yet. `Gate.execute` runs an approved proposal, exactly as shown and at most once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlmodel import Session

from bot.agent.drafts import (
    decoded,
    draft,
    in_time,
    old_values,
    preview_of,
    summary_of,
    told,
    unhidden,
    words_of,
)
from bot.agent.model import ToolCall, ToolSpec
from bot.agent.teammates import check_unlocked, plan_shown, shelf_for
from bot.agent.transcript import REASON
from bot.domain.chat import Clock, Request
from bot.domain.conversations import Call, CallResult, Conversation
from bot.domain.files import File
from bot.domain.jobs import Job
from bot.domain.outcomes import bounded
from bot.domain.people import Actor, Person
from bot.domain.plans import Plan
from bot.domain.policy import Judgement, Place, Policy, Verdict
from bot.domain.proposals import Cause, Kind, Proposal, State, digest
from bot.domain.redaction import redact
from bot.domain.similarity import Rung, Scope, ladder
from bot.domain.teams import Teammate
from bot.errors import KeyTaken, Refused, ToolError, ToolTimedOut
from bot.store import conversations, endings, people, proposals, requests, teams, tool_versions
from bot.store import outputs as outputs_store
from bot.store.database import Database
from bot.store.requests import Opened
from bot.store.rules import Policies
from bot.store.votes import Edit, Fresh
from bot.telemetry import logger
from bot.tools.builtin import outputs
from bot.tools.registry import Registry, Shelf
from bot.tools.tool import CallContext, Tool

log = logger(__name__)

_LEASE_MARGIN = timedelta(seconds=30)
_REASON_SCHEMA = {
    "type": "string",
    "description": "Why you want this change: one sentence for the person who decides.",
}


@dataclass(frozen=True, slots=True)
class Considered:
    """One call after judgement: to be read now, to be done with the answer, to be proposed, or answered."""

    call: Call
    read: tuple[Tool, Mapping[str, Any]] | None = None
    effect: tuple[Tool, Mapping[str, Any]] | None = None
    proposal: Proposal | None = None
    key: Mapping[str, Any] | None = None  # the tool's own key of the call, for grants
    result: CallResult | None = None


def offer(tool: Tool) -> ToolSpec:
    """A tool as the model sees it; writes take the agent's reason in addition."""
    if tool.reads:
        return ToolSpec(tool.name, tool.description, tool.parameters, tool.strict)
    parameters = dict(tool.parameters)
    parameters["properties"] = {**parameters.get("properties", {}), REASON: _REASON_SCHEMA}
    parameters["required"] = [*parameters.get("required", []), REASON]
    description = f"{tool.description} (Needs approval by a person.)"
    return ToolSpec(tool.name, description, parameters, tool.strict)


class Gate:
    """Holds what a call needs to be judged and run; rows are the only state."""

    def __init__(self, registry: Registry, policies: Policies, database: Database, clock: Clock) -> None:
        self.registry = registry
        self.policies = policies
        self._database = database
        self._clock = clock
        self._kept: set[tuple[str, str]] = set()  # tool versions whose schema is on disk

    async def consider(
        self,
        shelf: Shelf,
        calls: Sequence[ToolCall],
        conversation: Conversation,
        asker: Actor,
        said: str,
        teammate: Teammate | None = None,
    ) -> list[Considered]:
        """Judge every call of one answer. What cannot be proposed is answered with the reason.

        ``shelf`` is the whole one; whoever asks (``teammate`` None: the lead agent) is kept to its part here.
        """
        if not calls:
            return []
        policy, person = await self._database.read(self._in_force, asker)
        whole = shelf.offered
        case = _Case(shelf_for(whole, teammate), whole, conversation, asker, said, policy, person, teammate)
        considered = [await self._consider(case, call, position) for position, call in enumerate(calls)]
        return _with_one_plan(considered)

    def _in_force(self, session: Session, actor: Actor) -> tuple[Policy, Person]:
        return self.policies.load(session), people.person_of(session, actor)

    async def _consider(self, case: "_Case", call: ToolCall, position: int) -> Considered:
        summary = call.name
        try:
            tool = case.shelf.get(call.name)
            raw = decoded(call.arguments)
            reason = raw.pop(REASON, "") if not tool.reads else ""
            arguments = tool.validate(raw)
            summary = summary_of(tool, arguments)
            kept = Call(call.id, call.name, call.arguments, summary)
            if tool.effect:
                return Considered(kept, effect=(tool, arguments))
            plans = tool.kind is Kind.PLAN
            risk = tool.classify(arguments)
            verdict = case.policy.judge(tool.name, risk, case.place, case.person, tool.kind)
            if verdict.judgement is Judgement.REFUSE:
                return Considered(kept, result=CallResult(f"REFUSED: {verdict.rule}", ok=False))
            if verdict.judgement is Judgement.RUN and not verdict.risk.writes:
                return Considered(kept, read=(tool, arguments))
            if verdict.risk.writes and not plans:
                check_unlocked(case.teammate, tool)
            if plans:
                summary, preview = plan_shown(case.whole, case.teammate, arguments)
            else:
                preview = await preview_of(tool, arguments)
            key = await tool.key(arguments) if tool.key else None
            await self._keep(tool)
        except Exception as error:  # noqa: BLE001 - a tool's own code; the model hears it, the turn goes on
            text = f"ERROR: {words_of(error, call.name)}"
            return Considered(
                Call(call.id, call.name, call.arguments, summary), result=CallResult(text, ok=False)
            )
        drafted = draft(
            tool, arguments, preview, verdict, case.asker, str(reason or case.said), self._clock()
        )
        return Considered(
            kept,
            key=key,
            proposal=replace(
                drafted,
                conversation_id=case.conversation.id,
                call_id=call.id,
                position=position,
                description=summary,
                teammate=case.teammate.name if case.teammate else "",
            ),
        )

    async def open(self, request: Request) -> Opened:
        """Open a proposal that no model call led to, judged as any other. Returns once it is committed.

        Raises BadArguments, UnknownTool, Refused, KeyTaken, or ToolError where it cannot be previewed.
        """
        tool = (await self.registry.shelf()).get(request.tool_name)
        if tool.effect is not None or tool.kind is Kind.PLAN:
            raise Refused(f"{tool.name} is only for an agent at work in a conversation.")
        with told(tool.name):
            # a question is opened unanswered: what people fill in is validated
            asked = tool.kind is Kind.QUESTION
            arguments = dict(request.arguments) if asked else tool.validate(dict(request.arguments))
            if before := await self._database.read(requests.opened_before, request):
                return _same(before, tool, arguments)
            verdict = await self._judge(tool, arguments, request)
            preview = await preview_of(tool, arguments)
            key = await tool.key(arguments) if tool.key else None
        await self._keep(tool)
        if request.ttl is not None:
            verdict = replace(verdict, ttl=min(request.ttl, verdict.ttl))
        drafted = draft(tool, arguments, preview, verdict, request.actor, request.reason, self._clock())
        write = self._database.write
        opened = await write(requests.open_request, self.policies, request, drafted, key, drafted.created_at)
        return _same(opened, tool, arguments) if opened.again else opened

    async def _judge(self, tool: Tool, arguments: Mapping[str, Any], request: Request) -> Verdict:
        policy, person = await self._database.read(self._in_force, request.actor)
        place = Place(str(request.address), request.private)
        verdict = policy.judge(tool.name, tool.classify(arguments), place, person, tool.kind)
        if verdict.judgement is Judgement.REFUSE:
            raise Refused(verdict.rule)
        return verdict

    async def look(self, tool: Tool, arguments: Mapping[str, Any], request: Request) -> CallResult | None:
        """Run a call that reads and that the rules let run at once; None where it must be asked for.

        Raises Refused where it cannot be asked for either.
        """
        verdict = await self._judge(tool, arguments, request)
        if verdict.judgement is not Judgement.RUN or verdict.risk.writes:
            return None
        context = CallContext(request.into or "", str(request.actor))
        try:
            output = await in_time(tool.run(arguments, context), tool.timeout)
            return CallResult(output.text, ok=True)
        except Exception as error:  # noqa: BLE001 - a tool's own code; who asked hears it
            return CallResult(f"ERROR: {words_of(error, tool.name)}", ok=False)

    async def _keep(self, tool: Tool) -> None:
        """The schema of what is proposed is on disk before the proposal, once for each version."""
        if (tool.name, tool.version) not in self._kept:
            await self._database.write(tool_versions.keep, tool.name, tool.version, tool.parameters)
            self._kept.add((tool.name, tool.version))

    async def read(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        conversation: Conversation,
        asker: Actor | None = None,
    ) -> CallResult:
        """Run a call that changes nothing. Never raises: the model hears what went wrong.

        ``asker`` is whose call it is, where that is not who began the conversation.
        """
        context = CallContext(conversation.id, str(asker or conversation.requester))
        try:
            output = await in_time(tool.run(arguments, context), tool.timeout)
            for file in output.files:
                await self._database.write(outputs_store.keep, conversation.id, file, self._clock())
            text = await self._fitting(File(f"{tool.name}.txt", output.text), conversation)
            return CallResult(text, ok=True)
        except Exception as error:  # noqa: BLE001 - a tool's own code; the model hears it, the turn goes on
            return CallResult(f"ERROR: {words_of(error, tool.name)}", ok=False)

    async def _fitting(self, file: File, conversation: Conversation) -> str:
        """The text as long as the model may see it at once; with a handle where it can read on."""
        if "output_read" in (await self.registry.shelf()).tools:
            return await outputs.cut(self._database, conversation.id, file, self._clock)
        return bounded(file.text)

    async def edit(self, proposal: Proposal, given: Mapping[str, Any]) -> Edit:
        """Everything that follows from new arguments; raises BadArguments or ToolError. Stores nothing.

        A secret that comes back as it was shown (hidden) means: keep what it was.
        """
        with told(proposal.tool_name):
            return await self._edit(proposal, given)

    async def _edit(self, proposal: Proposal, given: Mapping[str, Any]) -> Edit:
        if proposal.kind is Kind.PLAN:
            raise ToolError("A plan is its teammate's own words: ask for changes instead of editing it.")
        tool = (await self.registry.shelf()).get(proposal.tool_name)
        shown = redact(proposal.arguments, tool.parameters)
        arguments = tool.validate(unhidden(given, proposal.arguments, shown))
        await self._keep(tool)
        return Edit(
            arguments=arguments,
            schema=tool.parameters,
            tool_version=tool.version,
            digest=digest(tool.name, tool.version, arguments),
            description=summary_of(tool, arguments),
            preview=await preview_of(tool, arguments),
            verdict=await self._judge_again(tool, arguments, proposal),
        )

    async def fresh(self, proposal: Proposal) -> Fresh:
        """What an expired proposal would show today; raises ToolError when it cannot be proposed any more."""
        with told(proposal.tool_name):
            tool = (await self.registry.shelf()).get(proposal.tool_name)
            if digest(tool.name, tool.version, proposal.arguments) != proposal.digest:
                raise ToolError("The tool changed meanwhile; ask for it anew.")
            if proposal.teammate and (why := await self._database.read(teams.past, proposal)):
                raise ToolError(why)
            plans = proposal.kind is Kind.PLAN
            preview = proposal.preview if plans else await preview_of(tool, proposal.arguments)
            return Fresh(preview, await self._judge_again(tool, proposal.arguments, proposal))

    async def ladder(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """The rungs of a grant for calls like this one; raises ToolError when the tool is not there."""
        tool = (await self.registry.shelf()).get(proposal.tool_name)
        with told(proposal.tool_name):
            key = await tool.key(proposal.arguments) if tool.key else None
        shown = redact(key, tool.parameters) if key else None
        return ladder(tool.name, tool.version, proposal.arguments, key, shown)

    async def steps(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """What approving a plan with its steps allows: each named tool that changes something."""
        if proposal.kind is not Kind.PLAN:
            raise ToolError("Only a plan has steps to approve.")
        shelf = (await self.registry.shelf()).offered
        named = (shelf.tools.get(name) for name in Plan.of(proposal.arguments).tools)
        return [
            (
                Scope(tool.name, tool.version, Rung.TOOL, ""),
                f"{tool.name} with any arguments, by {proposal.teammate}",
            )
            for tool in named
            if tool is not None and not tool.reads
        ]

    async def _judge_again(self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal) -> Verdict:
        """The verdict on a proposal's new contents. What would now run without asking still asks."""
        policy, person = await self._database.read(self._in_force, proposal.requester)
        place = await self._database.read(_place_of, proposal.conversation_id)
        verdict = policy.judge(tool.name, tool.classify(arguments), place, person, tool.kind)
        if verdict.judgement is Judgement.REFUSE:
            raise ToolError(verdict.rule)
        return verdict

    async def execute(self, proposal_id: str) -> tuple[Job, ...]:
        """Run an approved proposal. Whoever does not win the claim does nothing. Returns the work it made."""
        proposal = await self._database.read(proposals.get, proposal_id)
        if proposal is None or proposal.state is not State.APPROVED:
            return ()
        plans = proposal.kind is Kind.PLAN
        try:
            tool = (await self.registry.shelf()).get(proposal.tool_name)
            if proposal.teammate and not plans:
                await self._check_teammate(proposal)
            if digest(tool.name, tool.version, proposal.arguments) != proposal.digest:
                return await self._finish(
                    proposal,
                    State.FAILED,
                    cause=Cause.TOOL_CHANGED,
                    error="It is not the tool that was shown.",
                )
            # a plan shows no old values of the world, only of the version before it
            preview = proposal.preview if plans else await preview_of(tool, proposal.arguments)
        except Exception as error:  # noqa: BLE001 - a tool's own code; people and the model hear why
            words = words_of(error, proposal.tool_name)
            return await self._finish(proposal, State.FAILED, cause=Cause.ERROR, error=words)
        now = self._clock()
        if old_values(preview) != old_values(proposal.preview):
            return await self._database.write(endings.ask_again, proposal, preview, now)
        lease = now + timedelta(seconds=tool.timeout) + _LEASE_MARGIN
        claimed = await self._database.write(endings.claim, self.policies, proposal, lease, now)
        return () if claimed is None else await self._run(tool, claimed)

    async def _check_teammate(self, proposal: Proposal) -> None:
        """Raises ToolError where the teammate that asked for it is locked, or was stopped."""
        if why := await self._database.read(teams.barred, proposal.conversation_id):
            raise ToolError(why)

    async def _run(self, tool: Tool, claimed: Proposal) -> tuple[Job, ...]:
        context = CallContext(
            claimed.conversation_id, str(claimed.requester), claimed.idempotency_key, claimed.preview
        )
        try:
            output = await in_time(tool.run(claimed.arguments, context), tool.timeout)
        except ToolTimedOut as error:
            return await self._finish(claimed, State.FAILED, cause=Cause.OUTCOME_UNKNOWN, error=error.message)
        except Exception as error:  # noqa: BLE001 - a tool's own code; people and the model hear why
            words = words_of(error, tool.name)
            return await self._finish(claimed, State.FAILED, cause=Cause.ERROR, error=words)
        return await self._finish(
            claimed,
            State.SUCCEEDED,
            result=output.text,
            result_url=output.url,
            error=None,
            files=output.files,
        )

    async def _finish(self, proposal: Proposal, state: State, **changes: Any) -> tuple[Job, ...]:
        done = await self._database.write(endings.finish, proposal, state, self._clock(), **changes)
        return done[1] if done else ()


@dataclass(frozen=True, slots=True)
class _Case:
    """What all calls of one answer have in common."""

    shelf: Shelf
    whole: Shelf
    conversation: Conversation
    asker: Actor
    said: str
    policy: Policy
    person: Person
    teammate: Teammate | None

    @property
    def place(self) -> Place:
        return Place(str(self.conversation.origin), self.conversation.private)


def _with_one_plan(considered: Sequence[Considered]) -> list[Considered]:
    """One answer submits one plan; of several the first counts."""
    kept: list[Considered] = []
    planned = False
    for each in considered:
        plans = each.proposal is not None and each.proposal.kind is Kind.PLAN
        if plans and planned:
            said = CallResult("ERROR: You submitted a plan in this very answer; one is enough.", ok=False)
            kept.append(Considered(each.call, result=said))
        else:
            kept.append(each)
        planned = planned or plans
    return kept


def _same(opened: Opened, tool: Tool, arguments: Mapping[str, Any]) -> Opened:
    """What was opened before, if it is the same; raises KeyTaken where it is not (edits do not count)."""
    p = opened.proposal
    changed = p.edited_by is None and p.digest != digest(tool.name, p.tool_version, arguments)
    if p.tool_name != tool.name or changed:
        raise KeyTaken
    return opened


def _place_of(session: Session, conversation_id: str) -> Place:
    found = conversations.get_conversation(session, conversation_id)
    return Place(str(found.origin) if found else "", private=found is not None and found.private)

"""Presses from anywhere: what a press needs is worked out before its transaction, then it is decided.

An edit is validated and previewed, a grant's reach is computed, a press that came too late asks again with
what is there now. Channels come here through the inbox, the shell directly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlmodel import Session

from bot.approvals import decide, grants, rights
from bot.approvals.drafts import preview_of, title_of, told, unhidden
from bot.approvals.gate import Gate
from bot.approvals.votes import Decided, Edit, FreshPreview, Prepared, Similar, StepGrants
from bot.domain.chat import Address, Answer, Clock, Press, Reply
from bot.domain.people import Actor, written_in
from bot.domain.plans import Plan
from bot.domain.policy import Judgement, Verdict
from bot.domain.proposals import Kind, Proposal, State, digest
from bot.domain.redaction import redact, shown
from bot.domain.similarity import GrantAudience, GrantScope, Scope, ladder
from bot.domain.verbs import Verb
from bot.errors import BadArguments, LostRace, ToolError
from bot.store import conversations, people, proposals, teams
from bot.store.database import Database
from bot.telemetry import tracing
from bot.tools.tool import Tool

_DECIDED = frozenset({State.APPROVED, State.DECLINED})
_APPROVING = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS)


class Presses:
    """Takes in one press after another; rows are the only state."""

    def __init__(self, database: Database, gate: Gate, clock: Clock) -> None:
        self._database = database
        self.gate = gate
        self._contents = Contents(database, gate)
        self._policies = gate.policies
        self._clock = clock

    async def take(self, press: Press) -> Decided:
        """Decide; returns once it is committed, with the answer and the work it made, which is not begun."""
        try:
            decided = await self._decide(press)
        except LostRace as error:
            return Decided(Reply(Answer.STALE, error.message))
        for each in decided.reply.proposals if decided.reply.answer is Answer.ACCEPTED else ():
            if each.state in _DECIDED and each.decided_at is not None:
                waited = (each.decided_at - each.created_at).total_seconds()
                tracing.decided(each.id, each.tool_name, each.state, waited)
        said = decided.reply.text
        if not written_in(said):
            return decided
        text = await self._database.read(people.named, said)
        return replace(decided, reply=replace(decided.reply, text=text))

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        """What "approve similar" may allow here, narrowest first, in words; empty when nothing."""
        proposal = await self._database.read(self._grantable, proposal_id, actor, address)
        if proposal is None:
            return []
        try:
            return [(scope.rung, words) for scope, words in await self._contents.ladder(proposal)]
        except ToolError:
            return []

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        """Whose calls that may be and where, narrowest first, in words; empty when nothing may be allowed."""
        proposal = await self._database.read(self._grantable, proposal_id, actor, address)
        if proposal is None:
            return []
        found = await self._database.read(self._reaches, proposal, actor)
        return [(reach, reach.words(proposal.requester.label)) for reach in found]

    def _reaches(self, session: Session, proposal: Proposal, actor: Actor) -> tuple[GrantAudience, ...]:
        return grants.reaches(session, self._policies, proposal, people.person_of(session, actor))

    def _grantable(
        self, session: Session, proposal_id: str, actor: Actor, address: Address | None
    ) -> Proposal | None:
        proposal = proposals.get(session, proposal_id)
        if proposal is None or proposal.state is not State.PROPOSED:
            return None
        refused = rights.objection(session, self._policies, proposal, actor, at=address)
        return None if refused or grants.hindrance(session, self._policies, proposal) else proposal

    async def _decide(self, press: Press) -> Decided:
        decided = await self._prepared(press)
        late = [p for p in decided.reply.proposals if p.state is State.EXPIRED and not p.told_once]
        if decided.reply.answer is Answer.ALREADY and press.verb in _APPROVING and late:
            return await self._ask_anew(press, late[0], decided)
        return decided

    async def _prepared(self, press: Press) -> Decided:
        """Work out what the press needs before its transaction, if anything, then decide."""
        prepared: Prepared = None
        if press.arguments is not None or press.verb in (Verb.SIMILAR, Verb.APPROVE_STEPS):
            proposal = await self._database.read(self._pressable, press)
            try:
                prepared = await self._prepare(press, proposal) if proposal else None
            except BadArguments as error:
                return Decided(Reply(Answer.INVALID, error.message, fields=error.fields))
            except ToolError as error:
                return Decided(Reply(Answer.INVALID, error.message))
        return await self._database.write(
            decide.decide, press, self._policies, self._clock(), prepared, first=True
        )

    def _pressable(self, session: Session, press: Press) -> Proposal | None:
        """The proposal, if it is open and this person may press: no one else makes a tool work."""
        found = proposals.get(session, press.proposal_id)
        if found is None or found.state is not State.PROPOSED or press.round not in (None, found.round):
            return None
        refusal = rights.objection(session, self._policies, found, press.actor, press.verb, press.address)
        return None if refusal else found

    async def _prepare(self, press: Press, proposal: Proposal) -> Prepared:
        if press.verb is Verb.APPROVE_STEPS:
            return StepGrants(tuple(await self._contents.steps(proposal)))
        if press.verb is not Verb.SIMILAR:
            return await self._contents.edit(proposal, press.arguments or {})
        for scope, words in await self._contents.ladder(proposal):
            if scope.rung is press.rung and press.lasting is not None:
                return Similar(scope, words, press.lasting, press.reach)
        return None

    async def _ask_anew(self, press: Press, expired: Proposal, decided: Decided) -> Decided:
        """A press on an expired proposal asks again, with current values."""
        try:
            fresh = await self._contents.fresh(expired)
        except ToolError as error:
            text = f"{decided.reply.text} It cannot be asked again: {error.message}"
            return replace(decided, reply=replace(decided.reply, text=text))
        again = await self._database.write(
            decide.decide, press, self._policies, self._clock(), fresh, first=True
        )
        return replace(again, jobs=(*decided.jobs, *again.jobs))


class Contents:
    """Works out what would become of a proposal; stores nothing but the schema of a tool."""

    def __init__(self, database: Database, gate: Gate) -> None:
        self._database = database
        self._gate = gate

    async def edit(self, proposal: Proposal, given: Mapping[str, Any]) -> Edit:
        """Everything that follows from new arguments; raises BadArguments or ToolError. Stores nothing.

        A secret that comes back as it was shown (hidden) means: keep what it was.
        """
        with told(proposal.tool_name):
            return await self._edit(proposal, given)

    async def _edit(self, proposal: Proposal, given: Mapping[str, Any]) -> Edit:
        if proposal.kind is Kind.PLAN:
            raise ToolError("A plan is its teammate's own words: ask for changes instead of editing it.")
        tool = (await self._gate.registry.available()).get(proposal.tool_name)
        seen = shown(proposal.arguments, tool.parameters)
        arguments = await tool.checked(unhidden(given, proposal.arguments, seen))
        await self._gate.keep_schema(tool)
        return Edit(
            arguments=arguments,
            schema=tool.form,
            tool_version=tool.version,
            digest=digest(tool.name, tool.version, arguments),
            description=await title_of(tool, arguments),
            preview=await preview_of(tool, arguments),
            verdict=await self._judge_again(tool, arguments, proposal),
        )

    async def fresh(self, proposal: Proposal) -> FreshPreview:
        """What an expired proposal would show today. Raises ToolError when it can no longer be proposed."""
        with told(proposal.tool_name):
            tool = (await self._gate.registry.available()).get(proposal.tool_name)
            if digest(tool.name, tool.version, proposal.arguments) != proposal.digest:
                raise ToolError("The tool has changed since. Please request it again.")
            if proposal.teammate and (why := await self._database.read(teams.past, proposal)):
                raise ToolError(why)
            plans = proposal.kind is Kind.PLAN
            preview = proposal.preview if plans else await preview_of(tool, proposal.arguments)
            return FreshPreview(preview, await self._judge_again(tool, proposal.arguments, proposal))

    async def ladder(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """The rungs of a grant for calls like this one; raises ToolError when the tool is not there."""
        tool = (await self._gate.registry.available()).get(proposal.tool_name)
        with told(proposal.tool_name):
            key = await tool.key(proposal.arguments) if tool.key else None
        shown = redact(key, tool.parameters) if key else None
        return ladder(tool.name, tool.version, proposal.arguments, key, shown)

    async def steps(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """What approving a plan with its steps allows: each named tool that isn't read-only."""
        if proposal.kind is not Kind.PLAN:
            raise ToolError("Only a plan has steps to approve.")
        available = (await self._gate.registry.available()).offered
        named = (available.tools.get(name) for name in Plan.of(proposal.arguments).tools)
        return [
            (
                Scope(tool.name, tool.version, GrantScope.TOOL, ""),
                f"{tool.name} with any arguments, by {proposal.teammate}",
            )
            for tool in named
            if tool is not None and not tool.reads
        ]

    async def _judge_again(self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal) -> Verdict:
        """The verdict on a proposal's new contents. What would now run without asking still asks."""
        policy, person = await self._database.read(self._gate.policies.load_for, proposal.requester)
        place = await self._database.read(conversations.place_of, proposal.conversation_id)
        verdict = policy.judge(tool.name, tool.classify(arguments), place, person, tool.kind)
        if verdict.judgement is Judgement.REFUSE:
            raise ToolError(verdict.rule)
        return verdict

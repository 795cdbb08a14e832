"""The service that takes presses: it prepares each one outside of a transaction, then decides it in one.

An edit is validated and previewed, the scope of a grant is computed, a press that came too late asks again
with current values. Channels come here through the inbox, the command line directly.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlmodel import Session

from bot.approvals import decide, grants, lifecycle, ownership, rights
from bot.approvals.drafts import draft, preview_of, title_of, undoable, unhidden
from bot.approvals.execute import Execution, PreparedRun
from bot.approvals.gate import Gate
from bot.approvals.pressing import Contents, Decided, Prepared, Undoing, UndoneTogether
from bot.approvals.tool_code import as_tool_error, context_of
from bot.approvals.trials import Shown
from bot.domain.chat import Address, Answer, Choice, Clock, Press, Reply
from bot.domain.jobs import CHANGED, Job, Work
from bot.domain.people import Actor, find_written
from bot.domain.plans import Plan
from bot.domain.policy import Judgement, Verdict
from bot.domain.proposals import Inverse, Level, Proposal, State, hash_left_values
from bot.domain.redaction import redact, redact_arguments
from bot.domain.similarity import NO_BEGINNING, GrantAudience, GrantScope, Scope, ladder
from bot.domain.verbs import Verb
from bot.errors import BadArguments, LostRace, Refused, ToolError
from bot.store import conversations, people, proposals, teams
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry import tracing
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

_AT_A_TIME = 10  # rows in one transaction
_LOOKED_BACK, _LOOKED_AT = timedelta(days=30), 50  # calls, to say how far a grant would have reached
_DECIDED = frozenset({State.APPROVED, State.DECLINED})


@dataclass(eq=False)
class Presses:
    """The service that takes one press after another; rows are its only state."""

    database: Database
    gate: Gate
    clock: Clock
    execution: Execution | None = None  # None: other processes run what is approved
    takes_work: Callable[[], bool] = lambda: False  # whether this process runs now what is approved

    async def take(self, press: Press | Choice) -> Decided:
        """Decide a press. Returns the reply and the jobs, which are not started, once it is committed.

        Membership in groups is looked up first, where it matters. A press on several proposals is decided
        some at a time, so that no one else waits for all of them.
        """
        decided = await self._take(press)
        if decided.reply.answer is Answer.REFUSED and await self.gate.groups.ask_missing():
            decided = await self._take(press)
        for each in decided.reply.proposals if decided.reply.answer is Answer.ACCEPTED else ():
            if each.state in _DECIDED and each.decided_at is not None:
                waited = (each.decided_at - each.created_at).total_seconds()
                tracing.trace_decision(each.id, each.tool_name, each.state, waited)
        said = decided.reply.text
        if not find_written(said):
            return decided
        text = await self.database.read(people.put_names_in, said)
        return replace(decided, reply=replace(decided.reply, text=text))

    async def _take(self, press: Press | Choice) -> Decided:
        try:
            if isinstance(press, Choice) or press.verb in decide.TOGETHER:
                return await self._take_rows(press)
            prepared = await self._prepare(press)
            run = None
            may_claim = press.verb is Verb.APPROVE and press.arguments is None and self.takes_work()
            if self.execution and may_claim:
                run = await self.execution.prepare(press.proposal_id)
            if self.execution and run:
                deciding = asyncio.create_task(self._decide_and_claim(press, run, self.execution))
                decided = await asyncio.shield(deciding)  # no claim is lost with a caller that is gone
            else:
                decided = await self._decide(press, prepared)
            if press.verb in decide.APPROVING and decided.reply.answer is Answer.ALREADY:
                decided = await self._ask_again(press, decided)
        except BadArguments as error:
            return Decided(Reply(Answer.INVALID, error.message, fields=error.fields))
        except ToolError as error:
            return Decided(Reply(Answer.INVALID, error.message))
        except LostRace as error:
            return Decided(Reply(Answer.STALE, error.message))
        return decided

    async def _take_rows(self, pressed: Press | Choice) -> Decided:
        rows = await self.database.read(decide.rows_of, pressed)
        if isinstance(rows, Reply):
            return Decided(rows)
        if not isinstance(pressed, Choice) and pressed.verb is Verb.UNDO_ALL:
            return await self._undo_rows(rows)
        each: list[Decided] = []
        for at in range(0, len(rows.presses), _AT_A_TIME):
            some = rows.presses[at : at + _AT_A_TIME]
            try:
                each += await self._decide_rows(some)
            except LostRace:  # of one of them; the others are decided all the same
                for press in some:
                    try:
                        each += await self._decide_rows([press])
                    except LostRace as error:
                        each.append(Decided(Reply(Answer.STALE, error.message)))
        return decide.count_outcomes(rows, each)

    async def _undo_rows(self, rows: decide.Rows) -> Decided:
        """Undo several proposals in order; the undo proposals form one batch."""
        each: list[Decided] = []
        first: Proposal | None = None
        for position, press in enumerate(rows.presses):
            try:
                ready = replace(await self._prepare(press), together=UndoneTogether(first, position))
                each.append(await self._decide(press, ready))
            except (ToolError, LostRace) as error:
                each.append(Decided(Reply(Answer.INVALID, error.message)))
            first = first or decide.inverse_of(each[-1])
        return decide.count_outcomes(rows, each)

    async def _decide(self, press: Press, prepared: Prepared) -> Decided:
        return await self.database.write(
            decide.decide, press, self.gate.policies, self.clock(), prepared, first=True
        )

    async def _decide_and_claim(self, press: Press, run: PreparedRun, execution: Execution) -> Decided:
        """Decide a press, and claim the run of what it approves in the same transaction."""
        decide_and_claim = partial(_decide_and_claim, execution.process, self.takes_work)
        try:
            decided, claimed = await self.database.write(
                decide_and_claim, press, self.gate.policies, self.clock(), run.proposal, first=True
            )
        except BaseException:
            execution.drop(run)
            raise
        if claimed is None:
            execution.drop(run)
            return decided
        shows = next((job for job in decided.jobs if job.work is Work.REDRAW and job != CHANGED), None)
        execution.keep_claimed(run, claimed, shows)
        jobs = tuple(CHANGED if job == shows else job for job in decided.jobs)
        return replace(decided, jobs=jobs)

    async def _decide_rows(self, presses: Sequence[Press]) -> list[Decided]:
        return await self.database.write(
            decide.decide_rows, presses, self.gate.policies, self.clock(), first=True
        )

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        """Return the scopes that "approve similar" may grant here, with their texts, narrowest first.

        Empty when no grant may be given.
        """
        proposal = await self.gate.groups.read(self._grantable, proposal_id, actor, address)
        if proposal is None:
            return []
        try:
            scopes = await self._scopes(proposal)
            return [
                (scope.rung, await self._count_covered(proposal, scope, words)) for scope, words in scopes
            ]
        except ToolError:
            return []

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        """Return the audiences that a grant may cover, with their texts, narrowest first.

        Empty when no grant may be given.
        """

        def read(session: Session) -> list[tuple[GrantAudience, str]]:
            p = self._grantable(session, proposal_id, actor, address)
            if p is None:
                return []
            found = grants.list_audiences(session, self.gate.policies, p, people.person_of(session, actor))
            requester, schedule = p.requester.label, p.schedule or ""
            return [(audience, audience.words(requester, schedule=schedule)) for audience in found]

        return await self.gate.groups.read(read)

    def _grantable(
        self, session: Session, proposal_id: str, actor: Actor, address: Address | None
    ) -> Proposal | None:
        proposal = self._open(session, proposal_id, actor, Verb.SIMILAR, address)
        if proposal and grants.is_grantable(session, self.gate.policies, proposal):
            return proposal
        return None

    def _open(
        self, session: Session, proposal_id: str, actor: Actor, verb: Verb, at: Address | None
    ) -> Proposal | None:
        """Return the proposal if it is open and this person may press: no one else causes work of a tool."""
        found = proposals.get(session, proposal_id)
        if found is None or found.state is not State.PROPOSED:
            return None
        refused = rights.find_objection(session, self.gate.policies, found, actor, verb, at)
        return None if refused else found

    async def _prepare(self, press: Press) -> Prepared:
        """Compute the input of a press. Raises ToolError where its call can't be proposed."""
        if press.verb is Verb.UNDO:
            return Prepared(undoing=await self._undoing(press))
        if press.arguments is None and press.verb not in (Verb.SIMILAR, Verb.APPROVE_STEPS):
            return Prepared()
        proposal = await self.database.read(self._pressable, press)
        if proposal is None:
            return Prepared()
        if press.verb is Verb.APPROVE_STEPS:
            return Prepared(scopes=await self._steps(proposal))
        if press.verb is Verb.SIMILAR:
            every = await self._scopes(proposal)
            return Prepared(scopes=[each for each in every if each[0].rung is press.rung])
        return Prepared(await self._edit_contents(proposal, press.arguments or {}))

    def _pressable(self, session: Session, press: Press) -> Proposal | None:
        found = self._open(session, press.proposal_id, press.actor, press.verb, press.address)
        if found and press.round in (None, found.round):
            return found
        return None

    async def _undoing(self, press: Press) -> Undoing | None:
        """Draft the inverse call of a proposal, or return None where nothing can be undone.

        The person who pressed becomes the requester. Raises ToolError where the tool has changed since.
        """

        def read(session: Session) -> tuple[Proposal, Inverse, Mapping[str, Any]] | None:
            p = proposals.get(session, press.proposal_id)
            if p is None or p.inverse is None or p.undo_until is None or p.undone_by is not None:
                return None
            objection = rights.find_objection(
                session, self.gate.policies, p, press.actor, press.verb, press.address
            )
            arguments = None if objection else proposals.inverse_of(session, p.id)
            if arguments is None:
                return None
            return (p, p.inverse, arguments)

        found = await self.database.read(read)
        if found is None:
            return None
        p, inverse, arguments = found
        with as_tool_error(inverse.tool_name):
            tool = (await self._list_tools(p, press.actor)).get(inverse.tool_name)
            if tool.digest(arguments) != inverse.digest:
                raise ToolError("The tool has changed since, so this can't be undone.")
            preview = await preview_of(tool, arguments)
            as_left = hash_left_values(preview) == inverse.left
            verdict = await self._judge(tool, arguments, p, press.actor, undoes=as_left)
            verdict = await undoable(tool, arguments, preview, verdict)
            title = await title_of(tool, arguments)
        await self.gate.keep_schema(tool)
        asked = replace(verdict, judgement=Judgement.ASK)  # the press decides, and not a rule
        reason = press.reason or ""
        drafted = draft(tool, arguments, preview, asked, press.actor, reason, self.clock(), title=title)
        return Undoing(drafted, as_left)

    async def _ask_again(self, press: Press, decided: Decided) -> Decided:
        """Ask again for an expired proposal, prepared with current values."""
        late = [p for p in decided.reply.proposals if p.state is State.EXPIRED and not p.kind.is_final]
        if not late:
            return decided
        try:
            prepared = Prepared(current=await self._current(late[0]))
        except ToolError as error:
            text = f"{decided.reply.text} It cannot be asked again: {error.message}"
            return replace(decided, reply=replace(decided.reply, text=text))
        again = await self._decide(press, prepared)
        return replace(again, jobs=(*decided.jobs, *again.jobs))

    async def _edit_contents(self, proposal: Proposal, given: Mapping[str, Any]) -> Contents:
        """Return the contents with new arguments. Raises BadArguments or ToolError.

        A secret that comes back as it was shown (hidden) keeps its value.
        """
        if proposal.kind.no_edit_text:
            raise ToolError(proposal.kind.no_edit_text)
        with as_tool_error(proposal.tool_name):
            tool = (await self._list_tools(proposal)).get(proposal.tool_name)
            seen = redact_arguments(proposal.arguments, tool.parameters)
            arguments = await tool.check_arguments(unhidden(given, proposal.arguments, seen))
            unchanged = tool.digest(proposal.arguments) == proposal.digest
            if unchanged and await tool.is_same_call(proposal.arguments, arguments):
                arguments = dict(proposal.arguments)
            await self.gate.keep_schema(tool)
            contents = await self._contents(tool, arguments, proposal)
            return replace(contents, description=await title_of(tool, arguments))

    async def _list_tools(self, proposal: Proposal, requester: Actor | None = None) -> AvailableTools:
        if why := await ownership.read_connection_fault(self.database, proposal):
            raise ToolError(why)
        context = context_of(replace(proposal, requester=requester or proposal.requester))
        return await self.gate.registry.available(context)

    async def _current(self, proposal: Proposal) -> Contents:
        """Return the contents that an expired proposal would show today.

        Raises ToolError where it can't be proposed again.
        """
        with as_tool_error(proposal.tool_name):
            tool = (await self._list_tools(proposal)).get(proposal.tool_name)
            if tool.digest(proposal.arguments) != proposal.digest:
                raise ToolError("The tool has changed since. Please request it again.")
            if proposal.teammate and (why := await self.database.read(teams.past, proposal)):
                raise ToolError(why)
            return await self._contents(tool, proposal.arguments, proposal)

    async def _contents(self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal) -> Contents:
        """Return the contents of the proposal with these arguments, previewed now."""
        verdict = await self._judge(tool, arguments, proposal)
        preview, trial = await self._preview_and_try(tool, arguments, proposal)
        return Contents(
            arguments=arguments,
            schema=tool.form,
            tool_version=tool.version,
            digest=tool.digest(arguments),
            description=proposal.description,
            preview=preview,
            trial=trial,
            verdict=await undoable(tool, arguments, preview, verdict, trial),
        )

    async def _preview_and_try(self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal) -> Shown:
        """Return the preview of a call now, and its trial if one was run.

        Nothing is tried while everything is paused. A plan is its own preview.
        """
        if proposal.kind.shows_itself:
            return proposal.preview, None
        if tool.trying is None or await self.gate.is_paused():
            return await preview_of(tool, arguments), None
        return await self.gate.trials.make_preview(tool, arguments, proposal.requester)

    async def _judge(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        proposal: Proposal,
        requester: Actor | None = None,
        *,
        undoes: bool = False,
    ) -> Verdict:
        """Return the verdict on a proposal's new contents.

        A call that would now run without asking still asks. ``requester``: who asks, where that is not the
        proposal's requester. ``undoes``: the call puts back what was approved, and loses nothing unless the
        tool says so.
        """
        asker = requester or proposal.requester
        policy, person = await self.database.read(self.gate.policies.load_for, asker)
        place = await self.database.read(conversations.place_of, proposal.conversation_id)
        risk = tool.classify(arguments)
        call = tool.call(arguments, risk, place, person, self.clock())
        verdict = policy.judge(replace(call, undoes=undoes and risk.level is not Level.DESTRUCTIVE))
        if verdict.judgement is Judgement.REFUSE:
            raise ToolError(verdict.rule)
        return ownership.require_owner(verdict, tool.connection)

    async def _scopes(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """Return the scopes that a grant for calls like this one may have, with their texts.

        Raises ToolError when the tool is gone.
        """
        tool = (await self._list_tools(proposal)).get(proposal.tool_name)
        with as_tool_error(proposal.tool_name):
            like = await tool.likeness(proposal.arguments)
        if proposal.risk.level is Level.DESTRUCTIVE:
            like = like._replace(begins=NO_BEGINNING)
        shown = redact(like.key, tool.parameters) if like.key else None
        return ladder(tool.name, tool.version, proposal.arguments, like, shown)

    async def _count_covered(self, proposal: Proposal, scope: Scope, words: str) -> str:
        """Return the text of a scope, with the number of recent calls that it would have covered."""
        if scope.rung is not GrantScope.PREFIX:
            return words
        tool = (await self._list_tools(proposal)).get(proposal.tool_name)
        since = self.clock() - _LOOKED_BACK
        last = await self.database.read(proposals.last_of, tool.name, tool.version, since, _LOOKED_AT)
        covered = 0
        for arguments in last:
            with contextlib.suppress(ToolError):
                like = await tool.likeness(arguments)
                covered += scope.covers(tool.name, tool.version, arguments, like)
        return f"{words} ({covered} of the last {len(last)} in 30 days)"

    async def _steps(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """Return the scopes granted by approving a plan with its steps: its tools that aren't read-only."""
        if Verb.APPROVE_STEPS not in proposal.kind.takes:
            raise ToolError("Only a plan has steps to approve.")
        available = (await self.gate.registry.available()).offered
        named = (available.tools.get(name) for name in Plan.of(proposal.arguments).tools)
        return [
            (
                Scope(tool.name, tool.version, GrantScope.TOOL, ""),
                f"{tool.name} with any arguments, by {proposal.teammate}",
            )
            for tool in named
            if tool is not None and not tool.reads
        ]


def _decide_and_claim(
    process: str,
    takes_work: Callable[[], bool],
    session: Session,
    press: Press,
    policies: Policies,
    now: datetime,
    opened: Proposal,
) -> tuple[Decided, Proposal | None]:
    """Decide a press; where that approves the proposal as it was opened, claim its run for this process.

    The claim is None where it was not approved, or runs later: while everything is paused, or by the next
    process where this one ends.
    """
    decided = decide.decide(session, press, policies, now)
    if Job(Work.EXECUTE, opened.id) not in decided.jobs:
        return decided, None
    [approved] = decided.reply.proposals
    if approved.version != opened.version + 1 or not takes_work():
        return decided, None
    try:
        return decided, lifecycle.claim(session, policies, approved, process, now)
    except Refused:  # which the run tells, as it does of any other
        return decided, None

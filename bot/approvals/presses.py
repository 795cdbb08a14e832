"""The service that takes presses of buttons on proposals.

It prepares each press outside of a transaction, since a tool's own code may take long: an edit is validated
and previewed, the scope of a grant is computed, the undo of a change is drafted. Then it decides the press in
one transaction (``bot/approvals/decide.py``). If the press approves a simple call, the same transaction
claims the run: it notes that this process runs the call, so that it starts sooner (`Execution.prepare`).
Channels come here through the inbox, the command line directly.

A grant lets later calls run without asking. Inside, its terms are a scope (which calls), an audience (whose
calls, and where) and a duration. A press and the API call them ``rung``, ``reach`` and ``lasting``.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals import decide, grants, group_presses, ownership, rights, runs
from bot.approvals.drafts import draft, limit_undo, preview_of, title_of
from bot.approvals.execute import Execution, PreparedRun
from bot.approvals.gate import Gate
from bot.approvals.hidden_secrets import restore_secrets
from bot.approvals.press_values import Contents, Prepared, PressOutcome, Undoing, UndoPosition
from bot.approvals.tool_code import as_tool_error, context_of
from bot.approvals.trials import PreviewAndTrial
from bot.domain.chat import Address, Answer, BatchDecision, Clock, Press, Reply
from bot.domain.jobs import CHANGED, Job, Work
from bot.domain.people import Actor, find_accounts_in
from bot.domain.plans import Plan
from bot.domain.preview import Inverse, hash_old_values
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact, redact_arguments
from bot.domain.risks import Level
from bot.domain.similarity import NO_BEGINNING, GrantAudience, GrantScope, Scope, list_grant_scopes
from bot.domain.verbs import Verb
from bot.domain.verdicts import Judgement, Verdict
from bot.errors import BadArguments, CallRefused, LostRace, ToolError
from bot.store import conversations, people, proposals, teams
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry import tracing
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

_PRESSES_AT_A_TIME = 10  # in one transaction
_COUNTED_PERIOD = timedelta(days=30)  # the past in which calls that a grant would have covered are counted
_MAX_COUNTED_CALLS = 50
_DECIDED = frozenset({State.APPROVED, State.DECLINED})


class _StoredInverse(NamedTuple):
    """A change, and the call that undoes it."""

    proposal: Proposal
    inverse: Inverse
    arguments: Mapping[str, Any]  # of the inverse


@dataclass(eq=False)
class Presses:
    """The service that takes presses; rows are its only state.

    Its writes are ``urgent``, so they come before other waiting writes: a person waits for the reply.
    """

    database: Database
    gate: Gate
    clock: Clock
    execution: Execution | None = None  # None: other processes run approved proposals
    takes_work: Callable[[], bool] = lambda: False  # tells if this process still starts runs

    async def handle_press(self, press: Press | BatchDecision) -> PressOutcome:
        """Decide a press, and return the reply and the jobs once it is committed. No job is started here.

        A refused person may belong to a group whose members are not known yet. Then the platform is asked for
        the members, and the press is taken again.
        """
        outcome = await self._take(press)
        if outcome.reply.answer is Answer.REFUSED and await self.gate.groups.ask_missing():
            outcome = await self._take(press)
        if outcome.reply.answer is Answer.ACCEPTED:
            _trace_decisions(outcome.reply.proposals)
        text = outcome.reply.text
        if not find_accounts_in(text):
            return outcome
        with_names = await self.database.read(people.put_names_in, text)
        return replace(outcome, reply=replace(outcome.reply, text=with_names))

    async def _take(self, press: Press | BatchDecision) -> PressOutcome:
        """Prepare and decide a press. An error of a tool, or a lost race, becomes the reply."""
        try:
            if isinstance(press, BatchDecision) or press.verb in group_presses.BATCH_VERBS:
                return await self._take_several(press)
            return await self._take_one(press)
        except BadArguments as error:
            return PressOutcome(Reply(Answer.INVALID, error.message, fields=error.fields))
        except ToolError as error:
            return PressOutcome(Reply(Answer.INVALID, error.message))
        except LostRace as error:
            return PressOutcome(Reply(Answer.STALE, error.message))

    async def _take_one(self, press: Press) -> PressOutcome:
        prepared = await self._prepare(press)
        outcome = await self._decide_and_maybe_claim(press, prepared)
        if press.verb in decide.APPROVING and outcome.reply.answer is Answer.ALREADY:
            return await self._ask_again(press, outcome)
        return outcome

    async def _decide_and_maybe_claim(self, press: Press, prepared: Prepared) -> PressOutcome:
        """Decide a press. A plain approval also claims the run, if this process can start it right away."""
        is_plain_approval = press.verb is Verb.APPROVE and press.arguments is None
        if self.execution is None or not is_plain_approval or not self.takes_work():
            return await self._decide(press, prepared)
        run = await self.execution.prepare(press.proposal_id)
        if run is None:
            return await self._decide(press, prepared)
        deciding = asyncio.create_task(self._decide_and_claim(press, run, self.execution))
        return await asyncio.shield(deciding)  # if the caller is cancelled, a claim is still kept

    async def _take_several(self, pressed: Press | BatchDecision) -> PressOutcome:
        """Decide a press on several proposals, some at a time, so that other presses don't wait for all."""
        split = await self.database.read(group_presses.split_press, pressed)
        if isinstance(split, Reply):
            return PressOutcome(split)
        if not isinstance(pressed, BatchDecision) and pressed.verb is Verb.UNDO_ALL:
            return await self._undo_together(split)
        outcomes: list[PressOutcome] = []
        for start in range(0, len(split.presses), _PRESSES_AT_A_TIME):
            outcomes += await self._decide_all(split.presses[start : start + _PRESSES_AT_A_TIME])
        return group_presses.sum_up(split, outcomes)

    async def _decide_all(self, presses: Sequence[Press]) -> list[PressOutcome]:
        """Decide presses in one transaction, or each in its own if one of them loses a race."""
        policies = self.gate.policies
        try:
            return await self.database.write(
                group_presses.decide_all, presses, policies, self.clock(), urgent=True
            )
        except LostRace:
            pass
        outcomes = []
        for press in presses:
            try:
                outcomes.append(await self._decide(press, Prepared()))
            except LostRace as error:
                outcomes.append(PressOutcome(Reply(Answer.STALE, error.message)))
        return outcomes

    async def _undo_together(self, split: group_presses.SplitPress) -> PressOutcome:
        """Undo several proposals in order. The proposals that undo them form one batch."""
        outcomes: list[PressOutcome] = []
        first_inverse: Proposal | None = None
        for position, press in enumerate(split.presses):
            try:
                prepared = await self._prepare(press)
                prepared = replace(prepared, undo_position=UndoPosition(first_inverse, position))
                outcome = await self._decide(press, prepared)
            except (ToolError, LostRace) as error:
                outcome = PressOutcome(Reply(Answer.INVALID, error.message))
            outcomes.append(outcome)
            first_inverse = first_inverse or group_presses.find_undo_proposal(outcome)
        return group_presses.sum_up(split, outcomes)

    async def _decide(self, press: Press, prepared: Prepared) -> PressOutcome:
        return await self.database.write(
            decide.decide, press, self.gate.policies, self.clock(), prepared, urgent=True
        )

    async def _decide_and_claim(self, press: Press, run: PreparedRun, execution: Execution) -> PressOutcome:
        """Decide a press, and claim the prepared run in the same transaction if the press approves it.

        A claimed run is kept until the dispatcher of jobs starts it.
        """
        write_both = partial(_write_decision_and_claim, execution.process, self.takes_work)
        try:
            outcome, claimed = await self.database.write(
                write_both, press, self.gate.policies, self.clock(), run.proposal, urgent=True
            )
        except BaseException:
            execution.drop(run)
            raise
        if claimed is None:
            execution.drop(run)
            return outcome
        # the run redraws the cards when it ends, or earlier if it is slow: so the job that would redraw them
        # now becomes one that only tells of the change
        redraws = [job for job in outcome.jobs if job.work is Work.REDRAW and job != CHANGED]
        redraw = redraws[0] if redraws else None
        execution.keep_claimed(run, claimed, redraw)
        jobs = tuple(CHANGED if job == redraw else job for job in outcome.jobs)
        return replace(outcome, jobs=jobs)

    async def list_grant_scopes(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        """Return the scopes that a grant given on a card may have, narrowest first.

        Each comes with its text for people. Empty if this person may give no grant there. ``address``: where
        the card is posted.
        """
        proposal = await self.gate.groups.read_with_members(self._find_grantable, proposal_id, actor, address)
        if proposal is None:
            return []
        scopes_with_texts = []
        try:
            for scope, words in await self._list_scopes(proposal):
                text = await self._add_covered_count(proposal, scope, words)
                scopes_with_texts.append((scope.rung, text))
        except ToolError:
            return []
        return scopes_with_texts

    async def list_grant_audiences(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        """Return the audiences that a grant given on a card may have, narrowest first.

        Each comes with its text for people. Empty if this person may give no grant there. ``address``: where
        the card is posted.
        """

        def read_audiences(session: Session) -> list[tuple[GrantAudience, str]]:
            proposal = self._find_grantable(session, proposal_id, actor, address)
            if proposal is None:
                return []
            person = people.load_person(session, actor)
            requester = proposal.requester.label
            schedule = proposal.schedule or ""
            audiences = grants.list_audiences(session, self.gate.policies, proposal, person)
            return [(audience, audience.describe(requester, schedule=schedule)) for audience in audiences]

        return await self.gate.groups.read_with_members(read_audiences)

    def _find_grantable(
        self, session: Session, proposal_id: str, actor: Actor, address: Address | None
    ) -> Proposal | None:
        proposal = self._find_open(session, proposal_id, actor, Verb.SIMILAR, address)
        if proposal and grants.is_grantable(session, self.gate.policies, proposal):
            return proposal
        return None

    def _find_open(
        self, session: Session, proposal_id: str, actor: Actor, verb: Verb, address: Address | None
    ) -> Proposal | None:
        """Return the proposal if it is open and this person may make the press, else None.

        A press of a person without rights stops here, so that it causes no work of a tool.
        """
        proposal = proposals.get(session, proposal_id)
        if proposal is None or proposal.state is not State.PROPOSED:
            return None
        if rights.find_objection(session, self.gate.policies, proposal, actor, verb, address):
            return None
        return proposal

    async def _prepare(self, press: Press) -> Prepared:
        """Compute the input of a press. Raises BadArguments or ToolError if that fails."""
        if press.verb is Verb.UNDO:
            return Prepared(undoing=await self._draft_undo(press))
        if press.arguments is None and press.verb not in (Verb.SIMILAR, Verb.APPROVE_STEPS):
            return Prepared()
        proposal = await self.database.read(self._find_pressable, press)
        if proposal is None:
            return Prepared()  # the decision refuses it, with the reason
        if press.verb is Verb.APPROVE_STEPS:
            return Prepared(scopes=await self._list_step_scopes(proposal))
        if press.verb is Verb.SIMILAR:
            scopes = await self._list_scopes(proposal)
            # the chosen one; none if the card offers no such scope
            return Prepared(scopes=[(scope, words) for scope, words in scopes if scope.rung is press.rung])
        return Prepared(contents=await self._edit_contents(proposal, press.arguments or {}))

    def _find_pressable(self, session: Session, press: Press) -> Proposal | None:
        """Return the proposal of a press if it is open, in the press's round, and this person may press."""
        proposal = self._find_open(session, press.proposal_id, press.actor, press.verb, press.address)
        if proposal and press.round in (None, proposal.round):
            return proposal
        return None

    async def _draft_undo(self, press: Press) -> Undoing | None:
        """Draft the inverse call of a proposal, or return None if nothing can be undone.

        The person who pressed becomes the requester. Raises ToolError if the tool has changed since.
        """
        stored = await self.database.read(self._find_inverse, press)
        if stored is None:
            return None
        proposal, inverse, arguments = stored
        with as_tool_error(inverse.tool_name):
            available = await self._list_tools(proposal, press.actor)
            tool = available.get(inverse.tool_name)
            if tool.make_digest(arguments) != inverse.digest:
                raise ToolError("The tool has changed since, so this can't be undone.")
            preview = await preview_of(tool, arguments)
            is_unchanged = hash_old_values(preview) == inverse.left
            verdict = await self._judge(tool, arguments, proposal, press.actor, is_undo=is_unchanged)
            verdict = await limit_undo(tool, arguments, preview, verdict)
            title = await title_of(tool, arguments)
        await self.gate.keep_schema(tool)
        verdict = replace(verdict, judgement=Judgement.ASK)  # the press decides, and not a rule
        reason = press.reason or ""
        undo = draft(tool, arguments, preview, verdict, press.actor, reason, self.clock(), title=title)
        return Undoing(undo, is_unchanged)

    def _find_inverse(self, session: Session, press: Press) -> _StoredInverse | None:
        """Return the call that undoes a change; None without one, or if this person may not undo it now."""
        proposal = proposals.get(session, press.proposal_id)
        if proposal is None or proposal.inverse is None:
            return None
        if proposal.undo_until is None or proposal.undo_proposal_id is not None:
            return None
        if rights.find_objection(
            session, self.gate.policies, proposal, press.actor, press.verb, press.address
        ):
            return None
        arguments = proposals.find_inverse(session, proposal.id)
        if arguments is None:
            return None
        return _StoredInverse(proposal, proposal.inverse, arguments)

    async def _ask_again(self, press: Press, refused: PressOutcome) -> PressOutcome:
        """Open a proposal again, with its current values, if it had expired when it was pressed.

        ``refused``: the outcome that refused the press. It is returned if nothing had expired, and with a
        reason if the proposal can't be opened again.
        """
        expired = [
            proposal
            for proposal in refused.reply.proposals
            if proposal.state is State.EXPIRED and not proposal.kind.is_final
        ]
        if not expired:
            return refused
        try:
            prepared = Prepared(current=await self._refresh_contents(expired[0]))
        except ToolError as error:
            text = f"{refused.reply.text} It cannot be asked again: {error.message}"
            return replace(refused, reply=replace(refused.reply, text=text))
        asked_again = await self._decide(press, prepared)
        return replace(asked_again, jobs=(*refused.jobs, *asked_again.jobs))

    async def _edit_contents(self, proposal: Proposal, given: Mapping[str, Any]) -> Contents:
        """Return the contents of a proposal with new arguments (``given``). Raises BadArguments or ToolError.

        A secret that comes back as it was shown (hidden) keeps its value.
        """
        if proposal.kind.no_edit_text:
            raise ToolError(proposal.kind.no_edit_text)
        with as_tool_error(proposal.tool_name):
            tool = await self._find_tool(proposal)
            shown = redact_arguments(proposal.arguments, tool.parameters)
            arguments = await tool.check_arguments(restore_secrets(given, proposal.arguments, shown))
            is_same_tool = tool.make_digest(proposal.arguments) == proposal.digest
            if is_same_tool and await tool.is_same_call(proposal.arguments, arguments):
                arguments = dict(proposal.arguments)
            await self.gate.keep_schema(tool)
            contents = await self._make_contents(tool, arguments, proposal)
            return replace(contents, description=await title_of(tool, arguments))

    async def _find_tool(self, proposal: Proposal) -> Tool:
        available = await self._list_tools(proposal)
        return available.get(proposal.tool_name)

    async def _list_tools(self, proposal: Proposal, requester: Actor | None = None) -> AvailableTools:
        """Return the tools where a proposal was made. Raises ToolError if its connection has a fault."""
        why = await ownership.read_connection_fault(self.database, proposal)
        if why:
            raise ToolError(why)
        context = context_of(replace(proposal, requester=requester or proposal.requester))
        return await self.gate.registry.load_tools(context)

    async def _refresh_contents(self, proposal: Proposal) -> Contents:
        """Return the contents that an expired proposal would show today.

        Raises ToolError if the call can't be proposed again.
        """
        with as_tool_error(proposal.tool_name):
            tool = await self._find_tool(proposal)
            if tool.make_digest(proposal.arguments) != proposal.digest:
                raise ToolError("The tool has changed since. Please request it again.")
            if proposal.teammate:
                why = await self.database.read(teams.find_repeat_hindrance, proposal)
                if why:
                    raise ToolError(why)
            return await self._make_contents(tool, proposal.arguments, proposal)

    async def _make_contents(self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal) -> Contents:
        """Return the contents of the proposal with these arguments, previewed now."""
        verdict = await self._judge(tool, arguments, proposal)
        preview, trial = await self._preview_and_try(tool, arguments, proposal)
        return Contents(
            arguments=arguments,
            schema=tool.form_schema,
            tool_version=tool.version,
            digest=tool.make_digest(arguments),
            description=proposal.description,
            preview=preview,
            trial=trial,
            verdict=await limit_undo(tool, arguments, preview, verdict, trial),
        )

    async def _preview_and_try(
        self, tool: Tool, arguments: Mapping[str, Any], proposal: Proposal
    ) -> PreviewAndTrial:
        """Return the preview of a call now, and its trial if one was run.

        Nothing is tried while everything is paused. A plan is its own preview.
        """
        if proposal.kind.has_no_current_values:
            return PreviewAndTrial(proposal.preview, None)
        if tool.trial_functions is None or await self.gate.is_paused():
            return PreviewAndTrial(await preview_of(tool, arguments), None)
        return await self.gate.trials.make_preview(tool, arguments, proposal.requester)

    async def _judge(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        proposal: Proposal,
        requester: Actor | None = None,
        *,
        is_undo: bool = False,
    ) -> Verdict:
        """Return the verdict on a proposal's new contents. Raises ToolError if a rule forbids the call.

        ``requester``: the person who asks, if it is not the proposal's requester. ``is_undo``: the call
        restores the earlier state, so the rules may treat it as harmless. A call that the tool itself calls
        destructive gets no such treatment.
        """
        asker = requester or proposal.requester
        policy, person = await self.database.read(self.gate.policies.load_with_person, asker)
        place = await self.database.read(conversations.load_place, proposal.conversation_id)
        risk = tool.classify(arguments)
        call = tool.make_facts(arguments, risk, place, person, self.clock())
        verdict = policy.judge(replace(call, is_undo=is_undo and risk.level is not Level.DESTRUCTIVE))
        if verdict.judgement is Judgement.REFUSE:
            raise ToolError(verdict.rule_text)
        return ownership.require_owner(verdict, tool.connection)

    async def _list_scopes(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """Return the scopes that a grant for calls like this one may have, with their texts, narrowest first.

        Raises ToolError if the tool is gone.
        """
        tool = await self._find_tool(proposal)
        with as_tool_error(proposal.tool_name):
            likeness = await tool.find_likeness(proposal.arguments)
        if proposal.risk.level is Level.DESTRUCTIVE:
            likeness = likeness._replace(begins=NO_BEGINNING)  # never by the beginning of a command alone
        shown = redact(likeness.key, tool.parameters) if likeness.key else None
        return list_grant_scopes(tool.name, tool.version, proposal.arguments, likeness, shown)

    async def _add_covered_count(self, proposal: Proposal, scope: Scope, text: str) -> str:
        """Return the text of a scope, for PREFIX with the number of recent calls that it would cover."""
        if scope.rung is not GrantScope.PREFIX:
            return text
        tool = await self._find_tool(proposal)
        since = self.clock() - _COUNTED_PERIOD
        recent = await self.database.read(
            proposals.list_recent_arguments, tool.name, tool.version, since, _MAX_COUNTED_CALLS
        )
        covered = 0
        for arguments in recent:
            with contextlib.suppress(ToolError):
                likeness = await tool.find_likeness(arguments)
                if scope.covers(tool.name, tool.version, arguments, likeness):
                    covered += 1
        return f"{text} ({covered} of the last {len(recent)} in {_COUNTED_PERIOD.days} days)"

    async def _list_step_scopes(self, proposal: Proposal) -> list[tuple[Scope, str]]:
        """Return the scopes to grant with a plan's steps: all calls of each named tool that can write."""
        if Verb.APPROVE_STEPS not in proposal.kind.extra_verbs:
            raise ToolError("Only a plan has steps to approve.")
        available = await self.gate.registry.load_tools()
        offered = available.model_tools.tools
        scopes = []
        for name in Plan.of(proposal.arguments).tools:
            tool = offered.get(name)
            if tool is not None and not tool.reads:
                words = f"{tool.name} with any arguments, by {proposal.teammate}"
                scopes.append((Scope(tool.name, tool.version, GrantScope.TOOL, ""), words))
        return scopes


def _trace_decisions(pressed: Sequence[Proposal]) -> None:
    """Record in the trace how long each of these proposals has waited, if it is decided now."""
    for proposal in pressed:
        if proposal.state in _DECIDED and proposal.decided_at is not None:
            waited = (proposal.decided_at - proposal.created_at).total_seconds()
            tracing.trace_decision(proposal.id, proposal.tool_name, proposal.state, waited)


def _write_decision_and_claim(
    process: str,
    takes_work: Callable[[], bool],
    session: Session,
    press: Press,
    policies: Policies,
    now: datetime,
    opened: Proposal,
) -> tuple[PressOutcome, Proposal | None]:
    """Decide a press. If it approves the proposal as it was opened, claim the run for this process.

    Returns the outcome, and the claimed run or None. Nothing is claimed if the proposal was not approved, or
    will be claimed later: when the pause ends, or by another process if this one is ending.
    """
    outcome = decide.decide(session, press, policies, now)
    if Job(Work.EXECUTE, opened.id) not in outcome.jobs:
        return outcome, None
    [approved] = outcome.reply.proposals
    if approved.version != opened.version + 1 or not takes_work():
        return outcome, None
    try:
        claimed = runs.claim(session, policies, approved, process, now)
    except CallRefused:  # the run finds that out again, and tells people
        claimed = None
    return outcome, claimed

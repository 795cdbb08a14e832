"""The gate for all tool calls: reads run right away, writes become proposals and run only when approved.

Calls come from two sides. For the model, the agent loop asks `Gate.consider` to judge the calls of one
answer. Reads are then run by `Gate.read`; writes come back as proposals, which are stored with the answer.
For programs and features, a request is one call, which passes the gate by ``requests.py``. All calls are
judged by the rules: the *verdict* of `Policy.judge` is to run the call, to ask people, or to refuse it. What
people approve is run by ``execute.py``.

Some tools have an *effect* instead of a run: they change only Nod's own rows (``effects.py``). Some can be
*tried*: they are run without lasting effect, so that the card shows what they would change (``trials.py``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.approvals import agent_questions, grants
from bot.approvals.address_risk import raise_risk_by_addresses
from bot.approvals.drafts import (
    clean_reason,
    decode_arguments,
    draft,
    limit_undo,
    preview_of,
    summary_of,
    title_of,
)
from bot.approvals.groups import Groups, LookUp, refuse_groups
from bot.approvals.judged_calls import JudgedCall, ToolUse, answer_call
from bot.approvals.kinds import find_procedure
from bot.approvals.kinds.procedure import Procedure
from bot.approvals.ownership import require_owner
from bot.approvals.read_consents import find_missing_consent
from bot.approvals.run_progress import IN_TURNS, Progress
from bot.approvals.tool_code import describe_and_log, run_tool
from bot.approvals.tool_visibility import check_unlocked, choose_available
from bot.approvals.tools import outputs, team
from bot.approvals.trials import Trials
from bot.domain import kinds
from bot.domain.call_facts import CallFacts, Place
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Call, CallResult, Conversation, Transcript
from bot.domain.files import File
from bot.domain.model import ToolCall
from bot.domain.outcomes import REASON_PARAMETER, bound_text
from bot.domain.people import Actor, Person
from bot.domain.plans import find_current_plan
from bot.domain.policy import Policy
from bot.domain.preview import Inverse
from bot.domain.proposal_states import State
from bot.domain.proposals import ProposalKind
from bot.domain.redaction import secrets_in
from bot.domain.risks import Level, Risk
from bot.domain.verdicts import Judgement, Verdict
from bot.domain.work_limits import CALLS_PER_ANSWER, AnswerRoom, Bounds
from bot.errors import BadArguments, CallRefused, UnknownTool
from bot.store import asked_calls, proposals
from bot.store import outputs as outputs_store
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger, redact_in_logs
from bot.tools.call import CallContext
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import Tool

log = logger(__name__)

_TOO_MANY_CALLS = (
    f"Too many calls: one answer may make {CALLS_PER_ANSWER}. Make the others in your next answers."
)
_JUST_DECLINED = "{who} declined exactly this a moment ago. Do not ask again unless they ask you to."
_IS_OPEN = (
    "Exactly this was asked for and is still open, so it gets no second card. You are told how it ends."
)
_READS_TOGETHER = 4  # reads of one conversation that run side by side


class _Rows(NamedTuple):
    """The rows by which the calls of an answer are judged."""

    policy: Policy
    person: Person
    answer_room: AnswerRoom  # the number of proposals that the answer may still open, and a refusal of more
    open_or_declined: Mapping[str, str]
    """The calls that wait, run or were just declined, by digest: the name of who declined it, else empty."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The context that all calls of one answer share."""

    rows: _Rows
    transcript: Transcript
    text: str  # of the answer
    all_tools: AvailableTools
    tools: AvailableTools  # those that the agent may call: see ``tool_visibility.py``
    place: Place  # where the conversation is, as rules name it
    zone: tzinfo | None  # the time zone of the person who asks, if it is known


class _ReadQuestion(NamedTuple):
    """A read that needs a person's consent, as a call that can be proposed."""

    tool: Tool  # of kind ``reading``
    verdict: Verdict
    reason: str  # why consent is needed


async def no_zone(_: Actor, __: Address) -> tzinfo | None:
    """Return no time zone; used where no platform is connected."""
    return None


@dataclass(eq=False)
class Gate:
    """The judge of all calls, which also runs reads. Its own state is only a cache."""

    registry: Registry
    policies: Policies
    database: Database
    clock: Clock
    process: str  # the id of this process
    bounds: Bounds = field(default_factory=Bounds)
    look_up: LookUp = refuse_groups  # finds the members of a group of people
    zone_of: Callable[[Actor, Address], Awaitable[tzinfo | None]] = no_zone  # finds a person's time zone

    def __post_init__(self) -> None:
        self.groups = Groups(self.database, self.policies, self.clock, self.look_up)
        self._stored_schemas: set[tuple[str, str]] = set()  # names and versions of tools
        self._logged_misfits: set[tuple[int, str]] = set()  # numbers of rules, and versions of tools
        # by conversation, so that reads that hang (or wait for a person) hold up no other conversation
        self._read_slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.trials = Trials(self.database, self.clock, self.process)

    async def consider(
        self,
        available: AvailableTools,
        calls: Sequence[ToolCall],
        transcript: Transcript,
        answer_text: str,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> list[JudgedCall]:
        """Judge every call of a model's answer. A call that can't be proposed gets the reason as its result.

        ``available``: all tools, from which those that the agent may call are chosen here. ``show`` is called
        with the text of each trial's progress. Raises what the database raises, and ModelTooManyQuestions if
        the model asks people more questions than it may.
        """
        if not calls:
            return []
        if any(call.name == agent_questions.ASK for call in calls):
            agent_questions.check_question_count(transcript)
        rows = await self.groups.read_with_members(self._read_rows, transcript)
        conversation = transcript.conversation
        answer = _Answer(
            rows,
            transcript,
            answer_text,
            all_tools=available.model_tools,
            tools=choose_available(available.model_tools, transcript),
            place=Place(str(conversation.origin), conversation.private),
            zone=await self.time_zone(transcript),
        )
        judged_calls = await self._consider_each(answer, calls)
        if any(judged.tool_to_try for judged in judged_calls):
            trials = [self.try_call(judged, show) for judged in judged_calls]
            judged_calls = list(await asyncio.gather(*trials))
        return judged_calls

    def _read_rows(self, session: Session, transcript: Transcript) -> _Rows:
        conversation_id = transcript.conversation.id
        policy, person = self.policies.load_with_person(session, transcript.asker)
        answer_room = proposals.load_answer_room(session, self.bounds, conversation_id, person.accounts)
        open_or_declined = asked_calls.find_calls_already_asked(session, conversation_id, self.clock())
        return _Rows(policy, person, answer_room, open_or_declined)

    async def _consider_each(self, answer: _Answer, calls: Sequence[ToolCall]) -> list[JudgedCall]:
        """Judge the calls in their order, within the number of proposals that may still be opened."""
        judged_calls: list[JudgedCall] = []
        room = answer.rows.answer_room
        room_left = room.proposals_left
        proposed_kinds: set[ProposalKind] = set()
        for position, call in enumerate(calls):
            if position >= CALLS_PER_ANSWER:
                judged_calls.append(answer_call(call, call.name, f"ERROR: {_TOO_MANY_CALLS}"))
                continue
            if call.refusal:  # the model wrote something that can't be read as a call
                judged_calls.append(answer_call(call, call.name, f"ERROR: {call.refusal}"))
                continue
            refusal_if_full = room.refusal if room_left <= 0 else None
            judged = await self._consider_one(answer, call, position, refusal_if_full)
            if judged.proposal is not None:
                kind = judged.proposal.kind
                # ``duplicate_text``: the refusal of a second one, for kinds of which an answer proposes one
                if kind in proposed_kinds and kind.duplicate_text:
                    judged = answer_call(call, judged.call.summary, kind.duplicate_text)
                else:
                    proposed_kinds.add(kind)
                    room_left -= 1
            judged_calls.append(judged)
        return judged_calls

    async def try_call(
        self, judged: JudgedCall, show: Callable[[str], Awaitable[None]] | None = None
    ) -> JudgedCall:
        """Try a call and add the trial to its proposal, unless a grant lets the call run without asking.

        A call that is not to be tried is returned as it is.
        """
        proposal = judged.proposal
        tool = judged.tool_to_try
        if proposal is None or tool is None:
            return judged
        would_approve = partial(grants.would_approve, like=judged.likeness, now=self.clock())
        if await self.database.read(would_approve, self.policies, proposal):
            return judged
        preview, trial = await self.trials.attempt(
            tool, proposal.arguments, proposal.preview, proposal.requester, show
        )
        proposal = replace(proposal, preview=preview, trial=trial)
        if trial and trial.applies and judged.undo_seconds:
            if trial.why_not_undone:  # the trial showed why its changes can't be undone
                proposal = replace(proposal, undo_seconds=0.0, inverse=Inverse(trial.why_not_undone))
            elif tool.undo is None and tool.trial_functions and tool.trial_functions.undo:
                # the tool can undo only what a trial has shown, not a run for real
                proposal = replace(proposal, undo_seconds=judged.undo_seconds, inverse=None)
        return replace(judged, proposal=proposal)

    async def time_zone(self, transcript: Transcript) -> tzinfo | None:
        """Return the time zone of the person who asks, or None if their platform does not tell it."""
        return await self.zone_of(transcript.asker, transcript.conversation.origin)

    async def list_tools_for_model(self, available: AvailableTools, transcript: Transcript) -> AvailableTools:
        """Return the tools that the model is offered: those that the agent may call, without forbidden ones.

        A tool that a rule forbids only for some arguments is offered; `consider` refuses a call with these.
        """
        tools = choose_available(available, transcript)
        if find_current_plan(transcript.proposals.values()) is None:
            tools = tools.without({team.STEP_DONE: "You have no approved plan."})
        # these rules may be a little old; `consider` reads the newest and refuses what they forbid
        if not self.policies.latest_policy.rulebook.has_forbid_rule:
            return tools
        policy, person = await self.database.read(self.policies.load_with_person, transcript.asker)
        place = Place(str(transcript.conversation.origin), transcript.conversation.private)
        risk = Risk(Level.WRITE, "")
        now = self.clock()
        forbidden = {}
        for tool in tools:
            any_call = CallFacts(tool.name, risk, place, person, now, identity=tool.identity)
            why = policy.find_call_objection(any_call, always=True)  # by rules that hold for all its calls
            if why:
                forbidden[tool.name] = why
        return tools.without(forbidden)

    async def _consider_one(
        self, answer: _Answer, call: ToolCall, position: int, refusal_if_full: str | None
    ) -> JudgedCall:
        """Judge one call, the one at ``position`` of its answer.

        ``refusal_if_full``: the refusal of a proposal if no further proposal may be opened, else None.
        """
        summary = call.name  # the call in words for people; replaced as more of the call is known
        transcript = answer.transcript
        teammate = transcript.teammate
        policy = answer.rows.policy
        try:
            # the call as it would run; its kind may have a procedure: steps in place of the usual ones
            tool = answer.tools.get(call.name).in_context(_context_of(transcript))
            written = decode_arguments(call.arguments)
            reason = written.pop(REASON_PARAMETER, "") if not tool.reads else ""
            arguments = await tool.check_arguments(written, answer.zone)
            procedure = find_procedure(tool.kind)
            if procedure.complete:
                arguments = await procedure.complete(answer.all_tools, teammate, arguments, answer.zone)
            summary = summary_of(tool, arguments)
            recorded = Call(call.id, call.name, call.arguments, summary)
            if not tool.reads:
                _check_not_asked(answer, tool, arguments)

            # the verdict of the rules: an effect or an allowed read is not proposed
            risk = tool.classify(arguments)
            facts = tool.make_facts(arguments, risk, answer.place, answer.rows.person, self.clock())
            if tool.effect and not policy.find_call_objection(facts):
                return JudgedCall(recorded, effect=ToolUse(tool, arguments))
            verdict = policy.judge(raise_risk_by_addresses(facts, tool, policy, transcript))
            if policy.rulebook.has_conditions:  # some rules have conditions on arguments
                self._log_misfits(policy, tool)
            if verdict.judgement is Judgement.REFUSE:
                return answer_call(call, summary, f"REFUSED: {verdict.rule_text}")
            if verdict.judgement is Judgement.RUN and not verdict.risk.writes:
                question = _ask_to_read(answer, tool, facts)
                if question is None:
                    return JudgedCall(recorded, read=ToolUse(tool, arguments))
                tool, verdict, reason = question  # a person is asked for consent to the read

            # from here on the call becomes a proposal; the procedure of its kind may name the deciders, and
            # write the card
            verdict = require_owner(verdict, tool.connection)
            if refusal_if_full is not None:
                return answer_call(call, summary, f"ERROR: {refusal_if_full}")
            if verdict.risk.writes:
                await self._check_runnable(transcript, tool, arguments)
            verdict = await self._name_deciders(procedure, transcript, arguments, verdict)
            undo_seconds = 0.0
            if procedure.show:
                summary, preview = procedure.show(answer.all_tools, teammate, arguments)
            else:
                preview = await preview_of(tool, arguments)
                summary = await title_of(tool, arguments) if tool.title else summary
                undo_seconds = find_undo_seconds(verdict)
                verdict = await limit_undo(tool, arguments, preview, verdict)
            likeness = await tool.find_likeness(arguments)
        except Exception as error:  # noqa: BLE001 - a tool's own code; the model is told
            is_nods_text = isinstance(error, BadArguments | UnknownTool | CallRefused)
            text = f"ERROR: {describe_and_log(error, call.name)}"
            return answer_call(call, summary, text, may_be_foreign=not is_nods_text)
        await self.keep_schema(tool)
        reason = clean_reason(str(reason), answer.text, transcript.last_message)
        proposal = draft(
            tool, arguments, preview, verdict, transcript.asker, reason, self.clock(), title=summary
        )
        proposal = replace(
            proposal,
            conversation_id=transcript.conversation.id,
            call_id=call.id,
            position=position,
            teammate=teammate.name if teammate else "",
            schedule=transcript.schedule,
        )
        will_ask = proposal.state is State.PROPOSED and not policy.rulebook.paused
        return JudgedCall(
            recorded,
            proposal=proposal,
            likeness=likeness,
            batch=(tool.batch or tool.name) if tool.kind.is_batched else "",
            tool_to_try=tool if tool.trial_functions and will_ask else None,
            undo_seconds=undo_seconds,
        )

    async def _name_deciders(
        self, procedure: Procedure, transcript: Transcript, arguments: Mapping[str, Any], verdict: Verdict
    ) -> Verdict:
        """Return the verdict, with other deciders if the procedure of the call's kind names them."""
        if not procedure.name_deciders:
            return verdict
        deciders = await self.database.read(procedure.name_deciders, transcript, arguments, verdict.deciders)
        return replace(verdict, deciders=deciders)

    async def _check_runnable(self, transcript: Transcript, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raise CallRefused or ToolError for a call that would fail even when approved."""
        if not tool.kind.runs_locked:
            check_unlocked(transcript.teammate, tool)
        if tool.check is not None:
            await self.database.read(tool.check, _context_of(transcript), arguments)

    async def is_paused(self) -> bool:
        """Tell if everything is paused."""
        policy = await self.database.read(self.policies.load)
        return bool(policy.rulebook.paused)

    def _log_misfits(self, policy: Policy, tool: Tool) -> None:
        """Log, once for each version of a tool, the rules whose conditions no longer fit its arguments."""
        for number, why in policy.rulebook.explain_misfits({tool.name: tool.form_schema}).items():
            if (number, tool.version) not in self._logged_misfits:
                self._logged_misfits.add((number, tool.version))
                log.warning("a rule does not fit its tool", rule=number, why=why)

    async def keep_schema(self, tool: Tool) -> None:
        """Store a tool's schema before its first proposal, once for each version."""
        if (tool.name, tool.version) not in self._stored_schemas:
            await self.database.write(proposals.store_schema, tool.name, tool.version, tool.form_schema)
            self._stored_schemas.add((tool.name, tool.version))

    async def read(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        conversation: Conversation,
        asker: Actor | None = None,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> CallResult:
        """Run a read of the model, and return its result or its error.

        ``asker``: the person for whom the read is made, by default the one who began the conversation.
        ``show`` is called with the words of the read's progress.
        """
        context = CallContext(conversation.id, str(asker or conversation.requester))
        secrets = secrets_in(arguments, tool.parameters)
        if show is not None:
            context = replace(context, progress=Progress(self.clock, IN_TURNS, show, secrets))
        slots = self._read_slots.setdefault(conversation.id, asyncio.Semaphore(_READS_TOGETHER))
        with redact_in_logs(secrets):
            try:
                async with slots:
                    output = await run_tool(tool, arguments, context)
            except Exception as error:  # noqa: BLE001 - a tool's own code; the model is told
                return CallResult(f"ERROR: {describe_and_log(error, tool.name)}", ok=False)
            for file in output.files:
                await self.database.write(outputs_store.store_output, conversation.id, file, self.clock())
            text = await self._cut_result(File(f"{tool.name}.txt", output.text), conversation)
            return CallResult(text, ok=True)

    async def _cut_result(self, file: File, conversation: Conversation) -> str:
        """Cut a result's text to the limit. If there is a tool that reads the rest, add a handle for it."""
        available = await self.registry.load_tools()
        if "output_read" in available.tools:
            return await outputs.cut(self.database, conversation.id, file, self.clock)
        return bound_text(file.text)


def _check_not_asked(answer: _Answer, tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise CallRefused if exactly this call waits, runs, or was just declined.

    Just declined means: since a person last asked for work.
    """
    digest_of_call = tool.make_digest(arguments)
    if digest_of_call not in answer.rows.open_or_declined:
        return
    declined_by = answer.rows.open_or_declined[digest_of_call]  # empty for an open call
    if declined_by:
        raise CallRefused(_JUST_DECLINED.format(who=declined_by))
    raise CallRefused(_IS_OPEN)


def _ask_to_read(answer: _Answer, tool: Tool, facts: CallFacts) -> _ReadQuestion | None:
    """Return the question that asks for consent to a read, or None if the read needs no consent.

    Raises CallRefused if the person said no or is being asked already, or if the rules forbid the
    question.
    """
    why = find_missing_consent(tool, answer.transcript, answer.rows.person.accounts)
    if not why:
        return None
    if tool.make_digest(facts.arguments) in answer.rows.open_or_declined:
        raise CallRefused(_IS_OPEN)
    verdict = answer.rows.policy.judge(replace(facts, kind=kinds.READING))
    if verdict.judgement is Judgement.REFUSE:
        raise CallRefused(verdict.rule_text)
    return _ReadQuestion(replace(tool, kind=kinds.READING), verdict, why)


def find_undo_seconds(verdict: Verdict) -> float:
    if verdict.undo is None:
        return 0.0
    return verdict.undo.total_seconds()


def _context_of(transcript: Transcript) -> CallContext:
    return CallContext(transcript.conversation.id, str(transcript.asker))

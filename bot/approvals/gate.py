"""The gate for all tool calls: reads run right away, writes become proposals and run only when approved.

`Gate.consider` judges a call the model made; reads continue to `Gate.read`, writes come back as proposals
that are not stored yet. What people approve is run by ``execute.py``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.approvals import arrive, asking, grants
from bot.approvals.arrive import Opened
from bot.approvals.drafts import (
    clean_reason,
    decode_arguments,
    draft,
    preview_of,
    summary_of,
    title_of,
    undoable,
)
from bot.approvals.groups import Groups, LookUp, nowhere
from bot.approvals.kinds import find_procedure
from bot.approvals.ownership import require_owner
from bot.approvals.readings import find_missing_consent
from bot.approvals.run_progress import IN_TURNS, Progress
from bot.approvals.tool_code import as_tool_error, describe_and_log, run_tool
from bot.approvals.tool_visibility import available_tools, check_unlocked
from bot.approvals.tools import outputs, team
from bot.approvals.trials import Trials
from bot.domain import kinds, outward
from bot.domain.bounds import CALLS_PER_ANSWER, AnswerRoom, Bounds
from bot.domain.chat import Address, Clock, Request
from bot.domain.conversations import Call, CallResult, Conversation, Transcript, Turn
from bot.domain.files import File
from bot.domain.forms import defaults_of, without_defaults
from bot.domain.jobs import Job
from bot.domain.model import ToolCall
from bot.domain.outcomes import REASON, bound_text
from bot.domain.people import Actor, Person
from bot.domain.plans import find_current_plan
from bot.domain.policy import Judgement, Policy, Verdict
from bot.domain.proposals import Inverse, Level, Proposal, ProposalKind, Risk, State, digest
from bot.domain.redaction import secrets_in
from bot.domain.rules import CallFacts, Place
from bot.domain.similarity import Likeness
from bot.errors import BadArguments, KeyTaken, Refused, ToolError, TooMuch, UnknownTool
from bot.store import conversations, messages, people, proposals
from bot.store import outputs as outputs_store
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import hiding, logger
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import CallContext, Moment, Tool

log = logger(__name__)

_TOO_MANY_CALLS = (
    f"Too many calls: one answer may make {CALLS_PER_ANSWER}. Make the others in your next answers."
)
_JUST_DECLINED = "{who} declined exactly this a moment ago. Do not ask again unless they ask you to."
_IS_OPEN = (
    "Exactly this was asked for and is still open, so it gets no second card. You are told how it ends."
)
_READS_TOGETHER = 4  # of one conversation
_NOT_AS_PERSON = (
    "At {server} this would run as {person}, who has not allowed that for this token. They are asked to."
)


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call after judgement: a read, an effect with the answer, a proposal, or a result at hand."""

    call: Call
    read: tuple[Tool, Mapping[str, Any]] | None = None
    effect: tuple[Tool, Mapping[str, Any]] | None = None
    proposal: Proposal | None = None
    like: Likeness = field(default_factory=Likeness)  # by what the call is like others, for grants
    batch: str = ""  # what it is shown together with in one table
    result: CallResult | None = None
    tries: Tool | None = None  # the tool of a proposal that is tried before people see it
    undo: float = 0.0  # seconds for which the rules let what was tried be undone


async def no_zone(_: Actor, __: Address) -> tzinfo | None:
    """Return no time zone; used where no platform is connected."""
    return None


@dataclass(eq=False)
class Gate:
    """The judge of all calls, which also runs reads; rows are its only state."""

    registry: Registry
    policies: Policies
    database: Database
    clock: Clock
    process: str  # the id of this one
    bounds: Bounds = field(default_factory=Bounds)
    look_up: LookUp = nowhere  # who is in a group of people
    zone_of: Callable[[Actor, Address], Awaitable[tzinfo | None]] = no_zone  # a person's own, if one is known

    def __post_init__(self) -> None:
        self.groups = Groups(self.database, self.policies, self.clock, self.look_up)
        self._kept: set[tuple[str, str]] = set()  # tool versions whose schema is on disk
        self._misfits: set[tuple[int, str]] = set()  # rules and tool versions that the log has
        # by conversation, so that one whose reads hang (or wait for a person) holds up no other
        self._reading: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.trials = Trials(self.database, self.clock, self.process)

    async def consider(
        self,
        available: AvailableTools,
        calls: Sequence[ToolCall],
        transcript: Transcript,
        said: str,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> list[JudgedCall]:
        """Judge every call of one answer, ``said``. What cannot be proposed is answered with the reason.

        ``available`` holds all tools; the caller is limited to its share here. ``show`` is told what is tried
        first. Raises what the database raises.
        """
        if not calls:
            return []
        if any(call.name == asking.ASK for call in calls):
            asking.check_in_a_row(transcript)
        conversation_id = transcript.conversation.id

        def before(session: Session) -> tuple[Policy, Person, AnswerRoom, Mapping[str, str]]:
            policy, person = self.policies.load_for(session, transcript.asker)
            room = proposals.room(session, self.bounds, conversation_id, person.accounts)
            return (
                policy,
                person,
                room,
                conversations.find_asked_already(session, conversation_id, self.clock()),
            )

        policy, person, room, asked = await self.groups.read(before)
        whole = available.offered
        reach = available_tools(whole, transcript)
        there = transcript.conversation
        place = Place(str(there.origin), there.private)
        zone = await self.time_zone(transcript)
        case = _Case(reach, whole, transcript, said, policy, person, asked, place, zone)
        judged: list[JudgedCall] = []
        left, proposed = room.left, set[ProposalKind]()
        for position, call in enumerate(calls):
            if position >= CALLS_PER_ANSWER:
                judged.append(_answer_call(call, call.name, f"ERROR: {_TOO_MANY_CALLS}"))
                continue
            if call.refused:
                judged.append(_answer_call(call, call.name, f"ERROR: {call.refused}"))
                continue
            each = await self._consider(case, call, position, room if left <= 0 else None)
            if each.proposal is not None and each.proposal.kind in proposed:
                why = each.proposal.kind.duplicate_text
                if why:
                    each = _answer_call(call, each.call.summary, why)
            if each.proposal is not None:
                proposed.add(each.proposal.kind)
                left -= 1
            judged.append(each)
        if any(each.tries for each in judged):
            judged = list(await asyncio.gather(*(self._try_call(each, show) for each in judged)))
        return judged

    async def _try_call(
        self, judged: JudgedCall, show: Callable[[str], Awaitable[None]] | None = None
    ) -> JudgedCall:
        """Add the call's preview or trial, unless a grant lets it run without asking."""
        proposal, tool = judged.proposal, judged.tries
        if proposal is None or tool is None:
            return judged
        covered = partial(grants.would_approve, like=judged.like, now=self.clock())
        if await self.database.read(covered, self.policies, proposal):
            return judged
        preview, trial = await self.trials.attempt(
            tool, proposal.arguments, proposal.preview, proposal.requester, show
        )
        proposal = replace(proposal, preview=preview, trial=trial)
        if trial and trial.applies and judged.undo:
            if trial.final:
                proposal = replace(proposal, undo_seconds=0.0, inverse=Inverse(trial.final))
            elif tool.undo is None and tool.trying and tool.trying.undo:
                proposal = replace(proposal, undo_seconds=judged.undo, inverse=None)
        return replace(judged, proposal=proposal)

    async def time_zone(self, transcript: Transcript) -> tzinfo | None:
        """Return the time zone of the person who asks, or None where their platform does not tell it."""
        return await self.zone_of(transcript.asker, transcript.conversation.origin)

    async def list_offered(self, available: AvailableTools, transcript: Transcript) -> AvailableTools:
        """Return the tools that the caller may be told of: its share, without forbidden ones.

        A tool that a rule forbids only for some arguments is offered; `consider` refuses the call.
        """
        reach = available_tools(available, transcript)
        if find_current_plan(transcript.proposals.values()) is None:
            reach = reach.without({team.STEP_DONE: "You have no approved plan."})
        if not self.policies.held.book.forbids:  # set since by another process: `consider` refuses it
            return reach
        policy, person = await self.database.read(self.policies.load_for, transcript.asker)
        place = Place(str(transcript.conversation.origin), transcript.conversation.private)
        risk, now = Risk(Level.WRITE, ""), self.clock()
        forbidden = {
            tool.name: why
            for tool in reach
            if (why := policy.forbidding(_describe(tool, risk, place, person, now), always=True))
        }
        return reach.without(forbidden)

    async def _consider(
        self, case: "_Case", call: ToolCall, position: int, full: AnswerRoom | None
    ) -> JudgedCall:
        """Judge one call. ``full``: no further proposal may be opened."""
        summary, undo = call.name, 0.0
        try:
            tool = case.available.get(call.name).in_context(_context_of(case.transcript))
            raw = decode_arguments(call.arguments)
            reason = raw.pop(REASON, "") if not tool.reads else ""
            arguments = await tool.check_arguments(raw, case.zone)
            procedure, teammate = find_procedure(tool.kind), case.transcript.teammate
            if procedure.complete:
                arguments = await procedure.complete(case.whole, teammate, arguments, case.zone)
            summary = summary_of(tool, arguments)
            kept = Call(call.id, call.name, call.arguments, summary)
            who = None if tool.reads else case.asked.get(tool.digest(arguments))
            if who is not None:
                words = _JUST_DECLINED.format(who=who) if who else _IS_OPEN
                return _answer_call(call, summary, f"ERROR: {words}")
            risk = tool.classify(arguments)
            facts = tool.call(arguments, risk, case.place, case.person, self.clock())
            if tool.effect and not case.policy.forbidding(facts):
                return JudgedCall(kept, effect=(tool, arguments))
            verdict = case.policy.judge(judge_addresses(facts, tool, case.policy, case.transcript))
            if case.policy.book.conditional:
                self._note_misfits(case.policy, tool)
            if verdict.judgement is Judgement.REFUSE:
                return _answer_call(call, summary, f"REFUSED: {verdict.rule}")
            if verdict.judgement is Judgement.RUN and not verdict.risk.writes:
                asked = _ask_to_read(case, tool, facts)
                if asked is None:
                    return JudgedCall(kept, read=(tool, arguments))
                tool, verdict, reason = asked
            verdict = require_owner(verdict, tool.connection)
            if full is not None:
                return _answer_call(call, summary, f"ERROR: {full.words}")
            if verdict.risk.writes:
                await self._check(case.transcript, tool, arguments)
            if name_deciders := procedure.name_deciders:
                deciders = await self.database.read(
                    name_deciders, case.transcript, arguments, verdict.deciders
                )
                verdict = replace(verdict, deciders=deciders)
            if procedure.show:
                summary, preview = procedure.show(case.whole, teammate, arguments)
            else:
                preview = await preview_of(tool, arguments)
                summary = await title_of(tool, arguments) if tool.title else summary
                undo = verdict.undo.total_seconds() if verdict.undo else 0.0
                verdict = await undoable(tool, arguments, preview, verdict)
            like = await tool.likeness(arguments)
        except Exception as error:  # noqa: BLE001 - a tool's own code; the model is told
            own = isinstance(error, BadArguments | UnknownTool | Refused)
            return _answer_call(
                call, summary, f"ERROR: {describe_and_log(error, call.name)}", outside=not own
            )
        await self.keep_schema(tool)
        drafted = draft(
            tool,
            arguments,
            preview,
            verdict,
            case.transcript.asker,
            clean_reason(str(reason), case.said, case.transcript.heard),
            self.clock(),
            title=summary,
        )
        asks = drafted.state is State.PROPOSED and not case.policy.book.paused
        return JudgedCall(
            kept,
            like=like,
            tries=tool if tool.trying and asks else None,
            undo=undo,
            batch=(tool.batch or tool.name) if tool.kind.is_batched else "",
            proposal=replace(
                drafted,
                conversation_id=case.transcript.conversation.id,
                call_id=call.id,
                position=position,
                teammate=teammate.name if teammate else "",
                schedule=case.transcript.schedule,
            ),
        )

    async def _check(self, transcript: Transcript, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Raise Refused or ToolError for a call that would fail even when approved."""
        if not tool.kind.runs_locked:
            check_unlocked(transcript.teammate, tool)
        if tool.check is not None:
            await self.database.read(tool.check, _context_of(transcript), arguments)

    async def open(self, request: Request) -> Opened:
        """Open a proposal that no model call led to, judged as any other. Returns once it is committed.

        Raises BadArguments, UnknownTool, Refused, KeyTaken, or ToolError where it cannot be previewed.
        """
        tool = (await self.registry.available(context_of_request(request))).get(request.tool_name)
        if tool.effect is not None or not tool.kind.may_be_requested:
            raise Refused(f"{tool.name} can't be asked for: Nod uses it by itself.")
        if tool.undoes:
            raise Refused(f"{tool.name} only undoes a change. Press Undo on the card of that.")
        with as_tool_error(tool.name):
            # a question is opened unanswered: what people fill in is validated
            empty = tool.kind.is_form
            if empty:
                arguments = dict(request.arguments)
            else:
                arguments = await tool.check_arguments(dict(request.arguments))
        before = await self.database.read(
            arrive.find_opened_before, request, tool.digest(arguments), self.clock()
        )
        if before:
            return await _same(before, tool, arguments)
        if await self.database.read(self._has_enough, request.actor):
            raise TooMuch(
                f"{self.bounds.open_by_person:,} of your proposals wait for a decision already. "
                "Try again once some are decided."
            )
        verdict = await self._judge(tool, arguments, request)
        undo = verdict.undo.total_seconds() if verdict.undo else 0.0
        with as_tool_error(tool.name):
            preview = await preview_of(tool, arguments)
            title = await title_of(tool, arguments)
            verdict = await undoable(tool, arguments, preview, verdict)
            like = await tool.likeness(arguments)
        await self.keep_schema(tool)
        if request.ttl is not None:
            verdict = replace(verdict, ttl=min(request.ttl, verdict.ttl))
        drafted = draft(
            tool, arguments, preview, verdict, request.actor, request.reason, self.clock(), title=title
        )
        drafted = replace(drafted, agent=request.agent)
        if tool.trying and drafted.state is State.PROPOSED and not await self.is_paused():
            judged = JudgedCall(
                Call("", tool.name, "{}", title), like=like, tries=tool, undo=undo, proposal=drafted
            )
            drafted = (await self._try_call(judged)).proposal or drafted
        opened = await self.database.write(
            arrive.open_request,
            self.policies,
            request,
            drafted,
            like,
            self.process,
            drafted.created_at,
        )
        if opened.again:
            return await _same(opened, tool, arguments)
        return opened

    async def is_paused(self) -> bool:
        """Tell if everything is paused."""
        return bool((await self.database.read(self.policies.load)).book.paused)

    def _has_enough(self, session: Session, actor: Actor) -> bool:
        accounts = people.person_of(session, actor).accounts
        most = self.bounds.open_by_person
        return proposals.waiting_of(session, accounts, most) >= most

    def _note_misfits(self, policy: Policy, tool: Tool) -> None:
        """Log, once for each version of a tool, which rules fit it no longer."""
        for number, why in policy.book.misfits({tool.name: tool.form}).items():
            if (number, tool.version) not in self._misfits:
                self._misfits.add((number, tool.version))
                log.warning("a rule does not fit its tool", rule=number, why=why)

    async def _judge(self, tool: Tool, arguments: Mapping[str, Any], request: Request) -> Verdict:
        connection = tool.connection
        if tool.is_personal and request.agent is None:
            raise Refused(f"{tool.name} runs as a person, so it is asked for in a conversation with Nod.")
        if connection and tool.is_personal and connection.server not in request.servers:
            raise Refused(_NOT_AS_PERSON.format(server=connection.server, person=request.actor.label))
        policy, person = await self.groups.read(self.policies.load_for, request.actor)
        home = str(request.actor) if request.agent else ""
        place = Place(str(request.address), request.private, home)
        with as_tool_error(tool.name):
            facts = tool.call(arguments, tool.classify(arguments), place, person, self.clock())
            verdict = policy.judge(judge_addresses(facts, tool, policy))
        if verdict.judgement is Judgement.REFUSE:
            raise Refused(verdict.rule)
        return require_owner(verdict, connection) if verdict.risk.writes else verdict

    async def look(self, tool: Tool, arguments: Mapping[str, Any], request: Request) -> CallResult | None:
        """Run a read that the rules allow without approval, or return None if it needs approval.

        Raises Refused if it can't be proposed either.
        """
        verdict = await self._judge(tool, arguments, request)
        if verdict.judgement is not Judgement.RUN or verdict.risk.writes:
            return None
        context = context_of_request(request)
        with hiding(secrets_in(arguments, tool.parameters)):
            try:
                output = await run_tool(tool, arguments, context)
                return CallResult(output.text, ok=True, files=output.files)
            except Exception as error:  # noqa: BLE001 - a tool's own code; the requester is told
                return CallResult(f"ERROR: {describe_and_log(error, tool.name)}", ok=False)

    async def keep_schema(self, tool: Tool) -> None:
        """Store a tool's schema before its first proposal, once for each version."""
        if (tool.name, tool.version) not in self._kept:
            await self.database.write(proposals.store_schema, tool.name, tool.version, tool.form)
            self._kept.add((tool.name, tool.version))

    async def read(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        conversation: Conversation,
        asker: Actor | None = None,
        show: Callable[[str], Awaitable[None]] | None = None,
    ) -> CallResult:
        """Run a call that changes nothing, and return its result or its error for the model.

        ``asker`` is the caller, where that is not who began the conversation. ``show`` is told the progress.
        """
        context = CallContext(conversation.id, str(asker or conversation.requester))
        secrets = secrets_in(arguments, tool.parameters)
        if show is not None:
            context = replace(context, progress=Progress(self.clock, IN_TURNS, show, secrets))
        room = self._reading.setdefault(conversation.id, asyncio.Semaphore(_READS_TOGETHER))
        with hiding(secrets):
            try:
                async with room:
                    output = await run_tool(tool, arguments, context)
            except Exception as error:  # noqa: BLE001 - a tool's own code; the model is told
                return CallResult(f"ERROR: {describe_and_log(error, tool.name)}", ok=False)
            for file in output.files:
                await self.database.write(outputs_store.store_output, conversation.id, file, self.clock())
            return CallResult(
                await self._fitting(File(f"{tool.name}.txt", output.text), conversation), ok=True
            )

    async def _fitting(self, file: File, conversation: Conversation) -> str:
        """Cut a text to the limit of one result, with a handle for reading the rest."""
        if "output_read" in (await self.registry.available()).tools:
            return await outputs.cut(self.database, conversation.id, file, self.clock)
        return bound_text(file.text)


@dataclass(frozen=True, slots=True)
class _Case:
    """The context shared by all calls of one answer."""

    available: AvailableTools
    whole: AvailableTools
    transcript: Transcript
    said: str
    policy: Policy
    person: Person
    asked: Mapping[str, str]  # by digest: who declined it since a person last asked; empty: it is open
    place: Place
    zone: tzinfo | None  # of the person who asks, where it is known


def _ask_to_read(case: _Case, tool: Tool, facts: CallFacts) -> tuple[Tool, Verdict, str] | None:
    """Return a read as people are asked about it, and why they are; None where it may run.

    Raises Refused where they said no, or are being asked.
    """
    why = find_missing_consent(tool, case.transcript, case.person.accounts)
    if not why:
        return None
    if case.asked.get(tool.digest(facts.arguments)) is not None:
        raise Refused(_IS_OPEN)
    verdict = case.policy.judge(replace(facts, kind=kinds.READING))
    if verdict.judgement is Judgement.REFUSE:
        raise Refused(verdict.rule)
    return replace(tool, kind=kinds.READING), verdict, why


def _describe(tool: Tool, risk: Risk, place: Place, person: Person, at: datetime) -> CallFacts:
    """Return the facts on any call of a tool there."""
    return CallFacts(tool.name, risk, place, person, at, identity=tool.identity)


def judge_addresses(
    call: CallFacts, tool: Tool, policy: Policy, transcript: Transcript | None = None
) -> CallFacts:
    """Return the call as a write if it would send an unknown address to another server."""
    # a default is the tool's own: no one could have put into it what was read
    given = without_defaults(call.arguments, defaults_of(tool.form))
    addresses = () if call.risk.writes or not tool.open_world else tuple(outward.find_addresses(given))
    if not addresses:
        return call
    known = (
        outward.find_known(transcript, call.requester.accounts, tool.name, addresses)
        if transcript is not None
        else ()
    )
    return replace(call, risk=outward.judge_addresses(call.risk, addresses, known, policy.book.hosts(call)))


async def _same(opened: Opened, tool: Tool, arguments: Mapping[str, Any]) -> Opened:
    """Return the proposal opened before under this key. Raises KeyTaken if it is for another call.

    Edits by people do not count as a difference.
    """
    p = opened.proposal
    same = p.edited_by is not None or p.digest == digest(tool.name, p.tool_version, arguments, p.connection)
    if p.tool_name != tool.name or not (same or await tool.is_same_call(p.arguments, arguments)):
        raise KeyTaken
    return opened


def _answer_call(call: ToolCall, summary: str, text: str, *, outside: bool = False) -> JudgedCall:
    kept = Call(call.id, call.name, call.arguments, summary)
    return JudgedCall(kept, result=CallResult(text, ok=False, outside=outside))


def apply_effects(
    session: Session,
    turn: Turn,
    available: AvailableTools,
    message_id: int,
    judged: Sequence[JudgedCall],
    results: dict[str, CallResult],
    now: datetime,
) -> list[Job]:
    """Apply the calls that change only Nod's own rows, in their order, and store their results."""
    transcript = turn.transcript
    reach = frozenset(t.name for t in available if t.group != team.GROUP)
    jobs: list[Job] = []
    for call, (tool, arguments) in ((c.call, c.effect) for c in judged if c.effect):
        moment = Moment(transcript.conversation, transcript.asker, f"{message_id}:{call.id}", reach, now)
        try:
            if tool.effect is None:
                raise ToolError(f"{tool.name} has no effect.")
            done = tool.effect(session, moment, arguments)
        except ToolError as error:
            results[call.id] = CallResult(f"ERROR: {error.message}", ok=False)
        else:
            results[call.id] = CallResult(done.text, ok=True)
            jobs += done.jobs
    messages.add_results(session, message_id, results)
    return jobs


def context_of_request(request: Request) -> CallContext:
    """Return the context of a request's tool: an agent's runs under its person's connections."""
    whose = str(request.actor) if request.agent else ""
    return CallContext(
        request.into or "",
        str(request.actor),
        connected_as=whose,
        depth=request.depth,
        agent=request.agent or "",
    )


def _context_of(transcript: Transcript) -> CallContext:
    return CallContext(transcript.conversation.id, str(transcript.asker))

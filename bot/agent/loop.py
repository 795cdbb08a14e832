"""The agent loop: ask the model, run its reads, turn its writes into proposals, until the turn ends or waits.

A turn is the agent's work on a conversation, from a message to the answer without further calls. Callers run
one by iterating over `Loop.run`, which yields a `TurnEvent` for each thing that people may see, such as a
piece of text. Each round of the loop gets one answer of the model, judges its calls
(``bot/approvals/gate.py``), and commits the answer with its proposals. All text is committed before the event
that ends the turn.

A turn that opens proposals ends as ``WAITING``. After that it exists only in the database. A new turn
continues once every call of that answer has ended (`settle_answer` in ``bot/approvals/team/teammates.py``).
Running a turn again from its rows is safe, because a turn writes only its own rows.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from bot.agent.attachments import AttachmentReader
from bot.agent.history import make_history
from bot.agent.history_parts import quote_voice_messages_before, size_of
from bot.agent.model_output import ModelOutput
from bot.agent.models import MIN_CHARS_PER_TOKEN, Models
from bot.agent.prompt import Briefing, system_prompt, write_surroundings
from bot.agent.reasoning_filter import ReasoningFilter
from bot.agent.summary import write_summary
from bot.agent.transactions import (
    CONTINUE_NOTE,
    commit_answer,
    end_if_nothing_to_answer,
    fail_turn,
    post_notice_once,
    store_notice_for_admins,
    store_summary,
)
from bot.approvals import agent_questions, budgets
from bot.approvals.gate import Gate
from bot.approvals.judged_calls import JudgedCall
from bot.approvals.team import plans
from bot.approvals.tool_visibility import FILES
from bot.domain.chat import Clock
from bot.domain.conversations import (
    Call,
    CallResult,
    Line,
    LineRole,
    Transcript,
    Turn,
    Usage,
    keep_to_one_person,
)
from bot.domain.events import (
    AnswerBegun,
    Ending,
    ProposalOpened,
    TextDelta,
    TextRestarted,
    ThoughtDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnDelayed,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.domain.hooks import Hooks
from bot.domain.jobs import Job, Work
from bot.domain.model import (
    Busy,
    Entry,
    Finished,
    LeftOut,
    Model,
    Retracted,
    StopReason,
    Text,
    Thought,
    ToolCall,
    ToolSpec,
)
from bot.domain.people import Actor
from bot.domain.plans import find_current_plan, list_finished_steps
from bot.domain.prices import Prices
from bot.domain.proposals import Proposal
from bot.domain.redaction import hide_values, redact_arguments, secrets_in
from bot.domain.rule_values import Subject
from bot.domain.teams import TeamLimits, Teammate
from bot.domain.work_limits import CALLS_PER_ANSWER
from bot.errors import ModelCut, ModelEmpty, ModelError, ModelTooLong, ModelTooManySteps, TakenOver
from bot.store import teams
from bot.store.connections import get_connections
from bot.store.database import Database
from bot.telemetry import tracing
from bot.telemetry.logs import logger
from bot.telemetry.outages import describe_outage
from bot.tools.call import CallContext
from bot.tools.registry import AvailableTools
from bot.tools.tool import Tool

log = logger(__name__)

# requests that are repeated
_MAX_RETRIES = 2  # for a request whose answer was cut off, empty, or a call written as text
_SHARE_KEPT_AFTER_TOO_LONG = 2 / 3  # of a history that the model called too long
_SHARE_KEPT_AFTER_CUT = 1 / 2  # of a history that failed without the model calling it too long
_MIN_CHARS_TO_HALVE = 10_000  # a shorter history is not halved

# texts for people
_BROKEN_TEXT = "Something failed on my side. Send “continue” to try again. The log has the details."
_CUT_SHORT_TEXT = "\n\n(My answer ran into its length limit and stops here.)"
_FILTERED_TEXT = "\n\n(The provider of the language model withheld the rest of this answer.)"
_STAND_IN_TEXT = "{} gives no answers now, so {} at {} answers in its place: what is said here goes there."
_TOOL_REFUSED_TEXT = "The server of the model {} refuses the tool {}. I work without it there. It says: “{}”"
_SUMMARY_TEXT = "I'm summing up what was said long ago."
_PARAGRAPH_BREAK = "\n\n"  # between two answers of one turn
_TEXT_OF_STOP = {StopReason.LENGTH: _CUT_SHORT_TEXT, StopReason.FILTERED: _FILTERED_TEXT}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a turn."""

    model_calls: int = 12  # the most answers of the model
    history_tokens: int | None = None  # about the most tokens of history; None: by the model's window
    team: TeamLimits = field(default_factory=TeamLimits)


@dataclass(frozen=True, slots=True)
class FollowUpJobs:
    """Jobs that a turn yields among its events. The caller starts them immediately, and shows nothing."""

    jobs: tuple[Job, ...]


@dataclass(slots=True)
class _Run:
    """The state of a running turn: its transcript, what it has said so far, and how it ended."""

    turn: Turn
    is_streamed: bool  # the text is displayed while it is written, so it is not posted later
    texts: list[str] = field(default_factory=list)  # the texts of the turn's answers so far
    ending: Ending | None = None
    message_id: int | None = None  # the id of the turn's last stored answer
    tried_summary: bool = False  # a summary was asked for in this turn, and maybe not written


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to the model, which may be repeated. A refused request may be followed by a shorter one."""

    model: Model
    max_chars: int  # the most characters of history
    history: Sequence[Entry]
    to_summarise: Sequence[Line]  # the oldest lines, if a summary of them should be written first
    is_shortened: bool = False  # it is shorter than a request that the server refused
    is_halved: bool = False  # it was shortened although the server did not call it too long
    attempt: int = 0  # how often the request was repeated


class _Read(NamedTuple):
    """A call that only reads, with its tool."""

    call: Call
    tool: Tool
    arguments: Mapping[str, Any]


@dataclass(eq=False)
class Loop:
    """The runner of turns, one after the other or side by side."""

    models: Models
    gate: Gate
    database: Database
    clock: Clock
    limits: TurnLimits
    briefing: Briefing
    attachments: AttachmentReader
    prices: Prices = field(default_factory=Prices)
    hooks: Hooks = field(default_factory=Hooks)

    async def run(self, turn: Turn, *, is_streamed: bool) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Run a turn to its end, yielding its events. Raises TakenOver if another process has taken it over.

        ``is_streamed``: the caller displays the text while it is written, so it is stored as posted.
        """
        run = _Run(self._keep_to_one_person(turn), is_streamed=is_streamed)
        asker = run.turn.transcript.asker
        try:
            context = CallContext(turn.transcript.conversation.id, str(asker))
            available = (await self.gate.registry.load_tools(context)).model_tools
            while run.ending is None:
                async for event in self._advance(run, available):
                    yield event
                if run.ending is None:  # read the answer just stored, and newer messages
                    yield FollowUpJobs(await self._read_newer_lines(run, asker))
        except TakenOver:
            raise
        except Exception as error:  # people are told that it failed, and may write again
            if describe_outage(error):
                raise  # the database can't be reached; the turn is run again from its rows
            if not isinstance(error, ModelError):
                log.error("a turn failed", conversation=turn.transcript.conversation.id, exc_info=error)
            async for event in self._end_failed(run, error):
                yield event
        else:
            seen = run.turn.transcript.last_heard_id  # the id of the newest line that the turn has read
            yield TurnEnded(run.ending, seen, _join_paragraphs(run.texts), run.message_id)

    async def _advance(self, run: _Run, available: AvailableTools) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Do one round of the loop: update the stored state, or answer once, or end without an answer."""
        jobs = await self._bring_up_to_date(run.turn.transcript)
        if jobs is not None:
            yield FollowUpJobs(jobs)
        elif run.turn.transcript.awaits_answer:
            async for event in self._answer_once(run, available):
                yield event
        elif await self.database.write(end_if_nothing_to_answer, run.turn, self.clock()):
            run.ending = Ending.WAITING  # for people: for their decisions, or for their next message

    async def _end_failed(self, run: _Run, error: Exception) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """End the turn because of ``error``, and yield the events that tell people."""
        explanation = _BROKEN_TEXT
        is_temporary = False
        choices = ModelError.choices  # messages that people may send by a button
        if isinstance(error, ModelError):
            explanation = error.message
            is_temporary = error.is_transient
            choices = error.choices
        fail = partial(fail_turn, is_streamed=run.is_streamed, is_temporary=is_temporary)
        notice, jobs = await self.database.write(fail, run.turn, explanation, self.clock())
        if jobs:
            yield FollowUpJobs(jobs)
        seen = run.turn.transcript.last_heard_id
        if notice:
            yield TurnFailed(notice, seen, choices)
        else:  # people were told of the failure before; the turn waits for its retry
            yield TurnEnded(Ending.WAITING, seen, _join_paragraphs(run.texts), run.message_id)

    async def _reload_transcript(self, run: _Run) -> None:
        current = run.turn.transcript
        newer = await self.database.read(teams.read_transcript, current.conversation.id)
        run.turn = self._keep_to_one_person(replace(run.turn, transcript=newer or current))

    async def _read_newer_lines(self, run: _Run, asker: Actor) -> tuple[Job, ...]:
        """Read the transcript again.

        If the turn is for one person and another person has written since, the turn ends, and the job of the
        next turn is returned.
        """
        await self._reload_transcript(run)
        if not self._serves_persons or str(run.turn.transcript.asker) == str(asker):
            return ()
        run.ending = Ending.DONE  # the other person's message begins a new turn
        return (Job(Work.TURN, run.turn.transcript.conversation.id),)

    @property
    def _serves_persons(self) -> bool:
        """True where calls may be made as people, so that a turn is one person's."""
        return get_connections(self.database) is not None

    def _keep_to_one_person(self, turn: Turn) -> Turn:
        """Return the turn without later messages of other people: these begin the next turn."""
        if not self._serves_persons:
            return turn
        return replace(turn, transcript=keep_to_one_person(turn.transcript))

    async def _read_attachments(self, run: _Run) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Read the attached files, and tell people which of them can't be read."""
        transcript = run.turn.transcript
        names = ", ".join(upload.name for upload in transcript.unread)
        yield TurnDelayed(f"Reading {names}.")
        model = await self._choose_model(transcript)
        pictures = self.models.settings_of(model).images
        if await self.attachments.make_ready(transcript, pictures=pictures, is_streamed=run.is_streamed):
            yield FollowUpJobs((Job(Work.DELIVER, transcript.conversation.id),))
        await self._reload_transcript(run)

    async def _bring_up_to_date(self, transcript: Transcript) -> tuple[Job, ...] | None:
        """Withdraw questions to people that newer messages made pointless.

        Without such questions, mark the plan's finished steps. Returns the jobs that follow, or None if
        nothing changed.
        """
        outdated = agent_questions.list_answered_by_message(transcript)
        if outdated:
            return await self.database.write(agent_questions.withdraw, outdated, self.clock)
        plan_and_steps = _find_done_steps(transcript)
        if plan_and_steps:
            return await self.database.write(plans.store_ticked_steps, *plan_and_steps, self.clock())
        return None

    async def _answer_once(
        self, run: _Run, available: AvailableTools
    ) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Ask the model once, run its reads, and commit what it said and proposed."""
        # prepare
        if run.turn.transcript.unread:
            async for event in self._read_attachments(run):
                yield event
        usage_before = run.turn.usage
        await self._check_bounds(run.turn)

        # ask; an answer to voice messages begins with a quotation of their words
        yield AnswerBegun(run.turn.key(usage_before.model_calls + 1))
        is_group = not run.turn.transcript.conversation.private and run.turn.transcript.teammate is None
        answer = ModelOutput(may_be_silent=is_group)
        quotation = quote_voice_messages_before(run.turn.transcript)
        async for event in self._get_answer_after(quotation, run, available, answer):
            yield event
        finished = answer.finished
        if finished is None:
            raise ModelCut
        # an answer that was cut is continued once: a note asks the model for the rest
        will_continue = finished.stop is StopReason.LENGTH and not _was_continued(run.turn.transcript)
        note = _TEXT_OF_STOP.get(finished.stop)
        if note and not will_continue:
            yield TextDelta(answer.add(note))
        text = f"{quotation}{answer.text}"

        # judge the calls, and run those that only read
        calls = _list_calls(finished)
        judged_calls: list[JudgedCall] = []
        results: dict[str, CallResult] = {}  # by the ids of calls
        async for event in self._handle_calls(
            calls, available, run.turn.transcript, text, judged_calls, results
        ):
            yield event

        # commit all of it
        run.turn = replace(run.turn, usage=self._add_usage(run.turn.usage, answer.model, finished))
        run.texts.append(text)
        commit = partial(
            commit_answer,
            policies=self.gate.policies,
            turn=run.turn,
            available=available,
            text=text,
            judged_calls=_add_server_fields(judged_calls, calls),
            results=results,
            now=self.clock(),
            is_streamed=run.is_streamed,
            will_continue=will_continue,
            usage_before=usage_before,
        )
        committed = await self.database.write(commit)
        run.ending = committed.ending
        run.message_id = committed.message_id or run.message_id
        if committed.jobs:
            yield FollowUpJobs(committed.jobs)
        for proposal in committed.opened:
            yield ProposalOpened(proposal)

    async def _get_answer_after(
        self, quotation: str, run: _Run, available: AvailableTools, answer: ModelOutput
    ) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Get the model's answer, and yield its events. The quotation, if there is one, stands before it."""
        has_earlier_text = any(text.strip() for text in run.texts)
        if quotation:
            yield TextDelta(quotation)
        async for event in self._get_answer(run, available, answer, has_earlier_text=has_earlier_text):
            yield event
            if quotation and isinstance(event, TextRestarted):
                yield TextDelta(quotation)

    async def _handle_calls(
        self,
        calls: Sequence[ToolCall],
        available: AvailableTools,
        transcript: Transcript,
        text: str,
        judged_calls: list[JudgedCall],
        results: dict[str, CallResult],
    ) -> AsyncIterator[TurnEvent]:
        """Judge the calls of an answer, run those that only read, and yield the events of both.

        Fills ``judged_calls``, and ``results`` for the calls that have a result by then, by their ids.
        """
        async for event in self._judge(judged_calls, available, calls, transcript, text):
            yield event
        results.update({judged.call.id: judged.result for judged in judged_calls if judged.result})
        for refused in _report_refused(judged_calls, available):
            yield refused
        reads = [
            _Read(judged.call, judged.read.tool, judged.read.arguments)
            for judged in judged_calls
            if judged.read
        ]
        async for progress in self._run_reads(reads, transcript, results):
            yield progress

    async def _check_bounds(self, turn: Turn) -> None:
        """Raise ModelError if the turn may not call the model again: by a limit, a feature or a budget."""
        if _count_steps(turn) >= self.limits.model_calls:
            raise ModelTooManySteps
        if turn.transcript.teammate:
            reached_bound = self._find_reached_bound(turn.transcript.teammate)
            if reached_bound:
                raise ModelError(reached_bound)
        for stop_model_call in self.hooks.stop_model_call:
            why = await stop_model_call(turn.transcript)
            if why:
                raise ModelError(why)
        # the rules as they were last read: when the turn began, or later
        book = self.gate.policies.latest_policy.book
        if book.list_about(Subject.BUDGET):
            await self.database.read(budgets.check_budgets, book, turn, self.clock())

    async def _get_answer(
        self, run: _Run, available: AvailableTools, answer: ModelOutput, *, has_earlier_text: bool
    ) -> AsyncIterator[TextDelta | ThoughtDelta | TextRestarted | TurnDelayed | FollowUpJobs]:
        """Get the model's answer, repeating the request as often as needed.

        A request that is too long is repeated with less history, and later ones stay that short. An answer
        that was cut, is empty, or holds a call written as text is asked for again, a few times. If the model
        can't answer, its stand-in does.

        ``has_earlier_text``: the turn has said something before, so this answer begins a new paragraph.
        """
        transcript = run.turn.transcript
        offered = await self.gate.list_tools_for_model(available, transcript)
        specs = tuple(tool.spec for tool in offered)
        specs_chars = sum(spec.size for spec in specs)
        zone = await self.gate.time_zone(transcript)
        briefing = self.briefing.adapt_to_asker(zone, private=transcript.conversation.private)
        prompt = await self._write_prompt(transcript, offered, briefing)
        chosen = await self._choose_model(transcript)
        with_pictures = await self._load_pictures(transcript)

        def make_request(model: Model, max_chars: int) -> _Request:
            current = run.turn.transcript  # it has a summary by now, if one was written
            takes_images = self.models.settings_of(model).images
            sent = replace(with_pictures, summary=current.summary) if takes_images else current
            history = make_history(sent, prompt, max_chars, briefing.zone)
            return _Request(model, max_chars, history.entries, history.to_summarise)

        # choose the model, and give it a history that fits
        model = self.models.choose_reachable(chosen)
        if model is not chosen:
            yield await self._tell_stand_in(transcript, chosen, model)
        request = make_request(model, self.models.max_history_chars(model, specs_chars))
        if request.to_summarise and not run.tried_summary:
            yield TurnDelayed(_SUMMARY_TEXT)
            await self._summarise(run, request)
            request = make_request(model, request.max_chars)

        steps = self._ask_until_answered(
            request, chosen, make_request, transcript, specs, answer, has_earlier_text=has_earlier_text
        )
        async for event in steps:
            yield event

    async def _ask_until_answered(
        self,
        request: _Request,
        chosen: Model,
        make_request: Callable[[Model, int], _Request],
        transcript: Transcript,
        specs: Sequence[ToolSpec],
        answer: ModelOutput,
        *,
        has_earlier_text: bool,
    ) -> AsyncIterator[TextDelta | ThoughtDelta | TextRestarted | TurnDelayed | FollowUpJobs]:
        """Send a request, and others in its place, until there is an answer. Raises ModelError without one.

        ``chosen``: the model by the rules. ``make_request``: it makes a request to a model, with at most this
        many characters of history.
        """
        specs_chars = sum(spec.size for spec in specs)
        while True:
            try:
                async for event in self._stream_answer(
                    request, specs, answer, has_earlier_text=has_earlier_text
                ):
                    yield event
                self.models.note_answer(request.model)
                if request.is_shortened:
                    self.models.note_accepted(request.model, request.max_chars + specs_chars)
                # a call written as text is asked for as a real call, but only in the first attempt
                correction = answer.make_correction(specs) if request.attempt == 0 else ()
                if not correction:
                    return
                with_correction = [*request.history, *correction]
                request = replace(request, history=with_correction, attempt=request.attempt + 1)
            except ModelError as error:
                shorter = _shorten_request(request, error, answer, specs_chars, make_request)
                may_retry = isinstance(error, ModelCut | ModelEmpty) and request.attempt < _MAX_RETRIES
                if shorter:
                    request = shorter
                elif may_retry:
                    request = replace(request, attempt=request.attempt + 1)
                else:  # another model answers instead, once
                    stand_in = self._find_stand_in(request.model, error)
                    was_stand_in = request.model is not chosen
                    if stand_in is None or was_stand_in:
                        raise
                    max_chars = self.models.max_history_chars(stand_in, specs_chars)
                    request = make_request(stand_in, max_chars)
                    yield await self._tell_stand_in(transcript, chosen, stand_in)
            if answer.restart():
                yield TextRestarted()

    async def _load_pictures(self, transcript: Transcript) -> Transcript:
        """Return the transcript with its pictures, if any model takes pictures."""
        if transcript.files and self.models.any_takes_pictures:
            return await self.attachments.with_pictures(transcript)
        return transcript

    def _find_stand_in(self, model: Model, error: ModelError) -> Model | None:
        """Note the failure of a model, and return its stand-in; None if no other model may answer."""
        if not isinstance(error, ModelEmpty | ModelTooLong):  # these are no failures of the model
            self.models.note_fault(model, error)
        if error.other_model_may_answer:  # the model can't be reached, or its account is used up
            return self.models.stand_in(model)
        return None

    async def _summarise(self, run: _Run, request: _Request) -> None:
        """Have the model summarise the oldest lines. If it writes nothing, they stay cut or left out."""
        turn = run.turn
        last_id = request.to_summarise[-1].id
        now = self.clock()
        run.tried_summary = True
        try:
            text, finished = await write_summary(
                request.model, turn.transcript, request.to_summarise, request.max_chars
            )
        except ModelError as error:
            log.warning("no summary was written", model=request.model.name, why=error.message)
            return
        with_summary = self._add_usage(turn.usage, request.model.name, finished)
        usage = replace(with_summary, model_calls=turn.usage.model_calls)  # a summary is no answer
        await self.database.write(store_summary, turn, text, last_id, usage, now)
        summary = Line(
            id=0,  # only the stored line has an id
            role=LineRole.SUMMARY,
            text=text,
            after=last_id,
            actor=None,
            calls=(),
            results={},
            created_at=now,
        )
        run.turn = replace(turn, transcript=replace(turn.transcript, summary=summary), usage=usage)

    async def _choose_model(self, transcript: Transcript) -> Model:
        """Return the model that the rules name for this conversation, by default the first."""
        book = self.gate.policies.latest_policy.book
        if book.list_about(Subject.MODEL):
            return await self.database.read(self.models.choose, book, transcript)
        return self.models.default

    async def _tell_stand_in(self, transcript: Transcript, model: Model, stand_in: Model) -> FollowUpJobs:
        """Announce, once a day, that another model will receive the conversation."""
        notice = _STAND_IN_TEXT.format(model.name, stand_in.name, self.models.settings_of(stand_in).host)
        return FollowUpJobs(await self.database.write(post_notice_once, transcript, notice, self.clock()))

    async def _tell_refused(self, model: Model, reasons: Mapping[str, str]) -> None:
        """Tell the admins which tools the model's server refuses. ``reasons``: its words by a tool's name."""
        if not reasons:
            return
        notices = [_TOOL_REFUSED_TEXT.format(model.name, name, why) for name, why in reasons.items()]
        text = "\n".join(notices)
        await self.database.write(store_notice_for_admins, self.gate.policies, text, self.clock())

    async def _write_prompt(self, transcript: Transcript, offered: AvailableTools, briefing: Briefing) -> str:
        """Return the system prompt: the fixed rules first, then the facts of this conversation."""
        now = self.clock()
        book = self.gate.policies.latest_policy.book
        workspace = ""
        if self.briefing.read_workspace and any(tool.group == FILES for tool in offered):
            workspace = await asyncio.to_thread(self.briefing.read_workspace)
        instructions: Sequence[str] = ()
        if book.list_about(Subject.INSTRUCTIONS):
            instructions = book.instructions(str(transcript.conversation.origin))
        sections = [await add_section(transcript, now) for add_section in self.hooks.add_to_prompt]
        surroundings = write_surroundings(transcript, now, briefing, instructions, sections)
        return system_prompt(offered, transcript.teammate, briefing, workspace, surroundings)

    async def _stream_answer(  # noqa: C901 - one case for each part of an answer
        self, request: _Request, specs: Sequence[ToolSpec], answer: ModelOutput, *, has_earlier_text: bool
    ) -> AsyncIterator[TextDelta | TextRestarted | ThoughtDelta | TurnDelayed | FollowUpJobs]:
        """Stream the answer to a request into ``answer``, yielding what to display of it.

        Raises ModelEmpty if the answer is empty.
        """
        thoughts = ReasoningFilter()
        answer.model = request.model.name
        async for part in request.model.stream(request.history, specs):
            thought = thoughts.add(part.text) if isinstance(part, Thought) else thoughts.rest()
            if thought:
                yield ThoughtDelta(thought)
            match part:
                case Busy(notice):
                    yield TurnDelayed(notice)
                case Text(text):
                    shown = _add_text(answer, text, has_earlier_text=has_earlier_text)
                    if shown:
                        yield TextDelta(shown)
                case Retracted():
                    if answer.restart():
                        yield TextRestarted()
                case LeftOut(tools):
                    self.models.note_refused(request.model, tools, specs)
                    await self._tell_refused(request.model, tools)
                case Finished():
                    answer.finished = part
                case Thought():
                    pass
        remainder = answer.flush()
        if remainder:
            yield TextDelta(remainder)
        if self._take_written_calls(request, specs, answer):
            yield TextRestarted()
            before = _PARAGRAPH_BREAK if has_earlier_text else ""
            yield TextDelta(before + answer.text)
        if answer.is_empty:
            raise ModelEmpty

    def _take_written_calls(self, request: _Request, specs: Sequence[ToolSpec], answer: ModelOutput) -> bool:
        """Take the calls that an answer contains as text. Return True if there were any.

        A model that writes calls even after it was asked not to is noted in ``Models.text_callers``.
        """
        was_corrected = request.attempt > 0 or request.model.name in self.models.text_callers
        has_calls = answer.take_written_calls(specs, request.history, was_corrected=was_corrected)
        if has_calls and request.attempt:
            self.models.text_callers.add(request.model.name)
        return has_calls

    async def _judge(
        self,
        judged: list[JudgedCall],
        available: AvailableTools,
        calls: Sequence[ToolCall],
        transcript: Transcript,
        text: str,
    ) -> AsyncIterator[TurnDelayed]:
        """Judge the calls of an answer into ``judged``, and yield an event for each trial.

        A trial runs a call without lasting effect, so that its card shows what the call would change.
        """

        async def consider_calls(report: Callable[[TurnDelayed], None]) -> None:
            async def report_trial(text: str) -> None:
                report(TurnDelayed(text))

            judged.extend(await self.gate.consider(available, calls, transcript, text, report_trial))

        async for waited in _yield_reports(consider_calls):
            yield waited

    async def _run_reads(
        self, reads: Sequence[_Read], transcript: Transcript, results: dict[str, CallResult]
    ) -> AsyncIterator[ToolStarted | ToolProgress | ToolFinished]:
        """Run reads side by side, put their results into ``results``, and yield their events."""
        if not reads:
            return
        for call, tool, arguments in reads:
            redacted = redact_arguments(arguments, tool.parameters)
            yield ToolStarted(call.id, call.tool_name, call.summary, redacted)

        async def run_read(
            call: Call, tool: Tool, arguments: Mapping[str, Any], report: Callable[[ToolProgress], None]
        ) -> None:
            async def report_progress(text: str) -> None:
                report(ToolProgress(call.id, call.tool_name, text))

            with tracing.trace_read(call.tool_name, call.id) as span:
                result = await self.gate.read(
                    tool, arguments, transcript.conversation, transcript.asker, report_progress
                )
                results[call.id] = result
                if not result.ok:
                    span.fail("tool_error")

        async def run_all(report: Callable[[ToolProgress], None]) -> None:
            await asyncio.gather(*(run_read(*read, report) for read in reads))

        async for progress in _yield_reports(run_all):
            yield progress
        for call, tool, arguments in reads:
            result = results[call.id]
            shown = hide_values(result.text, secrets_in(arguments, tool.parameters))
            yield ToolFinished(call.id, call.tool_name, result.ok, shown)

    def _add_usage(self, usage: Usage, model: str, finished: Finished) -> Usage:
        """Return the turn's usage with the tokens and the cost of one more answer."""
        cost = self.prices.cost(
            model, finished.prompt_tokens, finished.completion_tokens, finished.cached_tokens
        )
        total_cost = usage.cost
        if cost is not None:  # None: the model has no price
            total_cost = (usage.cost or 0.0) + cost
        return Usage(
            model_calls=usage.model_calls + 1,
            prompt_tokens=usage.prompt_tokens + finished.prompt_tokens,
            completion_tokens=usage.completion_tokens + finished.completion_tokens,
            cost=total_cost,
            model=model,
        )

    def _find_reached_bound(self, teammate: Teammate) -> str | None:
        """Return the limit that a teammate has reached over all its turns, in words, or None."""
        limits = self.limits.team
        if teammate.model_calls >= limits.model_calls:
            return f"It took {teammate.model_calls} steps, which is all that one teammate may take."
        if teammate.tokens >= limits.tokens:
            return f"It spent {teammate.tokens:,} tokens, which is all that one teammate may spend."
        return None


async def _yield_reports(work: Callable[[Callable[[T], None]], Awaitable[None]]) -> AsyncIterator[T]:
    """Yield the reports of ``work`` while it runs. Raises its exceptions."""
    reports: asyncio.Queue[T | None] = asyncio.Queue()  # None: there are no more
    task = asyncio.ensure_future(work(reports.put_nowait))
    task.add_done_callback(lambda _: reports.put_nowait(None))
    try:
        while (report := await reports.get()) is not None:
            yield report
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _find_done_steps(transcript: Transcript) -> tuple[Proposal, tuple[int, ...]] | None:
    """Return the approved plan and its finished steps, if its card does not show them all yet."""
    proposals = transcript.proposals.values()
    plan = find_current_plan(proposals)
    done_steps = list_finished_steps(plan, proposals) if plan else ()
    if plan and done_steps != plan.ticked:
        return (plan, done_steps)
    return None


def _was_continued(transcript: Transcript) -> bool:
    return bool(transcript.lines) and transcript.lines[-1].text == CONTINUE_NOTE


def _may_be_too_long(error: ModelError, answer: ModelOutput, attempt: int) -> bool:
    """Tell if the request may be too long for the model.

    Some servers just end the stream of a request that is too long. So the second cut before the first word
    counts as too long.
    """
    if isinstance(error, ModelTooLong):
        return True
    was_cut = isinstance(error, ModelCut) and not error.has_reason
    return was_cut and attempt > 0 and not answer.pieces


def _shorten_request(
    request: _Request,
    error: ModelError,
    answer: ModelOutput,
    specs_chars: int,
    make_request: Callable[[Model, int], _Request],
) -> _Request | None:
    """Return a request with less history if this one may have failed because it was too long, else None.

    Shortening does not count as an attempt.
    """
    sent_chars = size_of(request.history)
    may_halve = error.may_be_too_long and not request.is_halved and sent_chars >= _MIN_CHARS_TO_HALVE
    if not may_halve and not _may_be_too_long(error, answer, request.attempt):
        return None
    shorter = make_request(request.model, _next_history_chars(sent_chars, specs_chars, error))
    if size_of(shorter.history) >= sent_chars:
        return None
    is_halved = request.is_halved or may_halve
    return replace(shorter, is_shortened=True, is_halved=is_halved, attempt=request.attempt)


def _next_history_chars(sent_chars: int, specs_chars: int, error: ModelError) -> int:
    """Return the number of characters to try next after a history of ``sent_chars`` was refused.

    ``specs_chars``: the size of the tools' specifications, which share the model's window.
    """
    if error.window:
        window_chars = error.window * MIN_CHARS_PER_TOKEN - specs_chars
        if window_chars < sent_chars:
            return window_chars
    share = _SHARE_KEPT_AFTER_TOO_LONG if isinstance(error, ModelTooLong) else _SHARE_KEPT_AFTER_CUT
    return int(sent_chars * share)


def _count_steps(turn: Turn) -> int:
    """Return the number of model calls of this turn since its newest message.

    A message that joins the turn starts the count again.
    """
    transcript = turn.transcript
    answers = [line for line in transcript.lines if line.role is LineRole.ASSISTANT]
    # ``after``: the id of the newest message that an answer had read; ``last_heard_id``: of the newest of all
    since_newest = [answer for answer in answers if answer.after == transcript.last_heard_id]
    return min(turn.usage.model_calls, len(since_newest))


def _list_calls(finished: Finished) -> list[ToolCall]:
    """Return the calls of an answer. A cut answer has none, since its calls may be cut, too."""
    if finished.stop is StopReason.FINISHED:
        return _with_unique_ids(finished.calls)
    return []


def _with_unique_ids(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Give calls different ids: some servers repeat an id, and results are matched to calls by ids."""
    used_ids: set[str] = set()
    unique = []
    for position, call in enumerate(calls):
        is_repeated = call.id in used_ids
        new_id = f"{call.id}-{position}" if is_repeated else call.id
        used_ids.add(new_id)
        unique.append(replace(call, id=new_id))
    return unique


def _add_server_fields(judged_calls: Sequence[JudgedCall], calls: Sequence[ToolCall]) -> list[JudgedCall]:
    """Return judged calls with the extra fields that the model's server sent along with them."""
    extras = {call.id: call.extra for call in calls}
    return [
        replace(judged, call=replace(judged.call, extra=extras[judged.call.id])) for judged in judged_calls
    ]


def _report_refused(
    judged_calls: Sequence[JudgedCall], available: AvailableTools
) -> Iterator[ToolStarted | ToolFinished]:
    """Yield the events of calls that have a result without having run."""
    for judged in judged_calls[:CALLS_PER_ANSWER]:
        if judged.result:
            call = judged.call
            yield ToolStarted(call.id, call.tool_name, call.summary, available.arguments_of(call))
            yield ToolFinished(call.id, call.tool_name, ok=False, result=judged.result.text)


def _add_text(answer: ModelOutput, text: str, *, has_earlier_text: bool) -> str:
    """Add ``text`` to the answer and return what to display of it.

    ``has_earlier_text``: an earlier answer was displayed, so this one begins a new paragraph.
    """
    begins_paragraph = has_earlier_text and not answer.pieces
    shown = answer.add(text)
    if shown and begins_paragraph:
        return _PARAGRAPH_BREAK + shown
    return shown


def _join_paragraphs(texts: Sequence[str]) -> str:
    return _PARAGRAPH_BREAK.join(text for text in texts if text.strip())

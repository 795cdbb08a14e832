"""The agent loop: ask the model, run its reads, turn its writes into proposals, until the turn ends or waits.

`Loop.run` is an async generator of `TurnEvent`. Everything the turn says is committed before the event that
ends it. A turn that opens proposals ends as ``WAITING``: from then on it is rows, with no task and no memory.
It is resumed by a new turn once every call of that answer has ended (`settle` in
``bot/approvals/lifecycle.py``). Running a turn again from its rows is safe, because a turn never writes
anything but its own rows.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlmodel import Session

from bot.agent.attachments import AttachmentReader
from bot.agent.model_output import ModelOutput
from bot.agent.models import Models
from bot.agent.prompt import Briefing, system_prompt, write_surroundings
from bot.agent.reasoning_filter import ReasoningFilter
from bot.agent.summary import sum_up
from bot.agent.transcript import NOTE, history_of, size_of
from bot.approvals import asking, budgets, grants
from bot.approvals.gate import Gate, JudgedCall, apply_effects
from bot.approvals.kinds import find_procedure
from bot.approvals.team import plans, teammates
from bot.approvals.tool_visibility import FILES
from bot.domain.batches import assign_batches
from bot.domain.bounds import CALLS_PER_ANSWER
from bot.domain.chat import Address, Clock
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
    TurnEnded,
    TurnEvent,
    TurnFailed,
    Waited,
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
    Stop,
    Text,
    Thought,
    ToolCall,
    ToolSpec,
)
from bot.domain.people import Actor, Role
from bot.domain.plans import find_current_plan, list_carried_out
from bot.domain.prices import Prices
from bot.domain.proposals import Proposal
from bot.domain.record import Act
from bot.domain.redaction import redact_arguments, secrets_in, veil
from bot.domain.rules import Rulebook, Subject
from bot.domain.teams import TeamLimits, Teammate
from bot.errors import ModelCut, ModelEmpty, ModelError, ModelTooLong, ModelTooManySteps, TakenOver
from bot.store import conversations, messages, notices, teams, transitions, turns
from bot.store.audit.log import By
from bot.store.connections import get_connections
from bot.store.database import Database
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.telemetry import tracing
from bot.telemetry.logs import logger
from bot.telemetry.outages import in_a_line
from bot.tools.registry import AvailableTools
from bot.tools.tool import CallContext, Tool

log = logger(__name__)

_RETRIES = 2  # of an answer that was cut off, was empty, or was a call written as text
_BROKEN = "Something failed on my side. Send “continue” to try again. The log has the details."
_BY_MYSELF = "I'll continue by myself when it answers again."
_NO_LONGER = "I've tried for a day. Send “continue” once it answers again."
_PATIENCE = timedelta(days=1)  # with a model that gives no answers
_FIRST_PAUSE = timedelta(seconds=10)  # the next are as long as it has taken, up to `turns.LONGEST_PAUSE`
_CONTINUE = (
    f"{NOTE} Your answer reached its length limit and was cut. No call in it was used. Continue where it "
    "stops, and make calls with shorter arguments, one after the other."
)
_CUT_SHORT = "\n\n(My answer ran into its length limit and stops here.)"
_FILTERED = "\n\n(The provider of the language model withheld the rest of this answer.)"
_LESS, _HALF = 2 / 3, 1 / 2  # of a history that did not fit, or may not have
_LONG_CHARS = 10_000  # of a history of which half may be taken where all of it was refused
_LEAST_PER_TOKEN = 3  # characters, for a window that is known in tokens
_AWAY = "{} gives no answers now, so {} at {} answers in its place: what is said here goes there."
_REFUSED = "The server of the model {1} refuses the tool {0}. I work without it there. It says: “{2}”"
_SUMMING_UP = "I'm summing up what was said long ago."
_TOLD_FOR = timedelta(days=1)  # people know that another model answers
_BREAK = "\n\n"  # between what two answers of one turn say
_NOTES = {Stop.LENGTH: _CUT_SHORT, Stop.FILTERED: _FILTERED}

T = TypeVar("T")
_Read = tuple[Call, Tool, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a turn: calls of the model, and tokens of history that it is sent.

    ``history_tokens`` is approximate; None takes it from the model's context window.
    """

    model_calls: int = 12
    history_tokens: int | None = None
    team: TeamLimits = field(default_factory=TeamLimits)


@dataclass(frozen=True, slots=True)
class FollowUpJobs:
    """Follow-up work of an answer, to be started immediately and never shown."""

    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """The stored outcome of one answer of the model: its proposals, and the turn's end.

    ``ending`` is None while the turn continues, ``message_id`` where the answer was not stored.
    """

    opened: tuple[Proposal, ...]
    ending: Ending | None
    jobs: tuple[Job, ...] = ()
    message_id: int | None = None


@dataclass(slots=True)
class _Run:
    """The state of a running turn: its transcript, what it has said so far, and how it ended."""

    turn: Turn
    delivered: bool
    said: list[str] = field(default_factory=list)
    ending: Ending | None = None
    message_id: int | None = None  # of its last stored answer
    summed_up: bool = False  # it was tried


@dataclass(slots=True)
class _Request:
    """A request to the model, shortened as its server refuses it.

    ``learned``: it is shorter than one that the server refused. ``halved``: it was shortened although the
    server did not say that it was too long.
    """

    model: Model
    room: int  # characters
    history: Sequence[Entry]
    overdue: Sequence[Line]
    learned: bool = False
    halved: bool = False
    attempt: int = 0


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

    async def run(self, turn: Turn, *, delivered: bool) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Run a wanted turn to its end, yielding its events.

        ``delivered`` False: its text still has to be posted.
        """
        run = _Run(self._keep_to_one_person(turn), delivered)
        whose = run.turn.transcript.asker
        try:
            there = CallContext(turn.transcript.conversation.id, str(whose))
            available = (await self.gate.registry.available(there)).offered
            while run.ending is None:
                if (jobs := await self._bring_up_to_date(run.turn.transcript)) is not None:
                    yield FollowUpJobs(jobs)
                elif run.turn.transcript.awaits_answer:
                    async for event in self._step(run, available):
                        yield event
                elif await self.database.write(_rest, run.turn, self.clock()):
                    run.ending = Ending.WAITING
                if run.ending is None:  # continue with what was said by it and by people since
                    yield FollowUpJobs(await self._read_on(run, whose))
        except TakenOver:
            raise
        except Exception as error:  # people are told that it failed, and may write again
            if in_a_line(error):
                raise  # the rows say to run it again
            if not isinstance(error, ModelError):
                log.error("a turn failed", conversation=turn.transcript.conversation.id, exc_info=error)
            words = error.message if isinstance(error, ModelError) else _BROKEN
            passing = isinstance(error, ModelError) and error.passing
            told, jobs = await self.database.write(partial(_fail, passing=passing), run, words, self.clock())
            if jobs:
                yield FollowUpJobs(jobs)
            seen = run.turn.transcript.seen
            choices = error.choices if isinstance(error, ModelError) else ModelError.choices
            ended = TurnEnded(Ending.WAITING, seen, _join_paragraphs(run.said), run.message_id)
            yield TurnFailed(told, seen, choices) if told else ended
        else:
            seen = run.turn.transcript.seen
            yield TurnEnded(run.ending, seen, _join_paragraphs(run.said), run.message_id)

    async def _read_rows(self, run: _Run) -> None:
        before = run.turn.transcript
        now = await self.database.read(teams.read_transcript, before.conversation.id)
        run.turn = self._keep_to_one_person(replace(run.turn, transcript=now or before))

    async def _read_on(self, run: _Run, whose: Actor) -> tuple[Job, ...]:
        """Read what was said since. Where someone else did, end here, and return the next turn's job."""
        await self._read_rows(run)
        if not self._serves_persons or str(run.turn.transcript.asker) == str(whose):
            return ()
        run.ending = Ending.DONE  # of what this person asked; its row is still wanted
        return (Job(Work.TURN, run.turn.transcript.conversation.id),)

    @property
    def _serves_persons(self) -> bool:
        """True where calls may be made as people, so that a turn is one person's."""
        return get_connections(self.database) is not None

    def _keep_to_one_person(self, turn: Turn) -> Turn:
        """Return the turn without what others wrote since it was wanted: that begins the next."""
        if not self._serves_persons:
            return turn
        return replace(turn, transcript=keep_to_one_person(turn.transcript))

    async def _receive(self, run: _Run) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Read the attached files, and tell people which of them can't be read."""
        transcript = run.turn.transcript
        yield Waited(f"Reading {', '.join(each.name for each in transcript.unread)}.")
        pictures = self.models.describe(await self._choose_model(transcript)).images
        if await self.attachments.make_ready(transcript, pictures=pictures, delivered=run.delivered):
            yield FollowUpJobs((Job(Work.DELIVER, transcript.conversation.id),))
        await self._read_rows(run)

    async def _bring_up_to_date(self, transcript: Transcript) -> tuple[Job, ...] | None:
        """Withdraw outdated questions and tick off finished steps.

        Return the jobs, or None if nothing changed.
        """
        left = asking.overtaken(transcript)
        if left:
            return await self.database.write(asking.withdraw, left, self.clock)
        done = _find_done_steps(transcript)
        if done:
            return await self.database.write(plans.tick, *done, self.clock())
        return None

    async def _step(self, run: _Run, available: AvailableTools) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Ask the model once, run its reads, and commit what it said and proposed."""
        if run.turn.transcript.unread:
            async for received in self._receive(run):
                yield received
        turn, before = run.turn, run.turn.usage
        await self._check_bounds(turn)
        yield AnswerBegun(turn.key(turn.usage.model_calls + 1))
        answer = ModelOutput(not turn.transcript.conversation.private and turn.transcript.teammate is None)
        further = any(text.strip() for text in run.said)
        async for event in self._ask(run, available, answer, further=further):
            yield event
        turn = run.turn
        finished = answer.finished
        if finished is None:
            raise ModelCut
        again = finished.stop is Stop.LENGTH and not _continues(turn.transcript)
        note = _NOTES.get(finished.stop)
        if note and not again:
            yield TextDelta(answer.add(note))
        said = answer.text
        # calls of an answer that was cut may be cut themselves
        calls = _unique(finished.calls) if finished.stop is Stop.FINISHED else []
        judged: list[JudgedCall] = []
        async for waited in self._judge(judged, available, calls, turn.transcript, said):
            yield waited
        results = {c.call.id: c.result for c in judged if c.result}
        reads = [(c.call, *c.read) for c in judged if c.read]
        for call in (c.call for c in judged[:CALLS_PER_ANSWER] if c.result):
            yield ToolStarted(call.id, call.tool_name, call.summary, available.arguments_of(call))
            yield ToolFinished(call.id, call.tool_name, ok=False, result=results[call.id].text)
        for call, tool, arguments in reads:
            yield ToolStarted(
                call.id, call.tool_name, call.summary, redact_arguments(arguments, tool.parameters)
            )
        async for told in self._read(reads, turn.transcript, results):
            yield told
        for call, tool, arguments in reads:
            text = veil(results[call.id].text, secrets_in(arguments, tool.parameters))
            yield ToolFinished(call.id, call.tool_name, results[call.id].ok, text)
        run.turn = turn = replace(turn, usage=self._add_usage(turn.usage, answer.model, finished))
        run.said.append(said)
        extras = {c.id: c.extra for c in calls}
        judged = [replace(c, call=replace(c.call, extra=extras[c.call.id])) for c in judged]
        committed = await self.database.write(
            partial(_commit, again=again, before=before),
            self.gate.policies,
            run,
            available,
            said,
            judged,
            results,
            self.clock(),
        )
        run.ending = committed.ending
        run.message_id = committed.message_id or run.message_id
        if committed.jobs:
            yield FollowUpJobs(committed.jobs)
        for proposal in committed.opened:
            yield ProposalOpened(proposal)

    async def _check_bounds(self, turn: Turn) -> None:
        """Raise ModelError if the turn may not call the model again."""
        if _steps(turn) >= self.limits.model_calls:
            raise ModelTooManySteps
        if turn.transcript.teammate and (spent := self._find_reached_bound(turn.transcript.teammate)):
            raise ModelError(spent)
        for stop_model_call in self.hooks.stop_model_call:
            why = await stop_model_call(turn.transcript)
            if why:
                raise ModelError(why)
        book = self.gate.policies.held.book  # as it was when the turn was taken up, or newer
        if book.list_about(Subject.BUDGET):
            await self.database.read(budgets.check_budgets, book, turn, self.clock())

    async def _ask(
        self, run: _Run, available: AvailableTools, answer: ModelOutput, *, further: bool
    ) -> AsyncIterator[TextDelta | ThoughtDelta | TextRestarted | Waited | FollowUpJobs]:
        """Get the model's answer, repeating the request from the start where the answer breaks off.

        A request that is too long is repeated with less history, and the later ones stay that short. Where
        the model can't answer, its stand-in does.

        ``further``: the turn has said something before, so this is a paragraph of its own.
        """
        transcript = run.turn.transcript
        reach = await self.gate.list_offered(available, transcript)
        specs = tuple(tool.spec for tool in reach)
        zone = await self.gate.time_zone(transcript)
        briefing = self.briefing.on_the_clock(zone, private=transcript.conversation.private)
        prompt = await self._prompt(transcript, reach, briefing)
        offered = sum(spec.size for spec in specs)
        chosen = await self._choose_model(transcript)

        seen = await self._with_pictures(transcript)

        def request(model: Model, room: int) -> _Request:
            there = run.turn.transcript
            shown = replace(seen, summary=there.summary) if self.models.describe(model).images else there
            found = history_of(shown, prompt, room, briefing.zone)
            return _Request(model, room, found.entries, found.overdue)

        model = self.models.answering(chosen)
        if model is not chosen:
            yield await self._tell_stand_in(transcript, chosen, model)
        asked = request(model, self.models.room(model, offered))
        if asked.overdue and not run.summed_up:
            yield Waited(_SUMMING_UP)
            await self._summarise(run, asked)
            asked = request(model, asked.room)
        while True:
            try:
                async for event in self._stream(asked, specs, answer, further=further):
                    yield event
                self.models.note(asked.model, None)
                if asked.learned:
                    self.models.fits(asked.model, asked.room + offered)
                correction = () if asked.attempt else answer.correction(specs)
                if not correction:
                    return
                asked.history = [*asked.history, *correction]
            except ModelError as error:
                sent, attempt = size_of(asked.history), asked.attempt
                halves = error.may_be_long and not asked.halved and sent >= _LONG_CHARS
                cut = halves or _may_be_too_long(error, answer, attempt)
                shorter = request(asked.model, _shorter(sent, offered, error)) if cut else asked
                if size_of(shorter.history) < sent:
                    halved = asked.halved or halves
                    asked = replace(shorter, learned=True, halved=halved, attempt=attempt - 1)
                elif attempt == _RETRIES or not isinstance(error, ModelCut | ModelEmpty):
                    other = self._instead(asked.model, error)
                    if other is None or asked.model is not chosen:
                        raise
                    asked = replace(request(other, self.models.room(other, offered)), attempt=-1)
                    yield await self._tell_stand_in(transcript, chosen, other)
            asked.attempt += 1
            if answer.restart():
                yield TextRestarted()

    async def _with_pictures(self, transcript: Transcript) -> Transcript:
        shows = transcript.files and self.models.take_pictures
        if shows:
            return await self.attachments.with_pictures(transcript)
        return transcript

    def _instead(self, model: Model, error: ModelError) -> Model | None:
        """Note the failure of a model, and return its stand-in where another may answer."""
        if not isinstance(error, ModelEmpty | ModelTooLong):
            self.models.note(model, error)
        if error.away:
            return self.models.stand_in(model)
        return None

    async def _summarise(self, run: _Run, asked: _Request) -> None:
        """Have the model summarise the oldest lines; where it writes nothing, they are cut."""
        turn, upto, now = run.turn, asked.overdue[-1].id, self.clock()
        run.summed_up = True
        try:
            text, finished = await sum_up(asked.model, turn.transcript, asked.overdue, asked.room)
        except ModelError as error:
            log.warning("no summary was written", model=asked.model.name, why=error.message)
            return
        spent = self._add_usage(turn.usage, asked.model.name, finished)
        usage = replace(spent, model_calls=turn.usage.model_calls)  # those are answers
        await self.database.write(_keep_summary, turn, text, upto, usage, now)
        summary = Line(0, LineRole.SUMMARY, text, upto, None, (), {}, now)
        run.turn = replace(turn, transcript=replace(turn.transcript, summary=summary), usage=usage)

    async def _choose_model(self, transcript: Transcript) -> Model:
        book = self.gate.policies.held.book
        if book.list_about(Subject.MODEL):
            return await self.database.read(self.models.choose, book, transcript)
        return self.models.default

    async def _tell_stand_in(self, transcript: Transcript, model: Model, other: Model) -> FollowUpJobs:
        """Tell people, once a day, that their words go to another model, before they do."""
        words = _AWAY.format(model.name, other.name, self.models.describe(other).host)
        return FollowUpJobs(await self.database.write(_tell_once, transcript, words, self.clock()))

    async def _tell_refused(self, model: Model, tools: Mapping[str, str]) -> tuple[Job, ...]:
        if not tools:
            return ()
        said = [_REFUSED.format(name, model.name, why) for name, why in tools.items()]
        return await self.database.write(_tell_admins, self.gate.policies, "\n".join(said), self.clock())

    async def _prompt(self, transcript: Transcript, reach: AvailableTools, briefing: Briefing) -> str:
        """Return the system prompt: the fixed rules first, then what is special to this conversation."""
        now, held, here = self.clock(), self.gate.policies.held, transcript.conversation
        workspace = ""
        if self.briefing.workspace and any(tool.group == FILES for tool in reach):
            workspace = await asyncio.to_thread(self.briefing.workspace)
        asked = held.book.instructions(str(here.origin)) if held.book.list_about(Subject.INSTRUCTIONS) else ()
        sections = [await add(transcript, now) for add in self.hooks.add_to_prompt]
        there = write_surroundings(transcript, now, briefing, asked, sections)
        return system_prompt(reach, transcript.teammate, briefing, workspace, there)

    async def _stream(  # noqa: C901 - one case for each part of an answer
        self, asked: _Request, specs: Sequence[ToolSpec], answer: ModelOutput, *, further: bool
    ) -> AsyncIterator[TextDelta | TextRestarted | ThoughtDelta | Waited | FollowUpJobs]:
        """Stream the answer to a request into ``answer``.

        Raises ModelEmpty if it is empty and must not be.
        """
        thoughts, answer.model = ReasoningFilter(), asked.model.name
        async for part in asked.model.stream(asked.history, specs):
            thought = thoughts.add(part.text) if isinstance(part, Thought) else thoughts.rest()
            if thought:
                yield ThoughtDelta(thought)
            match part:
                case Busy(words):
                    yield Waited(words)
                case Text(text):
                    if shown := _show_more(answer, text, further=further):
                        yield TextDelta(shown)
                case Retracted():
                    if answer.restart():
                        yield TextRestarted()
                case LeftOut(tools):
                    self.models.note_refused(asked.model, tools, specs)
                    yield FollowUpJobs(await self._tell_refused(asked.model, tools))
                case Finished():
                    answer.finished = part
                case Thought():
                    pass
        if shown := answer.rest():
            yield TextDelta(shown)
        if self._take_written_calls(asked, specs, answer):
            yield TextRestarted()
            yield TextDelta(_BREAK + answer.text if further else answer.text)
        if answer.is_empty:
            raise ModelEmpty

    def _take_written_calls(self, asked: _Request, specs: Sequence[ToolSpec], answer: ModelOutput) -> bool:
        """Read the calls in an answer's text, and note a model that writes them against its instructions."""
        told = asked.attempt > 0 or asked.model.name in self.models.writers
        found = answer.take_written_calls(specs, asked.history, told=told)
        if found and asked.attempt:
            self.models.writers.add(asked.model.name)
        return found

    async def _judge(
        self,
        judged: list[JudgedCall],
        available: AvailableTools,
        calls: Sequence[ToolCall],
        transcript: Transcript,
        said: str,
    ) -> AsyncIterator[Waited]:
        """Judge the calls of an answer into ``judged``, and yield which one is being tried."""

        async def consider(tell: Callable[[Waited], None]) -> None:
            async def show(words: str) -> None:
                tell(Waited(words))

            judged.extend(await self.gate.consider(available, calls, transcript, said, show))

        async for waited in _while(consider):
            yield waited

    async def _read(
        self, reads: Sequence[_Read], transcript: Transcript, results: dict[str, CallResult]
    ) -> AsyncIterator[ToolProgress]:
        """Run reads side by side into ``results``, and yield their progress."""
        if not reads:
            return

        async def one(
            call: Call, tool: Tool, arguments: Mapping[str, Any], tell: Callable[[ToolProgress], None]
        ) -> None:
            async def show(words: str) -> None:
                tell(ToolProgress(call.id, call.tool_name, words))

            with tracing.reading(call.tool_name, call.id) as noted:
                results[call.id] = await self.gate.read(
                    tool, arguments, transcript.conversation, transcript.asker, show
                )
                if not results[call.id].ok:
                    noted.fail("tool_error")

        async def all_(tell: Callable[[ToolProgress], None]) -> None:
            await asyncio.gather(*(one(*each, tell) for each in reads))

        async for told in _while(all_):
            yield told

    def _add_usage(self, usage: Usage, model: str, finished: Finished) -> Usage:
        """Return the turn's usage with that of one more answer."""
        prompt, completion = finished.prompt_tokens, finished.completion_tokens
        cost = self.prices.cost(model, prompt, completion, finished.cached_tokens)
        return Usage(
            usage.model_calls + 1,
            usage.prompt_tokens + prompt,
            usage.completion_tokens + completion,
            usage.cost if cost is None else (usage.cost or 0.0) + cost,
            model,
        )

    def _find_reached_bound(self, teammate: Teammate) -> str | None:
        """Return the limit that a teammate has reached over all its turns, in words, or None."""
        most = self.limits.team
        if teammate.model_calls >= most.model_calls:
            return f"It took {teammate.model_calls} steps, which is all that one teammate may take."
        if teammate.tokens >= most.tokens:
            return f"It spent {teammate.tokens:,} tokens, which is all that one teammate may spend."
        return None


async def _while(work: Callable[[Callable[[T], None]], Awaitable[None]]) -> AsyncIterator[T]:
    """Yield the reports of ``work`` while it runs. Raises its exceptions."""
    told: asyncio.Queue[T | None] = asyncio.Queue()
    doing = asyncio.ensure_future(work(told.put_nowait))
    doing.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (each := await told.get()) is not None:
            yield each
        await doing
    finally:
        if not doing.done():
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)


def _commit(
    session: Session,
    policies: Policies,
    run: _Run,
    available: AvailableTools,
    text: str,
    judged: Sequence[JudgedCall],
    results: dict[str, CallResult],
    now: datetime,
    *,
    again: bool,
    before: Usage,
) -> Committed:
    """Store one answer in one transaction: its text, its proposals, and the end of the turn if it ends.

    ``again``: the answer was cut at its length, and the model may continue it. ``before``: the turn's usage
    before this answer.
    """
    turn, calls = run.turn, [c.call for c in judged]
    if any(c.proposal or c.effect for c in judged):
        conversation_lock.in_conversation(session, turn.transcript.conversation.id)
    if turn.transcript.teammate:
        teammates.lock_lead(session, turn.transcript.teammate)
    proposed = [(c.proposal, c.like) for c in judged if c.proposal]
    batch_of = assign_batches([(c.proposal.id, c.batch) for c in judged if c.proposal])
    ending = None
    if not again and (proposed or not calls):
        ending = Ending.WAITING if proposed else Ending.DONE
    stored = turns.store_answer(session, turn, text, calls, results, ending, delivered=run.delivered, now=now)
    if stored is None:  # a person stopped the turn
        return Committed((), Ending.STOPPED)
    message_id, ending = stored
    jobs: list[Job] = []
    for count_answer in hooks_of(session).count_answer:
        jobs += count_answer(session, turn.transcript, turn.usage.tokens - before.tokens, now)
    if turn.usage.cost and policies.held.book.list_about(Subject.BUDGET):
        jobs += _warn(session, policies.held.book, turn, now)
    if any(c.effect for c in judged):
        jobs += apply_effects(session, turn, available, message_id, judged, results, now)
    for p, _ in proposed:
        opening = find_procedure(p.kind).open
        if opening:
            jobs += opening(session, policies, p, now)
    opened = tuple(
        grants.use(session, policies, replace(p, message_id=message_id, batch=batch_of.get(p.id)), like, now)
        for p, like in proposed
    )
    opened = transitions.insert_all(session, opened, By.nod(Act.PROPOSE))
    if again:
        messages.add_note(session, turn.transcript.conversation.id, _CONTINUE, now)
    if turn.transcript.teammate:
        silent = ending is Ending.DONE
        jobs += teammates.after_answer(session, turn.transcript.teammate, text, now, silent=silent)
    return Committed(opened, ending, tuple(jobs), message_id)


def _warn(session: Session, book: Rulebook, turn: Turn, now: datetime) -> list[Job]:
    told = budgets.warnings(session, book, turn, now)
    return [job for words in told for job in _tell(session, turn.transcript, words, now)]


def _tell(session: Session, transcript: Transcript, words: str, now: datetime) -> list[Job]:
    """Store a notice in the conversation that people read, and return the job that delivers it."""
    home = _home(transcript)
    messages.add_notice(session, home, words, messages.last_heard(session, home), now, delivered=False)
    return [Job(Work.DELIVER, home)]


def _tell_once(session: Session, transcript: Transcript, words: str, now: datetime) -> tuple[Job, ...]:
    """Store a notice like `_tell`, unless the same was posted there within ``_TOLD_FOR``."""
    known = messages.was_noticed(session, _home(transcript), words, now - _TOLD_FOR)
    if known:
        return ()
    return tuple(_tell(session, transcript, words, now))


def _tell_admins(session: Session, policies: Policies, words: str, now: datetime) -> tuple[Job, ...]:
    """Store a notice for each admin's private chat; the delivery sweep posts it."""
    for admin in sorted(policies.load(session).holders(Role.ADMIN)):
        notices.store_notice(session, Address.parse(admin), words, now)
    return ()


def _home(transcript: Transcript) -> str:
    """Return the id of the lead agent's conversation."""
    if transcript.teammate:
        return transcript.teammate.lead_id
    return transcript.conversation.id


def _keep_summary(session: Session, turn: Turn, text: str, upto: int, usage: Usage, now: datetime) -> None:
    turns.spend(session, turn, usage)
    messages.add_summary(session, turn.transcript.conversation.id, text, upto, now)


def _find_done_steps(transcript: Transcript) -> tuple[Proposal, tuple[int, ...]] | None:
    """Return the approved plan and its finished steps, if its card does not show them all yet."""
    found = transcript.proposals.values()
    plan = find_current_plan(found)
    done = list_carried_out(plan, found) if plan else ()
    if plan and done != plan.ticked:
        return (plan, done)
    return None


def _continues(transcript: Transcript) -> bool:
    return bool(transcript.lines) and transcript.lines[-1].text == _CONTINUE


def _may_be_too_long(error: ModelError, answer: ModelOutput, attempt: int) -> bool:
    """Tell if the request may be too long for the model.

    Some servers just end the stream then: two cuts before the first word count as that.
    """
    return isinstance(error, ModelTooLong) or (
        isinstance(error, ModelCut) and not error.has_reason and attempt > 0 and not answer.pieces
    )


def _shorter(sent: int, offered: int, error: ModelError) -> int:
    """Return the number of characters to try next after a history of ``sent`` was refused."""
    told = error.window * _LEAST_PER_TOKEN - offered if error.window else sent
    share = _LESS if isinstance(error, ModelTooLong) else _HALF
    if told < sent:
        return told
    return int(sent * share)


def _steps(turn: Turn) -> int:
    """Return the number of model calls of this turn since its newest message.

    A message that joins the turn starts the count again.
    """
    transcript = turn.transcript
    since = sum(
        line.role is LineRole.ASSISTANT and line.after == transcript.seen for line in transcript.lines
    )
    return min(turn.usage.model_calls, since)


def _rest(session: Session, turn: Turn, now: datetime) -> bool:
    """End a turn that has nothing to say. Return False if new lines have come since it was read."""
    turns.hold_turn(session, turn)
    turns.check_owned(session, turn)
    transcript = conversations.read_transcript(session, turn.transcript.conversation.id)
    if transcript is not None and transcript.awaits_answer:
        return False
    turns.end_turn(session, turn, Ending.WAITING, now)
    return True


def _fail(
    session: Session, run: _Run, explanation: str, now: datetime, *, passing: bool
) -> tuple[str, tuple[Job, ...]]:
    """End the turn and tell people why, once. Messages that came in the meantime get a new turn.

    What is ``passing`` is tried again later. If it is a teammate's turn, the teammate fails and the lead
    agent is told. Returns the text for people, empty where they know, and the jobs.
    """
    turn = run.turn
    ident, seen, teammate = turn.transcript.conversation.id, turn.transcript.seen, turn.transcript.teammate
    if teammate:
        teammates.lock_lead(session, teammate)
    turns.check_owned(session, turn)
    last = [line for line in turn.transcript.lines[-1:] if line.role is LineRole.NOTICE]
    since = [line.created_at for line in last if line.text.endswith(_BY_MYSELF)]  # people know
    waited = now - since[0] if since else timedelta()
    retry_at = None
    if passing and not teammate:
        if waited < _PATIENCE:
            retry_at = now + min(max(waited, _FIRST_PAUSE), turns.LONGEST_PAUSE)
        explanation = f"{explanation} {_BY_MYSELF if retry_at else _NO_LONGER}"
    turns.end_turn(session, turn, "failed", now, error=explanation, retry_at=retry_at)
    if teammate:
        return explanation, plans.fail(session, ident, explanation, now)
    told = "" if since and retry_at else explanation
    if told:
        messages.add_notice(session, ident, told, seen, now, delivered=run.delivered)
    if messages.heard_since(session, ident, seen):
        turns.want_turn(session, ident, now)
    return told, ()


def _unique(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Give calls different ids: some servers repeat one, and results are matched by them."""
    taken: set[str] = set()
    kept = []
    for position, call in enumerate(calls):
        if call.id not in taken:
            fresh = call
        else:
            fresh = replace(call, id=f"{call.id}-{position}")
        taken.add(fresh.id)
        kept.append(fresh)
    return kept


def _show_more(answer: ModelOutput, text: str, *, further: bool) -> str:
    """Add ``text`` to the answer and return what to display of it.

    ``further``: an earlier answer was displayed, so this one begins a new paragraph.
    """
    first = further and not answer.pieces
    shown = answer.add(text)
    if shown and first:
        return _BREAK + shown
    return shown


def _join_paragraphs(said: Sequence[str]) -> str:
    return _BREAK.join(text for text in said if text.strip())

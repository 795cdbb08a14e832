"""The agent loop: ask the model, run its reads, turn its writes into proposals, until the turn ends or waits.

A turn is the agent's work on a conversation, from a message to the answer without further calls. Callers run
one by iterating over `Loop.run`, which yields a `TurnEvent` for each thing that people may see, such as a
piece of text. Each round of the loop gets one answer of the model (``model_answers.py``), judges its calls
(``turn_calls.py``), and commits the answer with its proposals (``transactions.py``). All text is committed
before the event that ends the turn.

A turn that opens proposals ends as ``WAITING``. After that it exists only in the database. A new turn
continues once every call of that answer has ended (`settle_answer` in ``bot/approvals/team/teammates.py``).
Running a turn again from its rows is safe, because a turn writes only its own rows.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import partial

from bot.agent.attachments import AttachmentReader
from bot.agent.history_parts import quote_voice_messages_before
from bot.agent.model_answers import ModelAnswers
from bot.agent.model_output import ModelOutput
from bot.agent.models import Models
from bot.agent.prompt import Briefing
from bot.agent.running_turn import FollowUpJobs, RunningTurn, add_usage, join_paragraphs
from bot.agent.transactions import CONTINUE_NOTE, commit_answer, end_if_nothing_to_answer, fail_turn
from bot.agent.turn_calls import TurnCalls, add_server_fields, list_calls
from bot.approvals import agent_questions, budgets
from bot.approvals.gate import Gate
from bot.approvals.judged_calls import JudgedCall
from bot.approvals.team import plans
from bot.domain.chat import Clock
from bot.domain.conversations import CallResult, LineRole, Transcript, Turn, keep_to_one_person
from bot.domain.events import (
    AnswerBegun,
    Ending,
    ProposalOpened,
    TextDelta,
    TurnDelayed,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.domain.hooks import Hooks
from bot.domain.jobs import Job, Work
from bot.domain.model import StopReason
from bot.domain.people import Actor
from bot.domain.plans import find_current_plan, list_finished_steps
from bot.domain.prices import Prices
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject
from bot.domain.teams import TeamLimits, Teammate
from bot.errors import ModelCut, ModelError, ModelTooManySteps, TakenOver
from bot.store import teams
from bot.store.connections import get_connections
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.telemetry.outages import describe_outage
from bot.tools.call import CallContext
from bot.tools.registry import AvailableTools

log = logger(__name__)

# texts for people
_BROKEN_TEXT = "Something failed on my side. Send “continue” to try again. The log has the details."
_CUT_SHORT_TEXT = "\n\n(My answer ran into its length limit and stops here.)"
_FILTERED_TEXT = "\n\n(The provider of the language model withheld the rest of this answer.)"
_TEXT_OF_STOP = {StopReason.LENGTH: _CUT_SHORT_TEXT, StopReason.FILTERED: _FILTERED_TEXT}


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a turn."""

    model_calls: int = 12  # the most answers of the model
    history_tokens: int | None = None  # about the most tokens of history; None: by the model's window
    team: TeamLimits = field(default_factory=TeamLimits)


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

    def __post_init__(self) -> None:
        self._calls = TurnCalls(self.gate)
        self._answers = ModelAnswers(
            self.models,
            self.gate,
            self.database,
            self.clock,
            self.briefing,
            self.attachments,
            self.prices,
            self.hooks,
        )

    async def run(self, turn: Turn, *, is_streamed: bool) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Run a turn to its end, yielding its events. Raises TakenOver if another process has taken it over.

        ``is_streamed``: the caller displays the text while it is written, so it is stored as posted.
        """
        run = RunningTurn(self._keep_to_one_person(turn), is_streamed=is_streamed)
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
            yield TurnEnded(run.ending, seen, join_paragraphs(run.texts), run.message_id)

    async def _advance(
        self, run: RunningTurn, available: AvailableTools
    ) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Do one round of the loop: update the stored state, or answer once, or end without an answer."""
        jobs = await self._bring_up_to_date(run.turn.transcript)
        if jobs is not None:
            yield FollowUpJobs(jobs)
        elif run.turn.transcript.awaits_answer:
            async for event in self._answer_once(run, available):
                yield event
        elif await self.database.write(end_if_nothing_to_answer, run.turn, self.clock()):
            run.ending = Ending.WAITING  # for people: for their decisions, or for their next message

    async def _end_failed(
        self, run: RunningTurn, error: Exception
    ) -> AsyncIterator[TurnEvent | FollowUpJobs]:
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
            yield TurnEnded(Ending.WAITING, seen, join_paragraphs(run.texts), run.message_id)

    async def _reload_transcript(self, run: RunningTurn) -> None:
        current = run.turn.transcript
        newer = await self.database.read(teams.read_transcript, current.conversation.id)
        run.turn = self._keep_to_one_person(replace(run.turn, transcript=newer or current))

    async def _read_newer_lines(self, run: RunningTurn, asker: Actor) -> tuple[Job, ...]:
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

    async def _read_attachments(self, run: RunningTurn) -> AsyncIterator[TurnEvent | FollowUpJobs]:
        """Read the attached files, and tell people which of them can't be read."""
        transcript = run.turn.transcript
        names = ", ".join(upload.name for upload in transcript.unread)
        yield TurnDelayed(f"Reading {names}.")
        model = await self._answers.choose_model(transcript)
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
        self, run: RunningTurn, available: AvailableTools
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
        async for event in self._answers.get_answer_after(quotation, run, available, answer):
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
        calls = list_calls(finished)
        judged_calls: list[JudgedCall] = []
        results: dict[str, CallResult] = {}  # by the ids of calls
        async for event in self._calls.handle_calls(
            calls, available, run.turn.transcript, text, judged_calls, results
        ):
            yield event

        # commit all of it
        run.turn = replace(run.turn, usage=add_usage(self.prices, run.turn.usage, answer.model, finished))
        run.texts.append(text)
        commit = partial(
            commit_answer,
            policies=self.gate.policies,
            turn=run.turn,
            available=available,
            text=text,
            judged_calls=add_server_fields(judged_calls, calls),
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
        rulebook = self.gate.policies.latest_policy.rulebook
        if rulebook.list_about(Subject.BUDGET):
            await self.database.read(budgets.check_budgets, rulebook, turn, self.clock())

    def _find_reached_bound(self, teammate: Teammate) -> str | None:
        """Return the limit that a teammate has reached over all its turns, in words, or None."""
        limits = self.limits.team
        if teammate.model_calls >= limits.model_calls:
            return f"It took {teammate.model_calls} steps, which is all that one teammate may take."
        if teammate.tokens >= limits.tokens:
            return f"It spent {teammate.tokens:,} tokens, which is all that one teammate may spend."
        return None


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


def _count_steps(turn: Turn) -> int:
    """Return the number of model calls of this turn since its newest message.

    A message that joins the turn starts the count again.
    """
    transcript = turn.transcript
    answers = [line for line in transcript.lines if line.role is LineRole.ASSISTANT]
    # ``after``: the id of the newest message that an answer had read; ``last_heard_id``: of the newest of all
    since_newest = [answer for answer in answers if answer.after == transcript.last_heard_id]
    return min(turn.usage.model_calls, len(since_newest))

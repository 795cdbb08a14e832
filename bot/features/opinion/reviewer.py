"""The sweep that asks models for second opinions on calls, and adds them to the cards.

The wish for an opinion is a row (`rows.py`), which one process takes. It asks the model about the case
(`case.py`), checks the answer (`review.py`), and stores the outcome: its cost and a line on the card.

By the rule (``effect`` in the row), the call may need one more approval if the model says that no one asked
for it, or also if the opinion is missing. A call that was approved earlier may have waited for the outcome,
and then runs.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel import Session

from bot.agent.models import Models
from bot.approvals import lifecycle
from bot.domain.annotations import Annotation
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Usage
from bot.domain.jobs import Job, Wake, Work
from bot.domain.model import Finished, Retracted, Text
from bot.domain.prices import Prices
from bot.domain.proposal_states import State
from bot.domain.rule_values import OpinionEffect, Subject
from bot.errors import ModelError
from bot.features.opinion import rows
from bot.features.opinion.case import Case, read_case
from bot.features.opinion.review import MAX_ANSWER_CHARS, Asked, OpinionWords, read_review
from bot.features.opinion.tables import OpinionRow
from bot.store import proposals, turns
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

OPINION_SWEEP_SECONDS = 1
"""The time between two runs of the sweep."""
_MAX_AT_A_TIME = 8  # the most opinions that one process asks for at the same time
_MAX_RUN_SECONDS = 2.0  # the longest run of the sweep: a model that hangs keeps no other card waiting
_RAISED_TEXT = "one more approval is needed"
_NOT_RAISED_TEXT = "no one else could approve it as well"
_LATE_TEXT = "it did not come in time"
_UNUSABLE_TEXT = "its answer can't be used"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of a question to a model: its opinion, or why it is missing, and the cost."""

    words: OpinionWords | None = None  # None: the opinion is missing
    why_missing: str = _LATE_TEXT
    usage: Usage | None = None  # None: the model was not asked


@dataclass(eq=False)
class Reviewer:
    """The sweep. It asks for several opinions at a time, and the posting of a card never waits for it.

    ``prices`` are those of ``models``. ``all_card_chats``: the chats that get every card.
    """

    database: Database
    policies: Policies
    models: Models
    prices: Prices
    clock: Clock
    wake: Wake
    all_card_chats: Sequence[Address] = ()
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, now: datetime) -> None:
        """Ask for the wanted opinions. If no rule asks for opinions, nothing is read."""
        if not (self._tasks or self.policies.latest_policy.rulebook.list_about(Subject.OPINION)):
            return
        room = _MAX_AT_A_TIME - len(self._tasks)
        if room:
            for row in await self.database.write(rows.claim_waiting, now, room):
                task = asyncio.create_task(self._review(row))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if not self._tasks:
            return
        try:
            await asyncio.wait(self._tasks, timeout=_MAX_RUN_SECONDS)
        except asyncio.CancelledError:  # Nod ends; another process, or the next start, asks again
            for task in self._tasks:
                task.cancel()
            raise

    async def _review(self, row: OpinionRow) -> None:
        """Ask for one opinion, and store its outcome. An error is logged, and another try follows later."""
        try:
            now = self.clock()
            case = await self.database.read(
                read_case, self.policies, self.all_card_chats, row.proposal_id, row.round, now
            )
            seconds_left = (row.due_at - now).total_seconds()
            outcome = _Outcome()
            if case is not None and seconds_left > 0:
                outcome = await self._ask(case, row.model, seconds_left)
            jobs = await self.database.write(self._store_outcome, row, case, outcome, self.clock())
            await self.wake(*jobs)
        except Exception as error:
            log.error("a second opinion failed", proposal=row.proposal_id, exc_info=error)

    async def _ask(self, case: Case, name: str, seconds: float) -> _Outcome:
        """Ask the model called ``name`` about a case, for at most ``seconds``."""
        model = self.models.by_name.get(name)
        if model is None:
            log.warning("no model gives second opinions", model=name)
            return _Outcome()
        text = ""
        finished: Finished | None = None
        try:
            async with asyncio.timeout(seconds), aclosing(model.stream(case.prompt, ())) as parts:  # type: ignore[type-var]
                async for part in parts:
                    match part:
                        case Text():
                            text += part.text
                        case Retracted():
                            text = ""  # the text so far was the model's thoughts, not its answer
                        case Finished():
                            finished = part
                    if len(text) > MAX_ANSWER_CHARS:
                        break
        except (ModelError, TimeoutError) as error:
            log.warning("a second opinion did not come", model=name, why=str(error) or "it took too long")
            return _Outcome(usage=Usage(model_calls=1, model=name))
        words = None
        if finished:  # otherwise the answer was too long, or was cut
            words = read_review(text, case.facts, has_request=bool(case.request))
        return _Outcome(words, _UNUSABLE_TEXT, self._count_usage(name, finished))

    def _count_usage(self, name: str, finished: Finished | None) -> Usage:
        """Return the cost of a question to a model; without tokens if the answer did not finish."""
        prompt = finished.prompt_tokens if finished else 0
        completion = finished.completion_tokens if finished else 0
        cached = finished.cached_tokens if finished else 0
        return Usage(
            model_calls=1,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost=self.prices.cost(name, prompt, completion, cached),
            model=name,
        )

    def _store_outcome(
        self, session: Session, row: OpinionRow, case: Case | None, outcome: _Outcome, now: datetime
    ) -> tuple[Job, ...]:
        """Store the outcome of an opinion, once: its cost, one more approval if needed, and its line.

        Returns the jobs that follow; none if the opinion has ended already.
        """
        if not rows.end_opinion(session, row.proposal_id, row.round):
            return ()
        if case is not None and outcome.usage is not None:
            asker = str(case.proposal.requester)
            message_id = case.request_message_id or None
            turns.add_cost(session, case.proposal.conversation_id, asker, message_id, outcome.usage, now)
        if _needs_approval(row.effect, outcome):
            return self._require_approval(session, row, outcome, now)
        jobs = self._make_run_job(session, row)
        if outcome.words is not None:
            jobs += self._annotate(session, row, outcome.words.format_line(), now)
        return jobs

    def _require_approval(
        self, session: Session, row: OpinionRow, outcome: _Outcome, now: datetime
    ) -> tuple[Job, ...]:
        """Require one more approval of the proposal, and add a line about this to the card.

        The number of approvals stays as it is if no further person could approve; then the line says that.
        """
        words = outcome.words
        why = words.format_line() if words else outcome.why_missing
        before = proposals.get(session, row.proposal_id)
        raised, jobs = lifecycle.require_another_approval(
            session, self.policies, row.proposal_id, row.round, f"{_name(row)}: {why}", now
        )
        if before is None or raised is None:
            return jobs
        consequence = _RAISED_TEXT if raised.quorum > before.quorum else _NOT_RAISED_TEXT
        line = words.format_line(consequence) if words else f"{outcome.why_missing}; {consequence}"
        return (*jobs, *self._annotate(session, row, line, now), *self._make_run_job(session, row))

    def _annotate(self, session: Session, row: OpinionRow, text: str, now: datetime) -> tuple[Job, ...]:
        line = Annotation(_name(row), text)
        return lifecycle.annotate(session, row.proposal_id, row.round, line, now)

    def _make_run_job(self, session: Session, row: OpinionRow) -> tuple[Job, ...]:
        """Return the job that runs the proposal if it is approved, and waited only for this opinion."""
        proposal = proposals.get(session, row.proposal_id)
        has_waited = row.effect is not OpinionEffect.NEVER
        if has_waited and proposal is not None and proposal.state is State.APPROVED:
            return (Job(Work.EXECUTE, row.proposal_id),)
        return ()


def _needs_approval(effect: OpinionEffect, outcome: _Outcome) -> bool:
    """Return whether a call needs one more approval after the outcome of its opinion."""
    if outcome.words is None:
        return effect is OpinionEffect.NO_OR_MISSING
    return outcome.words.asked is Asked.NO and effect is not OpinionEffect.NEVER


def _name(row: OpinionRow) -> str:
    return f"Second opinion ({row.model})"

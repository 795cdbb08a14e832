"""The sweep that asks models for second opinions, and puts them on the cards."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from sqlmodel import Session

from bot.agent.models import Models
from bot.approvals import lifecycle
from bot.domain.annotations import Annotation
from bot.domain.chat import Address, Clock
from bot.domain.conversations import Usage
from bot.domain.jobs import Job, Wake, Work
from bot.domain.model import Finished, Retracted, Text
from bot.domain.prices import Prices
from bot.domain.proposals import State
from bot.domain.rules import Raising, Subject
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

SECONDS = 1
_AT_A_TIME = 8
_LONGEST_LOOK_SECONDS = 2.0  # the limit of one sweep: a model that hangs keeps no other card waiting
_RAISED_TEXT = "one more approval is needed"
_NOT_RAISED_TEXT = "no one else could approve it as well"
_MISSING_TEXT = "it did not come in time"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The outcome of a question to a model: the review, if there is one, and the cost."""

    review: OpinionWords | None = None
    usage: Usage | None = None


@dataclass(eq=False)
class Reviewer:
    """The sweep that asks for wanted opinions, some at a time. The posting of a card never waits for it."""

    database: Database
    policies: Policies
    models: Models
    prices: Prices
    clock: Clock
    wake: Wake
    routes: Sequence[Address] = ()
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, now: datetime) -> None:
        """Ask for the wanted opinions. If no rule asks for opinions, nothing is read."""
        if not (self._tasks or self.policies.held.book.list_about(Subject.OPINION)):
            return
        room = _AT_A_TIME - len(self._tasks)
        for row in await self.database.write(rows.take_waiting, now, room) if room else ():
            task = asyncio.create_task(self._review(row))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if not self._tasks:
            return
        try:
            await asyncio.wait(self._tasks, timeout=_LONGEST_LOOK_SECONDS)
        except asyncio.CancelledError:  # Nod ends; another process, or the next start, asks again
            for task in self._tasks:
                task.cancel()
            raise

    async def _review(self, row: OpinionRow) -> None:
        """Get one opinion, and store its consequences. An error is logged, and another try follows."""
        try:
            now = self.clock()
            routes = self.routes
            case = await self.database.read(read_case, self.policies, routes, row.proposal_id, row.round, now)
            left = (row.due_at - now).total_seconds()
            answer = await self._ask(case, row.model, left) if case and left > 0 else _Answer()
            ending = partial(self._end, row, case, answer)
            await self.wake(*await self.database.write(lambda session: ending(session, self.clock())))
        except Exception as error:
            log.error("a second opinion failed", proposal=row.proposal_id, exc_info=error)

    async def _ask(self, case: Case, name: str, seconds: float) -> _Answer:
        model = self.models.by_name.get(name)
        if model is None:
            log.warning("no model gives second opinions", model=name)
            return _Answer()
        text, finished = "", None
        try:
            async with asyncio.timeout(seconds), aclosing(model.stream(case.prompt, ())) as parts:  # type: ignore[type-var]
                async for part in parts:
                    match part:
                        case Text():
                            text += part.text
                        case Retracted():
                            text = ""
                        case Finished():
                            finished = part
                    if len(text) > MAX_ANSWER_CHARS:
                        break
        except (ModelError, TimeoutError) as error:
            log.warning("a second opinion did not come", model=name, why=str(error) or "it took too long")
            return _Answer(usage=Usage(1, 0, 0, None, name))
        prompt = finished.prompt_tokens if finished else 0
        completion = finished.completion_tokens if finished else 0
        cached = finished.cached_tokens if finished else 0
        usage = Usage(1, prompt, completion, self.prices.cost(name, prompt, completion, cached), name)
        review = None
        if finished:
            review = read_review(text, case.facts, has_request=bool(case.request))
        return _Answer(review, usage)

    def _end(
        self, row: OpinionRow, case: Case | None, answer: _Answer, session: Session, now: datetime
    ) -> tuple[Job, ...]:
        """Store the end of an opinion: its cost, one more approval if needed, its line. Returns the jobs."""
        if not rows.end_opinion(session, row.proposal_id, row.round):
            return ()
        if case is None:
            return (
                self._release(session, row)
                if row.raising != Raising.NO_OR_MISSING
                else self._raise(session, row, None, now)
            )
        if answer.usage is not None:
            asked = case.order or None
            asker = str(case.proposal.requester)
            turns.add_cost(session, case.proposal.conversation_id, asker, asked, answer.usage, now)
        review = answer.review
        is_no = review is not None and review.asked is Asked.NO
        is_missing = review is None and row.raising == Raising.NO_OR_MISSING
        if is_missing or (is_no and row.raising):
            return self._raise(session, row, review, now)
        jobs = self._release(session, row)
        if review is not None:
            jobs += self._annotate(session, row, review.say(), now)
        return jobs

    def _raise(
        self, session: Session, row: OpinionRow, review: OpinionWords | None, now: datetime
    ) -> tuple[Job, ...]:
        """Require one more approval of the proposal, and add a line about that to the card."""
        why = review.say() if review else _MISSING_TEXT
        before = proposals.get(session, row.proposal_id)
        raised, jobs = lifecycle.raise_bar(
            session, self.policies, row.proposal_id, row.round, f"{_name(row)}: {why}", now
        )
        if before is None or raised is None:
            return jobs
        then = _RAISED_TEXT if raised.quorum > before.quorum else _NOT_RAISED_TEXT
        said = review.say(then) if review else f"{_MISSING_TEXT}; {then}"
        return (*jobs, *self._annotate(session, row, said, now), *self._release(session, row))

    def _annotate(self, session: Session, row: OpinionRow, text: str, now: datetime) -> tuple[Job, ...]:
        line = Annotation(_name(row), text)
        return lifecycle.annotate(session, row.proposal_id, row.round, line, now)

    def _release(self, session: Session, row: OpinionRow) -> tuple[Job, ...]:
        """Return the job that runs an approved proposal which waited for this opinion."""
        proposal = proposals.get(session, row.proposal_id)
        if row.raising and proposal is not None and proposal.state is State.APPROVED:
            return (Job(Work.EXECUTE, row.proposal_id),)
        return ()


def _name(row: OpinionRow) -> str:
    return f"Second opinion ({row.model})"

"""The sweep of schedules, which begins the due runs.

Before a run, the platform is asked if the schedule's person is still a member of the chat. If the platform
can't say now, the schedule waits, for longer after each further try; if it never can, the schedule is paused.
A schedule also waits while a rule that holds for a time forbids it.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel import Session

from bot.channels.base import AskMembership
from bot.channels.delivery.pauses import Pauses
from bot.domain.chat import Address, Clock
from bot.domain.jobs import Wake, Work
from bot.domain.people import Membership
from bot.errors import ChannelError, LostRace, NotDeliverable
from bot.features.schedules import rows, runs
from bot.features.schedules.schedule import Schedule
from bot.store import conversations
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

RUN_DUE_SECONDS = 2  # between two calls of `Schedules.run_due`
CORRECTION_SECONDS = 60  # between two calls of `Schedules.correct_due_times`
_MAX_RUNS = 25  # the most runs that begin in one run of the sweep
_AT_A_TIME = 10  # runs that begin at the same time
_PATIENCE_SECONDS = 5.0  # the time that a platform has to say if a person is still there


@dataclass(frozen=True, slots=True)
class Schedules:
    """The sweep over the rows of schedules. Several processes may run a sweep each."""

    database: Database
    policies: Policies
    wake: Wake
    clock: Clock
    standing: AskMembership  # a function that asks a platform for a person's membership in a chat
    # the pauses of schedules that wait for their platform or for the end of a rule, by the schedule's id
    _pauses: Pauses[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pauses", Pauses(self.clock))  # the class is frozen

    async def run_due(self, now: datetime) -> int:
        """Begin due runs, some at a time, and none while everything is paused. Return their number."""
        if (await self.database.read(self.policies.load)).rulebook.paused:
            return 0
        backing_off = self._pauses.list_backing_off()
        first_by_conversation = dict[str, Schedule]()  # in a conversation, one schedule runs at a time
        for schedule in await self.database.read(rows.list_due, now, _MAX_RUNS, backing_off):
            first_by_conversation.setdefault(schedule.conversation_id, schedule)
        due = list(first_by_conversation.values())[:_MAX_RUNS]
        count = 0
        for start in range(0, len(due), _AT_A_TIME):
            batch = due[start : start + _AT_A_TIME]
            results = await asyncio.gather(*(self._run(schedule, now) for schedule in batch))
            count += results.count(True)
        return count

    async def correct_due_times(self, now: datetime) -> None:
        """Correct the due times that were computed by a clock that was ahead."""
        corrected_count = await self.database.write(rows.correct_due_times, now)
        if corrected_count:
            log.warning("schedules ran by a clock that was ahead", schedules=corrected_count)

    async def _run(self, due: Schedule, now: datetime) -> bool:
        """Begin the run of a due schedule. Return True if it has begun."""
        try:
            membership = await self._find_membership(due)
            jobs = await self.database.write(runs.run_schedule, self.policies, due, membership, now)
        except LostRace:
            return False  # another turn is under way there, so this run comes later
        except runs.ForbiddenForNow as error:
            self._pauses.note_refusal(due.id)
            log.info("a schedule waits for the end of a rule", schedule=due.id, rule=error.message)
            return False
        except NotDeliverable as error:  # the platform will never say if the person is there
            jobs = await self.database.write(
                runs.pause_for_unknown_membership, self.policies, due, error.message, now
            )
            await self.wake(*jobs)
            return False
        except ChannelError as error:
            self._pauses.note_refusal(due.id)
            log.warning("a schedule waits for its platform", schedule=due.id, why=error.message)
            return False
        self._pauses.end(due.id)
        await self.wake(*jobs)
        # a run that begins asks for a turn; other jobs only tell people that the schedule is paused
        return any(job.work is Work.TURN for job in jobs)

    async def _find_membership(self, due: Schedule) -> Membership | None:
        """Return the membership of the schedule's person in its chat; None if they, or the chat, are gone.

        Raises ChannelError if the platform can't tell.
        """

        def find_origin(session: Session) -> Address | None:
            conversation = conversations.get_conversation(session, due.conversation_id)
            if conversation is None or conversation.deleted:
                return None
            return conversation.origin

        address = await self.database.read(find_origin)
        if address is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                membership = await self.standing(due.person, address)
        except TimeoutError:
            raise ChannelError("It takes too long to answer.") from None
        if membership is Membership.UNKNOWN:
            raise ChannelError("It does not say who someone is.")
        return membership

"""The sweep of schedules: it runs each due schedule once, if the schedule's person is still there."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from sqlmodel import Session

from bot.channels.base import Standing
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

SECONDS = 2
CORRECTION_SECONDS = 60
_BATCH = 25
_MAX_AT_A_TIME = 10
_PATIENCE_SECONDS = 5.0  # the time that a platform has to say if a person is still there


@dataclass(frozen=True, slots=True)
class Schedules:
    """The sweep over the rows of schedules, of which several processes may run one each."""

    database: Database
    policies: Policies
    wake: Wake
    clock: Clock
    standing: Standing
    # the pauses of schedules whose platform could not be asked, by the schedule's id
    _pauses: Pauses[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pauses", Pauses(self.clock))

    async def run_due(self, now: datetime) -> int:
        """Begin due runs, some at a time, and none while everything is paused. Return their number."""
        if (await self.database.read(self.policies.load)).book.paused:
            return 0
        found = await self.database.read(rows.list_due, now, _BATCH, self._pauses.list_held())
        first = dict[str, Schedule]()  # the first of each conversation, where one schedule runs at a time
        for each in found:
            first.setdefault(each.conversation_id, each)
        due = list(first.values())[:_BATCH]
        done = 0
        for at in range(0, len(due), _MAX_AT_A_TIME):
            together = due[at : at + _MAX_AT_A_TIME]
            begun = await asyncio.gather(*(self._run(schedule, now) for schedule in together))
            done += begun.count(True)
        return done

    async def put_right(self, now: datetime) -> None:
        """Reset the due times that a clock ahead of time has set."""
        many = await self.database.write(rows.correct_due_times, now)
        if many:
            log.warning("schedules ran by a clock that was ahead", schedules=many)

    async def _run(self, due: Schedule, now: datetime) -> bool:
        try:
            standing = await self._ask(due)
            jobs = await self.database.write(runs.run_schedule, self.policies, due, standing, now)
        except LostRace:
            return False  # another turn is under way there, so this run comes later
        except NotDeliverable as error:
            jobs = await self.database.write(runs.pause_unreachable, self.policies, due, error.message, now)
            await self.wake(*jobs)
            return False
        except ChannelError as error:
            self._pauses.note_refusal(due.id)
            log.warning("a schedule waits for its platform", schedule=due.id, why=error.message)
            return False
        self._pauses.end(due.id)
        await self.wake(*jobs)
        return any(job.work is Work.TURN for job in jobs)

    async def _ask(self, due: Schedule) -> Membership | None:
        """Return the person's membership, or None. Raises ChannelError if the platform can't tell."""

        def origin(session: Session) -> Address | None:
            found = conversations.get_conversation(session, due.conversation_id)
            if found and not found.deleted:
                return found.origin
            return None

        address = await self.database.read(origin)
        if address is None:
            return None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                standing = await self.standing(due.person, address)
        except TimeoutError:
            raise ChannelError("It takes too long to answer.") from None
        if standing is Membership.UNKNOWN:
            raise ChannelError("It does not say who someone is.")
        return standing

"""Runs what schedules have due, each once however many processes look, while its person is still there."""

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
_PATIENCE_SECONDS = 5.0  # for a platform to say if someone is there


@dataclass(frozen=True, slots=True)
class Schedules:
    """Looks for what is due; rows decide."""

    database: Database
    policies: Policies
    wake: Wake
    clock: Clock
    standing: Standing
    _pauses: Pauses[str] = field(init=False)  # of schedules whose platform could not be asked, by id

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pauses", Pauses(self.clock))

    async def run_due(self, now: datetime) -> int:
        """Begin what is due, some at a time, and nothing while everything is paused; returns how many."""
        if (await self.database.read(self.policies.load)).book.paused:
            return 0
        found = await self.database.read(rows.list_due, now, _BATCH, self._pauses.list_held())
        first = dict[str, Schedule]()  # of each conversation: one runs there at a time
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
            return False  # something else is under way there, so it is next
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
        """Raise ChannelError where the platform can't say."""

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

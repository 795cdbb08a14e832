"""The hooks that limit the runs of schedules: the tokens of a run, and grants for runs of ended schedules."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.domain.conversations import Transcript
from bot.domain.jobs import Job
from bot.domain.proposals import Proposal
from bot.features.schedules import rows
from bot.store.database import Database

_OVERSPENT_TEXT = (
    "This run of the schedule has spent {spent:,} tokens, which is all that one may spend. "
    "Send “continue” to have me finish it."
)


class TokenLimit:
    """The implementation of `StopModelCall` that stops a run which has spent its tokens."""

    def __init__(self, database: Database, tokens: int) -> None:
        self._database, self._tokens = database, tokens

    async def check(self, transcript: Transcript) -> str:
        """Return the reason to stop the turn; empty to continue, and for turns that no schedule began."""
        if transcript.schedule is None:
            return ""
        spent = await self._database.read(rows.count_spent, transcript.schedule)
        if spent >= self._tokens:
            return _OVERSPENT_TEXT.format(spent=spent)
        return ""


def count_tokens(session: Session, transcript: Transcript, tokens: int, now: datetime) -> Sequence[Job]:
    """Add the tokens of an answer to those of its schedule's run. Implements `CountAnswer`."""
    del now
    if transcript.schedule is not None:
        rows.add_spent(session, transcript.schedule, tokens)
    return ()


def refuse_grant(session: Session, proposal: Proposal) -> str:
    """Return why no grant can be given for a schedule's runs; empty if it can. Implements `RefuseGrant`."""
    schedule = rows.get(session, proposal.schedule) if proposal.schedule else None
    if schedule is None or schedule.ended_at is None:
        return ""
    return "Its schedule has ended, so there is nothing more to allow."

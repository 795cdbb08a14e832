"""The bound of a schedule's run: the tokens that it may spend."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.domain.conversations import Transcript
from bot.domain.jobs import Job
from bot.domain.proposals import Proposal
from bot.features.schedules import rows
from bot.store.database import Database

_OVERSPENT = (
    "This run of the schedule has spent {spent:,} tokens, which is all that one may spend. "
    "Send “continue” to have me finish it."
)


class TokenLimit:
    """Stops a run of a schedule that has spent what one run may."""

    def __init__(self, database: Database, tokens: int) -> None:
        self._database, self._tokens = database, tokens

    async def check(self, transcript: Transcript) -> str:
        """Return the reason to stop, or ''. Turns that no schedule began have no such limit."""
        if transcript.schedule is None:
            return ""
        spent = await self._database.read(rows.count_spent, transcript.schedule)
        if spent >= self._tokens:
            return _OVERSPENT.format(spent=spent)
        return ""


def count_tokens(session: Session, transcript: Transcript, tokens: int, now: datetime) -> Sequence[Job]:
    """Add what an answer took to what its schedule's run has spent."""
    del now
    if transcript.schedule is not None:
        rows.add_spent(session, transcript.schedule, tokens)
    return ()


def refuse_grant(session: Session, proposal: Proposal) -> str:
    """Return the reason why its schedule's runs can be allowed nothing more, or ''."""
    found = rows.get(session, proposal.schedule) if proposal.schedule else None
    if found is None or found.ended_at is None:
        return ""
    return "Its schedule has ended, so there is nothing more to allow."

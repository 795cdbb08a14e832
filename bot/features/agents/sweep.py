"""The end of agents' tokens: at their time, and with the account of their person."""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts.gone import HasAccount, is_gone
from bot.approvals.agents import end_work
from bot.domain.jobs import Job, Wake
from bot.domain.people import Actor
from bot.store import notices, tokens
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)


class GoneSweep:
    """Ends the agents whose time is over, and those of people whose accounts are gone."""

    def __init__(self, database: Database, has_account: HasAccount, wake: Wake) -> None:
        self._database, self._has_account, self._wake = database, has_account, wake

    async def run(self, now: datetime) -> None:
        """End the tokens whose time is over, and those of people who are gone."""
        await self._wake(*await self._database.write(_end_due, now))
        for account in await self._database.read(_list_people, now):
            if await is_gone(account, self._has_account):
                await self._wake(*await self._database.write(_end, account, now))
                log.info("an account is gone, so its agents have ended", account=str(account))


def _list_people(session: Session, now: datetime) -> list[Actor]:
    accounts = {each.person for each in tokens.list_agents(session, None, now) if each.person}
    people = map(Actor.parse, sorted(accounts))
    # whether the others may come in is asked with each call
    return [each for each in people if each.channel not in notices.POSTLESS]


def _end(session: Session, account: Actor, now: datetime) -> tuple[Job, ...]:
    return end_work(session, tokens.end_with_account(session, account, now), now)


def _end_due(session: Session, now: datetime) -> tuple[Job, ...]:
    return end_work(session, tokens.end_due(session, now), now)

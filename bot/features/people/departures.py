"""The end of what someone has once their platform no longer knows their account."""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts import sign_in_links
from bot.approvals.accounts.gone import HasAccount, is_gone
from bot.domain.people import LOCAL, Actor
from bot.store import people
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)


class DepartureSweep:
    """Ends the console's sessions of people whose accounts are gone."""

    def __init__(self, database: Database, has_account: HasAccount) -> None:
        self._database, self._has_account = database, has_account

    async def run(self, now: datetime) -> None:
        """End the sessions of those who are gone."""
        for account in await self._database.read(_list_signed_in, now):
            if await is_gone(account, self._has_account):
                ended = await self._database.write(sign_in_links.end_departed, account, now)
                log.info("an account is gone, so its sessions have ended", account=str(account), ended=ended)


def _list_signed_in(session: Session, now: datetime) -> list[Actor]:
    """Return the accounts in chats of everyone with a session, each once."""
    signed_in = (people.person_of(session, actor) for actor, _ in sign_in_links.sessions(session, now))
    accounts = {account for person in signed_in for account in person.accounts}
    actors = map(Actor.parse, sorted(accounts))
    return [actor for actor in actors if actor.channel != LOCAL.channel]

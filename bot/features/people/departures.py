"""The end of what someone has once their platform no longer knows their account."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts import sign_in_links
from bot.domain.people import LOCAL, Actor
from bot.errors import ChannelError
from bot.store import people
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)

SECONDS = 3600
_PATIENCE_SECONDS = 5.0


class DepartureSweep:
    """Asks the platforms of those who are signed in to the console whether their accounts are still there.

    A platform that can't be asked, or that does not tell, ends nothing.
    """

    def __init__(self, database: Database, has_account: Callable[[Actor], Awaitable[bool]]) -> None:
        self._database, self._has_account = database, has_account

    async def run(self, now: datetime) -> None:
        """End the sessions of those who are gone."""
        for account in await self._database.read(_list_signed_in, now):
            if await self._is_gone(account):
                ended = await self._database.write(sign_in_links.end_departed, account, now)
                log.info("an account is gone, so its sessions have ended", account=str(account), ended=ended)

    async def _is_gone(self, account: Actor) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return not await self._has_account(account)
        except (ChannelError, TimeoutError) as error:
            log.info("an account was not looked for", account=str(account), why=str(error))
            return False


def _list_signed_in(session: Session, now: datetime) -> list[Actor]:
    """Return the accounts in chats of everyone with a session, each once."""
    signed_in = (people.person_of(session, actor) for actor, _ in sign_in_links.sessions(session, now))
    accounts = {account for person in signed_in for account in person.accounts}
    actors = map(Actor.parse, sorted(accounts))
    return [actor for actor in actors if actor.channel != LOCAL.channel]

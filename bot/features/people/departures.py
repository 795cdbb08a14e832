"""The end of a person's rights once their platform no longer knows their account.

The sweep asks the platforms about the accounts with a session, a grant or a stand-in. An account that is gone
loses them: its sessions, the grants that it gave, and its absence with a stand-in end.
"""

from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.accounts import changes, sign_in_links
from bot.approvals.accounts.gone import HasAccount, is_gone
from bot.domain.chat import Address
from bot.domain.jobs import Job, Wake
from bot.domain.people import Actor
from bot.domain.record import Act
from bot.features.people import rows
from bot.store import notices, people, posted_cards
from bot.store.audit.log import By
from bot.store.database import Database
from bot.store.notices import POSTLESS
from bot.telemetry.logs import logger

log = logger(__name__)


class DepartureSweep:
    """The sweep that ends sessions, grants and stand-ins of people whose accounts no longer exist."""

    def __init__(self, database: Database, has_account: HasAccount, wake: Wake) -> None:
        self._database, self._has_account, self._wake = database, has_account, wake

    async def run(self, now: datetime) -> None:
        """End the rights of departed accounts.

        Features whose hook failed are told again that an account has changed.
        """
        untold, jobs = await self._database.write(changes.tell_again, now)
        await self._wake(*jobs)
        if untold:  # the number of changes at which a hook still fails
            log.error("features do not take that accounts have changed", accounts=untold)
        for account in await self._database.read(_list_holders, now):
            if await is_gone(account, self._has_account):
                ended, jobs = await self._database.write(_end_departed, account, now)
                await self._wake(*jobs)
                log.info("an account is gone, so its rights have ended", account=str(account), sessions=ended)


def _list_holders(session: Session, now: datetime) -> list[Actor]:
    """Return all accounts of everyone with a session, a grant or a stand-in, each once.

    Left out are accounts that no platform knows, of the console and the command line.
    """
    holders = [actor for actor, _ in sign_in_links.sessions(session, now)]
    holders += map(Actor.parse, [*grants.list_givers(session, now), *rows.list_away(session)])
    accounts = {account for each in holders for account in people.person_of(session, each).accounts}
    actors = map(Actor.parse, sorted(accounts | set(map(str, holders))))
    return [actor for actor in actors if actor.channel not in POSTLESS]


def _end_departed(session: Session, account: Actor, now: datetime) -> tuple[int, tuple[Job, ...]]:
    """End the rights of a departed account. Return the number of ended sessions, and the jobs."""
    accounts = people.person_of(session, account).accounts | {str(account)}
    ended = rows.end(session, accounts, By.nod(Act.END_WITH_ACCOUNT), now)
    for each in ended:
        over = f"The account of {each.who.label} is gone. You no longer decide for them."
        notices.store_notice(session, Address.parse(str(each.stand_in)), over, now)
    if ended:
        posted_cards.mark_open_outdated(session)
    return sign_in_links.end_departed(session, account, now)

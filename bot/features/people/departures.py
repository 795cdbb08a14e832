"""The end of a person's rights once their platform no longer knows their account.

A sweep asks the platforms about the accounts of everyone with a session, a grant or a stand-in. If an account
is gone, its sessions end, and so do the grants that it gave. The person's absence, in which a stand-in may
decide for them, ends as well. The account is also unlinked from the person's other accounts.
"""

from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants, rights
from bot.approvals.accounts import changes, sign_in_links
from bot.approvals.accounts.departures import end_departed_account
from bot.approvals.accounts.existence import HasAccount, is_gone
from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.jobs import Job, Wake
from bot.domain.people import Actor
from bot.features.people import rows
from bot.store import notices, people, posted_cards
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.notices import CHANNELS_WITHOUT_CHATS
from bot.telemetry.logs import logger

log = logger(__name__)


class DepartureSweep:
    """The sweep that ends sessions, grants and stand-ins of people whose accounts no longer exist."""

    def __init__(self, database: Database, has_account: HasAccount, wake: Wake) -> None:
        self._database, self._has_account, self._wake = database, has_account, wake

    async def run(self, now: datetime) -> None:
        """End the rights of departed accounts.

        Features are told of each change of an account. Those whose hook failed are told again first.
        """
        untold_count, jobs = await self._database.write(changes.tell_again, now)
        await self._wake(*jobs)
        if untold_count:
            log.error("features do not take that accounts have changed", accounts=untold_count)
        for account in await self._database.read(_list_holders, now):
            if await is_gone(account, self._has_account):
                ended, jobs = await self._database.write(_end_departed, account, now)
                await self._wake(*jobs)
                log.info("an account is gone, so its rights have ended", account=str(account), sessions=ended)


def _list_holders(session: Session, now: datetime) -> list[Actor]:
    """Return all accounts of everyone with a session, a grant or a stand-in, each once.

    Left out are the accounts of the console and the command line, which belong to no platform
    (`CHANNELS_WITHOUT_CHATS`).
    """
    # each person with such a right, by one of their accounts
    holders = [actor for actor, _ in sign_in_links.list_sessions(session, now)]
    holders += map(Actor.parse, [*grants.list_givers(session, now), *rows.list_away(session)])
    accounts = {str(holder) for holder in holders}
    for holder in holders:
        accounts |= people.load_person(session, holder).accounts
    all_actors = map(Actor.parse, sorted(accounts))
    return [actor for actor in all_actors if actor.channel not in CHANNELS_WITHOUT_CHATS]


def _end_departed(session: Session, account: Actor, now: datetime) -> tuple[int, tuple[Job, ...]]:
    """End the rights of a departed account. Return the number of ended sessions, and the jobs."""
    accounts = rights.list_accounts(session, account)
    ended = rows.end_absences(session, accounts, Author.of_nod(Act.END_WITH_ACCOUNT), now)
    for absence in ended:
        text = f"The account of {absence.absent.label} is gone. You no longer decide for them."
        notices.store_notice(session, Address.parse(str(absence.stand_in)), text, now)
    if ended:
        posted_cards.mark_open_outdated(session)
    return end_departed_account(session, account, now)

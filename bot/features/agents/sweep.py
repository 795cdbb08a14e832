"""The sweep that ends agents' tokens: when their time is over, and when their person's account is gone.

With a token end the grants for its agent, and the agent's open calls are withdrawn (`end_work_of_tokens`).
"""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts.existence import HasAccount, is_gone
from bot.approvals.agent_tokens import end_work_of_tokens
from bot.domain.jobs import Job, Wake
from bot.domain.people import Actor
from bot.store import notices, tokens
from bot.store.database import Database
from bot.telemetry.logs import logger

log = logger(__name__)


class TokenSweep:
    """The sweep over the tokens of agents, run by the scheduler."""

    def __init__(self, database: Database, has_account: HasAccount, wake: Wake) -> None:
        self._database, self._has_account, self._wake = database, has_account, wake

    async def run(self, now: datetime) -> None:
        """End the tokens whose time is over, and those of people whose accounts no longer exist."""
        await self._wake(*await self._database.write(_end_due, now))
        for account in await self._database.read(_list_accounts, now):
            if await is_gone(account, self._has_account):
                await self._wake(*await self._database.write(_end_of_gone, account, now))
                log.info("an account is gone, so its agents have ended", account=str(account))


def _list_accounts(session: Session, now: datetime) -> list[Actor]:
    """Return the accounts of agents' people whose platform can be asked about them.

    The console and the command line are left out: no platform knows these accounts. With each call of an
    agent, its person's account of the console is checked (``bot/web/sign_in/tokens.py``).
    """
    accounts = {token.person for token in tokens.list_agents(session, None, now) if token.person}
    actors = map(Actor.parse, sorted(accounts))
    return [actor for actor in actors if actor.channel not in notices.CHANNELS_WITHOUT_CHATS]


def _end_of_gone(session: Session, account: Actor, now: datetime) -> tuple[Job, ...]:
    return end_work_of_tokens(session, tokens.end_with_account(session, account, now), now)


def _end_due(session: Session, now: datetime) -> tuple[Job, ...]:
    return end_work_of_tokens(session, tokens.end_due(session, now), now)

"""A check if an account still exists on its platform, such as Slack.

Someone who has left a team has no account there. Sweeps of features ask for the accounts of people who hold a
right, such as a grant or a connection, and end the rights of accounts that are gone. A platform that can't be
asked, or that does not tell, counts as if the account were there: nothing ends then.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bot.domain.people import Actor
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

HasAccount = Callable[[Actor], Awaitable[bool]]
"""A function that asks a platform if an account exists there. Raises ChannelError if it can't be told."""
LOOK_SECONDS = 3600
"""The time after which a sweep checks the accounts of people who hold a right again."""
_TIMEOUT_SECONDS = 5.0


async def is_gone(account: Actor, has_account: HasAccount) -> bool:
    """Tell if the platform of an account says, in time, that the account does not exist."""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return not await has_account(account)
    except (ChannelError, TimeoutError) as error:
        log.info("an account was not looked for", account=str(account), why=str(error))
        return False

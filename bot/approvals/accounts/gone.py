"""Accounts that their platforms no longer know.

A platform that can't be asked, or that does not tell, ends nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bot.domain.people import Actor
from bot.errors import ChannelError
from bot.telemetry.logs import logger

log = logger(__name__)

HasAccount = Callable[[Actor], Awaitable[bool]]
"""Asks a platform if an account is there at all. Raises ChannelError where that can't be told."""
LOOK_SECONDS = 3600
"""How often those who hold something are looked for."""
_PATIENCE_SECONDS = 5.0


async def is_gone(account: Actor, has_account: HasAccount) -> bool:
    """Tell if the platform of an account says, in time, that it is no longer there."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return not await has_account(account)
    except (ChannelError, TimeoutError) as error:
        log.info("an account was not looked for", account=str(account), why=str(error))
        return False

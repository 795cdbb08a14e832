"""The sweep of connections. All that it needs is in rows, so any process may run it.

Each run ends sign-ins that took too long, checks the chats whose accounts may have to rest (`resting.py`),
and has servers revoke the tokens of ended connections. Once a day it looks for people who are gone. The first
run of a process also ends connections to changed addresses, and tells people of connections that no key
opens.
"""

from datetime import datetime

from bot.approvals.accounts.existence import HasAccount, is_gone
from bot.domain.people import Actor
from bot.features.connections import ending, revocations, rows
from bot.features.connections.port import AccountConnections, address_of
from bot.features.connections.sign_in import pending, waiting
from bot.jobs.daily import DailyRun
from bot.store.notices import CHANNELS_WITHOUT_CHATS
from bot.telemetry.logs import logger

log = logger(__name__)

CONNECTION_SWEEP_SECONDS = 15
"""The time between two runs of the sweep."""


class ConnectionSweep:
    """The sweep. Its first run in a process also checks the servers."""

    def __init__(self, port: AccountConnections, has_account: HasAccount) -> None:
        self._port, self._has_account = port, has_account
        self._daily_run = DailyRun("connections", port.database)
        self._has_checked_servers = False  # True after the first run

    async def run(self, now: datetime) -> None:
        """Do the work that is due."""
        database = self._port.database
        if not self._has_checked_servers:
            await self._check_servers(now)
            self._has_checked_servers = True
        await database.write(pending.end_expired, now)
        if await self._daily_run.take(now):
            await database.write(waiting.forget_late, now)
            await self._end_of_gone(now)
        await self._port.reader_check.check_all(await database.read(rows.list_of_chats), now)
        for due in await database.write(revocations.take_due, now):
            from bot.tools.mcp.authorization import revoke_tokens  # here, as the SDK is slow to import

            is_done = await revoke_tokens(due.url, due.client_json, due.tokens_json, due.metadata_json)
            if is_done or due.tries >= revocations.MOST_TRIES:
                await database.write(revocations.delete_revocation, due.id)

    async def _check_servers(self, now: datetime) -> None:
        """End the connections to changed addresses, and tell the owners of connections that no key opens."""
        addresses = {name: address_of(config) for name, config in self._port.servers.items()}
        ended = await self._port.database.write(ending.end_at_changed_addresses, addresses, now)
        if ended:
            log.warning("connections ended with their server's address", many=len(ended))
        lost = await self._port.database.write(ending.tell_owners_of_unreadable, now)
        if lost:
            log.warning("no key of NOD_SECRET_KEY opens these connections; their owners were told", many=lost)

    async def _end_of_gone(self, now: datetime) -> None:
        """End the connections of people whose accounts no longer exist, as their platforms say."""
        gone = []
        owners = await self._port.database.read(rows.list_owners)
        admins = await self._port.database.read(rows.list_connecting_admins)
        for account in sorted({*owners, *admins}):
            actor = Actor.parse(account)
            if actor.channel not in CHANNELS_WITHOUT_CHATS and await is_gone(actor, self._has_account):
                gone.append(account)
        if gone:
            await self._port.database.write(ending.end_of_gone_accounts, self._port.policies, gone, now)
            log.warning("connections ended with accounts that are gone", many=len(gone))

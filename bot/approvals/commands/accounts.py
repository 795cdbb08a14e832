"""Validation of the people that a command names: their platform must know each."""

import asyncio
import difflib
from collections.abc import Sequence

from bot.approvals.commands.values import parse_account
from bot.approvals.commands.words import CommandError, CommandParts
from bot.domain.chat import Command
from bot.errors import ChannelError
from bot.store import people


class Accounts:
    """Asks platforms who is there."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._has_account = parts.database, parts.has_account

    async def check(self, named: Sequence[str], command: Command) -> None:
        """Raise CommandError for an account that its platform does not know, or no longer."""
        known = await asyncio.gather(*(self._is_known(each, command) for each in named))
        for each in (name for name, is_known in zip(named, known, strict=True) if not is_known):
            accounts = await self._database.read(people.accounts_in, each.partition(":")[0])
            near = difflib.get_close_matches(each, accounts, 1, 0.6)
            if near:
                meant = f"Did you mean `{near[0]}`?"
            else:
                meant = "Have them write to Nod first, or name someone else."
            raise CommandError(f"There is no account {each}. {meant}")

    async def _is_known(self, named: str, command: Command) -> bool:
        """Return whether it is there as far as its platform says now."""
        who = parse_account(named)
        if self._has_account is None or who == command.actor:
            return True
        try:
            return await self._has_account(who)
        except (ChannelError, TimeoutError):
            return True

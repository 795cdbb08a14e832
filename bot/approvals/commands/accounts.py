"""A check of the accounts that a command names, such as ``slack:T1/U7``: their platform must know each.

A rule for a mistyped account would silently never apply. The commands for rules, roles and reassigning use
it.
"""

import asyncio
import difflib
from collections.abc import Sequence

from bot.approvals.commands.operands import parse_account
from bot.approvals.commands.subcommands import CommandError, CommandParts
from bot.domain.chat import Command
from bot.errors import ChannelError
from bot.store import people


class Accounts:
    """The check, which asks platforms if accounts exist."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._has_account = parts.database, parts.has_account

    async def check(self, accounts: Sequence[str], command: Command) -> None:
        """Raise CommandError for the first account that its platform does not know, with the nearest one."""
        answers = await asyncio.gather(*(self._is_known(account, command) for account in accounts))
        for account, is_known in zip(accounts, answers, strict=True):
            if is_known:
                continue
            channel, _, _ = account.partition(":")
            known_accounts = await self._database.read(people.list_accounts_in, channel)
            nearest = difflib.get_close_matches(account, known_accounts, 1, 0.6)
            if nearest:
                hint = f"Did you mean `{nearest[0]}`?"
            else:
                hint = "Have them write to Nod first, or name someone else."
            raise CommandError(f"There is no account {account}. {hint}")

    async def _is_known(self, account: str, command: Command) -> bool:
        """Tell if an account may exist: False only if its platform says that it does not.

        The account of the command's author is not asked for.
        """
        actor = parse_account(account)
        if self._has_account is None or actor == command.actor:
            return True
        try:
            return await self._has_account(actor)
        except (ChannelError, TimeoutError):
            return True

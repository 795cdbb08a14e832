"""Slash commands, the same words in every channel: ``/nod`` for everyone, ``/approvals`` for admins.

Each answer is for the one who asked; who is no admin is refused privately.
"""

from bot.commands.deciding import DecidingWords
from bot.commands.everyone import EveryonesWords, Stop
from bot.commands.ruling import RulingWords
from bot.commands.words import Words
from bot.domain.chat import Answer, Clock, Command, Inbox, Reply
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.registry import Registry


class Commands:
    def __init__(
        self,
        database: Database,
        policies: Policies,
        registry: Registry,
        clock: Clock,
        inbox: Inbox,
        stop: Stop,
    ) -> None:
        self._database = database
        self._policies = policies
        self._everyone = EveryonesWords(database, policies, clock, stop)
        deciding = DecidingWords(database, registry, inbox)
        ruling = RulingWords(database, policies, registry, clock)
        self._admins = Words("approvals", deciding.words | ruling.words)

    async def handle(self, command: Command) -> Reply:
        """Answer a command. Unknown words change nothing."""
        match command.name:
            case "stop":
                return Reply(Answer.ACCEPTED, await self._everyone.stop(command, ""))
            case "nod":
                return await self._everyone.words.answer(command)
            case "approvals" if await self._database.read(self._policies.is_admin, command.actor):
                return await self._admins.answer(command)
            case "approvals":
                return Reply(Answer.REFUSED, "/approvals is for admins. Ask one of them, or use /nod help.")
            case _:
                return Reply(Answer.INVALID, f"I do not know /{command.name}. Try /nod help.")

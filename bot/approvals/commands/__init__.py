"""Slash commands, the same words in every channel: ``/nod``, and ``/approvals`` to decide and for rules.

Each answer goes only to the person who asked. Rules are for admins; what someone may decide by a button they
may decide here.
"""

from collections.abc import Callable

from bot.approvals.commands.decide import DecideCommands
from bot.approvals.commands.everyone import EveryoneCommands, Stop
from bot.approvals.commands.link import LinkCommands
from bot.approvals.commands.rules import Hindrance, RuleCommands
from bot.approvals.commands.words import Words, first_word
from bot.domain.chat import Answer, Clock, Command, Inbox, Reply
from bot.domain.jobs import Wake
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
        wake: Wake,
        site_url: Callable[[], str],
        hindrance: Hindrance,
    ) -> None:
        self._database = database
        self._policies = policies
        linking = LinkCommands(database, policies, clock, site_url)
        self._everyone = EveryoneCommands(database, policies, clock, stop, linking.words)
        deciding = DecideCommands(database, policies, registry, inbox, clock)
        ruling = RuleCommands(database, policies, registry, clock, wake, hindrance)
        self._deciding = Words("approvals", deciding.words)
        self._for_admins = ruling.words | linking.admins
        self._admins = Words("approvals", deciding.words | self._for_admins)
        self._everywhere = ruling.everywhere | linking.admins.keys()

    async def handle(self, command: Command) -> Reply:
        """Answer a command. Unknown words change nothing."""
        word = first_word(command.text)[0].lower()
        match command.name:
            case "stop":
                return Reply(Answer.ACCEPTED, await self._everyone.stop(command, ""))
            case "nod":
                return await self._everyone.words.answer(command)
            case "approvals" if await self._database.read(self._policies.is_admin, command.actor):
                bound = await self._database.read(self._policies.bound_to, command.actor)
                if bound and word in self._everywhere:
                    return Reply(
                        Answer.REFUSED, f"This concerns every workspace. You are an admin of {bound}."
                    )
                return await self._admins.answer(command)
            case "approvals" if word in self._for_admins:
                return Reply(
                    Answer.REFUSED,
                    f"/approvals {word} is for admins. Ask one of them, or use /approvals help.",
                )
            case "approvals":
                return await self._deciding.answer(command)
            case _:
                return Reply(Answer.INVALID, f"Unknown command /{command.name}. Try /nod help.")

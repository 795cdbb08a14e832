"""Slash commands, the same words in every channel: ``/nod``, and ``/approvals`` to decide and for rules.

Each answer goes only to the person who asked. Rules are for admins; what someone may decide by a button they
may decide here.
"""

from collections.abc import Sequence

from bot.approvals.commands.decide import DecideCommands
from bot.approvals.commands.everyone import EveryoneCommands
from bot.approvals.commands.rules import EVERYWHERE_WORDS, RuleCommands
from bot.approvals.commands.words import CommandParts, CommandSet, Words, first_word
from bot.domain.chat import Answer, Command, Reply
from bot.domain.verbs import Verb


class Commands:
    """Answers slash commands."""

    def __init__(self, parts: CommandParts, more: Sequence[CommandSet] = ()) -> None:
        """``more``: the words of features, which are listed after those of the kernel."""
        self._database, self._policies = parts.database, parts.policies
        everyone = EveryoneCommands(parts)
        deciding = [*DecideCommands(parts).words, *(word for each in more for word in each.approvals)]
        [undo] = (each.do for each in deciding if each.word == Verb.UNDO)
        admins = [word for each in more for word in each.admins]
        ruling = [*RuleCommands(parts, undo).words, *admins]
        self._stop = everyone.stop
        self._everyone = Words("nod", [*everyone.words, *(word for each in more for word in each.nod)])
        self._deciding = Words("approvals", deciding)
        self._admins = Words("approvals", [*deciding, *ruling])
        self._for_admins = {each.word for each in ruling} - {w.word for w in deciding}
        self._everywhere = EVERYWHERE_WORDS | {
            word.word for each in more if each.everywhere for word in each.admins
        }

    async def handle(self, command: Command) -> Reply:
        """Answer a command. Unknown words change nothing."""
        word = first_word(command.text)[0].lower()
        match command.name:
            case "stop":
                return Reply(Answer.ACCEPTED, await self._stop(command, ""))
            case "nod":
                return await self._everyone.answer(command)
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

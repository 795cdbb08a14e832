"""Slash commands, the same in every channel: ``/nod`` for everyone, ``/approvals`` for decisions and rules.

After the command comes the word of a subcommand, as in ``/approvals show 3f2a``. A module here has the
subcommands of one purpose; features add more by a `CommandSet`. `Commands.handle` finds the subcommand and
runs it. Each reply goes only to the person who asked. Rules are for admins. A decision that someone may make
by a button, they may make here.
"""

from collections.abc import Sequence

from bot.approvals.commands.decide import DecideCommands
from bot.approvals.commands.everyone import EveryoneCommands
from bot.approvals.commands.rules import CROSS_WORKSPACE_WORDS, RuleCommands
from bot.approvals.commands.words import CommandParts, CommandSet, Words, first_word
from bot.domain.chat import Answer, Command, Reply
from bot.domain.verbs import Verb


class Commands:
    """The handler of slash commands."""

    def __init__(self, parts: CommandParts, of_features: Sequence[CommandSet] = ()) -> None:
        """Take the dependencies, and the subcommands of features, which are listed after the kernel's."""
        self._database, self._policies = parts.database, parts.policies
        everyone = EveryoneCommands(parts)
        of_nod = list(everyone.words)
        deciding = list(DecideCommands(parts).words)
        [undo] = (subcommand.do for subcommand in deciding if subcommand.word == Verb.UNDO)
        ruling = list(RuleCommands(parts, undo).words)
        everywhere = set(CROSS_WORKSPACE_WORDS)
        for command_set in of_features:
            of_nod += command_set.nod
            deciding += command_set.approvals
            ruling += command_set.admins
            if command_set.everywhere:
                everywhere.update(subcommand.word for subcommand in command_set.admins)
        words_of_all = {subcommand.word for subcommand in deciding}
        self._stop = everyone.stop
        self._everyone = Words("nod", of_nod)
        self._deciding = Words("approvals", deciding)  # what `/approvals` has for everyone
        self._admins = Words("approvals", [*deciding, *ruling])  # what it has for admins
        self._only_for_admins = {subcommand.word for subcommand in ruling} - words_of_all
        self._everywhere = everywhere  # words that concern every workspace

    async def handle(self, command: Command) -> Reply:
        """Run a command and return the reply. A word that is not known changes nothing."""
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
            case "approvals" if word in self._only_for_admins:
                return Reply(
                    Answer.REFUSED,
                    f"/approvals {word} is for admins. Ask one of them, or use /approvals help.",
                )
            case "approvals":
                return await self._deciding.answer(command)
            case _:
                return Reply(Answer.INVALID, f"Unknown command /{command.name}. Try /nod help.")

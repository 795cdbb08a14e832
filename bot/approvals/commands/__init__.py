"""Slash commands, the same in every channel: ``/nod`` for everyone, ``/approvals`` for decisions and rules.

After the command comes the word of a subcommand, as in ``/approvals show 3f2a``. A module here has the
subcommands of one purpose; features add more by a `CommandSet`. `Commands.handle` finds the subcommand and
runs it. Each reply goes only to the person who asked. Rules are for admins, whose subcommands are in
``admin/``. A decision that someone may make by a button, they may make here.
"""

from collections.abc import Sequence

from bot.approvals.commands.admin.admin_commands import CROSS_WORKSPACE_WORDS, AdminCommands
from bot.approvals.commands.decide import DecideCommands
from bot.approvals.commands.everyone import EveryoneCommands
from bot.approvals.commands.subcommands import CommandParts, CommandSet, SubcommandTable, first_word
from bot.domain.chat import Answer, Command, Reply
from bot.domain.verbs import Verb


class Commands:
    """The handler of slash commands."""

    def __init__(self, parts: CommandParts, of_features: Sequence[CommandSet] = ()) -> None:
        """Take the dependencies, and the subcommands of features, which are listed after Nod's own."""
        self._database = parts.database
        self._policies = parts.policies
        everyone = EveryoneCommands(parts)
        nod_subcommands = list(everyone.subcommands)
        approvals_subcommands = list(DecideCommands(parts).subcommands)
        # admins also set rules by ``undo``, so their handler passes an ID on to this one
        [undo] = (subcommand.handler for subcommand in approvals_subcommands if subcommand.word == Verb.UNDO)
        admin_subcommands = list(AdminCommands(parts, undo).subcommands)
        cross_workspace_words = set(CROSS_WORKSPACE_WORDS)
        for command_set in of_features:
            nod_subcommands += command_set.nod
            approvals_subcommands += command_set.approvals
            admin_subcommands += command_set.admins
            if command_set.is_cross_workspace:
                cross_workspace_words.update(subcommand.word for subcommand in command_set.admins)
        words_for_everyone = {subcommand.word for subcommand in approvals_subcommands}
        self._stop = everyone.stop
        self._nod = SubcommandTable("nod", nod_subcommands)
        self._approvals = SubcommandTable("approvals", approvals_subcommands)  # as everyone has it
        self._approvals_of_admins = SubcommandTable("approvals", [*approvals_subcommands, *admin_subcommands])
        self._only_for_admins = {subcommand.word for subcommand in admin_subcommands} - words_for_everyone
        self._cross_workspace_words = cross_workspace_words  # not for an admin of one workspace

    async def handle(self, command: Command) -> Reply:
        """Run a command and return the reply. A word that is not known changes nothing."""
        word = first_word(command.text)[0].lower()
        match command.name:
            case "stop":
                return Reply(Answer.ACCEPTED, await self._stop(command, ""))
            case "nod":
                return await self._nod.answer(command)
            case "approvals" if await self._database.read(self._policies.is_admin, command.actor):
                # the workspace of an admin of one workspace alone; None for an admin of all of Nod
                own_workspace = await self._database.read(self._policies.find_workspace_bound, command.actor)
                if own_workspace and word in self._cross_workspace_words:
                    return Reply(
                        Answer.REFUSED, f"This concerns every workspace. You are an admin of {own_workspace}."
                    )
                return await self._approvals_of_admins.answer(command)
            case "approvals" if word in self._only_for_admins:
                return Reply(
                    Answer.REFUSED,
                    f"/approvals {word} is for admins. Ask one of them, or use /approvals help.",
                )
            case "approvals":
                return await self._approvals.answer(command)
            case _:
                return Reply(Answer.INVALID, f"Unknown command /{command.name}. Try /nod help.")

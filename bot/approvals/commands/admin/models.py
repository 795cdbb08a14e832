"""The choice of language models: which one answers in a place, and which one gives a second opinion."""

from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply, first_word
from bot.domain.chat import Command
from bot.domain.rule_values import Subject
from bot.store import people


class ModelCommands:
    """The subcommands ``model`` and ``opinion``."""

    def __init__(self, parts: CommandParts, setter: RuleSetter) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._models = parts.models
        self._setter = setter

    async def handle_model(self, command: Command, text: str) -> str | CommandReply:
        """Set which language model answers, or list the models and the rules about them."""
        name, rest = first_word(text)
        next_word, _ = first_word(rest)
        if name in self._models and next_word in ("", "for", "in"):
            return await self._setter.make_setter(Subject.MODEL)(command, text)
        models = f"There are {', '.join(self._models)}."
        if text:
            raise CommandError(f"{name!r} is not a model here, or there is text after its name. {models}")
        policy = await self._database.read(self._policies.load)
        default_model = self._models[0]
        lines = [f"{models} Where no rule says another, {default_model} answers."]
        lines += [f"- {rule.description}" for rule in policy.rulebook.list_about(Subject.MODEL)]
        return await self._database.read(people.put_names_in, "\n".join(lines))

    async def handle_opinion(self, command: Command, text: str) -> str | CommandReply:
        name, _ = first_word(text)
        if name not in self._models:
            raise CommandError(f"{name!r} is not a model here. There are {', '.join(self._models)}.")
        return await self._setter.make_setter(Subject.OPINION)(command, text)

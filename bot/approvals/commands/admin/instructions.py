"""The instructions to the agent in a place, as admins set and read them."""

from sqlmodel import Session

from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.operands import parse_place
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply, first_word
from bot.domain.chat import Command
from bot.domain.rule_values import Subject
from bot.domain.rules import ANY_TOOL, EVERYWHERE, MAX_INSTRUCTIONS_CHARS, Rule, covers
from bot.domain.times import format_in_zone
from bot.store import people, rules
from bot.store.rules import RuleRecord


class InstructionCommands:
    """The subcommand ``instructions``."""

    def __init__(self, parts: CommandParts, setter: RuleSetter) -> None:
        self._database = parts.database
        self._setter = setter

    async def handle_instructions(self, command: Command, text: str) -> str | CommandReply:
        """Set, drop or show the instructions for a place: ``[in PLACE] [WORDS, or clear]``."""
        new_rule = _parse_instructions(text, command)
        current = await self._database.read(self._list_instructions, new_rule.scope)
        if str(new_rule.value).lower() == "clear":
            for stored, _ in current:
                if stored.rule.scope == new_rule.scope:
                    return await self._setter.drop(command, str(stored.rule.id))
            return "There are no instructions there."
        if new_rule.value:
            rule, _ = await self._database.write(self._setter.store_rule, new_rule, command)
            text = (
                f"Set: {rule.description}. "
                "It applies from the next message on, in addition to NOD_INSTRUCTIONS."
            )
            return CommandReply(await self._database.read(people.put_names_in, text), rule=rule.id)
        paragraphs, zone = [], self._setter.zone
        for stored, version in current:
            source = f"version {version}, set by {stored.set_by}, {format_in_zone(stored.set_at, zone)}"
            paragraphs.append(f"**In {stored.rule.scope}** ({source})\n{stored.rule.value}")
        if paragraphs:
            return await self._database.read(people.put_names_in, "\n\n".join(paragraphs))
        return "There are no instructions there."

    def _list_instructions(self, session: Session, scope: str) -> list[tuple[RuleRecord, int]]:
        """Return the rules with the instructions that hold in a place, the one for the widest place first.

        Each comes with the number of its version, counted from 1.
        """
        instructions = [
            stored
            for stored in rules.list_rules(session)
            if stored.rule.subject is Subject.INSTRUCTIONS and covers(stored.rule.scope, scope)
        ]
        instructions.sort(key=lambda stored: len(stored.rule.scope))
        return [(stored, rules.count_ever_set(session, stored.rule)) for stored in instructions]


def _parse_instructions(text: str, command: Command) -> Rule:
    """Read ``[in PLACE] [WORDS]`` into a rule, whose value is empty without words. Raises CommandError."""
    first, rest = first_word(text)
    place, words = first_word(rest)
    is_place = ":" in place or place in ("here", EVERYWHERE)
    if first != "in" or not is_place:  # else "in" is the first of the instructions' own words
        place = "here"
        words = text.strip()
    if len(words) > MAX_INSTRUCTIONS_CHARS:
        raise CommandError(f"At most {MAX_INSTRUCTIONS_CHARS:,} characters.")
    scope = place if place == EVERYWHERE else parse_place(place, command)
    return Rule(id=0, subject=Subject.INSTRUCTIONS, scope=scope, pattern=ANY_TOOL, value=words)

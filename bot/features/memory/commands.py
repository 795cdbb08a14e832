"""``/nod memory``: the remembered facts that the person who asks may see."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from bot.approvals.commands.values import parse_account
from bot.approvals.commands.words import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    first_word,
    remove_quotes,
)
from bot.domain.chat import Answer, Command
from bot.domain.text import shorten
from bot.errors import ToolError
from bot.features.memory import access
from bot.features.memory.access import KnownFact
from bot.features.memory.facts import About, last_day

_NONE = "Nothing is remembered here. Ask me to remember something: a card shows it first."
_SAID = 3_000  # the most characters of a list in a chat
_DIGITS = 9


class MemoryCommands:
    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self.words = [
            Subcommand(
                "memory [forget NUMBER, forget all, edit NUMBER WORDS, or export]",
                "what I remember about you, this chat, the team; admins forget it for an ACCOUNT that left",
                self._memory,
                is_private=True,
                also=("remember", "forget", "facts"),
            ),
        ]

    async def _memory(self, command: Command, text: str) -> str | CommandReply:
        word, rest = first_word(text)
        match word.lower():
            case "":
                return self._format_facts(await self._list_visible(command))
            case "export":
                facts = [asdict(each) for each in await self._list_visible(command)]
                told = json.dumps(facts, ensure_ascii=False, indent=2, default=datetime.isoformat)
                return f"```json\n{told}\n```"
            case "forget" if rest.lower() == "all" or ":" in rest:
                return await self._forget_person(command, remove_quotes(rest))
            case "forget" if rest:
                number = _number(rest)
                forgotten = await self._database.write(
                    access.forget_fact, self._policies, command.actor, number, self._clock()
                )
                return _reply(f"Forgotten: {forgotten}" if forgotten else "", number)
            case "edit" if rest:
                return await self._edit(command, *first_word(rest))
            case _:
                raise CommandError("Say which one.")

    async def _list_visible(self, command: Command) -> Sequence[KnownFact]:
        return await self._database.read(
            access.list_visible, self._policies, command.actor, self._clock(), command.address
        )

    async def _forget_person(self, command: Command, which: str) -> str | CommandReply:
        whose = command.actor if which.lower() == "all" else parse_account(which)
        count = await self._database.write(
            access.forget_person, self._policies, command.actor, whose, self._clock()
        )
        if count is None:
            return CommandReply("Only an admin can say that for someone else.", answer=Answer.REFUSED)
        return f"Forgotten: {count} of what was for {'you' if whose == command.actor else whose} alone."

    async def _edit(self, command: Command, which: str, words: str) -> str | CommandReply:
        number = _number(which)
        try:
            fact = await self._database.write(
                access.change_fact, self._policies, command.actor, number, words, self._clock()
            )
        except (ValueError, ToolError) as error:
            raise CommandError(str(error)) from None
        return _reply(f"Remembered: {fact}" if fact else "", number)

    def _format_facts(self, facts: Sequence[KnownFact]) -> str:
        """Return a line for each fact, grouped by the person, place or team that it is for."""
        if not facts:
            return _NONE
        lines, whose = [], ""
        for each in facts:
            if each.whose != whose:
                whose = each.whose
                alone = ", seen by no one else" if each.about is About.PERSON else ""
                lines.append(f"**For {whose}**{alone}")
            more = [] if each.about is About.PERSON else [f"{each.asked_name} asked"]
            if each.until:
                last = last_day(each.until, self._policies.held.book.zone)
            else:
                last = None
            more += [f"until {last.day} {last:%b %Y}"] if last else []
            more += ["the oldest, and there is little room left"] if each.oldest else []
            lines.append(f"- {each.id}: {each.fact}" + (f" ({', '.join(more)})" if more else ""))
        return shorten("\n".join([*lines, "", "`/nod memory forget NUMBER` forgets one."]), _SAID)


def _reply(said: str, number: int) -> CommandReply:
    if said:
        return CommandReply(said)
    return CommandReply(access.not_yours_text(number), answer=Answer.STALE)


def _number(said: str) -> int:
    number = remove_quotes(said)
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        raise CommandError("Name a fact by its number.")
    return int(number)

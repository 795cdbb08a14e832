"""The command ``/nod memory``, which lists, edits, forgets and exports the facts that a person may see."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from bot.approvals.commands.operands import parse_account
from bot.approvals.commands.subcommands import (
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
from bot.features.memory.access import VisibleFact
from bot.features.memory.facts import About, find_last_day

_NO_FACTS_TEXT = "Nothing is remembered here. Ask me to remember something: a card shows it first."
_MAX_LIST_CHARS = 3_000
_MAX_DIGITS = 9  # of the number of a fact


class MemoryCommands:
    """The command, whose ``subcommands`` become a part of ``/nod``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self.subcommands = [
            Subcommand(
                "memory [forget NUMBER, forget all, edit NUMBER WORDS, or export]",
                "what I remember about you, this chat, the team; admins forget it for an ACCOUNT that left",
                self._memory,
                is_private=True,
                synonyms=("remember", "forget", "facts"),
            ),
        ]

    async def _memory(self, command: Command, text: str) -> str | CommandReply:
        """Do what ``text`` says; an empty text lists the facts."""
        word, rest = first_word(text)
        match word.lower():
            case "":
                return self._format_facts(await self._list_visible(command))
            case "export":
                facts = [asdict(each) for each in await self._list_visible(command)]
                exported = json.dumps(facts, ensure_ascii=False, indent=2, default=datetime.isoformat)
                return f"```json\n{exported}\n```"
            # only an account has a colon, such as ``slack:T1/U7``
            case "forget" if rest.lower() == "all" or ":" in rest:
                return await self._forget_person(command, remove_quotes(rest))
            case "forget" if rest:
                number = _parse_number(rest)
                forgotten = await self._database.write(
                    access.forget_fact, self._policies, command.actor, number, self._clock()
                )
                return _refuse(number) if forgotten is None else f"Forgotten: {forgotten}"
            case "edit" if rest:
                return await self._edit(command, *first_word(rest))
            case _:
                raise CommandError("Say which one.")

    async def _list_visible(self, command: Command) -> Sequence[VisibleFact]:
        return await self._database.read(
            access.list_visible, self._policies, command.actor, self._clock(), command.address
        )

    async def _forget_person(self, command: Command, account_or_all: str) -> str | CommandReply:
        subject = command.actor if account_or_all.lower() == "all" else parse_account(account_or_all)
        count = await self._database.write(
            access.forget_person, self._policies, command.actor, subject, self._clock()
        )
        if count is None:
            return CommandReply("Only an admin can say that for someone else.", answer=Answer.REFUSED)
        name = "you" if subject == command.actor else str(subject)
        return f"Forgotten: {count} of what was for {name} alone."

    async def _edit(self, command: Command, number_text: str, text: str) -> str | CommandReply:
        number = _parse_number(number_text)
        try:
            fact = await self._database.write(
                access.change_fact, self._policies, command.actor, number, text, self._clock()
            )
        except (ValueError, ToolError) as error:
            raise CommandError(str(error)) from None
        return _refuse(number) if fact is None else f"Remembered: {fact}"

    def _format_facts(self, facts: Sequence[VisibleFact]) -> str:
        """Return a line for each fact, grouped by the person, place or team that it is about."""
        if not facts:
            return _NO_FACTS_TEXT
        lines: list[str] = []
        last_subject = ""  # the name in the newest heading
        for fact in facts:
            if fact.whose != last_subject:
                last_subject = fact.whose
                remark = ", seen by no one else" if fact.about is About.PERSON else ""
                lines.append(f"**For {fact.whose}**{remark}")
            lines.append(self._format_fact(fact))
        lines += ["", "`/nod memory forget NUMBER` forgets one."]
        return shorten("\n".join(lines), _MAX_LIST_CHARS)

    def _format_fact(self, fact: VisibleFact) -> str:
        """Return the line of a fact: ``- 7: The office is in Kiel (Ana asked, until 1 Dec 2026)``."""
        remarks = []
        if fact.about is not About.PERSON:
            remarks.append(f"{fact.asked_name} asked")
        if fact.until:
            last = find_last_day(fact.until, self._policies.latest_policy.rulebook.zone)
            remarks.append(f"until {last.day} {last:%b %Y}")
        if fact.oldest:
            remarks.append("the oldest, and there is little room left")
        in_brackets = f" ({', '.join(remarks)})" if remarks else ""
        return f"- {fact.id}: {fact.fact}{in_brackets}"


def _refuse(number: int) -> CommandReply:
    """Return the reply to a person who may not change the fact with this number."""
    return CommandReply(access.no_such_fact_text(number), answer=Answer.STALE)


def _parse_number(text: str) -> int:
    number = remove_quotes(text)
    if not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS):
        raise CommandError("Name a fact by its number.")
    return int(number)

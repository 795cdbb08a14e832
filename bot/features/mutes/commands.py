"""``/nod mutes``: the kinds of cards that a person has muted."""

from datetime import timedelta

from sqlmodel import Session

from bot.approvals.commands.words import CommandError, CommandParts, Subcommand, first_word, remove_quotes
from bot.domain.chat import Command
from bot.domain.times import format_in_zone, parse_duration
from bot.features.mutes import rows
from bot.features.mutes.rows import MAX_MUTES, WEEK
from bot.store import people

_NONE_TEXT = "You mute nothing. To mute a kind of card, press Mute this kind on one."
_SHORTEST = timedelta(minutes=1)


class MuteCommands:
    """The command that lists, sets and ends a person's mutes."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._registry = parts.registry
        self.words = [
            Subcommand(
                "mutes [TOOL for 8h|1w, or end TOOL|all]",
                "kinds of cards that you are not told of; you may decide them all the same",
                self._mutes,
                is_private=True,
                also=("mute", "unmute"),
            )
        ]

    async def _mutes(self, command: Command, text: str) -> str:
        word, rest = first_word(text)
        if not word:
            return await self._database.read(self._list, command)
        if word == "end":
            return await self._database.write(self._end, command, remove_quotes(rest))
        length_word, length = first_word(rest)
        if length_word != "for":
            raise CommandError("Say for how long, such as `for 8h` or `for 1w`.")
        if word not in (await self._registry.available()).tools:
            raise CommandError(f"There is no tool called {word}.")
        return await self._database.write(self._set, command, word, _read_length(length))

    def _list(self, session: Session, command: Command) -> str:
        now, zone = self._clock(), self._policies.load(session).book.zone
        mine = rows.list_mutes(session, people.person_of(session, command.actor).accounts)
        lines = [
            f"- `{each.tool_name}` until {format_in_zone(each.until, zone)}"
            for each in mine
            if each.until > now
        ]
        if not lines:
            return _NONE_TEXT
        return "\n".join(["You are not told of these, and may decide them all the same:", *lines])

    def _set(self, session: Session, command: Command, tool_name: str, length: timedelta) -> str:
        now, person = self._clock(), people.person_of(session, command.actor)
        if not rows.set_mute(session, command.actor, person, tool_name, now + length, now):
            raise CommandError(f"You mute {MAX_MUTES} kinds already. End one first.")
        until = format_in_zone(now + length, self._policies.load(session).book.zone)
        return f"You are not told of `{tool_name}` until {until}. You may still decide."

    def _end(self, session: Session, command: Command, which: str) -> str:
        if not which:
            raise CommandError("Say which, such as `end deploy` or `end all`.")
        person = people.person_of(session, command.actor)
        mine = rows.list_mutes(session, person.accounts)
        idents = [each.id for each in mine if which in ("all", each.tool_name)]
        ended = rows.end_mutes(session, command.actor, person, idents, self._clock())
        if not ended:
            return _NONE_TEXT if which == "all" else f"You don't mute {which}."
        return f"You are told again of {', '.join(ended)}."


def _read_length(text: str) -> timedelta:
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}.") from None
    if not _SHORTEST <= length <= WEEK:
        raise CommandError("A mute lasts from 1m to 1w.")
    return length

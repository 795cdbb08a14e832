"""The command ``/nod mutes``, which lists, sets and ends the mutes of the person who sends it.

A mute is for the cards of one tool, and ends by itself: the person is not told of such cards until then.
"""

from datetime import timedelta

from sqlmodel import Session

from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    Subcommand,
    first_word,
    remove_quotes,
)
from bot.domain.chat import Command
from bot.domain.times import format_in_zone, parse_duration
from bot.features.mutes import rows
from bot.features.mutes.rows import MAX_MUTES, WEEK
from bot.store import people

_NONE_TEXT = "You mute nothing. To mute a kind of card, press Mute this kind on one."
_SHORTEST_MUTE = timedelta(minutes=1)


class MuteCommands:
    """The command, whose ``subcommands`` become a part of ``/nod``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._registry = parts.registry
        self.subcommands = [
            Subcommand(
                "mutes [TOOL for 8h|1w, or end TOOL|all]",
                "kinds of cards that you are not told of; you may decide them all the same",
                self._mutes,
                is_private=True,
                synonyms=("mute", "unmute"),
            )
        ]

    async def _mutes(self, command: Command, text: str) -> str:
        """Do what ``text`` says: ``TOOL for 8h`` mutes, ``end TOOL`` and ``end all`` end mutes.

        An empty text lists the mutes.
        """
        first, rest = first_word(text)
        if not first:
            return await self._database.read(self._list, command)
        if first == "end":
            return await self._database.write(self._end, command, remove_quotes(rest))
        preposition, length = first_word(rest)
        if preposition != "for":
            raise CommandError("Say for how long, such as `for 8h` or `for 1w`.")
        if first not in (await self._registry.load_tools()).tools:
            raise CommandError(f"There is no tool called {first}.")
        return await self._database.write(self._set, command, first, _parse_length(length))

    def _list(self, session: Session, command: Command) -> str:
        now = self._clock()
        zone = self._policies.load(session).rulebook.zone
        mutes = rows.list_mutes(session, people.load_person(session, command.actor).accounts)
        lines = [
            f"- `{mute.tool_name}` until {format_in_zone(mute.until, zone)}"
            for mute in mutes
            if mute.until > now
        ]
        if not lines:
            return _NONE_TEXT
        return "\n".join(["You are not told of these, and may decide them all the same:", *lines])

    def _set(self, session: Session, command: Command, tool_name: str, length: timedelta) -> str:
        now = self._clock()
        person = people.load_person(session, command.actor)
        if not rows.set_mute(session, command.actor, person, tool_name, now + length, now):
            raise CommandError(f"You mute {MAX_MUTES} kinds already. End one first.")
        until = format_in_zone(now + length, self._policies.load(session).rulebook.zone)
        return f"You are not told of `{tool_name}` until {until}. You may still decide."

    def _end(self, session: Session, command: Command, tool_or_all: str) -> str:
        if not tool_or_all:
            raise CommandError("Say which, such as `end deploy` or `end all`.")
        person = people.load_person(session, command.actor)
        mutes = rows.list_mutes(session, person.accounts)
        mute_ids = [mute.id for mute in mutes if tool_or_all in ("all", mute.tool_name)]
        tool_names = rows.end_mutes(session, command.actor, person, mute_ids, self._clock())
        if not tool_names:
            return _NONE_TEXT if tool_or_all == "all" else f"You don't mute {tool_or_all}."
        return f"You are told again of {', '.join(tool_names)}."


def _parse_length(text: str) -> timedelta:
    """Return the length of a mute, from a minute to a week. Raises CommandError."""
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}.") from None
    if not _SHORTEST_MUTE <= length <= WEEK:
        raise CommandError("A mute lasts from 1m to 1w.")
    return length

"""``/nod away`` and ``/nod back``: absent people name a stand-in, who may decide in their place."""

import re
from datetime import UTC, datetime, timedelta

from sqlmodel import Session

from bot.approvals.commands.values import parse_account
from bot.approvals.commands.words import CommandError, CommandParts, CommandReply, Subcommand, remove_quotes
from bot.approvals.lookup.people import list_absences
from bot.domain.chat import Address, Answer, Command
from bot.domain.people import Absence, Actor, Membership
from bot.domain.rules import covers
from bot.domain.times import add_length, explain_repeated, parse_duration, parse_moment
from bot.errors import ChannelError, NotDeliverable
from bot.features.people import absences, rows
from bot.features.people.absences import Ended, ended_text, redraw_jobs
from bot.store import notices, people, posted_cards

LONGEST = timedelta(days=14)
_NAMED = 5
_SAID = re.compile(r"(?P<who>\S.*?)\s+(?:until\s+(?P<until>\S.*)|for\s+(?P<length>\S+))")
_OUTSIDE = "{} is not part of this team, so they can't decide for you. Name someone else."
_NO_ONE = "I don't know {} there. Have them write to me first, or name someone else."
_WHO = "Say who decides for you and until when, such as `/nod away @ben until monday`."


class AwayCommands:
    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._wake, self._standing = parts.wake, parts.standing
        self.words = [
            Subcommand(
                "away [WHO until monday|friday 18:00|2026-12-01, or WHO for 3d]",
                "while you're away, WHO may decide what you may; 14 days at most",
                self._away,
            ),
            Subcommand("back [WHO]", "you're back; admins end anyone's absence", self._back),
        ]

    async def _away(self, command: Command, text: str) -> str:
        now = self._clock()
        if not text:
            return (
                await self._database.read(list_absences, self._policies, command.actor) or "No one is away."
            )
        said = _SAID.fullmatch(text.strip())
        if said is None:
            raise CommandError(_WHO)
        until = self._until(said["until"], said["length"], now)
        if command.actor.outside:
            raise CommandError("Only people of this team can name someone.")
        stand_in = await self._database.read(self._find_account, command.actor, said["who"])
        same = command.address.channel == stand_in.channel
        await self._check(stand_in, command.address if same else Address.parse(str(stand_in)))

        def begin(session: Session) -> tuple[Absence, list[int]]:
            found = rows.begin_absence(session, command.actor, stand_in, until.astimezone(UTC), now)
            zone = self._policies.load(session).book.zone
            words = f"{found.who.label} is away until {found.end(zone)}, and you may decide what they may."
            told = f"{words} What you decide that way says “{found.words}”."
            notices.store_notice(session, Address.parse(str(stand_in)), told, now)
            return found, posted_cards.mark_open_outdated(session)

        found, behind = await self._database.write(begin)
        await self._wake(*redraw_jobs(behind))
        until_then = found.end(self._policies.held.book.zone)
        who = f"{stand_in.label} ({stand_in})" if stand_in.name else str(stand_in)
        return (
            f"You're away until {until_then}. {who} may decide what you may, "
            f"shown as “{found.words}”. `/nod back` ends it. {explain_repeated(until)}"
        ).rstrip()

    def _until(self, moment_said: str | None, length: str | None, now: datetime) -> datetime:
        try:
            if length is not None:
                until = add_length(now.astimezone(self._policies.held.book.zone), parse_duration(length))
            else:
                until = parse_moment(moment_said or "", now.astimezone(self._policies.held.book.zone))
        except ValueError as error:
            raise CommandError(f"{moment_said or length!r}: {error}.") from None
        if until.astimezone(UTC) > now.astimezone(UTC) + LONGEST:
            raise CommandError("That is too long. Someone stands in for 14 days at most.")
        return until

    def _find_account(self, session: Session, actor: Actor, said: str) -> Actor:
        """Return the account of the named stand-in. Raises CommandError if unclear, or not allowed."""
        policy, person = self._policies.load_for(session, actor)
        words = remove_quotes(said).removeprefix("@")
        if ":" in words:
            found = parse_account(words)
            found = Actor(
                found.channel, found.key, people.find_known_names(session, [str(found)]).get(str(found), "")
            )
        else:
            named = people.find_by_name(session, words)
            persons = {people.person_of(session, each).id: each for each in named}
            trusted = [each for each in persons.values() if policy.roles_of(people.person_of(session, each))]
            if len(trusted) != 1:  # anyone can take any name, so a name must be unambiguous
                known = ", ".join(f"{each.label} is `{each}`" for each in named[:_NAMED])
                raise CommandError(
                    f"Name {words[:40]!r} by account or mention. {known or 'No one is called that'}."
                )
            [found] = trusted
        other = people.person_of(session, found)
        if other == person:
            raise CommandError("That is you. Name someone else.")
        if other.outside:
            raise CommandError(_OUTSIDE.format(found.label))
        if any(other.accounts & {str(each.who)} for each in policy.absences):
            raise CommandError(f"{found.label} is away, too. Name someone else.")
        return found

    async def _check(self, stand_in: Actor, there: Address) -> None:
        """Raise CommandError unless the platform confirms that the stand-in is in the team, or can't tell."""
        if self._standing is None:
            return
        try:
            standing = await self._standing(stand_in, there)
        except NotDeliverable:
            return
        except (ChannelError, TimeoutError) as error:
            if isinstance(error, ChannelError):
                why = error.message
            else:
                why = "There is no answer."
            raise CommandError(f"I can't check who {stand_in.label} is. {why} Try again.") from None
        if standing is not Membership.MEMBER:
            raise CommandError((_OUTSIDE if standing else _NO_ONE).format(stand_in.label))

    async def _back(self, command: Command, text: str) -> str | CommandReply:
        if text and not await self._database.read(self._policies.is_admin, command.actor):
            return CommandReply("Only an admin can say that for someone else.", answer=Answer.REFUSED)
        ended, jobs = await self._database.write(self._end, command, text)
        await self._wake(*jobs)
        if ended:
            return ended_text(ended)
        return "You are not away."

    def _end(self, session: Session, command: Command, text: str) -> Ended:
        """End the absence of this person, or of the named person."""
        person = people.person_of(session, command.actor)
        if text:
            whose = people.person_of(session, self._away_as(session, text))
        else:
            whose = person
        bound = self._policies.bound_to(session, command.actor)
        if whose != person and bound and not any(covers(bound, each) for each in whose.accounts):
            raise CommandError(f"You are an admin of {bound}, and they are not of it.")
        return absences.end(session, whose.accounts, command.actor, self._clock())

    def _away_as(self, session: Session, text: str) -> Actor:
        """Return the account of an absent person, found by account or name. Raises CommandError."""
        words = remove_quotes(text).removeprefix("@").casefold()
        away = [each.who for each in self._policies.load(session).absences]
        found = [each for each in away if words in (str(each).casefold(), each.name.casefold())]
        if len(found) != 1:
            raise CommandError(f"Which one? Away now: {', '.join(f'`{each}`' for each in away) or 'no one'}.")
        return found[0]

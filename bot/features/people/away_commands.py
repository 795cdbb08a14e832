"""The commands ``/nod away`` and ``/nod back``, which begin and end a person's absence.

An absent person names a stand-in, who may decide in their place for at most 14 days. The stand-in is told,
and open cards are redrawn, since they name the people who may decide.
"""

import re
from datetime import UTC, datetime, timedelta

from sqlmodel import Session

from bot.approvals.commands.operands import parse_account
from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    remove_quotes,
)
from bot.approvals.lookup.absences import format_absences
from bot.domain.chat import Address, Answer, Command
from bot.domain.people import Absence, Actor, Membership
from bot.domain.policy import Policy
from bot.domain.rules import covers
from bot.domain.times import add_length, explain_repeated, parse_duration, parse_moment
from bot.errors import ChannelError, NotDeliverable
from bot.features.people import absences, rows
from bot.features.people.absences import EndedAbsences, describe_ended, make_redraw_jobs
from bot.store import notices, people, posted_cards

MAX_ABSENCE = timedelta(days=14)
_MAX_NAMED = 5  # the most accounts of one name that an error lists
_REQUEST = re.compile(  # "@ben until friday 18:00", "Ben Miller for 3d"
    r"(?P<who>\S.*?)\s+(?:until\s+(?P<until>\S.*)|for\s+(?P<length>\S+))"
)
_OUTSIDE_TEXT = "{} is not part of this team, so they can't decide for you. Name someone else."
_UNKNOWN_TEXT = "I don't know {} there. Have them write to me first, or name someone else."
_USAGE_TEXT = "Say who decides for you and until when, such as `/nod away @ben until monday`."


class AwayCommands:
    """The two commands, whose ``subcommands`` become a part of ``/nod``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._wake = parts.wake
        # asks a platform who someone is; None without a way to ask
        self._ask_membership = parts.find_membership
        self.subcommands = [
            Subcommand(
                "away [WHO until monday|friday 18:00|2026-12-01, or WHO for 3d]",
                "while you're away, WHO may decide what you may; 14 days at most",
                self._away,
            ),
            Subcommand("back [WHO]", "you're back; admins end anyone's absence", self._back),
        ]

    async def _away(self, command: Command, text: str) -> str:
        """Begin an absence of the person who asks; without ``text``, list who is away."""
        now = self._clock()
        if not text:
            listed = await self._database.read(format_absences, self._policies, command.actor)
            return listed or "No one is away."
        request = _REQUEST.fullmatch(text.strip())
        if request is None:
            raise CommandError(_USAGE_TEXT)
        until = self._parse_end(request["until"], request["length"], now)
        if command.actor.is_outsider:
            raise CommandError("Only people of this team can name someone.")
        stand_in = await self._database.read(self._find_stand_in, command.actor, request["who"])
        private_chat = Address.parse(str(stand_in))  # an account is also the address of its private chat
        is_same_channel = command.address.channel == stand_in.channel
        await self._check_member(stand_in, command.address if is_same_channel else private_chat)

        def begin_absence(session: Session) -> tuple[Absence, list[int]]:
            absence = rows.begin_absence(session, command.actor, stand_in, until.astimezone(UTC), now)
            zone = self._policies.load(session).rulebook.zone
            notice = (
                f"{absence.absent.label} is away until {absence.format_end(zone)}, "
                "and you may decide what they may. "
                f"What you decide that way says “{absence.label}”."
            )
            notices.store_notice(session, private_chat, notice, now)
            return absence, posted_cards.mark_open_outdated(session)

        absence, outdated_ids = await self._database.write(begin_absence)
        await self._wake(*make_redraw_jobs(outdated_ids))
        end = absence.format_end(self._policies.latest_policy.rulebook.zone)
        who = f"{stand_in.label} ({stand_in})" if stand_in.name else str(stand_in)
        return (
            f"You're away until {end}. {who} may decide what you may, "
            f"shown as “{absence.label}”. `/nod back` ends it. {explain_repeated(until)}"
        ).rstrip()

    def _parse_end(self, moment: str | None, length: str | None, now: datetime) -> datetime:
        """Return the end of an absence, given as a moment or as a length. Raises CommandError."""
        local_now = now.astimezone(self._policies.latest_policy.rulebook.zone)
        try:
            if length is not None:
                until = add_length(local_now, parse_duration(length))
            else:
                until = parse_moment(moment or "", local_now)
        except ValueError as error:
            raise CommandError(f"{moment or length!r}: {error}.") from None
        if until.astimezone(UTC) > now.astimezone(UTC) + MAX_ABSENCE:
            raise CommandError("That is too long. Someone stands in for 14 days at most.")
        return until

    def _find_stand_in(self, session: Session, actor: Actor, who: str) -> Actor:
        """Return the account that ``who`` names as a stand-in. Raises CommandError if it can't be one."""
        policy, person = self._policies.load_with_person(session, actor)
        words = remove_quotes(who).removeprefix("@")
        if ":" in words:
            account = parse_account(words)
            name = people.find_known_names(session, [str(account)]).get(str(account), "")
            stand_in = Actor(account.channel, account.key, name)
        else:
            stand_in = _find_by_name(session, policy, words)
        other = people.load_person(session, stand_in)
        if other == person:
            raise CommandError("That is you. Name someone else.")
        if other.is_outsider:
            raise CommandError(_OUTSIDE_TEXT.format(stand_in.label))
        if any(str(absence.absent) in other.accounts for absence in policy.absences):
            raise CommandError(f"{stand_in.label} is away, too. Name someone else.")
        return stand_in

    async def _check_member(self, stand_in: Actor, chat: Address) -> None:
        """Raise CommandError unless the platform confirms that the stand-in is in the team.

        ``chat``: the chat about which the platform is asked. Nothing is checked without a way to ask, or for
        a chat that no platform knows. If the platform gives no answer, CommandError is raised as well.
        """
        if self._ask_membership is None:
            return
        try:
            membership = await self._ask_membership(stand_in, chat)
        except NotDeliverable:
            return
        except (ChannelError, TimeoutError) as error:
            why = error.message if isinstance(error, ChannelError) else "There is no answer."
            raise CommandError(f"I can't check who {stand_in.label} is. {why} Try again.") from None
        if membership is None:
            raise CommandError(_UNKNOWN_TEXT.format(stand_in.label))
        if membership is not Membership.MEMBER:
            raise CommandError(_OUTSIDE_TEXT.format(stand_in.label))

    async def _back(self, command: Command, text: str) -> str | CommandReply:
        """End the absence of the person who asks; with ``text``, that of the named person, for an admin."""
        if text and not await self._database.read(self._policies.is_admin, command.actor):
            return CommandReply("Only an admin can say that for someone else.", answer=Answer.REFUSED)
        ended, jobs = await self._database.write(self._end, command, text)
        await self._wake(*jobs)
        if ended:
            return describe_ended(ended)
        return "You are not away."

    def _end(self, session: Session, command: Command, text: str) -> EndedAbsences:
        """End the absence of this person, or of the person whom ``text`` names. Raises CommandError."""
        person = people.load_person(session, command.actor)
        absent = people.load_person(session, self._find_absent(session, text)) if text else person
        if absent != person:
            # the only workspace of which this person is an admin; None: of all
            workspace = self._policies.find_workspace_bound(session, command.actor)
            if workspace and not any(covers(workspace, account) for account in absent.accounts):
                raise CommandError(f"You are an admin of {workspace}, and they are not of it.")
        return absences.end_absence(session, absent.accounts, command.actor, self._clock())

    def _find_absent(self, session: Session, text: str) -> Actor:
        """Return the account of an absent person, given by account or name. Raises CommandError."""
        words = remove_quotes(text).removeprefix("@").casefold()
        absent = [each.absent for each in self._policies.load(session).absences]
        named = [actor for actor in absent if words in (str(actor).casefold(), actor.name.casefold())]
        if len(named) != 1:
            listed = ", ".join(f"`{actor}`" for actor in absent)
            raise CommandError(f"Which one? Away now: {listed or 'no one'}.")
        return named[0]


def _find_by_name(session: Session, policy: Policy, name: str) -> Actor:
    """Return the account of the one person with a role who has this name. Raises CommandError.

    Anyone can take any name, so people without a role don't count, and the name must be unambiguous.
    """
    named = people.find_by_name(session, name)
    actors_by_person = {people.load_person(session, actor).id: actor for actor in named}
    trusted = [
        actor for actor in actors_by_person.values() if policy.roles_of(people.load_person(session, actor))
    ]
    if len(trusted) != 1:
        known = ", ".join(f"{actor.label} is `{actor}`" for actor in named[:_MAX_NAMED])
        raise CommandError(f"Name {name[:40]!r} by account or mention. {known or 'No one is called that'}.")
    return trusted[0]

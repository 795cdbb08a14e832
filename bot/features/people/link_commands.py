"""``/nod link``, ``/nod unlink``, the same for admins, and ``/nod console``: accounts become one person."""

from datetime import datetime, timedelta

from sqlmodel import Session

from bot.approvals.accounts import linking, sign_in_links
from bot.approvals.accounts.linking import Pair
from bot.approvals.commands.values import account
from bot.approvals.commands.words import CommandError, CommandParts, Subcommand
from bot.domain.chat import Command
from bot.domain.people import Actor
from bot.features.people import codes
from bot.features.people.codes import End
from bot.store import people

_WRONG = 5  # codes in a minute, for each account
_MINUTE = timedelta(minutes=1)
_LATE = "That code is invalid or has expired. Ask for a new one from the other account."
_YES = "yes"
_TWO = 2


class LinkCommands:
    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._site_url, self._wake = parts.site_url, parts.wake
        self._wrong: dict[str, list[datetime]] = {}  # by account: when a code was not valid
        self.words = [
            Subcommand(
                "link [CODE]",
                "make your accounts in several channels one person",
                self._link,
                is_private=True,
            ),
            Subcommand("unlink [ACCOUNT]", "separate this account, or another of yours", self._unlink),
            Subcommand("console", "a link that signs you in to the console", self._console, is_private=True),
        ]
        self.admins = [
            Subcommand("link ACCOUNT ACCOUNT", "allow a link that both accounts want", self._allow),
            Subcommand("unlink ACCOUNT", "separate a linked account", self._unlink_any),
        ]

    async def _link(self, command: Command, text: str) -> str:
        first, _, rest = text.partition(" ")
        if not first:
            return await self._code(command)
        if first.lower() == _YES:
            return await self._confirm(command, rest.strip())
        if rest and rest.strip().lower() != _YES:
            raise CommandError("I don't know what follows the code.")
        account, since = str(command.actor), self._clock() - _MINUTE
        for each, times in list(self._wrong.items()):
            if times[-1] <= since:
                del self._wrong[each]
        wrong = [at for at in self._wrong.get(account, ()) if at > since]
        if len(wrong) >= _WRONG:
            return "Too many wrong codes. Wait a minute, then try again."
        said = await (self._agree if rest else self._look)(command, first)
        if said == _LATE:
            self._wrong[account] = [*wrong, self._clock()]
        return said

    async def _code(self, command: Command) -> str:
        code = await self._database.write(codes.new_code, command.actor, self._clock())
        return (
            f"Your code is `{code}`. Within 10 minutes, send `/nod link {code}` (Telegram: `/link {code}`) "
            "from your other account. It works once. Don't show it to anyone."
        )

    async def _console(self, command: Command, _: str) -> str:
        site = self._site_url()
        if not site:
            return "There is no console here."
        code = await self._database.write(sign_in_links.new_link, command.actor, self._clock())
        return (
            f"{site}/#/sign-in/{code}\n"
            "This link signs you in to the console as you. It works once, within 10 minutes. "
            "Don't show it to anyone."
        )

    async def _look(self, command: Command, code: str) -> str:
        pair = await self._database.read(codes.look, self._policies, command.actor, code, self._clock())
        if pair is None:
            return _LATE
        return (
            f"That code is from {_name_account(pair.first)}. {_consequences(pair)} "
            f"If that account is yours as well, send `/nod link {code} yes`. If not, do nothing."
        )

    async def _agree(self, command: Command, code: str) -> str:
        other = await self._database.write(codes.agree, command.actor, code, self._clock())
        if other is None:
            return _LATE
        return (
            f"Now the other side: within 10 minutes, send `/nod link yes {command.actor}` "
            f"(Telegram: `/link yes {command.actor}`) from {_name_account(other)}."
        )

    async def _confirm(self, command: Command, other: str) -> str:
        now = self._clock()
        pair = await self._database.read(codes.find_agreed_pair, self._policies, command.actor, now)
        if pair is None:
            return "No one has used a code of yours. Ask for one with `/nod link`."
        if other != str(pair.second):
            return (
                f"{_name_account(pair.second)} used your code. {_consequences(pair)} "
                f"If that account is yours as well, send `/nod link yes {pair.second}`. If not, do nothing."
            )
        ended = await self._database.write(codes.confirm, self._policies, command.actor, pair.second, now)
        if ended is End.WAITS:
            words = f"/approvals link {pair.first} {pair.second}"
            return f"Both sides agree. An admin has to allow it, because of the role: `{words}`."
        if ended is End.NOTHING:
            return _LATE
        return f"Linked: {_name_account(pair.second)} and {_name_account(pair.first)} are one person now."

    async def _allow(self, command: Command, text: str) -> str:
        words = text.split()
        if len(words) != _TWO:
            raise CommandError("Name both accounts.")
        first, second = (account(word) for word in words)
        ended = await self._database.write(
            codes.allow, self._policies, first, second, command.actor, self._clock()
        )
        if ended is End.NOTHING:
            return "These two don't wait for an admin. Both accounts have to agree first, with `/nod link`."
        return f"Linked: {first} and {second} are one person now."

    async def _unlink(self, command: Command, text: str) -> str:
        which = account(text) if text else command.actor
        mine = (await self._database.read(people.person_of, command.actor)).accounts
        if str(which) not in mine:
            return f"{which} is not linked with this account."
        return await self._part(command, which)

    async def _unlink_any(self, command: Command, text: str) -> str:
        if not text:
            raise CommandError("Which account?")
        return await self._part(command, account(text))

    async def _part(self, command: Command, which: Actor) -> str:
        def part(session: Session) -> linking.Unlinking | None:
            return linking.part(session, str(which), command.actor, self._clock())

        parted = await self._database.write(part)
        if parted is None:
            return f"{which} is not linked with another account."
        await self._wake(*parted.jobs)
        return linking.describe_unlinking(str(which), parted.grants_ended)


def _name_account(actor: Actor) -> str:
    if actor.name:
        return f"{actor.name} ({actor})"
    return str(actor)


def _consequences(pair: Pair) -> str:
    """Describe the effect of linking, with each role that an account gains."""
    gains = [
        f"{each} becomes {' and '.join(sorted(roles))}" for each, roles in sorted(pair.gains.items()) if roles
    ]
    roles = f" {'; '.join(gains)}." if gains else ""
    return f"Linking makes both accounts one person: one vote, the same rights.{roles}"

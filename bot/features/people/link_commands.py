"""The commands ``link`` and ``unlink``, by which accounts become one person, and ``/nod console``.

``/nod console`` links nothing: it makes a link that signs its sender in to the console. For a link of two
accounts both agree, so that no one can link an account of someone else:

1. The first account sends ``/nod link`` and gets a code.
2. The second sends ``/nod link CODE``, reads which account it would be linked with, and then adds ``yes``.
3. The first sends ``/nod link yes ACCOUNT``, which names the second. Then they are one person.
4. If that gives one of them a role, an admin also has to send ``/approvals link ACCOUNT ACCOUNT``.

`Pair.first` is the account that asked for the code, `Pair.second` the one that used it.
"""

from datetime import datetime, timedelta

from sqlmodel import Session

from bot.approvals.accounts import linking, sign_in_links
from bot.approvals.accounts.linking import Pair
from bot.approvals.commands import operands
from bot.approvals.commands.subcommands import CommandError, CommandParts, Subcommand
from bot.domain.chat import Command
from bot.domain.people import Actor
from bot.features.people import codes
from bot.features.people.codes import LinkOutcome
from bot.store import people

_MAX_WRONG_CODES = 5  # the most wrong codes of an account within the window
_WRONG_CODES_WINDOW = timedelta(minutes=1)
_INVALID_CODE_TEXT = "That code is invalid or has expired. Ask for a new one from the other account."
_OUTDATED_AGREEMENT_TEXT = "That code was used or has expired. Ask for a new one with `/nod link`."
_YES = "yes"  # the word by which a person agrees
_ACCOUNTS_OF_LINK = 2  # a link joins two accounts


class LinkCommands:
    """The commands, as subcommands of ``/nod``, and for admins of ``/approvals``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._site_url, self._wake = parts.site_url, parts.wake
        self._wrong_codes: dict[str, list[datetime]] = {}  # by account: the times of invalid codes
        self.nod_commands = [
            Subcommand(
                "link [CODE]",
                "make your accounts in several channels one person",
                self._link,
                is_private=True,
            ),
            Subcommand("unlink [ACCOUNT]", "separate this account, or another of yours", self._unlink),
            Subcommand(
                "console", "a link that signs you in to the console", self._make_sign_in_link, is_private=True
            ),
        ]
        self.admin_commands = [
            Subcommand("link ACCOUNT ACCOUNT", "allow a link that both accounts want", self._allow),
            Subcommand("unlink ACCOUNT", "separate a linked account", self._unlink_any),
        ]

    async def _link(self, command: Command, text: str) -> str:
        """Take the next step of a link; see the steps at the top of the module."""
        first, _, rest = text.partition(" ")  # a code, or the word yes and an account
        if not first:
            return await self._make_code(command)
        if first.lower() == _YES:
            return await self._confirm(command, rest.strip())
        if rest and rest.strip().lower() != _YES:
            raise CommandError("I don't know what follows the code.")
        account = str(command.actor)
        self._forget_old_wrong_codes()
        if len(self._wrong_codes.get(account, ())) >= _MAX_WRONG_CODES:
            return "Too many wrong codes. Wait a minute, then try again."
        take_step = self._use_code if rest else self._describe_code  # ``rest`` is "yes" here, or empty
        reply = await take_step(command, first)
        if reply is None:
            self._wrong_codes.setdefault(account, []).append(self._clock())
            return _INVALID_CODE_TEXT
        return reply

    def _forget_old_wrong_codes(self) -> None:
        start = self._clock() - _WRONG_CODES_WINDOW
        recent = {account: [at for at in times if at > start] for account, times in self._wrong_codes.items()}
        self._wrong_codes = {account: times for account, times in recent.items() if times}

    async def _make_code(self, command: Command) -> str:
        code = await self._database.write(codes.make_code, command.actor, self._clock())
        return (
            f"Your code is `{code}`. Within 10 minutes, send `/nod link {code}` (Telegram: `/link {code}`) "
            "from your other account. It works once. Don't show it to anyone."
        )

    async def _make_sign_in_link(self, command: Command, _: str) -> str:
        site = self._site_url()
        if not site:
            return "There is no console here."
        code = await self._database.write(sign_in_links.create_link, command.actor, self._clock())
        return (
            f"{site}/#/sign-in/{code}\n"
            "This link signs you in to the console as you. It works once, within 10 minutes. "
            "Don't show it to anyone."
        )

    async def _describe_code(self, command: Command, code: str) -> str | None:
        """Describe the link that a code would make; None if the code is not valid for this account."""
        pair = await self._database.read(
            codes.find_offered_pair, self._policies, command.actor, code, self._clock()
        )
        if pair is None:
            return None
        return (
            f"That code is from {_name_account(pair.first)}. {_describe_consequences(pair)} "
            f"If that account is yours as well, send `/nod link {code} yes`. If not, do nothing."
        )

    async def _use_code(self, command: Command, code: str) -> str | None:
        """Agree as the second account; None if the code is not valid for it."""
        other = await self._database.write(codes.give_code, command.actor, code, self._clock())
        if other is None:
            return None
        return (
            f"Now the other side: within 10 minutes, send `/nod link yes {command.actor}` "
            f"(Telegram: `/link yes {command.actor}`) from {_name_account(other)}."
        )

    async def _confirm(self, command: Command, other: str) -> str:
        """Agree as the first account, which names the second."""
        now = self._clock()
        pair = await self._database.read(codes.find_agreed_pair, self._policies, command.actor, now)
        if pair is None:
            return "No one has used a code of yours. Ask for one with `/nod link`."
        if other != str(pair.second):
            return (
                f"{_name_account(pair.second)} used your code. {_describe_consequences(pair)} "
                f"If that account is yours as well, send `/nod link yes {pair.second}`. If not, do nothing."
            )
        outcome = await self._database.write(codes.confirm, self._policies, command.actor, pair.second, now)
        if outcome is LinkOutcome.WAITS:
            admin_command = f"/approvals link {pair.first} {pair.second}"
            return f"Both sides agree. An admin has to allow it, because of the role: `{admin_command}`."
        if outcome is LinkOutcome.NOTHING:
            return _OUTDATED_AGREEMENT_TEXT
        return f"Linked: {_name_account(pair.second)} and {_name_account(pair.first)} are one person now."

    async def _allow(self, command: Command, text: str) -> str:
        """Link two accounts that agreed, for an admin (step 4)."""
        words = text.split()
        if len(words) != _ACCOUNTS_OF_LINK:
            raise CommandError("Name both accounts.")
        first, second = (operands.parse_account(word) for word in words)
        outcome = await self._database.write(
            codes.allow, self._policies, first, second, command.actor, self._clock()
        )
        if outcome is LinkOutcome.NOTHING:
            return "These two don't wait for an admin. Both accounts have to agree first, with `/nod link`."
        return f"Linked: {first} and {second} are one person now."

    async def _unlink(self, command: Command, text: str) -> str:
        """Separate an account of the person who asks; without ``text`` the one that sends this."""
        account = operands.parse_account(text) if text else command.actor
        mine = (await self._database.read(people.load_person, command.actor)).accounts
        if str(account) not in mine:
            return f"{account} is not linked with this account."
        return await self._unlink_account(command, account)

    async def _unlink_any(self, command: Command, text: str) -> str:
        if not text:
            raise CommandError("Which account?")
        return await self._unlink_account(command, operands.parse_account(text))

    async def _unlink_account(self, command: Command, account: Actor) -> str:
        def unlink(session: Session) -> linking.Unlinking | None:
            return linking.unlink_account(session, str(account), command.actor, self._clock())

        unlinking = await self._database.write(unlink)
        if unlinking is None:
            return f"{account} is not linked with another account."
        await self._wake(*unlinking.jobs)
        return linking.describe_unlinking(str(account), unlinking.grants_ended)


def _name_account(actor: Actor) -> str:
    if actor.name:
        return f"{actor.name} ({actor})"
    return str(actor)


def _describe_consequences(pair: Pair) -> str:
    """Describe the effect of linking, with each role that an account gains."""
    gains = [
        f"{each} becomes {' and '.join(sorted(roles))}"
        for each, roles in sorted(pair.gained_roles.items())
        if roles
    ]
    roles = f" {'; '.join(gains)}." if gains else ""
    return f"Linking makes both accounts one person: one vote, the same rights.{roles}"

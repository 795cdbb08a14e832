"""Roles: who is admin or approver, as admins list and change it."""

from sqlmodel import Session

from bot.approvals.commands.accounts import Accounts
from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.operands import parse_account
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply
from bot.domain.chat import Command
from bot.domain.people import Role
from bot.domain.rule_values import EVERYWHERE_WORD, GivenRole, Subject
from bot.domain.rules import ANY_TOOL, EVERYWHERE, Rule
from bot.store import people


class RoleCommands:
    """The subcommand ``roles``."""

    def __init__(self, parts: CommandParts, setter: RuleSetter) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._setter = setter
        self._accounts = Accounts(parts)  # checks that accounts exist

    async def handle_roles(self, command: Command, text: str) -> str | CommandReply:
        """List who has which role, or change the roles of an account: ``[add|remove ACCOUNT ROLE]``."""
        words = text.split()
        if not words:
            return await self._database.read(self._list_holders)
        match words:
            case ["add" | "remove" as verb, who, role] if role in set(Role):
                given_role = GivenRole(str(parse_account(who)), Role(role))
            case ["add" | "remove" as verb, who, role, word] if role in set(Role) and word == EVERYWHERE_WORD:
                given_role = GivenRole(str(parse_account(who)), Role(role), everywhere=True)
            case ["add" | "remove", *accounts, _] if len(accounts) > 1:
                raise CommandError("Add or remove one account at a time.")
            case _:
                raise CommandError("Add or remove one account and its role.")
        if verb == "add":
            await self._accounts.check([given_role.account], command)
            new_rule = Rule(
                id=0,  # it gets its number when it is stored
                subject=Subject.ROLE,
                scope=EVERYWHERE,
                pattern=ANY_TOOL,
                value=given_role,
            )
            rule, _ = await self._database.write(self._setter.store_rule, new_rule, command)
            return CommandReply(
                await self._database.read(people.put_names_in, f"Set: {rule.description}."), rule=rule.id
            )
        policy = await self._database.read(self._policies.load)
        for rule in policy.rulebook.list_about(Subject.ROLE):
            # a command without "everywhere" also ends the role that holds everywhere
            if rule.value in (given_role, given_role._replace(everywhere=True)):
                return await self._setter.drop(command, str(rule.id))
        return (
            f"{given_role.account} is not {given_role.role} by rule. If the settings say so, change it there."
        )

    def _list_holders(self, session: Session) -> str:
        """List the holders of each role: by name, and by account for a command that removes one."""
        policy = self._policies.load(session)
        lines = []
        for role in Role:
            accounts = sorted(policy.list_holders(role))
            names = people.find_known_names(session, set(accounts))
            holders = [
                f"{names[account]} (`{account}`)" if account in names else account for account in accounts
            ]
            lines.append(f"- {role}: {', '.join(holders) or 'no one'}")
        return "\n".join(lines)

"""Grants, which let calls like an approved one run without asking, as admins list and end them."""

from bot.approvals import grants
from bot.approvals.commands.admin.rule_setter import RuleSetter
from bot.approvals.commands.operands import parse_number
from bot.approvals.commands.subcommands import CommandError, CommandParts, CommandReply
from bot.domain.chat import Answer, Command
from bot.domain.rule_values import Subject
from bot.domain.times import format_relative
from bot.store import people


class GrantCommands:
    """The subcommands ``grants`` and ``revoke``."""

    def __init__(self, parts: CommandParts, setter: RuleSetter) -> None:
        self._database = parts.database
        self._clock = parts.clock
        self._setter = setter

    async def handle_grants(self, command: Command, text: str) -> str | CommandReply:
        """List the grants that hold, or set a rule on how far they reach: ``[allow destructive]``."""
        if text.startswith("allow "):
            return await self._setter.make_setter(Subject.GRANTS)(command, text.removeprefix("allow "))
        if text:
            raise CommandError("Write `/approvals grants`, or `/approvals grants allow destructive`.")
        now = self._clock()
        lines = []
        for grant in await self._database.read(grants.list_live_grants, now):
            end = "until its conversation ends"
            if grant.expires_at:
                end = f"expires {format_relative(grant.expires_at, now)}"
            lines.append(
                f"- {grant.label} by {grant.person_name}: {grant.description}; uses: {grant.uses}; {end}"
            )
        return await self._database.read(people.put_names_in, "\n".join(lines) or "There are no grants.")

    async def revoke(self, command: Command, text: str) -> str | CommandReply:
        grant_id = parse_number(text.upper().removeprefix("G-"))
        if grant_id is None and text.lower() != "all":
            raise CommandError("Which grant? Name one, such as G-7, or all.")
        ended = await self._database.write(grants.revoke_grants, grant_id, command.actor, self._clock())
        if grant_id is not None and not ended:
            return CommandReply(f"There is no live grant G-{grant_id}.", answer=Answer.UNKNOWN)
        return f"Ended: {_format_count(ended)}."


def _format_count(count: int) -> str:
    if count == 1:
        return "1 grant"
    return f"{count} grants"

"""Sessions of the console, as admins list and end them."""

from bot.approvals.accounts import sign_in_links
from bot.approvals.commands.operands import parse_account
from bot.approvals.commands.subcommands import CommandError, CommandParts
from bot.domain.chat import Command
from bot.domain.times import format_relative
from bot.store import people
from bot.store.locks.process_lock import notify_processes


class SessionCommands:
    """The subcommand ``sessions``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database = parts.database
        self._clock = parts.clock

    async def handle_sessions(self, command: Command, text: str) -> str:
        """List who is signed in, or end the sessions of an account: ``[end ACCOUNT]``."""
        now = self._clock()
        verb, _, who = text.partition(" ")
        if verb == "end":
            account = parse_account(who.strip())
            ended = await self._database.write(sign_in_links.end_sessions_of, account, command.actor, now)
            notify_processes(self._database.engine)  # open connections of these sessions are closed
            return f"Ended: {ended}."
        if text:
            raise CommandError("Write `/approvals sessions`, or `/approvals sessions end ACCOUNT`.")
        sessions = await self._database.read(sign_in_links.list_sessions, now)
        lines = [
            f"- {actor}: {actor.label}, until {format_relative(until, now)}" for actor, until in sessions
        ]
        return await self._database.read(
            people.put_names_in, "\n".join(lines) or "No one is signed in to the console."
        )

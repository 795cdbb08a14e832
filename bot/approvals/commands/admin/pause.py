"""The pause of everything, as admins begin and end it."""

from sqlmodel import Session

from bot.approvals import pause
from bot.approvals.commands.subcommands import CommandParts
from bot.domain.chat import Command
from bot.domain.jobs import Job, Work
from bot.domain.times import format_length
from bot.store import posted_cards, rules


class PauseCommands:
    """The subcommands ``pause`` and ``resume``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database = parts.database
        self._clock = parts.clock
        self._wake = parts.wake

    async def pause(self, command: Command, _: str) -> str:
        def pause(session: Session) -> list[int] | None:
            if not rules.pause_all(session, command.actor, self._clock()):
                return None
            return posted_cards.mark_open_outdated(session)  # every open card says that all is paused

        message_ids = await self._database.write(pause)
        if message_ids is None:
            return "Already paused."
        await self._wake(*(Job(Work.REDRAW, str(message_id)) for message_id in message_ids))
        return "Execution is paused and timers are stopped. Use `/approvals resume` to continue."

    async def resume(self, command: Command, _: str) -> str:
        """End the pause, step by step, since each open proposal gets back the time of the pause."""
        now = self._clock()
        while True:
            step = await self._database.write(pause.take_resume_step, command.actor, now)
            if step is None:
                return "Nothing was paused."
            await self._wake(*step.jobs)
            if step.is_last:
                added = format_length(step.paused.total_seconds())
                return f"Resumed. Open proposals have {added} added to their deadlines."

"""The command ``/nod schedules``, which lists schedules, and pauses, resumes, runs or deletes one."""

from sqlmodel import Session

from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    first_word,
)
from bot.domain.chat import Answer, Command
from bot.domain.redaction import redact_text
from bot.features.schedules import runs
from bot.features.schedules.runs import ScheduleAction
from bot.features.schedules.schedule import Schedule, ScheduleState
from bot.store import people

_NO_SCHEDULES_TEXT = "Nothing is scheduled. Ask for it, such as “every weekday at 9 list what is overdue”."


class ScheduleCommands:
    """The command. ``words`` has it as a subcommand of ``/nod``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self.words = [
            Subcommand(
                "schedules [pause|resume|run|delete ID]",
                "what I do at set times for you; admins see everyone's",
                self._schedules,
                is_private=True,
            )
        ]

    async def _schedules(self, command: Command, text: str) -> str | CommandReply:
        word, ident = first_word(text)
        if not word:
            return await self._database.read(self._list_schedules, command)
        if word not in list(ScheduleAction) or not ident:
            raise CommandError("Say what to do with which one, such as `pause 1a2b3c4d`.")
        ident = first_word(ident)[0].lower()
        done = await self._database.write(
            runs.apply_action, self._policies, ident, ScheduleAction(word), command.actor, self._clock()
        )
        if done is None:
            return CommandReply(runs.no_schedule_text(ident), answer=Answer.UNKNOWN)
        return CommandReply(done.text, answer=Answer.ACCEPTED if done.changed else Answer.ALREADY)

    def _list_schedules(self, session: Session, command: Command) -> str:
        found = runs.list_visible(session, self._policies, command.actor)
        return people.put_names_in(session, "\n".join(map(_format, found))) or _NO_SCHEDULES_TEXT


def _format(schedule: Schedule) -> str:
    """Return a line such as ``- `1a2b3c4d` List what is overdue (every day at 09:00, for Ana, paused)``."""
    facts = [schedule.times_text, f"for {schedule.person.label}"]
    is_active = schedule.state is ScheduleState.ACTIVE
    says_next = schedule.times_text.startswith(schedule.next)  # a single run, whose time is said already
    if is_active and schedule.next and not says_next:
        facts.append(f"next {schedule.next}")
    if not is_active:
        facts.append(str(schedule.state))
    return f"- `{schedule.label}` {redact_text(schedule.task)} ({', '.join(facts)})"

"""``/nod schedules``: what comes back by itself, and pausing, running or ending it."""

from sqlmodel import Session

from bot.approvals.commands.words import CommandError, CommandParts, CommandReply, Subcommand, first_word
from bot.domain.chat import Answer, Command
from bot.domain.redaction import redact_text
from bot.features.schedules import rows, runs
from bot.features.schedules.schedule import Schedule, ScheduleState
from bot.store import people

_NONE = "Nothing is scheduled. Ask for it, such as “every weekday at 9 list what is overdue”."


class ScheduleCommands:
    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self.words = [
            Subcommand(
                "schedules [pause|resume|run|delete ID]",
                "what I do at set times for you; admins see everyone's",
                self._schedules,
            )
        ]

    async def _schedules(self, command: Command, text: str) -> str | CommandReply:
        word, ident = first_word(text)
        if not word:
            return await self._database.read(self._list_schedules, command)
        if word not in _DONE or not ident:
            raise CommandError("Say what to do with which one, such as `pause 1a2b3c4d`.")
        return await self._database.write(self._do, command, word, first_word(ident)[0].lower())

    def _list_schedules(self, session: Session, command: Command) -> str:
        found = runs.list_visible(session, self._policies, command.actor)
        return people.put_names_in(session, "\n".join(map(_line, found))) or _NONE

    def _do(self, session: Session, command: Command, word: str, ident: str) -> CommandReply:
        found, actor, now = rows.get(session, ident), command.actor, self._clock()
        if found is None or not runs.may_change(session, self._policies, found, actor):
            return CommandReply(f"You have no schedule {ident[:16]}.", answer=Answer.UNKNOWN)
        match word:
            case "run":
                done = runs.run_now(session, found, actor, now)
            case "delete":
                done = runs.delete(session, found, actor, now)
            case _:
                done = runs.set_paused(session, found, actor, now, paused=word == "pause")
        if not done:
            state = "paused" if found.paused_at and not found.ended_at else str(found.state)
            return CommandReply(f"Schedule {found.label} is {state} already.", answer=Answer.ALREADY)
        return CommandReply(_DONE[word].format(found.label))


_DONE = {
    "pause": "Schedule {0} is paused. `/nod schedules resume {0}` lets it run again.",
    "resume": "Schedule {0} runs again, from its next time on.",
    "run": "Schedule {0} runs now.",
    "delete": "Schedule {0} is deleted.",
}


def _line(each: Schedule) -> str:
    facts = [each.words, f"for {each.person.label}"]
    again = each.next and each.state is ScheduleState.ACTIVE and not each.words.startswith(each.next)
    facts += [f"next {each.next}"] if again else []
    facts += [str(each.state)] if each.state is not ScheduleState.ACTIVE else []
    return f"- `{each.label}` {redact_text(each.task)} ({', '.join(facts)})"

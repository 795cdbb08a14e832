"""``/nod schedules``: what comes back by itself, and pausing, running or ending it."""

from sqlmodel import Session

from bot.approvals.commands.words import CommandError, CommandParts, CommandReply, Subcommand, first_word
from bot.domain.chat import Answer, Command
from bot.domain.redaction import redact_text
from bot.features.schedules import runs
from bot.features.schedules.runs import ScheduleAction
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
        return people.put_names_in(session, "\n".join(map(_line, found))) or _NONE


def _line(each: Schedule) -> str:
    facts = [each.words, f"for {each.person.label}"]
    again = each.next and each.state is ScheduleState.ACTIVE and not each.words.startswith(each.next)
    facts += [f"next {each.next}"] if again else []
    facts += [str(each.state)] if each.state is not ScheduleState.ACTIVE else []
    return f"- `{each.label}` {redact_text(each.task)} ({', '.join(facts)})"

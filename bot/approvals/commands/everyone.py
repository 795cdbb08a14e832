"""Subcommands of ``/nod``, for everyone."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants, rights
from bot.approvals.commands.decide import format_titled_list
from bot.approvals.commands.words import CommandParts, Subcommand
from bot.approvals.lookup.people import list_absences
from bot.domain.chat import Command
from bot.domain.proposals import Proposal, State
from bot.domain.record import Act
from bot.domain.redaction import redact_text
from bot.domain.teams import Teammate
from bot.store import conversations, people, proposals, teams

_SAID = 160
SHORT_ID = 8


class EveryoneCommands:
    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._groups, self._workspace = parts.groups, parts.workspace
        self._stop = parts.stop
        self.words = [
            Subcommand("new", "start a new conversation here", self._new, here=True),
            Subcommand(
                "status",
                "what is waiting for you to decide, and what you asked for",
                self._status,
                is_private=True,
            ),
            Subcommand("stop", "stop what I am writing here, and my teammates", self.stop, here=True),
            Subcommand("team", "my teammates here, their plans and their status", self._team),
        ]

    async def _new(self, command: Command, _: str) -> str:
        stopped = await self._stop(command.address, command.actor, None)
        if not await self._database.write(_end, command, self._clock()):
            return "No conversation to end here. Just write to me."
        others = "other open proposals" if stopped else "open proposals"
        return f"{stopped or 'Done.'} Your next message starts a new conversation; {others} stay open."

    async def _status(self, command: Command, _: str) -> str:
        may, mine = await self._groups.read(self._concerning, command)
        now = self._clock()
        headed = (("Waiting for you to decide", may), ("Asked for by you, still open", mine))
        parts = [format_titled_list(title, found, now) for title, found in headed]
        parts.append(await self._database.read(list_absences, self._policies, command.actor))
        told = "\n\n".join(part for part in parts if part) or "Nothing is waiting."
        read = await asyncio.to_thread(self._workspace) if self._workspace else ""
        follows = f"I follow the workspace's `AGENTS.md` ({len(read):,} characters)."
        if read:
            return f"{told}\n\n{follows}"
        return told

    def _concerning(self, session: Session, command: Command) -> tuple[list[Proposal], list[Proposal]]:
        """Return the proposals that this person may decide, and those they asked for."""
        reach = rights.make_reach(session, self._policies, command.actor)
        waiting = proposals.list_seen(session, reach, [State.PROPOSED])
        person = people.person_of(session, command.actor)
        may = [p for p in waiting if rights.find_objection(session, self._policies, p, command.actor) is None]
        return may, [p for p in waiting if people.person_of(session, p.requester) == person]

    async def stop(self, command: Command, _: str) -> str:
        """Stop the turn at the command's address, and its team. Empty where what it means has ended."""
        stopped = await self._stop(command.address, command.actor, command.begun_by)
        if stopped or command.begun_by is not None:
            return stopped
        return "Nothing was running here."

    async def _team(self, command: Command, _: str) -> str:
        return format_team(await self._database.read(teams.at, str(command.address)))


def _end(session: Session, command: Command, now: datetime) -> bool:
    """End the conversation at an address and the grants that hold only there."""
    found = conversations.open_conversation(session, command.address)
    if found is None:
        return False
    by = people.by(session, Act.END_WITH_CONVERSATION, command.actor)
    grants.end_with_conversation(session, found.id, by, now)
    return conversations.end_conversation(session, command.address, now)


def format_team(team: Sequence[Teammate]) -> str:
    """Return a line for each teammate, and one for each proposal it waits for."""
    return "\n".join(line for each in team for line in _lines(each)) or "There are no teammates here."


def _lines(each: Teammate) -> list[str]:
    plan = f"; {each.plan_state}" if each.plan_state else ""
    said = redact_text(each.about)
    if said:
        said = f": {said if len(said) <= _SAID else said[: _SAID - 1] + '…'}"
    else:
        said = ""
    return [
        f"- **{each.name}** ({each.role}), {each.state}{plan}{said}",
        *(_waiting(p) for p in each.waits_for),
    ]


def _waiting(p: Proposal) -> str:
    return f"  - waits: `{p.id[:SHORT_ID]}` {redact_text(p.description)}"

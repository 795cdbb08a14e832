"""Subcommands of ``/nod``, for everyone: about the conversation at hand, and about a person's own proposals.

A conversation's agent may have started teammates, which are agents for parts of its work: ``/nod team`` lists
them, and ``/nod stop`` stops them together with the agent.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals import grants, rights
from bot.approvals.commands.decide import format_titled_list
from bot.approvals.commands.subcommands import CommandParts, Subcommand
from bot.approvals.lookup.absences import format_absences
from bot.domain.audit import Act
from bot.domain.chat import Command
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.teams import Teammate
from bot.domain.text import SHORT_ID_CHARS
from bot.store import conversations, people, proposals, teams

_MAX_REPORT_CHARS = 160  # the most characters of the text about a teammate's work


class EveryoneCommands:
    """The subcommands of ``/nod``."""

    def __init__(self, parts: CommandParts) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._clock = parts.clock
        self._groups = parts.groups
        self._read_workspace = parts.workspace  # reads the instructions of the workspace; None without one
        self._stop = parts.stop
        self.subcommands = [
            Subcommand("new", "start a new conversation here", self._new, needs_conversation=True),
            Subcommand(
                "status",
                "what is waiting for you to decide, and what you asked for",
                self._status,
                is_private=True,
            ),
            Subcommand(
                "stop", "stop what I am writing here, and my teammates", self.stop, needs_conversation=True
            ),
            Subcommand("team", "my teammates here, their plans and their status", self._team),
        ]

    async def _new(self, command: Command, _: str) -> str:
        """End the conversation at the command's address, so that the next message begins another."""
        stopped_text = await self._stop(command.address, command.actor, None)
        if not await self._database.write(_end_conversation, command, self._clock()):
            return "No conversation to end here. Just write to me."
        still_open = "other open proposals" if stopped_text else "open proposals"
        outcome = stopped_text or "Done."
        return f"{outcome} Your next message starts a new conversation; {still_open} stay open."

    async def _status(self, command: Command, _: str) -> str:
        to_decide, asked_for = await self._groups.read_with_members(self._list_open, command)
        now = self._clock()
        parts = [
            format_titled_list("Waiting for you to decide", to_decide, now),
            format_titled_list("Asked for by you, still open", asked_for, now),
            await self._database.read(format_absences, self._policies, command.actor),
        ]
        text = "\n\n".join(filter(None, parts)) or "Nothing is waiting."
        instructions = await asyncio.to_thread(self._read_workspace) if self._read_workspace else ""
        if instructions:
            text += f"\n\nI follow the workspace's `AGENTS.md` ({len(instructions):,} characters)."
        return text

    def _list_open(self, session: Session, command: Command) -> tuple[list[Proposal], list[Proposal]]:
        """Return the open proposals that this person may decide, and the open proposals they asked for."""
        reach = rights.make_search_scope(session, self._policies, command.actor)
        person = people.load_person(session, command.actor)
        to_decide: list[Proposal] = []
        asked_for: list[Proposal] = []
        for proposal in proposals.list_within_reach(session, reach, [State.PROPOSED]):
            if rights.find_objection(session, self._policies, proposal, command.actor) is None:
                to_decide.append(proposal)
            if people.load_person(session, proposal.requester) == person:
                asked_for.append(proposal)
        return to_decide, asked_for

    async def stop(self, command: Command, _: str) -> str:
        """Stop the agent's work at the command's address, and its teammates.

        ``begun_by`` of a command is set by a stop button: only work that began before this time is stopped.
        The reply to a stop button is empty if that work has ended since.
        """
        stopped_text = await self._stop(command.address, command.actor, command.begun_by)
        if stopped_text or command.begun_by is not None:
            return stopped_text
        return "Nothing was running here."

    async def _team(self, command: Command, _: str) -> str:
        return format_team(await self._database.read(teams.list_at, str(command.address)))


def _end_conversation(session: Session, command: Command, now: datetime) -> bool:
    """End the conversation at a command's address, and the grants for it alone.

    Returns False if no conversation is there.
    """
    conversation = conversations.find_current_conversation(session, command.address)
    if conversation is None:
        return False
    author = people.make_author(session, Act.END_WITH_CONVERSATION, command.actor)
    grants.end_with_conversation(session, conversation.id, author, now)
    return conversations.end_conversation(session, command.address, now)


def format_team(team: Sequence[Teammate]) -> str:
    """Return a line for each teammate, and a line for each proposal that the teammate waits for."""
    lines = []
    for teammate in team:
        lines.append(_format_teammate(teammate))
        lines += [
            f"  - waits: `{proposal.id[:SHORT_ID_CHARS]}` {redact_text(proposal.description)}"
            for proposal in teammate.waits_for
        ]
    return "\n".join(lines) or "There are no teammates here."


def _format_teammate(teammate: Teammate) -> str:
    line = f"- **{teammate.name}** ({teammate.role}), {teammate.state}"
    if teammate.plan_state:
        line += f"; {teammate.plan_state}"
    report = redact_text(teammate.status_text)  # the text on its work
    if len(report) > _MAX_REPORT_CHARS:
        report = f"{report[: _MAX_REPORT_CHARS - 1]}…"
    if report:
        line += f": {report}"
    return line

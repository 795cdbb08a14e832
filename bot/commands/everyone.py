"""``/nod``: what everybody may ask of Nod itself."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from sqlmodel import Session

from bot.commands.lists import titled
from bot.commands.team import listed
from bot.commands.words import Word, Words
from bot.domain.chat import Address, Clock, Command
from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State
from bot.store import conversations, grants, people, proposals, teams, votes
from bot.store.audit import By
from bot.store.database import Database
from bot.store.rules import Policies

Stop = Callable[[Address, Actor], Awaitable[str]]
"""Stops what runs at an address, and says what that was; nothing when nothing ran."""


class EveryonesWords:
    def __init__(self, database: Database, policies: Policies, clock: Clock, stop: Stop) -> None:
        self._database = database
        self._policies = policies
        self._clock = clock
        self._stop = stop
        self.words = Words(
            "nod",
            {
                "new": Word("new", "start a new conversation here", self._new),
                "status": Word("status", "what waits for a decision, and what you asked for", self._status),
                "stop": Word("stop", "stop what I am writing here, and my teammates", self.stop),
                "team": Word("team", "my teammates here, their plans and how they stand", self._team),
                "link": Word("link [CODE]", "make your accounts in several channels one person", self._link),
            },
        )

    async def _new(self, command: Command, _: str) -> str:
        stopped = await self._stop(command.address, command.actor)
        if not await self._database.write(_end, command, self._clock()):
            return "There is nothing to end here; just write to me."
        others = "other open proposals" if stopped else "open proposals"
        return f"{stopped or 'Done.'} Your next message starts a new conversation; {others} stay open."

    async def _status(self, command: Command, _: str) -> str:
        may, mine = await self._database.read(self._concerning, command)
        parts = [titled("Waiting for you to decide", may), titled("Asked for by you, still open", mine)]
        return "\n\n".join(part for part in parts if part) or "Nothing waits."

    def _concerning(self, session: Session, command: Command) -> tuple[list[Proposal], list[Proposal]]:
        """What this person may decide, and what they asked for."""
        waiting = proposals.in_states(session, [State.PROPOSED])
        person = people.person_of(session, command.actor)
        may = [p for p in waiting if votes.objection(session, self._policies, p, command.actor) is None]
        return may, [p for p in waiting if people.person_of(session, p.requester) == person]

    async def stop(self, command: Command, _: str) -> str:
        """Stop the turn at the command's address, and its team."""
        return await self._stop(command.address, command.actor) or "Nothing was running here."

    async def _team(self, command: Command, _: str) -> str:
        return listed(await self._database.read(teams.at, str(command.address)))

    async def _link(self, command: Command, code: str) -> str:
        if not code:
            new = await self._database.write(people.new_code, command.actor, self._clock())
            return (
                f"Your code is `{new}`. Within 10 minutes, send `/nod link {new}` (Telegram: `/link {new}`) "
                "from your other account. It works once. Do not show it to anybody."
            )
        other = await self._database.write(people.link, command.actor, code, self._clock())
        if other is None:
            return "That code is not valid (any more). Ask for a new one from the other account."
        return f"Linked: {other.label} and {command.actor.label} are one person now."


def _end(session: Session, command: Command, now: datetime) -> bool:
    """End the conversation at an address and the grants that hold only there."""
    found = conversations.open_conversation(session, command.address)
    if found is None:
        return False
    person = people.person_of(session, command.actor)
    by = By.press("end with its conversation", command.actor, person)
    grants.end_with_conversation(session, found.id, by, now)
    return conversations.end_conversation(session, command.address, now)

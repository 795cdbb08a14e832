"""The core with team tools, and a model with a queue of answers for the lead agent and each teammate."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from bot.domain import kinds
from bot.domain.model import Entry, SystemText, ToolCall
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.teams import Teammate
from bot.store import conversations, teams
from tests.kit import ADA, ROOM, FakeClock, Nod, Scripted, call, cores, says
from tests.kit.urls import Urls

PLAN = {
    "summary": "All lamps red",
    "steps": [
        {"description": "Look at every lamp", "tools": ["look"]},
        {"description": "Paint the desk lamp", "tools": ["paint"], "estimated_tokens": 500},
    ],
    "risks": "The paint may drip",
}


def plan(**changed: Any) -> ToolCall:
    return call("plan_submit", {**PLAN, **changed})


def spawn(*, plans: bool = False, role: str = "painter", **more: Any) -> ToolCall:
    given = {"role": role, "task": "Paint the desk lamp red.", "require_plan_approval": plans, **more}
    return call("spawn_teammate", given)


def speaker(transcript: Sequence[Entry]) -> str:
    """Whose turn it is: the name of a teammate, or lead."""
    first = transcript[0]
    assert isinstance(first, SystemText)
    found = [line for line in first.text.splitlines() if line.startswith("Your name: ")]
    return found[0].removeprefix("Your name: ") if found else "lead"


class TeamNod(Nod):
    """Answers are queued by speaker; a speaker with none left says OK."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **{"team": True, "admins": [ADA], **parts})
        self.queued: dict[str, list[Scripted]] = {}
        self.model.rule = self._answer

    def _answer(self, transcript: Sequence[Entry]) -> Scripted:
        left = self.queued.get(speaker(transcript), [])
        return left.pop(0) if left else says("OK.")

    def will(self, who: str, *answers: Scripted) -> None:
        self.queued.setdefault(who, []).extend(answers)

    async def begin(self, *answers: Scripted, plans: bool = False, **more: Any) -> Teammate:
        """The lead starts one teammate, which answers so; everything runs until it is idle."""
        self.will("lead", says("I start one.", spawn(plans=plans, **more)))
        self.will("painter", *answers)
        await self.say("paint the lamps")
        await self.idle()
        return (await self.team())[0]

    async def team(self) -> list[Teammate]:
        lead = await self.database.read(conversations.find_current_conversation, ROOM)
        assert lead is not None
        return await self.database.read(teams.list_of_lead, lead.id)

    async def one(self) -> Teammate:
        [found] = await self.team()
        return found

    async def until_open(self, count: int) -> None:
        """Return once so many proposals wait, while others of the team are still at work."""
        for _ in range(10_000):
            if len([p for p in await self.proposals() if p.state is State.PROPOSED]) >= count:
                return
            await asyncio.sleep(0)
        raise AssertionError("fewer became open")

    async def plans(self) -> list[Proposal]:
        return [p for p in await self.proposals() if p.kind is kinds.PLAN]

    async def open_plan(self) -> Proposal:
        [found] = [p for p in await self.plans() if p.state is State.PROPOSED]
        return found

    def seen_by(self, who: str) -> tuple[Entry, ...]:
        """The last transcript that a speaker was given."""
        return next(t for t in reversed(self.model.transcripts) if speaker(t) == who)

    def offered_to(self, who: str) -> set[str]:
        """The tools that a speaker was offered last."""
        at = max(i for i, t in enumerate(self.model.transcripts) if speaker(t) == who)
        return {spec.name for spec in self.model.offered[at]}

    def heard_by(self, who: str) -> str:
        """All that a speaker was told last: lines, results, and the prompt."""
        return "\n".join(getattr(entry, "text", "") for entry in self.seen_by(who))


MakeTeamNod = Callable[..., TeamNod]


@pytest.fixture
async def make_nod(database_of: Urls, clock: FakeClock) -> AsyncIterator[MakeTeamNod]:
    async with cores(TeamNod, database_of, clock) as make:
        yield make


@pytest.fixture
async def nod(make_nod: MakeTeamNod) -> TeamNod:
    return make_nod()

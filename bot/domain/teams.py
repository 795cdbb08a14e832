"""Teammates: sub-agents that the lead agent of a conversation starts, each with a conversation of its own.

The lead agent is the agent that people write to; it and its teammates are the team of its conversation. A
teammate may have to plan first: it is *locked*, so that it can only read, until people have approved its
plan.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.plans import is_approved
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.text import one_line

CHANNEL = "team"
"""The channel of a teammate's own address: no one can write there from outside."""


class TeammateState(StrEnum):
    """The stored state of a teammate."""

    WORKING = "working"  # its turn runs, or it waits for a decision
    DONE = "done"  # it gave its result; it continues if one of its proposals ends later
    FAILED = "failed"  # it could not continue
    STOPPED = "stopped"  # a person, the lead agent or a bound ended it


OVER = frozenset({TeammateState.FAILED, TeammateState.STOPPED})
"""The states that a teammate never leaves."""


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """Bounds on the teammates at work in a conversation, and on model calls and tokens of each teammate."""

    teammates: int = 4
    model_calls: int = 60
    tokens: int = 400_000


@dataclass(frozen=True, slots=True)
class Teammate:
    """A teammate as stored, with its current plan and activity. ``id`` is the id of its conversation, too."""

    id: str
    lead_id: str  # the id of the conversation that started it
    name: str
    role: str
    task: str
    tools: tuple[str, ...] | None  # None: all that the lead agent has
    needs_plan: bool
    rounds: int  # the number of plans that it submitted so far
    stored_state: TeammateState  # its stored state; `state` has the words for people
    outcome: str  # its last words: its result, or why it ended
    created_at: datetime
    ended_at: datetime | None
    plan: Proposal | None = None  # its newest plan
    waits_for: tuple[Proposal, ...] = ()  # open proposals of its own
    activity: str = ""  # its last words or calls, while it works
    model_calls: int = 0
    tokens: int = 0
    asking_line_id: int = 0  # the id of the person's line by which the lead agent started it

    @property
    def locked(self) -> bool:
        """True if it may only call tools that read: it must plan first, and its plan isn't approved."""
        return self.needs_plan and not (self.plan is not None and is_approved(self.plan))

    @property
    def has_ended(self) -> bool:
        """True if it can never work again."""
        return self.stored_state in OVER

    @property
    def status_text(self) -> str:
        """The text next to its name and state: the first line of its last words."""
        words = self.activity if self.stored_state is TeammateState.WORKING else self.outcome
        lines = [line for line in words.splitlines() if line.strip()]
        return one_line(lines[0]) if lines else ""

    @property
    def state(self) -> str:
        """Its state in words for people: the stored state or, while it works, what it waits for."""
        if self.stored_state is not TeammateState.WORKING:
            return str(self.stored_state)
        waiting_ids = [proposal.id for proposal in self.waits_for]
        if self.plan is not None and self.plan.id in waiting_ids:
            return f"waiting for its plan to be approved (version {self.rounds})"
        if self.waits_for:
            return "waiting for approval"
        if self.locked:
            return "planning"
        return "working"

    @property
    def plan_state(self) -> str:
        """The state of its plan in a few words; empty if it needs none, or if `state` says that it waits."""
        if not self.needs_plan or (self.plan is not None and self.plan.state is State.PROPOSED):
            return ""
        if self.plan is None:
            return "no plan yet"
        if is_approved(self.plan):
            return f"plan {self.rounds} approved by {self.plan.decided_by}"
        if self.plan.state is State.DECLINED:
            state = "sent back"
        else:
            state = str(self.plan.state)
        return f"plan {self.rounds} {state}"


@dataclass(frozen=True, slots=True)
class TeamStatus:
    """The team of one conversation as its thread shows it."""

    lead_id: str
    teammates: tuple[Teammate, ...]

    @property
    def at_work(self) -> int:
        return sum(teammate.stored_state is TeammateState.WORKING for teammate in self.teammates)

    @property
    def title(self) -> str:
        count = len(self.teammates)
        team = f"{count} teammate{'' if count == 1 else 's'}"
        if self.at_work:
            return f"Team: {team}, {self.at_work} at work"
        return f"Team: {team}, all ended"


def make_teammate_name(role: str, taken: Sequence[str]) -> str:
    """Return a short name made of the role, which differs from the names in ``taken``."""
    words = re.findall(r"[a-z0-9]+", role.lower())[:4]
    base = "-".join(words)[:30].strip("-") or "teammate"
    name = base
    number = 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name

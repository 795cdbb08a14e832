"""Agents: programs that call the team's tools with a token of their own, for a person who agreed to that.

`AGENTS` names the feature's parts, and ``bot/app`` puts them into the running Nod: routes for agents and
people, the tool that asks for a person's consent, and the sweep and the hook that end tokens.
"""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts.existence import LOOK_SECONDS
from bot.approvals.agent_tokens import end_work_of_tokens
from bot.domain.hooks import Hooks
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.features.agents import routes, status, token_routes
from bot.features.agents.sweep import TokenSweep
from bot.features.agents.tools import make_agent_toolset
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.jobs.scheduler import Sweep
from bot.store import tokens
from bot.tools.toolset import FixedToolset


def _make_toolsets(parts: FeatureParts) -> tuple[FixedToolset, ...]:
    return (make_agent_toolset(parts.database, parts.clock),)


def _make_sweeps(parts: SweepParts) -> tuple[Sweep, ...]:
    sweep = TokenSweep(parts.database, parts.has_account, parts.wake)
    return (Sweep("end_agents", LOOK_SECONDS, sweep.run),)


def _end_agents_of(session: Session, account: Actor, now: datetime) -> tuple[Job, ...]:
    """End the agents of a person whom this account has left, with their grants and open calls.

    Implements `ChangePerson`.
    """
    return end_work_of_tokens(session, tokens.end_after_unlink(session, account, now), now)


AGENTS = Feature(
    name="agents",
    api=(routes.router, token_routes.router),
    tags={"agents": "Programs that call tools for a person."},
    make_toolsets=_make_toolsets,
    make_sweeps=_make_sweeps,
    make_hooks=lambda _: Hooks(change_person=(_end_agents_of,), list_active=(status.list_tokens,)),
    examine=status.examine_agents,
)
"""The feature of agents. A call that only reads runs immediately, any other waits for people."""

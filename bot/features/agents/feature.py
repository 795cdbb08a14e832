"""Agents: programs with a token call tools for a person, who said yes to that."""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.accounts.gone import LOOK_SECONDS
from bot.approvals.agents import end_work
from bot.domain.hooks import Hooks
from bot.domain.jobs import Job
from bot.domain.people import Actor
from bot.features.agents import routes, status
from bot.features.agents.sweep import GoneSweep
from bot.features.agents.tools import agent_tools
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.jobs.scheduler import Sweep
from bot.store import tokens
from bot.tools.tool import FixedToolset


def _make_toolsets(parts: FeatureParts) -> tuple[FixedToolset, ...]:
    return (agent_tools(parts.database, parts.clock),)


def _make_sweeps(parts: SweepParts) -> tuple[Sweep, ...]:
    sweep = GoneSweep(parts.database, parts.has_account, parts.wake)
    return (Sweep("end_agents", LOOK_SECONDS, sweep.run),)


def _end_of_account(session: Session, account: Actor, now: datetime) -> tuple[Job, ...]:
    return end_work(session, tokens.end_after_unlink(session, account, now), now)


AGENTS = Feature(
    name="agents",
    api=(routes.router,),
    tags={"agents": "Programs that call tools for a person."},
    make_toolsets=_make_toolsets,
    make_sweeps=_make_sweeps,
    make_hooks=lambda _: Hooks(change_person=(_end_of_account,), list_active=(status.list_tokens,)),
    examine=status.examine_agents,
)
"""A program with a token calls tools; what it would change waits for people."""

"""The `Feature` value: what a feature contributes, and the kernel parts that its functions receive."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from fastapi import APIRouter, Depends, Request
from starlette.routing import BaseRoute

from bot.agent.models import Models
from bot.approvals.agents import AgentCalls
from bot.approvals.commands.words import CommandParts, CommandSet
from bot.channels.base import IsShared, Standing
from bot.domain.chat import Clock
from bot.domain.connection_port import Connections
from bot.domain.findings import Finding
from bot.domain.hooks import Hooks
from bot.domain.jobs import Wake
from bot.domain.people import Actor
from bot.domain.prices import Prices
from bot.jobs.scheduler import Sweep
from bot.settings import Settings
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.mcp.config import ServerConfig
from bot.tools.registry import Registry
from bot.tools.tool import FixedToolset


@dataclass(frozen=True, kw_only=True)
class FeatureParts:
    """The parts of the kernel that exist before the core: rows, the policy, the clock, the settings."""

    settings: Settings
    database: Database
    policies: Policies
    clock: Clock
    connections: Connections | None = None
    """The accounts that people connected; None if connections are not set up."""


@dataclass(frozen=True, kw_only=True)
class ConnectionParts(FeatureParts):
    """The additional dependencies of connections."""

    servers: Sequence[ServerConfig]
    """The MCP servers whose calls are made as a person or a place, not as Nod."""
    site_url: Callable[[], str]
    """Returns the address of the console."""
    is_shared: IsShared
    """Asks a platform if people of another company read along in a chat."""
    environment: Callable[[], Mapping[str, str]]
    """Returns the variables of the process and of its ``.env``."""


@dataclass(frozen=True, kw_only=True)
class SweepParts(FeatureParts):
    """The additional dependencies of sweeps."""

    registry: Registry
    wake: Wake
    """Starts jobs."""
    standing: Standing
    """Asks a platform for a person's membership in a chat."""
    has_account: Callable[[Actor], Awaitable[bool]]
    """Asks a platform if an account still exists."""
    models: Models
    prices: Prices
    """The prices of ``models``."""
    redraw: Callable[[], Awaitable[None]]
    """Redraws the cards that no longer show their proposal's state."""


@dataclass(frozen=True, kw_only=True)
class RouteParts(FeatureParts):
    """The additional dependencies of routes."""

    wake: Wake
    """Starts jobs."""
    agents: AgentCalls
    """The calls of agents."""


async def _get_parts(request: Request) -> RouteParts:
    parts: RouteParts = request.app.state.features
    return parts


PartsDep = Annotated[RouteParts, Depends(_get_parts)]
"""The parts of a feature's routes, as a dependency."""


class Service(Protocol):
    """An ASGI application of a feature, next to the API."""

    def route(self) -> BaseRoute:
        """Return the route under which it is mounted."""

    async def stop(self) -> None:
        """End what it has open, when the server stops."""


async def _find_nothing(_: FeatureParts) -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One part of Nod: a name, and its contributions. Nothing runs until one of the functions is called.

    The functions ``make_…`` receive the parts of the kernel that their results depend on.
    """

    name: str
    api: Sequence[APIRouter] = ()
    """Its routes of the HTTP API."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """The sections of the API document that its routes are in, each with its description."""
    has_named_tools: bool = False
    """True: its tools are on only if the settings name them, and ``build(toolsets=…)`` replaces them."""
    is_on: Callable[[Settings], bool] = lambda _: True
    """Returns whether the settings turn it on; where it is off its parts exist, and tell people so."""
    make_toolsets: Callable[[FeatureParts], Sequence[FixedToolset]] = lambda _: ()
    make_commands: Callable[[Settings, CommandParts], CommandSet] = lambda _, __: CommandSet()
    make_sweeps: Callable[[SweepParts], Sequence[Sweep]] = lambda _: ()
    make_hooks: Callable[[FeatureParts], Hooks] = lambda _: Hooks()
    make_connections: Callable[[ConnectionParts], Connections | None] = lambda _: None
    make_service: Callable[[], Service] | None = None
    examine: Callable[[FeatureParts], Awaitable[Sequence[Finding]]] = _find_nothing
    """Returns the findings of ``nod doctor``; changes nothing, in a process that runs nothing else."""

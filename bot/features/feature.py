"""The `Feature` value, which names all that a feature adds to Nod, and the parts that its functions receive.

A feature is a part without which Nod would still be the same program. The kernel knows no feature by name.
``bot/app`` lists the `Feature` values, and calls their functions with the parts of the kernel. It puts the
results (tools, commands, sweeps, hooks, routes) where the kernel asks for them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from fastapi import APIRouter, Depends, Request
from starlette.routing import BaseRoute

from bot.agent.models import Models
from bot.approvals.agents import AgentCalls
from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.channels.base import AskMembership, IsShared
from bot.domain.chat import Clock
from bot.domain.connection_port import Connections
from bot.domain.doctor_findings import Finding
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
from bot.tools.toolset import FixedToolset


@dataclass(frozen=True, kw_only=True)
class FeatureParts:
    """The parts of the kernel that all functions of a feature receive. Subclasses add parts for some."""

    settings: Settings
    database: Database
    policies: Policies
    clock: Clock
    connections: Connections | None = None
    """The accounts at other servers that people connected; None if connections are not set up."""


@dataclass(frozen=True, kw_only=True)
class ConnectionParts(FeatureParts):
    """The parts for connections, which are accounts at other servers."""

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
    """The parts for sweeps, which are functions that the scheduler calls every few seconds."""

    registry: Registry
    wake: Wake
    """Starts jobs, which are work for the dispatcher, such as an agent's turn."""
    standing: AskMembership
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
    """The parts for routes."""

    wake: Wake
    """Starts jobs."""
    agents: AgentCalls
    """The service that takes the calls of agents, which are programs with a token."""


async def _get_parts(request: Request) -> RouteParts:
    parts: RouteParts = request.app.state.features
    return parts


PartsDep = Annotated[RouteParts, Depends(_get_parts)]
"""The parts of a feature's routes, as a dependency."""


class Service(Protocol):
    """An ASGI application of a feature, next to the API."""

    def route(self) -> BaseRoute:
        """Return the route at which the application is mounted."""

    async def stop(self) -> None:
        """End the connections and tasks of the application, when the server stops."""


async def _find_nothing(_: FeatureParts) -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A feature: its name, and all that it adds to Nod.

    The functions ``make_…`` are called when Nod starts. They return what the feature adds by the settings.
    If the feature is off, most of them return nothing.
    """

    name: str
    api: Sequence[APIRouter] = ()
    """The feature's routes of the HTTP API."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """The sections of the API document for these routes, each with its description."""
    has_named_tools: bool = False
    """True: the tools are on only if the settings name them, and ``build(toolsets=…)`` replaces them."""
    is_on: Callable[[Settings], bool] = lambda _: True
    """Returns whether the settings turn the feature on. Its routes always exist, and say if it is off."""
    make_toolsets: Callable[[FeatureParts], Sequence[FixedToolset]] = lambda _: ()
    make_commands: Callable[[Settings, CommandParts], CommandSet] = lambda _, __: CommandSet()
    """Returns the subcommands of ``/nod`` and of ``/approvals``."""
    make_sweeps: Callable[[SweepParts], Sequence[Sweep]] = lambda _: ()
    make_hooks: Callable[[FeatureParts], Hooks] = lambda _: Hooks()
    """Returns the functions that the kernel calls at its own steps."""
    make_connections: Callable[[ConnectionParts], Connections | None] = lambda _: None
    """Returns the port to the connected accounts; only one feature has any."""
    make_service: Callable[[], Service] | None = None
    """Returns the application next to the API; None for a feature without one."""
    examine: Callable[[FeatureParts], Awaitable[Sequence[Finding]]] = _find_nothing
    """Returns the findings for ``nod doctor``, in a process that runs nothing else. Changes nothing."""

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
    """The parts of the kernel that there are before the core: rows, the policy, the clock, the settings.

    ``connections``: the accounts that people connected; None where no one set that up.
    """

    settings: Settings
    database: Database
    policies: Policies
    clock: Clock
    connections: Connections | None = None


@dataclass(frozen=True, kw_only=True)
class ConnectionParts(FeatureParts):
    """The additional dependencies of connections.

    ``servers`` are those whose calls are made as a person or a place. ``site_url``: where people find the
    console. ``is_shared`` asks a platform if people of another company read along in a chat.
    ``environment``: the variables of the process and of its ``.env``.
    """

    servers: Sequence[ServerConfig]
    site_url: Callable[[], str]
    is_shared: IsShared
    environment: Callable[[], Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class SweepParts(FeatureParts):
    """The additional dependencies of sweeps.

    ``wake`` starts jobs; ``standing`` asks a platform for a person's membership in a chat, ``has_account``
    whether an account is there at all; ``redraw`` redraws the cards that no longer show their proposal's
    state. ``models`` are set up, with their ``prices``.
    """

    registry: Registry
    wake: Wake
    standing: Standing
    has_account: Callable[[Actor], Awaitable[bool]]
    models: Models
    prices: Prices
    redraw: Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class RouteParts(FeatureParts):
    """The additional dependencies of routes: ``wake`` starts jobs, ``agents`` are the calls of agents."""

    wake: Wake
    agents: AgentCalls


async def _parts(request: Request) -> RouteParts:
    parts: RouteParts = request.app.state.features
    return parts


PartsDep = Annotated[RouteParts, Depends(_parts)]
"""The parts of a feature's routes, as a dependency."""


class Service(Protocol):
    """An ASGI application of a feature, next to the API: where it is mounted, and its end."""

    def route(self) -> BaseRoute: ...

    async def stop(self) -> None: ...


async def _find_nothing(_: FeatureParts) -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One part of Nod: a name, and what it brings. Nothing runs until one of the functions is called.

    ``api`` are the routes of its part of the HTTP API, ``tags`` the parts of the API document that they
    bring, each with its description. ``has_named_tools``: its tools are on only if the settings name them,
    and ``build(toolsets=…)`` replaces them. ``is_on``: whether the settings turn it on; where it is off its
    parts are there all the same, and they tell people so. ``examine`` returns the findings of ``nod doctor``
    about it; it changes nothing, and is called in a process that runs nothing else. Everything else is made
    over the parts that it is given.
    """

    name: str
    api: Sequence[APIRouter] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    has_named_tools: bool = False
    is_on: Callable[[Settings], bool] = lambda _: True
    make_toolsets: Callable[[FeatureParts], Sequence[FixedToolset]] = lambda _: ()
    make_commands: Callable[[Settings, CommandParts], CommandSet] = lambda _, __: CommandSet()
    make_sweeps: Callable[[SweepParts], Sequence[Sweep]] = lambda _: ()
    make_hooks: Callable[[FeatureParts], Hooks] = lambda _: Hooks()
    make_connections: Callable[[ConnectionParts], Connections | None] = lambda _: None
    make_service: Callable[[], Service] | None = None
    examine: Callable[[FeatureParts], Awaitable[Sequence[Finding]]] = _find_nothing

"""The features, and the parts of Nod that they receive and add."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from bot.app.mcp_servers import load_configs, read_environment
from bot.channels.base import Channel, is_shared
from bot.domain.chat import Clock
from bot.domain.connections import Identity
from bot.domain.hooks import Hooks
from bot.domain.times import now
from bot.errors import SettingsError
from bot.features.agents.feature import AGENTS
from bot.features.attention.feature import ATTENTION
from bot.features.connections.feature import CONNECTIONS
from bot.features.feature import ConnectionParts, Feature, FeatureParts
from bot.features.insights.feature import INSIGHTS
from bot.features.issues.feature import ISSUES
from bot.features.mcp.feature import MCP
from bot.features.memory.feature import MEMORY
from bot.features.mutes.feature import MUTES
from bot.features.opinion.feature import OPINION
from bot.features.paging.feature import PAGING
from bot.features.people.feature import PEOPLE
from bot.features.push.feature import PUSH
from bot.features.requests.feature import REQUESTS
from bot.features.schedules.feature import SCHEDULES
from bot.features.voice.feature import VOICE
from bot.settings import Settings
from bot.store.connections import give_connections
from bot.store.database import Database
from bot.store.rules import Policies

FEATURES: tuple[Feature, ...] = (
    PEOPLE,
    SCHEDULES,
    MEMORY,
    INSIGHTS,
    OPINION,
    ATTENTION,
    PAGING,
    MUTES,
    REQUESTS,
    ISSUES,
    MCP,
    AGENTS,
    CONNECTIONS,
    PUSH,
    VOICE,
)
"""The features: parts that Nod could do without, in the order in which lists name them."""


def make_parts(
    settings: Settings,
    database: Database,
    policies: Policies,
    clock: Clock = now,
    site_url: Callable[[], str] | None = None,
    channels: Mapping[str, Channel] | None = None,
) -> FeatureParts:
    """Return the parts of the core that features receive.

    They include the connections, which are the accounts of people or chats at MCP servers, in whose names
    calls are made. The first feature that can keep connections keeps them all. Raises SettingsError if a
    server needs them and no feature keeps them. ``channels``: they tell if strangers can read a chat, and may
    be filled later.
    """
    parts = FeatureParts(settings=settings, database=database, policies=policies, clock=clock)
    servers = [server for server in load_configs(settings) if server.identity is not Identity.NOD]
    connection_parts = ConnectionParts(
        **vars(parts),
        servers=servers,
        site_url=site_url or settings.site_url,
        is_shared=partial(is_shared, {} if channels is None else channels),
        environment=read_environment,
    )
    connections = None
    for feature in FEATURES:
        connections = feature.make_connections(connection_parts)
        if connections is not None:
            break
    if servers and connections is None:
        first = servers[0]
        raise SettingsError(
            f"{settings.mcp_config}: server {first.name!r}: identity {first.identity.value!r} needs accounts "
            'of people or chats, and nothing keeps these here; write "identity": "nod"'
        )
    give_connections(database, connections)
    return replace(parts, connections=connections)


def hooks_of(parts: FeatureParts) -> Hooks:
    """Return the hooks of all features."""
    return Hooks.join(feature.make_hooks(parts) for feature in FEATURES)

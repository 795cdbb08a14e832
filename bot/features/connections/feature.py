"""Connections: the accounts of people and chats at other servers, under which calls are made there.

`CONNECTIONS` names the feature's parts. The feature is off without a server whose calls are made under
people's accounts: then `make_connections` returns no port, and the other functions add nothing.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals import read_consents
from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.domain.active import ActiveLine
from bot.domain.doctor_findings import Finding, ok, warn
from bot.domain.hooks import Hooks
from bot.domain.text import name_some
from bot.features.connections import ending, routes, rows
from bot.features.connections.commands import ConnectionCommands
from bot.features.connections.port import AccountConnections, make_connections
from bot.features.connections.prompt_section import MissingConnections
from bot.features.connections.sign_in import page_routes
from bot.features.connections.sign_in.connecting import ConnectFlow
from bot.features.connections.sign_in.typed_numbers import TypedNumbers
from bot.features.connections.sweep import CONNECTION_SWEEP_SECONDS, ConnectionSweep
from bot.features.connections.tools import make_connection_toolset
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.jobs.scheduler import Sweep
from bot.settings import Settings
from bot.tools.toolset import FixedToolset

_PART = "Connections"
_MAX_NAMED = 5  # the most connections in one finding


def _make_toolsets(parts: FeatureParts) -> Sequence[FixedToolset]:
    if not isinstance(parts.connections, AccountConnections):
        return ()
    return (make_connection_toolset(parts.connections),)


def _make_commands(_: Settings, parts: CommandParts) -> CommandSet:
    if not isinstance(parts.connections, AccountConnections):
        return CommandSet()
    return CommandSet(nod=ConnectionCommands(parts, parts.connections).subcommands)


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    if not isinstance(parts.connections, AccountConnections):
        return ()
    return (
        Sweep(
            "end_connections",
            CONNECTION_SWEEP_SECONDS,
            ConnectionSweep(parts.connections, parts.has_account).run,
        ),
    )


def _make_hooks(parts: FeatureParts) -> Hooks:
    if not isinstance(parts.connections, AccountConnections):
        return Hooks()
    missing = MissingConnections(parts.connections)
    return Hooks(
        add_to_prompt=(missing.write_section,),
        # on a card of a call in a person's name: a warning about who sees the data that it returns
        annotate_card=(read_consents.warn_of_answer,),
        answer_message=(TypedNumbers(ConnectFlow(parts.connections)).answer,),
        offer_commands=(missing.offer_commands,),
        change_person=(ending.end_after_unlinking,),
        move_chat=(ending.move_chat,),
        list_active=(_list_connected,),
    )


def _list_connected(session: Session, _: datetime) -> Sequence[ActiveLine]:
    return [
        ActiveLine(_PART, each.connection.acts_as, each.connected_by, each.connection.connected_at)
        for each in rows.list_connections(session, None)
    ]


async def _examine_connections(parts: FeatureParts) -> Sequence[Finding]:
    """Return a finding on the connections; none if accounts are connected at no server."""
    if not isinstance(parts.connections, AccountConnections):
        return ()
    listed = await parts.database.read(rows.list_connections, None)
    expired = [each.connection.acts_as for each in listed if each.connection.is_expired]
    if expired:
        return (warn("connections", f"connect again: {name_some(expired, _MAX_NAMED)}"),)
    servers = ", ".join(sorted(parts.connections.servers))
    return (ok("connections", f"{len(listed)} at {servers}"),)


CONNECTIONS = Feature(
    name="connections",
    api=(routes.router, page_routes.router),
    tags={"connections": "Accounts at other servers that Nod acts as: yours, and a chat's."},
    make_connections=make_connections,
    make_toolsets=_make_toolsets,
    make_commands=_make_commands,
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
    examine=_examine_connections,
)

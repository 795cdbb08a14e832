"""Connections: whose account a call is made under. Nothing of it is there where no server asks for it."""

from collections.abc import Sequence

from bot.approvals import readings
from bot.approvals.commands.words import CommandParts, CommandSet
from bot.domain.hooks import Hooks
from bot.features.connections import ending, routes
from bot.features.connections.commands import ConnectionCommands
from bot.features.connections.port import AccountConnections, make_connections
from bot.features.connections.section import MissingSection
from bot.features.connections.sign_in.connecting import ConnectFlow
from bot.features.connections.sign_in.typed_numbers import TypedNumbers
from bot.features.connections.sweep import SECONDS, ConnectionSweep
from bot.features.connections.tools import connection_tools
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.jobs.scheduler import Sweep
from bot.settings import Settings
from bot.tools.tool import FixedToolset


def _make_toolsets(parts: FeatureParts) -> Sequence[FixedToolset]:
    if not isinstance(parts.connections, AccountConnections):
        return ()
    return (connection_tools(parts.connections),)


def _make_commands(_: Settings, parts: CommandParts) -> CommandSet:
    if not isinstance(parts.connections, AccountConnections):
        return CommandSet()
    return CommandSet(nod=ConnectionCommands(parts, parts.connections).words)


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    if not isinstance(parts.connections, AccountConnections):
        return ()
    return (Sweep("end_connections", SECONDS, ConnectionSweep(parts.connections, parts.standing).run),)


def _make_hooks(parts: FeatureParts) -> Hooks:
    if not isinstance(parts.connections, AccountConnections):
        return Hooks()
    section = MissingSection(parts.connections)
    return Hooks(
        add_to_prompt=(section.write,),
        annotate_card=(readings.warn_of_answer,),
        answer_message=(TypedNumbers(ConnectFlow(parts.connections)).answer,),
        offer_commands=(section.offer_commands,),
        change_person=(ending.end_of_account,),
        move_chat=(ending.move_chat,),
    )


CONNECTIONS = Feature(
    name="connections",
    api=(routes.router, routes.visits),
    tags={"connections": "Accounts at other servers that Nod acts as: yours, and a chat's."},
    make_connections=make_connections,
    make_toolsets=_make_toolsets,
    make_commands=_make_commands,
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
)

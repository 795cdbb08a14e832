"""What every suite builds with: hand-written ports, a small world with tools, the real core over them."""

from bot.testing.control import FakeClock, Hold
from tests.kit.channel import RecordingChannel, RecordingStream, ShowingChannel
from tests.kit.crash import FusedDatabase, Valve, kill
from tests.kit.model import Scripted, ScriptedModel, breaks, call, history_faults, says
from tests.kit.nod import AnyNod, MakeNod, Nod, cores
from tests.kit.people import ADA, ANA, BEN, EVE, ROOM, WALL
from tests.kit.sql import sql
from tests.kit.tables import make_tables
from tests.kit.waiting import held, until
from tests.kit.world import Run, Secret, World, lamp_tools

__all__ = [
    "ADA",
    "ANA",
    "BEN",
    "EVE",
    "ROOM",
    "WALL",
    "AnyNod",
    "FakeClock",
    "FusedDatabase",
    "Hold",
    "MakeNod",
    "Nod",
    "RecordingChannel",
    "RecordingStream",
    "Run",
    "Scripted",
    "ScriptedModel",
    "Secret",
    "ShowingChannel",
    "Valve",
    "World",
    "breaks",
    "call",
    "cores",
    "held",
    "history_faults",
    "kill",
    "lamp_tools",
    "make_tables",
    "says",
    "sql",
    "until",
]

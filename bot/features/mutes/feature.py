"""Mutes: the cards of a tool of which a person is not told for a while, and which they may still decide.

`MUTES` names the feature's parts: hooks of the delivery and of the button, a command, routes and a sweep.
"""

from collections.abc import Sequence
from functools import partial

from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.domain.hooks import Hooks
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.features.mutes import routes, status
from bot.features.mutes.commands import MuteCommands
from bot.features.mutes.muting import MutedKinds
from bot.features.mutes.rows import Mutes
from bot.features.mutes.sweep import SECONDS, MuteSweep
from bot.jobs.scheduler import Sweep
from bot.settings import Settings


def _make_commands(_: Settings, parts: CommandParts) -> CommandSet:
    return CommandSet(nod=MuteCommands(parts).subcommands)


def _make_hooks(parts: FeatureParts) -> Hooks:
    mutes = Mutes(parts.policies)
    kinds = MutedKinds(mutes, parts.clock)
    return Hooks(
        quiet_audience=(kinds.list_quiet,),
        may_be_quiet=(mutes.may_have_mutes,),
        take_press=(kinds.take_press,),
        list_active=(partial(status.list_all_mutes, parts.policies),),
    )


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    sweep = MuteSweep(parts.database, Mutes(parts.policies))
    return (Sweep("end_mutes", SECONDS, sweep.run),)


MUTES = Feature(
    name="mutes",
    api=(routes.router,),
    tags={"mutes": "Kinds of cards that you are not told of."},
    make_commands=_make_commands,
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
    examine=status.examine_mutes,
)

"""Attention: a person whom a rule of attention names gets only so many cards an hour, the others later.

`ATTENTION` names the feature's parts: the watcher of deliveries, which holds cards back, the sweep that
releases them, and the command that opens a released card.
"""

from collections.abc import Sequence
from functools import partial

from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.domain.hooks import Hooks
from bot.features.attention import status
from bot.features.attention.commands import OpenCommand
from bot.features.attention.release import RELEASE_SWEEP_SECONDS, ReleaseSweep
from bot.features.attention.watcher import AttentionWatcher
from bot.features.feature import Feature, FeatureParts, SweepParts
from bot.jobs.scheduler import Sweep
from bot.settings import Settings


def _make_hooks(parts: FeatureParts) -> Hooks:
    listing = partial(status.list_limits, parts.policies)
    return Hooks(watch_delivery=(AttentionWatcher(parts.policies),), list_active=(listing,))


def _make_commands(_: Settings, parts: CommandParts) -> CommandSet:
    return CommandSet(nod=OpenCommand(parts).words)


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    sweep = ReleaseSweep(parts.database, parts.policies, parts.wake)
    return (Sweep("release_held", RELEASE_SWEEP_SECONDS, sweep.run),)


ATTENTION = Feature(
    name="attention",
    make_commands=_make_commands,
    make_sweeps=_make_sweeps,
    make_hooks=_make_hooks,
    examine=status.examine_attention,
)

"""People: accounts that are linked as one person, stand-ins for absent people, and accounts that are gone.

`PEOPLE` names the feature's parts: commands, routes, and the sweeps that end absences and the rights of
departed accounts.
"""

from collections.abc import Sequence

from bot.approvals.accounts.existence import LOOK_SECONDS
from bot.approvals.commands.subcommands import CommandParts, CommandSet
from bot.features.feature import Feature, SweepParts
from bot.features.people import routes, sweep
from bot.features.people.away_commands import AwayCommands
from bot.features.people.departures import DepartureSweep
from bot.features.people.link_commands import LinkCommands
from bot.jobs.scheduler import Sweep
from bot.settings import Settings


def _make_commands(_: Settings, parts: CommandParts) -> CommandSet:
    linking = LinkCommands(parts)
    return CommandSet(
        nod=[*AwayCommands(parts).subcommands, *linking.nod_commands], admins=linking.admin_commands
    )


def _make_sweeps(parts: SweepParts) -> Sequence[Sweep]:
    departures = DepartureSweep(parts.database, parts.has_account, parts.wake)
    return (
        Sweep("end_absences", sweep.SECONDS, sweep.AbsenceSweep(parts.database, parts.policies).run),
        Sweep("end_departed", LOOK_SECONDS, departures.run),
    )


PEOPLE = Feature(
    name="people",
    api=(routes.router,),
    tags={"people": "Who is who: linked accounts and roles."},
    make_commands=_make_commands,
    make_sweeps=_make_sweeps,
)

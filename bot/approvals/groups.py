"""Members of the user groups that rules name. They are asked of the platforms before a decision needs them.

An answer counts for half a minute (`Policies.know_group`). While a platform can't be asked, no one decides by
being in the group.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar, TypeVarTuple

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.people import UserGroup
from bot.errors import ChannelError
from bot.store import people
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

_PATIENCE = 2.0  # the seconds that a platform has to answer
_PAUSE = timedelta(seconds=5)  # after a failure, before the same group is asked for again
_GROUPS_AT_A_TIME = 10

LookUp = Callable[[str, Collection[str]], Awaitable[UserGroup]]
"""A function that asks a platform who is in a group, given the group and the linked accounts.

Linked accounts that are no longer members of the platform's team are left out. Raises
ChannelError.
"""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def nowhere(group: str, _: Collection[str]) -> UserGroup:
    """Raise ChannelError: the look-up where no platform is connected."""
    raise ChannelError(f"Only the running Nod can ask for {group}.")


@dataclass(eq=False)
class Groups:
    """The service that asks for groups. Several callers who ask for one group share the answer."""

    database: Database
    policies: Policies
    clock: Clock
    look_up: LookUp
    # all by the group, such as slack:T1/S2
    _asking: dict[str, asyncio.Task[str]] = field(default_factory=dict, init=False)
    _faults: dict[str, tuple[str, datetime]] = field(default_factory=dict, init=False)  # reasons and times
    _stored_names: dict[str, str] = field(default_factory=dict, init=False)

    async def read(self, function: Callable[[Session, *Ts], T], *args: *Ts) -> T:
        """Read like `Database.read`, and once more if the reading needed groups that were not known yet."""
        result = await self.database.read(function, *args)
        if await self.ask_missing():
            return await self.database.read(function, *args)
        return result

    async def ask_missing(self) -> bool:
        """Ask for the groups that were needed and not known. Return True if any group is known now."""
        unknown = self.policies.unknown_groups()
        return len(await self.ask(unknown)) < len(unknown)

    async def ask(self, names: Iterable[str]) -> Mapping[str, str]:
        """Ask for these groups. Return the reason for each that can't be asked for right now."""
        groups = list(names)
        reasons: list[str] = []
        for start in range(0, len(groups), _GROUPS_AT_A_TIME):
            some = groups[start : start + _GROUPS_AT_A_TIME]
            reasons += await asyncio.gather(*map(self._ask, some))
        return {group: why for group, why in zip(groups, reasons, strict=True) if why}

    async def _ask(self, name: str) -> str:
        """Ask for a group, unless that is under way. Return why it can't be asked for, or an empty text."""
        why, failed_at = self._faults.get(name, ("", self.clock()))
        if why and abs(self.clock() - failed_at) < _PAUSE:
            return why
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.create_task(self._ask_now(name))
            asking.add_done_callback(lambda _: self._asking.pop(name, None))
        return await asyncio.shield(asking)

    async def _ask_now(self, name: str) -> str:
        self._faults.pop(name, None)
        # a person may press from a linked account elsewhere, so the platform is asked if they still belong
        # here
        linked = [row.account for row in await self.database.read(people.list_linked)]
        try:
            async with asyncio.timeout(_PATIENCE):
                group = await self.look_up(name, linked)
        except (ChannelError, TimeoutError) as error:
            if isinstance(error, ChannelError):
                why = error.message
            else:
                why = "It takes too long to answer."
            log.warning("a group can't be asked for", group=name, why=why)
            self._faults[name] = why, self.clock()
            return why
        self.policies.know_group(name, group)
        if self._stored_names.get(name) != group.name:
            await self.database.write(people.learn, {name: group.name})
            self._stored_names[name] = group.name
        return ""

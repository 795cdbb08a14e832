"""Members of the user groups that rules name, asked of their platforms before a decision needs them.

What a platform said counts for half a minute (`Policies.know_group`). Where it can't be asked, no one decides
by being in the group.
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

_PATIENCE = 2.0  # seconds that a platform has to answer
_PAUSE = timedelta(seconds=5)  # before a group is asked for again that could not be asked for
_AT_ONCE = 10

LookUp = Callable[[str, Collection[str]], Awaitable[UserGroup]]
"""Asks a platform who is in a group, without those of some accounts who are from outside by now.

Raises ChannelError.
"""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def nowhere(group: str, _: Collection[str]) -> UserGroup:
    """Look it up where no platform is connected."""
    raise ChannelError(f"Only the running Nod can ask for {group}.")


@dataclass(eq=False)
class Groups:
    """Asks for groups, each once however many want to know."""

    database: Database
    policies: Policies
    clock: Clock
    look_up: LookUp
    _asking: dict[str, asyncio.Task[str]] = field(default_factory=dict, init=False)
    _faults: dict[str, tuple[str, datetime]] = field(default_factory=dict, init=False)
    _called: dict[str, str] = field(default_factory=dict, init=False)

    async def read(self, function: Callable[[Session, *Ts], T], *args: *Ts) -> T:
        """Read like `Database.read`, and again if that needed groups that were not known yet."""
        found = await self.database.read(function, *args)
        if await self.ask_missing():
            return await self.database.read(function, *args)
        return found

    async def ask_missing(self) -> bool:
        """Ask for what is needed and not known; whether more is known now."""
        unknown = self.policies.unknown_groups()
        return len(await self.ask(unknown)) < len(unknown)

    async def ask(self, names: Iterable[str]) -> Mapping[str, str]:
        """Ask for these groups; gives why, for each that can't be asked for right now."""
        each = list(names)
        told = []
        for some in range(0, len(each), _AT_ONCE):
            told += await asyncio.gather(*map(self._ask, each[some : some + _AT_ONCE]))
        return {name: why for name, why in zip(each, told, strict=True) if why}

    async def _ask(self, name: str) -> str:
        why, at = self._faults.get(name, ("", self.clock()))
        if why and abs(self.clock() - at) < _PAUSE:
            return why
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.create_task(self._ask_now(name))
            asking.add_done_callback(lambda _: self._asking.pop(name, None))
        return await asyncio.shield(asking)

    async def _ask_now(self, name: str) -> str:
        self._faults.pop(name, None)
        # a linked account may press from elsewhere, where no one knows what it is on this platform by now
        linked = [each.account for each in await self.database.read(people.list_linked)]
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
        if self._called.get(name) != group.name:
            await self.database.write(people.learn, {name: group.name})
            self._called[name] = group.name
        return ""

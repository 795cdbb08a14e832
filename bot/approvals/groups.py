"""The members of the user groups that rules name, asked of the platforms.

A rule may say that a group decides, such as ``slack:T1/S2``. Only the platform knows who is in it, and it
can't be asked within a transaction. So a database read that needs an unknown group notes that in `Policies`,
and decides as if no one were in the group. `Groups.read_with_members` then asks the platform and reads once
more. A platform's answer is used for half a minute (`Policies.cache_group`). While a platform can't be asked,
no one decides by being in the group.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar, TypeVarTuple

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.people import UserGroup
from bot.errors import ChannelError
from bot.store import people
from bot.store.database import Database
from bot.store.rules import Policies
from bot.telemetry.logs import logger

log = logger(__name__)

_TIMEOUT_SECONDS = 2.0  # the time that a platform has to answer
_RETRY_PAUSE = timedelta(seconds=5)  # the time after a failure before the same group is asked for again
_GROUPS_AT_A_TIME = 10

LookUp = Callable[[str, Collection[str]], Awaitable[UserGroup]]
"""A function that asks a platform who is in a group.

Its arguments are the group and all linked accounts. Linked accounts that are no longer members of the
platform's team are left out of the answer. Raises ChannelError.
"""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Fault(NamedTuple):
    """A failed request for a group."""

    why: str
    at: datetime


async def refuse_groups(group: str, _: Collection[str]) -> UserGroup:
    """Raise ChannelError. This is the `LookUp` of a process without platforms, such as the command line."""
    raise ChannelError(f"Only the running Nod can ask for {group}.")


@dataclass(eq=False)
class Groups:
    """The service that asks platforms for groups. Callers who wait for one group share an answer."""

    database: Database
    policies: Policies
    clock: Clock
    look_up: LookUp
    # the keys of the next three are groups, such as slack:T1/S2
    _requests: dict[str, asyncio.Task[str]] = field(default_factory=dict, init=False)  # those under way
    _faults: dict[str, _Fault] = field(default_factory=dict, init=False)  # the last failures
    _stored_names: dict[str, str] = field(default_factory=dict, init=False)  # names that are in the database

    async def read_with_members(self, function: Callable[[Session, *Ts], T], *args: *Ts) -> T:
        """Read like `Database.read`. Read once more if that needed unknown groups that are known now."""
        result = await self.database.read(function, *args)
        if await self.ask_missing():
            return await self.database.read(function, *args)
        return result

    async def ask_missing(self) -> bool:
        """Ask for the groups that were needed and not known. Return True if any group is known now."""
        unknown = self.policies.list_groups_to_ask_for()
        failed = await self.ask(unknown)
        return len(failed) < len(unknown)

    async def ask(self, names: Iterable[str]) -> Mapping[str, str]:
        """Ask for these groups. Return the groups that can't be asked for now, each with the reason."""
        groups = list(names)
        reasons: list[str] = []
        for start in range(0, len(groups), _GROUPS_AT_A_TIME):
            batch = groups[start : start + _GROUPS_AT_A_TIME]
            reasons += await asyncio.gather(*map(self._ask_or_join, batch))
        return {group: why for group, why in zip(groups, reasons, strict=True) if why}

    async def _ask_or_join(self, name: str) -> str:
        """Ask for a group, or wait for a request under way. Return why that failed, or an empty text.

        If the last request failed a moment ago, the platform is not asked again.
        """
        fault = self._faults.get(name)
        if fault and abs(self.clock() - fault.at) < _RETRY_PAUSE:  # abs: the clock may have been set back
            return fault.why
        request = self._requests.get(name)
        if request is None:
            request = asyncio.create_task(self._ask_platform(name))
            self._requests[name] = request
            request.add_done_callback(lambda _: self._requests.pop(name, None))
        return await asyncio.shield(request)

    async def _ask_platform(self, name: str) -> str:
        """Ask for a group, and keep the answer or the fault. Return why that failed, or an empty text."""
        self._faults.pop(name, None)
        # People may press with an account of another platform that is linked with one of this platform. So
        # this platform also says which of the linked accounts are still members.
        linked = [row.account for row in await self.database.read(people.list_linked)]
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                group = await self.look_up(name, linked)
        except (ChannelError, TimeoutError) as error:
            why = error.message if isinstance(error, ChannelError) else "It takes too long to answer."
            log.warning("a group can't be asked for", group=name, why=why)
            self._faults[name] = _Fault(why, self.clock())
            return why
        self.policies.cache_group(name, group)
        if self._stored_names.get(name) != group.name:
            await self.database.write(people.store_names, {name: group.name})
            self._stored_names[name] = group.name
        return ""

"""The service by which the web server begins, finds and ends the sessions of browsers in the console.

Its work is done by the functions in ``bot/approvals/accounts``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from bot.approvals.accounts import organisation_sign_ins, sign_in_links
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.store.database import Database
from bot.store.rules import Policies


@dataclass(frozen=True, slots=True)
class ConsoleSessions:
    """The service for sessions of the console."""

    database: Database
    policies: Policies
    clock: Clock
    may_enter: Callable[[Actor], bool]
    """Returns whether the settings still let an account in. It is asked whenever a session is used."""

    session_life: ClassVar[timedelta] = sign_in_links.SESSION_LIFE
    """The life of a session that a link began."""
    organisation_session_life: ClassVar[timedelta] = sign_in_links.ORGANISATION_LIFE
    """The life of a session that the organisation's sign-in began."""
    max_organisation_sign_in: ClassVar[timedelta] = organisation_sign_ins.MAX_AWAY
    """The longest time that a browser may spend at the organisation's sign-in."""

    async def sign_in_by_code(self, code: str) -> str | None:
        """Begin a session for the code of a link, and return its secret; None if the code can't be used."""
        return await self.database.write(sign_in_links.sign_in_by_link, self.policies, code, self.clock())

    async def begin_organisation_sign_in(self, state: str, values: Mapping[str, str]) -> bool:
        """Store the values that a browser is checked by when it returns from the organisation's sign-in.

        Returns False if too many sign-ins are under way.
        """
        return await self.database.write(organisation_sign_ins.begin, state, values, self.clock())

    async def take_begun_sign_in(self, state: str) -> Mapping[str, str] | None:
        """Return the values that `begin_organisation_sign_in` stored, and delete them.

        None if they are unknown, used or too old.
        """
        return await self.database.write(organisation_sign_ins.take, state, self.clock())

    async def sign_in_as(self, actor: Actor) -> str:
        """Begin a session for someone whom the organisation has signed in, and return its secret."""
        return await self.database.write(sign_in_links.sign_in_by_organisation, actor, self.clock())

    async def find_session_account(self, secret: str) -> Actor | None:
        """Return the account of a session; None if it has ended, or its person is no longer let in."""
        actor = await self.database.read(sign_in_links.find_signed_in, secret, self.clock())
        if actor is not None and self.may_enter(actor):
            return actor
        return None

    async def sign_out(self, actor: Actor, secret: str) -> None:
        """End the account's session with this secret."""
        await self.database.write(sign_in_links.sign_out, actor, self.clock(), secret)

    async def sign_out_everywhere(self, actor: Actor) -> None:
        """End all sessions of this account."""
        await self.database.write(sign_in_links.sign_out, actor, self.clock())

"""Who is signed in to the console, and how they get in and out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.approvals import signing_in
from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.store.database import Database
from bot.store.rules import Policies


@dataclass(frozen=True, slots=True)
class SignedIn:
    database: Database
    policies: Policies
    clock: Clock
    may: Callable[[Actor], bool]  # whether the settings still let this account in
    life = signing_in.SESSION_LIFE
    organisation_life = signing_in.ORGANISATION_LIFE
    away = signing_in.AWAY

    async def enter(self, code: str) -> str | None:
        """The secret of a new session, for the code of a link; None where it can't be used."""
        return await self.database.write(signing_in.sign_in, self.policies, code, self.clock())

    async def begin(self, state: str, kept: Mapping[str, str]) -> bool:
        """Keep what a browser is checked by when it comes back from the organisation's sign-in.

        False where too many are under way.
        """
        return await self.database.write(signing_in.begin, state, kept, self.clock())

    async def come_back(self, state: str) -> Mapping[str, str] | None:
        """What was kept, once."""
        return await self.database.write(signing_in.come_back, state, self.clock())

    async def enter_as(self, actor: Actor) -> str:
        """The secret of a new session for someone whom the organisation has signed in."""
        return await self.database.write(signing_in.sign_in_as, actor, self.clock())

    async def holder(self, secret: str) -> Actor | None:
        """Whose session this is; None where it has ended, or may no longer be."""
        found = await self.database.read(signing_in.signed_in, secret, self.clock())
        return found if found is not None and self.may(found) else None

    async def leave(self, actor: Actor, secret: str = "") -> None:
        """End the session of this secret; without one, all of this account's."""
        await self.database.write(signing_in.sign_out, actor, self.clock(), secret)

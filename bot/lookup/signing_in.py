"""Who is signed in to the console, and how they get in and out."""

from dataclasses import dataclass

from bot.domain.chat import Clock
from bot.domain.people import Actor
from bot.store.database import Database
from bot.store.rules import Policies
from bot.transactions import signing_in


@dataclass(frozen=True, slots=True)
class SignedIn:
    database: Database
    policies: Policies
    clock: Clock
    life = signing_in.SESSION_LIFE

    async def enter(self, code: str) -> str | None:
        """The secret of a new session, for the code of a link; None where it can't be used."""
        return await self.database.write(signing_in.sign_in, self.policies, code, self.clock())

    async def holder(self, secret: str) -> Actor | None:
        return await self.database.read(signing_in.signed_in, secret, self.clock())

    async def leave(self, actor: Actor, secret: str = "") -> None:
        """End the session of this secret; without one, all of this account's."""
        await self.database.write(signing_in.sign_out, actor, self.clock(), secret)

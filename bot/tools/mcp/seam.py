"""What the rest of Nod needs of MCP servers, and what there is without any.

The SDK takes half a second and 25 MB. Only the modules that speak to servers import it, and they are loaded
where a server is configured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.chat import Clock
from bot.errors import SignInError
from bot.store.database import Database
from bot.tools.tool import Tool, Toolset

OVER = "This sign-in is over or was never started. Start it again."
UNKNOWN = "There is no such sign-in. Start it again."


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """Who is signed in at a server. ``wanted`` are scopes that it asked for since."""

    signed_in: bool
    by: str | None
    at: datetime | None
    wanted: str


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One configured server, as it is right now.

    ``trouble``: why it is unavailable; ``tools``: how many it offered. ``sign_in`` is None where people don't
    sign in; ``signed_out``: it is down because no one is signed in there.
    """

    name: str
    group: str
    trouble: str | None
    tools: int
    sign_in: SignInStatus | None
    signed_out: bool


class SignIns(Protocol):
    """All sign-ins under way."""

    async def status(self) -> list[ServerStatus]:
        """Every configured server."""

    def check(self, name: str) -> None:
        """Raises SignInError where there is no server of that name, or people don't sign in there."""

    async def begin(self, name: str, by: str) -> tuple[str, str]:
        """A name for the sign-in, and the page that a person is to open. Raises SignInError."""

    async def ended(self, ident: str) -> str:
        """What came of it, once the person was there. Raises SignInError."""

    async def came_back(self, said: Mapping[str, str]) -> str:
        """Take what the sign-in server sent the person back with. Raises SignInError."""

    async def sign_out(self, name: str) -> bool:
        """Forget the tokens; False where no one was signed in. Raises SignInError."""

    async def stop(self) -> None:
        """End those under way."""


class Servers(Toolset, Protocol):
    """The tools of all configured servers, which start when tools are first asked for."""

    async def status(self) -> list[ServerStatus]:
        """Every configured server."""

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> SignIns:
        """Where people sign in at them; ``back`` tells where they come back to."""

    async def stop(self) -> None:
        """End every server; afterwards none is started again."""


class NoServers:
    """Implements `Servers` where no file of them is named."""

    name = "mcp"

    async def tools(self) -> Sequence[Tool]:
        return ()

    async def status(self) -> list[ServerStatus]:
        return []

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> SignIns:  # noqa: ARG002
        return _NoSignIns()

    async def stop(self) -> None:
        """There is nothing to end."""


class _NoSignIns:
    async def status(self) -> list[ServerStatus]:
        return []

    def check(self, name: str) -> None:
        raise SignInError(f"There is no MCP server {name}. See: nod doctor")

    async def begin(self, name: str, by: str) -> tuple[str, str]:  # noqa: ARG002
        self.check(name)
        raise SignInError(UNKNOWN)

    async def ended(self, ident: str) -> str:  # noqa: ARG002
        raise SignInError(UNKNOWN)

    async def came_back(self, said: Mapping[str, str]) -> str:  # noqa: ARG002
        raise SignInError(OVER)

    async def sign_out(self, name: str) -> bool:
        self.check(name)
        return False

    async def stop(self) -> None:
        """There is nothing to end."""

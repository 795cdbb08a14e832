"""What the rest of Nod needs of MCP servers, and what there is without any.

The SDK takes half a second and 25 MB. Only the modules that speak to servers import it, and they are loaded
where a server is configured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.chat import Clock
from bot.errors import SignInError
from bot.store.database import Database
from bot.tools.tool import Tool

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


def no_server(name: str) -> SignInError:
    return SignInError(f"There is no MCP server {name}. See: nod doctor")


class SignIns:
    """Sign-ins at MCP servers, where there are no servers; `Logins` has those of configured ones."""

    async def status(self) -> list[ServerStatus]:
        """Every configured server."""
        return []

    def check(self, name: str) -> object:
        """Raise SignInError where there is no server of that name, or people don't sign in there."""
        raise no_server(name)

    async def begin(self, name: str, by: str) -> tuple[str, str]:  # noqa: ARG002
        """A name for the sign-in, and the page that a person is to open. Raises SignInError."""
        self.check(name)
        raise SignInError(UNKNOWN)

    async def ended(self, ident: str) -> str:  # noqa: ARG002
        """What came of it, once the person was there. Raises SignInError."""
        raise SignInError(UNKNOWN)

    async def came_back(self, said: Mapping[str, str]) -> str:  # noqa: ARG002
        """Take what the sign-in server sent the person back with. Raises SignInError."""
        raise SignInError(OVER)

    async def sign_out(self, name: str) -> bool:
        """Forget the tokens; False where no one was signed in. Raises SignInError."""
        self.check(name)
        return False

    async def stop(self) -> None:
        """End those under way."""


class Servers:
    """Implements `Toolset`: the tools of no server; `McpToolset` has those of configured ones."""

    name = "mcp"

    async def tools(self) -> Sequence[Tool]:
        return ()

    async def status(self) -> list[ServerStatus]:
        """Every configured server."""
        return []

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> SignIns:  # noqa: ARG002
        """Where people sign in at them; ``back`` tells where they come back to."""
        return SignIns()

    async def stop(self) -> None:
        """End every server; afterwards none is started again."""

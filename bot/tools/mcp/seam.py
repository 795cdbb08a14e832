"""What the rest of Nod needs of MCP servers, and what there is without any.

The SDK takes half a second and 25 MB. Only the modules that speak to servers import it, and they are loaded
where a server is configured.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from bot.domain.chat import Clock
from bot.errors import SignInError
from bot.store.database import Database
from bot.store.mcp import SignIn
from bot.tools.mcp.config import ServerConfig
from bot.tools.tool import Tool, Toolset

OVER = "This sign-in is over or was never started. Start it again."
UNKNOWN = "There is no such sign-in. Start it again."


class SignedInAt(Protocol):
    """The sign-in at one server. ``wanted`` are scopes that it asked for since."""

    wanted: str

    async def look(self) -> SignIn | None:
        """The sign-in as it is kept right now."""


class McpServer(Protocol):
    """One configured server. ``keys`` is None where people don't sign in."""

    @property
    def config(self) -> ServerConfig: ...
    @property
    def keys(self) -> SignedInAt | None: ...
    @property
    def known(self) -> Sequence[object]: ...
    @property
    def trouble(self) -> str | None: ...
    @property
    def group(self) -> str: ...
    @property
    def signed_out(self) -> bool: ...


class SignIns(Protocol):
    """All sign-ins under way."""

    @property
    def servers(self) -> Iterable[McpServer]: ...

    def server(self, name: str) -> McpServer:
        """The server of that name, if people can sign in there. Raises SignInError."""

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

    @property
    def servers(self) -> Sequence[McpServer]: ...

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> SignIns:
        """Where people sign in at them; ``back`` tells where they come back to."""

    async def stop(self) -> None:
        """End every server; afterwards none is started again."""


class NoServers:
    """Implements `Servers` where no file of them is named."""

    name = "mcp"
    servers: tuple[McpServer, ...] = ()

    async def tools(self) -> Sequence[Tool]:
        return ()

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> SignIns:  # noqa: ARG002
        return _NoSignIns()

    async def stop(self) -> None:
        """There is nothing to end."""


class _NoSignIns:
    servers: tuple[McpServer, ...] = ()

    def server(self, name: str) -> McpServer:
        raise SignInError(f"There is no MCP server {name}. See: nod doctor")

    async def begin(self, name: str, by: str) -> tuple[str, str]:  # noqa: ARG002
        self.server(name)
        raise SignInError(UNKNOWN)

    async def ended(self, ident: str) -> str:  # noqa: ARG002
        raise SignInError(UNKNOWN)

    async def came_back(self, said: Mapping[str, str]) -> str:  # noqa: ARG002
        raise SignInError(OVER)

    async def sign_out(self, name: str) -> bool:
        self.server(name)
        return False

    async def stop(self) -> None:
        """There is nothing to end."""

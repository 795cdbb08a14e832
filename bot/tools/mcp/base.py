"""The interface of MCP servers to the rest of Nod, and its implementation without any server.

The SDK takes half a second and 25 MB. Only the modules that speak to servers import it, and they are loaded
where a server is configured.

In the middle of a call a server may ask the person who wanted it ("elicitation"). The port is `Ask`: a
channel that can show a form answers a `Question` with an `Elicited`; `decline` is the answer where none can.
A question is no approval: it comes up inside a call that was let through already.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.domain.chat import Clock
from bot.errors import BadArguments, SignInError
from bot.store.database import Database
from bot.tools.mcp.schemas import Arguments
from bot.tools.tool import Tool

OVER = "This sign-in is over or was never started. Start it again."
UNKNOWN = "There is no such sign-in. Start it again."
SETTLE_SECONDS = 30.0  # that a command waits for servers to start


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """The sign-in at a server: by whom and since when. ``wanted`` are scopes that it has asked for since."""

    signed_in: bool
    by: str | None
    at: datetime | None
    wanted: str


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One configured server, as it is right now.

    ``trouble``: why it is unavailable; ``said``: its last words on stderr; ``tools``: how many it offered;
    ``left_out``: which are not taken, and why. ``sign_in`` is None where people don't sign in;
    ``signed_out``: down because no one is signed in.
    """

    name: str
    group: str
    trouble: str | None
    tools: int
    left_out: str
    sign_in: SignInStatus | None
    signed_out: bool
    said: str = ""
    is_starting: bool = False


def no_server(name: str) -> SignInError:
    return SignInError(f"There is no MCP server {name}. See: nod doctor")


class SignIns:
    """Sign-ins at MCP servers, where there are no servers; `Logins` has those of configured ones."""

    async def status(self) -> list[ServerStatus]:
        """Return every configured server."""
        return []

    def troubles(self) -> Mapping[str, str | None]:
        """Return why each configured server is unavailable now, by its name; None for one that is up."""
        return {}

    def check(self, name: str) -> object:
        """Raise SignInError where there is no server of that name, or people don't sign in there."""
        raise no_server(name)

    async def begin(self, name: str, by: str) -> tuple[str, str]:  # noqa: ARG002
        """Begin a sign-in, and return its name and the page that a person is to open. Raises SignInError."""
        self.check(name)
        raise SignInError(UNKNOWN)

    async def ended(self, ident: str) -> str:  # noqa: ARG002
        """Wait for the end of a sign-in, and return its text. Raises SignInError."""
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

    def start(self) -> None:
        """Begin to start every server; they come up by and by."""

    async def settle(self, seconds: float) -> None:
        """Start every server and wait until each is up or has failed, so long at most."""

    async def tools(self) -> Sequence[Tool]:
        return ()

    async def status(self) -> list[ServerStatus]:
        """Return every configured server."""
        return []

    def sign_ins(self, database: Database, clock: Clock, back: Callable[[], str]) -> SignIns:  # noqa: ARG002
        """Return the sign-ins at the servers; ``back`` gives the address to which people return."""
        return SignIns()

    async def stop(self) -> None:
        """End every server; afterwards none is started again."""


class Action(StrEnum):
    ACCEPT = "accept"  # the person filled it in, or went to the address
    DECLINE = "decline"  # the person said no
    CANCEL = "cancel"  # no one answered


@dataclass(frozen=True, slots=True)
class Question:
    """A server's question to a person. Show ``server`` with ``message``: the words are its own.

    ``schema`` is a flat JSON schema of the fields (texts, numbers, choices); empty where ``url`` is set,
    which the person is to open instead. ``agent``: the program in whose call it is asked, as `Agent.key`; its
    person is asked in private. ``in_private``: so is who wanted the call, wherever that was.
    """

    server: str
    message: str
    conversation_id: str
    requested_by: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None
    agent: str = ""
    in_private: bool = False

    def problems(self, content: Mapping[str, Any]) -> dict[str, str]:
        """Return the faults of a filled-in form, by field; empty when it fits.

        Blocks: call it in a thread.
        """
        try:
            Arguments(self.schema or {"type": "object"}).check(dict(content))
        except BadArguments as error:
            return error.fields
        except ValueError as error:
            return {"schema": str(error)}
        return {}


@dataclass(frozen=True, slots=True)
class Elicited:
    """The person's answer; ``content`` only with ACCEPT, fitting the question's schema."""

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict)


Ask = Callable[[Question], Awaitable[Elicited]]
"""Ask the person and wait for the answer. May raise: the server is told that no one answered."""


async def decline(_: Question) -> Elicited:
    """Say no, politely, where no channel can ask."""
    return Elicited(Action.DECLINE)

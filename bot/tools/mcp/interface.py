"""The interface of MCP servers to the rest of Nod, and its implementation without any server.

The MCP SDK takes half a second and 25 MB. Only the modules that speak to servers import it, and they are
loaded only where a server is configured.

In the middle of a call a server may ask a question of the person who wanted the call (MCP's "elicitation").
`AskPerson` is the function that asks: it takes a `Question` and returns an `Elicited`. `decline` takes its
place if no channel can show a form. A question is no approval: the call was let through before.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from bot.domain.chat import Clock
from bot.errors import BadArguments, SignInError
from bot.store.database import Database
from bot.tools.mcp.schemas import ArgumentSchema
from bot.tools.tool import Tool

SIGN_IN_OVER_TEXT = "This sign-in is over or was never started. Start it again."
UNKNOWN_SIGN_IN_TEXT = "There is no such sign-in. Start it again."
SETTLE_SECONDS = 30.0  # the time that a command waits until the servers are up


@dataclass(frozen=True, slots=True)
class SignInStatus:
    """The sign-in at a server."""

    signed_in: bool
    by: str | None
    """The account of the person who signed in last."""
    at: datetime | None
    """The time of that sign-in."""
    wanted: str
    """Scopes that the server has asked for since the sign-in."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The current state of a configured server."""

    name: str
    group: str
    trouble: str | None
    """The reason why it is unavailable; None while it is up."""
    tools: int
    """The number of tools that it offered last."""
    left_out: str
    """The names of the tools that are not taken, each with the reason."""
    sign_in: SignInStatus | None
    """None if people don't sign in there."""
    signed_out: bool
    """True if it is unavailable because no one is signed in."""
    said: str = ""
    """Its last lines on stderr, while it is unavailable."""
    is_starting: bool = False


def make_no_server_error(name: str) -> SignInError:
    return SignInError(f"There is no MCP server {name}. See: nod doctor")


class BegunSignIn(NamedTuple):
    """A sign-in that waits for the person."""

    id: str
    page: str  # the address that the person is to open


class SignIns:
    """The interface of sign-ins at MCP servers.

    This class itself is for a Nod without servers. The subclass `SharedSignIns` is for configured ones.
    """

    async def status(self) -> list[ServerStatus]:
        """Return the status of every configured server."""
        return []

    def troubles(self) -> Mapping[str, str | None]:
        """Return the reason why each server is unavailable now, by its name; None for a server that is up."""
        return {}

    def check(self, name: str) -> None:
        """Raise SignInError if there is no server of that name, or if people don't sign in there."""
        raise make_no_server_error(name)

    async def begin(self, name: str, by: str) -> BegunSignIn:  # noqa: ARG002
        """Begin a sign-in at a server. Raises SignInError.

        ``by``: the account of the person.
        """
        self.check(name)
        raise SignInError(UNKNOWN_SIGN_IN_TEXT)

    async def wait_for_end(self, ident: str) -> str:  # noqa: ARG002
        """Wait for the end of a sign-in, by its id, and return its outcome in words. Raises SignInError."""
        raise SignInError(UNKNOWN_SIGN_IN_TEXT)

    async def take_return(self, parameters: Mapping[str, str]) -> str:  # noqa: ARG002
        """Take the query of the address to which the sign-in server sent the person back.

        Return the outcome of the sign-in in words. Raises SignInError.
        """
        raise SignInError(SIGN_IN_OVER_TEXT)

    async def sign_out(self, name: str) -> bool:
        """Delete the tokens; return False if no one was signed in. Raises SignInError."""
        self.check(name)
        return False

    async def stop(self) -> None:
        """End the sign-ins in progress."""


class Servers:
    """The interface of MCP servers. It is a `Toolset`.

    This class itself is for a Nod without servers. The subclass `McpToolset` is for configured ones.
    """

    name = "mcp"

    def start(self) -> None:
        """Begin to start every server, without waiting for them."""

    async def start_and_wait(self, seconds: float) -> None:
        """Start every server, and wait at most ``seconds`` until each is up or has failed."""

    async def tools(self) -> Sequence[Tool]:
        return ()

    async def status(self) -> list[ServerStatus]:
        """Return the status of every configured server."""
        return []

    def sign_ins(self, database: Database, clock: Clock, get_return_address: Callable[[], str]) -> SignIns:  # noqa: ARG002
        """Return the sign-ins at the servers.

        ``get_return_address`` returns the address to which a sign-in server sends people back.
        """
        return SignIns()

    async def stop(self) -> None:
        """End every server; afterwards no server starts."""


class Action(StrEnum):
    """The act of a person on a server's question."""

    ACCEPT = "accept"  # the person filled it in, or went to the address
    DECLINE = "decline"  # the person said no
    CANCEL = "cancel"  # no one answered


@dataclass(frozen=True, slots=True)
class Question:
    """A server's question to a person, who fills in a form or opens an address."""

    server: str
    message: str
    """The server's own words. Show ``server`` with them, so that no one takes them for Nod's."""
    conversation_id: str
    requested_by: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    """A flat JSON schema of the form's fields (texts, numbers, choices); empty if ``url`` is set."""
    url: str | None = None
    """The address to open instead of filling in a form."""
    agent: str = ""
    """The program whose call it is, as `Agent.key`. Its person is asked in private. Empty for other calls."""
    in_private: bool = False
    """True: the person is asked in private, wherever the call was made."""

    def find_faults(self, content: Mapping[str, Any]) -> dict[str, str]:
        """Return the faults of a filled-in form, by field. Blocks: call it in a thread."""
        try:
            ArgumentSchema(self.schema or {"type": "object"}).check(dict(content))
        except BadArguments as error:
            return error.fields
        except ValueError as error:
            return {"schema": str(error)}
        return {}


@dataclass(frozen=True, slots=True)
class Elicited:
    """A person's answer to a question."""

    action: Action
    content: Mapping[str, Any] = field(default_factory=dict)
    """The filled-in form, which fits the question's schema; only with ACCEPT."""


AskPerson = Callable[[Question], Awaitable[Elicited]]
"""Asks the person, and returns their answer. If it raises, the server is told that no one answered."""


async def decline(_: Question) -> Elicited:
    """Decline every question."""
    return Elicited(Action.DECLINE)

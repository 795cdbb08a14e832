"""A tracker behind OAuth 2.1, made with the official SDK: it knows who is signed in, and logs each call.

``user`` is who sits at the browser. ``log`` has the subject, the tool and its arguments of each call.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl

from tests.tools.mcp.conftest import Quiet, until
from tests.tools.mcp.servers.gatekeeper import Gatekeeper

READS = ToolAnnotations(read_only_hint=True)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False)


@dataclass
class People(Gatekeeper):
    """A gatekeeper that knows whose each code and token is; ``refusals`` are those of new tokens to come.

    ``before_tokens`` happens between a code and its tokens. ``revokes_by_person``: with one token it ends all
    tokens of that person (RFC 7009, section 2.1), as Google does.
    """

    user: str = "octocat"
    whose: dict[str, str] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    refusals: int = 0
    revokes_by_person: bool = False
    before_tokens: Callable[[], Awaitable[None]] | None = None

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back = await super().authorize(client, params)
        self.whose[self.seen[-1]] = self.user
        return back

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        if self.before_tokens is not None:
            await self.before_tokens()
        user = self.whose[authorization_code.code]
        return self._of(user, await super().exchange_authorization_code(client, authorization_code))

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refusals:
            self.refusals -= 1
            raise TokenError("invalid_grant", "not now")
        user = self.whose[refresh_token.token]
        return self._of(user, await super().exchange_refresh_token(client, refresh_token, scopes))

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        ended = {token.token}
        if self.revokes_by_person:
            user = self.whose[token.token]
            ended = {each for each, whose in self.whose.items() if whose == user}
        for each in ended:
            self.tokens.pop(each, None)
            self.renewals.pop(each, None)

    def _of(self, user: str, tokens: OAuthToken) -> OAuthToken:
        self.whose[tokens.access_token] = user
        if tokens.refresh_token:
            self.whose[tokens.refresh_token] = user
        return tokens


class Tracker:
    """The server; ``down`` and ``up`` again at the same address."""

    def __init__(self) -> None:
        self.people = People()
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.named: str | None = None  # what it calls everyone, if not by their subject
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def _note(self, tool: str, **given: Any) -> str:
        token = get_access_token()
        subject = self.people.whose[token.token] if token else ""
        self.log.append((subject, tool, given))
        return subject

    async def up(self) -> None:
        issuer = AnyHttpUrl(f"http://127.0.0.1:{self.port}")
        auth = AuthSettings(
            issuer_url=issuer,
            resource_server_url=AnyHttpUrl(self.url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            revocation_options=RevocationOptions(enabled=True),
            validate_token_resource=True,
        )
        made: MCPServer[Any] = MCPServer(
            "tracker", log_level="CRITICAL", auth=auth, auth_server_provider=self.people
        )
        self._add_tools(made)
        config = uvicorn.Config(
            made.streamable_http_app(),
            host="127.0.0.1",
            port=self.port,
            log_config=None,
            timeout_graceful_shutdown=0,
        )
        self._server = Quiet(config)
        self._task = asyncio.create_task(self._server.serve())
        await until(lambda: self._server.started)

    def _add_tools(self, made: MCPServer[Any]) -> None:
        @made.tool(annotations=READS)
        def get_me() -> dict[str, Any]:
            """Tell who is signed in."""
            subject = self._note("get_me")
            return {"login": self.named or subject, "id": f"id-of-{subject}"}

        @made.tool(annotations=READS)
        def list_issues() -> list[str]:
            """List the issues of who is signed in."""
            return [f"an issue of {self._note('list_issues')}"]

        @made.tool(annotations=CHANGES)
        def close_issue(number: int) -> str:
            """Close an issue."""
            return f"{self._note('close_issue', number=number)} closed #{number}"

    async def down(self) -> None:
        self._server.should_exit = True
        await self._task

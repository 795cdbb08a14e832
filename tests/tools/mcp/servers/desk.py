"""An OAuth-protected MCP server made with the official SDK: it knows who asks by their token, and logs that.

What it lists follows who asks: ``extra`` are tools that only this subject has.
"""

import asyncio
import socket
from typing import Any

import uvicorn
from mcp import types
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl

from tests.tools.mcp.conftest import Quiet, until

READS = ToolAnnotations(read_only_hint=True)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False)


class Desk:
    """The server at an address of this machine. ``tokens`` gives the subject of each that it accepts."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.listed: list[str] = []  # who asked for the list
        self.extra: dict[str, frozenset[str]] = {}
        self.required: dict[str, str] = {}  # by subject: what its close_issue asks for in addition
        self.may_answer = asyncio.Event()  # read_issue answers once it is set
        self.may_answer.set()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def verify_token(self, token: str) -> AccessToken | None:
        known = token in self.tokens
        return AccessToken(token=token, client_id="nod", scopes=[], resource=self.url) if known else None

    def asker(self) -> str:
        token = get_access_token()
        return self.tokens[token.token] if token else ""

    async def up(self) -> None:
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(f"http://127.0.0.1:{self.port}"),
            resource_server_url=AnyHttpUrl(self.url),
            validate_token_resource=True,
        )
        server = _DeskServer(self, auth)
        config = uvicorn.Config(
            server.streamable_http_app(),
            host="127.0.0.1",
            port=self.port,
            log_config=None,
            timeout_graceful_shutdown=0,
        )
        self._server = Quiet(config)
        self._task = asyncio.create_task(self._server.serve())
        await until(lambda: self._server.started)

    async def down(self) -> None:
        self._server.should_exit = True
        await self._task


class _DeskServer(MCPServer[Any]):
    def __init__(self, desk: Desk, auth: AuthSettings) -> None:
        super().__init__("desk", log_level="CRITICAL", auth=auth, token_verifier=desk)
        self.desk = desk

        def note(tool: str, **given: Any) -> str:
            desk.log.append((desk.asker(), tool, given))
            return desk.asker()

        @self.tool(annotations=READS)
        async def read_issue(number: int) -> str:
            """Read an issue."""
            token, reader = get_access_token(), note("read_issue", number=number)
            await desk.may_answer.wait()
            return f"{reader} reads {number}, by {token and token.token}"

        @self.tool(annotations=CHANGES)
        def close_issue(number: int, why: str = "") -> str:
            """Close an issue."""
            return f"{note('close_issue', number=number)} closed {number}"

        @self.tool(annotations=READS)
        def secret_list() -> str:
            """List what only some may see."""
            return note("secret_list")

    async def list_tools(self) -> list[types.Tool]:
        subject = self.desk.asker()
        self.desk.listed.append(subject)
        found = await super().list_tools()
        there = self.desk.extra.get(subject, frozenset())
        return [
            self._as_seen(each, subject) for each in found if each.name != "secret_list" or each.name in there
        ]

    def _as_seen(self, tool: types.Tool, subject: str) -> types.Tool:
        if tool.name == "close_issue" and (needed := self.desk.required.get(subject)):
            return tool.model_copy(update={"description": f"Close an issue. {needed}"})
        return tool

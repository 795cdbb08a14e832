"""A server whose sign-in is another program, as GitHub's, Google's and Entra's are; made without the SDK's.

It knows Nod already and registers no one, tells tokens form-encoded unless it is asked for JSON, is named
with and without a last slash, keeps a refresh token for good, and tells by userinfo whose account it is: the
subject is no name, the address is vouched for by the text "true". ``user`` is who sits at the browser.
"""

import asyncio
import base64
import hashlib
import secrets
import socket
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.features.connections.tracker import CHANGES, READS
from tests.tools.mcp.conftest import Quiet, until

CLIENT, SECRET = "nod", "hub-client-secret"
SCOPES = ("openid", "email", "issues")


class Hub:
    """The server. ``log`` has the subject, the tool and its arguments of each call."""

    def __init__(self) -> None:
        self.user = "octocat"
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.seen: list[str] = []  # every secret that it gave out
        self.lives = 3600  # seconds
        self.needs: str | None = None  # the scope without which nothing is closed
        self.asked: list[str] = []  # the scopes that people were asked for
        self.tells_scope = True  # which was granted; where it is what was asked for, a server need not
        self._scopes: dict[str, str] = {}  # by code or token
        self._codes: dict[str, dict[str, str]] = {}
        self._whose: dict[str, str] = {}  # by token
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def entry(self) -> dict[str, Any]:
        client = {"clientId": CLIENT, "clientSecret": SECRET, "scopes": list(SCOPES)}
        return {"url": f"{self.base}/mcp", "oauth": client, "identity": "person", "trust": "trusted"}

    @property
    def lifetime(self) -> timedelta:
        return timedelta(seconds=self.lives)

    async def verify_token(self, token: str) -> AccessToken | None:
        if token not in self._whose:
            return None
        return AccessToken(
            token=token, client_id=CLIENT, scopes=list(SCOPES), resource=None, subject=self._whose[token]
        )

    def end_tokens(self) -> None:
        """No access token that is out there works; they can be renewed."""
        self._whose = {token: who for token, who in self._whose.items() if token.startswith("r-")}

    async def up(self) -> None:
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(f"{self.base}/"),
            resource_server_url=AnyHttpUrl(f"{self.base}/mcp"),
            validate_token_resource=False,  # its tokens name no resource
        )
        made: MCPServer[Any] = MCPServer("hub", log_level="CRITICAL", auth=auth, token_verifier=self)

        self.add_tools(made)
        app = made.streamable_http_app()
        app.add_middleware(StepUp, hub=self)
        described = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
        app.router.routes.extend([
            *(Route(path, self._describe) for path in described),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/userinfo", self._tell_who),
        ])  # fmt: skip
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, log_config=None, timeout_graceful_shutdown=0
        )
        self._server = Quiet(config)
        self._task = asyncio.create_task(self._server.serve())
        await until(lambda: self._server.started)

    def add_tools(self, made: MCPServer[Any]) -> None:
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

    def _note(self, tool: str, **given: Any) -> str:
        token = get_access_token()
        subject = self._whose.get(token.token, "") if token else ""
        self.log.append((subject, tool, given))
        return subject

    async def _describe(self, _: Request) -> Response:
        return JSONResponse({
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "userinfo_endpoint": f"{self.base}/userinfo",
            "response_types_supported": ["code"],
            "scopes_supported": list(SCOPES),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        })  # fmt: skip

    async def _authorize(self, request: Request) -> Response:
        asked = request.query_params
        if asked["client_id"] != CLIENT:
            return PlainTextResponse("unknown client", 400)
        code = self._give("c-", self.user)
        self.asked.append(asked.get("scope", ""))
        self._scopes[code] = self.asked[-1]
        self._codes[code] = {name: asked[name] for name in ("redirect_uri", "code_challenge")}
        back = urlencode({"code": code, "state": asked["state"], "iss": self.base})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", 302)

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        given = {name: str(value) for name, value in form.items()}
        basic = request.headers.get("authorization", "")
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if given.get("client_secret") != SECRET and basic != f"Basic {expected}":
            return self._answer(request, {"error": "invalid_client"})
        if given["grant_type"] == "refresh_token":
            user = self._whose.get(given["refresh_token"])
            if user is None:
                return self._answer(request, {"error": "invalid_grant"})
            return self._answer(request, self._tokens(user, self._scopes[given["refresh_token"]]))
        code = given.get("code", "")
        kept, user = self._codes.pop(code, None), self._whose.pop(code, "")
        proof = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(proof).decode().rstrip("=")
        if kept != {"redirect_uri": given["redirect_uri"], "code_challenge": challenge}:
            return self._answer(request, {"error": "invalid_grant"})
        refresh = self._give("r-", user)
        self._scopes[refresh] = self._scopes[code]
        return self._answer(request, {**self._tokens(user, self._scopes[code]), "refresh_token": refresh})

    def may(self, authorization: str) -> bool:
        """Tell if a token has the scope that closing needs."""
        granted = self._scopes.get(authorization.removeprefix("Bearer "), "")
        return self.needs is None or self.needs in granted.split()

    def _tokens(self, user: str, scope: str) -> dict[str, Any]:
        token = self._give("a-", user)
        self._scopes[token] = scope
        told = {"scope": scope} if self.tells_scope else {}
        return {"access_token": token, "token_type": "bearer", "expires_in": self.lives, **told}

    def _answer(self, request: Request, said: dict[str, Any]) -> Response:
        """GitHub answers so, and errors too, with 200."""
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse(said)
        return Response(urlencode(said), media_type="application/x-www-form-urlencoded")

    async def _tell_who(self, request: Request) -> Response:
        user = self._whose.get(request.headers["authorization"].removeprefix("Bearer "))
        if user is None:
            return PlainTextResponse("who?", 401)
        mail = f"{user}@hub.example"
        return JSONResponse({
            "sub": f"oid-of-{user}",
            "preferred_username": user,
            "email": mail,
            "email_verified": "true",
            "xms_edov": "1",
        })  # fmt: skip

    def _give(self, kind: str, user: str) -> str:
        secret = kind + secrets.token_urlsafe(32)
        self._whose[secret] = user
        self.seen.append(secret)
        return secret


class StepUp:
    """Refuses to close an issue for want of a scope, as RFC 6750 has it."""

    def __init__(self, app: ASGIApp, hub: Hub) -> None:
        self._app, self._hub = app, hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or self._hub.needs is None:
            return await self._app(scope, receive, send)
        request = Request(scope, receive)
        body = await request.body()
        if b"close_issue" in body and not self._hub.may(request.headers.get("authorization", "")):
            challenge = f'Bearer error="insufficient_scope", scope="{self._hub.needs}"'
            answer = PlainTextResponse("no", 403, headers={"WWW-Authenticate": challenge})
            return await answer(scope, receive, send)

        told = False

        async def again() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self._app(scope, again, send)

"""The few addresses that an agent's token opens; everything else is answered with 403.

An agent is a program with a token of its own, which calls the team's tools through Nod for one person.
"""

import re

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.agents import AGENT_BEGINNING
from bot.web.answers import make_problem_response

NOT_FOR_AGENTS = "This token calls tools and nothing else. See docs/gateway.md for what it opens."
_OPEN = tuple(
    (method, re.compile(path))
    for method, path in (
        ("GET", r"/mcp"),
        ("POST", r"/mcp"),
        ("DELETE", r"/mcp"),
        ("GET", r"/api/tools"),
        ("POST", r"/api/tools/[^/]+/calls"),
        ("GET", r"/api/calls/[^/]+"),
        ("POST", r"/api/calls/[^/]+/cancel"),
        ("POST", r"/api/approvals"),
        ("POST", r"/api/permissions"),
        ("GET", r"/api/approvals/[^/]+"),
        ("POST", r"/api/proposals/[^/]+/cancel"),
    )
)


def may_agent_ask(scope: Scope) -> bool:
    """Tell if an agent's token opens the path of a request with its method."""
    path, asked = scope["path"], scope.get("method", "GET")
    return any(asked == method and pattern.fullmatch(path) for method, pattern in _OPEN)


class AgentPaths:
    """ASGI middleware that refuses an agent's token at all other addresses, also at those that need no token.

    An agent's token is known by its beginning, so nothing is looked up.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_agents(scope) and not may_agent_ask(scope):
            await make_problem_response(403, NOT_FOR_AGENTS)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_agents(scope: Scope) -> bool:
    scheme, _, given = HTTPConnection(scope).headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and given.strip().startswith(AGENT_BEGINNING)

"""Nod as an MCP server, through which other agents ask people for approval.

`make_mcp_server` has three tools of its own: `request_approval` opens an approval request, `check_approval`
tells its state, and `permission_prompt` is what coding agents call before they use a tool of theirs. An
agent's token also gets the team's tools (`calls.py`, `tasks.py`).

All tools use Nod's HTTP interface, so ``nod mcp`` over stdio and ``/mcp`` on the running server do the same,
each with its caller's token (`approval_requests.py`).
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

import httpx2
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import INTERNAL_ERROR, CallToolResult, ToolAnnotations
from pydantic import Field
from starlette.types import ASGIApp

from bot.features.mcp import approval_requests, calls
from bot.features.mcp.calls import PROGRESS_SECONDS, Connect, Json
from bot.features.mcp.listening import TOOLS_POLL_SECONDS, ToolListeners
from bot.features.mcp.tasks import TasksExtension, get_headers

OWN_TOOLS = ("request_approval", "check_approval", "permission_prompt")
"""The names of this server's own tools; all other tools are the team's."""
_GRACE_SECONDS = 30  # beyond the wait of a permission prompt: the time in which the expiry is reported

WaitSeconds = Annotated[
    int, Field(ge=0, le=3600, description="seconds to wait for people; 0 returns immediately")
]
Facts = dict[str, str | int | float | bool | None]


def make_mcp_server(
    connect: Connect,
    prompt_wait_seconds: int,
    call_wait_seconds: float,
    poll_seconds: float = TOOLS_POLL_SECONDS,
) -> MCPServer[Any]:
    """Return an MCP server with its own three tools and, for an agent's token, the team's tools.

    ``prompt_wait_seconds``: seconds that a permission prompt waits for people. ``call_wait_seconds``: seconds
    that a call of the team's tools waits for people if its client has no tasks. ``poll_seconds``: the seconds
    between two lists of the tools for a client that listens. Configure logging first: otherwise the SDK sets
    up its own.
    """
    server: MCPServer[Any] = MCPServer(
        "nod",
        title="Nod",
        instructions="Ask people for approval before you change anything; only their press counts.",
        version="1",
        log_level="ERROR",
        extensions=[TasksExtension(connect, OWN_TOOLS, call_wait_seconds)],
        middleware=[ToolLister(connect), ToolListeners(connect, poll_seconds)],
    )
    harmless = ToolAnnotations(destructive_hint=False, open_world_hint=False)

    @server.tool(annotations=harmless)
    async def request_approval(
        summary: Annotated[str, Field(description="what you are about to do, in one line")],
        context: Context[Any, Any],
        details: Annotated[str, Field(description="more of it, for who decides")] = "",
        fields: Annotated[Facts | None, Field(description="single facts, by name")] = None,
        ttl_seconds: Annotated[int | None, Field(ge=1, description="how long it may wait at most")] = None,
        wait_seconds: WaitSeconds = 0,
    ) -> Json:
        """Ask people to approve what you are about to do, with a button in their chat.

        Continue only if `end` is "approved"; while it is "waiting", look again with check_approval.
        """
        body = {"summary": summary, "details": details, "fields": fields or {}, "ttl_seconds": ttl_seconds}
        async with connect(context.headers) as client:
            request = await approval_requests.open_request(
                client, "/api/approvals", body, context, wait_seconds
            )
            return approval_requests.describe(request)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def check_approval(
        id: Annotated[str, Field(description="the id that request_approval or a waiting call gave")],  # noqa: A002 - its wire name
        context: Context[Any, Any],
        wait_seconds: WaitSeconds = 0,
    ) -> Annotated[CallToolResult, Json]:
        """Tell a request's status; `end` is one of the words below.

        These are waiting, approved, declined, expired, cancelled, undeliverable, failed and outcome_unknown.
        A tool's call that waited can also be running, succeeded or withdrawn, and is not approved. Its
        `result` is the tool's answer once it has run.
        """
        async with connect(context.headers) as client:
            if calls.is_call_id(id):
                return await _await_call(client, id, context, wait_seconds)
            request = await approval_requests.look_up(client, id)
            request = await approval_requests.wait_for_end(client, request, context, wait_seconds)
            return _as_result(approval_requests.describe(request))

    @server.tool(annotations=harmless, structured_output=False)
    async def permission_prompt(
        tool_name: str,
        input: Json,  # noqa: A002 - as coding agents call it
        context: Context[Any, Any],
        tool_use_id: str | None = None,
    ) -> str:
        """Ask people whether you may use a tool of yours; answers with JSON: allow or deny."""
        body = {
            "tool_name": tool_name,
            "input": input,
            "tool_use_id": tool_use_id,
            "ttl_seconds": prompt_wait_seconds,
        }
        try:
            async with connect(context.headers) as client:
                longest_wait = prompt_wait_seconds + _GRACE_SECONDS
                request = await approval_requests.open_request(
                    client, "/api/permissions", body, context, longest_wait
                )
                # still open, such as while approvals are paused: a late yes must not count
                if request["end"] == "waiting":
                    await approval_requests.withdraw(client, request)
        except ToolError as error:
            return json.dumps({"behavior": "deny", "message": f"Nod could not ask anyone: {error}"})
        return json.dumps(approval_requests.make_permission_answer(request))

    return server


async def _await_call(
    client: httpx2.AsyncClient, call_id: str, context: Context[Any, Any], wait: float
) -> CallToolResult:
    """Return a tool's call once it has ended, or as it is after ``wait`` seconds. Raises ToolError.

    Progress is reported every `PROGRESS_SECONDS`.
    """
    try:
        call = await calls.look_up_call(client, call_id)
        waited = 0.0
        while call["end"] in calls.OPEN_STATES and waited < wait:
            await context.report_progress(waited, message=calls.describe_status(call))
            step = min(PROGRESS_SECONDS, wait - waited)
            call = await calls.look_up_call(client, call_id, step)
            waited += step
    except calls.ApiFailure as error:
        raise ToolError(str(error)) from None
    facts = {"id": call["id"], "tool": call["tool"], "end": call["end"], "result": call["text"]}
    names = ("decided_by", "edited", "waits_for", "expires_at")
    facts |= {name: call[name] for name in names if call[name]}
    return _as_result(facts, calls.list_files(call))


def _as_result(facts: Json, files: Sequence[Json] = ()) -> CallToolResult:
    """Return facts as the result of a tool: as text and as structured content, with files."""
    content = [{"type": "text", "text": json.dumps(facts, indent=2)}, *files]
    return CallToolResult.model_validate({"content": content, "structuredContent": facts})


class ToolLister:
    """Middleware that adds the tools of an agent's token to the server's own list, a page at a time."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer ``tools/list``; any other message goes to the SDK. Raises MCPError.

        The server's own tools are on the first page. The cursor is a place in the list of the team's tools.
        """
        if ctx.method != "tools/list" or ctx.request_id is None:
            return await call_next(ctx)
        cursor = (ctx.params or {}).get("cursor")
        first = await call_next(replace(ctx, params={**(ctx.params or {}), "cursor": None}))
        if not isinstance(first, dict):
            return first
        async with self._connect(get_headers(ctx)) as client:
            if not calls.is_agent(client):
                return first
            try:
                page = await calls.list_page(client, cursor if isinstance(cursor, str) else None)
            except calls.ApiFailure as error:
                raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None
        own_tools = first["tools"] if cursor is None else []
        answer = {**first, "tools": [*own_tools, *page.tools]}
        if page.next_cursor:
            answer["nextCursor"] = page.next_cursor
        return answer


@asynccontextmanager
async def run_http_app(
    connect: Connect,
    prompt_wait_seconds: int,
    call_wait_seconds: float,
    poll_seconds: float = TOOLS_POLL_SECONDS,
) -> AsyncIterator[ASGIApp]:
    """Yield the application for streamable HTTP. The task that enters the context must also leave it."""
    server = make_mcp_server(connect, prompt_wait_seconds, call_wait_seconds, poll_seconds)
    # this also makes ``server.session_manager``; the application that it returns is not used
    server.streamable_http_app(
        stateless_http=True,
        # the site's auth decides who may call, for this path as for any other
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    manager = server.session_manager
    async with manager.run():
        yield manager.handle_request

"""The Tasks extension of MCP (SEP-2663), for calls of the team's tools that may wait for people.

A task stands for a call that has not ended: the client asks for its state, and gets the result in the end. A
client that declares the extension in its request gets a task. Any other client waits for a while, then gets
the id of the call that is still open.

The SDK advertises the extension, but leaves it to the extension to check that a request declares it. The
answer to a tool's call depends on `has_tasks`. The methods of tasks refuse a request without the declaration,
by ``require_client_extension`` of the SDK.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import httpx2
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import require_client_extension
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    RequestParams,
    TextContent,
)

from bot.features.mcp import calls
from bot.features.mcp.calls import OPEN_STATES, PROGRESS_SECONDS, ApiFailure, Connect, Json

EXTENSION_NAME = "io.modelcontextprotocol/tasks"
"""The name of the extension, which clients declare."""
_VERSIONS = frozenset({"2026-07-28"})  # the revisions of MCP that have tasks
_HEADER_MISMATCH_CODE = -32020  # of a request whose headers and body differ
_KEPT_AFTER_EXPIRY = timedelta(days=1)  # the time for which a call can be looked up after its expiry
_SHORTEST_POLL_MS = 2_000  # the shortest time after which a client asks for the state again

Context = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """The parameters of a method of tasks. ``inputResponses`` is not read: no task of Nod asks for input."""

    task_id: str
    input_responses: dict[str, Any] | None = None


class TasksExtension(Extension):
    """``tasks/get``, ``tasks/update`` and ``tasks/cancel``, and tools that answer with a task.

    ``own_tools`` are the names of the tools that this server answers itself; all others are the team's.
    ``wait`` is the number of seconds that a call waits for people if its client has no tasks.
    """

    identifier = EXTENSION_NAME

    def __init__(self, connect: Connect, own_tools: Sequence[str], wait: float) -> None:
        self._connect = connect
        self._own_tools = frozenset(own_tools)
        self._wait = wait

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods that the SDK adds to the server, in the revisions that have tasks."""
        handlers = {"tasks/get": self._get, "tasks/update": self._update, "tasks/cancel": self._cancel}
        return [MethodBinding(name, TaskParams, handler, _VERSIONS) for name, handler in handlers.items()]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Context, call_next: CallNext
    ) -> HandlerResult:
        """Make a call of one of the team's tools, for an agent's token. Any other call goes to the SDK."""
        if params.name in self._own_tools:
            return await call_next(ctx)
        async with self._connect(get_headers(ctx)) as client:
            if not calls.is_agent(client):
                return await call_next(ctx)
            try:
                call = await calls.make_call(client, params.name, params.arguments or {}, get_meta(ctx))
                if call["end"] in OPEN_STATES and has_tasks(ctx):
                    return {"resultType": "task", **describe_task(call)}
                waited = 0.0
                while call["end"] in OPEN_STATES and waited < self._wait:
                    await ctx.session.report_progress(waited, self._wait, calls.describe_status(call))
                    step = min(PROGRESS_SECONDS, self._wait - waited)
                    # A look-up can't say if the client had made this call before (``joined``), so the value
                    # of the first answer is kept.
                    joined = call["joined"]
                    call = {**await calls.look_up_call(client, call["id"], step), "joined": joined}
                    waited += step
            except ApiFailure as error:
                return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        return CallToolResult.model_validate(calls.describe_result(call))

    async def _get(self, ctx: Context, params: TaskParams) -> HandlerResult:
        """Return the task as it is now. Raises MCPError."""
        return describe_task(await self._find(ctx, params))

    async def _update(self, ctx: Context, params: TaskParams) -> HandlerResult:
        await self._find(ctx, params)  # only to refuse an unknown task: no task of Nod asks for input
        return {}

    async def _cancel(self, ctx: Context, params: TaskParams) -> HandlerResult:
        """Withdraw the call, unless people have decided it: then the task stays as it is. Raises MCPError."""
        await self._find(ctx, params)
        async with self._connect(get_headers(ctx)) as client:
            try:
                await calls.withdraw_call(client, params.task_id)
            except ApiFailure as error:
                raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None
        return {}

    async def _find(self, ctx: Context, params: TaskParams) -> Json:
        """Return the call of a task of this token; both have the same id. Raises MCPError."""
        require_client_extension(ctx, EXTENSION_NAME)
        task_in_header = (get_headers(ctx) or {}).get("mcp-name")
        if task_in_header is not None and task_in_header != params.task_id:
            raise MCPError(code=_HEADER_MISMATCH_CODE, message="Mcp-Name is not the task of the body.")
        async with self._connect(get_headers(ctx)) as client:
            try:
                return await calls.look_up_call(client, params.task_id)
            except ApiFailure as error:
                if error.status == httpx2.codes.NOT_FOUND:
                    raise MCPError(code=INVALID_PARAMS, message=f"Unknown task. {error}") from None
                raise MCPError(code=INTERNAL_ERROR, message=str(error)) from None


def get_headers(ctx: Context) -> Mapping[str, str] | None:
    """Return the headers of the request that brought a message; None over stdio."""
    headers: Mapping[str, str] | None = getattr(ctx.request, "headers", None)
    return headers


def get_meta(ctx: Context) -> Mapping[str, Any]:
    """Return the ``_meta`` of a request; empty if the request has none."""
    meta = (ctx.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def has_tasks(ctx: Context) -> bool:
    """Return whether this request declares the extension, in a version of the protocol that has tasks."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None or not capabilities.extensions:
        return False
    return ctx.protocol_version in _VERSIONS and EXTENSION_NAME in capabilities.extensions


def describe_task(call: Json) -> Json:
    """Return a call as a task.

    An open call is *working*. A call that the agent itself withdrew is *cancelled*. Any other end is
    *completed*, also an error or a refusal.
    """
    # a call that became a proposal has these times, and only such a call becomes a task
    created, updated = (datetime.fromisoformat(call[name]) for name in ("created_at", "updated_at"))
    expires = datetime.fromisoformat(call["expires_at"])
    task: Json = {
        "taskId": call["id"],
        "createdAt": created.isoformat(),
        "lastUpdatedAt": updated.isoformat(),
        # the time from its creation for which the task can be looked up
        "ttlMs": _to_ms(max(timedelta(), expires - created) + _KEPT_AFTER_EXPIRY),
        "pollIntervalMs": max(_SHORTEST_POLL_MS, int(1000 * call["pause"])),
    }
    if call["end"] in OPEN_STATES:
        return {**task, "status": "working", "statusMessage": calls.describe_status(call)}
    if call["end"] == "cancelled":
        return {**task, "status": "cancelled", "statusMessage": "Withdrawn by the client."}
    return {**task, "status": "completed", "result": calls.describe_result(call)}


def _to_ms(length: timedelta) -> int:
    return int(length.total_seconds() * 1000)

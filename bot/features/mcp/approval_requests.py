"""Approval requests over Nod's HTTP interface, for the tools of `server.py`.

A request is the JSON object of that interface (``RequestView``). Its key ``end`` is "waiting" until the
request has ended, then says how.
"""

import asyncio
from contextlib import suppress
from typing import Any

import anyio
import httpx2
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from bot.features.mcp.calls import PROGRESS_SECONDS, Json
from bot.web.site import LONGEST_WAIT

_MARGIN_SECONDS = 15  # the time that an answer may take beyond its wait
_WITHDRAWAL_REASON = "The agent stopped waiting"

# the reasons for a coding agent why its tool may not be used, by the end of the request
_DENIAL_TEXTS = {
    "expired": "No one decided in time, so it was not allowed. This is not a refusal by a person.",
    "waiting": "No one decided in time, so it was not allowed. This is not a refusal by a person.",
    "undeliverable": "The question could not be shown to anyone who may decide. No one refused it.",
    "cancelled": "The question was withdrawn before anyone decided. No one refused it.",
    "failed": "It was approved, but Nod could not finish. No one refused it; ask again.",
    "outcome_unknown": "It was approved, but Nod could not finish. No one refused it; ask again.",
}


async def open_request(
    client: httpx2.AsyncClient, path: str, body: Json, context: Context[Any, Any], wait: float
) -> Json:
    """Open a request, and return it once it has ended, or as it is after ``wait`` seconds. Raises ToolError.

    The request is withdrawn if the MCP call ends first: by its cancellation, the end of input or of the
    connection. Each MCP call opens another request, also with the same ``tool_use_id``: agents count their
    uses from 0 in each session, so the same ID is not the same use.
    """
    with anyio.CancelScope(shield=True):  # until its ID is known, the request could not be withdrawn
        request = await _call_api(client, "POST", path, json=body)
    try:
        return await wait_for_end(client, request, context, wait)
    except (asyncio.CancelledError, ToolError):
        with anyio.CancelScope(shield=True):
            await withdraw(client, request)
        raise


async def look_up(client: httpx2.AsyncClient, ident: str) -> Json:
    """Return the request with this id, as it is now. Raises ToolError."""
    if not ident.isalnum():  # it would not fit into a path
        raise ToolError("There is no such request.")
    return await _call_api(client, "GET", f"/api/approvals/{ident}")


async def withdraw(client: httpx2.AsyncClient, request: Json) -> None:
    """Withdraw a request. If this fails, the request expires by itself."""
    path = f"/api/proposals/{request['id']}/cancel"
    body = {"reason": _WITHDRAWAL_REASON}
    with suppress(httpx2.HTTPError):
        await client.post(path, json=body, timeout=_MARGIN_SECONDS)


async def wait_for_end(
    client: httpx2.AsyncClient, request: Json, context: Context[Any, Any], wait: float
) -> Json:
    """Return the request once it has ended, or as it is after ``wait`` seconds. Raises ToolError.

    Progress is reported every `PROGRESS_SECONDS`.
    """
    reports = 0
    seconds_left = wait
    while request["end"] == "waiting" and seconds_left > 0:
        await context.report_progress(reports, message="Waiting for a person to decide")
        reports += 1
        step = min(seconds_left, PROGRESS_SECONDS)
        request = await _call_api(client, "GET", f"/api/approvals/{request['id']}", params={"wait": step})
        seconds_left -= step
    return request


def describe(request: Json) -> Json:
    """Return the facts of a request for the agent, without nulls."""
    names = ("id", "end", "outcome", "decided_by", "edited_by", "arguments", "expires_at")
    facts = {name: request[name] for name in names if request.get(name) is not None}
    if request["decline_reason"]:
        facts["reason"] = request["decline_reason"]
    return facts


def make_permission_answer(request: Json) -> Json:
    """Return the answer to a permission prompt: allow with the approved input, or deny with the reason.

    The reason says if a person refused, or if no one decided.
    """
    if request["end"] == "approved":
        return {"behavior": "allow", "updatedInput": request["arguments"]["input"]}
    if request["end"] == "declined":
        why = f" Reason: {request['decline_reason']}" if request["decline_reason"] else ""
        return {"behavior": "deny", "message": f"{request['decided_by']} said no.{why}"}
    return {"behavior": "deny", "message": _DENIAL_TEXTS.get(request["end"], "It was not allowed.")}


async def _call_api(client: httpx2.AsyncClient, method: str, path: str, **options: Any) -> Json:
    """Return the approval request in Nod's answer. Raises ToolError with the reason, for the agent."""
    try:
        response = await client.request(method, path, timeout=LONGEST_WAIT + _MARGIN_SECONDS, **options)
        content: Json = response.json()
    except (httpx2.HTTPError, ValueError) as error:
        why = f"Nod can't be reached at {client.base_url} ({type(error).__name__})."
        raise ToolError(f"{why} Is `nod run` up, and NOD_URL right?") from None
    if response.status_code == httpx2.codes.UNAUTHORIZED:
        raise ToolError("Nod does not know this token. `nod token new NAME` makes one for NOD_TOKEN.")
    if not content.get("ok") or "proposal" not in content:
        raise ToolError(str(content.get("error", f"Nod answered with HTTP {response.status_code}.")))
    request: Json = content["proposal"]
    return request

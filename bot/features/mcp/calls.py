"""The team's tools over MCP, for an agent's token: the list of tools, and calls of them.

An agent's token belongs to a program that calls tools for one person. Like the tools of `server.py`, this
module uses Nod's own HTTP interface, with the caller's token. A call is the JSON object of that interface
(`AgentCallView` in ``bot/features/agents/routes.py``). Its key ``end`` is the state of the call: the call is
open while this is one of `OPEN_STATES`. Once the call has run, ``text`` and ``files`` are the tool's answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import httpx2

from bot.domain.agents import AGENT_BEGINNING, DEPTH_META
from bot.domain.outcomes import REASON_PARAMETER
from bot.web.site import LONGEST_WAIT

Json = dict[str, Any]

PROGRESS_SECONDS = 20
"""The time between two reports of progress: some clients give up after 60 seconds without one."""
PAGE_TOOLS = 100
"""The most tools on one page of the list."""
OPEN_STATES = ("waiting", "running")
"""The values of ``end`` of a call that has not ended: people decide it, or it runs."""
_MARGIN_SECONDS = 15  # the time that an answer may take beyond its wait
_CALL_SECONDS = 130  # the time that a call may take if it only reads
_REASON_SCHEMA = {"type": "string", "description": "Why you want this, for who decides. One sentence."}
_UNKNOWN_TOKEN_TEXT = "Nod does not know this token. `nod token new NAME` makes one for NOD_TOKEN."  # noqa: S105 - words
KEY_META = "nod/idempotency-key"
"""The key of ``_meta`` under which a client gives an idempotency key: calls with one key are one call."""
_HEADER_KEY = "x-mcp-header"  # the key of a parameter's schema that names an HTTP header for the argument
# the limits of the HTTP interface for a call
_MAX_KEY_CHARS = 200
_MAX_DEPTH = 1000
_MAX_REASON_CHARS = 2000
_CALL_ID = re.compile(r"[0-9a-f]{32}")
_UNQUOTED = " !#$&'()*+,-./:;<=>?@[]^_`{|}~"  # printable ASCII that an idempotency key keeps in a header


class Connect(Protocol):
    """A function that opens a client of Nod's HTTP interface.

    Its argument: the headers of the MCP request, or None over stdio.
    """

    def __call__(
        self, headers: Mapping[str, str] | None, /
    ) -> AbstractAsyncContextManager[httpx2.AsyncClient]: ...


class ApiFailure(Exception):
    """Nod did not answer, or refused. The message is for the agent. ``status``: of HTTP; 0 for no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ToolPage(NamedTuple):
    """A page of tools as MCP lists them, and the cursor of the next page, or None."""

    tools: Sequence[Json]
    next_cursor: str | None


def is_agent(client: httpx2.AsyncClient) -> bool:
    """Return whether a client uses an agent's token. Any other token has only the tools of ``server.py``."""
    scheme, _, token = client.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and token.strip().startswith(AGENT_BEGINNING)


async def list_tools(client: httpx2.AsyncClient) -> list[Json]:
    """Return the tools of a token as MCP lists them, by name. Raises ApiFailure."""
    listed = (await _send(client, "GET", "/api/tools", _MARGIN_SECONDS))["tools"]
    return [_describe_tool(each) for each in listed]


async def list_page(client: httpx2.AsyncClient, cursor: str | None) -> ToolPage:
    """Return the tools after a cursor, which is the last name of the page before. Raises ApiFailure."""
    after_cursor = [tool for tool in await list_tools(client) if cursor is None or tool["name"] > cursor]
    page = after_cursor[:PAGE_TOOLS]
    has_more = len(after_cursor) > len(page)
    return ToolPage(page, page[-1]["name"] if has_more else None)


async def make_call(
    client: httpx2.AsyncClient, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]
) -> Json:
    """Call a tool, and return the call in its current state. Raises ApiFailure with the reason.

    ``arguments`` may have a reason for the people who decide. ``meta``: the ``_meta`` of the MCP request.
    """
    tool_arguments = dict(arguments)
    reason = tool_arguments.pop(REASON_PARAMETER, "")
    headers: dict[str, str] = {}
    key = meta.get(KEY_META)
    if isinstance(key, str):
        headers["Idempotency-Key"] = quote(key, safe=_UNQUOTED)[:_MAX_KEY_CHARS]
    # the number of calls that led to this one: too many end a chain of agents that call each other
    depth = meta.get(DEPTH_META)
    if isinstance(depth, int):
        headers["Nod-Depth"] = str(max(0, min(depth, _MAX_DEPTH)))
    body = {"arguments": tool_arguments, "reason": str(reason)[:_MAX_REASON_CHARS]}
    path = f"/api/tools/{quote(name, safe='')}/calls"
    answer = await _send(client, "POST", path, _CALL_SECONDS, json=body, headers=headers)
    call: Json = answer["call"]
    return call


async def look_up_call(client: httpx2.AsyncClient, call_id: str, wait: float = 0) -> Json:
    """Return a call of this token once it has ended, or as it is after ``wait`` seconds (60 at most).

    Raises ApiFailure with the reason.
    """
    seconds = min(wait, LONGEST_WAIT)
    query = {"params": {"wait": seconds}} if seconds else {}
    answer = await _send(client, "GET", _path_of(call_id), seconds + _MARGIN_SECONDS, **query)
    call: Json = answer["call"]
    return call


async def withdraw_call(client: httpx2.AsyncClient, call_id: str) -> None:
    """Withdraw a call of this token, unless people decided first."""
    await _send(client, "POST", f"{_path_of(call_id)}/cancel", _MARGIN_SECONDS)


def is_call_id(ident: str) -> bool:
    """Return whether an id has the form of a call's id: 32 hexadecimal digits."""
    return _CALL_ID.fullmatch(ident) is not None


def describe_result(call: Json) -> Json:
    """Return a call as the result of an MCP tool: the tool's own answer, or the state of the call in words.

    The text comes as structured content as well, since many clients show their model only this.
    """
    if call["end"] in OPEN_STATES:
        what_to_do = f"Its id is {call['id']}. Call check_approval with this id for the result."
        text = f"{describe_status(call)}. {what_to_do}"
        names = ("id", "end", "waits_for", "expires_at")
        waiting = {**{name: call[name] for name in names}, "text": text}
        return {"content": [_make_text(text)], "structuredContent": waiting, "isError": False}
    content = [_make_text(call["text"]), *list_files(call)]
    result: Json = {"content": content, "isError": call["is_error"]}
    if call["is_error"]:
        names = ("id", "end", "decided_by", "text")
        return {**result, "structuredContent": {name: call[name] for name in names}}
    data = _read_object(call["text"])
    return result if data is None else {**result, "structuredContent": data}


def list_files(call: Json) -> list[Json]:
    """Return the files of a call's answer as blocks of content: pictures, sounds, else resources."""
    return [_describe_file(call["id"], file) for file in call["files"]]


def describe_status(call: Json) -> str:
    """Return the state of an open call in words, such as ``Waiting for a decision by any admin``."""
    remark = " (the same call was made before)" if call["joined"] else ""
    if call["end"] == "running":
        return f"Approved, and running now{remark}"
    return f"Waiting for a decision by {call['waits_for']}{remark}. Nothing has been changed"


def _describe_tool(tool: Json) -> Json:
    """Return a tool of Nod's HTTP interface as MCP lists it. It takes a reason if it does more than read."""
    only_reads = tool["risk"] == "read"
    schema = {"type": "object", **tool["parameters"]}
    properties = {name: _without_header(value) for name, value in schema.get("properties", {}).items()}
    if properties:
        schema["properties"] = properties
    if not only_reads and REASON_PARAMETER not in properties:
        schema["properties"] = {**properties, REASON_PARAMETER: _REASON_SCHEMA}
    hints = {"readOnlyHint": only_reads, "destructiveHint": not only_reads and tool["risk"] != "write"}
    return {
        "name": tool["name"],
        "description": tool["description"],
        "inputSchema": schema,
        "annotations": hints,
    }


def _without_header(schema: Any) -> Any:
    """Return a parameter's schema without the name of an HTTP header: arguments come in the body alone."""
    if not isinstance(schema, dict):
        return schema
    return {name: value for name, value in schema.items() if name != _HEADER_KEY}


def _describe_file(call_id: str, file: Json) -> Json:
    """Return a file as a block of content. The URI only names a resource; no client can open it."""
    media_type = file["media_type"]
    family, _, _ = media_type.partition("/")
    if file["data"] is not None and family in ("image", "audio"):
        return {"type": family, "data": file["data"], "mimeType": media_type}
    uri = f"nod://calls/{call_id or 'read'}/{quote(file['name'])}"
    content = {"text": file["text"]} if file["data"] is None else {"blob": file["data"]}
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, **content}}


def _read_object(text: str) -> Json | None:
    """Return the JSON object in a text; None for any other text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _make_text(text: str) -> Json:
    return {"type": "text", "text": text}


def _path_of(call_id: str) -> str:
    if not is_call_id(call_id):
        raise ApiFailure("There is no such call.", httpx2.codes.NOT_FOUND)
    return f"/api/calls/{call_id}"


async def _send(client: httpx2.AsyncClient, method: str, path: str, seconds: float, **options: Any) -> Json:
    """Send a request to Nod, and return the body of the response. Raises ApiFailure with the reason.

    ``seconds``: how long the response may take. ``options``: the body, the query and headers, as for httpx.
    """
    try:
        response = await client.request(method, path, timeout=seconds, **options)
        content: Json = response.json()
    except (httpx2.HTTPError, ValueError) as error:
        why = f"Nod can't be reached at {client.base_url} ({type(error).__name__})."
        raise ApiFailure(f"{why} Is `nod run` up, and NOD_URL right?") from None
    if response.status_code == httpx2.codes.UNAUTHORIZED:
        raise ApiFailure(_UNKNOWN_TOKEN_TEXT, response.status_code)
    if not content.get("ok"):
        words = str(content.get("error", f"Nod answered with HTTP {response.status_code}."))
        raise ApiFailure(words, response.status_code)
    return content

"""Fitting a server's answers and lists to MCP's form, since the SDK refuses an answer for one odd part.

`fit_message` makes a JSON-RPC message of a body that the SDK can't parse. `fit_answer` fits the result in a
message. The transports call both before the SDK sees the message.

Nothing in the answer to a call is lost: a part of unknown kind becomes a text that names it, and an invalid
value is replaced by a valid one. In a list of tools a malformed tool is replaced by a stand-in, whose
``_meta`` has the reason. Output schemas are moved to ``_meta`` too, because the SDK throws away an answer
that does not fit its schema.
"""

import json
from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.types.methods import parse_server_result
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from bot.domain.text import as_text, shorten
from bot.tools.signature import describe_pydantic_error

UNREADABLE_CODE = -32045  # our own error code: the answer can't be read
NOT_MCP_TEXT = "it answers in a way that MCP does not allow"
MALFORMED_KEY = "nod/malformed"  # key in a tool's `_meta`: why the tool is malformed
OUTPUT_SCHEMA_KEY = "nod/outputSchema"  # key in a tool's `_meta`: its output schema
_MAX_PART_CHARS = 1000  # the text of a part of unknown kind, which replaces the part
# the fields that the newest version of the protocol demands of a list
_MODERN_FIELDS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_RESULT_KEYS = ("content", "structuredContent", "isError", "toolResult")


def fit_message(body: bytes, request_id: int | str | None = None) -> types.JSONRPCMessage | None:
    """Return the answer in a body, also if it is malformed; None if the body has no answer.

    Some servers leave out the protocol's version, write an error as a text, or a result that is no object.
    Such a result becomes an error with its text. ``request_id`` replaces the id that the body names.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, list):  # a batch, as protocols before 2025-06-18 allowed
        answers = [item for item in document if isinstance(item, dict) and "method" not in item]
        document = answers[0] if answers else None
    if not isinstance(document, dict) or "method" in document:
        return None
    if request_id is None:
        request_id = document.get("id")
    if not isinstance(request_id, int | str):
        return None
    error = document.get("error")
    if error:
        return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=_fit_error(error))
    result = document.get("result")
    if isinstance(result, dict):
        return types.JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result)
    if result is None:
        data = types.ErrorData(code=UNREADABLE_CODE, message=NOT_MCP_TEXT)
    else:
        data = types.ErrorData(code=types.INTERNAL_ERROR, message=as_text(result))
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=data)


def _fit_error(error: Any) -> types.ErrorData:
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    words = fields.get("message")
    if not isinstance(words, str) or not words:
        return types.ErrorData(code=types.INTERNAL_ERROR, message=as_text(error))
    if not isinstance(code, int) or isinstance(code, bool):
        code = types.INTERNAL_ERROR
    return types.ErrorData(code=code, message=words, data=fields.get("data"))


def fit_answer(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the result of a request in the form that ``version`` of the protocol asks for.

    Only lists of tools and results of calls are fitted; any other result is returned unchanged.
    """
    tools = result.get("tools")
    if isinstance(tools, list):
        fitted = [_fit_tool(tool, number, version) for number, tool in enumerate(tools, 1)]
        return result | {"tools": fitted}
    # a sampled message has "content" as well, but also "model"
    if any(key in result for key in _RESULT_KEYS) and "model" not in result:
        return _fit_result(result, version)
    return result


def _fit_tool(tool: Any, number: int, version: str) -> Any:
    """Return a listed tool with its output schema in ``_meta``, or a stand-in for a malformed one.

    ``number``: its position in the list, which replaces a missing name.
    """
    name = number
    if isinstance(tool, dict):
        name = tool.get("name", number)
        if isinstance(tool.get("outputSchema"), dict):
            meta = tool.get("_meta")
            own_meta = meta if isinstance(meta, dict) else {}
            tool = dict(tool)
            tool["_meta"] = {**own_meta, OUTPUT_SCHEMA_KEY: tool.pop("outputSchema")}
    try:
        # older versions ignore the fields of the newest one
        parse_server_result("tools/list", version, _MODERN_FIELDS | {"tools": [tool]})
    except ValidationError as error:
        fault = error.errors()[0]
        location = ".".join(map(str, fault["loc"][2:]))  # without "tools" and the index
        reason = f"{location}: {describe_pydantic_error(fault)}".removeprefix(": ")
        return {"name": str(name), "inputSchema": {"type": "object"}, "_meta": {MALFORMED_KEY: reason}}
    return tool


def _fit_result(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the result of a tool's call in MCP's form."""
    if _is_fit(result, version):
        return result
    fitted = dict(result)

    old_content = fitted.pop("toolResult", None)  # the name of the content in protocol 2024-10-07
    content = fitted.get("content", old_content)
    if content is None:
        parts = []
    elif isinstance(content, list):
        parts = content
    else:
        parts = [content]
    fitted["content"] = [_fit_part(part, version) for part in parts]

    fitted["isError"] = str(fitted.get("isError")).lower() in ("true", "1", "yes")

    data = fitted.pop("structuredContent", None)
    if data is not None:
        is_allowed = isinstance(data, dict) or version in MODERN_PROTOCOL_VERSIONS
        fitted["structuredContent"] = data if is_allowed else {"result": data}

    if not isinstance(fitted.get("_meta", {}), dict):
        del fitted["_meta"]
    return fitted


def _is_fit(result: Mapping[str, Any], version: str) -> bool:
    try:
        parse_server_result("tools/call", version, {"resultType": "complete", **result})
    except (ValidationError, KeyError):  # KeyError: the SDK knows no such request in this version
        return False
    return True


def _fit_part(part: Any, version: str) -> Any:
    """Return one part of the content; a part of unknown kind becomes a text."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if _is_fit({"content": [part]}, version):
        return part
    kind: Any = type(part).__name__
    if isinstance(part, dict):
        kind = part.get("type")
        if isinstance(part.get("text"), str):
            return {"type": "text", "text": part["text"]}
    quoted = shorten(json.dumps(part, ensure_ascii=False), _MAX_PART_CHARS)
    return {"type": "text", "text": f"[a part of unknown form ({str(kind)[:40]}): {quoted}]"}

"""A server's answers and lists in MCP's form, before the SDK reads them: it refuses all for one odd part.

What a server said after a call is kept, whatever its form: a part of unknown kind becomes a text that names
it, and what must not stand there becomes what may. A tool out of form is replaced by one that has the reason
in its ``_meta``. Output schemas go there as well, since the SDK throws an answer away that does not fit.
"""

import json
from collections.abc import Mapping
from typing import Any

from mcp import types
from mcp.types.methods import parse_server_result
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from bot.domain.text import as_text, shorten
from bot.tools.signature import fault_in_words

UNREAD = -32045  # our own code: it answered, and no one can read what
NO_MCP = "it answers in a way that MCP does not allow"
MALFORMED = "nod/malformed"
OUTPUT = "nod/outputSchema"
_MAX_PART_CHARS = 1000  # of a part that is no MCP
_PAGE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}  # what the newest version demands
_RESULT_KEYS = ("content", "structuredContent", "isError", "toolResult")


def fit_message(body: bytes, asked: int | str | None = None) -> types.JSONRPCMessage | None:
    """Return the answer that a body means, also a malformed one; None where that can't be known.

    Servers leave out the mark of the protocol, write an error as a text, or a result that is no object: that
    becomes an error with those words. ``asked`` is the id of the request that it answers, whatever the body
    says; without it the body's own counts.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(said, list):  # as protocols of before 2025-06-18 allowed
        said = next((each for each in said if isinstance(each, dict) and "method" not in each), None)
    if not isinstance(said, dict) or "method" in said:
        return None
    ident = said.get("id") if asked is None else asked
    if not isinstance(ident, int | str):
        return None
    error = said.get("error")
    if error:
        return types.JSONRPCError(jsonrpc="2.0", id=ident, error=_fit_error(error))
    result = said.get("result")
    if isinstance(result, dict):
        return types.JSONRPCResponse(jsonrpc="2.0", id=ident, result=result)
    if result is not None:
        told = types.ErrorData(code=types.INTERNAL_ERROR, message=as_text(result))
    else:
        told = None
    unread = types.ErrorData(code=UNREAD, message=NO_MCP)
    return types.JSONRPCError(jsonrpc="2.0", id=ident, error=told or unread)


def _fit_error(error: Any) -> types.ErrorData:
    fields = error if isinstance(error, dict) else {}
    code, words = fields.get("code"), fields.get("message")
    if not isinstance(words, str) or not words:
        return types.ErrorData(code=types.INTERNAL_ERROR, message=as_text(error))
    if not isinstance(code, int) or isinstance(code, bool):
        code = types.INTERNAL_ERROR
    return types.ErrorData(code=code, message=words, data=fields.get("data"))


def fit_answer(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the answer to a request, in the form of that version of the protocol."""
    tools = result.get("tools")
    if isinstance(tools, list):
        fitted = [_fit_tool(tool, at, version) for at, tool in enumerate(tools, 1)]
        return result | {"tools": fitted}
    if any(key in result for key in _RESULT_KEYS) and "model" not in result:
        return _fit_result(result, version)
    return result


def _fit_tool(tool: Any, at: int, version: str) -> Any:
    """Return a tool as a server lists it; where that is not MCP's form, one that adopting leaves out."""
    name = tool.get("name", at) if isinstance(tool, dict) else at
    if isinstance(tool, dict) and isinstance(tool.get("outputSchema"), dict):
        meta = tool.get("_meta")
        kept = meta if isinstance(meta, dict) else {}
        tool = dict(tool)
        tool["_meta"] = {**kept, OUTPUT: tool.pop("outputSchema")}
    try:
        parse_server_result("tools/list", version, _PAGE | {"tools": [tool]})
    except ValidationError as error:
        fault = error.errors()[0]
        why = f"{'.'.join(map(str, fault['loc'][2:]))}: {fault_in_words(fault)}".removeprefix(": ")
        return {"name": str(name), "inputSchema": {"type": "object"}, "_meta": {MALFORMED: why}}
    return tool


def _fit_result(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Fit the result of a tool."""
    if _is_fit(result, version):
        return result
    fitted = dict(result)
    content = fitted.get("content", fitted.pop("toolResult", None))
    if content is None:
        content = []
    parts = content if isinstance(content, list) else [content]
    fitted["content"] = [_fit_part(part, version) for part in parts]
    fitted["isError"] = str(fitted.get("isError") or False).lower() in ("true", "1", "yes")
    data = fitted.pop("structuredContent", None)
    if data is not None:
        plain = isinstance(data, dict) or version in MODERN_PROTOCOL_VERSIONS
        fitted["structuredContent"] = data if plain else {"result": data}
    if not isinstance(fitted.get("_meta", {}), dict):
        del fitted["_meta"]
    return fitted


def _is_fit(result: Mapping[str, Any], version: str) -> bool:
    try:
        parse_server_result("tools/call", version, {"resultType": "complete", **result})
    except (ValidationError, KeyError):
        return False
    return True


def _fit_part(part: Any, version: str) -> Any:
    """Return one part of the content; as text where it is of no kind that MCP knows."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if _is_fit({"content": [part]}, version):
        return part
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    inside = shorten(json.dumps(part, ensure_ascii=False), _MAX_PART_CHARS)
    return {"type": "text", "text": f"[a part of unknown form ({str(kind)[:40]}): {inside}]"}

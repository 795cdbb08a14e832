"""The HTTP transport to an MCP server: it turns refused requests into errors that say if anything was done.

The SDK itself gives each refusal over HTTP one of two meanings, and drops the text. Here each refusal becomes
a JSON-RPC error with the reason and one of the codes below. ``server.py`` knows by the code if a call may be
sent again.

Two faults end the *line*, which is the connection to the server (``line.py``). Either the address can't be
reached, or the server no longer knows the *session*, the id that it gave out with its first response. By the
protocol a server says the latter with 404. The SDKs of Python, TypeScript and Rust, and gateways, say it in
words of many kinds.
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2
from mcp import types

from bot.domain.text import shorten
from bot.tools.mcp.answers import NOT_MCP_TEXT, UNREADABLE_CODE, fit_message
from bot.tools.response_bounds import TooLarge

# error codes of our own
SIGN_IN_REFUSED_CODE = -32041  # the server refused the credentials, so nothing was done; `Bearer` sends it
SESSION_REFUSED_CODE = -32042  # the server refused the session, so nothing was done
NOT_TAKEN_CODE = -32043  # nothing was sent, or the server refused to take the request
NO_ANSWER_CODE = -32044  # the server gave no answer, so the call may have been carried out

UNREACHABLE_TEXT = "it can't be reached"
SESSION_LOST_TEXT = "it forgot its session"
_CUT_OFF_TEXT = "the connection to it was cut off"
_SESSION_HEADER = "mcp-session-id"
_MAX_ERROR_BYTES = 64 << 10
_MAX_WORDS_CHARS = 300
_NOT_SENT_ERRORS = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
# by the HTTP standard a request with these statuses was not processed
_NOT_TAKEN_STATUSES = frozenset({405, 406, 413, 414, 415, 429, 431})
_AWAY_STATUSES = frozenset({502, 503, 504})  # a gateway does not reach the server
_GONE_STATUSES = frozenset({404, 410})  # the address, or the session in the request, does not exist
_SIGN_IN_STATUSES = frozenset({401, 403})
# JSON-RPC codes with which SDKs refuse a session; -32000 is the TypeScript SDK's
_SESSION_CODES = frozenset({types.INVALID_REQUEST, types.REQUEST_TIMEOUT, -32000})
# words about any session: "Session not found", "invalid session", "Server not initialized"
_SESSION_PATTERN = re.compile(
    r"session.{0,80}?(not found|unknown|invalid|expired|terminat|not exist|required|missing|not recogni"
    r"|stale|closed|not valid|gone|ended|inactive|no longer)"
    r"|(unknown|invalid|expired|missing|stale|no|no valid|no such|unrecogni[sz]ed|bad) (mcp[- ]?)?session"
    r"|mcp-session-id"
    r"|server (is )?(not|never) (yet )?initiali|initiali[sz]e request|re-?initiali|before initiali",
    re.IGNORECASE | re.DOTALL,
)
_MCP_SESSION_PATTERN = re.compile(
    r"mcp[- ]?session|server (is )?(not|never) (yet )?initiali[sz]|client should re-?initiali[sz]",
    re.IGNORECASE,
)
"""Words for MCP's own session. Others, such as "initialise it first", may be about a session of a tool."""
_LOST_STREAM_PATTERN = re.compile(r"SSE stream (?:ended|failed(?:: (?P<why>it .+))?)", re.DOTALL)
"""The SDK's own error if the stream with an answer ends; ``why`` is set if one of our bounds ended it."""
_UNPARSED_PREFIX = "Failed to parse "  # begins the SDK's own error for an event that is no message
_TAG_PATTERN = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.IGNORECASE | re.DOTALL)

OnLost = Callable[[str], None]
"""Called with the reason when the line is lost."""


class _RpcError(NamedTuple):
    """A JSON-RPC error in a body."""

    request_id: Any  # the id of the request that it answers; None if it names none
    fields: dict[str, Any]  # the error's code, message and data


class AddressTransport(httpx2.AsyncBaseTransport):
    """A transport of httpx that sends by an inner client, which uses the proxies of the environment."""

    def __init__(self, client: httpx2.AsyncClient, on_lost: OnLost) -> None:
        self.has_session = False
        """True once the server has given a session, which it may forget."""
        self._client = client
        self._on_lost = on_lost

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the response. Its faults become JSON-RPC errors."""
        self.has_session = self.has_session or _SESSION_HEADER in request.headers
        rpc_request = _parse_request(request)
        try:
            response = await self._client.send(request, stream=True)
            if response.status_code < httpx2.codes.BAD_REQUEST:
                if rpc_request is None:
                    return response
                return await _fit_response(request, rpc_request, response)
            return await self._explain_refusal(request, rpc_request, response)
        except _NOT_SENT_ERRORS as error:
            self._on_lost(UNREACHABLE_TEXT)
            if rpc_request is None:
                raise
            proxy = " through the proxy" if isinstance(error, httpx2.ProxyError) else ""
            return _make_error(request, rpc_request, NOT_TAKEN_CODE, UNREACHABLE_TEXT + proxy)
        except httpx2.TransportError:
            if rpc_request is None:
                raise
            self._on_lost(_CUT_OFF_TEXT)
            return _make_error(request, rpc_request, NO_ANSWER_CODE, _CUT_OFF_TEXT)

    async def _explain_refusal(
        self, request: httpx2.Request, rpc_request: dict[str, Any] | None, response: httpx2.Response
    ) -> httpx2.Response:
        """Return the response to a refused request as a JSON-RPC error.

        ``rpc_request``: the JSON-RPC request that was refused; None if the HTTP request expects no answer.

        Two kinds of responses stay as they are. One answers an HTTP request that expects no answer. The other
        asks for a sign-in; `Bearer` (``signin.py``) turns it into an error.
        """
        status = response.status_code
        body = await _read_beginning(response)
        error = _find_error(body)
        words = _find_words(body)

        if rpc_request is not None and _SESSION_HEADER in request.headers:
            names_request = error is not None and error.request_id == rpc_request["id"]
            if _refuses_session(status, error, words, names_request=names_request):
                self._on_lost(SESSION_LOST_TEXT)
                return _make_error(request, rpc_request, SESSION_REFUSED_CODE, SESSION_LOST_TEXT)
            if _may_refuse_session(status, error, words, names_request=names_request):
                self._on_lost(SESSION_LOST_TEXT)  # the call may have begun, so a write is not repeated

        if rpc_request is None or status in _SIGN_IN_STATUSES:
            return _copy_response(request, response, body)
        if error is not None:
            return _make_response(request, rpc_request, error.fields)

        status_text = f"it answered HTTP {status}: {words}" if words else f"it answered HTTP {status}"
        if status in _AWAY_STATUSES or status in _GONE_STATUSES:
            self._on_lost(status_text)
        if status in _NOT_TAKEN_STATUSES or status in _GONE_STATUSES:
            return _make_error(request, rpc_request, NOT_TAKEN_CODE, status_text)
        return _make_error(request, rpc_request, NO_ANSWER_CODE, status_text)

    async def aclose(self) -> None:
        await self._client.aclose()


def may_be_about_mcp_session(error: types.ErrorData) -> bool:
    """Return whether an error in a response with the status 200 may mean that the session is lost.

    The words of such an error may be the tool's own: many tools have sessions (of a browser, a login).
    """
    if error.code != types.INVALID_REQUEST:
        return False
    return _SESSION_PATTERN.search(error.message[:_MAX_WORDS_CHARS]) is not None


def is_about_mcp_session(error: types.ErrorData) -> bool:
    """Return whether an error in a response with the status 200 certainly refuses MCP's session.

    Then the call was refused, too.
    """
    if not may_be_about_mcp_session(error):
        return False
    return _MCP_SESSION_PATTERN.search(error.message[:_MAX_WORDS_CHARS]) is not None


def explain_stream(error: types.ErrorData) -> types.ErrorData | None:
    """Return the error for an answer that never came on its stream; None for errors of the server itself.

    The code is `UNREADABLE_CODE` (the answer can't be read) if an event on the stream was no message.
    """
    if error.code == types.PARSE_ERROR and error.message.startswith(_UNPARSED_PREFIX):
        return types.ErrorData(code=UNREADABLE_CODE, message=NOT_MCP_TEXT)
    if error.code != types.CONNECTION_CLOSED:
        return None
    match = _LOST_STREAM_PATTERN.match(error.message)
    if match is None:
        return None
    return types.ErrorData(code=NO_ANSWER_CODE, message=match["why"] or _CUT_OFF_TEXT)


def _refuses_session(status: int, error: _RpcError | None, text: str, *, names_request: bool) -> bool:
    """Return whether the server certainly refused the session, and so did not begin the call.

    ``error`` and ``text``: the JSON-RPC error in the body, and the body's message. ``names_request``: the
    error has the request's id, so the server has read the call. Then a refusal of the session is certain only
    with the protocol's status 404, or if the message is about MCP's own session.
    """
    if status >= httpx2.codes.INTERNAL_SERVER_ERROR:
        return False
    is_about_session = _SESSION_PATTERN.search(text) is not None
    if not names_request or error is None:
        return is_about_session or status in _GONE_STATUSES
    if not is_about_session or error.fields["code"] not in _SESSION_CODES:
        return False
    return status == httpx2.codes.NOT_FOUND or _MCP_SESSION_PATTERN.search(text) is not None


def _may_refuse_session(status: int, error: _RpcError | None, text: str, *, names_request: bool) -> bool:
    """Return whether the server may have lost the session, so that the next call needs a new one.

    That is so if the message is about a session, and the error may be another one than the tool's own. The
    arguments are those of `_refuses_session`.
    """
    if not _SESSION_PATTERN.search(text):
        return False
    if status >= httpx2.codes.INTERNAL_SERVER_ERROR or not names_request or error is None:
        return True
    return error.fields["code"] in _SESSION_CODES


def _parse_request(request: httpx2.Request) -> dict[str, Any] | None:
    """Return the JSON-RPC request that is posted; None if it expects no answer."""
    if request.method != "POST":
        return None
    try:
        rpc_request = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    if isinstance(rpc_request, dict) and "id" in rpc_request and "method" in rpc_request:
        return rpc_request
    return None


async def _fit_response(
    request: httpx2.Request, rpc_request: dict[str, Any], response: httpx2.Response
) -> httpx2.Response:
    """Return a response as a JSON-RPC answer to the request, with the right content type, id and form.

    A stream of events and a redirect are returned unchanged.
    """
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream" or response.has_redirect_location:
        return response
    try:
        body = await response.aread()
    except TooLarge as error:
        return _make_error(request, rpc_request, UNREADABLE_CODE, str(error))
    finally:
        await response.aclose()
    message = _read_message(body)
    if kind == "application/json" and getattr(message, "id", None) == rpc_request["id"]:
        return _copy_response(request, response, body)
    message = fit_message(body, rpc_request["id"])
    if message is None:
        words = _find_words(body)
        error_text = f"it answered HTTP {response.status_code}: {words}" if words else NOT_MCP_TEXT
        return _make_error(request, rpc_request, UNREADABLE_CODE, error_text)
    fitted = message.model_dump_json(by_alias=True, exclude_none=True).encode()
    response.headers["Content-Type"] = "application/json"
    response.status_code = httpx2.codes.OK
    return _copy_response(request, response, fitted)


def _read_message(body: bytes) -> types.JSONRPCMessage | None:
    """Return the JSON-RPC message in a body; None for anything else."""
    try:
        return types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None


async def _read_beginning(response: httpx2.Response) -> bytes:
    """Return the first `_MAX_ERROR_BYTES` of a refusal, or less if the connection breaks."""
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) >= _MAX_ERROR_BYTES:
                break
    except (httpx2.HTTPError, httpx2.StreamError):
        pass
    finally:
        await response.aclose()
    return bytes(body[:_MAX_ERROR_BYTES])


def _find_error(body: bytes) -> _RpcError | None:
    """Return the JSON-RPC error in a body; None for a body without one."""
    try:
        document = json.loads(body)
        error = types.ErrorData.model_validate(document["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(document.get("jsonrpc", "2.0"), str):
        return None
    return _RpcError(document.get("id"), error.model_dump(mode="json", exclude_none=True))


def _find_words(body: bytes) -> str:
    """Return the message of a JSON document, or the text of a page, on one line."""
    text = body.decode(errors="replace")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = _TAG_PATTERN.sub(" ", text)
    for key in ("error", "message", "detail", "error_description"):  # a message may be inside an error
        if isinstance(content, dict) and content.get(key):
            content = content[key]
    if isinstance(content, dict | list):
        content = json.dumps(content, ensure_ascii=False)
    printable = "".join(char if char.isprintable() else " " for char in str(content))
    line = " ".join(printable.split())
    return shorten(line, _MAX_WORDS_CHARS)


def _copy_response(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    left_out = {"content-length", "content-encoding", "transfer-encoding"}
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in left_out]
    stream = httpx2.ByteStream(body)
    return httpx2.Response(response.status_code, headers=headers, stream=stream, request=request)


def _make_error(
    request: httpx2.Request, rpc_request: dict[str, Any], code: int, text: str
) -> httpx2.Response:
    return _make_response(request, rpc_request, {"code": code, "message": text})


def _make_response(
    request: httpx2.Request, rpc_request: dict[str, Any], error: dict[str, Any]
) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": rpc_request["id"], "error": error}
    return httpx2.Response(200, json=message, request=request)

"""Requests to an MCP server at an address: what its HTTP answers mean for a call, before the SDK reads them.

The SDK gives each refusal over HTTP one of two meanings and drops the words. Here each becomes a JSON-RPC
error that says whether anything was done (the codes below) and why. What makes the line useless is told to
``lose``: an address that can't be reached, and a session that the server does not know any longer, which it
says with 404 (the protocol) or in words of many kinds (the SDKs of Python, TypeScript, Rust, and gateways).
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
"""

import json
import re
from collections.abc import Callable
from typing import Any

import httpx2
from mcp import types

from bot.domain.text import shorten
from bot.tools.intake import TooLarge
from bot.tools.mcp.answers import NO_MCP, UNREAD, fit_message

REFUSED = -32041  # our own code: the server let the request in at all, so nothing was done
FORGOTTEN = -32042  # our own: it refused the session, so nothing was done
UNREACHED = -32043  # our own: nothing was sent, or the server refused to take it
BROKEN = -32044  # our own: there is no answer of the server's, so the call may have been carried out

UNREACHABLE = "it can't be reached"
SESSION_LOST = "it forgot its session"
_CUT_OFF = "the connection to it was cut off"
_SESSION_ID = "mcp-session-id"
_MAX_ERROR_BYTES = 64 << 10
_MAX_WORDS_CHARS = 300
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_NOT_TAKEN = frozenset({405, 406, 413, 414, 415, 429, 431})  # HTTP says that it did not begin
_AWAY = frozenset({502, 503, 504})
_LOST = frozenset({404, 410})
_SIGN_IN = frozenset({401, 403})
_SESSION_CODES = frozenset({types.INVALID_REQUEST, types.REQUEST_TIMEOUT, -32000})
_SESSION = re.compile(
    r"session.{0,80}?(not found|unknown|invalid|expired|terminat|not exist|required|missing|not recogni"
    r"|stale|closed|not valid|gone|ended|inactive|no longer)"
    r"|(unknown|invalid|expired|missing|stale|no|no valid|no such|unrecogni[sz]ed|bad) (mcp[- ]?)?session"
    r"|mcp-session-id"
    r"|server (is )?(not|never) (yet )?initiali|initiali[sz]e request|re-?initiali|before initiali",
    re.IGNORECASE | re.DOTALL,
)
_MCP_SESSION = re.compile(
    r"mcp[- ]?session|server (is )?(not|never) (yet )?initiali[sz]|client should re-?initiali[sz]",
    re.IGNORECASE,
)
"""The words of servers for MCP's own session; a tool's "initialise it first" is about one of the tool's."""
_LOST_STREAM = re.compile(r"SSE stream (?:ended|failed(?:: (?P<why>it .+))?)", re.DOTALL)
"""What the SDK says in a server's place where the stream with an answer ends; ``why`` is of our bounds."""
_UNPARSED = "Failed to parse "  # the SDK's word for an event that is no message
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.IGNORECASE | re.DOTALL)

Lose = Callable[[str], None]


class AddressTransport(httpx2.AsyncBaseTransport):
    """A transport (httpx's own port for it) in front of a client that has the proxies of the environment."""

    def __init__(self, client: httpx2.AsyncClient, lose: Lose) -> None:
        self.has_session = False
        """The server gave a session, so it may forget it."""
        self._client = client
        self._lose = lose

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.has_session = self.has_session or _SESSION_ID in request.headers
        asked = _question(request)
        try:
            response = await self._client.send(request, stream=True)
            if response.status_code < httpx2.codes.BAD_REQUEST:
                if asked is None:
                    return response
                return await _fit_response(request, asked, response)
            return await self._judge(request, asked, response)
        except _NOT_SENT as error:
            self._lose(UNREACHABLE)
            if asked is None:
                raise
            proxy = " through the proxy" if isinstance(error, httpx2.ProxyError) else ""
            return _error(request, asked, UNREACHED, UNREACHABLE + proxy)
        except httpx2.TransportError:
            if asked is None:
                raise
            self._lose(_CUT_OFF)
            return _error(request, asked, BROKEN, _CUT_OFF)

    async def _judge(
        self, request: httpx2.Request, asked: dict[str, Any] | None, response: httpx2.Response
    ) -> httpx2.Response:
        """Return the response to a refused request as a JSON-RPC error."""
        status = response.status_code
        body = await _read(response)
        error, words = _error_in(body), _words_of(body)
        if asked is not None and _SESSION_ID in request.headers:
            answers = error is not None and error["answers"] == asked["id"]
            if _refuses_session(status, error, words, answers=answers):
                self._lose(SESSION_LOST)
                return _error(request, asked, FORGOTTEN, SESSION_LOST)
            if _may_refuse_session(status, error, words, answers=answers):
                self._lose(SESSION_LOST)  # perhaps after it began, so a write is not made again
        if asked is None or status in _SIGN_IN:
            return _read_response(request, response, body)
        if error is not None:
            return _answer(request, asked, error["error"])
        said = f"it answered HTTP {status}" + (f": {words}" if words else "")
        if status in _AWAY or status in _LOST:
            self._lose(said)
        if status in _NOT_TAKEN or status in _LOST:
            return _error(request, asked, UNREACHED, said)
        return _error(request, asked, BROKEN, said)

    async def aclose(self) -> None:
        await self._client.aclose()


def doubts_session(error: types.ErrorData) -> bool:
    """Return whether an error with the status 200 may mean that the session is lost.

    Its words may be the tool's own: many tools have sessions (of a browser, a debugger, a login).
    """
    return error.code == types.INVALID_REQUEST and bool(_SESSION.search(error.message[:_MAX_WORDS_CHARS]))


def refuses_session(error: types.ErrorData) -> bool:
    """Return whether an error with the status 200 refuses MCP's session for certain, and the call with it."""
    return doubts_session(error) and bool(_MCP_SESSION.search(error.message[:_MAX_WORDS_CHARS]))


def explain_stream(error: types.ErrorData) -> types.ErrorData | None:
    """Return the error for an answer that its stream did not bring; None for the server's own errors."""
    if error.code == types.PARSE_ERROR and error.message.startswith(_UNPARSED):
        return types.ErrorData(code=UNREAD, message=NO_MCP)
    if error.code == types.CONNECTION_CLOSED:
        lost = _LOST_STREAM.match(error.message)
    else:
        lost = None
    if lost:
        return types.ErrorData(code=BROKEN, message=lost["why"] or _CUT_OFF)
    return None


def _refuses_session(status: int, error: dict[str, Any] | None, words: str, *, answers: bool) -> bool:
    """Return whether it is certain that the server refused the session itself, and began nothing.

    A server that answers the request by its id has read the call. Then only the protocol's own refusal is
    certain: 404 with words about a session, or words for MCP's own session.
    """
    if status >= httpx2.codes.INTERNAL_SERVER_ERROR:
        return False
    about_session = bool(_SESSION.search(words))
    if not answers or error is None:
        return about_session or status in _LOST
    if error["error"]["code"] not in _SESSION_CODES or not about_session:
        return False
    return status == httpx2.codes.NOT_FOUND or bool(_MCP_SESSION.search(words))


def _may_refuse_session(status: int, error: dict[str, Any] | None, words: str, *, answers: bool) -> bool:
    """Tell if the server may have lost the session, so that the next call needs a new one."""
    if not _SESSION.search(words):
        return False
    is_tools = answers and error is not None and error["error"]["code"] not in _SESSION_CODES
    return status >= httpx2.codes.INTERNAL_SERVER_ERROR or not is_tools


def _question(request: httpx2.Request) -> dict[str, Any] | None:
    """Return the request of JSON-RPC that is posted; None where no answer is due."""
    if request.method != "POST":
        return None
    try:
        asked = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    if isinstance(asked, dict) and "id" in asked and "method" in asked:
        return asked
    return None


async def _fit_response(
    request: httpx2.Request, asked: dict[str, Any], response: httpx2.Response
) -> httpx2.Response:
    """Return the response in JSON-RPC's form, whatever its label, its id and its own form."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream" or response.has_redirect_location:
        return response
    try:
        body = await response.aread()
    except TooLarge as error:
        return _error(request, asked, UNREAD, str(error))
    finally:
        await response.aclose()
    message = _read_message(body)
    if kind == "application/json" and getattr(message, "id", None) == asked["id"]:
        return _read_response(request, response, body)
    message = fit_message(body, asked["id"])
    if message is None:
        words = _words_of(body)
        said = f"it answered HTTP {response.status_code}: {words}" if words else NO_MCP
        return _error(request, asked, UNREAD, said)
    fitted = message.model_dump_json(by_alias=True, exclude_none=True).encode()
    response.headers["Content-Type"] = "application/json"
    response.status_code = httpx2.codes.OK
    return _read_response(request, response, fitted)


def _read_message(body: bytes) -> types.JSONRPCMessage | None:
    """The message of JSON-RPC that a body is; None for anything else."""
    try:
        return types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None


async def _read(response: httpx2.Response) -> bytes:
    """Return the beginning of a refusal; what it says is worth no longer wait than the request had."""
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


def _error_in(body: bytes) -> dict[str, Any] | None:
    """Return the JSON-RPC error of a body, and the id that it answers; None for anything else."""
    try:
        said = json.loads(body)
        error = types.ErrorData.model_validate(said["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(said.get("jsonrpc", "2.0"), str):
        return None
    return {"answers": said.get("id"), "error": error.model_dump(mode="json", exclude_none=True)}


def _words_of(body: bytes) -> str:
    """Return a body's message on one line: of JSON its message, of a page its text."""
    text = body.decode(errors="replace")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = _TAG.sub(" ", text)
    for key in ("error", "message", "detail", "error_description"):
        if isinstance(said, dict) and said.get(key):
            said = said[key]
    if isinstance(said, dict | list):
        said = json.dumps(said, ensure_ascii=False)
    line = " ".join("".join(c if c.isprintable() else " " for c in str(said)).split())
    return shorten(line, _MAX_WORDS_CHARS)


def _read_response(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    left_out = {"content-length", "content-encoding", "transfer-encoding"}
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in left_out]
    stream = httpx2.ByteStream(body)
    return httpx2.Response(response.status_code, headers=headers, stream=stream, request=request)


def _error(request: httpx2.Request, asked: dict[str, Any], code: int, words: str) -> httpx2.Response:
    return _answer(request, asked, {"code": code, "message": words})


def _answer(request: httpx2.Request, asked: dict[str, Any], error: dict[str, Any]) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": asked["id"], "error": error}
    return httpx2.Response(200, json=message, request=request)

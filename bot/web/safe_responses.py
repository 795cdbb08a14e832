"""ASGI middleware by which every response is safe: its headers, and a plain message for unforeseen errors."""

import secrets

import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.telemetry.logs import logger
from bot.telemetry.outages import FileFault, is_outage
from bot.web.answers import NOTHING_HERE, make_problem_response

log = logger(__name__)

_OUTAGE_TEXT = "The database isn't answering in time. Try again in a moment."
_BROKEN_TEXT = "Something went wrong. The log has the details. Your data is safe. Try again."

_SAFETY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PRIVATE_HEADERS = ((b"cache-control", b"no-store"), (b"vary", b"Authorization, Cookie"))
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DOCS_POLICY = _PAGE_POLICY.replace(b"style-src 'self'", b"style-src 'self' 'unsafe-inline'")


class SafeResponses:
    """Middleware that gives each request an id, each response its headers, and unforeseen errors an answer.

    The id is in the response's header ``X-Request-Id`` and in the log's lines about the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        content_policy = _DOCS_POLICY if scope["path"] == "/docs" else _PAGE_POLICY
        request_id = secrets.token_hex(6)
        has_started = False  # the response

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                _add_headers(message, content_policy, request_id)
            await send(message)

        if "\0" in scope["path"]:  # PostgreSQL can't store this character, so no id in a path has it
            await make_problem_response(404, NOTHING_HERE)(scope, receive, send_with_headers)
            return
        structlog.contextvars.bind_contextvars(request=request_id)  # a request is a task of its own
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:  # the details are for the log alone, not for the caller
            log.error("request failed", path=scope["path"], exc_info=error)
            if not has_started:
                await _make_error_response(error)(scope, receive, send_with_headers)


def _add_headers(message: Message, content_policy: bytes, request_id: str) -> None:
    """Add the usual headers to the message that starts a response, without replacing those that it has."""
    headers = list(message.get("headers", []))
    present_names = {name.lower() for name, _ in headers}
    if b"cache-control" not in present_names:
        headers += _PRIVATE_HEADERS
    usual_headers = (*_SAFETY_HEADERS, (b"content-security-policy", content_policy))
    headers += [(name, value) for name, value in usual_headers if name not in present_names]
    message["headers"] = [*headers, (b"x-request-id", request_id.encode())]


def _make_error_response(error: Exception) -> Response:
    if not is_outage(error):
        return make_problem_response(500, _BROKEN_TEXT)
    text = error.advice if isinstance(error, FileFault) else _OUTAGE_TEXT
    return make_problem_response(503, text)

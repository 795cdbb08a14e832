"""ASGI middleware: bounded bodies, safe headers on every answer, a plain word where something broke."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.channels.http.errors import problem
from bot.telemetry import logger

log = logger(__name__)

MAX_BODY = 256 * 1024  # bytes
_READ_ON = 16 * MAX_BODY  # of a body that is too large, so that its sender gets to read the answer
_BROKEN = "Something went wrong here; it is in the log. Your data is safe; try again."

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DOCS_POLICY = _PAGE_POLICY.replace(b"script-src 'self'", b"script-src 'self' 'unsafe-inline'").replace(
    b"style-src 'self'", b"style-src 'self' 'unsafe-inline'"
)


class Limits:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy = _DOCS_POLICY if scope["path"] == "/docs" else _PAGE_POLICY
        started = False
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size <= MAX_BODY:
                return message
            while message.get("more_body") and size < _READ_ON:
                message = await receive()
                size += len(message.get("body", b""))
            raise HTTPException(413, f"The body is larger than {MAX_BODY // 1024} KiB; send less at once.")

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [
                    *message.get("headers", []),
                    *_HEADERS,
                    (b"content-security-policy", policy),
                ]
            await send(message)

        try:
            await self._app(scope, limited, guarded)
        except Exception as error:  # nobody foresaw it; the log has it, the caller must not
            log.error("a request broke", path=scope["path"], exc_info=error)
            if not started:
                await problem(500, _BROKEN)(scope, receive, guarded)

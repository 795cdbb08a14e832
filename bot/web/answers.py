"""Responses without a schema: errors, files as downloads, and a page of a few words.

A route raises `HttpError`, or one of its kinds, to answer with an error: ``{"ok": false, "error": "…"}`` and
the status that fits. `HANDLERS` makes the same of FastAPI's own errors; a browser that asks for an unknown
page gets a page. Unforeseen errors are answered by ``safe_responses.py``. A file of a tool is a download, and
never shown as a page.
"""

import asyncio
import html
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Match

from bot.domain.attachments import PICTURES, UNKNOWN
from bot.domain.files import File, prepare_for_people, safe_name
from bot.domain.text import escape_point, make_visible
from bot.errors import BadArguments, NodError
from bot.tools.signature import describe_pydantic_error

NOTHING_HERE = "There is nothing at this address."
NO_PAGE = "There is no such page."
T = TypeVar("T")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class HttpError(NodError):
    """An error to answer with: its status, and its body, whose fields are ``error`` and ``more``."""

    def __init__(
        self, status: int, error: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers = headers
        self.more = more


class NotFound(HttpError):
    """There is no such thing, or none for this caller."""

    def __init__(self, error: str) -> None:
        super().__init__(404, error)


def require_or_404(value: T | None, error: str) -> T:
    """Return the value; raise NotFound for None."""
    if value is None:
        raise NotFound(error)
    return value


class TooManyRequests(HttpError):
    """Too much came from this caller, who may send the request again in a minute (status 429)."""

    def __init__(self, error: str) -> None:
        super().__init__(429, error, {"Retry-After": "60"})


def make_problem_response(
    status: int, error: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Return the response to an error, as in `HttpError`."""
    return JSONResponse({"ok": False, "error": error, **jsonable_encoder(more)}, status, headers)


async def answer_fault(_: Request, error: Any) -> JSONResponse:
    """Return the response to an `HttpError`."""
    return make_problem_response(error.status, error.message, error.headers, **error.more)


async def _answer_invalid_request(_: Request, error: RequestValidationError) -> JSONResponse:
    faults = error.errors()
    if any(fault["type"] == "json_invalid" for fault in faults):
        return make_problem_response(400, "The body is not valid JSON.")
    if any(fault["loc"][0] == "path" for fault in faults):
        return make_problem_response(404, NOTHING_HERE)
    fields = {_name_field(fault["loc"]): describe_pydantic_error(fault) for fault in faults}
    return make_problem_response(422, BadArguments(fields).message, fields=fields)


def _name_field(location: Sequence[int | str]) -> str:
    """Return ``rows.0.id`` for ``("body", "rows", 0, "id")``; for all of the body ``body``."""
    first, *path = map(str, location)  # the first is "body", "query" and the like
    return ".".join(path) or first


async def _answer_http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404 and _is_page_request(request):  # noqa: PLR2004
        return make_plain_page(NO_PAGE, 404, request.app.state.site.base_path)
    words = {404: NOTHING_HERE, 405: "This address does not accept that method."}
    headers = dict(error.headers or {})
    if "Allow" in headers:  # it names the methods of one route; other routes at the address take others
        headers["Allow"] = ", ".join(method for method in _METHODS if _is_routed(request, method))
    return make_problem_response(error.status_code, words.get(error.status_code, str(error.detail)), headers)


def _is_page_request(request: Request) -> bool:
    """Tell if a browser opens the address for a person; programs ask below ``/api``."""
    if request.method not in {"GET", "HEAD"} or request.url.path.startswith(("/api/", "/static/")):
        return False
    return "text/html" in request.headers.get("accept", "")


def _is_routed(request: Request, method: str) -> bool:
    """Tell if a route takes requests of this method at the address."""
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    HttpError: answer_fault,
    RequestValidationError: _answer_invalid_request,
    HTTPException: _answer_http_error,
}


async def make_download(file: File | None) -> Response:
    """Return the file as a download; a text without secrets, and with invisible characters spelled out.

    Raises NotFound for None.
    """
    file = require_or_404(file, "There is no such file. It may have expired (NOD_RETENTION).")
    headers = {
        "Content-Disposition": f'attachment; filename="{safe_name(file.name)}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if file.data is not None:
        # any other type could be one that a browser runs
        media_type = file.kind if file.kind in PICTURES else UNKNOWN
        return Response(file.data, headers=headers, media_type=media_type)
    text = await asyncio.to_thread(prepare_for_people, file.text)
    visible_text = make_visible(text.replace("\r\n", "\n"), escape_point)
    return PlainTextResponse(visible_text, headers=headers)


def make_plain_page(text: str, status: int, base: str) -> HTMLResponse:
    """Return a page with a paragraph for each line; ``base`` is the path at which people reach Nod."""
    paragraphs = "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines())
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Nod</title>'
        f'<link rel="stylesheet" href="{html.escape(base)}/static/console.css">'
        f'<main class="plain-page"><h1>Nod</h1>{paragraphs}'
        f'<p><a href="{html.escape(base)}/">Go to Nod</a></p></main></html>'
    )
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})

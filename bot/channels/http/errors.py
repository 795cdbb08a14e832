"""Every error as ``{ok: false, error}`` with the status that fits. The unforeseen is in ``limits.py``."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from bot.channels.http.auth import Forbidden, Unauthenticated
from bot.channels.http.streams import TooMany
from bot.errors import NodError
from bot.tools.signature import fault_in_words

NOTHING_HERE = "There is nothing at this address."


class Missing(NodError):
    """There is no such thing, or none for this caller."""


def problem(status: int, error: str, **more: Any) -> JSONResponse:
    return JSONResponse({"ok": False, "error": error, **more}, status)


def later(error: str) -> JSONResponse:
    """Too much came from this caller; it may come again in a minute."""
    answer = problem(429, error)
    answer.headers["Retry-After"] = "60"
    return answer


async def refused(_: Request, error: Exception) -> JSONResponse:
    """To who brings no token that counts; ``error`` says which does."""
    answer = problem(401, str(error))
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def install(app: FastAPI) -> None:
    """Register one handler for each kind of fault."""
    app.exception_handler(Unauthenticated)(refused)

    @app.exception_handler(Forbidden)
    async def _(_: Request, error: Forbidden) -> JSONResponse:
        return problem(403, error.message)

    @app.exception_handler(TooMany)
    async def _(_: Request, error: TooMany) -> JSONResponse:
        return later(error.message)

    @app.exception_handler(Missing)
    async def _(_: Request, error: Missing) -> JSONResponse:
        return problem(404, error.message)

    @app.exception_handler(RequestValidationError)
    async def _(_: Request, error: RequestValidationError) -> JSONResponse:
        faults = error.errors()
        if any(fault["type"] == "json_invalid" for fault in faults):
            return problem(400, "The body is not valid JSON.")
        if any(fault["loc"][0] == "path" for fault in faults):
            return problem(404, NOTHING_HERE)
        fields = {".".join(map(str, f["loc"][1:])) or str(f["loc"][0]): fault_in_words(f) for f in faults}
        return problem(422, "; ".join(f"{k}: {v}" for k, v in fields.items()), fields=fields)

    @app.exception_handler(HTTPException)
    async def _(_: Request, error: HTTPException) -> JSONResponse:
        words = {404: NOTHING_HERE, 405: "This address does not accept that method."}
        answer = problem(error.status_code, words.get(error.status_code, str(error.detail)))
        answer.headers.update(error.headers or {})
        return answer

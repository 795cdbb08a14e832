"""Responses of sign-in servers in the form that the SDK reads: real ones differ from the standards.

An issuer that differs by its last slash alone (Google) is the same one; any other difference stays, for it is
what tells a server that stands in for another (RFC 8414, RFC 9207). A token may come form-encoded (GitHub).
"""

import json
from typing import Any
from urllib.parse import parse_qsl

import httpx2

from bot.domain.text import one_line, shorten

_MAX_WORDS_CHARS = 300
_FORM = "application/x-www-form-urlencoded"


def fit_response(response: httpx2.Response, issuer: str | None) -> httpx2.Response:
    """Return the response to a request of the sign-in; ``issuer`` is the server that was asked for."""
    said = read_answer(response)
    if response.status_code >= httpx2.codes.BAD_REQUEST or not said:
        return response
    named = said.get("issuer")
    if issuer and isinstance(named, str) and named != issuer and is_same_issuer(named, issuer):
        return _answer(response, said | {"issuer": issuer})
    if "error" in said and "access_token" not in said:
        return _answer(response, said, status=httpx2.codes.BAD_REQUEST)
    is_form = not response.headers.get("Content-Type", "").startswith("application/json")
    if "access_token" in said and is_form:
        return _answer(response, said)
    return response


def is_same_issuer(one: str, other: str) -> bool:
    """Return whether two issuers are the same but for the last slash."""
    return one.removesuffix("/") == other.removesuffix("/")


def read_answer(response: httpx2.Response) -> dict[str, Any]:
    """Return the object that a body holds, as JSON or as a form; empty for anything else."""
    kind, body = response.headers.get("Content-Type", ""), response.content
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        is_form = kind.startswith((_FORM, "text/plain")) and b"=" in body
        said = dict(parse_qsl(body.decode(errors="replace"))) if is_form else {}
    if isinstance(said, dict) and str(said.get("expires_in", "")).isdigit():
        said["expires_in"] = int(said["expires_in"])
    if isinstance(said, dict):
        return said
    return {}


def words_of(said: dict[str, Any] | Any) -> str:
    """Return why a sign-in server refused, in its own words; empty where it gives none."""
    if not isinstance(said, dict):
        return ""
    parts = [said.get(key) for key in ("error_description", "error", "message", "msg")]
    words = next((part for part in parts if isinstance(part, str) and part.strip()), "")
    return shorten(one_line(words), _MAX_WORDS_CHARS).rstrip(".")


def _answer(response: httpx2.Response, said: dict[str, Any], *, status: int | None = None) -> httpx2.Response:
    return httpx2.Response(status or response.status_code, json=said, request=response.request)

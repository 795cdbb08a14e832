"""Fitting the responses of sign-in servers to what the SDK reads: real servers differ from the standards.

An issuer (the address by which a sign-in server is named) may differ from the expected one by its last slash:
Google does that. Any other difference is left in, since the SDK detects impostors by it (RFC 8414, RFC 9207).
A token may come form-encoded (GitHub).
"""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

import httpx2

from bot.domain.text import one_line, shorten

_MAX_WORDS_CHARS = 300
_FORM = "application/x-www-form-urlencoded"
_WHOLE_NUMBER = re.compile(r"[0-9]{1,15}")


def fit_response(response: httpx2.Response, issuer: str | None) -> httpx2.Response:
    """Return a sign-in server's response in the form that the SDK reads.

    ``issuer``: the issuer that the SDK expects; None if it expects none.
    """
    answer = read_answer(response)
    if response.status_code >= httpx2.codes.BAD_REQUEST or not answer:
        return response
    named_issuer = answer.get("issuer")
    if (
        issuer
        and isinstance(named_issuer, str)
        and named_issuer != issuer
        and is_same_issuer(named_issuer, issuer)
    ):
        return _replace_answer(response, answer | {"issuer": issuer})
    if "error" in answer and "access_token" not in answer:  # an error sent with the status 200, as by GitHub
        return _replace_answer(response, answer, status=httpx2.codes.BAD_REQUEST)
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    if "access_token" in answer and not is_json:
        return _replace_answer(response, answer)
    return response


def is_same_issuer(one: str, other: str) -> bool:
    """Return whether two issuers are the same, but for a slash at the end."""
    return one.removesuffix("/") == other.removesuffix("/")


def read_answer(response: httpx2.Response) -> dict[str, Any]:
    """Return the object in a body, which is JSON or a form (``a=1&b=2``); empty for any other body.

    A lifetime (``expires_in``) that came as a text of digits becomes a number.
    """
    kind = response.headers.get("Content-Type", "")
    body = response.content
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        is_form = kind.startswith((_FORM, "text/plain")) and b"=" in body
        answer = dict(parse_qsl(body.decode(errors="replace"))) if is_form else {}
    if not isinstance(answer, dict):
        return {}
    if _WHOLE_NUMBER.fullmatch(str(answer.get("expires_in", ""))):  # a form has texts only
        answer["expires_in"] = int(answer["expires_in"])
    return answer


def words_of(answer: Any) -> str:
    """Return why a sign-in server refused, in its own words; empty if it gives none."""
    if not isinstance(answer, dict):
        return ""
    for key in ("error_description", "error", "message", "msg"):
        words = answer.get(key)
        if isinstance(words, str) and words.strip():
            return shorten(one_line(words), _MAX_WORDS_CHARS).rstrip(".")
    return ""


def _replace_answer(
    response: httpx2.Response, answer: dict[str, Any], *, status: int | None = None
) -> httpx2.Response:
    return httpx2.Response(status or response.status_code, json=answer, request=response.request)

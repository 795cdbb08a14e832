"""The reason a model's server gives for refusing, in whichever shape it comes. Pure.

Servers put it into ``error`` (an object or a text), ``detail`` (FastAPI: a text or a list), ``message``,
``errors``, a JSON text inside a text (LiteLLM, OpenRouter's ``metadata.raw``), plain text, or a web page.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.agent.openai.answers.signs import (
    BAD_CALL,
    IS_OUTPUT,
    KEY,
    LONG,
    NO_MONEY,
    NO_SYSTEM_ROLE,
    NO_TOOLS,
    NOT_LONG,
    PASSING,
    PLAN,
    SURELY_LONG,
)
from bot.domain.redaction import redact_text
from bot.domain.text import shorten

MAX_SHOWN_CHARS = 200  # of a server's own words that fit a chat message
_MAX_READ_CHARS = 20_000
_MAX_MATCHED_CHARS = 4_000
_MIN_SECRET_CHARS = 4  # a shorter key would take letters out of words
_MAX_DEPTH = 6
_MAX_PARTS = 5  # entries of a list that are looked at
_PASSING_STATUSES = (408, 409, 425, 429)
_KEY_STATUSES = (401, 407)
_TOO_LARGE, _PAYMENT = 413, 402
_CLIENT_ERRORS, _SERVER_ERRORS, _STATUS_END = 400, 500, 600

_WORD_FIELDS = (
    "message", "Message", "msg", "error", "errors", "detail", "title", "error_message", "error_msg",
    "errorMessage", "error_description", "description", "status_msg", "reason", "faultstring", "fault",
    "base_resp", "metadata", "raw", "cause",
)  # fmt: skip
_CODE_FIELDS = ("code", "type", "status", "error_code", "errorCode", "error_type", "status_code")
_NOTHING = (None, False, 0, "", "0")
_NOT_ERRORS = frozenset({"choices", "output", "delta", "object", "usage"})
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml|h1|title)\b", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1)[^<>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]{0,500}>")
_MASKED = re.compile(r"[^\s*•]{0,100}[*•]{2,}[^\s]{0,100}")  # a key that is hidden in part


class RefusalCause(StrEnum):
    """The kind of a refusal, which decides what is done next."""

    TOO_LONG = "too long"  # a shorter request may be answered
    MONEY = "money"  # the account has none left
    KEY = "key"  # the key is not accepted
    BAD_CALL = "bad call"  # the model wrote one that its server does not take
    NO_SYSTEM_ROLE = "no system role"
    NO_TOOLS = "no tools"  # the model can call none there
    PASSING = "passing"  # the same request may be answered later
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A server's refusal.

    ``words`` are the server's own on one line, without secrets; ``said`` is all to recognise it by.
    """

    words: str
    said: str = ""
    status: int = 0  # HTTP's, or the one that the error names itself; 0: none

    @property
    def cause(self) -> RefusalCause:
        if is_too_long(self.said, self.status):
            return RefusalCause.TOO_LONG
        for cause, signs in (
            (RefusalCause.BAD_CALL, BAD_CALL),
            (RefusalCause.NO_SYSTEM_ROLE, NO_SYSTEM_ROLE),
            (RefusalCause.NO_TOOLS, NO_TOOLS),
        ):
            if signs.search(self.said):
                return cause
        if self.status == _PAYMENT or self._is_unpaid:
            return RefusalCause.MONEY
        if self.status in _KEY_STATUSES or (self.status < _SERVER_ERRORS and KEY.search(self.said)):
            return RefusalCause.KEY
        if self.status in _PASSING_STATUSES or self.status >= _SERVER_ERRORS:
            return RefusalCause.PASSING
        if self.status >= _CLIENT_ERRORS:
            return RefusalCause.REFUSED
        if PASSING.search(self.said):
            return RefusalCause.PASSING
        return RefusalCause.UNKNOWN

    @property
    def _is_unpaid(self) -> bool:
        """Tell if the account has no money left.

        Gemini reports its per-minute limits as a quota and a plan, so only plain words count for those
        statuses.
        """
        vague = self.status in _PASSING_STATUSES or self.status >= _SERVER_ERRORS
        return bool(NO_MONEY.search(self.said) or (not vague and PLAN.search(self.said)))

    @property
    def may_be_long(self) -> bool:
        """True if half of a long request may be taken, though the server did not say so."""
        return self.cause is RefusalCause.REFUSED

    def is_about(self, pattern: str) -> bool:
        """Return whether its words or codes match."""
        return any(re.search(pattern, text) for text in (self.said, self.words.lower()))


def read_refusal(body: Any, status: int = 0, secret: str = "") -> Refusal:
    """Read an error's body: decoded JSON, or a text. ``secret`` is the key, which is never shown."""
    if isinstance(body, bytes):
        body = body[:_MAX_READ_CHARS].decode(errors="replace")
    if isinstance(body, str):
        body = _decode_body(body)
    codes = [str(code)[:100] for code in _codes(body, 0)]
    parts = list(dict.fromkeys(part for part in _words(body, 0) if part))
    kept = [part for at, part in enumerate(parts) if not any(part in other for other in parts[:at])]
    found = next((int(code) for code in codes if _is_status(code)), 0)
    words = " ".join(": ".join(kept).split())[:_MAX_READ_CHARS]
    said = f"{' '.join(codes)} {words}".lower()[:_MAX_MATCHED_CHARS]
    return Refusal(_clean_words(words, secret), said, status if status >= _CLIENT_ERRORS else found)


def find_error(answer: Any) -> Any:
    """Return the error in a decoded answer, also in a list (Gemini), or None."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if not isinstance(answer, dict):
        return None
    if _is_told(answer.get("error")):
        return {name: answer[name] for name in ("error", *_WORD_FIELDS, *_CODE_FIELDS) if name in answer}
    kind = answer.get("type"), answer.get("object"), answer.get("status")
    if "error" in kind:
        return answer
    base = answer.get("base_resp")  # MiniMax sends its codes with each answer
    if isinstance(base, dict) and base.get("status_code") and not answer.get("choices"):
        return base
    bare = not (_NOT_ERRORS & answer.keys()) and not isinstance(answer.get("data"), dict)
    told = any(answer.get(name) and isinstance(answer[name], str | list) for name in _WORD_FIELDS)
    return answer if bare and told else None


def _is_told(error: Any) -> bool:
    """Return whether it says that something went wrong: some send an empty one, or a code of 0, each time."""
    if isinstance(error, dict):
        return any(part not in _NOTHING for part in error.values())
    return bool(error)


def is_too_long(said: str, status: int = 0) -> bool:
    """Return whether an error's words, in lower case, say that the request does not fit the model."""
    if status == _TOO_LARGE or SURELY_LONG.search(said):
        return True
    return bool(LONG.search(said)) and not NOT_LONG.search(said) and not IS_OUTPUT.fullmatch(said)


def _is_status(code: str) -> bool:
    return code.isdecimal() and _CLIENT_ERRORS <= int(code[:9]) < _STATUS_END


def _decode_body(text: str) -> Any:
    """Return the JSON that a text is, also inside other words; the words of a web page; else the text."""
    text = text[:_MAX_READ_CHARS].strip().removeprefix("\ufeff")
    if _PAGE.match(text):
        title = _TITLE.search(text)
        return html.unescape(title[2] if title else _MARKUP.sub(" ", text))
    at = min((found for found in (text.find("{"), text.find("[{")) if found >= 0), default=-1)
    if text.startswith('"'):
        at = 0
    if at < 0:
        return text
    try:
        inner, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return text
    around = text[:at].strip(" -:'b\"")
    if not around and not text[end:].strip():
        return inner
    if isinstance(inner, dict | list):
        return [around, inner, text[end:].strip(" .'\"")]
    return text


def _words(value: Any, depth: int) -> Iterator[str]:
    """Yield the words of an error, those of its outside first."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        inner = _decode_body(value) if depth < _MAX_DEPTH else value
        if isinstance(inner, str):
            yield " ".join(inner.split())
        else:
            yield from _words(inner, depth + 1)
    elif isinstance(value, list):
        for part in value[:_MAX_PARTS]:
            yield from _words(part, depth + 1)
    elif isinstance(value, dict):
        if isinstance(value.get("loc"), list):
            at = ".".join(map(str, value["loc"]))
        else:
            at = ""
        found = [part for name in _WORD_FIELDS for part in _words(value.get(name), depth + 1)]
        yield from [f"{at}: {part}" if at else part for part in found]


def _codes(value: Any, depth: int) -> Iterator[Any]:
    """Yield codes and types, at any depth."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str) and depth:
        value = _decode_body(value)
    if isinstance(value, list):
        for part in value[:_MAX_PARTS]:
            yield from _codes(part, depth + 1)
    elif isinstance(value, Mapping):
        for name in _CODE_FIELDS:
            code = value.get(name)
            if isinstance(code, str | int):
                yield code
        for name in _WORD_FIELDS:
            if name in value:
                yield from _codes(value[name], depth + 1)


def _clean_words(words: str, secret: str) -> str:
    if len(secret) >= _MIN_SECRET_CHARS:
        line = words.replace(secret, "…")
    else:
        line = words
    return shorten(redact_text(_MASKED.sub("…", line)), MAX_SHOWN_CHARS)

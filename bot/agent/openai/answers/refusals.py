"""The reason why a model's server refuses a request, read from the body of its answer. Pure.

The body has no common shape. Servers put the reason into ``error`` (an object or a text), ``detail``
(FastAPI: a text or a list), ``message``, ``errors``, a JSON text inside a text (LiteLLM, OpenRouter's
``metadata.raw``), plain text, or a web page. `read_refusal` collects the texts and codes from all of these,
and `Refusal.cause` recognises the cause by the patterns in ``refusal_patterns.py``. `find_error` tells if a
decoded answer is an error at all.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.agent.openai.answers import refusal_patterns
from bot.domain.redaction import redact_text
from bot.domain.text import shorten

MAX_SHOWN_CHARS = 200  # the most characters of a server's message that are shown in the chat
_MAX_READ_CHARS = 20_000
_MAX_MATCHED_CHARS = 4_000  # the most characters in which the cause is searched
_MIN_SECRET_CHARS = 4  # a shorter key would take letters out of words
_MAX_DEPTH = 6  # levels of values inside each other that are looked at
_MAX_PARTS = 5  # entries of a list that are looked at

# statuses of HTTP
_TRANSIENT_STATUSES = (408, 409, 425, 429)
_KEY_STATUSES = (401, 407)
_TOO_LARGE_STATUS = 413
_PAYMENT_STATUS = 402
_MIN_CLIENT_ERROR = 400
_MIN_SERVER_ERROR = 500
_MAX_STATUS = 599

_WORD_FIELDS = (
    "message", "Message", "msg", "error", "errors", "detail", "title", "error_message", "error_msg",
    "errorMessage", "error_description", "description", "status_msg", "reason", "faultstring", "fault",
    "base_resp", "metadata", "raw", "cause",
)  # fmt: skip
"""The fields that have a reason in words, or contain such a field."""
_CODE_FIELDS = ("code", "type", "status", "error_code", "errorCode", "error_type", "status_code")
"""The fields that have a reason as a code, such as "insufficient_quota" or 429."""
_NO_ERROR_VALUES = (None, False, 0, "", "0")
_ANSWER_FIELDS = frozenset({"choices", "output", "delta", "object", "usage"})  # no error has one
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml|h1|title)\b", re.IGNORECASE)  # begins a web page
_TITLE = re.compile(r"<(title|h1)[^<>]{0,200}>([^<]{1,300})", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]{0,500}>")
_MASKED = re.compile(r"[^\s*•]{0,100}[*•]{2,}[^\s]{0,100}")  # a key that is hidden in part


class RefusalCause(StrEnum):
    """The kind of a refusal, which decides what is done next."""

    TOO_LONG = "too long"  # a shorter request may be answered
    MONEY = "money"  # the account has no money or quota left
    KEY = "key"  # the key is not accepted
    BAD_CALL = "bad call"  # the model wrote a call that its server does not accept
    NO_SYSTEM_ROLE = "no system role"
    NO_TOOLS = "no tools"  # the model can't call tools at this server
    TRANSIENT = "passing"  # the same request may be answered later
    REFUSED = "refused"  # a status from 400 to 499, with a reason that is not recognised
    UNKNOWN = "unknown"  # no status of an error, and a reason that is not recognised


@dataclass(frozen=True, slots=True)
class Refusal:
    """A server's refusal."""

    message: str  # the server's own message on one line, without secrets
    searchable: str = ""  # the codes and the message in lower case, in which the cause is searched
    status: int = 0  # the status of HTTP, or the status that the error names itself; 0: neither

    @property
    def cause(self) -> RefusalCause:
        """The first cause that fits, from the clearest sign to the vaguest."""
        if is_too_long(self.searchable, self.status):
            return RefusalCause.TOO_LONG
        for cause, pattern in (
            (RefusalCause.BAD_CALL, refusal_patterns.BAD_CALL),
            (RefusalCause.NO_SYSTEM_ROLE, refusal_patterns.NO_SYSTEM_ROLE),
            (RefusalCause.NO_TOOLS, refusal_patterns.NO_TOOLS),
        ):
            if pattern.search(self.searchable):
                return cause
        if self.status == _PAYMENT_STATUS or self._is_unpaid:
            return RefusalCause.MONEY
        is_server_error = self.status >= _MIN_SERVER_ERROR
        says_key_refused = not is_server_error and refusal_patterns.KEY_REFUSED.search(self.searchable)
        if self.status in _KEY_STATUSES or says_key_refused:
            return RefusalCause.KEY
        if self.status in _TRANSIENT_STATUSES or is_server_error:
            return RefusalCause.TRANSIENT
        if self.status >= _MIN_CLIENT_ERROR:
            return RefusalCause.REFUSED
        if refusal_patterns.TRANSIENT.search(self.searchable):
            return RefusalCause.TRANSIENT
        return RefusalCause.UNKNOWN

    @property
    def _is_unpaid(self) -> bool:
        """True if the account has no money left.

        With a transient status, words about a quota or a plan don't count: Gemini reports its limits for each
        minute that way.
        """
        if refusal_patterns.NO_MONEY.search(self.searchable):
            return True
        is_transient = self.status in _TRANSIENT_STATUSES or self.status >= _MIN_SERVER_ERROR
        return not is_transient and refusal_patterns.NAMES_MONEY.search(self.searchable) is not None

    @property
    def may_be_too_long(self) -> bool:
        """True if the server refuses for an unrecognised reason: a shorter request may be answered."""
        return self.cause is RefusalCause.REFUSED

    def is_about(self, pattern: str) -> bool:
        """Return whether the codes or the message match the pattern."""
        return any(re.search(pattern, text) for text in (self.searchable, self.message.lower()))


def read_refusal(body: Any, status: int = 0, secret: str = "") -> Refusal:
    """Read an error's body: decoded JSON, a text, or bytes.

    ``status``: of HTTP, or 0. ``secret``: the key, which is never shown.
    """
    if isinstance(body, bytes):
        body = body[:_MAX_READ_CHARS].decode(errors="replace")
    if isinstance(body, str):
        body = _decode_body(body)
    codes = [str(code)[:100] for code in _list_codes(body, 0)]
    if status < _MIN_CLIENT_ERROR:  # an error in an answer of status 200 may have a status among its codes
        status = next((int(code) for code in codes if _is_error_status(code)), 0)
    message = " ".join(": ".join(_list_distinct_texts(body)).split())[:_MAX_READ_CHARS]
    searchable = f"{' '.join(codes)} {message}".lower()[:_MAX_MATCHED_CHARS]
    return Refusal(_clean_message(message, secret), searchable, status)


def _list_distinct_texts(body: Any) -> list[str]:
    """Return the texts of an error, without any text that an earlier text contains."""
    texts: list[str] = []
    earlier_texts: list[str] = []
    for text in dict.fromkeys(_list_texts(body, 0)):
        if text and not any(text in earlier for earlier in earlier_texts):
            texts.append(text)
        earlier_texts.append(text)
    return texts


def find_error(answer: Any) -> Any:
    """Return the error in a decoded answer, also in a list (Gemini), or None."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if not isinstance(answer, dict):
        return None
    if _is_error(answer.get("error")):  # OpenAI and most others
        return {name: answer[name] for name in (*_WORD_FIELDS, *_CODE_FIELDS) if name in answer}
    if "error" in (answer.get("type"), answer.get("object"), answer.get("status")):  # such as vLLM's
        return answer
    codes = answer.get("base_resp")  # MiniMax sends its codes with each answer
    if isinstance(codes, dict) and codes.get("status_code") and not answer.get("choices"):
        return codes
    # FastAPI and gateways send an error as a message alone. A body with a field of an answer is no error,
    # nor is a gateway's envelope, which has the answer in ``data``.
    if _ANSWER_FIELDS & answer.keys() or isinstance(answer.get("data"), dict):
        return None
    has_message = any(answer.get(name) and isinstance(answer[name], str | list) for name in _WORD_FIELDS)
    return answer if has_message else None


def _is_error(error: Any) -> bool:
    """Return whether the field ``error`` has a value: some servers always send it, empty or with code 0."""
    if isinstance(error, dict):
        return any(part not in _NO_ERROR_VALUES for part in error.values())
    return bool(error)


def is_too_long(searchable: str, status: int = 0) -> bool:
    """Return whether an error says that the request does not fit the model."""
    if status == _TOO_LARGE_STATUS or refusal_patterns.SURELY_TOO_LONG.search(searchable):
        return True
    if refusal_patterns.OTHER_LIMIT.search(searchable) or refusal_patterns.ONLY_OUTPUT_LIMIT.fullmatch(
        searchable
    ):
        return False
    return refusal_patterns.PROBABLY_TOO_LONG.search(searchable) is not None


def _is_error_status(code: str) -> bool:
    return code.isdecimal() and _MIN_CLIENT_ERROR <= int(code[:9]) <= _MAX_STATUS


def _decode_body(text: str) -> Any:
    """Return the text of an error, decoded as far as it can be.

    A web page gives its title or its text, JSON its value. JSON inside other words gives a list of the words
    before it, its value, and the words after it. Anything else is returned as it is.
    """
    text = text[:_MAX_READ_CHARS].strip().removeprefix("\ufeff")
    if _PAGE.match(text):
        title = _TITLE.search(text)
        return html.unescape(title[2] if title else _MARKUP.sub(" ", text))
    start = _find_json(text)
    if start is None:
        return text
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return text
    before = text[:start].strip(" -:'b\"")  # also the beginning of bytes as Python shows them: b'
    after = text[end:].strip()
    if not before and not after:
        return value
    if isinstance(value, dict | list):
        return [before, value, after.strip(" .'\"")]
    return text


def _find_json(text: str) -> int | None:
    """Return the index where JSON may begin in a text: a quoted text, an object, or a list of objects."""
    if text.startswith('"'):
        return 0
    starts = [index for index in (text.find("{"), text.find("[{")) if index >= 0]
    return min(starts, default=None)


def _list_texts(value: Any, depth: int) -> Iterator[str]:
    """Yield the texts of an error, in the order of `_WORD_FIELDS`. ``depth``: the levels above the value."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        decoded = _decode_body(value) if depth < _MAX_DEPTH else value
        if isinstance(decoded, str):
            yield " ".join(decoded.split())
        else:
            yield from _list_texts(decoded, depth + 1)
    elif isinstance(value, list):
        for part in value[:_MAX_PARTS]:
            yield from _list_texts(part, depth + 1)
    elif isinstance(value, dict):
        location = ""  # the path of the field that FastAPI refuses
        if isinstance(value.get("loc"), list):
            location = ".".join(map(str, value["loc"]))
        for name in _WORD_FIELDS:
            for text in _list_texts(value.get(name), depth + 1):
                yield f"{location}: {text}" if location else text


def _list_codes(value: Any, depth: int) -> Iterator[str | int]:
    """Yield the codes and types of an error, at any depth."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str) and depth > 0:  # at depth 0 `read_refusal` has decoded the body already
        value = _decode_body(value)
    if isinstance(value, list):
        for part in value[:_MAX_PARTS]:
            yield from _list_codes(part, depth + 1)
    elif isinstance(value, Mapping):
        for name in _CODE_FIELDS:
            code = value.get(name)
            if isinstance(code, str | int):
                yield code
        for name in _WORD_FIELDS:
            if name in value:
                yield from _list_codes(value[name], depth + 1)


def _clean_message(message: str, secret: str) -> str:
    if len(secret) >= _MIN_SECRET_CHARS:
        message = message.replace(secret, "…")
    return shorten(redact_text(_MASKED.sub("…", message)), MAX_SHOWN_CHARS)

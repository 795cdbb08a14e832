"""What an OpenAI-compatible server's errors mean, in words for people. Pure; ``model.py`` raises them."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import aiohttp
import openai

from bot.domain.named_models import NamedModel
from bot.domain.text import shortened
from bot.domain.times import span
from bot.errors import ModelError, ModelTooLong

_SIGNS = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input token count",
    "maximum number of tokens",
    "too many tokens",
)
_SHOWN = 200  # characters of a server's own words that fit a chat message

_DAY = 86_400.0  # seconds
_MINUTES = 120.0  # seconds from which on people read minutes
_SERVER_ERRORS = 500  # where HTTP's server errors begin
_PASSING = (408, 409, 429)
_CLOSED = (aiohttp.ServerDisconnectedError, BrokenPipeError, ConnectionResetError)
_FIELDS = {
    "parallel_tool_calls": "NOD_MODEL_PARALLEL_TOOL_CALLS",
    "stream_options": "NOD_MODEL_STREAM_OPTIONS",
    "strict": "NOD_MODEL_STRICT",
}
_FIXED = "Send “continue” once that is fixed."
STRANGE = "The model's server gave an answer Nod does not understand. Check OPENAI_BASE_URL."


def too_long(code: Any, message: Any) -> bool:
    """Whether an error object's code and message say that the transcript does not fit the model."""
    said = f"{code or ''} {message or ''}".lower()
    return any(words in said for words in _SIGNS)


def worth_retrying(error: openai.OpenAIError) -> bool:
    """Whether the same request may be answered a little later."""
    if not isinstance(error, openai.APIStatusError):
        return isinstance(error, openai.APIConnectionError)
    if error.response.headers.get("x-should-retry") == "false" or _no_quota(error):
        return False
    return error.status_code in _PASSING or error.status_code >= _SERVER_ERRORS


def away(error: openai.OpenAIError) -> bool:
    """Whether the server is down or the account over its limit, so that another model may answer instead."""
    return worth_retrying(error) or (isinstance(error, openai.APIStatusError) and _no_quota(error))


def silent(error: openai.OpenAIError) -> bool:
    """Whether the server took the request, or the connection, and then let the time pass.

    The library calls a refused or a closed connection a timeout, too (``AIOHTTP_EXC_MAP`` in its
    ``_vendor/httpx_aiohttp/transport.py``); what the error comes from tells.
    """
    return _comes_from(error, TimeoutError)


def _comes_from(error: BaseException, *kinds: type[BaseException]) -> bool:
    return any(isinstance(each, kinds) for each in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def retry_after(error: openai.OpenAIError) -> float | None:
    """The seconds that the server asks to wait, a day at most; None where it names none."""
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers.get(name, "")) / unit), _DAY)
        except ValueError:
            continue
    return None


def error_in(answer: Any) -> Mapping[str, Any] | None:
    """The error that an answer is, also in a list (Gemini); None for any other."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    error = answer.get("error") if isinstance(answer, dict) else None
    return error if isinstance(error, dict) else {"message": error} if error else None


def refused(content: bytes, field: str, key: str) -> ModelError | None:
    """What an error says that came as a plain JSON answer with status 200.

    None where it is an answer, which has a ``field``.
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return ModelError(STRANGE)
    error = error_in(answer)
    if error is None:
        return None if isinstance(answer, dict) and answer.get(field) else ModelError(STRANGE)
    if too_long(error.get("code"), error.get("message")):
        return ModelTooLong()
    return ModelError(f"The model's server refused the request: {_line(error.get('message'), key)}")


def explain(error: openai.OpenAIError, named: NamedModel, waited: float) -> ModelError:
    """Put the error of a model's server into words. Never holds the key; its own words are one short line.

    ``waited`` is how long people have waited for it, over all tries, in seconds.
    """
    match error:
        case openai.APIConnectionError() if silent(error):
            return ModelError(f"The model's server did not answer within {_seconds(waited)}.")
        case openai.APIConnectionError() if _comes_from(error, *_CLOSED):
            return ModelError("The model's server closed the connection without an answer.")
        case openai.APIConnectionError():
            return ModelError("The model's server can't be reached.")
        case openai.APIError() if too_long(error.code, f"{error.message} {_said(error, '')}"):
            return ModelTooLong()
        case openai.APIStatusError():
            return ModelError(_status(error, named))
        case _:
            return ModelError(STRANGE)


def _status(error: openai.APIStatusError, named: NamedModel) -> str:
    status, model = error.status_code, named.model
    words = {
        401: f"The model's server does not accept the API key. Please check {named.key}. {_FIXED}",
        403: f"The API key may not use the model {model}. {_FIXED}",
        404: f"The model's server does not know the model {model}. Please check {named.setting}. {_FIXED}",
        413: "The request is too large for the model's server.",
        429: _busy(error),
    }
    if status in words:
        return words[status]
    if status >= _SERVER_ERRORS:
        return f"The model's server is in trouble (HTTP {status})."
    said = _said(error, named.secret)
    return f"The model's server refused the request (HTTP {status}): {said}{_remedy(said)}"


def _remedy(said: str) -> str:
    """The setting that leaves out what the server does not take."""
    for field, setting in _FIELDS.items():
        if field in said:
            end = "" if said.endswith((".", "…")) else "."
            return f"{end} Set {setting}=false if the server doesn't support it."
    return ""


def _busy(error: openai.APIStatusError) -> str:
    if _no_quota(error):
        return f"The account at the model's provider has used up its quota. {_FIXED}"
    wait = retry_after(error)
    return f"The model's server is busy{'' if wait is None else f' for {_seconds(wait)}'}."


def _no_quota(error: openai.APIStatusError) -> bool:
    return "insufficient_quota" in (error.code, error.type)


def _seconds(count: float) -> str:
    if count >= _MINUTES:
        return span(timedelta(seconds=count))
    whole = max(1, round(count))
    return "1 second" if whole == 1 else f"{whole} seconds"


def _said(error: openai.APIError, key: str) -> str:
    body = error.body
    given = error_in(body) or (body if isinstance(body, dict) else {})
    return _line(given.get("message"), key)


def _line(said: Any, key: str) -> str:
    line = " ".join(str(said or "no reason given").split())
    line = line.replace(key, "…") if key else line
    return shortened(line, _SHOWN)

"""Errors of OpenAI-compatible servers, explained in words for people. Pure; ``model.py`` raises them."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import aiohttp
import openai

from bot.agent.openai.answers.refusals import Refusal, RefusalCause, read_refusal
from bot.agent.openai.refused_parts import words_of
from bot.domain.named_models import NamedModel
from bot.domain.times import format_span
from bot.errors import ModelCut, ModelError, ModelTooLong

_MAX_WAIT_SECONDS = 86_400.0  # a day
_MIN_SECONDS_IN_MINUTES = 120.0  # a longer time is told in minutes
_MIN_SERVER_ERROR = 500
_PASSING_STATUSES = (408, 409, 429)  # timeout, conflict, too many requests
_CLOSED = (aiohttp.ServerDisconnectedError, BrokenPipeError, ConnectionResetError)
_FIELDS = {
    r"parallel_tool_calls": "NOD_MODEL_PARALLEL_TOOL_CALLS",
    r"stream_options": "NOD_MODEL_STREAM_OPTIONS",
    r"\bstrict\b": "NOD_MODEL_STRICT",
}
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![a-z])"
_SPAN_PART = re.compile(_SPAN, re.IGNORECASE)
_RETRY_WORDS = re.compile(rf"(?:try again|retry) (?:in|after):? ((?:{_SPAN}[\s,]*){{1,3}})", re.IGNORECASE)
"""The wait in words, as Groq, OpenAI, Gemini and others send it: "Please try again in 1m26.4s"."""
_RETRY_FIELD = re.compile(r'"retryDelay": "(\d{1,9}(?:\.\d{1,9})?)s"')
"""The wait as Google sends it: https://cloud.google.com/apis/design/errors#error_details."""
_FIXED = "Send “continue” once that is fixed."
_STRANGE = "The model's server gave an answer Nod does not understand"
STRANGE = f"{_STRANGE}. Check OPENAI_BASE_URL."
PAGE = "The model's server answered with a web page. Check OPENAI_BASE_URL."
_ABOUT_ACCESS = r"permi|access|\bmodels?\b|key|credential|scope|entitle|allowed to|^\W*(?:\w+\W*){0,2}$"
_ABOUT_PLACE = r"region|countr|territor|location|moderat|flagged|safety|terms of|polic"
_ABOUT_MODEL = (
    r"model_not_found|no such model|\bmodel\b.*(?:not|n't|unknown|no longer|deprecat|decommission|retired)"
    r"|(?:not|unknown|invalid|no) .*\bmodel\b|^\W*(?:no\W*)?$"
)
_ABOUT_ADDRESS = (
    r"^\W*(?:404\W*)?(?:page |path |url |route )?not.?found\W*$|\broute\b|\bpath\b|invalid url|cannot post"
)


def find_refusal(error: openai.OpenAIError, secret: str = "") -> Refusal:
    """Return the refusal in an answer with an error's status."""
    if not isinstance(error, openai.APIStatusError):
        return Refusal("")
    body = error.response.content or error.body
    return read_refusal(body, error.status_code, secret)


def worth_retrying(error: openai.OpenAIError) -> bool:
    """Tell if the same request may be answered a little later."""
    if not isinstance(error, openai.APIStatusError):
        return isinstance(error, openai.APIConnectionError)
    cause = find_refusal(error).cause
    if error.response.headers.get("x-should-retry") == "false":
        return False
    if cause is not RefusalCause.TRANSIENT:
        return cause is RefusalCause.BAD_CALL
    return error.status_code in _PASSING_STATUSES or error.status_code >= _MIN_SERVER_ERROR


def away(error: openai.OpenAIError) -> bool:
    """Tell if another model may answer instead: the server is down, or the account over its limit."""
    return worth_retrying(error) or find_refusal(error).cause is RefusalCause.MONEY


def silent(error: openai.OpenAIError) -> bool:
    """Tell if the server took the request, or the connection, and then let the time pass.

    The library's own timeout doesn't tell: it stands for a refused or a closed connection, too
    (``AIOHTTP_EXC_MAP`` in its ``_vendor/httpx_aiohttp/transport.py``). Its causes do.
    """
    return _comes_from(error, TimeoutError)


def _comes_from(error: BaseException, *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in _list_causes(error))


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def retry_after(error: openai.OpenAIError) -> float | None:
    """Return the seconds that the server asks to wait, a day at most; None if it names no time.

    A header has the time as a number or a date. Without such a header, the error's own words count.
    """
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers.get(name, "")) / unit), _MAX_WAIT_SECONDS)
        except ValueError:
            continue
    when = _read_date(headers.get("retry-after", ""))
    if when is not None:
        now = _read_date(headers.get("date", "")) or datetime.now(UTC)
        return min(max(0.0, (when - now).total_seconds()), _MAX_WAIT_SECONDS)
    return _read_wait(words_of(error))


def _read_date(text: str) -> datetime | None:
    """Return the time of an HTTP date, in UTC if the date names no zone."""
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo:
        return when
    return when.replace(tzinfo=UTC)


def _read_wait(words: str) -> float | None:
    """Find the wait that an error's words name."""
    field = _RETRY_FIELD.search(words)
    if field:
        return min(float(field[1]), _MAX_WAIT_SECONDS)
    span = _RETRY_WORDS.search(words)
    if span is None:
        return None
    seconds = 0.0
    for count, unit in _SPAN_PART.findall(span[1]):
        seconds += float(count) * _seconds_of(unit)
    return min(seconds, _MAX_WAIT_SECONDS)


def _seconds_of(unit: str) -> float:
    """Return the seconds of a unit, such as "ms", "m", "min" or "minutes"."""
    unit = unit.lower()
    if unit == "ms" or unit.startswith("milli"):
        return _UNIT_SECONDS["ms"]
    return _UNIT_SECONDS[unit[0]]


def explain(error: openai.OpenAIError, named: NamedModel, waited: float) -> ModelError:
    """Put the error of a model's server into words, without the key, and with one line of its own words.

    ``waited`` is how long people have waited for the answer, over all tries, in seconds.
    """
    match error:
        case openai.APIConnectionError() if silent(error):
            return ModelError(f"The model's server did not answer within {_seconds(waited)}.")
        case openai.APIConnectionError() if _comes_from(error, *_CLOSED):
            return ModelError("The model's server closed the connection without an answer.")
        case openai.APIConnectionError():
            return ModelError("The model's server can't be reached.")
        case openai.APIStatusError():
            refusal = find_refusal(error, named.secret)
            explained = _explain_too_long(refusal) or ModelError(_describe_status(error, refusal, named))
            explained.may_be_long = refusal.may_be_long
            return explained
        case _:
            return ModelError(STRANGE)


def explain_refusal(refusal: Refusal, *, spoke: bool) -> ModelError:
    """Put into words an error that came with status 200, in a stream or instead of a stream.

    A temporary error, and an error without a known cause, counts as a cut answer. ``spoke``: a part of
    the answer came before it.
    """
    cause = refusal.cause
    too_long = _explain_too_long(refusal)
    if too_long:
        return too_long
    if cause in (RefusalCause.TRANSIENT, RefusalCause.BAD_CALL, RefusalCause.UNKNOWN):
        cut = ModelCut(f"The model's server ended its answer early.{_says(refusal)}")
        cut.passing, cut.has_reason = cause is RefusalCause.TRANSIENT, True
        return cut
    if cause is RefusalCause.MONEY:
        refused = ModelError(_unpaid(refusal))
        refused.away = True
    else:
        reason = refusal.message or "no reason given"
        refused = ModelError(f"The model's server refused the request: {reason}")
    refused.may_be_long = refusal.may_be_long and not spoke
    return refused


def explain_words(refusal: Refusal) -> ModelError:
    """Put into words an answer that is only a text without a known meaning."""
    return ModelError(f"{_STRANGE}: “{refusal.message}”. Check OPENAI_BASE_URL.")


def _explain_too_long(refusal: Refusal) -> ModelTooLong | None:
    if refusal.cause is not RefusalCause.TOO_LONG:
        return None
    return ModelTooLong(f"{ModelTooLong.__doc__}{_says(refusal)}")


def _describe_status(error: openai.APIStatusError, refusal: Refusal, named: NamedModel) -> str:
    """Describe an answer with an error's status: what happened, what to do, and the server's words."""
    status, quote = error.status_code, _says(refusal)
    if refusal.cause is RefusalCause.MONEY:
        return _unpaid(refusal)
    if refusal.cause is RefusalCause.NO_TOOLS:
        remedy = f"Set {_tools_setting(named)} for it."
        return f"The model's server has no tool calls for {named.model}. {remedy}{quote}"
    if status == 429:  # noqa: PLR2004 - HTTP's own
        wait = retry_after(error)
        period = "" if wait is None else f" for {_seconds(wait)}"
        return f"The model's server is busy{period}.{quote}"
    if status >= _MIN_SERVER_ERROR:
        return f"The model's server is in trouble (HTTP {status}).{quote}"
    remedy = _find_remedy(status, refusal, named)
    if remedy:
        return f"{remedy}{quote}"
    reason = refusal.message or "no reason given"
    return f"The model's server refused the request (HTTP {status}): {reason}{_switch(refusal)}"


def _find_remedy(status: int, refusal: Refusal, named: NamedModel) -> str:
    """Return advice if the status and the server's words agree on the cause, else an empty text."""
    if status == 401:  # noqa: PLR2004 - HTTP's own
        return f"The model's server does not accept the API key. Please check {named.key}. {_FIXED}"
    if status == 403:  # noqa: PLR2004 - HTTP's own
        fits = not refusal.message or (refusal.is_about(_ABOUT_ACCESS) and not refusal.is_about(_ABOUT_PLACE))
        if fits:
            return f"The API key may not use the model {named.model}. {_FIXED}"
        return ""
    if status == 404:  # noqa: PLR2004 - HTTP's own
        if refusal.is_about(_ABOUT_ADDRESS):
            return f"The model's server has nothing at this address. Check OPENAI_BASE_URL. {_FIXED}"
        unknown = f"The model's server does not know the model {named.model}. Please check {named.setting}."
        if not refusal.message or refusal.is_about(_ABOUT_MODEL):
            return f"{unknown} {_FIXED}"
        return ""
    return ""


def _tools_setting(named: NamedModel) -> str:
    if named.setting == "NOD_MODEL":
        return "NOD_MODEL_TOOLS=text"
    return 'tools = "text"'


def _unpaid(refusal: Refusal) -> str:
    return f"The account at the model's provider has used up its quota or credit. {_FIXED}{_says(refusal)}"


def _says(refusal: Refusal) -> str:
    if refusal.message:
        return f" It says: “{refusal.message}”"
    return ""


def _switch(refusal: Refusal) -> str:
    """Return a sentence about the setting that leaves out the field which the server refuses."""
    for field, setting in _FIELDS.items():
        if re.search(field, refusal.message):
            end = "" if refusal.message.endswith((".", "…")) else "."
            return f"{end} Set {setting}=false if the server doesn't support it."
    return ""


def _seconds(count: float) -> str:
    if count >= _MIN_SECONDS_IN_MINUTES:
        return format_span(timedelta(seconds=count))
    whole = max(1, round(count))
    if whole == 1:
        return "1 second"
    return f"{whole} seconds"

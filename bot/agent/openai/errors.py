"""Errors of OpenAI-compatible servers: what to do about them, and how to explain them to people. Pure.

Errors come from the ``openai`` library: a status of HTTP that says no, or a connection that failed.
``model.py`` asks here if a request is worth repeating, and after which wait. In the end it raises the
`ModelError` that `explain` returns, whose message people read: what happened, what to do, and one line of the
server's own words.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import aiohttp
import openai

from bot.agent.openai.answers.refusals import Refusal, RefusalCause, read_refusal
from bot.agent.openai.refused_parts import find_error_text
from bot.domain.named_models import NamedModel
from bot.domain.times import format_span
from bot.errors import ModelCut, ModelError, ModelTooLong

_MAX_WAIT_SECONDS = 86_400.0  # a day
_MIN_SECONDS_IN_MINUTES = 120.0  # a longer time is shown in minutes
_MIN_SERVER_ERROR = 500
_TEMPORARY_STATUSES = (408, 409, 429)  # timeout, conflict, too many requests
_CLOSED = (aiohttp.ServerDisconnectedError, BrokenPipeError, ConnectionResetError)
_SETTING_BY_FIELD = {
    r"parallel_tool_calls": "NOD_MODEL_PARALLEL_TOOL_CALLS",
    r"stream_options": "NOD_MODEL_STREAM_OPTIONS",
    r"\bstrict\b": "NOD_MODEL_STRICT",
}
"""The setting that leaves out a field of requests, by a pattern of the field's name."""
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![a-z])"
_SPAN_PART = re.compile(_SPAN, re.IGNORECASE)
_RETRY_WORDS = re.compile(rf"(?:try again|retry) (?:in|after):? ((?:{_SPAN}[\s,]*){{1,3}})", re.IGNORECASE)
"""The wait in words, as Groq, OpenAI, Gemini and others send it: "Please try again in 1m26.4s"."""
_RETRY_FIELD = re.compile(r'"retryDelay": "(\d{1,9}(?:\.\d{1,9})?)s"')
"""The wait as Google sends it: https://cloud.google.com/apis/design/errors#error_details."""
_CONTINUE_TEXT = "Send “continue” once that is fixed."
_NOT_UNDERSTOOD_TEXT = "The model's server gave an answer Nod does not understand"
BAD_ANSWER_TEXT = f"{_NOT_UNDERSTOOD_TEXT}. Check OPENAI_BASE_URL."
PAGE_TEXT = "The model's server answered with a web page. Check OPENAI_BASE_URL."

# with status 403: a pattern of messages about what the key may do. A message of at most two words, such as
# "Forbidden", counts as one.
_ABOUT_ACCESS = r"permi|access|\bmodels?\b|key|credential|scope|entitle|allowed to|^\W*(?:\w+\W*){0,2}$"

# with status 403: a pattern of messages about a forbidden place or content
_ABOUT_PLACE = r"region|countr|territor|location|moderat|flagged|safety|terms of|polic"

# with status 404: patterns of messages about the model, and about the address. A message without a word,
# or with "no" alone, counts as one about the model.
_ABOUT_MODEL = (
    r"model_not_found|no such model|\bmodel\b.*(?:not|n't|unknown|no longer|deprecat|decommission|retired)"
    r"|(?:not|unknown|invalid|no) .*\bmodel\b|^\W*(?:no\W*)?$"
)
_ABOUT_ADDRESS = (
    r"^\W*(?:404\W*)?(?:page |path |url |route )?not.?found\W*$|\broute\b|\bpath\b|invalid url|cannot post"
)


def find_refusal(error: openai.OpenAIError, secret: str = "") -> Refusal:
    """Return the refusal in an answer with an error's status; an empty one for any other error."""
    if not isinstance(error, openai.APIStatusError):
        return Refusal("")
    body = error.response.content or error.body
    return read_refusal(body, error.status_code, secret)


def is_worth_retrying(error: openai.OpenAIError) -> bool:
    """Tell if the same request may be answered a little later."""
    if not isinstance(error, openai.APIStatusError):
        return isinstance(error, openai.APIConnectionError)
    cause = find_refusal(error).cause
    if error.response.headers.get("x-should-retry") == "false":
        return False
    if cause is RefusalCause.BAD_CALL:  # the model wrote a bad call, and may write a good one next time
        return True
    if cause is not RefusalCause.TRANSIENT:
        return False
    return error.status_code in _TEMPORARY_STATUSES or error.status_code >= _MIN_SERVER_ERROR


def may_use_stand_in(error: openai.OpenAIError) -> bool:
    """Tell if another model may answer instead: the server is down, or the account over its limit."""
    return is_worth_retrying(error) or find_refusal(error).cause is RefusalCause.MONEY


def is_timeout(error: openai.OpenAIError) -> bool:
    """Tell if the server accepted the connection, and then sent nothing in time.

    The library's own timeout error is no sign of that: it stands for a refused or a closed connection, too
    (``AIOHTTP_EXC_MAP`` in its ``_vendor/httpx_aiohttp/transport.py``). So its causes are looked at.
    """
    return _comes_from(error, TimeoutError)


def _comes_from(error: BaseException, *types: type[BaseException]) -> bool:
    """Tell if an error is of one of these types, or was caused by one."""
    return any(isinstance(cause, types) for cause in _list_causes(error))


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def find_wait(error: openai.OpenAIError) -> float | None:
    """Return the seconds that the server asks to wait, a day at most; None if it names no time.

    A header has the time as a number or a date. Without such a header, the error's own words count.
    """
    if not isinstance(error, openai.APIStatusError):
        return None
    headers = error.response.headers
    for name, units_per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return min(max(0.0, float(headers.get(name, "")) / units_per_second), _MAX_WAIT_SECONDS)
        except ValueError:
            continue
    when = _read_date(headers.get("retry-after", ""))
    if when is not None:
        now = _read_date(headers.get("date", "")) or datetime.now(UTC)
        return min(max(0.0, (when - now).total_seconds()), _MAX_WAIT_SECONDS)
    return _read_wait(find_error_text(error))


def _read_date(text: str) -> datetime | None:
    """Return the time of an HTTP date, in UTC if the date names no zone."""
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo:
        return when
    return when.replace(tzinfo=UTC)


def _read_wait(text: str) -> float | None:
    """Return the seconds to wait that an error's words name, a day at most; None if they name no time."""
    field = _RETRY_FIELD.search(text)
    if field:
        return min(float(field[1]), _MAX_WAIT_SECONDS)
    span = _RETRY_WORDS.search(text)
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


def explain(error: openai.OpenAIError, model: NamedModel, waited: float) -> ModelError:
    """Put the error of a model's server into words, without the key, and with one line of its own words.

    ``waited`` is how long people have waited for the answer, over all tries, in seconds.
    """
    match error:
        case openai.APIConnectionError() if is_timeout(error):
            return ModelError(f"The model's server did not answer within {_format_seconds(waited)}.")
        case openai.APIConnectionError() if _comes_from(error, *_CLOSED):
            return ModelError("The model's server closed the connection without an answer.")
        case openai.APIConnectionError():
            return ModelError("The model's server can't be reached.")
        case openai.APIStatusError():
            refusal = find_refusal(error, model.secret)
            model_error = _explain_too_long(refusal) or ModelError(_describe_status(error, refusal, model))
            model_error.may_be_too_long = refusal.may_be_too_long
            return model_error
        case _:
            return ModelError(BAD_ANSWER_TEXT)


def explain_refusal(refusal: Refusal, *, has_output: bool) -> ModelError:
    """Put into words an error that came with status 200, in a stream or instead of a stream.

    Returns ModelCut, as for an answer that ended early, if the error is temporary, has no known cause, or is
    about the model's own call. ``has_output``: a part of the answer came before the error.
    """
    cause = refusal.cause
    too_long = _explain_too_long(refusal)
    if too_long:
        return too_long
    if cause in (RefusalCause.TRANSIENT, RefusalCause.BAD_CALL, RefusalCause.UNKNOWN):
        cut = ModelCut(f"The model's server ended its answer early.{_quote(refusal)}")
        cut.is_transient = cause is RefusalCause.TRANSIENT
        cut.has_reason = True
        return cut
    if cause is RefusalCause.MONEY:
        model_error = ModelError(_describe_unpaid(refusal))
        model_error.other_model_may_answer = True
    else:
        reason = refusal.message or "no reason given"
        model_error = ModelError(f"The model's server refused the request: {reason}")
    model_error.may_be_too_long = refusal.may_be_too_long and not has_output
    return model_error


def explain_plain_text(refusal: Refusal) -> ModelError:
    """Put into words an answer that is only a text without a known meaning."""
    return ModelError(f"{_NOT_UNDERSTOOD_TEXT}: “{refusal.message}”. Check OPENAI_BASE_URL.")


def _explain_too_long(refusal: Refusal) -> ModelTooLong | None:
    if refusal.cause is not RefusalCause.TOO_LONG:
        return None
    text = ModelTooLong.__doc__  # the docstring of an error is its text for people
    return ModelTooLong(f"{text}{_quote(refusal)}")


def _describe_status(error: openai.APIStatusError, refusal: Refusal, model: NamedModel) -> str:
    """Describe an answer with an error's status: what happened, what to do, and the server's words."""
    status = error.status_code
    quote = _quote(refusal)
    if refusal.cause is RefusalCause.MONEY:
        return _describe_unpaid(refusal)
    if refusal.cause is RefusalCause.NO_TOOLS:
        remedy = f"Set {_tools_setting(model)} for it."
        return f"The model's server has no tool calls for {model.model}. {remedy}{quote}"
    if status == 429:  # noqa: PLR2004 - HTTP's own
        wait = find_wait(error)
        period = "" if wait is None else f" for {_format_seconds(wait)}"
        return f"The model's server is busy{period}.{quote}"
    if status >= _MIN_SERVER_ERROR:
        return f"The model's server is in trouble (HTTP {status}).{quote}"
    remedy = _find_remedy(status, refusal, model)
    if remedy:
        return f"{remedy}{quote}"
    reason = refusal.message or "no reason given"
    return f"The model's server refused the request (HTTP {status}): {reason}{_name_setting(refusal)}"


def _find_remedy(status: int, refusal: Refusal, model: NamedModel) -> str:
    """Return advice if the status and the server's words agree on the cause, else an empty text."""
    if status == 401:  # noqa: PLR2004 - HTTP's own
        return f"The model's server does not accept the API key. Please check {model.key}. {_CONTINUE_TEXT}"
    if status == 403:  # noqa: PLR2004 - HTTP's own
        is_about_key = refusal.is_about(_ABOUT_ACCESS) and not refusal.is_about(_ABOUT_PLACE)
        if not refusal.message or is_about_key:
            return f"The API key may not use the model {model.model}. {_CONTINUE_TEXT}"
        return ""
    if status == 404:  # noqa: PLR2004 - HTTP's own
        if refusal.is_about(_ABOUT_ADDRESS):
            return f"The model's server has nothing at this address. Check OPENAI_BASE_URL. {_CONTINUE_TEXT}"
        if not refusal.message or refusal.is_about(_ABOUT_MODEL):
            unknown = f"The model's server does not know the model {model.model}."
            return f"{unknown} Please check {model.setting_to_correct}. {_CONTINUE_TEXT}"
        return ""
    return ""


def _tools_setting(model: NamedModel) -> str:
    if model.setting_to_correct == "NOD_MODEL":
        return "NOD_MODEL_TOOLS=text"
    # a further model has its settings in the file that NOD_MODELS names
    return 'tools = "text"'


def _describe_unpaid(refusal: Refusal) -> str:
    quote = _quote(refusal)
    return f"The account at the model's provider has used up its quota or credit. {_CONTINUE_TEXT}{quote}"


def _quote(refusal: Refusal) -> str:
    """Return a sentence with the server's own words; empty without any."""
    if refusal.message:
        return f" It says: “{refusal.message}”"
    return ""


def _name_setting(refusal: Refusal) -> str:
    """Return a sentence on the setting that leaves out the refused field; empty if there is no such setting.

    It follows the refusal's message, so it begins with the full stop that this message may lack.
    """
    for pattern, setting in _SETTING_BY_FIELD.items():
        if re.search(pattern, refusal.message):
            end = "" if refusal.message.endswith((".", "…")) else "."
            return f"{end} Set {setting}=false if the server doesn't support it."
    return ""


def _format_seconds(seconds: float) -> str:
    """Return a time in words, such as "1 second", "90 seconds" or "5 min"."""
    if seconds >= _MIN_SECONDS_IN_MINUTES:
        return format_span(timedelta(seconds=seconds))
    rounded = max(1, round(seconds))
    if rounded == 1:
        return "1 second"
    return f"{rounded} seconds"

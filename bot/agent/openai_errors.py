"""What an OpenAI-compatible server's errors mean, in words for people. Pure; ``openai.py`` raises them."""

from typing import Any

import openai

from bot.errors import ModelError

_SIGNS = (
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
)
_SHOWN = 200  # characters of a server's own words that fit a chat message

TOO_LONG = "This conversation has grown too long for the model. Please start a new one."


def too_long(code: Any, message: Any) -> bool:
    """Whether an error object's code and message say that the transcript does not fit the model."""
    said = f"{code or ''} {message or ''}".lower()
    return any(words in said for words in _SIGNS)


def explain(error: openai.OpenAIError, *, model: str, key: str, timeout: float) -> ModelError:
    """Put the error into words. Never holds the key; the server's words are kept to one short line."""
    match error:
        case openai.APITimeoutError():
            return ModelError(f"The model's server did not answer within {timeout:g} seconds.")
        case openai.APIConnectionError():
            return ModelError("The model's server cannot be reached.")
        case openai.APIError() if too_long(error.code, error.message):
            return ModelError(TOO_LONG)
        case openai.APIStatusError():
            return ModelError(_status(error, model, key))
        case _:
            return ModelError("The model's server gave an answer Nod does not understand.")


def _status(error: openai.APIStatusError, model: str, key: str) -> str:
    status = error.status_code
    words = {
        401: "The model's server does not accept the API key. Please check OPENAI_API_KEY.",
        403: f"The API key may not use the model {model}.",
        404: f"The model's server does not know the model {model}. Please check NOD_MODEL.",
        413: "The request is too large for the model's server.",
        429: _busy(error),
    }
    if status in words:
        return words[status]
    if status >= 500:  # noqa: PLR2004 - where HTTP's server errors begin
        return f"The model's server is in trouble (HTTP {status}). Please try again in a moment."
    return f"The model's server refused the request (HTTP {status}): {_said(error, key)}"


def _busy(error: openai.APIStatusError) -> str:
    if error.code == "insufficient_quota" or error.type == "insufficient_quota":
        return "The account at the model's provider has used up its quota."
    wait = error.response.headers.get("retry-after", "")
    when = f"in {wait} seconds" if wait.isdigit() else "in a moment"
    return f"The model's server is busy. Please try again {when}."


def _said(error: openai.APIStatusError, key: str) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    line = " ".join(str(said or "no reason given").split())
    if key:
        line = line.replace(key, "…")
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"

"""The reason why an answer ended, in all the words that servers use. Pure.

No reason at all counts as a good end. A reason that is not in the lists below counts as an error, so that
half an answer never passes for a complete answer.
"""

from typing import Any

from bot.domain.model import StopReason
from bot.domain.text import shorten

_MAX_SHOWN_CHARS = 60
_NO_REASONS = frozenset({"", "null", "none", "undefined"})  # texts that stand for no reason
_FINISHED = frozenset({
    "stop", "stopped", "stop_sequence", "stop_token", "stop_str", "tool_calls", "tool_call", "tool_use",
    "function_call", "function_calls", "end_turn", "end", "eos", "eos_token", "complete", "completed",
    "done", "finish", "finished", "success",
})  # fmt: skip
_LENGTH = frozenset({
    "length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_completion_tokens", "max_length",
    "model_length", "model_context_window_exceeded", "context_length", "context_length_exceeded",
    "context_window_exceeded", "token_limit", "length_limit", "truncated", "limit",
})  # fmt: skip
_FULL_WINDOW_PREFIXES = ("model_length", "model_context", "context")
"""The beginnings of reasons that say that the prompt and the answer filled the model's window."""
_FILTERED = frozenset({
    "content_filter", "content_filtered", "content-filter", "safety", "recitation", "blocklist",
    "prohibited_content", "spii", "refusal", "sensitive", "guardrail_intervened", "error_toxic", "blocked",
    "image_safety", "policy_violation", "moderation", "flagged",
})  # fmt: skip
_TEMPORARY_SIGNS = (
    "error", "resource", "network", "overload", "abort", "timeout", "cancel", "unavailable", "busy",
)  # fmt: skip
"""Parts of reasons after which the same request may be answered a little later."""


def read_end(reason: Any) -> str:
    """Return a server's reason as one word in lower case; "" if the server gives no reason."""
    if isinstance(reason, list) and len(reason) == 1:
        reason = reason[0]
    if isinstance(reason, str):
        word = reason.strip().lower().replace(" ", "_")
    else:
        word = str(reason or "").lower()
    return "" if word in _NO_REASONS else word


def stop_of(end: str) -> StopReason | None:
    """Return the kind of an end; None for a reason that is not known.

    Gemini sends ``content_filter: PROHIBITED_CONTENT``, so the part before a colon is looked up, too.
    """
    for word in (end, end.partition(":")[0]):
        if not word or word in _FINISHED:
            return StopReason.FINISHED
        if word in _LENGTH:
            return StopReason.LENGTH
        if word in _FILTERED:
            return StopReason.FILTERED
    return None


def is_window_full(end: str, completion_tokens: int | None) -> bool:
    """Return whether an empty answer ended because the prompt left no room in the model's window.

    Call it only for an empty answer.
    """
    if end.startswith(_FULL_WINDOW_PREFIXES):
        return True
    return stop_of(end) is StopReason.LENGTH and completion_tokens == 0


def is_temporary(end: str) -> bool:
    """Return whether the same request may be answered a little later."""
    return any(sign in end for sign in _TEMPORARY_SIGNS)


def tell_end(end: str) -> str:
    """Return a sentence for people about an answer that ended early."""
    return f"The model's server ended its answer early, with the reason “{shorten(end, _MAX_SHOWN_CHARS)}”."

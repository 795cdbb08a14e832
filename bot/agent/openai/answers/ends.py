"""The reason why an answer ended, in all words that servers have for it. Pure.

What is not known to be a good end is a cut: half an answer never counts as one.
"""

from typing import Any

from bot.domain.model import Stop
from bot.domain.text import shorten

_MAX_SHOWN_CHARS = 60
_UNSAID = frozenset({"", "null", "none", "undefined"})
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
_OF_THE_WINDOW = (
    "model_length",
    "model_context",
    "context",
)  # these say that the prompt and the answer filled it
_FILTERED = frozenset({
    "content_filter", "content_filtered", "content-filter", "safety", "recitation", "blocklist",
    "prohibited_content", "spii", "refusal", "sensitive", "guardrail_intervened", "error_toxic", "blocked",
    "image_safety", "policy_violation", "moderation", "flagged",
})  # fmt: skip
_PASSING = ("error", "resource", "network", "overload", "abort", "timeout", "cancel", "unavailable", "busy")


def read_end(reason: Any) -> str:
    """Return a server's reason as one word in lower case; "" where it says none."""
    if isinstance(reason, list) and len(reason) == 1:
        reason = reason[0]
    if isinstance(reason, str):
        word = reason.strip().lower().replace(" ", "_")
    else:
        word = str(reason or "").lower()
    return "" if word in _UNSAID else word


def stop_of(end: str) -> Stop | None:
    """Return the reason why an answer stopped; None for an end that is not known to be good.

    Gemini says ``content_filter: PROHIBITED_CONTENT``, so that what stands before a colon counts as well.
    """
    for word in (end, end.partition(":")[0]):
        if not word or word in _FINISHED:
            return Stop.FINISHED
        if word in _LENGTH:
            return Stop.LENGTH
        if word in _FILTERED:
            return Stop.FILTERED
    return None


def is_window_full(end: str, completion_tokens: int | None) -> bool:
    """Return whether an answer without a word ended because the prompt left no room for one."""
    return end.startswith(_OF_THE_WINDOW) or (stop_of(end) is Stop.LENGTH and completion_tokens == 0)


def may_pass(end: str) -> bool:
    """Return whether the same request may be answered a little later."""
    return any(sign in end for sign in _PASSING)


def tell_end(end: str) -> str:
    """Say for people that an answer ended in a way that is not good."""
    return f"The model's server ended its answer early, with the reason “{shorten(end, _MAX_SHOWN_CHARS)}”."

"""Why an answer ended: what is not known to be a good end counts as a cut."""

import pytest

from bot.agent.openai.answers.end_reasons import is_temporary, read_end, stop_of
from bot.domain.model import StopReason

ENDS = {
    StopReason.FINISHED: ("stop", "tool_calls", "function_call", "STOP", "end_turn", "tool_use",
                          "stop_sequence", "eos", "eos_token", "complete", None, "", "null"),
    StopReason.LENGTH: ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length",
                        "model_context_window_exceeded"),
    StopReason.FILTERED: ("content_filter", "SAFETY", "RECITATION", "sensitive", "refusal",
                    "content_filter: PROHIBITED_CONTENT"),
    None: ("error", "insufficient_system_resource", "network_error", "abort", "cancelled", "OTHER",
           "pause_turn", "MALFORMED_FUNCTION_CALL", "function_call_filter: MALFORMED_FUNCTION_CALL",
           "unknown", {"x": 1}, 5),
}  # fmt: skip


@pytest.mark.parametrize(
    ("stop", "reason"), [(stop, reason) for stop, some in ENDS.items() for reason in some]
)
def test_each_reason_is_known_or_a_cut(stop: StopReason | None, reason: object) -> None:
    assert stop_of(read_end(reason)) is stop


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "network_error", "overloaded"])
def test_an_outage_is_temporary(reason: str) -> None:
    assert is_temporary(reason)


def test_a_call_that_the_model_garbled_does_not_pass_by_itself() -> None:
    assert not is_temporary("malformed_function_call")

"""A streamed answer of Chat Completions: the fields that only its server has."""

import pytest

from bot.agent.openai.answers.chat import ChatAnswer

CALL = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (["th", "ought"], "thought"),
        ([[{"a": 1}], [{"b": 2}]], [{"a": 1}, {"b": 2}]),
        (["th", [{"a": 1}]], [{"a": 1}]),
        ([[{"a": 1}], "thought"], "thought"),
        (["th", {"a": 1}, "ought"], "ought"),
    ],
    ids=["pieces of a text", "items of a list", "text, then a list", "a list, then text", "three types"],
)
def test_a_field_of_the_server_is_sent_back_as_it_came_last(values: list[object], kept: object) -> None:
    answer = ChatAnswer("m")
    for value in values:
        answer.take({"choices": [{"index": 0, "delta": {"own_details": value}}]})
    answer.take({"choices": [{"index": 0, "delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]})
    [call] = answer.make_finished().calls
    assert call.server_fields["answer"] == {"own_details": kept}

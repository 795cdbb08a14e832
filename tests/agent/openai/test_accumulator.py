"""Calls put together from fragments, as OpenAI and as odd servers send them."""

import json
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.openai.answers.calls import Calls
from bot.domain.model import ToolCall
from tests.fakes.openai_server import fragment


def accumulated(*fragments) -> tuple[ToolCall, ...]:
    numbers = count(1)
    calls = Calls(make_id=lambda: f"made_{next(numbers)}")
    for one in fragments:
        calls.add([one])
    return calls.finish()


def test_an_id_on_the_first_fragment_only_is_enough():
    assert accumulated(
        fragment(index=0, call_id="a", name="close", arguments=""),
        fragment(index=0, arguments='{"number"'),
        fragment(index=0, arguments=": 2}"),
    ) == (ToolCall("a", "close", '{"number": 2}'),)


def test_two_calls_told_apart_by_index_may_come_interleaved():
    assert accumulated(
        fragment(index=0, call_id="a", name="one", arguments="{"),
        fragment(index=1, call_id="b", name="two", arguments="["),
        fragment(index=0, arguments="}"),
        fragment(index=1, arguments="]"),
    ) == (ToolCall("a", "one", "{}"), ToolCall("b", "two", "[]"))


def test_a_new_id_begins_a_new_call_even_at_the_same_index():
    assert accumulated(
        fragment(index=0, call_id="a", name="one", arguments="{"),
        fragment(index=0, arguments="}"),
        fragment(index=0, call_id="b", name="one", arguments="{}"),
    ) == (ToolCall("a", "one", "{}"), ToolCall("b", "one", "{}"))


def test_a_missing_index_continues_the_last_call():
    assert accumulated(
        fragment(call_id="a", name="one", arguments="{"),
        fragment(arguments='"x": 1'),
        fragment(arguments="}"),
        fragment(call_id="b", name="two", arguments="{}"),
    ) == (ToolCall("a", "one", '{"x": 1}'), ToolCall("b", "two", "{}"))


def test_an_index_that_comes_late_continues_the_last_call():
    assert accumulated(
        fragment(call_id="a", name="one", arguments="{"),
        fragment(index=0, arguments="}"),
    ) == (ToolCall("a", "one", "{}"),)


def test_whole_calls_without_ids_at_one_index_stay_apart_and_get_ids():
    assert accumulated(
        fragment(index=0, name="close", arguments='{"number": 2}'),
        fragment(index=0, name="close", arguments='{"number": 4}'),
    ) == (ToolCall("made_1", "close", '{"number": 2}'), ToolCall("made_2", "close", '{"number": 4}'))


def test_a_call_without_an_id_that_comes_again_at_its_place_is_one_call():
    again = fragment(index=0, name="close", arguments='{"number": 2}')
    other = fragment(index=0, name="close", arguments='{"number": 4}')
    assert [call.arguments for call in accumulated(again, again, other, again)] == [
        '{"number": 2}',
        '{"number": 4}',
    ]
    assert len(accumulated(again, {**again, "index": 1})) == 2


def test_a_name_and_an_id_repeated_in_each_fragment_are_one_call():
    assert accumulated(
        fragment(index=0, call_id="a", name="one", arguments='{"x"'),
        fragment(index=0, call_id="a", name="one", arguments=": 1}"),
    ) == (ToolCall("a", "one", '{"x": 1}'),)


def test_a_name_repeated_without_an_id_is_one_call_until_its_arguments_are_whole():
    assert accumulated(
        fragment(index=0, name="one", arguments='{"x"'),
        fragment(index=0, name="one", arguments=": 1}"),
    ) == (ToolCall("made_1", "one", '{"x": 1}'),)


def test_two_calls_under_one_id_get_different_ids():
    first, second = accumulated(
        fragment(index=0, call_id="a", name="one", arguments="{}"),
        fragment(index=1, call_id="a", name="two", arguments="{}"),
    )
    assert (first.id, second.id) == ("a", "made_1")


def test_null_names_and_arguments_add_nothing():
    calls = Calls()
    calls.add(None)
    calls.add([{"index": 0, "id": "a", "function": {"name": "one", "arguments": None}}])
    calls.add([{"index": 0, "id": None, "function": {"name": None, "arguments": "{}"}}])
    calls.add([{"index": 0, "function": None}])
    assert calls.finish() == (ToolCall("a", "one", "{}"),)


def test_no_arguments_at_all_are_an_empty_object():
    assert accumulated(fragment(index=0, call_id="a", name="workload")) == (ToolCall("a", "workload", "{}"),)


def test_arguments_sent_as_an_object_become_its_text():
    (call,) = accumulated({"id": "a", "function": {"name": "one", "arguments": {"x": "é"}}})
    assert call.arguments == '{"x": "é"}'


def test_a_call_that_never_got_a_name_is_left_out():
    assert accumulated(fragment(index=0, call_id="a", arguments="{}")) == ()


_names = st.sampled_from(["close_issue", "note_add", "workload"])
_objects = st.dictionaries(st.text(max_size=6), st.integers() | st.text(max_size=12), max_size=4)


@st.composite
def _split_streams(draw):
    """Calls, and one way to send them: cut anywhere, with any fields a server may leave out or repeat."""
    wanted = [
        ToolCall(f"call_{position}", name, json.dumps(arguments))
        for position, (name, arguments) in enumerate(
            draw(st.lists(st.tuples(_names, _objects), min_size=1, max_size=4))
        )
    ]
    indexing = draw(st.sampled_from(["own", "shared", "missing"]))
    repeats_id, repeats_name = draw(st.booleans()), draw(st.booleans())
    queues = []
    for position, call in enumerate(wanted):
        index = {"own": position, "shared": 0, "missing": None}[indexing]
        cuts = sorted(draw(st.lists(st.integers(0, len(call.arguments)), max_size=5)))
        edges = [0, *cuts, len(call.arguments)]
        parts = [call.arguments[start:end] for start, end in pairwise(edges)]
        queues.append(
            [
                fragment(
                    index=index,
                    call_id=call.id if first or repeats_id else None,
                    name=call.name if first or (repeats_name and repeats_id) else None,
                    arguments=part,
                )
                for first, part in zip([True] + [False] * len(parts), parts, strict=False)
            ]
        )
    # only a server that numbers its calls can send them side by side
    side_by_side = indexing == "own" and draw(st.booleans())
    sent = [queue.pop(0) for queue in queues] if side_by_side else []
    while queues := [queue for queue in queues if queue]:
        turn = draw(st.integers(0, len(queues) - 1)) if side_by_side else 0
        sent.append(queues[turn].pop(0))
    return wanted, sent, draw(st.booleans())


@pytest.mark.slow
@given(_split_streams())
def test_any_split_of_a_call_stream_gives_the_same_calls(case):
    wanted, sent, in_one_chunk = case
    calls = Calls()
    if in_one_chunk:
        calls.add(sent)
    else:
        for one in sent:
            calls.add([one])
    assert calls.finish() == tuple(wanted)


@given(st.lists(st.tuples(_names, _objects), max_size=4), st.sampled_from(["own", "shared", "missing"]))
def test_whole_calls_without_ids_are_all_there_in_order(wanted, indexing):
    sent = [
        fragment(
            index={"own": position, "shared": 0, "missing": None}[indexing],
            name=name,
            arguments=json.dumps(arguments),
        )
        for position, (name, arguments) in enumerate(wanted)
    ]
    if indexing == "shared":  # what is there twice at one place is one call
        wanted = [each for at, each in enumerate(wanted) if each not in wanted[:at]]
    assert [(call.name, json.loads(call.arguments)) for call in accumulated(*sent)] == wanted

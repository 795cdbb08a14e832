"""Long output: cut for the model, kept whole, read further by its handle."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.tools import outputs as output_tool
from bot.approvals.tools.outputs import output_tools
from bot.domain.files import File
from bot.domain.outcomes import MAX_RESULT, find_full_text, shorten_result
from bot.domain.risks import Level
from bot.errors import BadArguments, ToolError
from bot.store import outputs
from tests.tools.calls import Hands


@pytest.fixture
def hands(database):
    return Hands(output_tools(database))


async def cut(database, conversation, text, clock):
    return await output_tool.cut(database, conversation, File("look.txt", text), clock)


def handle_in(text: str) -> str:
    return text.partition("handle='")[2].partition("'")[0]


async def test_a_short_text_is_told_as_it_is_and_not_kept(database, clock):
    assert await cut(database, "c1", "x" * MAX_RESULT, clock) == "x" * MAX_RESULT


async def test_a_long_text_is_told_with_its_end_and_can_be_read_further_to_the_last_character(
    database, clock, hands
):
    text = "".join(f"{n:06}\n" for n in range(10_000))
    told = await cut(database, "c1", text, clock)
    assert len(told) <= MAX_RESULT
    assert text.startswith(told.partition("\n[")[0])
    assert told.endswith("009999\n")
    offset, read = 0, ""
    while offset is not None:
        part = await hands.run("output_read", handle=handle_in(told), offset=offset)
        read, offset = read + part["text"], part["next_offset"]
    assert read == text


async def test_the_offset_that_is_told_is_where_the_beginning_ended(database, clock, hands):
    text = "".join(f"{n:06}\n" for n in range(10_000))
    told = await cut(database, "c1", text, clock)
    offset = int(told.partition("offset=")[2].partition(")")[0])
    assert told[offset:].startswith("\n[")
    part = await hands.run("output_read", handle=handle_in(told), offset=offset)
    assert text.startswith(told[:offset] + part["text"])


async def test_what_is_shortened_again_still_says_how_the_whole_is_read(database, clock, hands):
    text = "".join(f"{n:06}\n" for n in range(10_000))
    told = await cut(database, "c1", text, clock)
    handle, length = find_full_text(told)
    assert (handle, length) == (handle_in(told), len(text))
    again = shorten_result(told, handle, 2_000, length)
    assert len(again) <= 2_000
    assert find_full_text(again) == (handle, len(text))
    offset = int(again.partition("offset=")[2].partition(")")[0])
    part = await hands.run("output_read", handle=handle, offset=offset)
    assert text.startswith(again[:offset] + part["text"])


async def test_what_only_quotes_where_another_text_was_cut_is_no_such_text(database, clock):
    told = await cut(database, "c1", "x" * 30_000, clock)
    assert find_full_text(f"> {told}") is None
    assert find_full_text("x" * 100) is None


async def test_another_conversation_cannot_read_it(database, clock, hands):
    handle = handle_in(await cut(database, "c1", "x" * 30_000, clock))
    with pytest.raises(ToolError, match="no output"):
        await hands.run("output_read", "c2", handle=handle)


async def test_what_no_database_keeps_is_left_out_or_replaced(database, clock, hands):
    handle = handle_in(await cut(database, "c1", "a\0b\ud800c" + "x" * 30_000, clock))
    assert (await hands.run("output_read", handle=handle))["text"].startswith("ab?c")


async def test_reading_beyond_the_end_is_empty(database, clock, hands):
    handle = handle_in(await cut(database, "c1", "x" * 30_000, clock))
    told = await hands.run("output_read", handle=handle, offset=10**9)
    assert told == {"text": "", "next_offset": None, "total": 30_000}


@pytest.mark.parametrize("handle", ["", "out-1", "out-" + "g" * 16, "'; DROP TABLE output; --"])
async def test_what_is_no_handle_is_refused(hands, handle):
    with pytest.raises(BadArguments):
        await hands.run("output_read", handle=handle)


async def test_old_texts_are_forgotten(database, clock, hands):
    old = handle_in(await cut(database, "c1", "x" * 30_000, clock))
    clock.forward(timedelta(days=2))
    new = handle_in(await cut(database, "c1", "y" * 30_000, clock))
    assert await database.write(outputs.purge, clock() - timedelta(days=1), 25) == 1
    with pytest.raises(ToolError, match="forgotten"):
        await hands.run("output_read", handle=old)
    assert (await hands.run("output_read", handle=new))["total"] == 30_000


@given(st.integers(501, 5000), st.integers(500, 2000))
def test_a_shortened_text_is_never_longer_than_asked(length, most):
    told = shorten_result("x" * (most + length), "out-0123456789abcdef", most)
    assert len(told) <= most
    assert told.startswith("x")
    assert told.endswith("x")


def test_reading_further_is_a_read(hands):
    assert hands.tools["output_read"].reads
    assert hands.risk("output_read", handle="out-0123456789abcdef").level is Level.READ

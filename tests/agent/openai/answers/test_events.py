"""The bytes of a stream as events, however they are cut and whichever line ends they have."""

from collections.abc import AsyncIterator

import pytest

from bot.agent.openai.answers.events import (
    MAX_EVENT_BYTES,
    Event,
    EventTooLongError,
    split_events,
    split_lines,
)

TWO = b"data: a\n\nevent: error\ndata: b\ndata: c\n\n"


async def events(raw: bytes, size: int = 1000) -> list[Event]:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(raw), size):
            yield raw[at : at + size]

    return [event async for event in split_events(chunks())]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
async def test_line_ends_and_a_byte_order_mark_lose_no_event(end: bytes, mark: bytes, size: int) -> None:
    assert await events(mark + TWO.replace(b"\n", end), size) == [Event("a"), Event("b\nc", "error")]


async def test_an_object_on_a_bare_line_is_an_event_and_words_are_stray() -> None:
    raw = b'data: a\n\n{"error": "x"}\nupstream connect error\ndata: b'
    assert await events(raw) == [
        Event("a"),
        Event('{"error": "x"}'),
        Event("b"),
        Event("upstream connect error\n", is_stray=True),
    ]


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: x\n" * 8_192], ids=["a line", "an event"])
async def test_what_never_ends_is_bounded(piece: bytes) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"data: "
        while True:
            yield piece

    with pytest.raises(EventTooLongError):
        _ = [event async for event in split_events(chunks())]


async def test_short_lines_may_come_in_one_piece_of_any_size() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"data: x\n\n" * (MAX_EVENT_BYTES // 8)

    assert len([event async for event in split_events(chunks())]) == MAX_EVENT_BYTES // 8


async def test_a_line_that_is_too_long_is_refused_wherever_it_stands_in_a_piece() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"a\n" + b"x" * (MAX_EVENT_BYTES + 1) + b"\nb"

    with pytest.raises(EventTooLongError):
        _ = [line async for line in split_lines(chunks())]


async def test_stray_words_without_an_end_are_kept_in_part() -> None:
    [stray] = await events(b"words\n" * 100_000)
    assert len(stray.data) < 10_000


@pytest.mark.parametrize("word", ["é", "語", "🙂"])
async def test_a_long_stray_line_is_cut_between_characters(word: str) -> None:
    for shift in range(4):
        [stray] = await events(("x" * shift + word * 5_000).encode())
        assert stray.data.rstrip("\n").strip("x").strip(word) == ""


async def test_a_stray_line_of_other_bytes_is_refused_at_any_length() -> None:
    for count in (1, 5_000):
        with pytest.raises(UnicodeDecodeError):
            await events(b"\x80" * count + b"\xff")

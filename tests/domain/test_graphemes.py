"""A text is never cut within what people see as one character."""

import pytest
import regex

from bot.channels.discord.text import width
from bot.channels.markdown import prefix
from bot.channels.telegram import text as telegram
from bot.domain.text import find_cut, shorten

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
WHOLE = [FAMILY, "🏳\ufe0f\u200d🌈", "👍🏽", "e\u0301\u0323", "क्षि", "🇪🇺", "1\ufe0f\u20e3", "한국"]


def torn(text: str, part: str) -> bool:
    return part not in ("".join(regex.findall(r"\X", text)[:count]) for count in range(len(text) + 1))


@pytest.mark.parametrize("one", WHOLE, ids=ascii)
def test_no_cut_falls_within_what_is_seen_as_one(one: str) -> None:
    for before in range(1, 12):
        text = "x" * before + one * 4
        for most in range(before + 1, len(text) + 1):
            kept = shorten(text, most)
            assert len(kept) <= most
            assert not torn(text, kept.removesuffix("…"))
            assert not torn(text, prefix(text, most, width))


def test_a_long_answer_in_telegram_is_split_between_families() -> None:
    parts = telegram.split(telegram.plain(FAMILY * 2000))
    assert len(parts) > 1
    assert "".join(part.text for part in parts) == FAMILY * 2000
    assert all(part.text.endswith(FAMILY) for part in parts)


def test_a_run_of_marks_without_end_is_cut_all_the_same() -> None:
    marks = "e" + "\u0301" * 100_000
    assert find_cut(marks, 50_000) == 50_000
    assert len(shorten(marks, 50)) == 50

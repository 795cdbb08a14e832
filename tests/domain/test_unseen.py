"""What people would not see is spelled out, by Unicode's own data; emoji and scripts stay whole."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import regex

from bot.domain.text import HIDDEN, WRITTEN, escape_point, make_visible

DOM = Path(__file__).parents[2] / "bot/web/static/dom.js"
BY_UNICODE = regex.compile(
    r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]"
)
# a tab and a new line, and the signs before numbers and verses, which are drawn
SEEN = {*"\t\n", *map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD))}
BLANK = {*"\u2800\ufffc\U00013441\U00013442\U00016fe4\U0001d159"}
WHOLE = [
    "👨\u200d👩\u200d👧",
    "🏳\ufe0f\u200d🌈",
    "👍🏽 ❤\ufe0f 1\ufe0f\u20e3 🇪🇺",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "می\u200cخواهم",  # noqa: RUF001 - Persian
    "क्\u200dष",
    "नमस्ते, 你好, e\u0301, שָׁלוֹם, ไทย",
]
HIDING = [
    *("a\u3164b", "\u115f", "\u1160", "\uffa0", "\u2800", "\u034f", "\u17b4", "\u180b", "\U0001d173"),
    *("\U000e0100", "a\ufe0f", "a\u200db", "1\u200c", "\u202egnp", "\U000e0061", "\ufeff", "\u2066", "\x1b"),
    "🏴\U000e0061\U000e0062\U000e007f",
]


def test_the_table_is_that_of_unicode() -> None:
    ends = [[int(end, 16) for end in each.split("-")] for each in HIDDEN.split()]
    table = {point for each in ends for point in range(each[0], each[-1] + 1)}
    every = map(chr, range(0x110000))
    assert table == {ord(each) for each in every if BY_UNICODE.match(each) and each not in SEEN} | set(
        map(ord, BLANK)
    )


def test_the_console_has_the_same_tables() -> None:
    script = DOM.read_text(encoding="utf-8")
    assert f'const HIDDEN = "{HIDDEN}";' in script
    assert f"const WRITTEN = String.raw`{WRITTEN}`;" in script


@pytest.mark.parametrize("text", WHOLE, ids=ascii)
def test_emoji_and_scripts_stay_whole(text: str) -> None:
    assert make_visible(text, escape_point) == text


@pytest.mark.parametrize("text", HIDING, ids=ascii)
def test_what_no_one_sees_is_spelled_out(text: str) -> None:
    assert "\\" in make_visible(text, escape_point)


NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_console_tells_the_same_apart() -> None:
    script = DOM.read_text(encoding="utf-8")
    tables = "\n".join(re.findall(r"^const (?:HIDDEN|WRITTEN|hidden|UNSEEN) = .*$", script, re.MULTILINE))
    tells = "(text) => [...text.matchAll(UNSEEN)].some((found) => found[1])"
    asked = f"{tables}\nconsole.log(JSON.stringify({json.dumps([*WHOLE, *HIDING])}.map({tells})))"
    told = subprocess.run([str(NODE), "-e", asked], capture_output=True, check=True, text=True)  # noqa: S603
    assert json.loads(told.stdout) == [False] * len(WHOLE) + [True] * len(HIDING)

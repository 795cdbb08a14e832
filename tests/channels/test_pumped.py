"""Text that a model or a stranger blows up: each text function takes time and space in step with its length.

Time is of the processor, as a ratio within one run; what is over in no time is not compared.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import pytest

from bot.channels import markdown
from bot.channels.discord import text as discord
from bot.channels.slack import blocks, marks
from bot.channels.slack import text as slack
from bot.channels.tables import MAX_BRACKETS, lay_out_tables
from bot.channels.telegram import text as telegram
from bot.channels.telegram.markdown import from_markdown
from bot.cli import shared
from bot.domain import text
from tests.tiers import MORE

LONGEST = 45_000
_FACTOR = 2.5
_IN_NO_TIME = 0.15  # seconds
_TRIES = 4
_CALLS = 40  # for a character
_SHORTER = (LONGEST // 8, LONGEST // 4, LONGEST // 2)
_FIRST = LONGEST // 4  # most need not be tried longer: what grows with the square takes 16 times as long

# fmt: off
_PUMPS = (
    "- ", "-\n", "* ", "+ ", "1. ", "1) ", "> ", ">\n", "> a\n\n", "> - ", "- > ", "> 1. ", "- a\n\n",
    "  - a\n", "- [ ] ", "# ", "#", "===\n", "a\n===\n", "---\n", "--", "*", "_", "**", "*_", "*a **b ",
    "**a** ", "a*b_", "~", "~~", "~a ", "`", "a`", "`a` ", "``` ", "```\n", "~~~\n", "    a\n", "\\",
    "\\\n", "[", "]", "(", ")", "[[", "((", "](", "[](", "[a](b) ", "[a][b]", "[^a]", "[x]: y\n", "![",
    "![a](b)", "<", "<a ", "<b>", "<!", "<!x", "<?", "<!--", "<![CDATA[", "<@U", "<@U1|", "<#C1|",
    "<!subteam^S|", "<a|b", "<https://a.b|a> ", "<https://a", "<tg-spoiler>", "|", "||", "||a|| ", "a|",
    "|-", "|:-:", "|a|\n|-|\n|a|\n", "$", "$$", "$1 ", "$1$", "\\(", "\\[", "&", "&amp;", "&#1;", '"',
    "'", "“", "”", "{", "}", ":", "::", "@a ", "@everyone ", "http://", "http://a.b ", "www.a", "a.",
    "a@b.", "tg://", "slack:T1/U1 ", "telegram:1 ", "⟨U+0000⟩", "👩‍👩‍👧", "🇬🇧", "e\u0301", "é", "ﷺ",
    "\u200b", "\u3164", "\ufe0f", "\t", "  \n", "\n", "\r\n", "\r", "\x00", "\ud83d", "a ",
)
# fmt: on

_FUNCTIONS: dict[str, Callable[[str], str | Iterable[str]]] = {
    "telegram.split": lambda text: [each.text for each in telegram.split(from_markdown(text))],
    "telegram.plain": lambda text: telegram.plain(text).text,
    "telegram.styled": lambda text: [each.text for each in telegram.split(telegram.style(text, "pre"))],
    "slack.escape": slack.escape,
    "slack.neutralise": slack.neutralise,
    "slack.harmless": lambda text: slack.cut_and_neutralise(text, 11_000),
    "slack.cut": lambda text: slack.cut(text, 3000)[0],
    "slack.split_plain": lambda text: slack.split_plain(text, 3000),
    "slack.split": slack.split,
    "slack.one_line": slack.one_line,
    "slack.literal": slack.escape_line,
    "slack.with_mentions": lambda text: slack.with_mentions(text, "T1"),
    "slack.block": lambda text: str(blocks.markdown(text)),
    "slack.mentioned_users": marks.list_mentioned_users,
    "slack.with_addresses": lambda text: marks.with_addresses(text, "T1", {}),
    "slack.named_in": lambda text: marks.find_names(text, "T1"),
    "slack.readable": lambda text: marks.make_readable(text, {}),
    "discord.literal": discord.literal,
    "discord.neutralise": discord.neutralise,
    "discord.fenced": discord.fence,
    "discord.cut": lambda text: discord.cut_label(text, 2000),
    "discord.split": discord.split,
    "discord.text": lambda text: discord.DiscordTextBuilder().cut(text, 4000),
    "markdown.clean": markdown.clean,
    "markdown.open_fence": lambda text: str(markdown.open_fence(text)),
    "cli.plain": shared.escape_for_terminal,
    "cli.line": shared.redact_line,
    "cli.fitted": shared.fit_to_terminal,
    "quoting.in_reply_to": lambda words: text.format_reply("Ana", words, words),
    "unseen.one_line": text.one_line,
}


def _pumped(pump: str, length: int) -> str:
    return (pump * (length // len(pump) + 1))[:length] + "word"


def _made(function: Callable[[str], str | Iterable[str]], text: str) -> tuple[float, int]:
    """Seconds that it took, and characters that came of it."""
    gc.collect(0)
    begun = time.process_time()
    made = function(text)
    took = time.process_time() - begun
    return took, len(made) if isinstance(made, str) else sum(map(len, made))


@pytest.mark.slow
@pytest.mark.parametrize("pumps", [_PUMPS[::6], pytest.param(_PUMPS, marks=MORE)], ids=["a sixth", "all"])
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_a_text_twice_as_long_takes_and_makes_at_most_two_and_a_half_times_as_much(
    name: str, pumps: tuple[str, ...]
):
    function, worse = _FUNCTIONS[name], {}
    gc.disable()
    try:
        for pump in pumps:
            took, made = _made(function, _pumped(pump, _FIRST))
            if took <= _IN_NO_TIME / 16 and made <= _FACTOR * _FIRST // 2:
                continue  # however little the half of it takes and makes
            for _ in range(_TRIES):
                took, made = _made(function, _pumped(pump, _SHORTER[0]))
                for length in (*_SHORTER[1:], LONGEST):
                    longer, more = _made(function, _pumped(pump, length))
                    slow = longer > max(_FACTOR * took, _IN_NO_TIME)
                    if slow or more > _FACTOR * max(made, length // 2):
                        worse[pump] = (length, took, longer, made, more)
                        break
                    took, made = longer, more
                else:
                    worse.pop(pump, None)
                    break
                if not slow:
                    break  # characters are counted, not measured
    finally:
        gc.enable()
    assert worse == {}


@pytest.mark.parametrize("pump", ["![", "[", "[[", "![](", "[](", "<![CDATA[", "|![", "![|"])
@pytest.mark.parametrize("parse", [from_markdown, lay_out_tables, discord.split])
def test_brackets_that_nothing_closes_cost_the_parser_few_calls_each(
    parse: Callable[[str], object], pump: str
):
    assert _count_calls(parse, _pumped(pump, length := 16_000)) < _CALLS * length


def test_a_text_with_more_brackets_than_anyone_reads_shows_the_rest_as_it_was_written():
    links = "\n\n".join("[a](https://a.example)" for _ in range(MAX_BRACKETS + 1))
    made = from_markdown(links)
    assert made.text == "\n\n".join([*("a" for _ in range(MAX_BRACKETS)), "[a](https://a.example)"])
    assert len(made.entities) == MAX_BRACKETS


def _count_calls(function: Callable[[str], object], text: str) -> int:
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function(text)
    finally:
        sys.setprofile(None)
    return calls

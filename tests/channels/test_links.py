"""A link whose words name another address shows where it leads, however it is written."""

from collections.abc import Callable

import pytest

from bot.channels.discord import text as discord
from bot.channels.markdown import misleads
from bot.channels.slack import text as slack

WRITTEN = [
    "[https://bank.example](https://evil.example)",
    "[see [1] https://bank.example](https://evil.example)",
    "[https://bank.example](https://evil.example/a_(b))",
    "[https://bank.example](<https://evil.example/a(b>)",
    "[pay at\nhttps://bank.example](https://evil.example)",
    r"[https\://bank.example](https://evil.example)",
    '[https://bank.example](https://evil.example "a (title]")',
    "[https://bank.example](https://bank.example@evil.example)",
]
DEFINED = [
    "[https://bank.example][x]\n\n[x]: https://evil.example",
    "[https://bank.example]\n\n  [https://bank.example]: https://evil.example",
]
HONEST = (
    "[the page](https://bank.example/a_(b)), [bank.com](https://bank.com/x) and [https://a.io](https://a.io)"
)


@pytest.mark.parametrize("neutral", [slack.neutralise, discord.neutralise])
def test_no_link_names_another_address_than_it_leads_to(neutral: object) -> None:
    assert callable(neutral)
    for text in WRITTEN:
        shown = neutral(text)
        assert "](" not in shown, text
        assert "(https://" in shown, text
    for text in DEFINED:
        assert "]: https" not in neutral(text), text
    assert neutral(HONEST) == HONEST


def test_slacks_own_links_are_text() -> None:
    assert slack.neutralise("<https://evil.example|https://bank.example>").startswith("<\u200b")


@pytest.mark.parametrize("neutralise", [slack.neutralise, discord.neutralise])
@pytest.mark.parametrize("word", ["ab\u00adcd", "שלום\u200f!", "ភាសា\u200bខ្មែរ", "می\u200cکنم", "a\u2060b"])
def test_marks_that_words_are_written_with_stay_in_an_answer(
    neutralise: Callable[[str], str], word: str
) -> None:
    assert neutralise(word) == word


@pytest.mark.parametrize("neutralise", [slack.neutralise, discord.neutralise])
def test_marks_that_turn_words_around_or_hide_some_go_from_an_answer(
    neutralise: Callable[[str], str],
) -> None:
    assert neutralise("safe\u202etxt\u2066.exe\U000e0041") == "safetxt.exe"
    assert neutralise("<\u2066@U1>") == "<\u200b@U1>"


@pytest.mark.parametrize("mark", ["\u200b", "\u00ad", "\u2060"])
def test_an_unseen_mark_in_a_name_hides_no_other_host(mark: str) -> None:
    assert misleads(f"bank{mark}.com", "https://evil.example")

"""Text: mentions notify no one, nothing is lost when it is split, a cut says how much is missing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.markdown import clean, open_fence
from bot.channels.slack.text import (
    cut,
    cut_and_neutralise,
    escape,
    escape_line,
    neutralise,
    split,
    split_plain,
    width,
)


@pytest.mark.parametrize(
    "evil", ["<!channel>", "<!here|x>", "<@U7>", "<#C1>", "<!subteam^S1>", "<<!everyone>>"]
)
def test_a_special_mention_is_broken_up(evil: str) -> None:
    assert not re.search(r"<[!@#]", neutralise(f"a {evil} b `{evil}`"))


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[https://good.com/x](https://evil.com)", "https://good.com/x (https://evil.com)"),
        ("[good.com](https://good.com.evil.com)", "good.com (https://good.com.evil.com)"),
        ("[www.good.com](<https://good.com@evil.com> 'x')", "www.good.com (https://good.com@evil.com)"),
        ("[good.com](https://www.good.com/y)", "[good.com](https://www.good.com/y)"),
        ("[README.md](https://good.com/README.md)", "[README.md](https://good.com/README.md)"),
        ("[the page](https://good.com)", "[the page](https://good.com)"),
    ],
)
def test_a_link_whose_words_name_another_host_shows_where_it_leads(link: str, shown: str) -> None:
    assert neutralise(link) == shown


@given(st.text())
def test_no_text_keeps_a_special_mention(text: str) -> None:
    assert not re.search(r"<[!@#]", neutralise(text + "<!x>"))


def test_plain_links_and_code_stay_as_they_are() -> None:
    text = "see <https://example.org> and `a < b && c`"
    assert neutralise(text) == text


def test_the_three_characters_of_mrkdwn_are_escaped() -> None:
    assert escape("a<b>&c") == "a&lt;b&gt;&amp;c"


@given(st.text(st.characters(codec="utf-8")), st.integers(40, 200))
def test_a_cut_text_fits_and_says_how_much_is_missing(text: str, limit: int) -> None:
    short, missing = cut(text, limit)

    assert width(short) <= limit
    if missing:
        kept, count = re.fullmatch(r"(?s)(.*)… \[(\d+) more characters\]", short).groups()  # type: ignore[union-attr]
        assert clean(text).startswith(kept)
        assert int(count) == len(clean(text)) - len(kept)
    else:
        assert short == clean(text)


@given(st.text(st.characters(codec="utf-8"), max_size=500), st.integers(10, 60))
def test_chunks_lose_nothing(text: str, limit: int) -> None:
    pieces = split_plain(text, limit)

    assert "".join(pieces) == clean(text)
    assert all(width(p) <= limit for p in pieces)


@given(
    st.lists(st.sampled_from(["word ", "a b c\n", "\n\n", "&<>", "😀", "long" * 30]), max_size=200),
    st.integers(500, 900),
)
def test_split_text_fits_and_keeps_every_word(parts: list[str], limit: int) -> None:
    text = "".join(parts)
    posts = split(text, limit)

    assert all(width(p) <= limit for p in posts)
    assert "".join("".join(posts).split()) == "".join(text.split())


def test_text_is_split_between_paragraphs() -> None:
    paragraphs = [f"paragraph {n} " + "word " * 60 for n in range(10)]
    posts = split("\n\n".join(paragraphs), 1000)

    assert len(posts) > 3
    assert all(p.startswith("paragraph") for p in posts)


def test_a_fence_is_closed_at_a_cut_and_opened_again() -> None:
    code = "\n".join(f"x{n} = {n}" for n in range(300))
    posts = split(f"Here:\n\n```python\n{code}\n```\n\nDone.", 1000)

    assert len(posts) > 3
    for post in posts:
        assert open_fence(post) is None
    assert all(p.startswith("```python\n") for p in posts[1:-1])
    assert re.findall(r"x\d+ = \d+", "\n".join(posts)) == code.splitlines()


def test_a_longer_fence_is_not_closed_by_a_shorter_one() -> None:
    assert open_fence("````\n```\n").marks == "````"  # type: ignore[union-attr]
    assert open_fence("````\n```\n````") is None


def test_literal_text_is_no_markup() -> None:
    assert escape_line("a *b*\n`c` [d](e)") == r"a \*b\* \`c\` \[d\](e)"


@pytest.mark.parametrize("content", ["<!channel>", "<!" * 5000, "a <@U1> " * 4000])
def test_what_guards_against_mentions_is_not_spelled_out_and_fits(content: str) -> None:
    shown = cut_and_neutralise(content, 300)

    assert "U+200B" not in shown
    assert width(shown) <= 300
    assert not re.search("<[!@#]", shown)

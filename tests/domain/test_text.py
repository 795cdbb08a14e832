"""Words as people read them."""

import pytest

from bot.domain.text import sentence


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("it is large", "It is large."),
        ("Ana changed title: a → b.", "Ana changed title: a → b."),
        ("http:ana changed title: a → b", "http:ana changed title: a → b."),
        ("“sh” runs code that Nod can't inspect", "“sh” runs code that Nod can't inspect."),
        ("note: it is large", "Note: it is large."),
        ("", ""),
    ],
)
def test_words_become_a_sentence_and_an_account_stays_as_it_is(words: str, said: str):
    assert sentence(words) == said

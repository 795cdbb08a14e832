"""Words as people read them."""

import pytest

from bot.domain.text import make_sentence, name_some


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
    assert make_sentence(words) == said


@pytest.mark.parametrize(
    ("names", "said"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")],
)
def test_some_of_many_names_say_how_many_more_there_are(names: list[str], said: str):
    assert name_some(names, 2) == said

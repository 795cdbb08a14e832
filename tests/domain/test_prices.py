"""A price file says what is wrong in which line; what calls cost follows from it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bot.domain.prices
from bot.domain.prices import Price, Prices, format_money, read_prices


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("currency EUR\n\ngpt-5 1.25", "line 3: write the model's name and two or three prices"),
        ("currency EUR\ngpt-5 1 2 3 4", "line 2: write the model's name"),
        ("currency EUR\ngpt-5 1 -2", "line 2: '-2' is not a price"),
        ("currency EUR\ngpt-5 1 1e400", "line 2: '1e400' is not a price"),
        ("currency EUR\ngpt-5 1 nan", "line 2: 'nan' is not a price"),
        ("currency EUR\na 1 2\na 1 2", "line 3: a has a price already"),
        ("currency euro", "line 1: write the currency with three capital letters"),
        ("currency EUR\ncurrency USD", "line 2: the currency is EUR already"),
        ("gpt-5 1 2", "no line says the currency"),
        ("#\n" * 10_001, "too long"),
    ],
)
def test_a_wrong_line_is_told_by_its_number(text: str, why: str):
    with pytest.raises(ValueError, match=re.escape(why)):
        read_prices(text)


@given(st.text(st.sampled_from("currency EUR\n gpt-5.12#é\0\r\t-"), max_size=60))
def test_any_text_is_prices_or_refused(text: str):
    try:
        found = read_prices(text)
    except ValueError:
        return
    assert all(price.compute_cost(10, 10, 5) >= 0 for price in found.models.values())


def test_a_version_and_a_reseller_cost_what_the_model_does():
    prices = read_prices("currency EUR\ngpt-5 1 10 0.5 # since spring\nqwen/qwen3 3 4\n")
    assert (
        prices.find_price("gpt-5")
        == prices.find_price("gpt-5-2025-08-07")
        == prices.find_price("openai/gpt-5-2025-08-07")
    )
    assert (prices.find_price("gpt-5"), prices.find_price("qwen/qwen3")) == (
        Price(1, 10, 0.5),
        Price(3, 4, 3),
    )
    assert [prices.find_price(name) for name in ("gpt-5-pro", "qwen3", "", "gpt-5-mini-2025-08-07")] == [
        None
    ] * 4
    assert prices.cost("gpt-5", 1_000_000, 100_000, 400_000) == pytest.approx(0.6 + 0.2 + 1)
    assert prices.cost("gpt-5", 10, 0, 400_000) == pytest.approx(10 * 0.5 / 1_000_000)  # a server that lies
    assert prices.cost("unknown", 1, 1) is None
    assert prices.with_price("unknown", (1, 2)).cost("unknown", 1_000_000, 1_000_000) == 3


def test_the_file_that_nod_brings_is_right():
    found = read_prices((Path(bot.domain.prices.__file__).parent / "prices.txt").read_text())
    assert found.currency == "USD"
    assert found.find_price("gpt-5-mini") == Price(0.25, 2, 0.025)
    assert Prices().models == {}


def test_money_is_written_as_people_read_it():
    assert [format_money(amount, "EUR") for amount in (20, 20.126, 1234.5, 0.03124, 0.7, 0)] == [
        "20 EUR", "20.13 EUR", "1,234.50 EUR", "0.0312 EUR", "0.70 EUR", "0 EUR",
    ]  # fmt: skip

"""Prices of models: a file that people can edit, one line for each model.

``gpt-5-mini 0.25 2 0.025`` gives the prices of a million tokens: of prompts, of answers and, if that is
another price, of cached prompts. ``currency EUR`` sets the currency of all lines.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_MILLION = 1_000_000
_MAX_FILE_CHARS = 1_000_000
_MAX_FILE_LINES = 10_000
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?")
_CURRENCY = re.compile(r"[A-Z]{3}")
_DATED = re.compile(r"-20\d\d-?\d\d-?\d\d$")  # the date at the end of a version's name: "gpt-5-2025-08-07"


class Price(NamedTuple):
    """The prices of a million tokens."""

    prompt: float
    answer: float
    cached: float

    def compute_cost(self, prompt: int, answer: int, cached: int) -> float:
        """Return the price of these numbers of tokens; the ``cached`` ones are a part of ``prompt``."""
        cached = min(cached, prompt)
        new = prompt - cached
        return (new * self.prompt + cached * self.cached + answer * self.answer) / _MILLION


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of models by name, in one currency."""

    currency: str = "USD"
    models: Mapping[str, Price] = field(default_factory=dict)

    def find_price(self, model: str) -> Price | None:
        """Return the price of a model; None if it has none.

        Without a line for a dated version, or for a reseller's model (``RESELLER/MODEL``), the model's own
        price counts.
        """
        bare = model.rpartition("/")[2]
        for name in (model, _DATED.sub("", model), bare, _DATED.sub("", bare)):
            if name in self.models:
                return self.models[name]
        return None

    def cost(self, model: str, prompt: int, answer: int, cached: int = 0) -> float | None:
        """Return the cost of a call; None where the model has no price."""
        price = self.find_price(model)
        if price:
            return price.compute_cost(prompt, answer, cached)
        return None

    def with_price(self, model: str, price: Sequence[float] | None) -> "Prices":
        """Return the prices with the price of a further model: two or three numbers, as in the file."""
        if not price:
            return self
        prompt, answer, *further = price
        cached = further[0] if further else prompt  # without a price of their own, as other prompts
        return Prices(self.currency, {**self.models, model: Price(prompt, answer, cached)})


def read_prices(text: str) -> Prices:
    """Read a price file; raises ValueError with the number of the first wrong line and its fault."""
    if len(text) > _MAX_FILE_CHARS or text.count("\n") > _MAX_FILE_LINES:
        raise ValueError(f"the file is too long; use at most {_MAX_FILE_LINES:,} lines")
    currency = ""
    models: dict[str, Price] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if words[0] == "currency":
                currency = _read_currency(words[1:], currency)
            elif words[0] in models:
                raise ValueError(f"{words[0]} has a price already")
            else:
                models[words[0]] = _read_price(words[1:])
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if models and not currency:
        raise ValueError("no line says the currency, such as: currency USD")
    return Prices(currency or "USD", models)


def _read_currency(words: list[str], before: str) -> str:
    if before:
        raise ValueError(f"the currency is {before} already")
    if len(words) != 1 or not _CURRENCY.fullmatch(words[0]):
        raise ValueError("write the currency with three capital letters, such as: currency EUR")
    return words[0]


def _read_price(words: list[str]) -> Price:
    for word in words:
        if not _NUMBER.fullmatch(word):
            raise ValueError(f"{word[:50]!r} is not a price; write a number such as 0.25")
    match [float(word) for word in words]:
        case [prompt, answer]:
            return Price(prompt, answer, prompt)
        case [prompt, answer, cached]:
            return Price(prompt, answer, cached)
    raise ValueError("write the model's name and two or three prices, such as: gpt-5-mini 0.25 2 0.025")


def format_money(amount: float, currency: str) -> str:
    """Format an amount for people: ``20 EUR``, ``0.0312 EUR``."""
    if amount >= 1 or not amount:
        text = f"{amount:,.2f}"
    else:
        text = f"{amount:,.4f}".removesuffix("0").removesuffix("0")
    return f"{text.removesuffix('.00')} {currency}"

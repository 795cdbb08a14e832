"""Budgets: limits on the cost of models in a period, or of one request of a person.

Admins set a budget by a rule, as ``20 EUR a month``. They may extend it for the current period alone.
``bot/approvals/budgets.py`` compares budgets with what was spent.
"""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from bot.domain.prices import format_money

WARNED_AT = 0.8  # the share of a budget at which people are warned
_MAX_AMOUNT = 1_000_000_000
_MAX_AMOUNT_CHARS = 15
_DAY_FORMAT = "%Y-%m-%d"
_AMOUNT_TEXT = (
    f"Use an amount above 0, at most {_MAX_AMOUNT:,}. To stop the model altogether, take away its key."
)
_AMOUNT_PATTERN = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")


class Per(StrEnum):
    """The unit of a budget, as admins write it: ``a month``. It is a period of time, or one turn."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TURN = "turn"  # admins' word for one request of a person, with all turns of the agents that it starts

    def begin(self, now: datetime) -> datetime:
        """Return the beginning of the period that contains ``now``, in its time zone.

        For a turn that is the beginning of the day.
        """
        day = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        match self:
            case Per.WEEK:
                return day - timedelta(days=day.weekday())
            case Per.MONTH:
                return day.replace(day=1)
        return day

    def begin_next(self, now: datetime) -> datetime:
        """Return the beginning of the period after the one with ``now``; for a turn, of the next day."""
        begin = self.begin(now)
        match self:
            case Per.WEEK:
                return begin + timedelta(days=7)
            case Per.MONTH:
                return (begin + timedelta(days=31)).replace(day=1)  # 31 days on is in the next month
        return begin + timedelta(days=1)


class Budget(NamedTuple):
    """A budget: an amount for each period. An admin may have extended one of the periods."""

    amount: float
    currency: str
    per: Per
    more: float = 0.0  # the amount that was added to the extended period
    since: str = ""  # the first day of the extended period, such as 2026-11-01; empty if none was extended

    @classmethod
    def parse(cls, words: list[str]) -> "Budget":
        """Read the words of ``20 EUR a month``; raises ValueError."""
        match words:
            case [amount, currency, "a" | "per", per] if per in set(Per):
                return cls(parse_amount(amount), currency.upper(), Per(per))
        raise ValueError("Write it as 20 EUR a month; also a day, a week or a turn.")

    def limit(self, now: datetime) -> float:
        """Return the amount for the period that contains ``now``, with what was added to that period."""
        if self.since == self._format_begin(now):
            return self.amount + self.more
        return self.amount

    def extend(self, by: float, now: datetime) -> "Budget":
        """Return the budget with ``by`` added to the period that contains ``now``."""
        more = self.limit(now) - self.amount + by
        return self._replace(more=more, since=self._format_begin(now))

    @property
    def text(self) -> str:
        words = f"{format_money(self.amount, self.currency)} a {self.per}"
        if self.more:
            return f"{words}, and {format_money(self.more, self.currency)} more from {self.since}"
        return words

    def _format_begin(self, now: datetime) -> str:
        return f"{self.per.begin(now):{_DAY_FORMAT}}"


def parse_amount(text: str) -> float:
    """Read an amount of money; raises ValueError."""
    if len(text) > _MAX_AMOUNT_CHARS or not _AMOUNT_PATTERN.fullmatch(text):
        raise ValueError(f"{text[:30]!r} is not an amount. Write a number such as 20 or 2.50.")
    if not 0 < float(text) <= _MAX_AMOUNT:
        raise ValueError(_AMOUNT_TEXT)
    return float(text)

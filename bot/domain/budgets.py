"""Budgets: how much models may cost in a period, or for one thing that a person asks."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from bot.domain.prices import money

WARNED_AT = 0.8  # of a budget
_MOST = 1_000_000_000


class Per(StrEnum):
    """The period of a budget, as admins write it after ``a``; a turn is one, too."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TURN = "turn"  # what a person asked, and all that it starts

    def begin(self, now: datetime) -> datetime:
        """Return the beginning of the period that contains ``now``, in its time zone."""
        day = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        match self:
            case Per.WEEK:
                return day - timedelta(days=day.weekday())
            case Per.MONTH:
                return day.replace(day=1)
        return day

    def next(self, now: datetime) -> datetime:
        """Return the beginning of the next period."""
        begin = self.begin(now)
        match self:
            case Per.WEEK:
                return begin + timedelta(days=7)
            case Per.MONTH:
                return (begin + timedelta(days=31)).replace(day=1)
        return begin + timedelta(days=1)


class Budget(NamedTuple):
    """A budget. ``more`` was added by an admin, for the period that began on ``since`` alone (a date)."""

    amount: float
    currency: str
    per: Per
    more: float = 0.0
    since: str = ""

    @classmethod
    def parse(cls, words: list[str]) -> "Budget":
        """Read ``20 EUR a month``; raises ValueError."""
        match words:
            case [amount, currency, "a" | "per", per] if per in set(Per):
                return cls(sum_of(amount), currency.upper(), Per(per))
        raise ValueError("Write it as 20 EUR a month; also a day, a week or a turn.")

    def limit(self, now: datetime) -> float:
        return self.amount + (self.more if self.since == f"{self.per.begin(now):%Y-%m-%d}" else 0.0)

    def extend(self, by: float, now: datetime) -> "Budget":
        """Return the budget with ``by`` more in the period of ``now``."""
        more = self.limit(now) - self.amount + by
        return self._replace(more=more, since=f"{self.per.begin(now):%Y-%m-%d}")

    @property
    def words(self) -> str:
        said = f"{money(self.amount, self.currency)} a {self.per}"
        if self.more:
            return f"{said}, and {money(self.more, self.currency)} more from {self.since}"
        return said


def sum_of(text: str) -> float:
    """Read an amount of money; raises ValueError."""
    whole, _, rest = text.partition(".")
    if not (whole + rest).isascii() or not (whole + (rest or "0")).isdigit() or len(text) > 15:  # noqa: PLR2004
        raise ValueError(f"{text[:30]!r} is not an amount. Write a number such as 20 or 2.50.")
    if not 0 < float(text) <= _MOST:
        raise ValueError("Use an amount above 0. To stop the model altogether, take away its key.")
    return float(text)

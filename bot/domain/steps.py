"""Steps: the targets that are notified of a waiting card, one after another. Pure.

A target is an address or a user group as text, or the name of a notifier that a feature brings. The rules
``remind`` and ``escalate`` are short forms: a step that repeats where the card is, and a single step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bot.domain.times import format_length

REMINDER = "reminder"
"""The target that stands for all places of the card: a reminder there, once."""
MAX_STEPS = 8
"""The most steps of one rule."""
MAX_NAME_CHARS = 30


class TimedStep(NamedTuple):
    """A step of a rule: its target, and how long after the card it comes."""

    to: str
    after: timedelta

    @property
    def words(self) -> str:
        return f"{self.to} after {format_length(self.after.total_seconds())}"


@dataclass(frozen=True, slots=True)
class DueStep:
    """A step of a proposal, with its time."""

    to: str
    at: datetime
    is_over: bool = False  # its targets were notified

    @property
    def escalates(self) -> bool:
        """True if the people at the target may decide from then on; False for a notifier."""
        return is_place(self.to)

    @property
    def as_json(self) -> list[Any]:
        """The step as rows store it."""
        return [self.to, self.at.isoformat(), self.is_over]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> "DueStep":
        """Read the output of `as_json`."""
        to, at, is_over = stored
        return cls(to, datetime.fromisoformat(at), is_over)


def is_place(target: str) -> bool:
    """Tell if a target is an address or a group, and not the name of a notifier."""
    return ":" in target


def start_steps(steps: Iterable[TimedStep], now: datetime) -> tuple[DueStep, ...]:
    """Return the steps of a card that begins to wait now, in the order in which they come."""
    return tuple(DueStep(step.to, now + step.after) for step in sorted(steps, key=lambda step: step.after))


def delay_steps(steps: Iterable[DueStep], by: timedelta) -> tuple[DueStep, ...]:
    """Return the steps, with the time ``by`` added to each that is not over."""
    return tuple(step if step.is_over else replace(step, at=step.at + by) for step in steps)


def take_steps(
    steps: Sequence[DueStep], now: datetime, *, escalating: bool
) -> tuple[tuple[str, ...], tuple[DueStep, ...]]:
    """Return the targets whose steps are due, and all steps, with the due steps marked as over.

    ``escalating``: take the steps whose people may decide from then on; otherwise the notifiers.
    """
    due_targets: list[str] = []
    steps_after: list[DueStep] = []
    for step in steps:
        is_due = not step.is_over and step.at <= now and step.escalates is escalating
        if is_due:
            due_targets.append(step.to)
        steps_after.append(replace(step, is_over=True) if is_due else step)
    return tuple(dict.fromkeys(due_targets)), tuple(steps_after)


def find_next(steps: Iterable[DueStep], *, escalating: bool) -> datetime | None:
    """Return when the next open step is due: of the escalating steps, or of the others."""
    times = (step.at for step in steps if not step.is_over and step.escalates is escalating)
    return min(times, default=None)


def format_steps(steps: Iterable[TimedStep]) -> str:
    """Return the steps as an admin writes them: ``push after 2m, slack:T1/C2 after 10m``."""
    return ", ".join(step.words for step in steps)

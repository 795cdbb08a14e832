"""Steps: the targets that are notified of a waiting card, one after another. Pure.

A target is the address of a chat or account, a user group, the name of a notifier that a feature brings (such
as ``push``), or `REMINDER`. A rule has `TimedStep` values, each with its delay after the card; a proposal has
`DueStep` values, each with its time and whether it is over. If the target is an address or a group, the
people there may decide from then on: the step *escalates*. The rules ``remind`` and ``escalate`` are short
forms: a reminder that repeats, and a single step that escalates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bot.domain.times import format_length

REMINDER = "reminder"
"""The target for a reminder, once, in all places where the card is."""
MAX_STEPS = 8
"""The most steps of one rule."""
MAX_NAME_CHARS = 30
"""The most characters of a notifier's name."""


class TimedStep(NamedTuple):
    """A step of a rule."""

    target: str  # the target
    delay: timedelta  # the time between the card and the step

    @property
    def text(self) -> str:
        return f"{self.target} after {format_length(self.delay.total_seconds())}"


@dataclass(frozen=True, slots=True)
class DueStep:
    """A step of a proposal, with its time."""

    target: str  # the target
    due_at: datetime
    is_over: bool = False  # the target was notified

    @property
    def escalates(self) -> bool:
        """True if the people at the target may decide from then on; False for a notifier."""
        return is_place(self.target)

    @property
    def as_json(self) -> list[Any]:
        """The step as rows store it."""
        return [self.target, self.due_at.isoformat(), self.is_over]

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
    return tuple(
        DueStep(step.target, now + step.delay) for step in sorted(steps, key=lambda step: step.delay)
    )


def delay_steps(steps: Iterable[DueStep], by: timedelta) -> tuple[DueStep, ...]:
    """Return the steps, with the time ``by`` added to each that is not over."""
    return tuple(step if step.is_over else replace(step, due_at=step.due_at + by) for step in steps)


class TakenSteps(NamedTuple):
    """The outcome of taking the steps that are due."""

    targets: tuple[str, ...]  # the targets of the due steps, each once
    steps: tuple[DueStep, ...]  # all steps, of which the due ones are over now


def take_steps(steps: Sequence[DueStep], now: datetime, *, escalating: bool) -> TakenSteps:
    """Take the steps that are due. ``escalating``: only those that escalate; if False, only the others."""
    due_targets: list[str] = []
    steps_after: list[DueStep] = []
    for step in steps:
        is_due = not step.is_over and step.due_at <= now and step.escalates is escalating
        if is_due:
            due_targets.append(step.target)
        steps_after.append(replace(step, is_over=True) if is_due else step)
    return TakenSteps(tuple(dict.fromkeys(due_targets)), tuple(steps_after))


def find_next(steps: Iterable[DueStep], *, escalating: bool) -> datetime | None:
    """Return the time of the next step. ``escalating``: of those that escalate; if False, of the others."""
    times = (step.due_at for step in steps if not step.is_over and step.escalates is escalating)
    return min(times, default=None)


def format_steps(steps: Iterable[TimedStep]) -> str:
    """Return the steps as an admin writes them: ``push after 2m, slack:T1/C2 after 10m``."""
    return ", ".join(step.text for step in steps)

"""Statistics on approvals: proposals that people were asked about, by tool, place and person. Pure.

``bot/store/past_proposals.py`` counts rows into these values, and the feature *Insights* shows them. A
*request* here is a proposal that people were asked about.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from bot.domain.times import format_span

ENDS = ("approved", "edited", "declined", "expired", "undone", "failed")
"""The outcomes that are counted. A request may have several: an edited one is approved, and may fail."""
_MAX_WAITS = 10_000  # further waits are not kept: sorting more would block the event loop
_SLOWEST_FROM_SHARE = 0.9  # of the decisions, sorted by speed: the slowest tenth begins after it
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS = 24


class Facet(StrEnum):
    """The dimension by which proposals are counted."""

    TOOL = "tool"
    PLACE = "place"
    PERSON = "person"  # the person who asked
    CONNECTION = "connection"  # the account under which the call runs


@dataclass(slots=True)
class Tally:
    """The number of requests by outcome, and the seconds that each of them waited for its decision."""

    asked: int = 0  # all requests
    approved: int = 0
    edited: int = 0
    declined: int = 0
    expired: int = 0
    undone: int = 0
    failed: int = 0
    waits: list[float] = field(default_factory=list)

    def add(self, ends: Iterable[str], waited: float | None) -> None:
        """Count one request with its outcomes. ``waited``: seconds until it was decided, if it was."""
        for name in ("asked", *ends):
            setattr(self, name, getattr(self, name) + 1)
        if waited is not None and len(self.waits) < _MAX_WAITS:
            self.waits.append(waited)

    @property
    def median_seconds(self) -> float | None:
        """The seconds that half of the decisions took at most; None without decisions."""
        if self.waits:
            return median(self.waits)
        return None

    @property
    def slowest_seconds(self) -> float | None:
        """The seconds that the slowest tenth of the decisions took at least; None without decisions."""
        if self.waits:
            return sorted(self.waits)[int(len(self.waits) * _SLOWEST_FROM_SHARE)]
        return None

    @property
    def description(self) -> str:
        """For example ``asked 9, approved 8 (1 edited first); median 4 min, slowest tenth from 20 min``."""
        parts = [f"asked {self.asked}"]
        for name in ENDS:
            count = getattr(self, name)
            if not count or name == "edited":
                continue
            edited = f" ({self.edited} edited first)" if name == "approved" and self.edited else ""
            parts.append(f"{name} {count}{edited}")
        counts = ", ".join(parts)
        median_seconds, slowest_seconds = self.median_seconds, self.slowest_seconds
        if median_seconds is None or slowest_seconds is None:
            return counts
        times = f"median {_format_span(median_seconds)}, slowest tenth from {_format_span(slowest_seconds)}"
        return f"{counts}; {times}"


def _format_span(seconds: float) -> str:
    return format_span(timedelta(seconds=seconds))


class InsightPart(NamedTuple):
    """The statistics of one tool, place or person, with the name that people know."""

    key: str  # the tool, the address, the Person's id or the connection's key
    name: str
    tally: Tally


class Decider(NamedTuple):
    """The number of a person's approvals and declines."""

    key: str  # the id of the Person
    name: str
    approved: int
    declined: int


@dataclass(frozen=True, slots=True)
class Insights:
    """The statistics since a moment."""

    since: datetime
    back_to: datetime | None  # the moment since which all is counted, if all since ``since`` was too much
    everyone: bool  # False: the statistics of one person alone
    total: Tally
    parts: Mapping[Facet, Sequence[InsightPart]]
    deciders: Sequence[Decider]
    week: Sequence[Sequence[int]]  # requests by weekday from Monday and by hour, on the team's clock

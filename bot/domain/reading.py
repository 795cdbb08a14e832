"""Signs from how people decide: whether there was time to read, runs without a no, hours. Pure.

They are signs and not guilt: a call that someone knows by heart needs no reading.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, tzinfo

WORDS_PER_SECOND = 5
"""A fast reader's pace, 300 words a minute."""
MAX_CARD_WORDS = 400
"""Words that a card shows in every channel. What is longer can be read from when *View all* was opened."""
WORK_BEGINS, WORK_ENDS = time(8), time(18)
"""Working hours from Monday to Friday, on a person's own clock where it is known, else on the team's."""
_FRIDAY = 4
_SAME_PRESS = timedelta(seconds=5)  # between rows of a table that one press decides


@dataclass(frozen=True, slots=True)
class ReadDecision:
    """A yes or a no of a person on one proposal, with what is known of how it was read.

    ``card_id`` is the first proposal of its batch, else its own. ``words``: of what was shown; None where no
    one counted them. ``shown_at``: when the pressed copy came to show this round. ``viewed_at``: when the
    person opened *View all* of it. ``has_trial``: there was a trial's diff; ``is_diff_open``: it was opened.
    """

    person: str
    at: datetime
    card_id: str
    approves: bool
    words: int | None = None
    shown_at: datetime | None = None
    viewed_at: datetime | None = None
    has_trial: bool = False
    is_diff_open: bool = False


@dataclass(slots=True)
class PersonSigns:
    """The signs of one person's decisions; the rows that one press decided are one decision.

    ``timed`` are those of which it is known how long they could be read, ``faster`` those of them that came
    faster than what was shown can be read. ``longest_run`` is the largest number of approvals after each
    other. ``busiest_hour`` is the largest number in an hour of the clock. ``viewed`` counts the approvals
    before which *View all* was opened, ``diffs_open`` those of ``with_trial`` before which the diff was.
    """

    decided: int = 0
    approved: int = 0
    timed: int = 0
    faster: int = 0
    longest_run: int = 0
    days: int = 0
    busiest_hour: int = 0
    outside_hours: int = 0
    viewed: int = 0
    with_trial: int = 0
    diffs_open: int = 0
    _run: int = field(default=0, repr=False)

    def add(self, rows: Sequence[ReadDecision]) -> None:
        """Count a press on one row or on several, the next in time."""
        approves = all(row.approves for row in rows)
        self.decided += 1
        self._run = self._run + 1 if approves else 0
        self.longest_run = max(self.longest_run, self._run)
        faster = is_faster(rows)
        if faster is not None:
            self.timed += 1
            self.faster += int(faster)
        if approves:
            self._add_approval(rows)

    def _add_approval(self, rows: Sequence[ReadDecision]) -> None:
        self.approved += 1
        if any(row.viewed_at for row in rows):
            self.viewed += 1
        if any(row.has_trial for row in rows):
            self.with_trial += 1
            self.diffs_open += int(any(row.is_diff_open for row in rows))

    @property
    def a_day(self) -> float:
        """Decisions a day, of the days with any."""
        return self.decided / self.days if self.days else 0.0

    @property
    def words(self) -> str:
        """For example ``decided 41; 12 of 38 faster than can be read; longest run without a no 30``."""
        said = [f"decided {self.decided:,}"]
        if self.timed:
            said.append(f"{self.faster:,} of {self.timed:,} faster than can be read")
        said.append(f"longest run without a no {self.longest_run:,}")
        said.append(f"{self.a_day:.3g} a day, at most {self.busiest_hour:,} in an hour")
        said.append(f"{self.outside_hours:,} outside working hours")
        if self.timed:
            said.append(f"View all opened before {self.viewed:,} of {self.approved:,} approvals")
        if self.timed and self.with_trial:
            said.append(f"the trial's diff before {self.diffs_open:,} of {self.with_trial:,}")
        return "; ".join(said)


def count_signs(
    decisions: Iterable[ReadDecision], zone: tzinfo, own_zones: Mapping[str, tzinfo] | None = None
) -> dict[str, PersonSigns]:
    """Return the signs of each person, by person. ``zone`` is the team's, ``own_zones`` are by person."""
    zones = own_zones or {}
    found: dict[str, PersonSigns] = defaultdict(PersonSigns)
    days: dict[str, set[str]] = defaultdict(set)
    hours: dict[str, Counter[str]] = defaultdict(Counter)
    for rows in _group_presses(decisions):
        person = rows[0].person
        local = rows[0].at.astimezone(zones.get(person, zone))
        signs = found[person]
        signs.add(rows)
        signs.outside_hours += int(is_outside_hours(local))
        days[person].add(f"{local:%Y-%m-%d}")
        hours[person][f"{local:%Y-%m-%d %H}"] += 1
    for person, signs in found.items():
        signs.days = len(days[person])
        signs.busiest_hour = max(hours[person].values())
    return dict(found)


def _group_presses(decisions: Iterable[ReadDecision]) -> list[list[ReadDecision]]:
    """Return the decisions of each press, in the order of time: a large table is decided in parts."""
    presses: list[list[ReadDecision]] = []
    latest: dict[tuple[str, str], list[ReadDecision]] = {}
    for decision in sorted(decisions, key=lambda each: each.at):
        key = decision.person, decision.card_id
        press = latest.get(key)
        if press is None or decision.at - press[-1].at > _SAME_PRESS:
            press = latest[key] = []
            presses.append(press)
        press.append(decision)
    return presses


def is_faster(rows: Sequence[ReadDecision]) -> bool | None:
    """Return whether one press came faster than the rows that it decided can be read together.

    None where it is not known when they could be read, or the clock was set back in between.
    """
    counted = [row.words for row in rows if row.words is not None]
    if len(counted) < len(rows):
        return None
    words = sum(counted)
    begins = [begin for row in rows if (begin := _find_begin(row, words)) is not None]
    if not begins:
        return None
    took = min(row.at for row in rows) - max(begins)
    if took < timedelta():
        return None
    return took.total_seconds() < words / WORDS_PER_SECOND


def _find_begin(row: ReadDecision, words: int) -> datetime | None:
    """Return when all of a row could be read first."""
    if row.viewed_at is not None and (row.shown_at is None or words > MAX_CARD_WORDS):
        return row.viewed_at
    return row.shown_at


def is_outside_hours(local: datetime) -> bool:
    """Return whether a moment on someone's clock lies outside working hours."""
    return local.weekday() > _FRIDAY or not WORK_BEGINS <= local.time() < WORK_ENDS


def count_words(text: str) -> int:
    return len(text.split())

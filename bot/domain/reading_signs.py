"""Signs of how carefully people decide: was there time to read, how many approvals came in a row, when. Pure.

``bot/features/insights`` stores each decision with the facts on its card (`ReadDecision`) and shows the signs
of each person (`PersonSigns`). A sign is no proof of haste: a call that someone knows by heart needs no
reading.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, tzinfo

WORDS_PER_SECOND = 5
"""A fast reader's pace, 300 words a minute."""
MAX_CARD_WORDS = 400
"""Words that a card shows in every channel. Longer texts are read in *View all*."""
WORK_BEGINS = time(8)
WORK_ENDS = time(18)
"""Working hours from Monday to Friday, on a person's own clock where it is known, else on the team's."""
_FRIDAY = 4  # the number in `datetime.weekday`
_MAX_PRESS_GAP = timedelta(seconds=5)  # the longest time between two rows that one press decides


@dataclass(frozen=True, slots=True)
class ReadDecision:
    """A yes or a no of a person on one proposal, with the facts on how it was read."""

    person: str  # the id of the Person
    at: datetime
    card_id: str  # the id of the proposal whose card was pressed: the first of its batch, else its own
    approves: bool
    word_count: int | None = None  # the number of words that were shown; None if they were not counted
    shown_at: datetime | None = None  # the time at which the pressed card began to show this round
    viewed_at: datetime | None = None  # the time at which the person opened *View all*
    has_trial: bool = False  # the card had the diff of a trial
    is_diff_open: bool = False  # the person opened that diff


@dataclass(slots=True)
class PersonSigns:
    """The signs of one person's decisions; the rows that one press decided are one decision."""

    decided: int = 0
    approved: int = 0
    timed: int = 0  # decisions for which the time to read is known
    faster: int = 0  # decisions of these that were faster than the shown text can be read
    longest_run: int = 0  # the most approvals in a row
    days: int = 0  # the days with any decision
    busiest_hour: int = 0  # the most decisions within one hour of the clock
    outside_hours: int = 0  # decisions outside working hours
    viewed: int = 0  # approvals before which *View all* was opened
    with_trial: int = 0  # approvals of calls with a trial
    diffs_open: int = 0  # approvals before which the trial's diff was opened
    _run: int = field(default=0, repr=False)  # approvals since the last decline

    def add_press(self, rows: Sequence[ReadDecision]) -> None:
        """Count a press on one row or on several. Presses are added in the order of time."""
        approves = all(row.approves for row in rows)
        self.decided += 1
        self._run = self._run + 1 if approves else 0
        self.longest_run = max(self.longest_run, self._run)
        faster = is_faster_than_reading(rows)
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
        """The number of decisions a day, on the average of the days with any."""
        return self.decided / self.days if self.days else 0.0

    @property
    def description(self) -> str:
        """For example ``decided 41; 12 of 38 faster than can be read; longest run without a no 30``."""
        facts = [f"decided {self.decided:,}"]
        if self.timed:
            facts.append(f"{self.faster:,} of {self.timed:,} faster than can be read")
        facts.append(f"longest run without a no {self.longest_run:,}")
        facts.append(f"{self.a_day:.3g} a day, at most {self.busiest_hour:,} in an hour")
        facts.append(f"{self.outside_hours:,} outside working hours")
        if self.timed:
            facts.append(f"View all opened before {self.viewed:,} of {self.approved:,} approvals")
        if self.timed and self.with_trial:
            facts.append(f"the trial's diff before {self.diffs_open:,} of {self.with_trial:,}")
        return "; ".join(facts)


def count_signs(
    decisions: Iterable[ReadDecision], zone: tzinfo, own_zones: Mapping[str, tzinfo] | None = None
) -> dict[str, PersonSigns]:
    """Return the signs of each person, by the Person's id.

    ``zone``: the time zone of the team. ``own_zones``: the time zones of people who have set one, by id.
    """
    zones = own_zones or {}
    signs_by_person: dict[str, PersonSigns] = defaultdict(PersonSigns)
    days: dict[str, set[str]] = defaultdict(set)
    hours: dict[str, Counter[str]] = defaultdict(Counter)
    for rows in _group_presses(decisions):
        person = rows[0].person
        local = rows[0].at.astimezone(zones.get(person, zone))
        signs = signs_by_person[person]
        signs.add_press(rows)
        signs.outside_hours += int(is_outside_hours(local))
        days[person].add(f"{local:%Y-%m-%d}")
        hours[person][f"{local:%Y-%m-%d %H}"] += 1
    for person, signs in signs_by_person.items():
        signs.days = len(days[person])
        signs.busiest_hour = max(hours[person].values())
    return dict(signs_by_person)


def _group_presses(decisions: Iterable[ReadDecision]) -> list[list[ReadDecision]]:
    """Return the decisions of each press, in the order of time.

    A press on a table decides its rows one after another. Later presses on the same table are others.
    """
    presses: list[list[ReadDecision]] = []
    latest_presses: dict[tuple[str, str], list[ReadDecision]] = {}
    for decision in sorted(decisions, key=lambda decision: decision.at):
        person_and_card = decision.person, decision.card_id
        press = latest_presses.get(person_and_card)
        if press is None or decision.at - press[-1].at > _MAX_PRESS_GAP:
            press = []
            latest_presses[person_and_card] = press
            presses.append(press)
        press.append(decision)
    return presses


def is_faster_than_reading(rows: Sequence[ReadDecision]) -> bool | None:
    """Return whether a press came sooner than all the rows that it decided can be read.

    None if the number of words or the time is not known, or the clock was set back in between.
    """
    word_count = 0
    for row in rows:
        if row.word_count is None:
            return None
        word_count += row.word_count
    readable_since = [_find_readable_since(row, word_count) for row in rows]
    known = [moment for moment in readable_since if moment is not None]
    if not known:
        return None
    time_to_read = min(row.at for row in rows) - max(known)
    if time_to_read < timedelta():
        return None
    return time_to_read.total_seconds() < word_count / WORDS_PER_SECOND


def _find_readable_since(row: ReadDecision, word_count: int) -> datetime | None:
    """Return the first moment at which all that a press decided could be read; None if it is not known.

    It is when the card appeared or, for a text too long for a card, when the person opened *View all*.
    """
    is_card_enough = row.shown_at is not None and word_count <= MAX_CARD_WORDS
    if row.viewed_at is not None and not is_card_enough:
        return row.viewed_at
    return row.shown_at


def is_outside_hours(local: datetime) -> bool:
    """Return whether a moment on someone's clock lies outside working hours."""
    return local.weekday() > _FRIDAY or not WORK_BEGINS <= local.time() < WORK_ENDS


def count_words(text: str) -> int:
    return len(text.split())

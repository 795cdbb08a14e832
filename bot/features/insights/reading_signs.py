"""Statistics of how people decide: how often, at which hours, and how fast compared with reading the card.

People see these statistics as "signs". Nod decides nothing by them.

A card shows people one proposal, or a batch of several, for their decision. People's decisions, the votes,
are stored in the proposals. `find_signs` puts them together with the notes on how people read, if there are
any (`reading_notes.py`).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlmodel import Session

from bot.approvals import rights
from bot.domain.people import Actor
from bot.domain.reading_signs import PersonSigns, ReadDecision, count_signs
from bot.domain.times import format_span
from bot.features.insights.reading_notes import CardPart
from bot.features.insights.tables import OpenedCardRow, ReadDecisionRow
from bot.store import past_proposals, people
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

BY_PEOPLE = "people"
"""The value of NOD_INSIGHTS that allows notes, and shows admins the signs by name."""
MIN_DECIDERS = 3
"""The fewest people whose total is shown without names: with fewer, one could guess the person."""
SIGNS_TEXT = "These are signs, not guilt: who knows a call by heart need not read it."
HOURS_TEXT = (
    "Working hours are 8 to 18 on weekdays. "
    "They go by the time zone of a person's quiet hours, else the team's."
)
UNNAMED_TEXT = (
    "Without names, since NOD_INSIGHTS is not `people`. How fast people decide is not measured either."
)
_MAX_LINES = 20  # the most people that a chat shows
_PAGE_ROWS = 500  # rows that are read at a time
_VOTE_FIELDS = 6  # a vote is stored as a list: the person's id, account, name, verb, reason and time
# the verbs of votes that count as a yes, and as a no
_YES_VERBS = frozenset({"approve", "consent"})
_NO_VERBS = frozenset({"decline", "never", "revise"})
_OPENING = table_of(OpenedCardRow)
_DECISION = table_of(ReadDecisionRow)
_PROPOSAL = table_of(ProposalRow)


class NamedSigns(NamedTuple):
    """The statistics of one person."""

    key: str  # the id of the person
    name: str
    signs: PersonSigns


class _DecisionKey(NamedTuple):
    """The vote to which a note belongs."""

    proposal_id: str
    account: str
    at: datetime


class _CardState(NamedTuple):
    """A card as a person saw it."""

    card_id: str
    person_id: str
    rounds: int


@dataclass(frozen=True, slots=True)
class Signs:
    """The statistics since a point in time, for one reader."""

    since: datetime
    everyone: bool
    """True if the reader is an admin, for whom the signs cover all people."""
    has_notes: bool
    """True if notes on how people read are stored."""
    total: PersonSigns | None
    """All people together, for an admin who sees no names; None for fewer than `MIN_DECIDERS` people."""
    people: tuple[NamedSigns, ...]
    """The people whom the reader may see by name: everyone, for an admin who sees names, else the reader."""

    @property
    def is_by_name(self) -> bool:
        """True if `people` are all people, for an admin."""
        return self.everyone and self.has_notes


def find_signs(
    session: Session,
    policies: Policies,
    actor: Actor,
    since: datetime,
    *,
    has_notes: bool,
    zone: tzinfo | None = None,
) -> Signs:
    """Return the statistics since a time: an admin of all of Nod gets everyone's, anyone else their own.

    ``has_notes``: NOD_INSIGHTS is `BY_PEOPLE`, so notes are stored, and admins see people by name. Otherwise
    an admin sees themselves by name, and a total of all. ``zone``: the time zone that this person has now;
    None if it is not known.
    """
    everyone = rights.is_global_admin(session, policies, actor)
    own_id = people.load_person(session, actor).id
    # people are counted by the id of the person, or by the account if it is linked with no other
    person_ids = {linked.account: linked.person_id for linked in people.list_linked(session)}
    only_id = None if everyone else own_id
    decisions, names = _read_decisions(session, since, only_id, person_ids, has_notes=has_notes)
    zones = _find_zones(session, person_ids)
    if zone is not None:
        zones[own_id] = zone
    signs_by_person = count_signs(decisions, policies.load(session).rulebook.zone, zones)
    signs_of_people = [NamedSigns(person, names[person], signs) for person, signs in signs_by_person.items()]
    signs_of_people.sort(key=lambda each: (-each.signs.decided, each.name))  # the busiest first
    if everyone and has_notes:
        return Signs(since=since, everyone=True, has_notes=True, total=None, people=tuple(signs_of_people))
    own = tuple(each for each in signs_of_people if each.key == own_id)
    total = None
    if everyone and len(signs_by_person) >= MIN_DECIDERS:
        total = _sum_signs(signs_by_person.values())
    return Signs(since=since, everyone=everyone, has_notes=has_notes, total=total, people=own)


def _find_zones(session: Session, person_ids: Mapping[str, str]) -> dict[str, tzinfo]:
    """Return the time zones that people have set, by person. Everyone else's hours go by the team's zone."""
    return {
        person_ids.get(account, account): zone
        for list_zones in hooks_of(session).list_zones
        for account, zone in list_zones(session).items()
    }


def _read_decisions(
    session: Session, since: datetime, only_id: str | None, person_ids: Mapping[str, str], *, has_notes: bool
) -> tuple[list[ReadDecision], dict[str, str]]:
    """Return the votes on proposals since a time, and the names of the voters by person.

    ``only_id``: the person whose votes are returned; None for everyone's. ``person_ids``: the ids of people
    with linked accounts, by account. ``has_notes``: notes on how people read are stored.
    """
    notes = _read_notes(session, since) if has_notes else {}
    openings = _read_openings(session, since, person_ids) if has_notes else {}
    decisions: list[ReadDecision] = []
    names: dict[str, str] = {}
    for row in _list_voted(session, since):
        for stored_vote in row.votes:
            _person_id, account, name, verb, _reason, at_text = stored_vote[:_VOTE_FIELDS]
            person = person_ids.get(account, account)
            is_wanted = only_id is None or person == only_id
            if not is_wanted or verb not in _YES_VERBS | _NO_VERBS:
                continue
            names[person] = names.get(person) or name or account
            at = datetime.fromisoformat(at_text)
            card_id = row.batch or row.id
            decision = ReadDecision(person, at, card_id, approves=verb in _YES_VERBS, has_trial=row.has_trial)
            note = notes.get(_DecisionKey(row.id, account, at))
            if note is not None:
                times_by_part = openings.get(_CardState(card_id, person, note.rounds), {})
                decision = _add_note(decision, note, times_by_part)
            decisions.append(decision)
    return decisions, names


def _add_note(decision: ReadDecision, note: Any, times_by_part: Mapping[str, datetime]) -> ReadDecision:
    """Return a decision with the facts of its note, which is a `ReadDecisionRow`.

    ``times_by_part``: when the person opened the parts of the card.
    """
    opened_before = {part: at for part, at in times_by_part.items() if at <= decision.at}
    return replace(
        decision,
        word_count=note.words,
        shown_at=note.shown_at,
        viewed_at=opened_before.get(CardPart.ALL),
        # either part counts: *View all* shows the trial's diff as well
        is_diff_open=decision.has_trial and bool(opened_before),
    )


def _list_voted(session: Session, since: datetime) -> Iterator[Any]:
    """Yield decided proposals, the newest first, with their votes."""
    newest_first = (
        select(
            _PROPOSAL.c.id,
            _PROPOSAL.c.batch,
            _PROPOSAL.c.votes,
            _PROPOSAL.c.trial.is_not(None).label("has_trial"),
        )
        .where(_PROPOSAL.c.created_at >= since, _PROPOSAL.c.decided_at.is_not(None))
        .order_by(_PROPOSAL.c.created_at.desc())
        .limit(past_proposals.MAX_ROWS)
    )
    with session.connection().execute(newest_first, execution_options={"yield_per": _PAGE_ROWS}) as rows:
        yield from rows


def _read_notes(session: Session, since: datetime) -> dict[_DecisionKey, Any]:
    """Return the rows of `ReadDecisionRow` since a time."""
    rows = session.connection().execute(
        select(_DECISION).where(_DECISION.c.at >= since).limit(past_proposals.MAX_ROWS)
    )
    return {_DecisionKey(row.proposal_id, row.account, row.at): row for row in rows}


def _read_openings(
    session: Session, since: datetime, person_ids: Mapping[str, str]
) -> dict[_CardState, dict[str, datetime]]:
    """Return when each person first opened the parts of a card, by part."""
    openings: dict[_CardState, dict[str, datetime]] = {}
    rows = session.connection().execute(
        select(_OPENING).where(_OPENING.c.at >= since).limit(past_proposals.MAX_ROWS)
    )
    for row in rows:
        person = person_ids.get(row.account, row.account)
        times_by_part = openings.setdefault(_CardState(row.card_id, person, row.rounds), {})
        times_by_part[row.part] = min(row.at, times_by_part.get(row.part, row.at))
    return openings


def _sum_signs(signs_of_people: Collection[PersonSigns]) -> PersonSigns:
    """Return the statistics of several people as one: the sums, and the largest values for runs and hours.

    Numbers from notes, such as ``timed``, stay 0: a total is only shown if there are no notes.
    """
    total = PersonSigns()
    for signs in signs_of_people:
        total.decided += signs.decided
        total.approved += signs.approved
        total.outside_hours += signs.outside_hours
        total.days += signs.days
        total.longest_run = max(total.longest_run, signs.longest_run)
        total.busiest_hour = max(total.busiest_hour, signs.busiest_hour)
    return total


def format_signs(signs: Signs, now: datetime) -> str:
    """Return the statistics as text for a chat."""
    subject = "people" if signs.everyone else "you"
    heading = f"**How {subject} decided in the last {format_span(now - signs.since)}**"
    lines = [heading]
    if signs.total is not None:
        lines.append(f"- Everyone: {signs.total.description}")
    shown = signs.people[:_MAX_LINES]
    for each in shown:
        name = each.name if signs.is_by_name else "You"
        lines.append(f"- {name}: {each.signs.description}")
    if len(signs.people) > len(shown):
        lines.append(f"…and {len(signs.people) - len(shown)} more")
    if len(lines) == 1:
        return f"{heading}: nothing was decided."
    lines.append(f"{SIGNS_TEXT} {HOURS_TEXT}")
    if not signs.has_notes:
        lines.append(UNNAMED_TEXT)
    return "\n".join(lines)

"""The cost of asking, as one person may see it: of what they asked for, for an admin of everything."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.chat import Address, chat_of
from bot.domain.insights import DAYS, ENDS, HOURS, Decider, Facet, InsightPart, Insights, Tally
from bot.domain.kinds import find_kind
from bot.domain.people import Actor, channel_called, place_called
from bot.domain.proposals import State
from bot.domain.times import span, when
from bot.domain.verbs import Verb
from bot.store import counts, people
from bot.store.audit import verification
from bot.store.rules import Policies

MONTH = timedelta(days=30)
OFF = "Insights are turned off here (NOD_INSIGHTS)."
_RAN = frozenset({State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED})
_MOST_PARTS = 200
_TOLD = 10  # parts in a chat


def find_insights(session: Session, policies: Policies, actor: Actor, since: datetime) -> Insights | None:
    """Return what people were asked since then, by this person, or by everyone where an admin looks.

    None where that is turned off.
    """
    if not policies.load(session).insights:
        return None
    return count_insights(
        session, since, rights.whose(session, policies, actor), policies.load(session).book.zone
    )


def count_insights(
    session: Session, since: datetime, accounts: Collection[str] | None, zone: tzinfo
) -> Insights:
    """Return what people were asked since then by these accounts (None: by all)."""
    persons = {each.account: each.person_id for each in people.list_linked(session)}
    tallies: Mapping[Facet, dict[str, Tally]] = {facet: defaultdict(Tally) for facet in Facet}
    total, votes = Tally(), {Verb.APPROVE: Counter[str](), Verb.DECLINE: Counter[str]()}
    names: dict[str, str] = {}
    week = [[0] * HOURS for _ in range(7)]
    looked, last = 0, None
    for row in counts.newest(session, since, accounts=accounts, ended=True):
        looked, last = looked + 1, row.created_at
        if not find_kind(row.kind).is_counted or row.undoes or not was_asked(row):
            continue
        person = persons.get(row.requester, row.requester)
        names.setdefault(person, row.requester_name)
        ends, waited = _ends(row), None
        if {"approved", "declined"} & set(ends) and row.decided_at:
            waited = max(0.0, (row.decided_at - row.created_at).total_seconds())
        keys = {Facet.TOOL: row.tool_name, Facet.PLACE: _place(row), Facet.PERSON: person}
        for tally in (total, *(tallies[facet][key] for facet, key in keys.items())):
            tally.add(ends, waited)
        for _, account, name, verb, *_ in row.votes:
            if verb in votes:
                who = persons.get(account, account)
                names[who] = names.get(who) or name
                votes[verb][who] += 1
        at = row.created_at.astimezone(zone)
        week[at.weekday()][at.hour] += 1
    places = people.find_known_names(session, [each for each in tallies[Facet.PLACE] if ":" in each])
    called = {
        each: place_called(each, places) if ":" in each else _private(each) for each in tallies[Facet.PLACE]
    }
    return Insights(
        since,
        last if looked == counts.MOST else None,
        accounts is None,
        total,
        {facet: _parts(found, names | called) for facet, found in tallies.items()},
        _deciders(votes[Verb.APPROVE], votes[Verb.DECLINE], names),
        week,
    )


def was_asked(row: Any) -> bool:
    """Return whether people were asked about a proposal: neither a rule nor a grant let it run."""
    return row.grant_id is None and bool(row.votes or row.state not in _RAN)


def _ends(row: Any) -> list[str]:
    if row.state in _RAN:
        marks = {"edited": row.edited_by, "undone": row.undone_by, "failed": row.state == State.FAILED}
        return ["approved", *(name for name, so in marks.items() if so)]
    return [row.state] if row.state in (State.DECLINED, State.EXPIRED) else []


def _place(row: Any) -> str:
    """Return the chat where it was requested; for a private chat its channel."""
    address = Address.parse(row.place)
    return address.channel if row.private else str(chat_of(address))


def _private(channel: str) -> str:
    name = channel_called(channel)
    return name if name[:1].islower() else f"private chats in {name}"


def _parts(found: Mapping[str, Tally], names: Mapping[str, str]) -> list[InsightPart]:
    order = sorted(found, key=lambda key: (-found[key].asked, key))
    return [InsightPart(key, names.get(key) or key, found[key]) for key in order[:_MOST_PARTS]]


def _deciders(yes: Counter[str], no: Counter[str], names: Mapping[str, str]) -> list[Decider]:
    both = (yes + no).most_common(_MOST_PARTS)
    return [Decider(who, names.get(who) or who, yes[who], no[who]) for who, _ in both]


def words(found: Insights, facet: Facet, now: datetime) -> str:
    """Render the insights as text for a chat."""
    whose = "Everyone's" if found.everyone else "Your"
    lines = [f"**{whose} approvals in the last {span(now - found.since)}**: {found.total.words}"]
    if not found.total.asked:
        return f"{lines[0].partition(':')[0]}: no one was asked anything."
    lines += [f"By {facet}:", *(f"- {part.name}: {part.tally.words}" for part in found.parts[facet][:_TOLD])]
    more = len(found.parts[facet]) - _TOLD
    lines += [f"…and {more} more"] if more > 0 else []
    decided = (f"{each.name} {each.approved + each.declined}" for each in found.deciders[:_TOLD])
    lines += [f"Decided by: {', '.join(decided)}"] if found.deciders else []
    lines += [f"Looked back only {when(found.back_to, now)}: there is too much."] if found.back_to else []
    return "\n".join(lines)


_NUMBERS = ("asked", *ENDS, "median_seconds", "slowest_seconds")


def as_csv(found: Insights) -> str:
    """A row for each tool, place, person, decider and hour of the week."""
    rows: list[dict[str, Any]] = [
        {"part": facet, "key": part.key, "name": part.name, **{n: getattr(part.tally, n) for n in _NUMBERS}}
        for facet, parts in found.parts.items()
        for part in parts
    ]
    rows += [{"part": "decider", **each._asdict()} for each in found.deciders]
    rows += [
        {"part": "hour", "key": f"{day} {hour:02}", "asked": many}
        for day, hours in zip(DAYS, found.week, strict=True)
        for hour, many in enumerate(hours)
    ]
    return verification.as_csv(rows, ("part", "key", "name", *_NUMBERS))

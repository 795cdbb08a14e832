"""Queries of past proposals: statistics for *Insights*, and a tool's earlier calls for facts on cards.

`count_insights` and `list_newest` check no right: their callers choose the accounts. `find_past_calls` does:
it returns only calls that everyone who may decide the new call may see, as its card tells them.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, tzinfo
from operator import attrgetter
from typing import Any

from sqlalchemy import Text, bindparam, case, cast, func, select, true, tuple_, union_all
from sqlmodel import Session

from bot.domain.chat import Address, chat_of
from bot.domain.connections import Connection
from bot.domain.insights import HOURS, Decider, Facet, InsightPart, Insights, Tally
from bot.domain.kinds import find_kind
from bot.domain.people import Actor, channel_called, place_called
from bot.domain.proposals import Mark, Proposal, State
from bot.domain.unusual import MAX_CALLS, MIN_KNOWN_PROPOSALS, EarlierCall, PastCalls
from bot.domain.verbs import Verb
from bot.store import people
from bot.store.tables.conversations import SEEN_AT, SEEN_IN, ConversationRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

MAX_ROWS = 50_000
"""The most proposals that one query reads."""
_PAGE_ROWS = 500
_MAX_PARTS = 200  # the most tools, places or people in statistics
_RAN = frozenset({State.APPROVED, State.EXECUTING, State.SUCCEEDED, State.FAILED})
_PROPOSAL, _PLACE = table_of(ProposalRow), table_of(ConversationRow)
# the columns that `list_newest` reads: always, with ``ended``, and with ``arguments``
_JUDGED = (
    *("id", "kind", "tool_name", "level", "vouched", "requester", "undoes"),
    *("state", "grant_id", "edited_by", "undone_by", "created_at"),
)
_ENDED = ("requester_name", "votes", "decided_at", "connection")
_CONDITIONS = ("arguments", "tool_version")
_ASKED_HERE = _PLACE.c.id == bindparam("asked_in")
# the chat of the new call, if it is a shared one; and its requester, if the call is made in private
_THIS_CHAT = select(SEEN_IN).where(_ASKED_HERE, _PLACE.c.private.is_(False)).scalar_subquery()
_ASKER_IN_PRIVATE = select(bindparam("asked_by")).where(_ASKED_HERE, _PLACE.c.private).scalar_subquery()
_IN_CHAT, _IS_SHARED = _PROPOSAL.c.chat == _THIS_CHAT, _PROPOSAL.c.chat.is_not(None)
_OF_ASKER = _PROPOSAL.c.requester == _ASKER_IN_PRIVATE
_IS_SAME = _PROPOSAL.c.digest == bindparam("same")
_BEFORE = _PROPOSAL.c.message_id != bindparam("answer")  # calls of the same answer are not earlier calls
_KNOWN_PROPOSALS = select(_PROPOSAL.c.id).where(_IN_CHAT, _BEFORE).limit(MIN_KNOWN_PROPOSALS).subquery()
_COUNTED = select(func.count().label("known")).select_from(_KNOWN_PROPOSALS).subquery()


def _select_calls(*which: Any) -> Any:
    """Return the query for a tool's newest calls under these conditions. JSON stays text, mostly unread."""
    plain = ("kind", "state", "message_id", "created_at", "undoes", "escalate_to")
    found = select(
        *(_PROPOSAL.c[name] for name in plain),
        cast(_PROPOSAL.c.arguments, Text).label("arguments"),
        cast(_PROPOSAL.c.deciders, Text).label("deciders"),
        cast(_PROPOSAL.c.steps, Text).label("steps"),
        case((_IS_SAME, cast(_PROPOSAL.c.votes, Text))).label("votes"),
    )
    newest = found.where(*which, _BEFORE, _PROPOSAL.c.tool_name == bindparam("tool"))
    return select(newest.order_by(_PROPOSAL.c.created_at.desc()).limit(MAX_CALLS + 1).subquery())


_EARLIER = union_all(_select_calls(_IN_CHAT), _select_calls(_OF_ASKER, _IS_SHARED)).subquery()
_PAST_CALLS = select(_COUNTED, _EARLIER).select_from(_COUNTED.outerjoin(_EARLIER, true()))
"""The query of `find_past_calls`: at least one row, of the number of known proposals and an earlier call."""


def list_newest(
    session: Session,
    since: datetime,
    before: Mark | None = None,
    accounts: Collection[str] | None = None,
    *,
    most: int = MAX_ROWS,
    ended: bool = False,
    arguments: bool = False,
) -> Iterator[Any]:
    """Yield the rows of the proposals since then, newest first: of these accounts, or of everyone.

    ``before``: only proposals that are older than the one at that mark. ``ended``: with the votes and the
    time of the decision. ``arguments``: with the arguments of each call, and the version of its tool.
    """
    also = (*(_ENDED if ended else ()), *(_CONDITIONS if arguments else ()))
    found = select(
        *(_PROPOSAL.c[name] for name in (*_JUDGED, *also)),
        SEEN_AT.label("place"),
        _PLACE.c.private,
    ).join_from(_PROPOSAL, _PLACE, _PLACE.c.id == _PROPOSAL.c.conversation_id)
    at = (_PROPOSAL.c.created_at, _PROPOSAL.c.id)
    further: Any = true() if before is None else tuple_(*at) < tuple_(*before)
    whose: Any = true() if accounts is None else _PROPOSAL.c.requester.in_(sorted(accounts))
    found = found.where(at[0] >= since, further, whose).order_by(*(each.desc() for each in at)).limit(most)
    with session.connection().execute(found, execution_options={"yield_per": _PAGE_ROWS}) as rows:
        yield from rows


def count_insights(
    session: Session, since: datetime, accounts: Collection[str] | None, zone: tzinfo
) -> Insights:
    """Return statistics on the requests of these accounts since then (None: of all).

    Only proposals that people were asked about count. ``zone``: the team's time zone.
    """
    persons = {each.account: each.person_id for each in people.list_linked(session)}
    tallies: Mapping[Facet, dict[str, Tally]] = {facet: defaultdict(Tally) for facet in Facet}
    total, votes = Tally(), {Verb.APPROVE: Counter[str](), Verb.DECLINE: Counter[str]()}
    names: dict[str, str] = {}
    week = [[0] * HOURS for _ in range(7)]
    looked, last = 0, None
    for row in list_newest(session, since, accounts=accounts, ended=True):
        looked, last = looked + 1, row.created_at
        if not is_counted(row) or not was_asked(row):
            continue
        person = persons.get(row.requester, row.requester)
        names.setdefault(person, row.requester_name)
        ends, waited = _list_outcomes(row), None
        if {"approved", "declined"} & set(ends) and row.decided_at:
            waited = max(0.0, (row.decided_at - row.created_at).total_seconds())
        account, words = _name_connection(row)
        names.setdefault(account, words)
        keys = {
            Facet.TOOL: row.tool_name,
            Facet.PLACE: _find_chat(row),
            Facet.PERSON: person,
            Facet.CONNECTION: account,
        }
        for tally in (total, *(tallies[facet][key] for facet, key in keys.items())):
            tally.add(ends, waited)
        for _, voter, name, verb, *_ in row.votes:
            if verb in votes:
                who = persons.get(voter, voter)
                names[who] = names.get(who) or name
                votes[verb][who] += 1
        at = row.created_at.astimezone(zone)
        week[at.weekday()][at.hour] += 1
    places = people.find_known_names(session, [each for each in tallies[Facet.PLACE] if ":" in each])
    called = {
        each: place_called(each, places) if ":" in each else _name_private_chats(each)
        for each in tallies[Facet.PLACE]
    }
    return Insights(
        since,
        last if looked == MAX_ROWS else None,
        accounts is None,
        total,
        {facet: _rank_parts(found, names | called) for facet, found in tallies.items()},
        _rank_deciders(votes[Verb.APPROVE], votes[Verb.DECLINE], names),
        week,
    )


def find_past_calls(session: Session, proposal: Proposal) -> PastCalls:
    """Return the earlier calls of a proposal's tool that everyone who may decide the proposal may see.

    For a proposal in a shared chat these are the calls in that chat. For a proposal in a private chat they
    are the requester's calls in shared chats. Calls in private chats never count. Calls that fewer people may
    see do not count, either.
    """
    given = {
        "asked_in": proposal.conversation_id,
        "tool": proposal.tool_name,
        "asked_by": str(proposal.requester),
        "same": proposal.digest,
        "answer": proposal.message_id,
    }
    found = session.connection().execute(_PAST_CALLS, given).all()
    rows = [row for row in found if row.kind is not None]
    calls = [
        EarlierCall(row.created_at, row.message_id, row.arguments, _find_decliners(row))
        for row in sorted(rows, key=attrgetter("created_at"), reverse=True)
        if is_counted(row) and _may_all_see(row, proposal)
    ]
    return PastCalls(calls[:MAX_CALLS], is_first=not rows, known=found[0].known, is_cut=len(rows) > MAX_CALLS)


def _may_all_see(row: Any, proposal: Proposal) -> bool:
    """Return whether everyone who may decide a proposal may see a call of its chat, or of its requester."""
    targets = proposal.escalation_targets
    if targets and not _list_targets(row).issuperset(targets):
        return False  # it may come before people of another chat
    named = set(proposal.deciders.people)
    return not named or named <= set(json.loads(row.deciders)["people"])


def _list_targets(row: Any) -> set[str]:
    """Return the chats, accounts and groups to which an earlier call was escalated, or might have been."""
    steps = json.loads(row.steps or "null") or ()
    return {row.escalate_to, *(to for to, *_ in steps)}


def _find_decliners(row: Any) -> tuple[str, ...]:
    """Return the names of the people who declined exactly this call."""
    if row.votes is None or row.state != State.DECLINED:
        return ()
    votes = ((voter, name) for _, voter, name, verb, *_ in json.loads(row.votes) if verb == Verb.DECLINE)
    return tuple(name or Actor.parse(voter).label for voter, name in votes)


def is_counted(row: Any) -> bool:
    """Return whether a proposal counts: a change that an agent, a person or a script asked for."""
    return find_kind(row.kind).is_counted and not row.undoes


def was_asked(row: Any) -> bool:
    """Return whether people were asked about a proposal: neither a rule nor a grant let it run."""
    return row.grant_id is None and bool(row.votes or row.state not in _RAN)


def _list_outcomes(row: Any) -> list[str]:
    """Return the outcomes of a proposal that `Tally` counts, such as approved and undone."""
    if row.state in _RAN:
        marks = {"edited": row.edited_by, "undone": row.undone_by, "failed": row.state == State.FAILED}
        return ["approved", *(name for name, is_so in marks.items() if is_so)]
    if row.state in (State.DECLINED, State.EXPIRED):
        return [row.state]
    return []


def _name_connection(row: Any) -> tuple[str, str]:
    """Return the key of the account under which a call runs, and the account in words."""
    if not row.connection:
        return "nod", "Nod's own accounts"
    connection = Connection.from_json(row.connection)
    return connection.key, connection.words


def _find_chat(row: Any) -> str:
    """Return the chat of the request; for a private chat its channel."""
    address = Address.parse(row.place)
    if row.private:
        return address.channel
    return str(chat_of(address))


def _name_private_chats(channel: str) -> str:
    name = channel_called(channel)
    if name[:1].islower():
        return name
    return f"private chats in {name}"


def _rank_parts(found: Mapping[str, Tally], names: Mapping[str, str]) -> list[InsightPart]:
    order = sorted(found, key=lambda key: (-found[key].asked, key))
    return [InsightPart(key, names.get(key) or key, found[key]) for key in order[:_MAX_PARTS]]


def _rank_deciders(yes: Counter[str], no: Counter[str], names: Mapping[str, str]) -> list[Decider]:
    both = (yes + no).most_common(_MAX_PARTS)
    return [Decider(who, names.get(who) or who, yes[who], no[who]) for who, _ in both]

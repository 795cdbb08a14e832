"""Queries of past proposals: statistics for *Insights*, and a tool's earlier calls for facts on cards.

*Insights* are the statistics on approvals that people see (``bot/domain/insights.py``). `count_insights` and
`list_newest` check no right: their callers choose the accounts whose requests are read. `find_past_calls`
checks it: its result is told to everyone who may decide a new call, so it has only calls that all of them may
see.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Text, bindparam, case, cast, func, select, true, tuple_, union_all
from sqlmodel import Session

from bot.domain.chat import Address, chat_of
from bot.domain.connections import Connection
from bot.domain.insights import HOURS, Decider, Facet, InsightPart, Insights, Tally
from bot.domain.kinds import find_kind
from bot.domain.people import Actor, name_of_channel, name_of_place
from bot.domain.proposal_lists import PageCursor
from bot.domain.proposal_states import APPROVED_STATES, State
from bot.domain.proposals import Proposal
from bot.domain.unusual_facts import MAX_CALLS, MIN_KNOWN_PROPOSALS, EarlierCall, PastCalls
from bot.domain.verbs import Verb
from bot.store import people
from bot.store.tables.conversations import ADDRESS_SHOWN, CHAT_SHOWN, ConversationRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

MAX_ROWS = 50_000
"""The most proposals that one query reads."""
_PAGE_ROWS = 500  # the rows that are fetched at a time
_MAX_PARTS = 200  # the most tools, places or people in statistics
_PROPOSAL, _PLACE = table_of(ProposalRow), table_of(ConversationRow)
# the columns of a proposal that `list_newest` always reads; and those that ``with_decision`` and
# ``with_arguments`` add
_COLUMNS = (
    *("id", "kind", "tool_name", "level", "vouched", "requester", "undoes"),
    *("state", "grant_id", "edited_by", "undone_by", "created_at"),
)
_COLUMNS_OF_DECISION = ("requester_name", "votes", "decided_at", "connection")
_COLUMNS_OF_ARGUMENTS = ("arguments", "tool_version")


def list_newest(
    session: Session,
    since: datetime,
    before: PageCursor | None = None,
    accounts: Collection[str] | None = None,
    *,
    limit: int = MAX_ROWS,
    with_decision: bool = False,
    with_arguments: bool = False,
) -> Iterator[Any]:
    """Yield a row for each proposal since then that these accounts requested, newest first.

    - ``before``: only proposals that are older than the one at that mark
    - ``accounts``: None for the proposals of all accounts
    - ``limit``: the most rows
    - ``with_decision``: add the votes, the time of the decision, the requester's name and the connection;
      open proposals are still among the rows
    - ``with_arguments``: add the arguments of each call, and the version of its tool

    A row has the columns of the proposal by name, the ``place`` where people see the conversation, which is
    an address as text, and ``private``, True if that is a private chat.
    """
    columns = [*_COLUMNS]
    if with_decision:
        columns += _COLUMNS_OF_DECISION
    if with_arguments:
        columns += _COLUMNS_OF_ARGUMENTS
    query = select(
        *(_PROPOSAL.c[name] for name in columns),
        ADDRESS_SHOWN.label("place"),
        _PLACE.c.private,
    ).join_from(_PROPOSAL, _PLACE, _PLACE.c.id == _PROPOSAL.c.conversation_id)
    mark = (_PROPOSAL.c.created_at, _PROPOSAL.c.id)
    is_older: Any = true() if before is None else tuple_(*mark) < tuple_(*before)
    is_theirs: Any = true() if accounts is None else _PROPOSAL.c.requester.in_(sorted(accounts))
    query = query.where(_PROPOSAL.c.created_at >= since, is_older, is_theirs)
    query = query.order_by(*(column.desc() for column in mark)).limit(limit)
    with session.connection().execute(query, execution_options={"yield_per": _PAGE_ROWS}) as rows:
        yield from rows


def count_insights(
    session: Session, since: datetime, accounts: Collection[str] | None, zone: tzinfo
) -> Insights:
    """Return statistics on the requests of these accounts since then.

    Only proposals that people were asked about count. ``accounts``: None for all accounts. ``zone``: the
    team's time zone, for the hours of the week.
    """
    person_ids = {linked.account: linked.person_id for linked in people.list_linked(session)}
    total = Tally()
    tallies: Mapping[Facet, dict[str, Tally]] = {facet: defaultdict(Tally) for facet in Facet}
    votes = {Verb.APPROVE: Counter[str](), Verb.DECLINE: Counter[str]()}  # by the voter's Person
    week = [[0] * HOURS for _ in range(7)]  # the number of requests by weekday, from Monday, and by hour
    names: dict[str, str] = {}  # by the id of a Person, or by the key of a connection
    rows_read = 0
    oldest = None
    for row in list_newest(session, since, accounts=accounts, with_decision=True):
        rows_read += 1
        oldest = row.created_at
        if not is_counted(row) or not was_asked(row):
            continue
        person = person_ids.get(row.requester, row.requester)
        names.setdefault(person, row.requester_name)
        connection, connection_name = _name_connection(row)
        names.setdefault(connection, connection_name)

        # the request is counted in total, and once for each facet
        keys = {
            Facet.TOOL: row.tool_name,
            Facet.PLACE: _find_chat(row),
            Facet.PERSON: person,
            Facet.CONNECTION: connection,
        }
        outcomes = _list_outcomes(row)
        waited = _compute_wait(row, outcomes)
        for tally in (total, *(tallies[facet][key] for facet, key in keys.items())):
            tally.add(outcomes, waited)
        asked_at = row.created_at.astimezone(zone)
        week[asked_at.weekday()][asked_at.hour] += 1

        for vote in _read_votes(row.votes):
            if vote.verb in votes:
                voter_id = person_ids.get(vote.account, vote.account)
                names[voter_id] = names.get(voter_id) or vote.name
                votes[vote.verb][voter_id] += 1

    place_names = _name_places(session, tallies[Facet.PLACE])
    return Insights(
        since,
        back_to=oldest if rows_read == MAX_ROWS else None,
        everyone=accounts is None,
        total=total,
        parts={
            facet: _rank_parts(tally_by_key, names | place_names) for facet, tally_by_key in tallies.items()
        },
        deciders=_rank_deciders(votes[Verb.APPROVE], votes[Verb.DECLINE], names),
        week=week,
    )


def find_past_calls(session: Session, proposal: Proposal) -> PastCalls:
    """Return the earlier calls of a proposal's tool that everyone who may decide the proposal may see.

    For a proposal in a shared chat these are the calls in that chat. For a proposal in a private chat they
    are the requester's calls in shared chats. Calls in private chats never count. Calls that fewer people may
    see do not count, either.
    """
    values = {
        "asked_in": proposal.conversation_id,
        "tool": proposal.tool_name,
        "asked_by": str(proposal.requester),
        "same": proposal.digest,
        "answer": proposal.message_id,
    }
    found = session.connection().execute(_select_past_calls(), values).all()
    # without an earlier call, the only row has no value but ``known_count``
    rows = [row for row in found if row.kind is not None]
    calls = [
        EarlierCall(row.created_at, row.message_id, row.arguments, _find_decliners(row))
        for row in sorted(rows, key=attrgetter("created_at"), reverse=True)
        if is_counted(row) and _may_all_see(row, proposal)
    ]
    return PastCalls(
        calls[:MAX_CALLS],
        is_first=not rows,
        proposal_count=found[0].known_count,
        is_cut=len(rows) > MAX_CALLS,
    )


@cache
def _select_past_calls() -> Any:
    """Return the query of `find_past_calls`, built once.

    Each row has an earlier call, and in ``known_count`` the number of proposals of the shared chat, counted
    up to `MIN_KNOWN_PROPOSALS`. Without an earlier call there is one row, whose other columns are NULL.
    """
    of_new_call = _PLACE.c.id == bindparam("asked_in")
    # the chat of the new call, if it is a shared one; and its requester, if the call is made in private
    this_chat = select(CHAT_SHOWN).where(of_new_call, _PLACE.c.private.is_(False)).scalar_subquery()
    asker_in_private = select(bindparam("asked_by")).where(of_new_call, _PLACE.c.private).scalar_subquery()
    in_chat = _PROPOSAL.c.chat == this_chat
    is_shared = _PROPOSAL.c.chat.is_not(None)
    of_asker = _PROPOSAL.c.requester == asker_in_private
    of_other_answer = _PROPOSAL.c.message_id != bindparam("answer")  # calls of the same answer are new, too
    known = select(_PROPOSAL.c.id).where(in_chat, of_other_answer).limit(MIN_KNOWN_PROPOSALS).subquery()
    known_count = select(func.count().label("known_count")).select_from(known).subquery()
    earlier = union_all(
        _select_calls(in_chat, of_other_answer), _select_calls(of_asker, is_shared, of_other_answer)
    ).subquery()
    # an outer join: without earlier calls, there is one row with the count
    return select(known_count, earlier).select_from(known_count.outerjoin(earlier, true()))


def _select_calls(*conditions: Any) -> Any:
    """Return the query for a tool's newest calls under these conditions, one more than `MAX_CALLS`.

    JSON columns are read as text, since most of them are not parsed. The column ``votes`` is NULL unless the
    call has the same arguments as the new one.
    """
    plain = ("kind", "state", "message_id", "created_at", "undoes", "escalate_to")
    is_same = _PROPOSAL.c.digest == bindparam("same")
    found = select(
        *(_PROPOSAL.c[name] for name in plain),
        cast(_PROPOSAL.c.arguments, Text).label("arguments"),
        cast(_PROPOSAL.c.deciders, Text).label("deciders"),
        cast(_PROPOSAL.c.steps, Text).label("steps"),
        case((is_same, cast(_PROPOSAL.c.votes, Text))).label("votes"),
    )
    newest = found.where(*conditions, _PROPOSAL.c.tool_name == bindparam("tool"))
    return select(newest.order_by(_PROPOSAL.c.created_at.desc()).limit(MAX_CALLS + 1).subquery())


def _may_all_see(row: Any, proposal: Proposal) -> bool:
    """Return whether everyone who may decide a proposal may see the earlier call in ``row``.

    The earlier call is of the proposal's chat, or of its requester. People outside that chat may decide the
    proposal if it is escalated to them, or if it names them. They may see the earlier call only if that call
    could be escalated to them, or named them, too.
    """
    targets = proposal.escalation_targets
    if targets and not _list_targets(row).issuperset(targets):
        return False
    named = set(proposal.deciders.people)
    return not named or named <= set(json.loads(row.deciders)["people"])


def _list_targets(row: Any) -> set[str]:
    """Return the chats, accounts and groups to which an earlier call was escalated, or might have been."""
    steps = json.loads(row.steps or "null") or ()
    return {row.escalate_to, *(target for target, *_ in steps)}


def _find_decliners(row: Any) -> tuple[str, ...]:
    """Return the names of the people who declined an earlier call that is the same as the new one."""
    if row.votes is None or row.state != State.DECLINED:
        return ()
    declined = [vote for vote in _read_votes(json.loads(row.votes)) if vote.verb == Verb.DECLINE]
    return tuple(vote.name or Actor.parse(vote.account).label for vote in declined)


class _StoredVote(NamedTuple):
    """A vote in the column ``votes``."""

    account: str  # of the person who voted
    name: str
    verb: Any  # a `Verb`, as text


def _read_votes(stored: Iterable[Any]) -> list[_StoredVote]:
    """Return stored votes. Each is a list of values in the order of ``proposal_rows.py``."""
    return [_StoredVote(account, name, verb) for _, account, name, verb, *_ in stored]


def is_counted(row: Any) -> bool:
    """Return whether statistics count a proposal: its kind is counted, and it does not undo another one."""
    return find_kind(row.kind).is_counted and not row.undoes


def was_asked(row: Any) -> bool:
    """Return whether people were asked about a proposal: neither a rule nor a grant approved it."""
    return row.grant_id is None and bool(row.votes or row.state not in APPROVED_STATES)


def _list_outcomes(row: Any) -> list[str]:
    """Return the outcomes of a proposal that `Tally` counts, such as approved and undone."""
    if row.state in APPROVED_STATES:
        marks = {"edited": row.edited_by, "undone": row.undone_by, "failed": row.state == State.FAILED}
        return ["approved", *(name for name, is_so in marks.items() if is_so)]
    if row.state in (State.DECLINED, State.EXPIRED):
        return [row.state]
    return []


def _compute_wait(row: Any, outcomes: Collection[str]) -> float | None:
    """Return the seconds from a request to its decision; None without a decision."""
    was_decided = "approved" in outcomes or "declined" in outcomes
    if was_decided and row.decided_at:
        return max(0.0, float((row.decided_at - row.created_at).total_seconds()))
    return None


def _name_connection(row: Any) -> tuple[str, str]:
    """Return the key of the account under which a call runs, and the account in words."""
    if not row.connection:
        return "nod", "Nod's own accounts"
    connection = Connection.from_json(row.connection)
    return connection.key, connection.acts_as


def _find_chat(row: Any) -> str:
    """Return the address of the request's chat, as text; for a private chat the name of its channel.

    So the name of a channel stands for all private chats there.
    """
    address = Address.parse(row.place)
    if row.private:
        return address.channel
    return str(chat_of(address))


def _name_places(session: Session, places: Collection[str]) -> dict[str, str]:
    """Return the names of places for people. ``places``: the results of `_find_chat`."""
    chats = [place for place in places if ":" in place]  # the addresses
    chat_names = people.find_known_names(session, chats)
    return {
        place: name_of_place(place, chat_names) if ":" in place else _name_private_chats(place)
        for place in places
    }


def _name_private_chats(channel: str) -> str:
    name = name_of_channel(channel)
    if name[:1].islower():
        return name
    return f"private chats in {name}"


def _rank_parts(tallies: Mapping[str, Tally], names: Mapping[str, str]) -> list[InsightPart]:
    """Return the parts of a facet with their names, those that were asked for most often first."""
    order = sorted(tallies, key=lambda key: (-tallies[key].asked, key))
    return [InsightPart(key, names.get(key) or key, tallies[key]) for key in order[:_MAX_PARTS]]


def _rank_deciders(approved: Counter[str], declined: Counter[str], names: Mapping[str, str]) -> list[Decider]:
    """Return the people who voted, by the ids of their Persons, those with most votes first."""
    most_votes = (approved + declined).most_common(_MAX_PARTS)
    return [
        Decider(person, names.get(person) or person, approved[person], declined[person])
        for person, _ in most_votes
    ]

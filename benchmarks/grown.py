"""The cost of looks at a Nod that has been used for long: 100,000 proposals and all that goes with them.

Half of the proposals are in threads of a few, half in long conversations; one in fifty waits. Each has four
rows in the audit log, made by the store's own functions, so that the log verifies. ``python -m
benchmarks.grown URL COUNT`` fills an empty database and leaves it there; with COUNT 0 it only measures one.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count as count_up
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from sqlalchemy import insert, text, update
from sqlmodel import Session, select

from benchmarks.past import PEOPLE, TOOLS, decided
from benchmarks.table import Row, show
from bot.approvals import pause
from bot.domain.audit import Act, AuditFilter
from bot.domain.chat import Parts
from bot.domain.digests import make_digest
from bot.domain.people import Membership, Person
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.times import now
from bot.domain.verbs import Verb
from bot.store import asked_calls, counts, migrations, proposals, rules
from bot.store.audit import admin_changes, log, search, verification
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author, Change
from bot.store.database import Database
from bot.store.proposal_rows import to_row
from bot.store.proposals import SearchScope
from bot.store.rules import Policies
from bot.store.tables.conversations import CHAT_SHOWN, ConversationRow, MessageRow, TurnRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of
from tests.kit.urls import schema

_BATCH = 500
_LONG, _SHORT = 1000, 5  # proposals of a long conversation, and of a thread
_EACH_OPEN = 50  # one in so many waits
_EACH_TOLD = 20  # one in so many has a row about something besides
_SPAN = timedelta(days=300)
_DECLINED_LATELY = 20  # of the newest in a long conversation
_READER = Person(str(PEOPLE[0]), PEOPLE[0].name, frozenset({str(PEOPLE[0])}), Membership.MEMBER)
_PAGE = 50
_BATCH_OF_A_RESUME = 200


async def rows(where: Path, database: str, *, count: int, times: int = 5) -> list[Row]:
    """``database``: the URL of a PostgreSQL; empty for SQLite."""
    if not database:
        return await asyncio.to_thread(_measure_filled, f"sqlite:///{where / 'grown.db'}", count, times)
    with schema(database) as url:
        return await asyncio.to_thread(_measure_filled, url, count, times)


def _measure_filled(url: str, count: int, times: int) -> list[Row]:
    fill(url, count)
    return measure(url, times)


def fill(url: str, count: int) -> None:
    """Write so many proposals, twice as many messages and turns, and four times as many audit rows."""
    database = Database(url)
    migrations.upgrade(database.engine)
    at = now()
    for first in range(0, count, _BATCH):
        database.write_now(_fill, first, min(_BATCH, count - first), count, at)
    database.write_now(_name_chats)
    if database.dialect == "postgresql":
        engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text("VACUUM (ANALYZE)"))
    database.close()


def measure(url: str, times: int) -> list[Row]:
    """Time each look: medians, by the clock and by this process's processor time."""
    database = Database(url)
    migrations.upgrade(database.engine)
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database.dialect]
    found = []
    for words, look in _list_looks(now()).items():
        database.read_now(look)  # what it reads is in memory from here on
        took, used = _time(lambda look=look: database.read_now(look), times)  # type: ignore[misc]
        found.append(Row(f"{name}: {words}", f"{took:.1f} ms; CPU {used:.1f}"))
    took, used = _time(lambda: verification.find_faults(database.read_now), 1)
    found.append(Row(f"{name}: the audit log verified", f"{took / 1000:.1f} s; CPU {used / 1000:.1f}"))
    actor, at = PEOPLE[0], now()
    database.write_now(rules.pause_all, actor, at)
    steps = count_up(1)
    took, used = _time(
        lambda: database.write_now(pause.take_resume_step, actor, at + timedelta(seconds=next(steps))),
        times,
    )
    found.append(Row(f"{name}: a batch of a resume, in one transaction", f"{took:.1f} ms; CPU {used:.1f}"))
    while not (step := database.write_now(pause.take_resume_step, actor, at)) or not step.is_last:
        pass
    database.close()
    return found


def _time(do: Callable[[], object], times: int) -> tuple[float, float]:
    """Milliseconds by the clock, and of the processor."""
    took, used = [], []
    for _ in range(times):
        begun, before = perf_counter(), process_time()
        do()
        took.append(1000 * (perf_counter() - begun))
        used.append(1000 * (process_time() - before))
    return median(took), median(used)


def _list_looks(at: datetime) -> dict[str, Callable[[Session], object]]:
    """Return what is looked at, by what it is."""
    everyone = SearchScope(frozenset(), everything=True)
    policies = Policies(Policy(admins=frozenset({str(PEOPLE[0])})))

    def page(**wanted: Any) -> Callable[[Session], object]:
        return lambda session: search.load_page(session, AuditFilter(**wanted), _PAGE)

    def use(by: Parts) -> Callable[[Session], object]:
        return lambda session: counts.list_usage(session, by, at - timedelta(days=30), None)

    def standing(session: Session) -> object:
        return counts.count_waiting(session)

    def turns(session: Session) -> object:
        newest, under_way = counts.find_turns_under_way(session)
        return counts.list_turns(session, newest, under_way)

    return {
        "asked already, after a decline": lambda s: asked_calls.find_calls_already_asked(s, "long0", at),
        "a page of the audit log": page(),
        "  of a person": page(who=str(PEOPLE[1])),
        "  of a tool": page(tool=TOOLS[1]),
        "  of a proposal": lambda s: search.load_page(s, AuditFilter(proposal=_id_of_newest(s)), _PAGE),
        "what waits, after an id, as a resume reads it": lambda s: proposals.list_waiting_after(
            s, "", _BATCH_OF_A_RESUME
        ),
        "usage of 30 days by day": use(Parts.DAY),
        "usage of 30 days by person": use(Parts.PERSON),
        "what stands, for the metrics": standing,
        "turns, for the metrics": turns,
        "a list of what waits": lambda s: proposals.list_within_reach(s, everyone, [State.PROPOSED], _PAGE),
        "a list of all states": lambda s: proposals.list_within_reach(s, everyone, list(State), _PAGE),
        "what is proposed is judged: policy and person": lambda s: policies.load_with_person(s, PEOPLE[1]),
    }


def _id_of_newest(session: Session) -> str:
    newest = select(ProposalRow.id).order_by(table_of(ProposalRow).c.created_at.desc()).limit(1)
    return str(session.exec(newest).one())


def _fill(session: Session, first: int, count: int, of: int, at: datetime) -> None:
    numbers = range(first, first + count)
    places = {_name_place(n, of): n for n in reversed(numbers)}
    there = select(ConversationRow.id).where(table_of(ConversationRow).c.id.in_(list(places)))
    known = set(session.exec(there))
    run = session.connection().execute
    if new := [_make_conversation(ident, n, at) for ident, n in places.items() if ident not in known]:
        run(insert(ConversationRow), new)
    found = [_make_proposal(n, of, at) for n in numbers]
    lines = [line for p in found for line in _list_lines(p)]
    run(insert(MessageRow), lines)
    run(insert(TurnRow), [_make_turn(line) for line in lines])
    run(insert(ProposalRow), [to_row(p) for p in found])
    for p in found:
        log.record_changes(session, _list_changes(p))
        if p.message_id % (2 * _EACH_TOLD) == 0:
            by = Author.of_person(Act.READ, PEOPLE[0], _READER)
            admin_changes.record(session, Thing.CONTEXT, p.id, by, None, None, p.updated_at, p.tool_name)


def _name_chats(session: Session) -> None:
    """Store in which chat people see each proposal, as the store does when it opens one."""
    place, proposal = table_of(ConversationRow), table_of(ProposalRow)
    seen_in = select(CHAT_SHOWN).where(place.c.id == proposal.c.conversation_id).scalar_subquery()
    session.connection().execute(update(proposal).values(chat=seen_in))


def _name_place(n: int, of: int) -> str:
    return f"long{n // _LONG}" if n < of // 2 else f"thread{n // _SHORT}"


def _make_conversation(ident: str, n: int, at: datetime) -> dict[str, Any]:
    return {
        "id": ident,
        "channel": "slack",
        "key": f"T1/C{n % 4}/{ident}",
        "private": False,
        "owner": str(PEOPLE[n % 4]),
        "title": f"Conversation {ident}",
        "created_at": at - _SPAN,
    }


def _make_proposal(n: int, of: int, at: datetime) -> Proposal:
    """The ``n``-th: spread over the span, those of a long conversation up to now; its newest is declined."""
    in_long = n < of // 2
    share = (n % _LONG) / _LONG if in_long else (n - of // 2) / (of - of // 2)
    asked_at = at - _SPAN * (1 - share) - timedelta(minutes=1)
    p = decided(n, of, asked_at)
    state = p.state
    if n % _EACH_OPEN == 1:
        state = State.PROPOSED
    elif in_long and n % _LONG > _LONG - _DECLINED_LATELY:
        state = State.DECLINED
    opened = state is State.PROPOSED
    return replace(
        p,
        conversation_id=_name_place(n, of),
        message_id=2 * n + 2,
        digest=make_digest(p.tool_name, p.tool_version, p.arguments),
        state=state,
        version=1 if opened else 4,
        votes=() if opened else p.votes,
        decided_by=None if opened else "Ben",
        decided_at=None if opened else asked_at + timedelta(seconds=30),
        created_at=asked_at,
        updated_at=asked_at if opened else asked_at + timedelta(seconds=40),
        expires_at=(at if opened else asked_at) + p.ttl,
    )


def _list_lines(p: Proposal) -> list[dict[str, Any]]:
    """The question, and the answer with the call. The last of a long conversation share one question."""
    shared = {"conversation_id": p.conversation_id, "created_at": p.created_at, "after": None, "name": ""}
    lately = (p.message_id // 2 - 1) % _LONG > _LONG - _DECLINED_LATELY
    said = {"role": "note" if lately else "user", "actor": None if lately else str(p.requester)}
    return [
        {**shared, **said, "id": p.message_id - 1, "text": "please do"},
        {**shared, "role": "assistant", "actor": None, "id": p.message_id, "text": "I will."},
    ]


def _make_turn(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "conversation_id": line["conversation_id"],
        "state": "finished",
        "model_calls": 1,
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "asker": line["actor"],
        "created_at": line["created_at"],
        "ended_at": line["created_at"],
        "model": "gpt-test",
    }


def _list_changes(p: Proposal) -> list[Change]:
    """What brought it to what it is, in four steps; one that waits was only proposed."""
    row = to_row(p)
    about = log.describe_request(p, "slack:T1/C1", None)
    if p.state is State.PROPOSED:
        return [Change(p, row, Author.of_nod(Act.PROPOSE), about)]
    steps: tuple[tuple[State, Author], ...] = (
        (State.PROPOSED, Author.of_nod(Act.PROPOSE)),
        (State.APPROVED, Author.of_person(Verb.APPROVE, PEOPLE[1], _READER)),
        (State.EXECUTING, Author.of_nod(Act.EXECUTE)),
        (p.state, Author.of_nod(p.state)),
    )
    return [
        Change(replace(p, state=state, version=version), row, by, None if version > 1 else about)
        for version, (state, by) in enumerate(steps, 1)
    ]


def main(url: str, count: int) -> None:
    if count:
        fill(url, count)
    show("A Nod that has been used for long", url, measure(url, 5))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

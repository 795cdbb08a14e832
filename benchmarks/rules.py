"""Rules at size: judging calls, matching grants, expiring what is due, verifying the record."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter

from sqlalchemy import func, insert
from sqlmodel import Session, select

from benchmarks.table import Row
from bot.approvals import grants, lifecycle
from bot.domain import kinds
from bot.domain.audit import Act
from bot.domain.call_facts import CallFacts, Place
from bot.domain.digests import make_digest, to_canonical_json
from bot.domain.model import ToolCall
from bot.domain.people import Actor, Person
from bot.domain.policy import Policy
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.rule_values import Mode, Quorum, RuleValue, Subject
from bot.domain.rulebook import Rulebook
from bot.domain.rules import EVERYWHERE, Rule
from bot.domain.similarity import GrantScope, Likeness
from bot.domain.times import now
from bot.domain.verdicts import make_terms
from bot.store import migrations, transitions
from bot.store.audit import verification
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.rules import Policies
from bot.store.tables.audit import AuditRow
from bot.store.tables.conversations import ConversationRow, MessageRow
from bot.store.tables.rules import GrantRow

ANA = Actor("bench", "ana", "Ana")
_PERSON = Person(str(ANA), "Ana", frozenset({str(ANA)}))
_COUNT = 1000  # rules, and grants
_TOOLS = 50
_BATCH = 200  # as the assistant's own sweep
_WRITE = Risk(Level.WRITE, "it changes something")
_VALUES: dict[Subject, RuleValue] = {
    Subject.POLICY: Mode.WRITES,
    Subject.TTL: timedelta(hours=1),
    Subject.QUORUM: Quorum(),
    Subject.DECIDERS: ("requester", "approver", "admin"),
    Subject.REMIND: timedelta(hours=1),
}


async def rows(where: Path, *, due: int, seconds: float) -> list[Row]:
    """``due``: how many proposals are expired; ``seconds``: how long a rate is measured."""
    database = Database(f"sqlite:///{where / 'rules.db'}")
    migrations.upgrade(database.engine)
    try:
        return [
            Row(f"policy judgements/s, {_COUNT} rules", f"{_judgements(seconds):.0f}"),
            Row(f"grant matches/s, {_COUNT} grants", f"{_matches(database, seconds):.0f}"),
            *await _expiry(database, due),
        ]
    finally:
        database.close()


def _policy() -> Policy:
    """Rules of five subjects over fifty tools, each name and each pattern, in ten places."""
    each = [
        (subject, f"tool_{tool}" if tool % 2 else f"tool_{tool}*", EVERYWHERE if place else "bench:T1/C9")
        for tool in range(_TOOLS)
        for place in range(4)
        for subject in _VALUES
    ]
    found = tuple(
        Rule(number, subject, scope, pattern, _VALUES[subject])
        for number, (subject, pattern, scope) in enumerate(each[:_COUNT], 1)
    )
    assert len(found) == _COUNT
    return Policy(rulebook=Rulebook(1, found))


def _judgements(seconds: float) -> float:
    policy, place, at = _policy(), Place("bench:T1/C1/7", private=False), now()

    def judge(turn: int) -> None:
        policy.judge(CallFacts(f"tool_{turn % _TOOLS}", _WRITE, place, _PERSON, at))

    return _rate(judge, seconds)


def _rate(do: Callable[[int], None], seconds: float) -> float:
    for turn in range(_TOOLS):
        do(turn)
    begun, count = perf_counter(), 0
    while perf_counter() - begun < seconds:
        for _ in range(_TOOLS):
            do(count)
            count += 1
    return count / (perf_counter() - begun)


def proposal(number: int, at: datetime, **changes: object) -> Proposal:
    arguments = {"text": f"note {number}"}
    name = f"tool_{number % _TOOLS}"
    verdict = Policy().judge(CallFacts(name, _WRITE, Place("bench:c", private=True), _PERSON, at))
    fields: dict[str, object] = {
        "id": hashlib.sha256(str(number).encode()).hexdigest()[:16],
        "kind": kinds.CALL,
        "conversation_id": f"c{number}",
        "message_id": number,
        "call_id": ToolCall("call_1", name, "{}").id,
        "position": 0,
        "tool_name": name,
        "tool_version": "1",
        "arguments": arguments,
        "description": f"Add the note {number}",
        "preview": (),
        "reason": "asked",
        "requester": ANA,
        "state": State.PROPOSED,
        "round": 1,
        "version": 1,
        "digest": make_digest(name, "1", arguments),
        "created_at": at,
        "updated_at": at,
        **make_terms(verdict, at),
    }
    return Proposal(**{**fields, **changes})  # type: ignore[arg-type]


def _matches(database: Database, seconds: float) -> float:
    """Calls that the last of the grants for their tool covers: twenty are looked at for each."""
    at = now()
    database.write_now(park, 0, 1, at)
    database.write_now(_give, at)
    policies = Policies(Policy())

    def match(session: Session) -> float:
        calls = [proposal(number, at) for number in range(_COUNT - _TOOLS, _COUNT)]

        def use(turn: int) -> None:
            assert grants.approve_by_grant(session, policies, calls[turn % _TOOLS], Likeness(), at).grant_id

        return _rate(use, seconds)

    return database.write_now(match)


def _give(session: Session, at: datetime) -> None:
    session.connection().execute(
        insert(GrantRow),
        [
            {
                "tool_name": f"tool_{number % _TOOLS}",
                "tool_version": "1",
                "rung": GrantScope.EXACT,
                "match": to_canonical_json({"text": f"note {number}"}),
                "words": "exactly these",
                "person_id": str(ANA),
                "person_name": "Ana",
                "conversation_id": "c0",
                "only_there": False,
                "proposal_id": proposal(0, at).id,
                "uses": 0,
                "created_at": at,
                "expires_at": None,
            }
            for number in range(_COUNT)
        ],
    )


def park(session: Session, first: int, count: int, at: datetime) -> None:
    """Proposals that wait, one in each conversation."""
    numbers = range(first, first + count)
    shared = {"channel": "bench", "created_at": at}
    session.connection().execute(
        insert(ConversationRow),
        [
            shared | {"id": f"c{n}", "key": f"c{n}", "private": True, "owner": str(ANA), "title": ""}
            for n in numbers
        ],
    )
    session.connection().execute(
        insert(MessageRow),
        [
            {"id": n, "conversation_id": f"c{n}", "role": "assistant", "text": "", "created_at": at}
            for n in numbers
        ],
    )
    transitions.insert_proposals(session, [proposal(n, at) for n in numbers], Author.of_nod(Act.PROPOSE))


async def _expiry(database: Database, count: int) -> list[Row]:
    at = now() - timedelta(days=2)
    for first in range(1, count + 1, 2000):
        await database.write(park, first, min(2000, count + 1 - first), at)
    policies, after = Policies(Policy()), now()
    begun, done = perf_counter(), 0
    while expired := await database.write(lifecycle.expire_due, policies, after, _BATCH):
        done += len(expired)
    took = perf_counter() - begun
    assert done == count
    audited = database.read_now(lambda s: s.exec(select(func.count()).select_from(AuditRow)).one())
    begun = perf_counter()
    assert database.read_now(
        verification.find_faults_in_session
    )  # the bare grants of this benchmark, which nobody gave
    verified = perf_counter() - begun
    return [
        Row(f"seconds to expire {count:,} due proposals, in batches of {_BATCH}", f"{took:.1f}"),
        Row("  expired/s", f"{count / took:.0f}"),
        Row(f"audit rows verified/s, {audited:,} rows", f"{audited / verified:.0f}"),
    ]

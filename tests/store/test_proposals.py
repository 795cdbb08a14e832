"""Proposals as rows: every move is guarded by the database."""

from collections.abc import Callable
from dataclasses import fields as fields_of
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlmodel import Session

from bot.domain import kinds
from bot.domain.chat import Address
from bot.domain.deciders import Deciders
from bot.domain.preview import Edit, PreviewField
from bot.domain.proposal_states import TRANSITIONS, Cause, State
from bot.domain.proposals import Proposal, Vote
from bot.domain.risks import Level, Risk
from bot.domain.rules import EVERYWHERE
from bot.store import abandoned_work, proposals, requirements, transitions
from bot.store.audit.log import Author
from tests.kit import ANA, ROOM
from tests.store.conftest import DatabaseCluster, Rows

NOD = Author.of_nod("test")
Look = Callable[[Session, datetime], Any]


def test_what_is_stored_comes_back_the_same(rows: Rows) -> None:
    [p] = rows.propose(votes=(Vote("chat:ana", ANA, "approve", "fine", rows.clock()),), reason="naïve ☃")
    assert rows.now(p) == p


def test_every_field_comes_back_as_it_was(rows: Rows) -> None:
    at, fields = (
        rows.clock(),
        (PreviewField("color", "red", "blue", titled=True), PreviewField("x", None, "1")),
    )
    rare: dict[str, Any] = {
        "kind": kinds.PLAN,
        "arguments": {"deep": [{"a": None}, 1.5]},
        "preview": fields,
        "risk": Risk(Level.DESTRUCTIVE, "gone for good"),
        "deciders": Deciders(
            requester=True,
            roles=("lead",),
            people=("chat:ana", "eva"),
            members="chat:room",
            four_eyes=True,
            lead="both",
            escalated="chat:boss",
            place="chat:room/1",
        ),
        "cause": Cause.STOPPED,
        "votes": (Vote("ana", ANA, "approve", None, at),),
        "edits": (Edit(2, "Ana", fields), Edit(3, "Ben", fields[:1])),
        "ttl": timedelta(minutes=90),
        "remind_every": timedelta(hours=2),
        "values_changed": True,
        "grant_id": 7,
        "declines": 3,
    }
    plain = {each.name: each.name for each in fields_of(Proposal) if str(each.type) == "str | None"}
    times = {each.name: at for each in fields_of(Proposal) if str(each.type) == "datetime | None"}
    [p] = rows.propose(**rare | plain | times | {"progress": None})
    assert rows.now(p) == p


@pytest.mark.parametrize(
    ("before", "after"),
    [(a, b) for a, b in product(State, State) if b not in TRANSITIONS[a]],
    ids=str,
)
def test_a_move_that_is_not_in_the_table_is_refused(rows: Rows, before: State, after: State) -> None:
    [p] = rows.propose(state=before)
    with pytest.raises(ValueError, match="can't change from"):
        rows.database.write_now(transitions.change_proposal, p, NOD, rows.clock(), after)
    assert rows.now(p) == p


@pytest.mark.parametrize(("before", "after"), [(a, b) for a in State for b in sorted(TRANSITIONS[a])])
def test_a_move_from_what_is_no_longer_there_changes_nothing(rows: Rows, before: State, after: State) -> None:
    [p] = rows.propose(state=before)
    moved = rows.database.write_now(transitions.change_proposal, p, NOD, rows.clock(), after)
    assert moved is not None
    assert (moved.state, moved.version, rows.now(p)) == (after, 2, moved)
    assert rows.database.write_now(transitions.change_proposal, p, NOD, rows.clock(), after) is None
    assert rows.now(p) == moved


def test_a_change_without_a_move_counts_a_version_and_is_guarded_by_it(rows: Rows) -> None:
    [p] = rows.propose()
    voted = rows.database.write_now(transitions.change_proposal, p, NOD, rows.clock(), reason="first")
    assert voted is not None
    assert (voted.version, voted.state) == (2, State.PROPOSED)
    assert rows.database.write_now(transitions.change_proposal, p, NOD, rows.clock(), reason="second") is None
    assert rows.now(p).reason == "first"


def test_of_twenty_who_claim_at_the_same_time_one_gets_it(rows: Rows, together: DatabaseCluster) -> None:
    [p] = rows.propose()
    rows.decide(p)
    claimed = [c for c in together([lambda: rows.claim(p)] * 20) if c is not None]
    assert len([c for c in claimed if not isinstance(c, ValueError)]) == 1
    assert rows.now(p).version == 3


def test_what_is_due_comes_the_oldest_first_and_no_more_than_asked_for(rows: Rows) -> None:
    now = rows.clock()
    late = [rows.propose(expires_at=now + timedelta(minutes=m))[0] for m in (3, 1, 2)]
    rows.decide(late[2])
    due = rows.database.read_now(proposals.list_due_to_expire, now + timedelta(minutes=3), 10)
    assert [p.id for p in due] == [late[1].id, late[0].id]
    assert len(rows.database.read_now(proposals.list_due_to_expire, now + timedelta(minutes=3), 1)) == 1
    assert rows.database.read_now(proposals.list_due_to_expire, now, 10) == []


def test_the_beginning_of_an_id_finds_at_most_two(rows: Rows) -> None:
    found = rows.propose(3)
    assert rows.database.read_now(proposals.find_by_prefix, found[1].id) == [found[1]]
    assert len(rows.database.read_now(proposals.find_by_prefix, "p")) == 2
    assert rows.database.read_now(proposals.find_by_prefix, "%") == []


def test_two_rows_never_share_an_idempotency_key(rows: Rows) -> None:
    rows.propose(2)
    with rows.database.engine.connect() as connection:
        keys = connection.execute(text("SELECT count(DISTINCT idempotency_key) FROM proposal")).scalar_one()
    assert keys == 2


def test_what_is_open_in_a_scope_comes_soonest_first_however_much_is_open_elsewhere(rows: Rows) -> None:
    [early] = rows.propose(at=Address("chat", "T1/hall/7"))
    rows.clock.forward(timedelta(minutes=1))
    [late] = rows.propose(at=Address("chat", "T1/hall"))
    rows.clock.forward(timedelta(minutes=1))
    for place in (ROOM, Address("chat", "t1/hall/7"), Address("chat", "T1/hallway"), Address("http", "x")):
        rows.propose(3, at=place)

    def soonest(scope: str, limit: int | None = None) -> tuple[list[str], int]:
        found, many = rows.database.read_now(proposals.list_soonest, scope, limit)
        return [p.id for p in found], many

    assert soonest("chat:T1/hall") == ([early.id, late.id], 2)
    assert soonest("chat:T1/hall", 1) == ([early.id], 2)
    assert soonest("chat:T1/hall/7") == ([early.id], 1)
    assert soonest("chat:T1/nowhere") == ([], 0)
    assert soonest("chat:*", 3)[1] == 11
    assert soonest(EVERYWHERE, 2) == ([early.id, late.id], 14)


@pytest.mark.parametrize(
    ("look", "index"),
    [
        (lambda s, now: proposals.list_due_to_expire(s, now, 9), "proposal_due"),
        (lambda s, now: proposals.list_due_for_action(s, "warn", now, 9), "proposal_warn"),
        (lambda s, now: proposals.list_due_for_action(s, "remind", now, 9), "proposal_remind"),
        (lambda s, now: proposals.list_due_for_action(s, "escalate", now, 9), "proposal_escalate"),
        (lambda s, _: abandoned_work.list_abandoned_questions(s, "me"), "proposal_question"),
        (lambda s, _: proposals.list_waiting_after(s, "", 9), "proposal_waiting"),
    ],
)
def test_what_a_tick_looks_for_is_in_an_index_of_few(rows: Rows, look: Look, index: str) -> None:
    if rows.database.dialect != "sqlite":
        pytest.skip("PostgreSQL chooses by what is in the table")
    asked: list[tuple[str, Any]] = []
    event.listen(
        rows.database.engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3]))
    )
    rows.database.read_now(look, rows.clock())
    [(words, given)] = [each for each in asked if "FROM proposal" in each[0]]
    with rows.database.engine.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}", given).all()
    assert f"INDEX {index}" in plan[0].detail


LOWERED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"roles": ()}, {}),
    ({"people": ()}, {}),
    ({"people": ("chat:ana", "chat:eve")}, {}),
    ({"four_eyes": False}, {}),
    ({"requester": True}, {}),
    ({"members": "chat:room"}, {}),
    ({"lead": None}, {}),
    ({}, {"quorum": 1}),
    ({}, {"expires_at": None}),
    ({}, {"arguments": {}}),
    ({}, {"votes": ()}),
]


@pytest.mark.parametrize(("who", "what"), LOWERED)
def test_the_move_that_raises_refuses_what_would_lower_or_change_anything_else(
    rows: Rows, who: dict[str, Any], what: dict[str, Any]
) -> None:
    strict = Deciders(
        requester=False,
        roles=("approver",),
        people=("chat:ana",),
        four_eyes=True,
        lead="both",
        place="chat:room",
    )
    [p] = rows.propose(deciders=strict, quorum=2)

    def raise_it(session: Session) -> Proposal | None:
        deciders = replace(strict, **who)
        return requirements.raise_requirements(session, p, NOD, rows.clock(), deciders=deciders, **what)

    with pytest.raises(ValueError, match="requirements"):
        rows.database.write_now(raise_it)
    assert rows.now(p) == p


def test_the_move_that_raises_adds_roles_and_is_recorded(rows: Rows) -> None:
    [p] = rows.propose(deciders=Deciders(requester=True, roles=("approver",)))
    more = replace(p.deciders, roles=("approver", "admin"), escalated="chat:wall")

    def raise_it(session: Session) -> Proposal | None:
        return requirements.raise_requirements(session, p, NOD, rows.clock(), deciders=more, escalate_at=None)

    rows.database.write_now(raise_it)
    after = rows.now(p)
    assert (after.deciders, after.version, after.round) == (more, p.version + 1, p.round)

"""The record of every change: append-only, and any change of it shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import Session

from bot.approvals import runs
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.store.audit import chain_check, log, verification
from bot.store.audit.log import Author, Change
from bot.store.database import Database
from tests.store.conftest import Rows


@pytest.fixture
def ended(rows: Rows) -> Proposal:
    """A proposal with four changes: proposed, approved, executed, failed."""
    [p] = rows.running()
    failed = rows.database.write_now(runs.finish, p, State.FAILED, rows.clock(), error="no paint")
    assert failed is not None
    return failed[0]


def broken(rows: Rows) -> list[str]:
    return rows.database.read_now(verification.find_faults_in_session)


def test_every_change_is_one_row_of_who_what_and_when(rows: Rows, ended: Proposal) -> None:
    history = rows.database.read_now(log.list_rows_of_proposal, ended.id)
    assert [(e.version, e.verb, e.person, e.state) for e in history] == [
        (1, "propose", "nod", "proposed"),
        (2, "approve", "chat:ana", "approved"),
        (3, "execute", "nod", "executing"),
        (4, "failed", "nod", "failed"),
    ]
    assert {e.digest for e in history} == {ended.digest}
    assert broken(rows) == []


CHANGES = [
    ("UPDATE audit SET person = 'chat:eve' WHERE version = 2", "version 2) was altered"),
    ("UPDATE audit SET reason = 'so' WHERE version = 1", "version 1) was altered"),
    ("UPDATE audit SET digest = 'x' WHERE version = 4", "version 4) was altered"),
    ("UPDATE audit SET at = '2020-01-01 00:00:00' WHERE version = 3", "version 3) was altered"),
    ("UPDATE audit SET hash = 'x' WHERE version = 3", "version 3) was altered"),
    ("DELETE FROM audit WHERE version = 1", "is missing before"),
    ("DELETE FROM audit WHERE version = 2", "is missing before"),
    ("DELETE FROM audit WHERE version = 4", "its row is at version 4, its audit is not"),
    ("DELETE FROM audit", "its row is at version 4, its audit is not"),
    (
        (
            "INSERT INTO audit (id, proposal_id, version, at, verb, state, actor, person, channel, digest, "
            "rule, previous, hash) SELECT id + 1, proposal_id, 5, at, verb, state, actor, person, channel, "
            "digest, rule, hash, 'x' FROM audit WHERE version = 4"
        ),
        "version 5) was altered",
    ),
    ("UPDATE proposal SET state = 'succeeded'", "its row is not what audit row"),
    ("UPDATE proposal SET version = 5", "its row is at version 5, its audit is not"),
    ('UPDATE proposal SET arguments = \'{"lamp": "roof"}\'', "its row is not what audit row"),
]


@pytest.mark.parametrize(("sql", "words"), CHANGES, ids=[sql[:50] for sql, _ in CHANGES])
def test_a_row_changed_removed_or_slipped_in_is_named(
    rows: Rows, ended: Proposal, sql: str, words: str
) -> None:
    with rows.database.engine.begin() as connection:
        assert connection.execute(text(sql)).rowcount >= 1
    found = broken(rows)
    assert any(ended.id in each and words in each for each in found), found


def test_a_well_made_extra_row_is_found_too(rows: Rows, ended: Proposal) -> None:
    forged = replace(ended, version=5)
    by = Author("approve", "chat:eve", "chat:eve", "chat")
    rows.database.write_now(log.record_changes, [Change(forged, {}, by)])
    assert broken(rows) == [f"proposal {ended.id}: its row is at version 4, its audit at 5"]


def test_the_feed_of_changes_continues_from_where_one_left_off(rows: Rows, ended: Proposal) -> None:
    def feed(last: int) -> list[tuple[int, str]]:
        return rows.database.read_now(log.list_after, last)

    everything = feed(0)
    assert [proposal_id for _, proposal_id in everything] == [ended.id] * 4
    newest = rows.database.read_now(log.find_last_id)
    assert newest == everything[-1][0]
    assert feed(newest) == []
    rows.decide(ended, Verb.RETRY)
    assert [proposal_id for _, proposal_id in feed(newest)] == [ended.id]


def test_a_verification_holds_no_snapshot_and_reads_what_is_added_while_it_runs(
    rows: Rows, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain_check, "_BATCH", 2)
    waiting = rows.propose(6)
    looks = 0

    def read(look: Callable[[Session], Any]) -> Any:
        nonlocal looks
        found = database.read_now(look)
        looks += 1
        if looks % 2 and waiting:
            rows.decide(waiting.pop())
        if database.dialect == "sqlite":
            with database.engine.connect() as connection:
                busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            assert not busy
        return found

    assert verification.find_faults(read) == []
    assert not waiting
    assert looks > 9
    with database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE audit SET reason = 'none' WHERE id = (SELECT max(id) FROM audit)")
    [fault] = verification.find_faults(read)
    assert fault.endswith("was altered")

"""The record of everything: whatever cell or row is changed past it, verification names it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    Connection,
    DateTime,
    Float,
    Integer,
    Table,
    delete,
    insert,
    text,
    update,
)
from sqlmodel import Session, col, select

from bot.approvals import grants, runs
from bot.approvals.accounts import linking
from bot.approvals.grants import GrantTerms
from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.rule_values import Mode, Subject
from bot.domain.rules import EVERYWHERE, Rule
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope, Scope
from bot.domain.verbs import Verb
from bot.errors import NodError
from bot.features.connections import rows as connections
from bot.features.connections.sign_in.pending import AccountSignIn
from bot.features.memory import rows as memory
from bot.features.memory.facts import About, Fact
from bot.features.mutes import rows as mutes
from bot.features.people import rows as absences
from bot.features.schedules import rows as schedules
from bot.features.schedules.schedule import Schedule
from bot.store import people, proposals, rules, tokens, transitions
from bot.store.audit import admin_changes, chain, log, verification
from bot.store.audit.log import Author
from bot.store.database import Database, run_in_transaction
from bot.store.migrations.schema import SCHEMA
from bot.store.tables.audit import AuditRow, ChainEndRow, LedgerRow
from bot.store.tables.proposals import ProposalRow
from tests.kit import ADA, ANA, FakeClock
from tests.kit.tables import OURS
from tests.store.conftest import POLICIES, Rows

pytestmark = pytest.mark.slow

NOT_COVERED = {
    # what was said, and work under way: a proposal keeps all of it that people decided on
    "conversation": "the chat, not the decisions",
    "message": "the chat, not the decisions",
    "turn": "work under way",
    "process": "who works on the database now",
    "hold": "what one process at a time may do",
    "teammate": "work under way; what its plan unlocks follows from the plan's own row",
    "issue": "the built-in tracker's data",
    "issue_comment": "the built-in tracker's data",
    "opinion": "second opinions that are asked for; what they say and raise is in the proposal",
    "push_device": "browsers that are notified; they decide nothing, and end with their session",
    "push_again": "cards to show again, until the next look",
    "push_notification": "what devices show, until it is over",
    "push_quiet": "when a person's devices are quiet",
    "page": "pages to send; when a step came is in the proposal",
    "held": "who is told of a card later; the hold and the release are in the proposal",
    "reached": "how many cards reached a person in the last hour",
    "shown_copy": "since when a card shows what it shows, for insights",
    "opened_card": "who opened all of a card, for insights",
    "read_decision": "how much was shown before a decision, for insights; the decision is in the proposal",
    "trial_token": "what a trial would apply: its proposal has the hash, which is checked before",
    "agent_call": "what tools told agents, purged by retention; how each call ended is its proposal's",
    "output": "the full text of long results, purged by retention; the proposal keeps its part",
    # delivery bookkeeping: redrawn or sent again from the rows above
    "sign_in": "signed-in browsers; the link between the accounts is recorded",
    "connecting": "sign-ins of ten minutes; the connection that they lead to is recorded",
    "revocation": "tokens that are still to be revoked; the end of their connection is recorded",
    "copy": "where cards are posted",
    "notice": "what Nod says by itself, until it was posted",
    "decider": "an index over the deciders and votes of proposals, for lists",
    "board": "where a team is shown",
    "event": "what a platform delivered, until it is handled",
    "name": "what people and places are called",
    "dialogue": "what a channel is asking a person",
    "callback": "whom to tell, and how far that has come",
    "link_code": "codes of ten minutes; the link they lead to is recorded",
    "slack_home": "where App Home was opened",
    "slack_install": "an installation under way",
    "slack_workspace": "a platform's tokens",
    "mcp_login": "an MCP server's tokens",
    "mcp_sign_in": "signing in at an MCP server, under way",
    # single columns
    "proposal.chat": "in which chat the record counts it; the place where it was asked is recorded",
    "proposal.owner": "which process runs it",
    "proposal.progress": "how far what it runs says it is",
    "proposal.thing": "what it changes, once it runs",
    "proposal.undo_until": "until when its cards offer Undo; for how long it could be is recorded",
    "inverse": "what was there before, purged by retention; the proposal keeps the digest of the call",
    **dict.fromkeys(
        (f"schedule.{each}" for each in ("due_at", "runs", "ran_for", "last_at", "spent")),
        "when it ran and runs next; its runs are in the conversation",
    ),
    **dict.fromkeys(
        (
            f"connection.{each}"
            for each in (
                "accounts",
                "owner_name",
                "client",
                "tokens",
                "found",
                "expires_at",
                "last_used_at",
                "version",
                "busy_until",
                "refusals",
                "told_lost",
            )
        ),
        "its tokens, which are refreshed, and what is known of them; whose account it is is recorded",
    ),
    **dict.fromkeys(
        (f"token.{each}" for each in ("accounts", "known", "last_used_at")),
        "what an agent's person was told, and when it was used; what they agreed to is recorded",
    ),
    "book.version": "tells processes to read the rules again",
    "book.memory": "what recurring tasks remember",
    "alembic_version.version_num": "the schema's",
}


@pytest.fixture
def full(rows: Rows, database: Database, clock: FakeClock) -> Database:
    """A database with something of everything that is recorded."""
    schema = {"type": "object", "properties": {"lamp": {"type": "string"}}}
    database.write_now(proposals.store_schema, "paint", "1", schema)
    [p] = rows.running()
    database.write_now(runs.finish, p, State.FAILED, clock(), error="no paint")
    [declined] = rows.propose(remind_at=clock() + timedelta(hours=1))
    rows.decide(declined, Verb.DECLINE, reason="not red")
    rows.propose(deciders=replace(p.deciders, people=("chat:ben",)))
    ana = database.read_now(people.load_person, ANA)
    scope = Scope("paint", "1", GrantScope.TOOL, "")
    for duration in (GrantDuration.HOUR, GrantDuration.CONVERSATION):
        terms = GrantTerms(scope, "paint", GrantAudience.HERE, duration)
        database.write_now(grants.give_grant, declined, ANA, ana, terms, clock())
    database.write_now(grants.revoke_grants, 1, ADA, clock())
    for value in ("always", "never"):
        rule = Rule(0, Subject.POLICY, EVERYWHERE, "pay", Mode(value))
        database.write_now(rules.set_rule, rule, ADA, clock())
    database.write_now(linking.link_accounts, POLICIES, ANA, Actor("phone", "9", "Ana K"), ANA, clock())
    for _ in range(2):
        until = clock() + timedelta(days=3)
        database.write_now(absences.begin_absence, ANA, Actor("chat", "ben", "Ben"), until, clock())
    by = Author.of_person(Act.REMEMBER, ANA, ana)
    for said in ("The desk is red.", "The door is open."):
        fact = Fact(0, said, (About.PERSON, str(ANA)), ANA, clock(), None)
        database.write_now(memory.add_fact, fact, by)
    database.write_now(memory.remove_facts, [1], by, clock())
    database.write_now(rules.pause_all, ADA, clock())
    for _ in range(2):
        token = database.write_now(tokens.issue_token, "ci", ADA, clock())
    database.write_now(tokens.revoke_token, token.split("_")[1], ADA, clock())
    schedule = Schedule(p.id, p.conversation_id, ANA, "look", clock(), follows=declined.id)
    database.write_now(schedules.add_schedule, schedule, Author.of_nod(Act.SET), clock())
    made = AccountSignIn(
        "github", "https://github.test", "person", str(ANA), "Ana", str(ANA), "Ana", subject="7", tokens="{}"
    )
    database.write_now(connections.add_connection, made, {str(ANA)}, clock())
    for tool in ("paint", "smash"):
        database.write_now(mutes.set_mute, ANA, ana, tool, clock() + mutes.EIGHT_HOURS, clock())
    assert faults(database) == []
    return database


def faults(database: Database, *anchors: str) -> list[str]:
    return database.read_now(verification.find_faults_in_session, anchors)


def after(database: Database, change: Callable[[Connection], Any]) -> list[str]:
    """What verification says after a change that is then undone."""
    with database.engine.connect() as connection:
        if database.dialect == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            connection.exec_driver_sql("BEGIN")
        else:
            connection.execute(text("SET session_replication_role = replica"))
        change(connection)
        with Session(connection, join_transaction_mode="rollback_only") as session:
            found = verification.find_faults_in_session(session)
        connection.rollback()
        if database.dialect == "sqlite":
            connection.exec_driver_sql("ROLLBACK") if connection.connection.in_transaction else None  # type: ignore[attr-defined]
            connection.exec_driver_sql("PRAGMA foreign_keys=ON")
    return found


def other(column: Any, value: Any) -> Any:
    """A value of a column's type that is not this one."""
    match column.type:
        case JSON():
            return {"other": [value]}
        case Boolean():
            return not value
        case Integer() | Float():
            return (value or 0) + 1000
        case type_ if isinstance(value, datetime) or isinstance(getattr(type_, "impl", None), DateTime):
            return (value or datetime.fromisoformat("2030-01-01T00:00:00+00:00")) + timedelta(days=1)
        case _:
            return f"{value or ''}x"


COVERED = [table for table in SCHEMA.sorted_tables if table.name not in NOT_COVERED]


def this(table: Table, row: Any) -> Any:
    return [column == row[column.name] for column in table.primary_key]


@pytest.mark.slow
@pytest.mark.parametrize("table", COVERED, ids=lambda table: table.name)
def test_every_cell_of_every_table_that_carries_truth_is_watched(full: Database, table: Table) -> None:
    with full.engine.connect() as connection:
        found = list(connection.execute(select(table)).mappings())
    assert found, f"the fixture has no row in {table.name}"
    found = [found[at] for at in sorted({0, len(found) // 2, len(found) - 1})]
    unseen = [
        f"{table.name}.{column.name} of {[row[key.name] for key in table.primary_key]}"
        for row in found
        for column in table.columns
        if f"{table.name}.{column.name}" not in NOT_COVERED
        and not after(
            full,
            lambda c, row=row, column=column: c.execute(
                update(table).where(*this(table, row)).values({column.name: other(column, row[column.name])})
            ),
        )
    ]
    assert unseen == []


@pytest.mark.slow
@pytest.mark.parametrize("table", COVERED, ids=lambda table: table.name)
def test_every_row_that_is_deleted_or_slipped_in_is_seen(full: Database, table: Table) -> None:
    with full.engine.connect() as connection:
        found = list(connection.execute(select(table)).mappings())
    for row in found:
        assert after(full, lambda c, row=row: c.execute(delete(table).where(*this(table, row)))), row
    if table.name in ("chain_end", "tool_version", "book"):  # one row; unused until it is proposed; one row
        return
    unique = {c.name for c in table.columns if c.primary_key or c.unique} | {"idempotency_key", "subject"}
    new = {k: other(table.c[k], v) if k in unique else v for k, v in found[-1].items()}
    if table.name == "audit":
        new["version"] += 1
    assert after(full, lambda c: c.execute(insert(table), new))


def test_the_tables_that_are_not_covered_exist(full: Database) -> None:
    known = {table.name for table in SCHEMA.sorted_tables} | {"alembic_version"}
    assert {name.partition(".")[0] for name in NOT_COVERED} <= known


TOGETHER = {
    "a whole proposal": [
        "DELETE FROM audit WHERE proposal_id = '{last}'",
        "DELETE FROM proposal WHERE id = '{last}'",
    ],
    "everything about proposals": ["DELETE FROM audit", "DELETE FROM proposal", "DELETE FROM grant_given"],
    "the whole record": [
        "DELETE FROM audit",
        "DELETE FROM ledger",
        "DELETE FROM proposal",
        "DELETE FROM chain_end",
    ],
    "the seal": ["DELETE FROM chain_end"],
    "the seal of the newest rows": [
        "UPDATE chain_end SET number = number - 1, hash = (SELECT hash FROM ledger WHERE id = number - 1)"
    ],
    "the newest rules": [
        "DELETE FROM ledger WHERE id = (SELECT max(id) FROM ledger)",
        "UPDATE book SET paused_at = NULL",
    ],
}


@pytest.mark.parametrize("words", TOGETHER.values(), ids=TOGETHER)
def test_what_is_removed_together_is_seen(full: Database, rows: Rows, words: list[str]) -> None:
    [last] = rows.propose()
    found = after(full, lambda c: [c.execute(text(each.format(last=last.id))) for each in words])
    assert found


ONCE_UNSEEN = {
    "open": {
        "deciders": {"people": ["chat:eve"], "roles": [], "requester": True},
        "quorum": 0,
        "votes": [],
        "requester": "chat:eve",
        "preview": [],
        "description": "something else",
        "reason": "something else",
        "expires_at": datetime.fromisoformat("2099-01-01T00:00:00+00:00"),
    },
    "ended": {"decided_by": "Eve", "edited_by": "Eve", "result": "something else"},
}
"""Columns that an older release did not watch, by the proposal whose they are, each with a forged value.

The rows that it did not miss are those of `TOGETHER`; what it did see is `CHANGES` in ``test_audit.py``.
"""


@pytest.mark.parametrize(
    ("which", "column"), [(which, column) for which, columns in ONCE_UNSEEN.items() for column in columns]
)
def test_what_was_once_changed_unseen_is_named(full: Database, rows: Rows, which: str, column: str) -> None:
    if which == "open":
        [p] = rows.propose(quorum=2)
        rows.decide(p, Verb.APPROVE)
    else:
        [p] = full.read_now(proposals.list_in_states, [State.FAILED])
    forged = {column: ONCE_UNSEEN[which][column]}
    found = after(
        full, lambda c: c.execute(update(ProposalRow).where(col(ProposalRow.id) == p.id).values(forged))
    )
    assert any(p.id in each for each in found), found


def test_rows_missing_in_the_middle_and_at_the_end_are_named(full: Database) -> None:
    newest = full.read_now(chain.make_anchor).partition("-")[0]  # type: ignore[union-attr]
    middle = after(full, lambda c: c.execute(text("DELETE FROM audit WHERE id IN (3, 4)")))
    assert any("rows 3 to 4 are missing" in each for each in middle), middle
    end = after(full, lambda c: c.execute(delete(LedgerRow).where(col(LedgerRow.id) == int(newest))))
    assert any(f"it was written up to row {newest}" in each for each in end), end


def test_an_anchor_kept_outside_shows_that_the_record_was_rewritten(full: Database, rows: Rows) -> None:
    anchor = full.read_now(chain.make_anchor)
    assert anchor is not None
    rows.propose()
    assert faults(full, anchor) == []
    number, _, digits = anchor.partition("-")
    assert faults(full, f"{number}-{digits[:16].upper()}") == []
    for wrong in (f"{number}-{'0' * 32}", f"99999-{digits}"):
        assert any("anchor" in each for each in faults(full, wrong))
    for none in ("", "12", "12-abc", "x-0123456789abcdef"):
        with pytest.raises(NodError, match="not an anchor"):
            faults(full, none)


OLD, NEW = b"an old key of some length", b"a new key of some length"


@pytest.fixture
def reopened(database: Database, database_url: str) -> Iterator[Callable[..., Database]]:
    """The same database, as a process with these keys opens it."""
    made: list[Database] = []

    def reopen(*keys: bytes) -> Database:
        made.append(Database(database_url, keys))
        return made[-1]

    yield reopen
    for each in made:
        each.close()


def test_with_a_key_rows_cannot_be_made_without_it(
    rows: Rows, clock: FakeClock, reopened: Callable[..., Database]
) -> None:
    rows.propose()
    keyed = reopened(NEW)
    assert faults(keyed) == ["it is not sealed with NOD_AUDIT_KEY"]
    with pytest.raises(chain.NotSealed, match="nod audit seal"):
        keyed.write_now(admin_changes.seal_with_key, clock())
    assert keyed.write_now(admin_changes.begin_to_seal, ADA, clock()) == 2
    keyed.write_now(admin_changes.seal_with_key, clock())
    with pytest.raises(NodError, match="sealed already"):
        keyed.write_now(admin_changes.begin_to_seal, ADA, clock())
    assert keyed.read_now(chain.make_anchor).startswith("2-")  # type: ignore[union-attr]
    rows.database = keyed
    [p] = rows.propose()
    assert faults(keyed) == []
    # who has the database alone cannot add a row, nor make the end fit a shorter record
    keyless = reopened()
    assert faults(keyless) == ["it is sealed with a key that is not set here: set NOD_AUDIT_KEY to verify it"]
    rows.database = keyless
    with pytest.raises(chain.OtherKey, match=r"NOD_AUDIT_KEY.* If it is lost, .* `nod db backup`"):
        rows.decide(p)
    with keyless.engine.begin() as connection:
        connection.execute(text("UPDATE chain_end SET key = ''"))
    rows.decide(p)
    assert faults(keyed)[0] == "it is not sealed with NOD_AUDIT_KEY"


def test_a_record_cut_off_and_closed_again_without_the_key_is_seen(
    rows: Rows, clock: FakeClock, reopened: Callable[..., Database]
) -> None:
    rows.database = keyed = reopened(NEW)
    keyed.write_now(admin_changes.begin_to_seal, ADA, clock())
    [first], [last] = rows.propose(), rows.propose()
    with keyed.engine.begin() as connection:
        connection.execute(delete(AuditRow).where(col(AuditRow.proposal_id) == last.id))
        connection.execute(delete(ProposalRow).where(col(ProposalRow.id) == last.id))
        kept = select(AuditRow.id, AuditRow.hash).where(AuditRow.proposal_id == first.id)
        number, newest = connection.execute(kept).one()
        connection.execute(update(ChainEndRow).values(number=number, hash=newest))
    assert faults(keyed) == ["the end of the audit log was altered"]


def test_a_new_key_takes_over_from_the_old_and_not_the_other_way(
    rows: Rows, clock: FakeClock, reopened: Callable[..., Database]
) -> None:
    rows.database = reopened(OLD)
    rows.database.write_now(admin_changes.begin_to_seal, ADA, clock())
    rows.propose()
    rows.database = both = reopened(NEW, OLD)
    rows.propose()
    assert faults(both) == []
    rows.database = reopened(OLD, NEW)
    rows.propose()
    assert any("was altered" in each for each in faults(both))


def test_a_proposals_first_row_says_who_asked_for_what_and_where(rows: Rows, database: Database) -> None:
    [p] = rows.propose(arguments={"lamp": "desk", "password": "hunter2"})
    about = database.read_now(log.list_rows_of_proposal, p.id)[0].about
    assert about is not None
    assert (about["requester"], about["name"]) == (str(p.requester), p.requester.name)
    assert about["arguments"] == {"lamp": "desk", "password": "••••••"}
    assert about["summary"] == p.description


def test_rows_are_committed_in_the_order_of_their_numbers(
    rows: Rows, database: Database, database_url: str
) -> None:
    """Who adds a row while another transaction that added one is open waits, so no reader misses a number."""
    [first], [second] = rows.propose(), rows.propose(at=Address("room", "2"))
    seen = database.read_now(log.find_last_id)
    other = Database(database_url)
    with ThreadPoolExecutor(1) as thread, database.engine.connect() as connection:
        connection.begin()
        if database.dialect == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        assert run_in_transaction(
            connection,
            lambda session: transitions.change_proposal(session, first, Author.of_nod("open"), rows.clock()),
        )
        later = thread.submit(
            other.write_now, transitions.change_proposal, second, Author.of_nod("later"), rows.clock()
        )
        if database.dialect == "postgresql":
            _until(lambda: later.done() or _waits(database))
        feed = database.read_now(log.list_after, seen)
        connection.commit()
        later.result()
    other.close()
    feed += database.read_now(log.list_after, feed[-1][0] if feed else seen)
    assert [proposal_id for _, proposal_id in feed] == [first.id, second.id]
    assert faults(database) == []


def _waits(database: Database) -> bool:
    with database.engine.connect() as connection:
        waiting = (
            f"SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND {OURS}"
        )
        found = connection.execute(text(waiting)).scalar_one()
    return bool(found)


def _until(come: Callable[[], bool]) -> None:
    while not come():
        pass

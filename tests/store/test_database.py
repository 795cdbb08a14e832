"""The bridge: a store function is one transaction, all or nothing, and never open across an await."""

import asyncio
import functools
import os
import signal
import sqlite3
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError, OperationalError
from sqlmodel import Session

from bot.domain.audit import Act, AuditFilter
from bot.jobs.distributed import prepare
from bot.store import backups, migrations, people, rules
from bot.store.audit import admin_changes, search
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author
from bot.store.backups import back_up
from bot.store.database import Database
from bot.store.engine import open_unpooled
from bot.store.notifications import build_conninfo
from bot.telemetry.outages import describe_outage, is_outage
from tests.kit import held
from tests.kit.people import ADA
from tests.kit.urls import needs_postgres, of_its_own

NOW = datetime(2026, 7, 1, 9, tzinfo=UTC)


def count(session: Session) -> int:
    return int(session.execute(text("SELECT count(*) FROM account")).scalar_one())


def add(session: Session, name: str) -> str:
    session.execute(
        text("INSERT INTO account (actor, name, person_id, linked_at) VALUES (:n, :n, :n, '2026-01-01')"),
        {"n": name},
    )
    return name


def add_then_break(session: Session, name: str) -> None:
    add(session, name)
    raise ValueError(name)


def seal(session: Session, number: int) -> None:
    by = Author.of_person(Act.SEAL_WITH, ADA, people.load_person(session, ADA))
    admin_changes.record(session, Thing.KEY, f"key {number}", by, None, None, NOW)


async def test_a_write_is_committed_when_it_returns_and_reads_see_it(database: Database) -> None:
    assert await database.write(add, "a") == "a"
    assert await database.read(count) == 1


async def test_a_function_that_raises_leaves_nothing_and_its_caller_is_told(database: Database) -> None:
    with pytest.raises(ValueError, match="a"):
        await database.write(add_then_break, "a")
    assert await database.read(count) == 0


async def test_a_function_that_raises_does_not_undo_those_it_shares_a_commit_with(database: Database) -> None:
    goods = [database.write(add, f"good{n}") for n in range(20)]
    bads = [database.write(add_then_break, f"bad{n}") for n in range(20)]
    twins = [database.write(add, "twin"), database.write(add, "twin")]
    mixed = [w for pair in zip(goods, bads, strict=True) for w in pair]
    outcomes = await asyncio.gather(*mixed, *twins, return_exceptions=True)
    assert outcomes[0:40:2] == [f"good{n}" for n in range(20)]
    assert all(isinstance(outcome, ValueError) for outcome in outcomes[1:40:2])
    assert [isinstance(outcome, IntegrityError) for outcome in outcomes[40:]].count(True) == 1
    assert await database.read(count) == 21


async def test_writes_that_wait_together_add_to_the_audit_log_once(database: Database) -> None:
    if database.dialect != "sqlite":
        pytest.skip("PostgreSQL has several writers")
    asked: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    async with held(database) as let_go:
        writes = [asyncio.create_task(database.write(seal, number)) for number in range(20)]
        await asyncio.sleep(0)
        asked.clear()
        let_go()
        await asyncio.gather(*writes)
    assert len([each for each in asked if each.startswith("UPDATE chain_end")]) == 1
    assert not [each for each in asked if each.startswith("SAVEPOINT")]
    found = await database.read(search.find_rows_and_count, AuditFilter())
    assert [row["key"] for row in found[0]] == [f"key {number}" for number in range(20)]


async def test_a_look_at_the_record_sees_what_others_of_its_commit_added(database: Database) -> None:
    async with held(database) as let_go:
        added = asyncio.create_task(database.write(seal, 1))
        await asyncio.sleep(0)
        seen = asyncio.create_task(database.write(admin_changes.find_newest, Thing.KEY, Act.SEAL_WITH))
        await asyncio.sleep(0)
        let_go()
        await added
        newest = await seen
    assert newest is not None
    assert newest.key == "key 1"


async def test_nothing_is_open_between_writes(database: Database) -> None:
    await database.write(add, "a")
    with database.engine.begin() as another:  # would wait permanently behind an open transaction
        another.execute(text("UPDATE account SET name = 'b'"))
    await database.read(count)
    with database.engine.begin() as another:
        another.execute(text("UPDATE account SET name = 'c'"))


async def test_of_two_writes_that_wait_for_each_other_both_are_done_in_the_end(database: Database) -> None:
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one writer, which waits for nobody")
    for name in ("a", "b"):
        await database.write(add, name)
    met, ran = threading.Barrier(2), set[str]()

    def rename(session: Session, first: str, second: str) -> None:
        for name in (first, second):
            session.execute(text("UPDATE account SET name = name || 'x' WHERE actor = :n"), {"n": name})
            if first not in ran:  # the one that runs again meets no other
                ran.add(first)
                met.wait(10)

    await asyncio.gather(database.write(rename, "a", "b"), database.write(rename, "b", "a"))
    names = await database.read(lambda s: s.execute(text("SELECT name FROM account")).scalars().all())
    assert set(names) == {"axx", "bxx"}


@pytest.mark.parametrize(
    ("name", "limit"), [("idle_in_transaction_session_timeout", "10s"), ("lock_timeout", "15s")]
)
async def test_who_is_stopped_within_a_transaction_or_keeps_a_lock_keeps_no_one_waiting_for_good(
    database: Database, name: str, limit: str
) -> None:
    if database.dialect != "postgresql":
        pytest.skip("on SQLite a process is alone, and a write waits for its patience")
    assert await database.read(lambda s: s.execute(text(f"SHOW {name}")).scalar_one()) == limit


@needs_postgres
async def test_while_others_keep_a_table_locked_it_cannot_be_written(database: Database) -> None:
    if database.dialect != "postgresql":
        pytest.skip("SQLite locks all of a file")
    await database.check_writable()
    with database.engine.connect() as other:
        other.execute(text("LOCK TABLE proposal IN ACCESS EXCLUSIVE MODE"))
        fresh = Database(database.engine.url.render_as_string(hide_password=False))
        with pytest.raises(OperationalError):
            await fresh.check_writable()
        other.rollback()
        await fresh.check_writable()
        fresh.close()


@needs_postgres
async def test_a_database_that_was_made_read_only_is_an_outage() -> None:
    with of_its_own() as url:
        first = Database(url)
        migrations.upgrade(first.engine)
        read_only = f"ALTER DATABASE {first.engine.url.database} SET default_transaction_read_only = on"
        first.write_now(lambda s: s.execute(text(read_only)))
        first.close()
        database = Database(url)
        for change in (database.check_writable(), database.write(rules.pause_all, ADA, NOW)):
            with pytest.raises(DBAPIError) as told:
                await change
            assert is_outage(told.value)
            assert describe_outage(told.value).startswith("cannot execute")
        assert await database.read(rules.find_paused_since) is None
        database.close()


@needs_postgres
async def test_every_session_reads_and_writes_the_same_way_whatever_the_database_tells_it() -> None:
    with of_its_own("client_encoding = LATIN1", "datestyle = German", "idle_session_timeout = '1s'") as url:
        database = Database(url)
        migrations.upgrade(database.engine)
        prepare(url)
        await database.write(add, "🙂")
        assert await database.write(rules.pause_all, ADA, NOW)
        assert await database.read(rules.find_paused_since) == NOW
        with psycopg.connect(build_conninfo(url)) as listens, open_unpooled(url).connect() as locks:
            assert listens.execute("SHOW idle_session_timeout").fetchone() == ("0",)
            assert locks.execute(text("SHOW idle_session_timeout")).one() == ("0",)
        database.close()


async def test_a_change_that_cannot_be_recorded_is_not_made_and_leaves_no_trace_for_the_next(
    database: Database,
) -> None:
    rename = "ALTER TABLE {} RENAME TO {}"  # as a full disk would, it refuses the last of the transaction
    for _ in range(2):  # each statement goes the short way from its second time on
        await database.write(rules.pause_all, ADA, NOW)
        await database.write(rules.resume, Author.of_nod(Act.RESUME), NOW)
    await database.write(lambda s: s.execute(text(rename.format("ledger", "away"))))
    with pytest.raises(DBAPIError):
        await database.write(rules.pause_all, ADA, NOW)
    assert await database.read(rules.find_paused_since) is None
    await database.write(lambda s: s.execute(text(rename.format("away", "ledger"))))
    assert await database.write(rules.pause_all, ADA, NOW)
    assert await database.read(rules.find_paused_since) == NOW


@pytest.mark.parametrize("ends", ["RAISE 'full'", "PERFORM pg_terminate_backend(pg_backend_pid())"])
async def test_a_commit_that_fails_is_told_and_the_next_one_finds_all_in_order(
    database: Database, ends: str
) -> None:
    if database.dialect != "postgresql":
        pytest.skip("SQLite's COMMIT is a statement like any other")
    body = f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {ends}; END'"
    when = "AFTER INSERT ON ledger INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()"
    await database.write(lambda s: s.execute(text(body.replace("'full'", "''full''"))))
    await database.write(lambda s: s.execute(text(f"CREATE CONSTRAINT TRIGGER fails {when}")))
    for _ in range(3):
        with pytest.raises(DBAPIError):
            await database.write(rules.pause_all, ADA, NOW)
        assert await database.read(rules.find_paused_since) is None


@needs_postgres
async def test_a_connection_that_is_lost_before_its_commit_costs_no_one_an_answer(database: Database) -> None:
    if database.dialect != "postgresql":
        pytest.skip("SQLite is a file")
    pid, end = text("SELECT pg_backend_pid()"), text("SELECT pg_terminate_backend(:pid)")

    def lost_at_first(session: Session, tries: list[str]) -> str:
        tries.append(add(session, "a"))
        if len(tries) == 1:
            session.execute(end, {"pid": session.execute(pid).scalar_one()})
        return tries[-1]

    assert await database.write(lost_at_first, []) == "a"
    for look in (database.read(count), database.write(add, "b"), database.read(count)):
        idle = await database.read(lambda session: session.execute(pid).scalar_one())
        with open_unpooled(database.engine.url).connect() as other:
            other.execute(end, {"pid": idle})
        await look
    assert await database.read(count) == 2


async def test_what_a_read_writes_by_mistake_is_not_kept(database: Database) -> None:
    if database.dialect == "sqlite":
        await database.read(add, "a")
    else:
        with pytest.raises(InternalError, match="read-only transaction"):
            await database.read(add, "a")
    assert await database.read(count) == 0


async def test_a_read_sees_one_snapshot(database: Database) -> None:
    def twice(session: Session, first: threading.Event, go: threading.Event) -> tuple[int, int]:
        before = count(session)
        first.set()
        assert go.wait(30)
        return before, count(session)

    first, go = threading.Event(), threading.Event()
    reading = asyncio.create_task(database.read(twice, first, go))
    await asyncio.to_thread(first.wait, 30)
    await database.write(add, "a")
    go.set()
    assert await reading == (0, 0)
    assert await database.read(count) == 1


async def test_a_caller_that_goes_away_does_not_disturb_the_others(database: Database) -> None:
    def slow(session: Session, started: threading.Event, go: threading.Event) -> None:
        add(session, "slow")
        started.set()
        assert go.wait(30)

    started, go = threading.Event(), threading.Event()
    leaving = asyncio.create_task(database.write(slow, started, go))
    await asyncio.to_thread(started.wait, 30)
    queued = asyncio.create_task(database.write(add, "b"))
    await asyncio.sleep(0)
    leaving.cancel()
    go.set()
    assert await queued == "b"
    await asyncio.gather(leaving, return_exceptions=True)
    assert await database.write(add, "c") == "c"


async def test_a_commit_that_fails_reaches_every_caller_and_nothing_is_kept(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'nod.db'}")
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE parent (id INTEGER PRIMARY KEY)"))
        later = "REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED"
        connection.execute(text(f"CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER {later})"))

    def orphan(session: Session) -> None:
        session.execute(text("INSERT INTO child (parent_id) VALUES (7)"))

    def fine(session: Session) -> None:
        session.execute(text("INSERT INTO parent DEFAULT VALUES"))

    started, go = threading.Event(), threading.Event()

    def block(session: Session) -> None:
        started.set()
        assert go.wait(30)

    first = asyncio.create_task(database.write(block))
    await asyncio.to_thread(started.wait, 30)
    rest = [asyncio.create_task(database.write(work)) for work in (fine, orphan, fine)]
    await asyncio.sleep(0)
    go.set()
    await first
    outcomes = await asyncio.gather(*rest, return_exceptions=True)
    assert [isinstance(outcome, IntegrityError) for outcome in outcomes] == [True] * 3

    def parents(session: Session) -> int:
        return int(session.execute(text("SELECT count(*) FROM parent")).scalar_one())

    assert await database.read(parents) == 0
    await database.write(fine)
    assert await database.read(parents) == 1
    database.close()


async def test_what_a_person_waits_for_is_written_before_all_that_waits_already(database: Database) -> None:
    order: list[str] = []
    note = functools.partial(_note, order)
    async with held(database) as let_go:
        writes = [asyncio.create_task(database.write(note, f"message {number}")) for number in range(200)]
        await asyncio.sleep(0)
        writes.append(asyncio.create_task(database.write(note, "press", urgent=True)))
        await asyncio.sleep(0)
        let_go()
        await asyncio.gather(*writes)
    assert order == ["press", *(f"message {number}" for number in range(200))]


async def test_however_many_go_first_the_rest_comes_to_its_turn(database: Database) -> None:
    order: list[str] = []
    note = functools.partial(_note, order)
    async with held(database) as let_go:
        first = [
            asyncio.create_task(database.write(note, f"press {number}", urgent=True)) for number in range(100)
        ]
        rest = [asyncio.create_task(database.write(note, f"message {number}")) for number in range(3)]
        await asyncio.sleep(0)
        let_go()
        await asyncio.gather(*first, *rest)
    assert [order.index(f"message {number}") for number in range(3)] == [16, 33, 50]


def _note(order: list[str], session: Session, name: str) -> None:
    add(session, name)
    order.append(name)


async def test_a_write_waits_for_another_process_without_holding_up_the_rest(database: Database) -> None:
    await database.write(add, "a")
    with database.engine.connect() as another:
        sqlite = database.dialect == "sqlite"
        another.execute(text("BEGIN IMMEDIATE" if sqlite else "LOCK TABLE account IN EXCLUSIVE MODE"))
        waiting = [asyncio.create_task(database.write(add, name)) for name in ("b", "c")]
        for _ in range(5):
            assert await database.read(count) == 1
        assert not any(task.done() for task in waiting)
        another.rollback()
    assert await asyncio.gather(*waiting) == ["b", "c"]
    assert await database.read(count) == 3


async def test_what_is_queued_at_the_end_is_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'nod.db'}"
    database = Database(url)
    migrations.upgrade(database.engine)
    await database.write(add, "a")
    queued = [asyncio.create_task(database.write(add, name)) for name in ("b", "c")]
    await asyncio.sleep(0)
    database.close()
    assert await asyncio.gather(*queued) == ["b", "c"]
    database = Database(url)
    assert database.read_now(count) == 3
    database.close()


async def test_a_file_that_cannot_be_opened_is_told_to_the_one_who_writes(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'nowhere' / 'nod.db'}")
    for _ in range(2):
        with pytest.raises(OperationalError, match="unable to open database file"):
            await database.write(add, "a")
    database.close()


async def test_a_closed_database_refuses_to_write(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'nod.db'}")
    database.close()
    with pytest.raises(RuntimeError):
        await database.write(add, "a")


def test_sqlite_is_durable_at_each_commit(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'nod.db'}")

    def pragmas(session: Session) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [session.execute(text(f"PRAGMA {name}")).scalar_one() for name in names]

    assert database.write_now(pragmas) == ["wal", 2, 1]
    database.close()


@pytest.mark.slow
async def test_what_was_written_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'nod.db'}"
    database = Database(url)
    migrations.upgrade(database.engine)
    database.close()
    program = (
        "import asyncio, os, signal\n"
        "from bot.store.database import Database\n"
        "from tests.store.test_database import add\n"
        "async def main():\n"
        f"    database = Database({url!r})\n"
        "    await database.write(add, 'a')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == -signal.SIGKILL
    database = Database(url)
    assert database.read_now(count) == 1
    database.close()


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_database_and_what_sqlite_puts_next_to_it_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        database = Database(f"sqlite:///{tmp_path / 'nod.db'}")
        migrations.upgrade(database.engine)
        database.write_now(add, "a")
        with database.engine.connect() as held:
            held.execute(text("SELECT 1"))
            files = sorted(path.name for path in tmp_path.iterdir())
            assert files == ["nod.db", "nod.db-shm", "nod.db-wal"]
            assert {_mode(path) for path in tmp_path.iterdir()} == {0o600}
        database.close()
    finally:
        os.umask(old)


def test_a_copy_holds_what_is_only_in_the_log_yet_and_replaces_no_file(tmp_path: Path) -> None:
    file, copy = tmp_path / "nod.db", tmp_path / "copy.db"
    database = Database(f"sqlite:///{file}")
    migrations.upgrade(database.engine)
    with database.engine.connect() as reader:  # keeps the log from being folded in
        reader.execute(text("BEGIN"))
        reader.execute(text("SELECT count(*) FROM account"))
        database.write_now(add, "a")
        back_up(file, copy)
    database.close()
    assert _mode(copy) == 0o600
    copied = Database(f"sqlite:///{copy}", readonly=True)
    assert copied.read_now(count) == 1
    with pytest.raises(OperationalError, match="readonly"):
        copied.write_now(add, "b")
    copied.close()
    with pytest.raises(FileExistsError):
        back_up(file, copy)
    (tmp_path / "not.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        back_up(tmp_path / "not.db", tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_a_backup_in_steps_is_of_one_moment_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "BACKUP_PAGES", 10)
    file, copy = tmp_path / "nod.db", tmp_path / "copy.db"
    database = Database(f"sqlite:///{file}")
    migrations.upgrade(database.engine)
    database.write_now(add, "before")
    told: list[tuple[int, int]] = []

    def write(done: int, total: int) -> None:
        told.append((done, total))
        database.write_now(add, f"meanwhile {done}")

    back_up(file, copy, write)
    database.close()
    total = told[0][1]
    assert [done for done, _ in told] == [*range(10, total, 10), total]
    copied = Database(f"sqlite:///{copy}", readonly=True)
    assert copied.read_now(count) == 1
    copied.close()


def test_a_look_makes_and_changes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "nod.db"
    database = Database(f"sqlite:///{file}")
    migrations.upgrade(database.engine)
    database.close()
    before = file.read_bytes()
    looking = Database(f"sqlite:///{file}", readonly=True)
    assert looking.read_now(count) == 0
    looking.close()
    assert file.read_bytes() == before
    absent = Database(f"sqlite:///{tmp_path / 'no.db'}", readonly=True)
    with pytest.raises(OperationalError):
        absent.read_now(count)
    absent.close()
    assert not (tmp_path / "no.db").exists()


async def test_each_write_waits_for_another_process_its_own_time_and_not_that_of_those_before(
    tmp_path: Path,
) -> None:
    database = Database(f"sqlite:///{tmp_path / 'nod.db'}", patience=1)
    migrations.upgrade(database.engine)
    await database.write(add, "a")
    with database.engine.connect() as another:
        another.execute(text("BEGIN IMMEDIATE"))
        writes = [database.write(add, f"b{n}") for n in range(20)]
        async with asyncio.timeout(10):  # one after the other they would wait 20 seconds
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
        another.rollback()
    assert all(isinstance(outcome, OperationalError) for outcome in outcomes)
    assert await database.write(add, "c") == "c"
    database.close()

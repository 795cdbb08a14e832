"""A database from before the first release becomes one of the first schema. Goes after that release."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from alembic import command
from sqlalchemy import Engine
from sqlmodel import Session

from bot.domain.people import Actor
from bot.store import migrations, rules
from bot.store.audit import verification
from bot.store.database import Database
from bot.store.engine import open_engine
from tests.kit.urls import needs_postgres, plain, schema

pytestmark = pytest.mark.slow

FROZEN = Path(__file__).parent / "frozen"
_UPGRADE = (
    "import sys; from bot.store import migrations; from bot.store.engine import open_engine;"
    "migrations.upgrade(open_engine(sys.argv[1]))"
)
BEFORE_THE_CHAIN = "before the upgrade: proposal bbb84c24983e7f29: version 1 was altered"


@contextlib.contextmanager
def of(file: str, folder: Path) -> Iterator[str]:
    """The URL of a database as this file has it."""
    made = (FROZEN / file).read_text()
    if "postgresql" in file:
        with schema() as url:
            with psycopg.connect(plain(url)) as connection:
                connection.execute(made.encode())
            yield url
        return
    with contextlib.closing(sqlite3.connect(folder / "frozen.db")) as database:
        database.executescript(made)
    yield f"sqlite:///{folder / 'frozen.db'}"


@pytest.fixture(
    params=[
        "schema_0004.sql",
        pytest.param("schema_0004.postgresql.sql", marks=needs_postgres),
        "schema_0006.sql",
        "schema_0004_begun_at_0001.sql",
    ]
)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with of(request.param, tmp_path) as url:
        yield url


def faults(engine: Engine) -> list[str]:
    """What is wrong with the audit log besides what was found when it became one chain."""
    with Session(engine) as session:
        return [each for each in verification.find_faults_in_session(session) if each != BEFORE_THE_CHAIN]


def test_it_gets_the_tables_and_indexes_of_this_release(frozen: str) -> None:
    engine = open_engine(frozen)
    migrations.upgrade(engine)
    assert migrations.read_version(engine) == migrations.find_newest_version()
    command.check(migrations.make_alembic_config(engine))  # raises where a table, column or index differs
    engine.dispose()


def test_its_audit_log_verifies_and_continues(frozen: str) -> None:
    database = Database(frozen)
    migrations.upgrade(database.engine)
    assert faults(database.engine) == []
    database.write_now(rules.pause_all, Actor("cli", "ada"), datetime(2026, 12, 1, tzinfo=UTC))
    assert faults(database.engine) == []
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "frozen",
    ["schema_0004.sql", pytest.param("schema_0004.postgresql.sql", marks=needs_postgres)],
    indirect=True,
)
def test_several_processes_that_start_at_the_same_time_adopt_it_once(frozen: str) -> None:
    words = [sys.executable, "-c", _UPGRADE, frozen]
    begun = [subprocess.Popen(words) for _ in range(3)]  # noqa: S603 - our own
    assert [each.wait(60) for each in begun] == [0, 0, 0]
    engine = open_engine(frozen)
    assert migrations.read_version(engine) == migrations.find_newest_version()
    assert faults(engine) == []
    engine.dispose()


def test_what_cannot_be_adopted_stays_as_it_was(frozen: str) -> None:
    engine = open_engine(frozen)
    before = migrations.read_version(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE turn RENAME TO turns")
    with pytest.raises(Exception, match="turn"):
        migrations.upgrade(engine)
    assert migrations.read_version(engine) == before
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE turns RENAME TO turn")
    migrations.upgrade(engine)
    assert faults(engine) == []
    engine.dispose()


@pytest.mark.parametrize(
    "words",
    [
        "UPDATE audit SET actor = 'http:ben' WHERE id = 2",
        "DELETE FROM audit WHERE id = 3",
        "UPDATE ledger SET actor = 'http:eve' WHERE id = 1",
        "UPDATE proposal SET quorum = 9",
        "UPDATE proposal SET votes = '[]' WHERE state = 'succeeded'",
        "UPDATE rule SET value = '\"never\"'",
        "UPDATE grant_given SET expires_at = NULL",
        "UPDATE tool_version SET parameters = '{}'",
        "DELETE FROM ledger WHERE thing = 'upgrade'",
    ],
)
def test_an_old_row_that_is_changed_later_is_seen(words: str, tmp_path: Path) -> None:
    with of("schema_0004_begun_at_0001.sql", tmp_path) as url:
        engine = open_engine(url)
        migrations.upgrade(engine)
        assert faults(engine) == []
        with engine.begin() as connection:
            connection.exec_driver_sql(words)
        assert faults(engine)
        engine.dispose()

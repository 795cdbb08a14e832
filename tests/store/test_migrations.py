"""The schema's history leads to the tables the code knows, on both databases."""

import contextlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Engine, inspect, text
from sqlmodel import Session

from bot.domain.people import Actor
from bot.errors import SettingsError
from bot.store import migrations, rules
from bot.store.engine import open_engine
from bot.store.migrations.steps import config
from bot.store.record import seals
from bot.store.transaction import run
from tests.kit.urls import needs_postgres, of_its_own


@pytest.fixture
def engine(database_url: str) -> Engine:
    return open_engine(database_url)


def test_from_nothing_to_the_newest_and_again_is_nothing(engine: Engine) -> None:
    assert migrations.current(engine) is None
    migrations.upgrade(engine)
    assert migrations.current(engine) == migrations.newest()
    tables = inspect(engine).get_table_names()
    assert {"conversation", "message", "turn", "proposal", "audit", "copy", "issue"} <= set(tables)
    migrations.upgrade(engine)
    assert inspect(engine).get_table_names() == tables
    engine.dispose()


def test_the_schema_is_what_the_code_says(engine: Engine) -> None:
    migrations.upgrade(engine)
    command.check(config(engine))  # raises where a table, column or index differs
    engine.dispose()


@pytest.fixture
def frozen(tmp_path: Path) -> Engine:
    """A database of release 0001 with proposals, a grant and a rule."""
    file = tmp_path / "frozen.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript((Path(__file__).parent / "frozen" / "schema_0001.sql").read_text())
    return open_engine(f"sqlite:///{file}")


def faults(engine: Engine) -> list[str]:
    with Session(engine) as session:
        return seals.faults(session)


def test_a_record_of_the_first_release_still_verifies_and_continues(frozen: Engine) -> None:
    migrations.upgrade(frozen)
    assert faults(frozen) == []
    with frozen.begin() as connection:
        run(connection, lambda s: rules.pause(s, Actor("cli", "ada"), datetime(2026, 12, 1, tzinfo=UTC)))
    assert faults(frozen) == []
    command.downgrade(config(frozen), "0001")
    migrations.upgrade(frozen)
    frozen.dispose()


@pytest.mark.parametrize(
    "words",
    [
        "UPDATE audit SET actor = 'http:eve' WHERE id = 2",
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
def test_an_old_row_changed_after_the_upgrade_is_seen(frozen: Engine, words: str) -> None:
    migrations.upgrade(frozen)
    with frozen.begin() as connection:
        connection.exec_driver_sql(words)
    assert faults(frozen)
    frozen.dispose()


@pytest.mark.parametrize(
    "words",
    [
        "UPDATE audit SET actor = 'http:eve' WHERE id = 2",
        "DELETE FROM audit WHERE id = 3",
        "UPDATE ledger SET actor = 'http:eve' WHERE id = 1",
        "UPDATE checkpoint SET hash = 'x'",
        "UPDATE proposal SET state = 'succeeded' WHERE state = 'proposed'",
    ],
)
def test_what_was_wrong_before_the_upgrade_is_kept_as_a_finding(frozen: Engine, words: str) -> None:
    with frozen.begin() as connection:
        connection.exec_driver_sql(words)
    migrations.upgrade(frozen)
    found = faults(frozen)
    assert found
    assert all(each.startswith("before the upgrade: ") for each in found), found
    frozen.dispose()


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("9999", "schema 9999 is from a newer nod. Upgrade this one."),
        ("1975ea83b712", "its schema 1975ea83b712 is another program's. Name an empty one."),
        (None, "it has tables (users) but no schema version. Restore a backup, or name an empty one."),
    ],
)
def test_a_database_of_another_program_or_a_newer_nod_is_left_alone(
    engine: Engine, version: str | None, told: str
) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE users (id INTEGER)"))
        if version is not None:
            connection.execute(text("CREATE TABLE alembic_version (version_num TEXT)"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:v)"), {"v": version})
    with pytest.raises(SettingsError) as refused:
        migrations.upgrade(engine)
    assert refused.value.message == f"NOD_DATABASE_URL: {told}"
    engine.dispose()


@needs_postgres
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(encoding: str) -> None:
    made = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with of_its_own(made=made) as url:
        engine = open_engine(url)
        with pytest.raises(SettingsError, match=f"its encoding {encoding} can't hold every text"):
            migrations.upgrade(engine)
        engine.dispose()

"""The schema's history leads to the tables the code knows, on both databases."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Engine, inspect, text

from bot.errors import SettingsError
from bot.store import migrations
from bot.store.engine import open_engine
from tests.kit.urls import needs_postgres, of_its_own

ROOT = Path(__file__).parent.parent.parent
FROZEN = Path(__file__).parent / "frozen"
_UPGRADE = (
    "import sys; from bot.store import migrations; from bot.store.engine import open_engine;"
    "migrations.upgrade(open_engine(sys.argv[1]))"
)


@pytest.fixture
def engine(database_url: str) -> Engine:
    return open_engine(database_url)


def test_from_nothing_to_the_newest_and_again_is_nothing(engine: Engine) -> None:
    assert migrations.read_version(engine) is None
    migrations.upgrade(engine)
    assert migrations.read_version(engine) == migrations.find_newest_version()
    tables = inspect(engine).get_table_names()
    assert {"conversation", "message", "turn", "proposal", "audit", "copy", "issue"} <= set(tables)
    migrations.upgrade(engine)
    assert inspect(engine).get_table_names() == tables
    engine.dispose()


def test_the_schema_is_what_the_code_says(engine: Engine) -> None:
    migrations.upgrade(engine)
    command.check(migrations.make_alembic_config(engine))  # raises where a table, column or index differs
    engine.dispose()


@pytest.mark.slow
def test_a_change_of_the_tables_becomes_a_version_that_a_filled_database_takes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bot", tmp_path / "bot", ignore=shutil.ignore_patterns("static", "__pycache__"))
    tables = tmp_path / "bot" / "store" / "tables" / "rules.py"
    tables.write_text(
        tables.read_text().replace("    scope: str\n", "    scope: str\n    lamp: str | None = None\n")
    )

    def python(*words: str) -> str:
        run = [sys.executable, *words]
        return subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own

    number = f"{int(migrations.find_newest_version()) + 1:04}"
    file = Path(python("-m", "bot.store.migrations", "which lamp").splitlines()[-1])
    assert file == tmp_path / "bot/store/migrations/versions" / f"{number}_which_lamp.py"
    assert "add_column(sa.Column('lamp'" in file.read_text()

    with contextlib.closing(sqlite3.connect(tmp_path / "nod.db")) as database:
        database.executescript((FROZEN / "schema_0008.sql").read_text())
    python("-c", _UPGRADE, f"sqlite:///{tmp_path / 'nod.db'}")
    with contextlib.closing(sqlite3.connect(tmp_path / "nod.db")) as database:
        [(version,)] = database.execute("SELECT version_num FROM alembic_version")
        rules = database.execute("SELECT lamp FROM rule").fetchall()
    assert version == number
    assert rules
    assert {lamp for (lamp,) in rules} == {None}


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("9999", "schema 9999 is from a newer nod. Upgrade this one."),
        (
            "0003",
            "schema 0003 is older than this nod upgrades. Keep the nod of then, or name an empty one.",
        ),
        ("1975ea83b712", "its schema 1975ea83b712 is another program's. Name an empty one."),
        ("0005ea83b712", "its schema 0005ea83b712 is another program's. Name an empty one."),
        (None, "it has tables (users) but no schema version. Restore a backup, or name an empty one."),
    ],
)
def test_a_database_of_another_program_a_newer_or_a_much_older_nod_is_left_alone(
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

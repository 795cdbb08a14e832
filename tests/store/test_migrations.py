"""The schema's history leads to the tables the code knows, on both databases."""

import pytest
from alembic import command
from sqlalchemy import Engine, inspect

from bot.store import migrations
from bot.store.database import open_engine


@pytest.fixture
def engine(database_url: str) -> Engine:
    return open_engine(database_url)


def test_from_nothing_to_the_newest_and_again_is_nothing(engine: Engine) -> None:
    assert migrations.current(engine) is None
    migrations.upgrade(engine)
    assert migrations.current(engine) == migrations.newest(engine)
    tables = inspect(engine).get_table_names()
    assert {"conversation", "message", "turn", "proposal", "audit", "copy", "issue"} <= set(tables)
    migrations.upgrade(engine)
    assert inspect(engine).get_table_names() == tables
    engine.dispose()


def test_the_schema_is_what_the_code_says(engine: Engine) -> None:
    migrations.upgrade(engine)
    command.check(migrations.config(engine))  # raises where a table, column or index differs
    engine.dispose()

"""Fixtures every test may use: a real, empty database and a clock that moves only when told."""

import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import structlog
from sqlalchemy import create_engine, make_url, text
from sqlmodel import SQLModel

import bot.store.issues
import bot.store.tables  # noqa: F401 - their tables join SQLModel.metadata
from bot.store.database import Database

POSTGRES_URL = os.environ.get("NOD_TEST_POSTGRES_URL", "")


class FakeClock:
    """Call it for the time; it stands still until ``forward``."""

    def __init__(self, now: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"] if POSTGRES_URL else ["sqlite"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of its own for each test: a new file, or a new schema that is dropped at the end."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'nod.db'}"
        return
    schema = f"nod_test_{uuid4().hex[:12]}"
    admin = create_engine(POSTGRES_URL, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    url = make_url(POSTGRES_URL).update_query_dict({"options": f"-csearch_path={schema}"})
    yield url.render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
    admin.dispose()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """With all tables; on PostgreSQL as well when NOD_TEST_POSTGRES_URL is set."""
    opened = Database(database_url)
    SQLModel.metadata.create_all(opened.engine)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A test that sets up logging does so for itself alone."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()

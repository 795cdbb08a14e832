"""A database with all its tables, quickly."""

import functools
import tempfile
from pathlib import Path

from sqlalchemy import create_engine, make_url
from sqlmodel import SQLModel

from bot.store import migrations
from bot.store.database import Database

OURS = "application_name = current_setting('application_name')"
"""PostgreSQL: which connections are this test's, of those of all tests that run at the same time."""


@functools.cache
def _blank() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "blank.db"
        made = Database(f"sqlite:///{file}")
        migrations.upgrade(made.engine)
        made.close()
        return file.read_bytes()


def make_tables(url: str) -> None:
    """Make the database with all its tables; a SQLite file is a copy of one that is made once."""
    parts = make_url(url)
    if parts.get_backend_name() == "sqlite":
        file = Path(parts.database or "")
        file.touch(0o600, exist_ok=False)
        file.write_bytes(_blank())
        return
    engine = create_engine(url)
    SQLModel.metadata.create_all(engine)
    engine.dispose()

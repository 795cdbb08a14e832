"""Empty databases for tests: a new SQLite file, or a schema of its own in the PostgreSQL of this run."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

POSTGRES_URL = os.environ.get("NOD_TEST_POSTGRES_URL", "")

needs_postgres = pytest.mark.skipif(not POSTGRES_URL, reason="there is no PostgreSQL")

Urls = Callable[[str], str]
"""The URL of this test's database of that name; the first time it is asked for, there is nothing in it."""


def plain(url: str) -> str:
    """The URL without SQLAlchemy, as PostgreSQL's own library reads it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


EMPTIED: dict[str, tuple[str, str]] = {}
"""Schemas that tests of this process left → what makes all their tables empty again, and their shape."""

FILLED: dict[str, tuple[str, str]] = {}
"""The same of schemas that a test has now."""

_SHAPE = """
SELECT md5(string_agg(each, ',' ORDER BY each)) FROM (
    SELECT concat_ws(' ', oid, relname, relkind, relpages, reltuples) FROM pg_class WHERE relnamespace = :of
    UNION ALL SELECT concat_ws(' ', attrelid, attname, attnum, atttypid, attnotnull, atthasdef)
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = :of
    UNION ALL SELECT concat_ws(' ', oid, conname) FROM pg_constraint WHERE connamespace = :of
    UNION ALL SELECT concat_ws(' ', t.oid, tgname, tgenabled)
        FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE c.relnamespace = :of
    UNION ALL SELECT concat_ws(' ', oid, proname) FROM pg_proc WHERE pronamespace = :of
    UNION ALL SELECT concat_ws(' ', oid, typname) FROM pg_type WHERE typnamespace = :of
) AS parts (each)
""".replace(":of", "current_schema()::regnamespace")


def read_shape(connection: psycopg.Connection[Any]) -> str:
    """The current schema's tables and all that belongs to them, as one number: also what a planner knows."""
    [shape] = connection.execute(_SHAPE.encode()).fetchone() or ("",)
    return str(shape)


@contextmanager
def schema(server: str = POSTGRES_URL) -> Iterator[str]:
    """The URL of a new schema on this PostgreSQL, which is dropped at the end.

    One with all tables is emptied and kept for the next test of this process, unless its tables were changed.
    """
    name = f"nod_test_{uuid4().hex[:12]}"
    with psycopg.connect(plain(server), autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}".encode())
    url = make_url(server).update_query_dict(
        # by its name a test finds its own connections among those of others that run at the same time
        {"options": f"-csearch_path={name}", "application_name": name}
    )
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        with psycopg.connect(plain(server), autocommit=True) as admin:
            admin.execute(f"SET search_path TO {name}".encode())
            emptying, shape = FILLED.pop(name, ("", ""))
            if shape and shape == read_shape(admin):
                admin.execute(emptying.encode())
                EMPTIED[name] = emptying, shape
            else:
                admin.execute(f"DROP SCHEMA {name} CASCADE".encode())


def drop_emptied() -> None:
    """Drop what was kept for a next test."""
    with psycopg.connect(plain(POSTGRES_URL), autocommit=True) as admin:
        for name in EMPTIED:
            admin.execute(f"DROP SCHEMA {name} CASCADE".encode())
    EMPTIED.clear()


@contextmanager
def of_its_own(*told: str, made: str = "") -> Iterator[str]:
    """The URL of a new database there, which is dropped at the end.

    ``told``: what its sessions are told unless they say otherwise. ``made``: how it is created.
    """
    name = f"nod_test_{uuid4().hex[:12]}"
    with psycopg.connect(plain(POSTGRES_URL), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} {made}".encode())
        for each in told:
            admin.execute(f"ALTER DATABASE {name} SET {each}".encode())
    try:
        yield make_url(POSTGRES_URL).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(plain(POSTGRES_URL), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def urls(kind: str, folder: Path) -> Iterator[Urls]:
    """``kind``: sqlite or postgres."""
    made: dict[str, str] = {}
    with ExitStack() as stack:

        def url(name: str) -> str:
            if name not in made:
                file = f"sqlite:///{folder / f'{name}.db'}"
                made[name] = file if kind == "sqlite" else stack.enter_context(schema())
            return made[name]

        yield url

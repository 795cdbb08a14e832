"""A database that can't be used is told in a line that says what to do."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.store.refusals import explain_refusal


@contextmanager
def limited(what: int, most: int) -> Iterator[None]:
    """This process with a lower limit."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


def refused(file: Path, *statements: str, mode: str = "rwc") -> str:
    """Run these statements, of which one is refused; the line about it."""
    address = f"file:{file}?mode={mode}"
    with (  # noqa: PT012 - any of them is refused
        pytest.raises(sqlite3.OperationalError) as raised,
        closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection,
    ):
        for each in statements:
            connection.execute(each)
    return explain_refusal(raised.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small database."""
    with closing(sqlite3.connect(tmp_path / "nod.db")) as connection:
        connection.execute("CREATE TABLE row (words)")
    return tmp_path / "nod.db"


LONG = "INSERT INTO row VALUES (hex(zeroblob(100000)))"


def test_a_full_disk(file: Path):
    assert refused(file, "PRAGMA max_page_count=2", LONG) == (
        "NOD_DATABASE_URL: database or disk is full. Make room, then start again."
    )


def test_a_quota_that_is_reached(file: Path):
    with limited(resource.RLIMIT_FSIZE, 10_000):  # refused in the same way, as no full disk
        told = refused(file, LONG)
    assert told == (
        "NOD_DATABASE_URL: disk I/O error. Look at its disk and at the quota there, then start again."
    )


def test_a_file_that_may_not_be_written(file: Path):
    assert refused(file, LONG, mode="ro") == (
        "NOD_DATABASE_URL: attempt to write a readonly database."
        " Let Nod write this file and its folder, then start again."
    )


def test_a_folder_that_is_not_there(tmp_path: Path):
    assert refused(tmp_path / "gone" / "nod.db", LONG) == (
        "NOD_DATABASE_URL: unable to open database file."
        " Name a folder that exists and that Nod may write to, then start again."
    )


def test_too_many_open_files(file: Path):
    with limited(resource.RLIMIT_NOFILE, 3):
        told = refused(file, LONG)
    assert told == (
        "NOD_DATABASE_URL: unable to open database file."
        " Let this process open more files (ulimit -n), then start again."
    )


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("DiskFull", "Make room on the disk of PostgreSQL"),
        ("ReadOnlySqlTransaction", "Name a PostgreSQL server that takes writes"),
        ("InsufficientPrivilege", "Let the role of this address make and change tables"),
    ],
)
def test_what_postgresql_refuses(error: str, advice: str):
    errors = pytest.importorskip("psycopg").errors
    assert (
        explain_refusal(getattr(errors, error)("no")) == f"NOD_DATABASE_URL: no. {advice}, then start again."
    )


def test_a_server_that_takes_no_more_connections():
    fault = sqlite3.OperationalError("FATAL:  sorry, too many clients already\nmore")
    assert explain_refusal(fault).endswith(
        "Give PostgreSQL more connections, or end others, then start again."
    )


def test_a_port_that_looks_like_a_code_is_no_code():
    fault = ValueError('connection to server at "127.0.0.1", port 53100 failed: Connection refused')
    assert explain_refusal(fault).endswith("Connection refused; nod doctor looks closer")


def test_what_is_not_known_is_told_as_it_is():
    assert explain_refusal(ValueError("odd")) == "NOD_DATABASE_URL: odd; nod doctor looks closer"


def test_an_error_without_words():
    assert explain_refusal(sqlite3.OperationalError()) == (
        "NOD_DATABASE_URL: OperationalError; nod doctor looks closer"
    )

"""Recognition of database outages: errors after which the same statement may succeed in a moment."""

import os
import sqlite3

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002")
_REFUSALS = ("25006", "25P03")
"""Codes of PostgreSQL's that psycopg takes for faults of ours: nothing may be written (a disk that is full, a
replica), and a transaction took too long because its process was stopped."""
_OUTAGES = (
    "08",
    "55P03",
    "57",
    *_REFUSALS,
    "SQLITE_BUSY",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    *_DAMAGE,
)  # how their codes begin


class FileFault(OperationalError):
    """The database's file is gone or damaged; ``words`` say what to do, for people."""

    def __init__(self, words: str) -> None:
        super().__init__(None, None, sqlite3.OperationalError(words))
        self.words = words


def is_damage(error: DBAPIError) -> bool:
    """Return whether the database can't read what it has written."""
    return _code(error.orig).startswith(_DAMAGE)


def is_outage(error: BaseException) -> bool:
    """Tell if the database is unreachable or read-only, so that the same statement may succeed later."""
    if isinstance(error, OperationalError | InterfaceError):
        return True
    return isinstance(error, DBAPIError) and (_code(error.orig) in _REFUSALS or is_damage(error))


def in_a_line(error: BaseException | None) -> str:
    """Return the database's message for an outage, which says it all; empty for any other fault."""
    if isinstance(error, DBAPIError) and is_outage(error) and _code(error.orig).startswith(_OUTAGES):
        return str(error.orig).strip()
    return ""


def _code(error: BaseException | None) -> str:
    """Return SQLite's name or PostgreSQL's code of an error; "08" for psycopg without a connection."""
    return str(getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or "08")


def files_left() -> bool:
    """Tell if this process can open another file; without that it takes and makes no connection."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True

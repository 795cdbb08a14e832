"""Recognition of database outages: errors after which the same statement may succeed later.

After such an error, work that uses the database is tried again, since the work itself has no fault.
"""

import os
import sqlite3

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

# codes of damage; those of PostgreSQL are data_corrupted and index_corrupted
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002")
_CODES_OF_OTHER_ERRORS = (
    "25006",  # read_only_sql_transaction: a full disk, a replica
    "25P03",  # idle_in_transaction_session_timeout: its process was stopped for a while
)
"""Codes of outages for which psycopg raises another error than OperationalError."""
_NAMED_OUTAGES = (
    "08",  # connection exceptions
    "55P03",  # lock_not_available
    "57",  # operator intervention, as at a shutdown
    *_CODES_OF_OTHER_ERRORS,
    "SQLITE_BUSY",
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    *_DAMAGE,
)
"""The beginnings of the codes of outages whose message says all: names of SQLite, SQLSTATE of PostgreSQL.

https://www.postgresql.org/docs/current/errcodes-appendix.html
"""


class FileFault(OperationalError):
    """The database's file is gone or damaged. ``advice``: a text for people that says what to do."""

    def __init__(self, advice: str) -> None:
        super().__init__(None, None, sqlite3.OperationalError(advice))
        self.advice = advice


def is_damage(error: DBAPIError) -> bool:
    """Return whether the database can't read what it has written."""
    return _code_of(error.orig).startswith(_DAMAGE)


def is_outage(error: BaseException) -> bool:
    """Return whether the database is unreachable, busy, read-only or damaged."""
    if isinstance(error, OperationalError | InterfaceError):
        return True
    return isinstance(error, DBAPIError) and (
        _code_of(error.orig) in _CODES_OF_OTHER_ERRORS or is_damage(error)
    )


def describe_outage(error: BaseException | None) -> str:
    """Return the database's message for an outage of `_NAMED_OUTAGES`; empty for any other error."""
    if isinstance(error, DBAPIError) and is_outage(error) and _code_of(error.orig).startswith(_NAMED_OUTAGES):
        return str(error.orig).strip()
    return ""


def _code_of(error: BaseException | None) -> str:
    """Return an error's name in SQLite or its code in PostgreSQL; without one "08", for no connection."""
    return str(getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or "08")


def may_open_files() -> bool:
    """Return whether this process can open another file, as each new connection needs one."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True

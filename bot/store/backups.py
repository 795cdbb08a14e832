"""Backups of SQLite's file, and the check whether its pages are damaged."""

import contextlib
import math
import os
import sqlite3
from pathlib import Path

from bot.domain.progress import Progress, ignore_progress
from bot.errors import NodError, SettingsError
from bot.store.engine import connect_readonly

BACKUP_PAGES = 1000  # the pages that are copied in one step


def check_pages(file: Path, max_bytes: float = math.inf) -> None:
    """Raise SettingsError where pages are damaged or can't be read. A file over ``max_bytes`` is not read."""
    if not file.exists() or file.stat().st_size > max_bytes:
        return
    try:
        with contextlib.closing(connect_readonly(file)) as connection:
            damage = _find_damage(connection)
    except sqlite3.Error as error:  # the path is a folder, or a file of another account
        raise SettingsError(f"NOD_DATABASE_URL: {file} can't be read ({error}).") from None
    if damage:
        raise SettingsError(
            f"NOD_DATABASE_URL: {file} is damaged ({damage}). Keep it aside, and restore a backup."
        )


def _find_damage(connection: sqlite3.Connection) -> str:
    """Return the damage in a database's pages, in SQLite's words; empty for none."""
    try:
        result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        result = str(error)
    return "" if result == "ok" else result


def back_up(file: Path, copy: Path, progress: Progress = ignore_progress) -> None:
    """Copy a SQLite database as it is at one moment, also while it is written to.

    ``progress`` receives the pages copied and all pages.

    Raises OSError where ``copy`` exists or cannot be made, sqlite3.Error where the database cannot be read,
    NodError where it is damaged.
    """
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with (
            contextlib.closing(connect_readonly(file)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.execute("BEGIN")
            source.execute("SELECT 1 FROM sqlite_master").fetchone()  # one snapshot for all the steps
            source.backup(
                target,
                pages=BACKUP_PAGES,
                progress=lambda _, left, total: progress(total - left, total),
                sleep=0,
            )
            damage = _find_damage(target)
            if damage:
                raise NodError(f"{file} is damaged, so no copy was kept ({damage}). Restore an older backup.")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise

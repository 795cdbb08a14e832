"""SQLite's file under a running process: whether it is still the one that was opened, and undamaged."""

import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from bot.telemetry.outages import FileFault, is_damage

_Identity = tuple[int, int]  # device and inode


class SQLiteFile:
    """The file behind the open connections of this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: _Identity | None = None
        self._damaged = False

    def opened(self, *_: object) -> None:
        """A connection was opened; the first one says which file it is."""
        self._opened = self._opened or self._identity()

    def check(self) -> None:
        """Raises FileFault where what is written now would be lost, or written to a damaged file."""
        if self._damaged:
            raise FileFault(
                f"The database file {self._path.name} is damaged. Stop Nod, and restore a backup."
            )
        if self._opened is not None and self._opened != self._identity():
            raise FileFault(
                f"The database file {self._path.name} was moved or replaced while Nod ran. "
                "Put it back, or restart Nod."
            )

    def failed(self, error: BaseException) -> None:
        """A statement failed. Raises FileFault where that means damage, as does each `check` from then on."""
        if isinstance(error, DBAPIError) and is_damage(error):
            self._damaged = True
            self.check()

    def _identity(self) -> _Identity | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def damage(connection: sqlite3.Connection) -> str:
    """What is wrong with the pages of a database, in SQLite's words; empty where nothing is."""
    try:
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        found = str(error)
    return "" if found == "ok" else str(found)

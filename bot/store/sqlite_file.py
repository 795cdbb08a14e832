"""The check of SQLite's file while Nod runs: it may be moved, replaced or damaged under open connections."""

from pathlib import Path

from sqlalchemy.exc import DBAPIError

from bot.telemetry.outages import FileFault, is_damage

_Identity = tuple[int, int]  # the device and the inode of a file


class SQLiteFile:
    """The file behind the open connections of this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first_identity: _Identity | None = None  # the file's identity when it was first opened
        self._is_damaged = False

    def on_connect(self, *_: object) -> None:
        """Note an opened connection; the first one identifies the file."""
        self._first_identity = self._first_identity or self._read_identity()

    def check(self) -> None:
        """Raise FileFault where a write would be lost, or would go to a damaged file."""
        if self._is_damaged:
            raise FileFault(
                f"The database file {self._path.name} is damaged. Stop Nod, and restore a backup."
            )
        if self._first_identity is not None and self._first_identity != self._read_identity():
            raise FileFault(
                f"The database file {self._path.name} was moved or replaced while Nod ran. "
                "Put it back, or restart Nod."
            )

    def on_error(self, error: BaseException) -> None:
        """Check the file after a failed statement.

        Raises FileFault where it is damaged, as does each `check` from then on.
        """
        if isinstance(error, DBAPIError) and is_damage(error):
            self._is_damaged = True
            self.check()

    def _read_identity(self) -> _Identity | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

"""One process works on a SQLite file at a time; a second one is told so instead of half working."""

import fcntl
import os
from pathlib import Path
from typing import Self

from bot.errors import SettingsError


class ProcessLock:
    """Holds ``<database>.lock`` while entered. Without a file (PostgreSQL) it holds nothing."""

    def __init__(self, database: Path | None) -> None:
        self._path = database.with_name(database.name + ".lock") if database else None
        self._handle: int | None = None

    @property
    def exclusive(self) -> bool:
        """Whether no other process can be working on this database."""
        return self._handle is not None

    def taken(self) -> bool:
        """Whether somebody else holds it right now. Makes no file."""
        if self._path is None or not self._path.exists():
            return False
        try:
            with self:
                return False
        except SettingsError:
            return True

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise SettingsError(
                f"NOD_DATABASE_URL: cannot write {self._path} ({error.strerror}); "
                "name a file in a folder that exists and is yours"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise SettingsError(
                f"NOD_DATABASE_URL: another nod is running on {self._path.with_suffix('')}; stop it first, "
                "give this one another file, or use PostgreSQL"
            ) from None
        self._handle = handle
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

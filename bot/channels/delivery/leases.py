"""What one process at a time may do, by name: post in a conversation, redraw the cards of an answer."""

import contextlib
from collections.abc import AsyncIterator

from sqlalchemy.exc import SQLAlchemyError

from bot.errors import LeasedElsewhere
from bot.store import processes
from bot.store.database import Database


class Leases:
    """Leases in rows, held for as long as their process lives. On SQLite there is one process, and no row.

    They keep other processes out; in this one, the caller sees to it that a name is held once at a time.
    """

    def __init__(self, database: Database, process: str) -> None:
        self._database = database
        self._process = process
        self._held: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether this process holds it now."""
        return name in self._held

    @contextlib.asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[None]:
        """Hold it inside; raises LeasedElsewhere where another living process does."""
        shared = self._database.dialect == "postgresql"
        if shared and (owner := await self._lease(name)) != self._process:
            raise LeasedElsewhere(owner)
        self._held.add(name)
        try:
            yield
        finally:
            self._held.discard(name)
            if shared:
                with contextlib.suppress(SQLAlchemyError):  # then it stays with this process, which may do it
                    await self._database.write(processes.release, name, self._process)

    async def _lease(self, name: str) -> str:
        return await self._database.write(processes.lease, name, self._process)

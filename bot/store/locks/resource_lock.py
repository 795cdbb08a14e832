"""Locks on named resources, such as one file: one change at a time, in every process on the database.

An approved call is checked, claimed and run between `ResourceLock.enter` and `ResourceLock.leave`, so no
other change of the same resource comes in between. A caller that finds the lock taken does not wait: `leave`
returns the proposal that waits next, and the caller wakes its job. The order of the waiting proposals is only
in memory: after a crash the approved rows are found again and enter in a new order.
"""

import asyncio
import contextlib
import threading

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from bot.store.database import Database
from bot.store.engine import open_unpooled
from bot.telemetry.logs import logger

log = logger(__name__)

_FIRST_PAUSE_SECONDS = 0.02  # between tries for a lock that another process holds, doubled each time
_LONGEST_PAUSE_SECONDS = 0.5
# the SQL of the number of an advisory lock, one for each name in each installation
_NUMBER = "hashtextextended('nod thing ' || coalesce(current_schema(), '') || ' ' || :name, 0)"
_TAKE = text(f"SELECT pg_try_advisory_lock({_NUMBER})")
_GIVE = text(f"SELECT pg_advisory_unlock({_NUMBER})")


class ResourceLock:
    """The locks on resources, each by the name of the resource. A proposal holds one lock at most."""

    def __init__(self, database: Database) -> None:
        self._holders: dict[str, str] = {}  # the proposal of this process that has the lock, by name
        # the name that each waiting proposal wants, by the proposal's id, in the order they came
        self._wanted_by_proposal: dict[str, str] = {}
        self._other_processes = _AdvisoryLocks(database) if database.dialect == "postgresql" else None

    async def enter(self, proposal_id: str, name: str) -> bool:
        """Take the lock on a name for a proposal; wait where another process has it.

        False where another proposal of this process has the lock or came first. Then the proposal is to enter
        again when `leave` or `stop_waiting` returns its id.
        """
        first = next(iter(self._list_waiting(name)), proposal_id)
        if name in self._holders or first != proposal_id:
            self._wanted_by_proposal.setdefault(proposal_id, name)
            return False
        self._wanted_by_proposal.pop(proposal_id, None)
        self._holders[name] = proposal_id
        if self._other_processes is not None:
            try:
                await self._other_processes.take(name)
            except BaseException:
                del self._holders[name]
                raise
        return True

    def find_next(self, name: str) -> str | None:
        """Return the proposal that waits next for a name, if no proposal in this process has the lock."""
        return next(iter(self._list_next(name)), None)

    async def leave(self, proposal_id: str, name: str) -> tuple[str, ...]:
        """Give up the lock of a proposal; return the proposal that comes next, or nothing."""
        self._wanted_by_proposal.pop(proposal_id, None)
        if self._other_processes is not None:
            await self._other_processes.give(name)
        del self._holders[name]
        return self._list_next(name)

    def stop_waiting(self, proposal_id: str) -> tuple[str, ...]:
        """Remove a waiting proposal; return the one that waits next for its name, if the lock is free."""
        name = self._wanted_by_proposal.pop(proposal_id, None)
        if name is None:
            return ()
        return self._list_next(name)

    def _list_next(self, name: str) -> tuple[str, ...]:
        """Return the proposal that waits next for a name; empty without one, or while the lock is taken."""
        if name in self._holders:
            return ()
        return self._list_waiting(name)[:1]

    def _list_waiting(self, name: str) -> tuple[str, ...]:
        return tuple(
            proposal_id for proposal_id, wanted in self._wanted_by_proposal.items() if wanted == name
        )

    def close(self) -> None:
        """Give up every lock; no proposal enters any longer."""
        if self._other_processes is not None:
            self._other_processes.close()


class _AdvisoryLocks:
    """PostgreSQL's advisory locks, by which processes exclude one another, on one connection of this process.

    A lock lasts until it is given back, or until the connection ends, as it does with the process.
    """

    def __init__(self, database: Database) -> None:
        self._engine = open_unpooled(database.engine.url)  # a pool would reset the connection
        self._connection: Connection | None = None
        self._statement_lock = asyncio.Lock()  # a connection does one thing at a time
        self._thread_lock = threading.Lock()  # a cancelled caller's statement may still run in its thread
        self._is_closed = False

    async def take(self, name: str) -> None:
        """Wait until no other process holds the name."""
        pause = _FIRST_PAUSE_SECONDS
        while not await self._ask(_TAKE, name):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def give(self, name: str) -> None:
        """Give a lock back. Never raises: where the connection was lost, the lock is gone with it."""
        try:
            if not await self._ask(_GIVE, name):
                log.warning("a lock was lost with its connection", lock=name)
        except DBAPIError as error:
            log.warning("a lock could not be given back", lock=name, why=str(error.orig))

    def close(self) -> None:
        with self._thread_lock:
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()

    async def _ask(self, statement: TextClause, name: str) -> bool:
        async with self._statement_lock:
            return await asyncio.get_running_loop().run_in_executor(None, self._ask_now, statement, name)

    def _ask_now(self, statement: TextClause, name: str) -> bool:
        with self._thread_lock:
            if self._is_closed:
                raise RuntimeError("Nod has let go of its locks.")
            if self._connection is None or self._connection.closed:
                self._connection = self._engine.connect()
            try:
                return bool(self._connection.execute(statement, {"name": name}).scalar_one())
            except DBAPIError:
                with contextlib.suppress(DBAPIError):
                    self._connection.close()
                self._connection = None
                raise

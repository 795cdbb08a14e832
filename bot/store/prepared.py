"""Statements over one connection to PostgreSQL, each prepared once and run by libpq itself.

psycopg's cursor takes 50 µs for a statement, most of it to find out what it found out before, and with every
ROLLBACK it drops all that it had prepared; this takes 16 µs. psycopg still converts values and rows. Ctrl+C
does not interrupt such a statement, so it is for threads, and for what runs again and again.

A statement is a trip to the server and back. What needs no answer (BEGIN, a lock, rows of the
record) waits here and goes out with the next statement, in libpq's pipeline. A fault of it shows there.
"""

import contextlib
import itertools
import re
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.waiting import wait

_LOOK = 0.1  # seconds between looks whether Ctrl+C was pressed


class PipelinedConnection(psycopg.Connection[Any]):
    """A connection that does what waits in its `Prepared` before anything else."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.prepared = Prepared(self)

    def wait(self, *given: Any, **options: Any) -> Any:
        """Whatever psycopg does with the server passes here."""
        self.prepared.settle()
        return super().wait(*given, **options)

    def commit(self) -> None:
        if self.prepared.has_begun():
            super().commit()

    def rollback(self) -> None:
        self.prepared.drop()
        if self.prepared.has_begun():
            super().rollback()


class Prepared:
    """The statements that this connection knows, and those that wait for the next one."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._library = driver.pgconn
        self._names: dict[str, bytes] = {}  # by text
        self._waiting: list[tuple[bytes, Sequence[Any]]] = []
        self._gathers = False
        self._owed = False  # the answer to a COMMIT that no one waits for

    def begin(self, text: str) -> None:
        """Run ``text``, a BEGIN, with the first statement. Raises psycopg.Error."""
        self._waiting = [(self._name(text), ())]

    def execute(self, text: str, given: Sequence[Any] = ()) -> Any:
        """Run ``text``, which has ``%s`` for each value; gives what a cursor would. Raises psycopg.Error.

        None where it waits (`gathering`).
        """
        if not self.has_begun():
            return self._driver.execute(text, given)  # which begins
        values = Transformer(self._driver)
        # as text, so that PostgreSQL gives each the type of its place, whether it is NULL or a large number
        sent = values.dump_sequence(given, [PyFormat.TEXT] * len(given))
        self._waiting.append((self._name(text), sent))
        if self._gathers:
            return None
        result = self._answer()
        values.set_pgresult(result)
        return _Answer(result, values)

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """What is executed within waits for the first statement after it, and gives nothing."""
        self._gathers = True
        try:
            yield
        finally:
            self._gathers = False

    def commit(self) -> None:
        """End the transaction. Raises psycopg.Error where it, or what waited for it, fails."""
        if self._is_more_than_begun():
            self.execute("COMMIT")

    def leave(self) -> None:
        """End a transaction that only read: whether it could COMMIT says nothing, and no one waits for it."""
        if self._is_more_than_begun():
            self._library.send_query_prepared(self._name("COMMIT"), ())
            self._library.flush()
            self._owed = True

    def has_begun(self) -> bool:
        """Whether there is a transaction, in the server or waiting to begin."""
        if self._waiting:
            return True
        return not self._owed and self._library.transaction_status != TransactionStatus.IDLE

    def settle(self) -> None:
        """Send what waits, and have every answer that is owed. Raises psycopg.Error."""
        if self._waiting:
            self._answer()
        self._collect()

    def drop(self) -> None:
        """Forget what waits."""
        self._waiting = []

    def _is_more_than_begun(self) -> bool:
        """False where no statement followed BEGIN, which is not sent then."""
        if len(self._waiting) == 1 and self._library.transaction_status != TransactionStatus.INTRANS:
            self.drop()
        return self.has_begun()

    def _name(self, text: str) -> bytes:
        name = self._names.get(text)
        if name is None:
            self._collect()
            name = b"nod %d" % len(self._names)
            self._checked(self._library.prepare(name, _numbered(text)))
            self._names[text] = name
        return name

    def _collect(self) -> None:
        if self._owed:
            self._owed = False
            for result in wait(execute(self._library), self._library.socket, _LOOK):
                self._checked(result)

    def _answer(self) -> Any:
        """Send all that waits; gives the answer to the last."""
        self._collect()
        waiting, self._waiting = self._waiting, []
        if len(waiting) == 1:
            return self._checked(self._library.exec_prepared(*waiting[0]))
        self._library.enter_pipeline_mode()
        for name, sent in waiting:
            self._library.send_query_prepared(name, sent)
        self._library.pipeline_sync()
        *answers, _ = wait(self._answers(len(waiting) + 1), self._library.socket, _LOOK)
        self._library.exit_pipeline_mode()
        for each in answers:
            self._checked(each)
        return answers[-1]

    def _answers(self, count: int) -> Generator[Any, Any, list[Any]]:
        """For psycopg's `wait`."""
        yield from send(self._library)
        found: list[Any] = []
        while len(found) < count:
            answers = yield from fetch_many(self._library)
            if not answers:
                raise OperationalError(self._library.get_error_message())
            found += answers
        return found

    def _checked(self, result: Any) -> Any:
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return result
        if self._driver.broken:
            raise OperationalError(result.get_error_message())
        raise error_from_result(result)


class _Answer:
    """What a cursor says of its result."""

    __slots__ = ("_result", "_values")

    def __init__(self, result: Any, values: Any) -> None:
        self._result, self._values = result, values

    @property
    def description(self) -> list[tuple[str, int]]:
        found = self._result
        return [(found.fname(at).decode(), found.ftype(at)) for at in range(found.nfields)]

    @property
    def rowcount(self) -> int:
        found: int | None = self._result.command_tuples
        return -1 if found is None else found

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._values.load_rows(0, self._result.ntuples, tuple)
        return rows


def _numbered(text: str) -> bytes:
    """As libpq has it: each ``%s`` with its number, and one percent sign for ``%%``."""
    numbers = itertools.count(1)
    return re.sub("%[s%]", lambda each: f"${next(numbers)}" if each[0] == "%s" else "%", text).encode()

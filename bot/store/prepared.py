"""Statements over one connection to PostgreSQL, each prepared once and run by libpq itself.

psycopg's cursor takes 50 µs for a statement, most of it to find out what it found out before, and with every
ROLLBACK it drops all that it had prepared; this takes 16 µs. psycopg still converts values and rows. Ctrl+C
does not interrupt such a statement, so it is for threads, and for what runs again and again.
"""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from psycopg import OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus


class Prepared:
    """The statements that this connection knows."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._names: dict[str, bytes] = {}  # by text

    def execute(self, text: str, given: Sequence[Any] = ()) -> Any:
        """Run ``text``, which has ``%s`` for each value; gives what a cursor would. Raises psycopg.Error."""
        library = self._driver.pgconn
        begun = library.transaction_status != TransactionStatus.IDLE or text.startswith("BEGIN")
        if not begun or library.pipeline_status != PipelineStatus.OFF:
            return self._driver.execute(text, given)  # which begins, or sends it together with others
        name = self._names.get(text)
        if name is None:
            name = b"nod %d" % len(self._names)
            self._checked(library.prepare(name, _numbered(text)))
            self._names[text] = name
        values = Transformer(self._driver)
        # as text, so that PostgreSQL gives each the type of its place, whether it is NULL or a large number
        sent = values.dump_sequence(given, [PyFormat.TEXT] * len(given))
        result = self._checked(library.exec_prepared(name, sent))
        values.set_pgresult(result)
        return _Answer(result, values)

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

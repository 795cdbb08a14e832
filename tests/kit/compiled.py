"""Each test has its own database and tools, but what libraries made for one serves all: half of the time."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from bot.tools.signature import Signature

_COMPILED: LRUCache[Any, Any] = LRUCache(5000)
_SIGNATURES: dict[Any, list[tuple[Any, Signature]]] = {}
"""By the code of their functions, each with what else makes it."""
_read = Signature.of


def share() -> None:
    """Compile a statement once for all engines of this process, and read a function's signature once."""
    Signature.of = _known  # type: ignore[method-assign]
    for dialect in (SQLiteDialect_pysqlite, PGDialect_psycopg):
        dialect.__hash__ = lambda self: hash(type(self))
        dialect.__eq__ = lambda self, other: type(self) is type(other)
    event.listen(Engine, "engine_connect", _use)


def _use(connection: Connection) -> None:
    connection.execution_options(compiled_cache=_COMPILED)


def _known(function: Callable[..., Any], *own_types: type) -> Signature:
    """A tool's function is a new one in each test, but its code, its words and its types are the same."""
    words = (function.__name__, function.__doc__, function.__annotations__, function.__defaults__)
    made_of = (words, vars(function).get("__signature__"), own_types)
    known = _SIGNATURES.setdefault(function.__code__, [])
    for each, signature in known:
        if each == made_of:
            return signature
    known.append((made_of, _read(function, *own_types)))
    return known[-1][1]

"""The plans of the statements that a database is asked: what they read from end to end."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx
import psycopg
from sqlalchemy import event

from bot.app.app import App
from bot.store.database import Database
from bot.store.tables.row import Row

FEW = {"book", "chain_end", "hold", "mute", "process", "rule", "tool_version"}
"""Tables whose rows do not become more with what waits."""
MANY = {table.name for table in Row.metadata.sorted_tables} - FEW
OF_MANY = {"held_recorded", "proposal_of_chat", "proposal_shared_by"}
"""Indexes of some rows alone that become more with what waits."""
OF_FEW = {
    index.name
    for table in Row.metadata.sorted_tables
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None and index.name not in OF_MANY
} | {"notice_due"}
"""Indexes of those rows alone that are still to be dealt with; a notice is deleted once it was posted."""
_MANY_ROWS_ALONE = ("seqscan", "mergejoin", "hashjoin", "material")  # which pay while there are few rows
_PATIENT = ("wait",)  # parameters that make an answer come later
PLAIN = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


class AskedTexts:
    """The statements that a database's connections are asked from now on, with the values in the text."""

    def __init__(self, database: Database) -> None:
        self.texts: dict[str, None] = {}
        database.engine.dispose()  # those that are open are not heard
        event.listen(database.engine, "connect", self._note)

    def _note(self, connection: Any, _: Any) -> None:
        if isinstance(connection, psycopg.Connection):
            connection.cursor_factory = self._cursor()
        else:
            connection.set_trace_callback(self._add)

    def _cursor(self) -> type[psycopg.ClientCursor[Any]]:
        add = self._add

        class Noting(psycopg.ClientCursor[Any]):
            def execute(self, query: Any, params: Any = None, **how: Any) -> Any:
                add(self.mogrify(query, params))
                return super().execute(query, params, **how)

        return Noting

    def _add(self, text: str) -> None:
        if text.lstrip().upper().startswith(PLAIN):
            self.texts[text] = None


def read_from_end_to_end(database: Database, text: str, *, few: bool = True) -> list[str]:
    """Return what a statement reads without looking anything up: tables, and indexes of all their rows.

    ``few``: there are so few rows that PostgreSQL would read all of them.
    """
    with database.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, psycopg.Connection):
            for way in _MANY_ROWS_ALONE if few else ():
                driver.execute(f"SET LOCAL enable_{way} = off")
            [[[plan]]] = driver.execute(f"EXPLAIN (FORMAT JSON) {text}").fetchall()
            return list(_of_postgres(plan["Plan"]))
        return list(_of_sqlite(row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {text}")))


def _of_postgres(node: dict[str, Any]) -> Iterator[str]:
    kind, table, index = node["Node Type"], node.get("Relation Name"), node.get("Index Name")
    if kind == "Seq Scan" and table in MANY:
        yield table
    elif index and index not in OF_FEW and "Index Cond" not in node and table not in FEW:
        yield index
    for below in node.get("Plans", ()):
        yield from _of_postgres(below)


def _of_sqlite(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        words = line.split()
        if words[0] == "SCAN" and words[1].rstrip("_0123456789") in MANY and words[-1] not in OF_FEW:
            yield line


async def ask_everything(app: App, client: httpx.AsyncClient, known: Mapping[str, str]) -> None:
    """Read every address of the API without and with each of its parameters, then run every sweep.

    ``known``: values of parameters by their names; those that have others of their own get the first.
    """
    document = (await client.get("/openapi.json")).json()
    for path, methods in document["paths"].items():
        if "get" not in methods:
            continue
        parameters = methods["get"].get("parameters", ())
        named = {each["name"]: _choose_value(each, known) for each in parameters}
        address = path.format(**{each: value for each, value in named.items() if f"{{{each}}}" in path})
        queries = [each["name"] for each in parameters if each["in"] == "query"]
        is_stream = "text/event-stream" in str(methods["get"]["responses"])
        for query in ({}, *({name: named[name]} for name in queries if name not in _PATIENT)):
            await _read(client, address, query, is_stream=is_stream)
    for sweep in app.scheduler.sweeps:
        await sweep.run(app.clock())


def _choose_value(parameter: Mapping[str, Any], known: Mapping[str, str]) -> str:
    if parameter["name"] in known:
        return known[parameter["name"]]
    schema = parameter["schema"]
    for each in (schema, *schema.get("anyOf", ()), schema.get("items", {})):
        if "enum" in each:
            return str(each["enum"][0])
        if each.get("type") in ("integer", "number"):
            return "5"
        if each.get("type") == "boolean":
            return "true"
    return "x"


async def _read(
    client: httpx.AsyncClient, address: str, query: Mapping[str, str], *, is_stream: bool
) -> None:
    """Read an answer, or the first block of a stream. Raises AssertionError where Nod failed."""
    async with client.stream("GET", address, params=query, timeout=None) as answer:
        assert answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR, (address, query, answer.status_code)
        if is_stream and answer.is_success:
            await anext(answer.aiter_bytes())
        else:
            await answer.aread()

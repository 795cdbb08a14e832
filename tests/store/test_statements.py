"""What a cycle asks of the database is counted, so that it does not grow unnoticed."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from benchmarks.floors import DURABLE, HASTY
from bot.domain.chat import Address
from bot.domain.proposals import State
from bot.domain.verbs import Verb
from tests.kit import Nod, call, says

MOST = {
    "sqlite": {"statements": 47, "transactions": 14, "commits": 8},
    "postgresql": {"statements": 51, "transactions": 14, "commits": 8},
}
"""From a message to the closing words, in a place where people read rows, so that nothing is delivered.
A commit is one that writes."""
TRIPS = 53
"""Of such a cycle to PostgreSQL and back, once every statement is known there. Some are COMMITs after reads,
which no one waits for."""
_CYCLES = 12  # until it is
HERE = Address("console", "c1")


@contextmanager
def counting(nod: Nod, statements: list[str]) -> Iterator[None]:
    """Note each statement, and each BEGIN and COMMIT under these words."""

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    heard = {
        "before_cursor_execute": note,
        "begin": lambda _: statements.append("BEGIN"),
        "commit": lambda _: statements.append("COMMIT"),
    }
    for name, listener in heard.items():
        event.listen(nod.database.engine, name, listener)
    yield
    for name, listener in heard.items():
        event.remove(nod.database.engine, name, listener)


async def test_a_cycle_takes_no_more_statements_than_are_written_here(nod: Nod) -> None:
    [first] = await nod.asked(call("paint", lamp="desk", color="red"), at=HERE)
    await nod.approve(first)
    statements: list[str] = []
    nod.model.will(says("I will.", call("paint", lamp="door", color="blue")), says("Done."))
    with counting(nod, statements):
        await nod.say("the door, too", at=HERE)
        await nod.idle()
    [p] = [each for each in await nod.proposals() if each.state is State.PROPOSED]
    with counting(nod, statements):
        await nod.press(Verb.APPROVE, p)
        await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    begun, committed = statements.count("BEGIN"), statements.count("COMMIT")
    told = {
        "statements": len(statements) - begun - committed,
        "transactions": begun,
        "commits": committed,
    }
    most = MOST[nod.database.dialect]
    assert all(told[name] <= most[name] for name in most), "\n".join([str(told), *statements])


class Trace:
    """What PostgreSQL and a core say to each other, as libpq itself writes it down."""

    def __init__(self, nod: Nod, folder: Path) -> None:
        self._folder = folder
        self._commits = 0
        nod.database.engine.dispose()  # what is connected now is not written down
        event.listen(nod.database.engine, "connect", self._begin)
        event.listen(nod.database.engine, "commit", self._committed)

    def _begin(self, connection: Any, _: Any) -> None:
        file = os.open(self._folder / str(len(list(self._folder.iterdir()))), os.O_WRONLY | os.O_CREAT)
        connection.pgconn.trace(file)

    def _committed(self, _: Any) -> None:
        self._commits += 1

    def so_far(self) -> Counter[str]:
        """Trips there and back, changes, and those of them that wait for no disk."""
        words = "".join(file.read_text() for file in self._folder.iterdir())
        trips, hasty = words.count("\tSync"), words.count('CommandComplete\t "SET"')
        return Counter(trips=trips, changes=self._commits, hasty=hasty)


async def test_a_cycle_takes_no_more_trips_and_commits_than_are_written_here(
    nod: Nod, tmp_path: Path
) -> None:
    if nod.database.dialect != "postgresql":
        pytest.skip("SQLite is a file")
    trace, found = Trace(nod, tmp_path), []
    for number in range(_CYCLES):
        nod.model.will(says("I will.", call("paint", lamp="desk", color=f"c{number}")), says("Done."))
        before = trace.so_far()
        await nod.say("paint it", at=HERE)
        await nod.idle()
        after_asking = trace.so_far()
        p = (await nod.proposals())[-1]
        before += trace.so_far() - after_asking  # to look is no part of it
        await nod.press(Verb.APPROVE, p)
        await nod.idle()
        found.append(trace.so_far() - before)
        assert (await nod.now(p)).state is State.SUCCEEDED
    least = min(found, key=lambda each: each["trips"])  # the others made a statement known first
    assert least == Counter(trips=TRIPS, changes=DURABLE + HASTY, hasty=HASTY)

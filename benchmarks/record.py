"""The line of the record on cards: its time in the write that makes a card, at size, with ten writers.

``python -m benchmarks.record URL COUNT`` fills an empty database; with COUNT 0 it only measures one.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from sqlmodel import Session, select

from benchmarks import grown
from benchmarks.past import PEOPLE, TOOLS
from benchmarks.rules import proposal as make_proposal
from benchmarks.table import Row, show
from bot.domain.annotations import Annotation
from bot.domain.audit import Act
from bot.domain.digests import make_digest
from bot.domain.hooks import Hooks
from bot.domain.proposals import Proposal
from bot.domain.times import now
from bot.features.insights.unusual import annotate_unusual
from bot.store import migrations, transitions
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.hooks import give_hooks
from bot.store.tables.conversations import ConversationRow
from tests.kit.urls import schema

WRITERS = 10
_MAX_P99_MS = 1.0
_WARM = 20  # writes of each writer before its time counts
_NOTHING = select(1)
_PLACES = 100  # conversations in which cards are made


async def rows(where: Path, database: str, *, count: int, writes: int) -> list[Row]:
    """``database``: the URL of a PostgreSQL, to be measured as well; empty for SQLite alone."""
    found = await _fill_and_measure(f"sqlite:///{where / 'record.db'}", count, writes)
    if database:
        found += await on_postgres(database, count=count, writes=writes)
    return found


async def on_postgres(database: str, *, count: int, writes: int) -> list[Row]:
    with schema(database) as url:
        return await _fill_and_measure(url, count, writes)


async def _fill_and_measure(url: str, count: int, writes: int) -> list[Row]:
    await asyncio.to_thread(grown.fill, url, count)
    return await measure(url, writes)


async def measure(url: str, writes: int) -> list[Row]:
    """Have ten writers make so many cards in all, and time the line in each of these transactions."""
    database, timed = Database(url), _Timed()
    migrations.upgrade(database.engine)
    give_hooks(database, Hooks(annotate_card=(timed,)))
    try:
        places = database.read_now(_list_places)
        await _write_all(database, places, _WARM * WRITERS, 0)
        timed.clear()
        began = perf_counter()
        await _write_all(database, places, writes, _WARM * WRITERS)
        lasted = perf_counter() - began
    finally:
        database.close()
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database.dialect]
    most = _find_share(timed.looks, 0.99)
    met = most < _MAX_P99_MS
    return [
        Row(f"{name}: the line of the record, p99, ms", f"{most:.2f}", f"< {_MAX_P99_MS:.0f}", met),
        Row("  median, ms", f"{_find_share(timed.looks, 0.5):.2f}"),
        Row("  the longest, ms", f"{max(timed.looks) * 1000:.2f}"),
        Row("  SELECT 1 in the same writes, p99, ms", f"{_find_share(timed.floors, 0.99):.2f}"),
        Row("  median, ms", f"{_find_share(timed.floors, 0.5):.2f}"),
        Row(f"  cards a second, {WRITERS} writers", f"{writes / lasted:,.0f}"),
    ]


class _Timed:
    """`annotate_unusual`, which notes how long it took, and how long a statement took that reads nothing.

    The second is the floor: the way to the server and back, and the wait for the interpreter, which the
    threads of all writers share.
    """

    def __init__(self) -> None:
        self.looks: list[float] = []
        self.floors: list[float] = []

    def __call__(self, session: Session, proposal: Proposal) -> Sequence[Annotation]:
        began = perf_counter()
        session.connection().execute(_NOTHING).one()
        asked = perf_counter()
        lines = annotate_unusual(session, proposal)
        self.looks.append(perf_counter() - asked)
        self.floors.append(asked - began)
        return lines

    def clear(self) -> None:
        self.looks.clear()
        self.floors.clear()


def _list_places(session: Session) -> Sequence[str]:
    """Return conversations of every chat."""
    return session.exec(select(ConversationRow.id).order_by(ConversationRow.id).limit(_PLACES)).all()


async def _write_all(database: Database, places: Sequence[str], writes: int, first: int) -> None:
    async def write(writer: int) -> None:
        for number in range(first + writer, first + writes, WRITERS):
            await database.write(_make_card, places[number % len(places)], number)

    await asyncio.gather(*(write(writer) for writer in range(WRITERS)))


def _make_card(session: Session, place: str, number: int) -> None:
    at = now()
    card = make_proposal(
        number,
        at,
        tool_name=TOOLS[number % len(TOOLS)],
        requester=PEOPLE[number % len(PEOPLE)],
        conversation_id=place,
        message_id=10**8 + number,
    )
    card = replace(
        card, id=f"new{number}", digest=make_digest(card.tool_name, card.tool_version, card.arguments)
    )
    transitions.insert_proposals(session, [card], Author.of_nod(Act.PROPOSE))


def _find_share(took: Sequence[float], share: float) -> float:
    """Return the time that a share of them did not exceed, in milliseconds."""
    return sorted(took)[int(share * (len(took) - 1))] * 1000


def main() -> None:
    url, count = sys.argv[1], int(sys.argv[2])
    if count:
        grown.fill(url, count)
    show("The record's line", "", asyncio.run(measure(url, 5000)))


if __name__ == "__main__":
    main()

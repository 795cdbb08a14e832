"""A connection that is ended twice in one moment: one of the two counts, the other is told it is gone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from sqlalchemy import text
from sqlmodel import Session, col, func, select

from bot.domain.audit import Act
from bot.features.connections.tables import CONNECTION, RevocationRow
from bot.store.database import Database
from bot.store.tables.audit import LedgerRow
from tests.features.connections.conftest import KEY, Connectable
from tests.features.connections.tracker import Tracker
from tests.tools.mcp.conftest import until
from tests.web.conftest import TOKENS, Serve

_BLOCKED = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@contextlib.asynccontextmanager
async def held(database: Database, tasks: int, table: str = "connection") -> AsyncIterator[None]:
    """Hold its rows on PostgreSQL until as many transactions wait for them; SQLite has one writer anyway."""
    if database.engine.dialect.name == "sqlite":
        yield
        return
    with database.engine.connect() as holding, database.engine.connect() as looking:
        looking.execution_options(isolation_level="AUTOCOMMIT")  # else it sees one moment
        holding.execute(text(f"SELECT id FROM {table} FOR UPDATE"))
        yield
        await until(lambda: looking.execute(_BLOCKED).scalar_one() >= tasks)
        holding.rollback()


def count_ends(session: Session) -> tuple[int, int]:
    """The records of an end, and the tokens to be revoked."""
    ended = (col(LedgerRow.thing) == CONNECTION) & (col(LedgerRow.verb) == Act.DISCONNECT)
    records = session.exec(select(func.count()).select_from(LedgerRow).where(ended)).one()
    return records, session.exec(select(func.count()).select_from(RevocationRow)).one()


async def test_of_two_ends_in_one_moment_one_counts(serve: Serve, tracker: Tracker, database_url: str):
    given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_HTTP_TOKENS": TOKENS}
    async with serve(**given, NOD_DATABASE_URL=database_url) as nod:
        there = Connectable(nod, tracker)
        await there.connect()
        async with held(nod.app.database, 2):
            ends = [asyncio.create_task(there.say(words)) for words in ("end tracker", "end everywhere")]
            await asyncio.sleep(0)
        said = [(await each).text for each in ends]
        assert sorted(said) in (
            ["Disconnected: tracker (octocat).", "You have no connection tracker."],
            ["Disconnected: tracker (octocat).", "Nothing was connected."],
        )
        assert there.rows() == []
        assert nod.app.database.read_now(count_ends) == (1, 1)
        await there.close()

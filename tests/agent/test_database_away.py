"""The database is away for a moment within a turn: that is no fault of a tool's, and the turn continues."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from tests.kit import Hold, Nod, call, says, sql

RED = {"lamp": "desk", "color": "red"}
_AWAY = """
CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'terminating connection' USING ERRCODE = '57P01'; END $$;
CREATE TRIGGER away BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION away()
"""


@contextmanager
def away(nod: Nod, table: str) -> Iterator[None]:
    """Nothing can be written into a table, as while its server goes down; into no table of a moved file."""
    if nod.database.dialect == "postgresql":
        sql(nod.url, _AWAY.format(table))
        yield
        sql(nod.url, "DROP FUNCTION away CASCADE")
    else:
        file = Path(make_url(nod.url).database or "")
        moved = file.rename(file.with_suffix(".away"))
        yield
        moved.rename(file)


@pytest.mark.parametrize("table", ["message", "tool_version"])
async def test_a_turn_waits_for_the_database_and_continues(nod: Nod, table: str) -> None:
    hold = Hold()
    nod.model.will(says("I will.", call("paint", RED), hold=hold))
    nod.model.rule = lambda _: says("Done.") if nod.model.results else says("I will.", call("paint", RED))
    await nod.say("red, please")
    await hold.reached.wait()
    with away(nod, table):
        hold.go.set()
        await nod.idle()
        for _ in range(3):
            with suppress(DBAPIError):
                await nod.tick(timedelta(seconds=5))
    await nod.tick(timedelta(seconds=5))
    [proposal] = await nod.proposals()
    await nod.approve(proposal)
    assert await nod.said() == ["red, please", "I will.", "Done."]
    assert nod.chat.card_of(proposal).verbs == ()
    assert len(nod.world.runs_of(proposal)) == 1

"""What a cycle asks of the database is counted, so that it does not grow unnoticed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from bot.domain.chat import Address
from bot.domain.proposals import State
from bot.domain.verbs import Verb
from tests.kit import Nod, call, says

MOST = {"sqlite": 62, "postgresql": 66}
"""From a message to the closing words, in a place where people read rows, so that nothing is delivered."""
HERE = Address("console", "c1")


@contextmanager
def counting(nod: Nod, statements: list[str]) -> Iterator[None]:
    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(nod.database.engine, "before_cursor_execute", note)
    yield
    event.remove(nod.database.engine, "before_cursor_execute", note)


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
    assert len(statements) <= MOST[nod.database.dialect], "\n".join(statements)

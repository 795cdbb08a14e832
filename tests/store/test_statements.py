"""What a cycle asks of the database is counted, so that it does not grow unnoticed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from bot.domain.chat import Address
from bot.domain.proposals import State
from bot.domain.verbs import Verb
from tests.kit import Nod, call, says

MOST = {
    "sqlite": {"statements": 42, "transactions": 9, "commits": 6},
    "postgresql": {"statements": 46, "transactions": 9, "commits": 6},
}
"""From a message to the closing words, in a place where people read rows, so that nothing is delivered.
A commit is one that writes."""
HERE = Address("console", "c1")


@contextmanager
def counting(nod: Nod, statements: list[str]) -> Iterator[None]:
    """Note each statement, and each BEGIN and COMMIT under these words."""

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):  # which is a statement on SQLite, and told by its event
            statements.append(statement)

    def committed(connection: Connection) -> None:
        if not connection.get_execution_options().get("postgresql_readonly"):  # reads end with one there
            statements.append("COMMIT")

    heard = {
        "before_cursor_execute": note,
        "begin": lambda _: statements.append("BEGIN"),
        "commit": committed,
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

"""What a cycle asks of the database is counted, so that it does not grow unnoticed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event

from bot.channels.slack.channel import SlackChannel
from bot.domain.chat import Address
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.store.database import Database
from bot.testing.world import Says, World
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.kit import Nod, call, says
from tests.web.conftest import Serve
from tests.web.scripted import ScriptedModel, ask, say

MOST = {
    "sqlite": {"statements": 38, "transactions": 9, "commits": 6},
    "postgresql": {"statements": 42, "transactions": 9, "commits": 6},
}
"""From a message to the closing words, in a place where people read rows, so that nothing is delivered.
A commit is one that writes. Each transaction is one hop to a thread."""
MOST_OVER_HTTP = {
    "sqlite": {"statements": 58, "transactions": 15, "commits": 5},
    "postgresql": {"statements": 78, "transactions": 25, "commits": 8},
}
"""From a new conversation, with the stream of the answer, and a press that waits for the end: 47 statements
in 11 transactions on SQLite. A slow machine adds up to two looks at what changed and two views of the
proposal, as the press waits through the states in between. On PostgreSQL a wake-up is a row."""
MOST_IN_SLACK = {"statements": 66, "transactions": 17, "commits": 9}
"""From a new direct message, with the stream, the card and its redraws: 65 statements in 16 transactions, and
at times a look at who has Nod's page open."""
HERE = Address("console", "c1")


@contextmanager
def counting(database: Database, statements: list[str]) -> Iterator[None]:
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
        event.listen(database.engine, name, listener)
    yield
    for name, listener in heard.items():
        event.remove(database.engine, name, listener)


async def test_a_cycle_takes_no_more_statements_than_are_written_here(nod: Nod) -> None:
    [first] = await nod.asked(call("paint", lamp="desk", color="red"), at=HERE)
    await nod.approve(first)
    statements: list[str] = []
    nod.model.will(says("I will.", call("paint", lamp="door", color="blue")), says("Done."))
    with counting(nod.database, statements):
        await nod.say("the door, too", at=HERE)
        await nod.idle()
    [p] = [each for each in await nod.proposals() if each.state is State.PROPOSED]
    with counting(nod.database, statements):
        await nod.press(Verb.APPROVE, p)
        await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    check_most(statements, MOST[nod.database.dialect])


def check_most(statements: Sequence[str], most: Mapping[str, int]) -> None:
    begun, committed = statements.count("BEGIN"), statements.count("COMMIT")
    told = {
        "statements": len(statements) - begun - committed,
        "transactions": begun,
        "commits": committed,
    }
    assert all(told[name] <= most[name] for name in most), "\n".join([str(told), *statements])


async def test_a_cycle_over_http_takes_no_more_than_is_written_here(serve: Serve) -> None:
    asks, done = ask(("keep", {"text": "milk"})), say("Done.")
    async with serve(model=ScriptedModel(asks, done, asks, done)) as nod:
        statements: list[str] = []
        for heard in ([], statements):  # what is read once for all is read the first time
            with counting(nod.app.database, heard):
                [p] = await nod.proposed()
                pressed = await nod.press(p, "approve?wait=20")
                await nod.idle()
            assert pressed.json()["proposal"]["state"] == "succeeded"
        check_most(statements, MOST_OVER_HTTP[nod.app.database.dialect])


async def test_a_cycle_in_slack_takes_no_more_than_is_written_here(tmp_path: Path) -> None:
    slack = FakeSlack()
    await slack.start()
    settings = partial(
        Settings.load,
        _env_file=None,
        NOD_DATABASE_URL=f"sqlite:///{tmp_path / 'slack.db'}",
        NOD_PORT=0,
        NOD_LOG_LEVEL="error",
        SLACK_BOT_TOKEN=BOT_TOKEN,
        SLACK_APP_TOKEN=APP_TOKEN,
        SLACK_API_URL=slack.url,
    )
    world = World(settings, lambda app: SlackChannel(app.settings, app.database, app.clock))
    await world.start()
    await slack.until(lambda: slack._socket)
    statements: list[str] = []
    await note_in_slack(slack, world, [])  # what is read once for all is read the first time
    await note_in_slack(slack, world, statements)
    await world.stop()
    await slack.stop()
    check_most(statements, MOST_IN_SLACK)


async def note_in_slack(slack: FakeSlack, world: World, statements: list[str]) -> None:
    slack.posted.clear()
    world.script(Says("I will note it.", (("note", {"text": "milk"}),)), Says("It is noted."))
    with counting(world.app.database, statements):
        await slack.say("U7", "note milk")
        [card, *_] = await slack.until(lambda: slack.cards("D7"))
        await world.app.dispatcher.wait_until_idle()
        await slack.click(card, "Approve")
        closing = "It is noted."
        await slack.until(lambda: any(closing in m.markdown for m in slack.posted if m.stream == "closed"))
        await slack.until(lambda: "Approve" not in card.buttons)
        await world.app.dispatcher.wait_until_idle()

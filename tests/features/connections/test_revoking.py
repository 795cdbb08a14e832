"""Tokens are revoked at a server that ends every token of an account with one: what is in use stays alive."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.features.connections.conftest import ANA, BEN, KEY, Connectable, entry, write_config
from tests.features.connections.test_resting import SharedSlack, connect
from tests.features.connections.tracker import Tracker
from tests.web.conftest import TOKENS, Serve


@pytest.fixture
async def there(serve: Serve, tracker: Tracker, database_url: str) -> AsyncIterator[Connectable]:
    tracker.people.revokes_by_person = True
    given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_HTTP_TOKENS": TOKENS}
    async with serve(**given, NOD_DATABASE_URL=database_url, NOD_ADMINS=(str(BEN),)) as nod:
        made = Connectable(nod, tracker)
        yield made
        await made.close()


def list_alive(there: Connectable) -> list[str]:
    """The users who have a token at the server that still works."""
    people = there.tracker.people
    return sorted(people.whose[token] for token in people.tokens)


async def test_an_account_that_is_connected_again_keeps_its_new_tokens(there: Connectable):
    await there.connect()
    await there.connect()
    await there.sweep()
    assert there.tracker.people.revoked == []
    assert "octocat" in list_alive(there)


async def test_another_account_in_its_place_has_the_tokens_of_the_first_revoked(there: Connectable):
    await there.connect(user="octocat")
    await there.connect(user="hubot")
    await there.sweep()
    assert len(there.tracker.people.revoked) == 1
    assert list_alive(there) == ["hubot"]


async def test_a_sign_in_that_ends_without_a_connection_leaves_the_connection_of_its_account(
    there: Connectable,
):
    await there.connect()
    digits = await there.digits()
    await there.say(f"confirm {(int(digits) + 1) % 1_000_000:06}")
    await there.sweep()
    assert "octocat" in list_alive(there)


async def test_another_person_who_tries_to_connect_an_account_does_not_end_it(there: Connectable):
    his = await there.digits(BEN)
    await there.connect(ANA)
    await there.say(f"confirm {his}", BEN)
    await there.browser().sign_in(await there.link(BEN))
    await there.sweep()
    assert [row.owner for row in there.rows()] == [str(ANA)]
    assert "octocat" in list_alive(there)


async def test_an_account_that_its_person_ends_is_revoked(there: Connectable):
    await there.connect()
    await there.connect()
    await there.say("end tracker")
    await there.sweep()
    assert list_alive(there) == []


async def test_an_account_whose_name_the_server_does_not_tell_keeps_its_new_tokens(
    serve: Serve, tracker: Tracker, tmp_path: Path, database_url: str
):
    tracker.people.revokes_by_person = True
    nameless = entry(tracker)
    del nameless["whoami"]
    write_config(tmp_path, tracker=nameless)
    given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_HTTP_TOKENS": TOKENS}
    async with serve(**given, NOD_DATABASE_URL=database_url) as nod:
        there = Connectable(nod, tracker)
        await there.connect()
        await there.connect()
        await there.sweep()
        assert len(there.rows()) == 1
        assert there.tracker.people.revoked == []
        await there.close()


async def test_an_account_of_two_chats_is_revoked_with_the_last_one(
    serve: Serve, tracker: Tracker, tmp_path: Path, database_url: str
):
    tracker.people.revokes_by_person = True
    write_config(tmp_path, tracker=entry(tracker, identity="place"))
    given = {"NOD_MCP_CONFIG": "mcp.json", "NOD_SECRET_KEY": (KEY,), "NOD_HTTP_TOKENS": TOKENS}
    async with serve(**given, NOD_DATABASE_URL=database_url, NOD_ADMINS=(str(BEN),)) as nod:
        nod.app.channels["slack"] = SharedSlack()
        there = Connectable(nod, tracker)
        for chat in ("T1/C1", "T1/C2"):
            await connect(there, chat=chat)
        await there.say("end tracker", BEN, at="T1/C1/17.1")
        await there.sweep()
        assert [row.owner for row in there.rows()] == ["slack:T1/C2"]
        assert "team-bot" in list_alive(there)
        await there.say("end tracker", BEN, at="T1/C2/17.1")
        await there.sweep()
        assert list_alive(there) == []
        await there.close()

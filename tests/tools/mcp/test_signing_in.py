"""Signing in at servers behind OAuth 2.1, as it goes well and as the world lets it fail."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlmodel import select

from bot.errors import SignInError, ToolError, ToolTimedOut
from bot.store import mcp as store
from bot.store.database import Database
from bot.tools.mcp.config import Http, OAuthClient, ServerConfig, Trust
from bot.tools.mcp.login import SharedSignIns
from tests.kit import FakeClock
from tests.tools.mcp.conftest import Connect, Connected, HttpLamps, until
from tests.tools.mcp.servers.gatekeeper import Gatekeeper

pytestmark = pytest.mark.slow

BACK = "http://127.0.0.1:9/oauth/callback"  # Nod's own; a test plays the browser that goes there


@dataclass
class Guarded:
    """The lamps behind a gatekeeper, and Nod in front of them."""

    gatekeeper: Gatekeeper
    served: HttpLamps
    lamps: Connected
    logins: SharedSignIns
    database: Database

    @property
    def trouble(self) -> str:
        return self.lamps.toolset.servers[0].trouble or ""

    async def sign_in(self) -> str:
        _, page = await self.logins.begin("lamps", "http:ana")
        return await self.logins.take_return(await sent_back(page))

    async def up(self) -> None:
        await self.lamps.names()
        await until(lambda: not self.trouble)

    def kept(self) -> store.SignIn | None:
        return self.database.read_now(store.find, "lamps", self.served.url)


async def sent_back(page: str) -> dict[str, str]:
    """Open the page as a browser does; what it sends the person back to Nod with."""
    where = urlsplit(page)

    def opened() -> str:
        browser = HTTPConnection(where.netloc)
        browser.request("GET", f"{where.path}?{where.query}")
        location = browser.getresponse().headers["location"]
        browser.close()
        return location

    location = await asyncio.to_thread(opened)
    assert location.startswith(BACK)
    return dict(parse_qsl(urlsplit(location).query))


@pytest.fixture
async def served(folder: Path) -> AsyncIterator[HttpLamps]:
    served = HttpLamps(folder, Gatekeeper())
    await served.up()
    yield served
    await served.down()


@pytest.fixture
async def guarded(
    served: HttpLamps, connect: Connect, database: Database, clock: FakeClock
) -> AsyncIterator[Guarded]:
    config = ServerConfig("lamps", Http(served.url), Trust.TRUSTED, prefix="lamps_")
    lamps = connect(config, database=database)
    logins = SharedSignIns(lamps.toolset.servers, database, clock, lambda: BACK)
    assert served.gatekeeper is not None
    yield Guarded(served.gatekeeper, served, lamps, logins, database)
    await logins.stop()


async def test_a_server_behind_a_sign_in_says_so_and_comes_up_right_after_it(guarded: Guarded) -> None:
    assert await guarded.lamps.names() == set()
    assert guarded.trouble == "no one is signed in there. Run: nod mcp login lamps"
    assert await guarded.sign_in() == "You are signed in at lamps."
    await guarded.up()
    assert await guarded.lamps.run("lamps_look", lamp="desk") == "desk is white"
    kept = guarded.kept()
    assert kept is not None
    assert kept.signed_in_by == "http:ana"


async def test_a_token_that_lasts_for_ages_is_one_for_a_year(guarded: Guarded, clock: FakeClock) -> None:
    guarded.gatekeeper.lives = 10**30
    assert await guarded.sign_in() == "You are signed in at lamps."
    await guarded.up()
    kept = guarded.kept()
    assert kept is not None
    assert kept.expires_at is not None
    assert kept.expires_at - clock() <= timedelta(days=366)


async def test_a_token_that_ends_is_renewed_before_it_is_sent(guarded: Guarded, clock: FakeClock) -> None:
    await guarded.sign_in()
    await guarded.up()
    clock.forward(timedelta(hours=2))
    answers = await asyncio.gather(*(guarded.lamps.run("lamps_meet", number=n) for n in range(3)))
    assert answers == ["met 0", "met 1", "met 2"]
    assert guarded.gatekeeper.refreshed == 1


async def test_a_token_that_the_server_ends_early_is_renewed_and_the_call_runs_once(
    guarded: Guarded, done
) -> None:
    await guarded.sign_in()
    await guarded.up()
    guarded.gatekeeper.end_tokens()
    assert await guarded.lamps.run("lamps_paint", lamp="desk", color="red") == "paint desk red 1"
    assert done() == ["paint desk red 1"]
    assert guarded.gatekeeper.refreshed == 1


async def test_a_token_that_ends_while_a_call_runs_does_not_end_the_call(guarded: Guarded, folder) -> None:
    await guarded.sign_in()
    await guarded.up()
    first = asyncio.create_task(guarded.lamps.run("lamps_meet", number=0))
    await until((folder / "met-0").exists)
    guarded.gatekeeper.end_tokens()
    rest = [guarded.lamps.run("lamps_meet", number=n) for n in (1, 2)]
    assert await asyncio.gather(first, *rest) == ["met 0", "met 1", "met 2"]


async def test_a_refused_renewal_does_nothing_and_asks_to_sign_in_again(guarded: Guarded, done) -> None:
    await guarded.sign_in()
    await guarded.up()
    guarded.gatekeeper.end_tokens()
    guarded.gatekeeper.refuses = "invalid_grant"
    for _ in range(2):
        with pytest.raises(ToolError, match="its sign-in has ended") as caught:
            await guarded.lamps.run("lamps_paint", lamp="desk", color="red")
        assert not isinstance(caught.value, ToolTimedOut)
    assert done() == []
    assert guarded.gatekeeper.refreshed == 1  # what was refused for good is not asked for again
    guarded.gatekeeper.refuses = None
    await guarded.sign_in()
    assert await guarded.lamps.run("lamps_paint", lamp="desk", color="red") == "paint desk red 1"


async def test_a_client_that_was_revoked_registers_again_with_the_next_sign_in(guarded: Guarded) -> None:
    await guarded.sign_in()
    await guarded.up()
    guarded.gatekeeper.end_everything()
    with pytest.raises(ToolError, match="its sign-in has ended"):
        await guarded.lamps.run("lamps_look", lamp="desk")
    await guarded.sign_in()
    assert await guarded.lamps.run("lamps_look", lamp="desk") == "desk is white"


async def test_tokens_for_another_server_are_refused_and_not_kept(guarded: Guarded) -> None:
    guarded.gatekeeper.audience = "https://elsewhere.example/mcp"
    with pytest.raises(SignInError, match="does not accept the token of its own sign-in server"):
        await guarded.sign_in()
    assert guarded.kept() is None


async def test_a_page_that_no_one_comes_back_from_ends_by_itself(guarded: Guarded) -> None:
    guarded.logins.sign_in_seconds = 2.0  # longer than it takes to get the page
    ident, page = await guarded.logins.begin("lamps", "http:ana")
    said = await sent_back(page)
    with pytest.raises(SignInError, match="No one signed in at lamps in time"):
        await guarded.logins.wait_for_end(ident)
    with pytest.raises(SignInError, match="is over or was never started"):
        await guarded.logins.take_return(said)
    assert guarded.kept() is None


async def test_of_too_many_sign_ins_under_way_the_oldest_makes_room(guarded: Guarded) -> None:
    first, _ = await guarded.logins.begin("lamps", "http:ana")
    for _ in range(20):
        await guarded.logins.begin("lamps", "http:ana")
    with pytest.raises(SignInError, match="This sign-in was ended"):
        await guarded.logins.wait_for_end(first)
    assert await guarded.sign_in() == "You are signed in at lamps."


async def test_of_two_sign_ins_at_the_same_time_both_end_well_and_one_is_kept(guarded: Guarded) -> None:
    pages = [(await guarded.logins.begin("lamps", by))[1] for by in ("http:ana", "http:ben")]
    said = [await sent_back(page) for page in pages]
    words = await asyncio.gather(*(guarded.logins.take_return(each) for each in reversed(said)))
    assert words == ["You are signed in at lamps."] * 2
    await guarded.up()
    guarded.gatekeeper.end_tokens()  # so the kept client and the kept tokens must belong together
    assert await guarded.lamps.run("lamps_look", lamp="desk") == "desk is white"


async def test_someone_who_says_no_there_is_told_and_can_start_again(guarded: Guarded) -> None:
    guarded.gatekeeper.says_no = True
    with pytest.raises(SignInError, match="You were not let in at lamps"):
        await guarded.sign_in()
    guarded.gatekeeper.says_no = False
    assert await guarded.sign_in()


async def test_a_way_back_is_good_once_and_only_for_a_sign_in_that_was_started(guarded: Guarded) -> None:
    _, page = await guarded.logins.begin("lamps", "http:ana")
    said = await sent_back(page)
    for wrong in ({}, {"code": "x"}, {**said, "state": "guessed"}, {**said, "state": ""}):
        with pytest.raises(SignInError, match="is over or was never started"):
            await guarded.logins.take_return(wrong)
    await guarded.logins.take_return(said)
    with pytest.raises(SignInError, match="is over or was never started"):
        await guarded.logins.take_return(said)


async def test_a_scope_that_a_call_lacks_is_asked_for_with_the_next_sign_in(guarded: Guarded) -> None:
    await guarded.sign_in()
    await guarded.up()
    await guarded.served.down()
    guarded.served.scopes = ["paint"]
    await guarded.served.up()
    with pytest.raises(ToolError, match="sign-in does not allow this"):
        await guarded.lamps.run("lamps_look", lamp="desk")
    await guarded.sign_in()
    assert guarded.gatekeeper.granted[-1] == ["paint"]
    guarded.lamps.pauses.end_all()
    await guarded.up()
    assert await guarded.lamps.run("lamps_look", lamp="desk") == "desk is white"


async def test_tokens_never_go_to_another_address_of_the_same_name(
    guarded: Guarded, connect: Connect, database: Database
) -> None:
    await guarded.sign_in()
    moved = ServerConfig("lamps", Http(f"{guarded.served.url}?moved"), prefix="lamps_")
    other = connect(moved, database=database)
    assert await other.names() == set()
    assert "no one is signed in" in str(other.toolset.servers[0].trouble)


async def test_a_sign_in_outlives_a_restart_and_the_end_of_its_token(
    guarded: Guarded, connect: Connect, database: Database, clock: FakeClock
) -> None:
    await guarded.sign_in()
    await guarded.lamps.toolset.stop()
    guarded.gatekeeper.end_tokens()
    clock.forward(timedelta(days=2))
    again = connect(guarded.lamps.toolset.servers[0].config, database=database)
    assert "lamps_look" in await again.names()
    assert guarded.gatekeeper.refreshed == 1


async def test_two_processes_never_use_one_refresh_token_twice(
    guarded: Guarded, connect: Connect, database: Database
) -> None:
    await guarded.sign_in()
    await guarded.up()
    other = connect(guarded.lamps.toolset.servers[0].config, database=database)
    await other.names()
    other.pauses.end_all()
    guarded.lamps.pauses.end_all()
    guarded.gatekeeper.end_tokens()
    both = (each.run("lamps_look", lamp="desk") for each in (guarded.lamps, other))
    assert await asyncio.gather(*both) == ["desk is white"] * 2
    assert guarded.gatekeeper.refreshed == 1


async def test_a_client_that_was_registered_beforehand_is_used_as_it_is(
    guarded: Guarded, connect: Connect, database: Database, clock: FakeClock
) -> None:
    await guarded.sign_in()
    [known] = guarded.gatekeeper.clients.values()
    known.client_secret, known.token_endpoint_auth_method = "s3cret-of-the-client", "client_secret_basic"
    client = OAuthClient(known.client_id, "s3cret-of-the-client", ("look",))
    known.scope = "look"
    lamps = connect(ServerConfig("lamps", Http(guarded.served.url, client=client)), database=database)
    logins = SharedSignIns(lamps.toolset.servers, database, clock, lambda: BACK)
    _, page = await logins.begin("lamps", "http:ana")
    assert await logins.take_return(await sent_back(page))
    assert list(guarded.gatekeeper.clients) == [known.client_id]
    assert guarded.gatekeeper.granted[-1] == ["look"]


async def test_the_page_asks_for_the_configured_scopes_and_for_consent_to_act_offline(
    guarded: Guarded, connect: Connect, database: Database, clock: FakeClock
) -> None:
    await guarded.sign_in()
    [known] = guarded.gatekeeper.clients.values()
    asked = {}
    for scopes in (("look",), ("look", "offline_access")):
        client = OAuthClient(known.client_id, "", scopes)
        lamps = connect(ServerConfig("lamps", Http(guarded.served.url, client=client)), database=database)
        logins = SharedSignIns(lamps.toolset.servers, database, clock, lambda: BACK)
        _, page = await logins.begin("lamps", "http:ana")
        query = dict(parse_qsl(urlsplit(page).query))
        asked[query["scope"]] = query.get("prompt")
        await logins.stop()
    assert asked == {"look": None, "look offline_access": "consent"}


async def test_a_server_without_a_sign_in_says_that_it_has_none(
    http_lamps: HttpLamps, connect: Connect, database: Database, clock: FakeClock
) -> None:
    lamps = connect(ServerConfig("lamps", Http(http_lamps.url)), database=database)
    logins = SharedSignIns(lamps.toolset.servers, database, clock, lambda: BACK)
    with pytest.raises(SignInError, match="takes no clients that it does not know"):
        await logins.begin("lamps", "http:ana")
    with pytest.raises(SignInError, match="There is no MCP server nowhere"):
        await logins.begin("nowhere", "http:ana")


async def test_signing_out_forgets_the_tokens(guarded: Guarded) -> None:
    await guarded.sign_in()
    await guarded.up()
    assert await guarded.logins.sign_out("lamps")
    assert not await guarded.logins.sign_out("lamps")
    with pytest.raises(ToolError, match="no one is signed in"):
        await guarded.lamps.run("lamps_look", lamp="desk")


async def test_who_signs_out_or_in_at_one_process_does_so_at_all(
    guarded: Guarded, connect: Connect, database: Database, clock: FakeClock
) -> None:
    await guarded.sign_in()
    await guarded.up()
    other = connect(guarded.lamps.toolset.servers[0].config, database=database)
    elsewhere = SharedSignIns(other.toolset.servers, database, clock, lambda: BACK)
    assert await elsewhere.sign_out("lamps")
    with pytest.raises(ToolError, match="no one is signed in"):
        await guarded.lamps.run("lamps_look", lamp="desk")

    await guarded.sign_in()
    guarded.lamps.pauses.end_all()
    await guarded.up()
    used = guarded.gatekeeper.used
    await guarded.lamps.run("lamps_look", lamp="desk")
    before = used[-1]
    _, page = await elsewhere.begin("lamps", "http:ben")
    await elsewhere.take_return(await sent_back(page))
    await guarded.lamps.run("lamps_look", lamp="desk")
    kept = guarded.kept()
    assert kept is not None
    assert used[-1] != before
    assert used[-1] in kept.tokens
    await elsewhere.stop()


async def test_no_token_reaches_a_log_or_a_fault_whatever_happens(
    guarded: Guarded, caplog, capfd, clock: FakeClock
) -> None:
    caplog.set_level(logging.DEBUG)
    told = [await guarded.sign_in()]
    await guarded.up()
    guarded.gatekeeper.end_tokens()
    await guarded.lamps.run("lamps_look", lamp="desk")
    guarded.gatekeeper.refuses = "invalid_grant"
    clock.forward(timedelta(hours=2))
    for attempt in (guarded.sign_in, lambda: guarded.lamps.run("lamps_look", lamp="desk")):
        with pytest.raises((SignInError, ToolError)) as caught:
            await attempt()
        told.append(str(caught.value))
    out, err = capfd.readouterr()
    said = caplog.text + out + err + "".join(told) + repr(guarded.kept())
    assert len(guarded.gatekeeper.seen) >= 5
    assert [secret for secret in guarded.gatekeeper.seen if secret in said] == []


async def test_a_person_may_come_back_to_another_process_than_the_one_they_left_from(
    guarded: Guarded, connect: Connect, database: Database, clock: FakeClock
) -> None:
    async def soon(_: float) -> None:
        await asyncio.sleep(0.001)

    guarded.logins.sleep = soon
    config = guarded.lamps.toolset.servers[0].config
    other = connect(config, database=database)
    elsewhere = SharedSignIns(other.toolset.servers, database, clock, lambda: BACK, sleep=soon)
    ident, page = await guarded.logins.begin("lamps", "http:ana")
    back = await sent_back(page)
    assert await elsewhere.take_return(back) == "You are signed in at lamps."
    assert await elsewhere.wait_for_end(ident) == "You are signed in at lamps."
    await other.names()
    await until(lambda: not other.toolset.servers[0].trouble)
    for again in (elsewhere, guarded.logins):
        with pytest.raises(SignInError, match="is over or was never started"):
            await again.take_return(back)
    with pytest.raises(SignInError, match="There is no such sign-in"):
        await elsewhere.wait_for_end("nonsense")

    ident, page = await guarded.logins.begin("lamps", "http:ana")
    refused = {"state": (await sent_back(page))["state"], "error": "access_denied"}
    with pytest.raises(SignInError, match="You were not let in at lamps"):
        await elsewhere.take_return(refused)
    with pytest.raises(SignInError, match="You were not let in at lamps"):
        await elsewhere.wait_for_end(ident)


async def test_no_row_of_a_sign_in_under_way_has_what_signs_in(guarded: Guarded, database: Database) -> None:
    ident, page = await guarded.logins.begin("lamps", "http:ana")
    state = dict(parse_qsl(urlsplit(page).query))["state"]
    [row] = database.read_now(lambda s: s.exec(select(store.SignInAttemptRow)).all())
    assert not {ident, state} & set(map(str, row.model_dump().values()))
    assert await guarded.logins.take_return(await sent_back(page)) == "You are signed in at lamps."
    [row] = database.read_now(lambda s: s.exec(select(store.SignInAttemptRow)).all())
    assert (row.said, row.ended) == (None, "You are signed in at lamps.")

"""Signing in at servers as they are: what they say in another form counts, and what they refuse is told."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from bot.errors import SignInError
from bot.tools.mcp.config import Http, ServerConfig
from bot.tools.mcp.dialects import read_answer
from bot.tools.mcp.login import SharedSignIns
from tests.tools.mcp.servers.sign_in import TOKEN, SignInServer
from tests.tools.mcp.test_signing_in import BACK, sent_back

pytestmark = pytest.mark.slow


@pytest.fixture
def door() -> Iterator[SignInServer]:
    server = SignInServer()
    yield server
    server.close()


@pytest.fixture
def sign_in(connect, door, database, clock):
    """Go through a sign-in as a person does; what it ends with."""
    config = ServerConfig("wiki", Http(f"{door.base}/mcp"))
    logins = SharedSignIns(connect(config, database=database).toolset.servers, database, clock, lambda: BACK)

    async def go() -> str:
        _, page = await logins.begin("wiki", "http:ana")
        return await logins.take_return(await sent_back(page))

    return go


@pytest.mark.parametrize(("asked", "named"), [("/", ""), ("", "/"), ("/t", "/t/"), ("/t/", "/t")])
async def test_an_issuer_that_differs_by_its_last_slash_is_the_same(sign_in, door, asked, named):
    door.asked_for, door.issuer = door.base + asked, door.base + named
    door.back = {"code": "code-1", "iss": door.issuer}
    assert await sign_in() == "You are signed in at wiki."


@pytest.mark.parametrize("named", ["/other", "//", "/t?x"])
async def test_any_other_issuer_is_refused(sign_in, door, named):
    door.issuer = door.base + named
    with pytest.raises(SignInError, match="describes its sign-in wrongly"):
        await sign_in()


async def test_a_person_that_another_issuer_sends_back_is_refused(sign_in, door):
    door.back = {"code": "code-1", "iss": f"{door.base}/other"}
    with pytest.raises(SignInError, match="describes its sign-in wrongly"):
        await sign_in()


@pytest.mark.parametrize(
    ("more", "proof"),
    [
        ({"client_secret": "s3cret-s3cret", "token_endpoint_auth_method": None}, "header"),
        ({"client_secret": "s3cret-s3cret", "token_endpoint_auth_method": "client_secret_post"}, "body"),
        ({"token_endpoint_auth_method": None}, "none"),
    ],
)
async def test_a_secret_that_comes_without_a_word_how_to_use_it_is_used(sign_in, door, more, proof):
    door.registered = (201, {"client_id": "c1", **more})
    assert await sign_in() == "You are signed in at wiki."
    assert door.proofs == [proof]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain; form"])
async def test_a_token_that_comes_as_a_form_is_read(sign_in, door, kind):
    door.token = (200, kind, TOKEN)
    assert await sign_in() == "You are signed in at wiki."


@pytest.mark.parametrize("lifetime", ["²", "9" * 5000])
def test_a_lifetime_that_is_no_number_of_seconds_stays_as_it_came(lifetime):
    body = json.dumps({"access_token": "t", "expires_in": lifetime})
    assert read_answer(httpx2.Response(200, content=body.encode()))["expires_in"] == lifetime


@pytest.mark.parametrize(
    ("status", "kind"), [(200, "application/x-www-form-urlencoded"), (400, "application/json")]
)
async def test_why_no_token_came_is_told_in_the_servers_words(sign_in, door, status, kind):
    door.token = (status, kind, {"error": "bad_code", "error_description": "The code has expired."})
    with pytest.raises(SignInError, match=r"gave no token for this sign-in: The code has expired\. Start"):
        await sign_in()


async def test_a_refused_way_back_is_told_as_that(sign_in, door):
    words = "Redirect URI not allowed"
    door.registered = (400, {"error": "invalid_redirect_uri", "error_description": words})
    with pytest.raises(SignInError, match=rf"does not let people come back to {BACK}\. It says: {words}\."):
        await sign_in()


async def test_any_other_refusal_to_register_keeps_its_words(sign_in, door):
    door.registered = (403, {"error": "access_denied", "error_description": "Ask the owner"})
    with pytest.raises(SignInError, match=r"does not know\. It says: Ask the owner\."):
        await sign_in()


async def test_the_words_of_the_page_are_kept_and_bounded(sign_in, door):
    door.back = {"error": "access_denied", "error_description": "Your plan has no API. " + "x" * 5000}
    with pytest.raises(SignInError, match="not let in at wiki: Your plan has no API") as caught:
        await sign_in()
    assert len(caught.value.message) < 400

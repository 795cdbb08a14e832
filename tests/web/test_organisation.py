"""Signing in with an organisation's accounts: a provider on loopback, and a proxy that says who it is."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.errors import SettingsError
from bot.settings import Settings
from tests.fakes.oidc_provider import CLIENT, SECRET, FakeProvider
from tests.kit import sql
from tests.web.conftest import ANA, TOKENS, Serve, Served

pytestmark = pytest.mark.platform

HOME = "http://nod.example"
KIM = {"sub": "248289761001", "email": "Kim@example.com", "email_verified": True, "name": "Kim Lee"}


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    made = FakeProvider(f"{HOME}/api/session/back")
    made.person = dict(KIM)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def nod(serve: Serve, provider: FakeProvider) -> AsyncIterator[Served]:
    async with serve(
        NOD_HTTP_TOKENS=TOKENS,
        token=ANA,
        NOD_PUBLIC_URL=HOME,
        NOD_OIDC_ISSUER=provider.url,
        NOD_OIDC_CLIENT_ID=CLIENT,
        NOD_OIDC_CLIENT_SECRET=SECRET,
        NOD_OIDC_ALLOWED=("example.com", "sam@example.org"),
        NOD_ADMINS=("http:sso.kim@example.com",),
    ) as served:
        yield served


Browser = Callable[[], httpx.AsyncClient]


@pytest.fixture
async def browser(nod: Served) -> AsyncIterator[Browser]:
    made: list[httpx.AsyncClient] = []

    def make() -> httpx.AsyncClient:
        made.append(nod.caller())
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


async def away(page: httpx.AsyncClient) -> str:
    """Where the provider sends the browser back to."""
    sent = await page.get("/api/session/begin")
    assert sent.status_code == 303
    async with httpx.AsyncClient() as elsewhere:
        back = await elsewhere.get(sent.headers["location"])
    assert back.status_code == 302
    return back.headers["location"]


async def comes_back(page: httpx.AsyncClient, address: str) -> httpx.Response:
    parts = urlsplit(address)
    return await page.get(f"{parts.path}?{parts.query}", headers={"Sec-Fetch-Site": "cross-site"})


async def refused(page: httpx.AsyncClient) -> str:
    """What a browser is told whose sign-in fails, which then is not signed in."""
    answer = await comes_back(page, await away(page))
    assert answer.status_code == 403
    assert (await page.get("/api/me")).status_code == 401
    return answer.text


async def test_who_signs_in_there_is_the_account_of_their_verified_address(nod: Served, browser: Browser):
    page = browser()
    assert (await page.get("/api/session")).json() == {"ok": True, "organisation": "your organisation"}
    answer = await comes_back(page, await away(page))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    kept = answer.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=strict" in kept
    me = (await page.get("/api/me")).json()
    assert (me["account"], me["name"], me["admin"]) == ("http:sso.kim@example.com", "Kim Lee", True)
    nod.clock.forward(timedelta(hours=13))
    assert (await page.get("/api/me")).status_code == 401


async def test_the_way_back_is_good_once_in_that_browser_and_for_ten_minutes(nod: Served, browser: Browser):
    page, other = browser(), browser()
    address = await away(page)
    assert (await comes_back(other, address)).status_code == 403
    assert (await comes_back(page, address)).status_code == 303
    assert (await comes_back(page, address)).status_code == 403
    late = await away(page)
    nod.clock.forward(timedelta(minutes=11))
    assert (await comes_back(page, late)).status_code == 403


@pytest.mark.parametrize(
    "lie",
    [
        {"nonce": "another"},
        {"aud": "another"},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"aud": [CLIENT, "another"]},
        {"iss": "https://another.example"},
        {"exp": int(time.time()) - 3600},
        {"sub": None},
    ],
)
async def test_a_token_that_is_for_another_sign_in_client_or_time_is_refused(
    provider: FakeProvider, browser: Browser, lie: dict[str, Any]
):
    provider.lie = lie
    assert "Signing in failed." in await refused(browser())
    assert len(provider.given) == 1


def _by_a_stranger(claims: dict[str, Any]) -> str:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(claims, stranger, "RS256", headers={"kid": "one"})


@pytest.mark.parametrize(
    "sign",
    [
        _by_a_stranger,
        lambda claims: jwt.encode(claims, "", "none", headers={"kid": "one"}),
        lambda claims: jwt.encode(claims, SECRET * 2, "HS256", headers={"kid": "one"}),
        lambda _: "no token",
    ],
)
async def test_a_token_that_the_provider_did_not_sign_is_refused(
    provider: FakeProvider, browser: Browser, sign: Callable[[dict[str, Any]], str]
):
    provider.sign = sign
    assert "Signing in failed." in await refused(browser())
    assert len(provider.given) == 1


async def test_a_code_that_is_late_or_used_elsewhere_is_refused(provider: FakeProvider, browser: Browser):
    provider.late = 120
    assert "Signing in failed." in await refused(browser())
    provider.late = 0
    page, thief = browser(), browser()
    code = (await away(page)).partition("?")[2].partition("&")[0]
    theirs = (await away(thief)).partition("&")[2]
    assert (await comes_back(thief, f"/api/session/back?{code}&{theirs}")).status_code == 403
    assert provider.given == []


@pytest.mark.parametrize(
    ("person", "words"),
    [
        ({"email": "eve@elsewhere.example"}, "You can&#x27;t sign in to this Nod. Ask an admin to add you."),
        ({"email": "kim@example.com", "email_verified": False}, "address is verified. Ask an admin"),
        ({"email": "kim@example.com", "email_verified": "false"}, "address is verified. Ask an admin"),
        ({"email": "kim@example.com", "email_verified": None}, "address is verified. Ask an admin"),
        ({"email": "kim@example.com", "email_verified": 2}, "address is verified. Ask an admin"),
        ({"email": "example.com"}, "address is verified. Ask an admin"),
        ({"preferred_username": "kim@example.com"}, "sends no address for you. Ask an admin"),
        ({"email": ["kim@example.com"]}, "sends no address for you. Ask an admin"),
        ({}, "sends no address for you. Ask an admin"),
    ],
)
async def test_who_is_not_named_or_whose_address_is_not_verified_is_sent_away(
    provider: FakeProvider, browser: Browser, person: dict[str, Any], words: str
):
    provider.person = {"sub": "7", "email_verified": True, **person}
    assert words in await refused(browser())


async def test_who_is_no_longer_named_is_signed_out(serve: Serve, provider: FakeProvider):
    given = {
        "NOD_PUBLIC_URL": HOME,
        "NOD_OIDC_ISSUER": provider.url,
        "NOD_OIDC_CLIENT_ID": CLIENT,
        "NOD_OIDC_CLIENT_SECRET": SECRET,
    }
    async with serve(**given, NOD_OIDC_ALLOWED=("example.com",)) as nod, nod.caller() as page:
        await comes_back(page, await away(page))
        assert (await page.get("/api/me")).status_code == 200
        kept = {"Cookie": f"nod_session={page.cookies['nod_session']}"}
    async with serve(**given, NOD_OIDC_ALLOWED=("sam@example.com",)) as nod, nod.caller(**kept) as page:
        assert (await page.get("/api/me")).status_code == 401
    async with serve(**given, NOD_OIDC_ALLOWED=("kim@example.com",)) as nod, nod.caller(**kept) as page:
        assert (await page.get("/api/me")).status_code == 200


async def test_a_provider_that_is_down_or_is_another_one_is_told(provider: FakeProvider, browser: Browser):
    provider.gone = True
    answer = await browser().get("/api/session/begin")
    assert (answer.status_code, "Signing in failed." in answer.text) == (502, True)


async def test_a_provider_says_once_an_hour_where_people_sign_in_however_many_begin(
    nod: Served, provider: FakeProvider, browser: Browser
):
    provider.gone = True
    pages = [browser() for _ in range(30)]
    assert {a.status_code for a in await _begun(pages)} == {502}
    provider.gone = False
    assert {a.status_code for a in await _begun(pages)} == {303}
    failed = provider.asked.count("about") - 1
    assert 1 <= failed < 30  # those who came while it was asked have the same answer
    nod.clock.forward(timedelta(minutes=59))
    assert {a.status_code for a in await _begun(pages)} == {303}
    assert provider.asked.count("about") == failed + 1
    nod.clock.forward(timedelta(minutes=1))
    assert {a.status_code for a in await _begun(pages)} == {303}
    assert provider.asked.count("about") == failed + 2


async def _begun(pages: list[httpx.AsyncClient]) -> list[httpx.Response]:
    return await asyncio.gather(*(page.get("/api/session/begin") for page in pages))


async def test_only_so_many_are_checked_with_the_provider_at_the_same_time(
    provider: FakeProvider, browser: Browser
):
    pages = [browser() for _ in range(25)]
    backs = [await away(page) for page in pages]
    provider.answers.clear()
    coming = [asyncio.create_task(comes_back(*each)) for each in zip(pages, backs, strict=True)]
    refused = [await each for each in itertools.islice(asyncio.as_completed(coming), 5)]
    assert all("Many people are signing in right now." in each.text for each in refused)
    provider.answers.set()
    statuses = [each.status_code for each in await asyncio.gather(*coming)]
    assert (statuses.count(403), statuses.count(303)) == (5, 20)


async def test_sign_ins_that_never_come_back_are_bounded_and_forgotten(nod: Served, browser: Browser):
    url = nod.app.database.engine.url.render_as_string(hide_password=False)
    await away(browser())
    sql(
        url,
        "INSERT INTO dialogue (channel, key, state, updated_at) "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
        "SELECT channel, 'held ' || i, state, updated_at FROM dialogue, n",
    )
    (answer,) = await _begun([browser()])
    assert (answer.status_code, "Many people are signing in right now." in answer.text) == (503, True)
    nod.clock.forward(timedelta(minutes=11))
    assert (await browser().get("/api/session/begin")).status_code == 303
    assert sql(url, "SELECT count(*) AS many FROM dialogue") == [{"many": 1}]


@pytest.mark.parametrize("end", ["about", "keys", "token"])
@pytest.mark.parametrize("much", ["long", "deep", "many", "packed"])
async def test_what_a_provider_sends_is_bounded(
    provider: FakeProvider, browser: Browser, end: str, much: str
):
    page = browser()
    address = "" if end == "about" else await away(page)
    provider.flood[end] = much
    if end == "about":
        answer = await page.get("/api/session/begin")
        assert (answer.status_code, "Signing in failed." in answer.text) == (502, True)
    else:
        assert (await comes_back(page, address)).status_code == 403
        assert (await page.get("/api/me")).status_code == 401
    provider.flood.clear()
    assert (await comes_back(page, await away(page))).status_code == 303


async def test_without_one_there_is_no_such_sign_in(serve: Serve):
    async with serve() as nod:
        assert (await nod.client.get("/api/session")).json()["organisation"] is None
        assert (await nod.client.get("/api/session/begin")).status_code == 404
        assert (await nod.client.get("/api/session/back?state=x&code=y")).status_code == 403


PROXY = {"NOD_HTTP_TRUSTED_PROXIES": "127.0.0.1", "NOD_HTTP_USER_HEADER": "X-Forwarded-Email"}


async def test_a_named_proxy_says_who_it_is(serve: Serve):
    async with serve(**PROXY, NOD_ADMINS=("http:sso.kim@example.com",)) as nod:
        kim = {"X-Forwarded-Email": "Kim@example.com"}
        me = (await nod.client.get("/api/me", headers=kim)).json()
        assert (me["account"], me["admin"]) == ("http:sso.kim@example.com", True)
        foreign = await nod.client.post("/api/chat", headers=kim, json={"message": "hi"})
        assert foreign.status_code == 403
        for headers in ({}, {"X-Forwarded-Email": ""}, {"X-Forwarded-Email": "../local"}):
            assert (await nod.client.get("/api/me", headers=headers)).status_code == 401
        twice = await nod.client.get(
            "/api/me", headers=[("X-Forwarded-Email", "kim@example.com"), ("X-Forwarded-Email", "a@b.c")]
        )
        assert twice.status_code == 401


async def test_no_one_else_says_who_they_are(serve: Serve):
    named = PROXY | {"NOD_HTTP_TRUSTED_PROXIES": "10.0.0.0/8"}
    async with serve(**named) as nod:
        answer = await nod.client.get("/api/me", headers={"X-Forwarded-Email": "kim@example.com"})
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"NOD_HTTP_USER_HEADER": "X-Forwarded-Email"}, "NOD_HTTP_TRUSTED_PROXIES"),
        ({"NOD_OIDC_ISSUER": "https://id.example"}, "NOD_OIDC_CLIENT_ID"),
        ({"NOD_OIDC_ISSUER": "https://id.example", "NOD_OIDC_CLIENT_ID": "nod"}, "NOD_OIDC_ALLOWED"),
    ],
)
def test_half_a_setting_does_not_start(given: dict[str, Any], fault: str):
    with pytest.raises(SettingsError, match=fault):
        Settings.load(**given)


@pytest.mark.parametrize(
    ("subject", "account"),
    [
        ("abc", "http:sso-id.abc"),
        ("ABC", "http:sso-id.ABC"),
        ("auth0|5f7c", "http:sso-id.auth0|5f7c"),
        ("a/b", "http:sso-id.a%2Fb"),
        ("\u212aim", "http:sso-id.%E2%84%AAim"),
    ],
)
async def test_who_is_known_by_an_id_alone_has_the_account_of_just_that_id(
    serve: Serve, provider: FakeProvider, subject: str, account: str
):
    given = {"NOD_OIDC_ISSUER": provider.url, "NOD_OIDC_CLIENT_ID": CLIENT, "NOD_OIDC_CLIENT_SECRET": SECRET}
    async with serve(NOD_PUBLIC_URL=HOME, NOD_OIDC_ALLOWED=("*",), **given) as nod, nod.caller() as page:
        provider.person = {"sub": subject, "name": "K\ud83d"}
        assert (await comes_back(page, await away(page))).status_code == 303
        assert (await page.get("/api/me")).json()["account"] == account


async def test_an_address_in_letters_that_only_look_like_ascii_is_refused(
    provider: FakeProvider, browser: Browser
):
    provider.person = {"sub": "9", "email": "\u212aim@example.com", "email_verified": True}
    assert "Signing in failed." in await refused(browser())

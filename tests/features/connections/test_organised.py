"""Connecting where people sign in with their organisation's accounts: that comes first, and is theirs."""

from collections.abc import AsyncIterator
from html import unescape

import httpx
import pytest

from bot.approvals.accounts import linking
from bot.domain.people import Actor
from tests.fakes.oidc_provider import CLIENT, SECRET, FakeProvider
from tests.features.connections.conftest import ANA, BEN, Connect, Connectable, port_of
from tests.features.connections.tracker import Tracker

pytestmark = pytest.mark.platform

HOME = "http://nod.example"
SSO = Actor("http", "sso.ana@example.com", "Ana Lee")
PERSON = {"sub": "2482", "email": "ana@example.com", "email_verified": True, "name": "Ana Lee"}


@pytest.fixture
async def provider() -> AsyncIterator[FakeProvider]:
    made = FakeProvider(f"{HOME}/api/session/back")
    made.person = dict(PERSON)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def organised(start: Connect, tracker: Tracker, provider: FakeProvider) -> AsyncIterator[Connectable]:
    settings = {
        "NOD_PUBLIC_URL": HOME,
        "NOD_OIDC_ISSUER": provider.url,
        "NOD_OIDC_CLIENT_ID": CLIENT,
        "NOD_OIDC_CLIENT_SECRET": SECRET,
        "NOD_OIDC_ALLOWED": ("example.com",),
    }
    async with start(**settings) as nod:
        made = Connectable(nod, tracker)
        made.nod.app.database.write_now(
            linking.link_accounts, port_of(made).policies, ANA, SSO, ANA, made.nod.clock()
        )
        yield made
        await made.close()


class Visit:
    """A browser for which Nod's public address is the one where it runs."""

    def __init__(self, there: Connectable) -> None:
        self._nod, self.client = there.nod.url, there.browser().client

    def _here(self, url: str) -> str:
        return f"{self._nod}{url}" if url.startswith("/") else url.replace(HOME, self._nod)

    async def open(self, url: str) -> httpx.Response:
        answer = await self.client.get(self._here(url))
        while answer.is_redirect:
            answer = await self.client.get(self._here(answer.headers["location"]))
        return answer

    async def press(self, url: str) -> httpx.Response:
        answer = await self.client.post(self._here(url), headers={"Origin": self._nod})
        return await self.open(answer.headers["location"]) if answer.is_redirect else answer


async def test_the_organisations_sign_in_comes_first_and_its_page_asks_itself(organised: Connectable):
    visit, link = Visit(organised), await organised.link()
    asked = await visit.press(link)
    assert "Let Nod act as" in asked.text  # back from the organisation's sign-in, and the link still works
    arrived = await visit.press(link)
    assert "Let Nod act as this account" in arrived.text
    assert organised.told() == []
    assert organised.rows() == []
    done = await visit.press("/connect/confirm")
    assert "Connected: As Ana at tracker (octocat)." in done.text
    assert [row.owner for row in organised.rows()] == [str(ANA)]


async def test_the_page_of_a_new_connection_shows_plain_words_and_no_markdown(organised: Connectable):
    organised.tracker.people.user = "octo_cat"
    visit, link = Visit(organised), await organised.link()
    await visit.press(link)
    await visit.press(link)
    done = unescape((await visit.press("/connect/confirm")).text)
    assert "Connected: As Ana at tracker (octo_cat). /nod connections end tracker ends it." in done


async def test_who_is_someone_else_at_the_organisation_uses_no_link_up(organised: Connectable):
    visit, link = Visit(organised), await organised.link(BEN)
    await visit.press(link)
    refused = await visit.press(link)
    assert refused.status_code == 403
    assert "You are signed in as Ana Lee, and this link is for Ben" in unescape(refused.text)
    assert "Let Nod act as" in (await visit.open(link)).text


async def test_another_browser_confirms_nothing(organised: Connectable):
    visit, other, link = Visit(organised), Visit(organised), await organised.link()
    await visit.press(link)
    await visit.press(link)
    assert (await other.press("/connect/confirm")).status_code == 403
    await other.open("/api/session/begin")
    assert (await other.press("/connect/confirm")).status_code == 409
    assert organised.rows() == []


@pytest.mark.parametrize("then", ["//evil.example", "https://evil.example/x/y", "/connect/../x", "/a/b?c=d"])
async def test_the_organisations_sign_in_leads_to_pages_of_nods_alone(organised: Connectable, then: str):
    client = organised.browser().client
    away = await client.get(f"{organised.nod.url}/api/session/begin", params={"then": then})
    back = (await client.get(away.headers["location"])).headers["location"]
    entered = await client.get(back.replace(HOME, organised.nod.url))
    assert entered.headers["location"] == "/"

"""Signing in to the console with a link from a chat: once, as the same person, and out again everywhere."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import timedelta

import httpx
import pytest

from bot.domain.chat import Address, Command
from bot.domain.people import Actor
from tests.web.conftest import ANA as ANAS_TOKEN
from tests.web.conftest import TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask

pytestmark = pytest.mark.platform

CHIEF = Actor("slack", "T1/U7", "Chief")


@pytest.fixture
async def nod(serve: Serve) -> AsyncIterator[Served]:
    async with serve(NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=(str(CHIEF),), token=ANAS_TOKEN) as served:
        yield served


Browser = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def browser(nod: Served) -> AsyncIterator[Browser]:
    """A browser that is not signed in, on Nod's own page unless its headers say otherwise."""
    made: list[httpx.AsyncClient] = []

    def make(**headers: str) -> httpx.AsyncClient:
        made.append(nod.caller(**headers))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


async def link(nod: Served, actor: Actor = CHIEF) -> str:
    """The code of the link that Nod gives someone in a chat."""
    said = await nod.app.core.assistant.handle(Command(actor, "nod", "console", Address("slack", "T1/D1")))
    address = said.text.partition("\n")[0]
    assert address.startswith(f"{nod.url}/#/sign-in/")
    return address.rpartition("/")[2]


async def signed_in(nod: Served, browser: Browser) -> httpx.AsyncClient:
    page = browser(Origin=nod.url)
    answer = await page.post("/api/session", json={"code": await link(nod)})
    assert answer.status_code == 200
    return page


async def test_a_link_makes_the_browser_the_same_person_with_the_same_roles(nod: Served, browser: Browser):
    page = await signed_in(nod, browser)
    me = (await page.get("/api/me")).json()
    assert (me["name"], me["admin"], me["session"]) == ("Chief", True, True)
    assert str(CHIEF) in me["accounts"]
    nod.model.answer(ask(("keep", {"text": "milk"})))
    [proposal] = await nod.proposed()
    pressed = await page.post(f"/api/proposals/{proposal['id']}/approve?wait=20", json={})
    assert pressed.json()["proposal"]["state"] == "succeeded"
    again = await signed_in(nod, browser)
    assert (await again.get("/api/me")).json()["account"] == me["account"]


async def test_a_link_works_once_and_for_ten_minutes(nod: Served, browser: Browser):
    code = await link(nod)
    page = browser(Origin=nod.url)
    assert (await page.post("/api/session", json={"code": code})).status_code == 200
    assert (await browser().post("/api/session", json={"code": code})).status_code == 403
    late = await link(nod)
    nod.clock.forward(timedelta(minutes=11))
    assert (await browser().post("/api/session", json={"code": late})).status_code == 403
    replaced = await link(nod)
    await link(nod)
    assert (await browser().post("/api/session", json={"code": replaced})).status_code == 403


async def test_the_cookie_is_for_this_page_alone(nod: Served, browser: Browser):
    page = browser(Origin=nod.url)
    answer = await page.post("/api/session", json={"code": await link(nod)})
    cookie = answer.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", "path=/"):
        assert part in cookie
    carried = {"Cookie": f"nod_session={page.cookies['nod_session']}"}
    elsewhere = browser(**carried, Origin="https://evil.example")
    assert (await elsewhere.get("/api/me")).status_code == 403
    no_origin = browser(**carried)
    assert (await no_origin.get("/api/me")).status_code == 200
    assert (await no_origin.post("/api/commands", json={"name": "nod", "text": "status"})).status_code == 403
    assert (await page.post("/api/commands", json={"name": "nod", "text": "status"})).status_code == 200


async def test_one_browser_is_signed_out_or_all_of_them(nod: Served, browser: Browser):
    first, second, third = [await signed_in(nod, browser) for _ in range(3)]
    secret = first.cookies["nod_session"]
    assert (await first.delete("/api/session")).status_code == 200
    kept = browser(Cookie=f"nod_session={secret}")
    assert (await kept.get("/api/me")).status_code == 401
    assert (await second.get("/api/me")).status_code == 200
    assert (await second.delete("/api/session?everywhere=true")).status_code == 200
    assert (await third.get("/api/me")).status_code == 401


async def test_an_open_stream_ends_when_its_browser_is_signed_out_where_no_one_else_is_let_in(serve: Serve):
    async with serve(NOD_ADMINS=(str(CHIEF),), model=ScriptedModel(ask(("keep", {"text": "milk"})))) as nod:
        # through a proxy, so that Nod doesn't take it for the person at this machine
        page = nod.caller(Origin=nod.url, **{"X-Forwarded-For": "192.0.2.7"})
        assert (await page.post("/api/session", json={"code": await link(nod)})).status_code == 200
        async with aclosing(page), nod.stream("GET", "/api/events", page) as stream:
            await stream.raw()
            assert (await page.delete("/api/session")).status_code == 200
            assert (await page.get("/api/me")).status_code == 403
            await nod.proposed()
            assert await stream.rest() == []


async def test_who_signed_in_and_out_when_and_how_is_in_the_audit_log(nod: Served, browser: Browser):
    page = await signed_in(nod, browser)
    console = (await page.get("/api/me")).json()["account"]
    kept = await signed_in(nod, browser)
    nod.clock.forward(timedelta(minutes=1))
    await page.delete("/api/session")
    await page.delete("/api/session?everywhere=true")
    rows = (await kept.get("/api/audit")).json()["rows"]
    told = [(r["verb"], r["actor"], r["key"], r["after"]["how"]) for r in rows if r["thing"] == "session"]
    assert told == [
        ("sign out", console, console, "here"),
        *[("sign in", str(CHIEF), console, "link")] * 2,
    ]
    assert rows[0]["at"] == nod.clock().isoformat()
    assert (await kept.delete("/api/session?everywhere=true")).status_code == 200
    again = await signed_in(nod, browser)
    newest = (await again.get("/api/audit")).json()["rows"][1]
    assert (newest["verb"], newest["after"]) == ("sign out", {"how": "everywhere"})
    assert (await again.get("/api/audit/verify")).json()["intact"]


async def test_an_admin_sees_who_is_signed_in_and_ends_it(nod: Served, browser: Browser):
    guest = Actor("slack", "T1/U8", "Guest")
    page = browser(Origin=nod.url)
    await page.post("/api/session", json={"code": await link(nod, guest)})
    console = (await page.get("/api/me")).json()["account"]
    chief = await signed_in(nod, browser)

    async def admin(text: str) -> str:
        return (await chief.post("/api/commands", json={"name": "approvals", "text": text})).json()["text"]

    assert f"{console}: Guest, until in 30 d" in await admin("sessions")
    assert await admin("sessions end slack:T1/U8") == "Ended: 1."
    assert (await page.get("/api/me")).status_code == 401
    assert console not in await admin("sessions")
    newest = (await chief.get("/api/audit")).json()["rows"][0]
    assert (newest["verb"], newest["actor"], newest["key"]) == (
        "sign out",
        (await chief.get("/api/me")).json()["account"],
        console,
    )


async def test_a_session_ends_after_thirty_days(nod: Served, browser: Browser):
    page = await signed_in(nod, browser)
    nod.clock.forward(timedelta(days=31))
    assert (await page.get("/api/me")).status_code == 401


async def test_the_code_of_a_link_joins_no_accounts_and_the_other_way_round(nod: Served, browser: Browser):
    code = await link(nod)
    ben = Actor("slack", "T1/U8", "Ben")
    said = await nod.app.core.assistant.handle(Command(ben, "nod", f"link {code}", Address("slack", "T1/D2")))
    assert "invalid" in said.text
    given = await nod.app.core.assistant.handle(Command(CHIEF, "nod", "link", Address("slack", "T1/D1")))
    joining = given.text.split("`")[1]
    answer = await browser().post("/api/session", json={"code": joining.ljust(20, "x")})
    assert answer.status_code == 403

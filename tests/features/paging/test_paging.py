"""Pages: a card that no one decides calls those on call, and lets them go when it ends."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session, select

from bot.domain.chat import Address, Answer, Command, Reply
from bot.domain.people import Actor
from bot.features.paging.pager import PAUSES
from bot.features.paging.tables import PageRow
from bot.store.notices import NoticeRow
from tests.fakes.pagerduty import KEY, FakePagerDuty
from tests.web.conftest import ANA, BEN, TOKENS, Json, Serve, Served
from tests.web.scripted import ask, say

BOSS = Actor("http", "chief", "Chief")
SECRET = "whsec_" + base64.b64encode(b"a key of thirty-two random bytes").decode()
SETTINGS = {
    "NOD_HTTP_TOKENS": TOKENS,
    "NOD_ADMINS": ("http:chief", "http:ben"),
    "NOD_WEBHOOK_HOSTS": ("127.0.0.1",),
    "token": ANA,
}
TWO_MINUTES = timedelta(minutes=2)
WORDS = "hunter2 at 10.0.0.7"


@pytest.fixture
async def pagerduty() -> AsyncIterator[FakePagerDuty]:
    async with FakePagerDuty().up() as running:
        yield running


def settings(pagerduty: FakePagerDuty, **more: Any) -> dict[str, Any]:
    return SETTINGS | {"NOD_PAGER_KEY": KEY, "NOD_PAGER_URL": pagerduty.url} | more


async def command(nod: Served, text: str) -> Reply:
    said = Command(BOSS, "approvals", text, Address("http", "chief/c"))
    return await nod.app.core.assistant.handle(said)


async def rule(nod: Served, text: str = "notify page after 2m") -> None:
    reply = await command(nod, text)
    assert reply.answer is Answer.ACCEPTED, reply.text


async def propose(nod: Served, *texts: str) -> list[Json]:
    calls = [("keep", {"text": text, "password": "s3cret-word"}) for text in texts or (WORDS,)]
    nod.model.answer(ask(*calls), say("Done."))
    return await nod.proposed()


async def tick(nod: Served, passed: timedelta = timedelta()) -> None:
    """Time passes: steps are taken, and pages are sent."""
    nod.clock.forward(passed)
    await nod.app.core.recovery.expire_due(nod.clock())
    await nod.app.core.reminders.remind(nod.clock())
    for sweep in nod.app.sweeps:
        if sweep.name == "page":
            await sweep.run(nod.clock())


async def press(nod: Served, proposal: Json, verb: str) -> None:
    async with nod.caller(BEN) as ben:
        answer = await nod.press(proposal, verb, ben)
    assert answer.status_code == 200, answer.text
    await nod.idle()


async def pages(nod: Served) -> list[PageRow]:
    return await nod.app.database.read(
        lambda s: [PageRow(**row.model_dump()) for row in s.exec(select(PageRow))]
    )


def list_notices(session: Session) -> str:
    """Return the texts that wait to be posted, one after another."""
    return "\n".join(row.text for row in session.exec(select(NoticeRow)))


async def test_a_card_that_waits_pages_and_its_end_resolves(serve: Serve, pagerduty: FakePagerDuty):
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        [proposal] = await propose(nod)
        await tick(nod, timedelta(minutes=1))
        assert pagerduty.events == []
        await tick(nod, timedelta(minutes=1))
        await tick(nod, timedelta(minutes=1))
        [event] = pagerduty.events
        key = f"nod-{proposal['id']}"
        assert (event["event_action"], event["dedup_key"]) == ("trigger", key)
        assert event["payload"]["summary"] == "keep in a private chat waits for a decision"
        assert event["payload"]["severity"] == "warning"
        assert event["client_url"].endswith(f"/#/inbox/{proposal['id']}")
        assert pagerduty.alerts == {key: "triggered"}
        await press(nod, proposal, "approve")
        await tick(nod)
        await tick(nod)
        assert pagerduty.alerts == {key: "resolved"}
        assert pagerduty.events[1] == {"routing_key": KEY, "event_action": "resolve", "dedup_key": key}
        assert len(pagerduty.events) == 2


async def test_nothing_of_the_call_is_in_a_page(serve: Serve, pagerduty: FakePagerDuty):
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        [proposal] = await propose(nod)
        await tick(nod, TWO_MINUTES)
        await press(nod, proposal, "decline")
        await tick(nod)
        told = json.dumps(pagerduty.events)
        assert "trigger" in told
        for word in ("hunter2", "10.0.0.7", "s3cret-word", "note"):
            assert word not in told


@pytest.mark.parametrize("end", ["decline", "cancel", "expire"])
async def test_every_end_resolves_also_after_a_restart(serve: Serve, pagerduty: FakePagerDuty, end: str):
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        [proposal] = await propose(nod)
        await tick(nod, TWO_MINUTES)
        if end == "decline":
            await press(nod, proposal, "decline")
        elif end == "cancel":
            await nod.press(proposal, "cancel")
        else:
            nod.clock.forward(timedelta(hours=30))
            await nod.app.core.recovery.expire_due(nod.clock())
        assert list(pagerduty.alerts.values()) == ["triggered"]
    async with serve(**settings(pagerduty)) as nod:
        await tick(nod)
        assert list(pagerduty.alerts.values()) == ["resolved"]


async def test_what_was_decided_before_it_paged_pages_no_one(serve: Serve, pagerduty: FakePagerDuty):
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        [proposal] = await propose(nod)
        nod.clock.forward(TWO_MINUTES)
        await nod.app.core.reminders.remind(nod.clock())
        await press(nod, proposal, "decline")
        await tick(nod, timedelta(hours=1))
        assert pagerduty.events == []
        assert [page.is_over for page in await pages(nod)] == [True]


async def test_a_table_pages_once_and_resolves_with_its_last_row(serve: Serve, pagerduty: FakePagerDuty):
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        proposals = await propose(nod, "a", "b", "c")
        await tick(nod, TWO_MINUTES)
        [event] = pagerduty.events
        assert event["payload"]["summary"].endswith("waits for a decision and 2 more")
        assert event["payload"]["custom_details"]["more"] == 2
        for proposal in proposals:
            assert list(pagerduty.alerts.values()) == ["triggered"]
            await press(nod, proposal, "decline")
            await tick(nod)
        assert list(pagerduty.alerts.values()) == ["resolved"]


@pytest.mark.parametrize("trouble", [429, 500, 503, "drop"])
async def test_what_may_pass_is_tried_again(serve: Serve, pagerduty: FakePagerDuty, trouble: int | str):
    pagerduty.troubles = [trouble, trouble]
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        await propose(nod)
        await tick(nod, TWO_MINUTES)
        await tick(nod, PAUSES[0])
        if trouble == 429:
            assert len(pagerduty.headers) == 1, "the server asked for 90 s"
        for _ in range(3):
            await tick(nod, timedelta(seconds=90))
        assert list(pagerduty.alerts.values()) == ["triggered"]
        assert len(pagerduty.events) == 1


async def test_a_refusal_is_final_and_told_to_the_admins(serve: Serve, pagerduty: FakePagerDuty):
    other = "x" * 32
    async with serve(
        **settings(pagerduty, NOD_PAGER_KEY=other, NOD_ADMINS=("http:chief", "slack:T1/U1"))
    ) as nod:
        await rule(nod)
        [proposal] = await propose(nod)
        await tick(nod, TWO_MINUTES)
        await tick(nod, timedelta(hours=1))
        assert len(pagerduty.headers) == 1
        [page] = await pages(nod)
        assert (page.is_over, page.fault) == (True, "HTTP 400")
        texts = await nod.app.database.read(list_notices)
        assert "The page about Keep the note “hunter2 at 10.0.0.7” did not arrive: HTTP 400." in texts
        assert "Check NOD_PAGER_KEY" in texts
        await nod.press(proposal, "cancel")
        await tick(nod)
        assert len(pagerduty.headers) == 1, "what never arrived has no end to tell"


async def test_a_page_that_is_late_is_told_to_the_admins_once(serve: Serve, pagerduty: FakePagerDuty):
    pagerduty.troubles = [500] * 8
    async with serve(**settings(pagerduty, NOD_ADMINS=("http:chief", "slack:T1/U1"))) as nod:
        await rule(nod)
        await propose(nod)
        await tick(nod, TWO_MINUTES)
        for pause in PAUSES[:6]:
            await tick(nod, pause)
        texts = await nod.app.database.read(list_notices)
        assert texts.count("did not arrive: HTTP 500. Nod tries again.") == 1


async def test_a_server_that_hangs_is_asked_once_and_its_end_waits(serve: Serve, pagerduty: FakePagerDuty):
    pagerduty.going_on.clear()
    async with serve(**settings(pagerduty)) as nod:
        await rule(nod)
        [proposal] = await propose(nod)
        hanging = asyncio.create_task(tick(nod, TWO_MINUTES))
        await pagerduty.received.wait()
        await tick(nod)
        assert len(pagerduty.headers) == 1
        await press(nod, proposal, "decline")
        await tick(nod)
        assert len(pagerduty.headers) == 1, "the end does not overtake the page"
        pagerduty.going_on.set()
        await hanging
        await tick(nod, timedelta(seconds=20))
        assert list(pagerduty.alerts.values()) == ["resolved"]
        assert [event["event_action"] for event in pagerduty.events] == ["trigger", "resolve"]


async def test_without_a_key_it_is_a_signed_webhook_of_the_same_contents(
    serve: Serve, pagerduty: FakePagerDuty
):
    given = SETTINGS | {"NOD_PAGER_URL": pagerduty.url, "NOD_WEBHOOK_SECRET": SECRET}
    seen: list[bytes] = []

    def keep(body: bytes) -> tuple[int, dict[str, Any]]:
        seen.append(body)
        return 204, {}

    pagerduty.answer = keep
    async with serve(**given) as nod:
        await rule(nod)
        await propose(nod)
        await tick(nod, TWO_MINUTES)
        [headers], [body] = pagerduty.headers, seen
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        mac = hmac.new(b"a key of thirty-two random bytes", signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(mac).decode()}"
        told = json.loads(body)
        assert "routing_key" not in told
        assert (told["event_action"], told["payload"]["component"]) == ("trigger", "keep")


async def test_an_internal_address_is_never_reached_unless_it_is_named(
    serve: Serve, pagerduty: FakePagerDuty
):
    async with serve(**settings(pagerduty, NOD_WEBHOOK_HOSTS=())) as nod:
        await rule(nod)
        await propose(nod)
        await tick(nod, TWO_MINUTES)
        assert pagerduty.headers == []
        [page] = await pages(nod)
        assert page.fault


async def test_a_rule_is_refused_where_paging_is_not_set_up(serve: Serve):
    async with serve(**SETTINGS) as nod:
        reply = await command(nod, "notify page after 2m")
        assert reply.answer is Answer.INVALID
        assert "Paging is not set up here. Set NOD_PAGER_KEY, then restart Nod." in reply.text
        assert not any(sweep.name == "page" for sweep in nod.app.sweeps)
    async with serve(**SETTINGS, NOD_PAGER_URL="https://pages.example.org") as nod:
        reply = await command(nod, "notify page after 2m")
        assert "NOD_PAGER_URL needs NOD_PAGER_KEY or NOD_WEBHOOK_SECRET." in reply.text

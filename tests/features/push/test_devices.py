"""A device belongs to a session and ends with it. What it gets is judged when it is sent."""

import asyncio
import resource
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlmodel import Session, select

from bot.domain.chat import Address, Command
from bot.domain.people import Actor
from bot.features.push.rows import MAX_DEVICES
from bot.features.push.sender import AT_A_TIME
from bot.features.push.tables import DeviceRow, NotificationRow
from bot.store.secrets import new_key
from tests.fakes.push_service import Answer, FakeBrowser, FakePushService
from tests.features.push.conftest import KEY, PUSHING, add, list_devices, propose, push
from tests.web.conftest import ANA as ANAS_TOKEN
from tests.web.conftest import TOKENS, Serve, Served

CHIEF, HELPER = Actor("slack", "T1/U7", "Chief"), Actor("slack", "T1/U8", "Helper")
SIGNED_IN: dict[str, Any] = {
    **PUSHING,
    "NOD_HTTP_TOKENS": TOKENS,
    "NOD_ADMINS": (str(CHIEF),),
    "token": ANAS_TOKEN,
}
BOTH_DECIDE: dict[str, Any] = {**SIGNED_IN, "NOD_ADMINS": (str(CHIEF), str(HELPER))}
Browser = Callable[..., httpx.AsyncClient]
SignIn = Callable[[Served, Actor], Any]


@pytest.fixture
async def sign_in() -> AsyncIterator[SignIn]:
    """Sign a browser in as someone, by the link that they get in a chat."""
    made: list[httpx.AsyncClient] = []

    async def enter(nod: Served, actor: Actor) -> httpx.AsyncClient:
        said = await nod.app.core.assistant.handle(
            Command(actor, "nod", "console", Address("slack", f"T1/D{actor.key}"))
        )
        page = nod.caller(Origin=nod.url)
        made.append(page)
        code = said.text.partition("\n")[0].rpartition("/")[2]
        answer = await page.post("/api/session", json={"code": code})
        assert answer.status_code == 200, answer.text
        return page

    yield enter
    for each in made:
        await each.aclose()


async def test_a_device_ends_when_its_browser_signs_out(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**SIGNED_IN) as nod:
        page, other = await sign_in(nod, CHIEF), await sign_in(nod, CHIEF)
        here, there = service.subscribe(KEY.public), service.subscribe(KEY.public)
        await add(nod, here, page)
        await add(nod, there, other, name="Laptop")
        await page.delete("/api/session")
        assert [each["name"] for each in await list_devices(nod, other)] == ["Laptop"]
        await propose(nod)
        await push(nod)
        assert (here.tries, len(there.messages)) == (0, 1)
        assert len(await nod.app.database.read(_devices)) == 1


@pytest.mark.parametrize("how", ["everywhere", "admin", "time"])
async def test_a_device_ends_with_its_session_however_that_ends(
    serve: Serve, service: FakePushService, sign_in: SignIn, how: str
):
    async with serve(**BOTH_DECIDE) as nod:
        page = await sign_in(nod, HELPER)
        browser = service.subscribe(KEY.public)
        await add(nod, browser, page)
        [proposal] = await propose(nod)
        await push(nod)
        if how == "everywhere":
            await page.delete("/api/session", params={"everywhere": "true"})
        elif how == "admin":
            ending = Command(CHIEF, "approvals", f"sessions end {HELPER}", Address("slack", "T1/D1"))
            assert "ended" in (await nod.app.core.assistant.handle(ending)).text.lower()
        else:
            nod.clock.forward(timedelta(days=31))
        await push(nod, timedelta(minutes=2))
        assert await nod.app.database.read(_devices) == []
        assert await nod.app.database.read(_notifications) == []
        async with nod.caller(ANAS_TOKEN) as ana:
            await nod.press(proposal, "cancel", ana)
        await push(nod)
        assert len(browser.messages) == 1


async def test_what_a_person_may_no_longer_decide_is_not_sent(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    browser = service.subscribe(KEY.public)
    async with serve(**BOTH_DECIDE) as nod:
        page = await sign_in(nod, HELPER)
        await add(nod, browser, page)
        await propose(nod)
    async with serve(**SIGNED_IN) as nod:
        await push(nod)
        assert browser.tries == 0


async def test_only_those_who_may_decide_are_told(serve: Serve, service: FakePushService, sign_in: SignIn):
    async with serve(**SIGNED_IN) as nod:
        chief = service.subscribe(KEY.public)
        stranger = service.subscribe(KEY.public)
        await add(nod, chief, await sign_in(nod, CHIEF))
        await add(nod, stranger, await sign_in(nod, Actor("slack", "T1/U9", "Guest")))
        await propose(nod)
        await push(nod)
        assert (len(chief.messages), stranger.tries) == (1, 0)


async def escalate(nod: Served, words: str) -> None:
    rule = Command(CHIEF, "approvals", f"{words} for keep", Address("slack", "T1/D1"))
    reply = await nod.app.core.assistant.handle(rule)
    assert reply.text.startswith("Set:"), reply.text


async def wait(nod: Served, passed: timedelta) -> None:
    nod.clock.forward(passed)
    await nod.app.core.reminders.remind(nod.clock())
    await push(nod)
    await push(nod)


async def test_who_may_decide_only_since_an_escalation_is_told_then_and_once(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**SIGNED_IN) as nod:
        await escalate(nod, f"escalate 10m {HELPER}")
        chief, helper = service.subscribe(KEY.public), service.subscribe(KEY.public)
        await add(nod, chief, await sign_in(nod, CHIEF))
        await add(nod, helper, await sign_in(nod, HELPER))
        await propose(nod)
        await push(nod)
        assert (len(chief.messages), helper.tries) == (1, 0)
        await wait(nod, timedelta(minutes=10))
        await wait(nod, timedelta(minutes=1))
        assert [each["title"] for each in helper.shown] == ["keep waits for you"]
        assert helper.messages[0].headers["urgency"] == "high"
        assert len(chief.messages) == 1


async def test_who_may_decide_only_since_a_step_after_that_of_devices_is_told_then(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**SIGNED_IN) as nod:
        await escalate(nod, f"notify push after 2m, {HELPER} after 10m")
        chief, helper = service.subscribe(KEY.public), service.subscribe(KEY.public)
        await add(nod, chief, await sign_in(nod, CHIEF))
        await add(nod, helper, await sign_in(nod, HELPER))
        await propose(nod)
        await wait(nod, timedelta(minutes=2))
        assert (len(chief.messages), helper.tries) == (1, 0)
        await wait(nod, timedelta(minutes=8))
        assert (len(chief.messages), len(helper.messages)) == (1, 1)


async def test_who_has_voted_is_not_asked_again_while_others_are(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**BOTH_DECIDE) as nod:
        rule = Command(CHIEF, "approvals", "quorum 2 for keep", Address("slack", "T1/D1"))
        await nod.app.core.assistant.handle(rule)
        page, other = await sign_in(nod, CHIEF), await sign_in(nod, HELPER)
        mine, theirs = service.subscribe(KEY.public), service.subscribe(KEY.public)
        await add(nod, mine, page)
        await add(nod, theirs, other)
        [proposal] = await propose(nod)
        await push(nod)
        await nod.press(proposal, "approve", page)
        await push(nod)
        assert [each.get("close", False) for each in mine.shown] == [False, True]
        assert [each.get("close", False) for each in theirs.shown] == [False]


async def test_a_browser_that_signs_in_as_someone_else_takes_its_device_along(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**SIGNED_IN) as nod:
        page, other = await sign_in(nod, CHIEF), await sign_in(nod, HELPER)
        browser = service.subscribe(KEY.public)
        first = await add(nod, browser, page)
        second = await add(nod, browser, other)
        assert first["id"] == second["id"]
        assert await list_devices(nod, other) == [second]
        assert [each["mine"] for each in await list_devices(nod, page)] == [False]


async def test_an_endpoint_alone_takes_nothing_from_anyone(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**SIGNED_IN) as nod:
        page, other = await sign_in(nod, CHIEF), await sign_in(nod, HELPER)
        browser = service.subscribe(KEY.public)
        await add(nod, browser, page)
        thief = FakeBrowser(browser.endpoint, KEY.public)
        refused = await other.post("/api/push/devices", json=thief.subscription())
        assert refused.status_code == 409
        assert "belongs to someone else" in refused.json()["error"]
        [mine] = await list_devices(nod, page)
        assert mine["mine"]


async def test_a_token_is_no_session(serve: Serve, service: FakePushService):
    async with serve(**SIGNED_IN) as nod:
        refused = await nod.client.post(
            "/api/push/devices", json=service.subscribe(KEY.public).subscription()
        )
        assert refused.status_code == 409
        assert "/nod console" in refused.json()["error"]


@pytest.mark.parametrize("tries", [30, 500])
async def test_a_person_has_at_most_twenty_devices_and_is_told(
    serve: Serve, service: FakePushService, tries: int
):
    async with serve(patience=300, **PUSHING) as nod:
        answers = [
            await nod.client.post("/api/push/devices", json=service.subscribe(KEY.public).subscription())
            for _ in range(tries)
        ]
        assert [each.status_code for each in answers].count(201) == MAX_DEVICES
        assert answers[-1].json()["error"] == "You have 20 devices, the most. Remove one first."
        assert len(await list_devices(nod)) == MAX_DEVICES


async def test_a_device_that_has_ended_counts_again_before_it_is_added_again(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(patience=300, **SIGNED_IN) as nod:
        page, other = await sign_in(nod, CHIEF), await sign_in(nod, CHIEF)
        ended = service.subscribe(KEY.public)
        await add(nod, ended, page)
        await page.delete("/api/session")
        browsers = [service.subscribe(KEY.public) for _ in range(MAX_DEVICES)]
        for browser in browsers:
            await add(nod, browser, other)
        refused = await other.post("/api/push/devices", json=ended.subscription())
        assert refused.status_code == 409, refused.text
        assert "You have 20 devices" in refused.json()["error"]
        await add(nod, browsers[0], other, name="Laptop")  # it counts already
        assert len(await list_devices(nod, other)) == MAX_DEVICES


async def test_five_hundred_devices_of_many_people_are_each_told_once_a_bounded_number_at_a_time(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    people = [Actor("slack", f"T1/U{100 + number}", f"Person {number}") for number in range(25)]
    async with serve(patience=300, **SIGNED_IN | {"NOD_ADMINS": tuple(map(str, people))}) as nod:
        browsers = []
        for person in people:
            page = await sign_in(nod, person)
            for _ in range(MAX_DEVICES):
                browsers.append(service.subscribe(KEY.public))
                await add(nod, browsers[-1], page)
        await propose(nod)
        await nod.idle()
        memory = read_memory_bytes()
        [sweep] = [each for each in nod.app.sweeps if each.name == "push"]
        sweeps = 0
        while any(not browser.messages for browser in browsers) and sweeps < 30:
            told = sum(len(browser.messages) for browser in browsers)
            await sweep.run(nod.clock())
            assert sum(len(browser.messages) for browser in browsers) - told <= AT_A_TIME
            sweeps += 1
        assert [len(browser.messages) for browser in browsers] == [1] * 500
        assert read_memory_bytes() - memory < 50_000_000


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.2/push", "https://127.0.0.2/push", "https://localhost/push", "https://10.0.0.1/push",
        "https://169.254.169.254/latest", "https://[::1]/push", "https://2130706433/push", "ftp://example.com/",
        "http://example.com/push", "https://ana:secret@127.0.0.1/push", "nonsense", "https://push.internal/x",
        "http://127.0.0.1:x@example.com/push", "http://127.0.0.1:x/push", "http://[127.0.0.1/push",
    ],
)  # fmt: skip
async def test_no_subscription_leads_into_the_internal_network(serve: Serve, endpoint: str):
    async with serve(**PUSHING) as nod:
        refused = await nod.client.post(
            "/api/push/devices", json=FakeBrowser(endpoint, KEY.public).subscription()
        )
        assert refused.status_code == 422
        assert await list_devices(nod) == []


async def test_an_allowed_host_may_be_without_tls_with_or_without_a_port(serve: Serve):
    async with serve(**PUSHING) as nod:
        for endpoint in ("http://127.0.0.1/push", "http://127.0.0.1:9/push"):
            await add(nod, FakeBrowser(endpoint, KEY.public))
        assert [each["host"] for each in await list_devices(nod)] == ["127.0.0.1", "127.0.0.1"]


async def test_a_host_that_is_internal_by_now_is_sent_nothing(serve: Serve, service: FakePushService):
    browser = service.subscribe(KEY.public)
    async with serve(**PUSHING) as nod:
        await add(nod, browser)
    async with serve(**PUSHING | {"NOD_WEBHOOK_HOSTS": ()}) as nod:
        await propose(nod)
        await push(nod)
        assert browser.tries == 0
        assert "not on the open Internet" in (await list_devices(nod))[0]["fault"]


@pytest.mark.parametrize(
    "keys",
    [{"p256dh": "AAAA", "auth": "AAAA"}, {"p256dh": "!", "auth": "!"}, {"auth": "AAAAAAAAAAAAAAAAAAAA"},
     {"p256dh": "B" + "A" * 86}],
)  # fmt: skip
async def test_invalid_keys_are_refused(serve: Serve, service: FakePushService, keys: dict[str, str]):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        body = browser.subscription() | {"keys": browser.keys | keys}
        assert (await nod.client.post("/api/push/devices", json=body)).status_code == 422


async def test_a_test_says_what_the_service_says_and_can_not_be_sent_in_a_row(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        device = await add(nod, browser)
        path = f"/api/push/devices/{device['id']}/test"
        assert (await nod.client.post(path)).json()["text"] == "Sent to Phone."
        assert browser.shown[0]["title"] == "Nod can reach this device"
        again = await nod.client.post(path)
        assert (again.status_code, again.headers["Retry-After"]) == (429, "10")
        nod.clock.forward(timedelta(seconds=11))
        browser.answer = Answer(503)
        refused = await nod.client.post(path)
        assert refused.json()["error"] == "The push service 127.0.0.1 did not take it: HTTP 503."
        nod.clock.forward(timedelta(seconds=11))
        browser.answer = Answer(410)
        assert (await nod.client.post(path)).status_code == 409
        assert await list_devices(nod) == []


async def test_only_ones_own_devices_are_changed_and_an_admin_removes_anyones(
    serve: Serve, service: FakePushService, sign_in: SignIn
):
    async with serve(**SIGNED_IN) as nod:
        chief, helper = await sign_in(nod, CHIEF), await sign_in(nod, HELPER)
        mine = await add(nod, service.subscribe(KEY.public), chief)
        theirs = await add(nod, service.subscribe(KEY.public), helper, name="Theirs")
        assert [each["name"] for each in await list_devices(nod, chief)] == ["Phone", "Theirs"]
        assert [each["name"] for each in await list_devices(nod, helper)] == ["Theirs"]
        for method, path, body in (
            ("PATCH", "", {"detailed": True}),
            ("POST", "/test", None),
            ("DELETE", "", None),
        ):
            answer = await helper.request(method, f"/api/push/devices/{mine['id']}{path}", json=body)
            assert answer.status_code == 404
        removed = await chief.delete(f"/api/push/devices/{theirs['id']}")
        assert removed.json()["text"] == "Removed: Theirs."
        assert await list_devices(nod, helper) == []


async def test_quiet_hours_are_those_of_the_persons_clock(serve: Serve, service: FakePushService):
    async with serve(**PUSHING) as nod:
        set_to(nod, datetime(2027, 1, 14, 12, 0, tzinfo=UTC))
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        quiet = {"begins": "22:00", "ends": "07:00", "zone": "America/New_York"}
        assert (await nod.client.put("/api/push/quiet", json=quiet)).status_code == 200
        assert (await nod.client.get("/api/push")).json()["quiet"] == quiet
        set_to(nod, datetime(2027, 1, 15, 2, 0, tzinfo=UTC))  # 21:00 there
        [first] = await propose(nod)
        await push(nod)
        assert len(browser.messages) == 1
        set_to(nod, datetime(2027, 1, 15, 4, 0, tzinfo=UTC))  # 23:00 there
        await propose(nod)
        await push(nod)
        assert len(browser.messages) == 1
        await nod.press(first, "decline")  # the end of what is shown makes no sound
        await push(nod)
        assert browser.shown[-1]["close"]
        set_to(nod, datetime(2027, 1, 15, 11, 59, tzinfo=UTC))
        await push(nod)
        assert len(browser.messages) == 2
        await push(nod, timedelta(minutes=1))
        assert browser.shown[-1]["title"] == "keep waits for you"
        assert (await nod.client.delete("/api/push/quiet")).status_code == 200
        assert (await nod.client.delete("/api/push/quiet")).status_code == 404


@pytest.mark.parametrize(
    "quiet",
    [{"begins": "7", "ends": "8"}, {"begins": "25:00", "ends": "07:00"}, {"begins": "07:00", "ends": "07:00"},
     {"zone": "Mars/Phobos"}, {"zone": "../../etc/passwd"}],
)  # fmt: skip
async def test_invalid_hours_are_refused(serve: Serve, quiet: dict[str, str]):
    async with serve(**PUSHING) as nod:
        body = {"begins": "22:00", "ends": "07:00", "zone": "UTC"} | quiet
        assert (await nod.client.put("/api/push/quiet", json=body)).status_code == 422


async def test_the_address_and_the_secret_of_a_device_are_kept_encrypted_and_told_to_no_one(
    serve: Serve, service: FakePushService, capsys: pytest.CaptureFixture[str]
):
    async with serve(**PUSHING, NOD_SECRET_KEY=(new_key(),)) as nod:
        browser = service.subscribe(KEY.public)
        await add(nod, browser)
        await propose(nod)
        await push(nod)
        assert len(browser.messages) == 1
        [row] = await nod.app.database.read(_devices)
        assert row.endpoint.startswith("fernet:")
        assert row.secret.startswith("fernet:")
        told = (await nod.client.get("/api/push")).text + "".join(capsys.readouterr())
        hidden = (browser.endpoint, browser.keys["auth"], browser.keys["p256dh"], KEY.private)
        assert [each for each in hidden if each in told] == []
    async with serve(**PUSHING, NOD_SECRET_KEY=(new_key(),)) as nod:
        await propose(nod, ("keep", {"text": "more"}))
        await push(nod)
        assert await list_devices(nod) == []


async def test_devices_that_are_added_at_the_same_time_stay_within_the_bound(
    serve: Serve, service: FakePushService
):
    async with serve(**PUSHING) as nod:
        bodies = [service.subscribe(KEY.public).subscription() for _ in range(MAX_DEVICES + 10)]
        answers = await asyncio.gather(*(nod.client.post("/api/push/devices", json=body) for body in bodies))
        assert [each.status_code for each in answers].count(201) == MAX_DEVICES


def read_memory_bytes() -> int:
    """The memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def set_to(nod: Served, moment: datetime) -> None:
    nod.clock.forward(moment - nod.clock())


def _devices(session: Session) -> list[DeviceRow]:
    return [DeviceRow(**row.model_dump()) for row in session.exec(select(DeviceRow))]


def _notifications(session: Session) -> list[str]:
    return [row.card_id for row in session.exec(select(NotificationRow))]

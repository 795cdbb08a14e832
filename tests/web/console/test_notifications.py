"""Notifications: the page about one's devices, and what the service worker makes of what is pushed.

Chromium is given pushes by the debugging protocol. Its own push service is not on this machine, so the
subscription that the page asks it for is one at the push service of the tests; and no one can tap what it
shows, so the tap is an event that the test makes.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, CDPSession, Page, expect
from playwright.sync_api import Error as PlaywrightError

from tests.fakes.push_service import FakeBrowser, FakePushService
from tests.features.push.conftest import KEY, PUSHING
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import NARROW, NewPage
from tests.web.console.test_installing import GOVERNED

pytestmark = pytest.mark.browser

SUBSCRIBED = """({ endpoint, keys }) => {
    let there = null;
    const unsubscribe = async () => { there = null; return true; };
    const made = { endpoint, unsubscribe, toJSON: () => ({ endpoint, keys }) };
    PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
        globalThis.subscribedWith = btoa(String.fromCharCode(...applicationServerKey));
        return (there = made);
    };
    PushManager.prototype.getSubscription = async () => there;
}"""
SHOWN_ONCE = """async (wanted) => {
    const { getNotifications } = await navigator.serviceWorker.ready.then((ready) => ({
        getNotifications: () => ready.getNotifications(),
    }));
    for (const until = Date.now() + 10_000; ; ) {
        const found = await getNotifications();
        if (JSON.stringify(found.map(({ title }) => title).sort()) === JSON.stringify(wanted.sort()))
            return found.map(({ title, body, tag, data, silent }) => ({ title, body, tag, data, silent }));
        if (Date.now() > until) throw new Error(`shown: ${JSON.stringify(found.map(({ title }) => title))}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}"""
TAPPED = """async () => {
    const [notification] = await registration.getNotifications();
    const event = new NotificationEvent("notificationclick", { notification });
    let done = null;
    Object.defineProperty(event, "waitUntil", { value: (work) => { done = work; } });
    dispatchEvent(event);
    await done;
}"""


@pytest.fixture
def service() -> Iterator[FakePushService]:
    served, loop = FakePushService(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(served.start(), loop).result(20)
    yield served
    asyncio.run_coroutine_threadsafe(served.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


class Worker:
    """The service worker of a page, which the debugging protocol pushes to."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page, self.origin = page, origin
        page.evaluate(GOVERNED)
        self.session: CDPSession = page.context.new_cdp_session(page)
        self.registration = ""
        self._pushed: list[str] = []  # since the last look at what is shown
        self.session.on("ServiceWorker.workerRegistrationUpdated", self._learn)
        self.session.send("ServiceWorker.enable")
        while not self.registration:  # events come in between
            page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 20))")

    def _learn(self, told: dict[str, Any]) -> None:
        for each in told["registrations"]:
            self.registration = each["registrationId"]

    def push(self, data: str | dict[str, Any]) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        self._pushed.append(text)
        self._deliver(text)

    def _deliver(self, text: str) -> None:
        given = {"origin": self.origin, "registrationId": self.registration, "data": text}
        self.session.send("ServiceWorker.deliverPushMessage", given)

    def expect_shown(self, *titles: str) -> list[dict[str, Any]]:
        """Wait until these are shown and no others.

        A busy browser may lose what the debugging protocol delivers, so what was not shown yet is delivered
        again: it replaces what it showed before.
        """
        pushed, self._pushed = self._pushed, []
        for _ in range(5):
            with contextlib.suppress(PlaywrightError):
                return self._wait_until_shown(titles)
            for text in pushed:
                self._deliver(text)
        return self._wait_until_shown(titles)

    def _wait_until_shown(self, titles: tuple[str, ...]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(SHOWN_ONCE, list(titles))
        return found


Opened = Callable[..., tuple[Page, Worker]]


@pytest.fixture
def opened(new_page: NewPage, whole_chromium: Browser) -> Opened:
    """A page in a browser that may notify, with its service worker."""

    def open_page(nod: Served, browser: FakeBrowser | None = None, path: str = "#/you", **options: Any):
        page = new_page(
            "about:blank", browser=whole_chromium, service_workers="allow",
            permissions=["notifications"], **options,
        )  # fmt: skip
        if browser is not None:
            given = json.dumps({"endpoint": browser.endpoint, "keys": browser.keys})
            page.add_init_script(f"({SUBSCRIBED})({given})")
        page.goto(f"{nod.url}{path}")
        return page, Worker(page, nod.url)

    return open_page


def test_what_is_pushed_is_shown_replaced_and_closed_and_a_tap_opens_the_card(serve: Serve, opened: Opened):
    with serve(**PUSHING) as nod:
        [proposal, *_] = nod.ask("Create an issue 'Order toner'")
        page, worker = opened(nod, path="#/tools")
        card = {"v": 1, "tag": proposal["id"], "id": proposal["id"], "body": "Asked in Slack", "at": 1}
        worker.push({**card, "title": "create_issue waits for you"})
        [shown] = worker.expect_shown("create_issue waits for you")
        assert (shown["body"], shown["tag"], shown["data"]) == (
            "Asked in Slack",
            proposal["id"],
            proposal["id"],
        )
        worker.push({**card, "title": "create_issue waits again", "again": True})
        worker.push({**card, "tag": "another", "id": "another", "title": "pay waits for you"})
        worker.expect_shown("create_issue waits again", "pay waits for you")
        worker.push({"v": 1, "tag": "another", "close": True})
        worker.expect_shown("create_issue waits again")
        [worker_scripts] = page.context.service_workers
        worker_scripts.evaluate(TAPPED)
        expect(page).to_have_url(f"{nod.url}#/inbox/{proposal['id']}")
        expect(page.locator("#inbox .card h3, #inbox .card h2").first).to_contain_text("Order toner")
        assert worker.expect_shown() == []
        assert nod.waiting()[0]["state"] == "proposed"


@pytest.mark.parametrize(
    ("data", "title"),
    [("", "Nod"), ("nonsense", "Nod"), ("[]", "Nod"), ("null", "Nod"),
     ('{"title": "<b>x</b>", "id": "../../evil", "tag": "https://evil.test"}', "<b>x</b>"),
     ('{"id": "https://evil.test/", "title": {"a": 1}}', "[object Object]")],
)  # fmt: skip
def test_what_is_not_of_nods_form_shows_a_line_and_leads_to_the_inbox_alone(
    serve: Serve, opened: Opened, data: str, title: str
):
    with serve(**PUSHING) as nod:
        page, worker = opened(nod, path="#/tools")
        worker.push(data)
        [shown] = worker.expect_shown(title)
        assert (shown["tag"], shown["data"]) == ("nod", "")
        page.context.service_workers[0].evaluate(TAPPED)
        expect(page).to_have_url(f"{nod.url}#/inbox")


def test_this_device_is_notified_tested_and_removed(serve: Serve, opened: Opened, service: FakePushService):
    with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        page, worker = opened(nod, browser)
        page.get_by_role("button", name="Notify this device").click()
        word = page.locator("#you-list .notice-word")
        expect(word).to_have_text("This device is notified from now on.")
        device = page.get_by_role("article", name="Device Chrome on Linux")
        expect(device).to_contain_text("This device")
        given = page.evaluate("subscribedWith").replace("+", "-").replace("/", "_").rstrip("=")
        assert given == KEY.public
        device.get_by_role("button", name="Send a test").click()
        expect(word).to_have_text("Sent to Chrome on Linux.")
        worker.push(json.dumps(browser.shown[0]))
        worker.expect_shown("Nod can reach this device")
        device.get_by_label("Show what is asked, and by whom").check()
        expect(device.get_by_label("Show what is asked, and by whom")).to_be_checked()
        page.get_by_role("button", name="Remove Chrome on Linux").click()
        device.get_by_role("button", name="Remove", exact=True).click()
        expect(word).to_have_text("Removed: Chrome on Linux.")
        expect(page.get_by_role("button", name="Notify this device")).to_be_visible()
        worker.expect_shown()


def test_quiet_hours_are_set_and_ended_there(serve: Serve, opened: Opened):
    with serve(**PUSHING) as nod:
        page, _ = opened(nod, timezone_id="Europe/Berlin")
        word = page.locator("#you-list .notice-word")
        page.get_by_label("Quiet from").fill("21:30")
        page.get_by_role("button", name="Set quiet hours").click()
        expect(page.locator("#you-list .notice-word")).to_have_text(
            "Quiet from 21:30 to 07:00 (Europe/Berlin)."
        )
        page.get_by_role("button", name="End quiet hours").click()
        expect(word).to_have_text("You have no quiet hours now.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_part_about_devices_is_open_to_everyone(
    serve: Serve, opened: Opened, service: FakePushService, scheme: str
):
    with serve(**PUSHING) as nod:
        browser = service.subscribe(KEY.public)
        page, _ = opened(nod, browser, color_scheme=scheme, **(NARROW if scheme == "dark" else {}))
        page.get_by_role("button", name="Notify this device").click()
        expect(page.get_by_role("article", name="Device Chrome on Linux")).to_be_visible()
        assert Axe().run(page).response["violations"] == []
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1]


def test_where_it_is_off_admins_read_one_line_and_others_nothing(serve: Serve, new_page: NewPage):
    with serve() as nod:
        page = new_page(f"{nod.url}#/you")
        expect(page.get_by_text("Notifications on phones and desktops are off.")).to_be_visible()
    with serve(NOD_ADMINS=("http:chief",)) as nod:
        page = new_page(f"{nod.url}#/you")
        expect(page.get_by_text("You are on this machine")).to_be_visible()
        expect(page.get_by_text("Notifications on phones")).to_have_count(0)

"""Many tabs of one browser: one of them holds the stream, and all show what is so."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Error, Page, expect

from tests.web.conftest import ANA, BEN
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import CARDS, NewPage, ask, button, said

pytestmark = pytest.mark.browser

NO_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', { get: () => undefined });"
NO_CHANNEL = "delete self.BroadcastChannel;"
HIDES = """
    self.away = false;
    Object.defineProperty(document, 'hidden', { get: () => self.away });
    self.turnAway = (away) => { self.away = away; document.dispatchEvent(new Event('visibilitychange')); };
"""


def streams(nod: Served) -> int:
    """How many the server has open."""
    return sum(nod.app.web.app.state.site.stream_limit.open_requests.values())


def await_streams(page: Page, nod: Served, count: int) -> None:
    """Return once the server has so many open; the page's clock passes the time."""
    for _ in range(500):
        if streams(nod) == count:
            return
        page.wait_for_timeout(20)
    assert streams(nod) == count


def tabs_of(page: Page, *addresses: str) -> list[Page]:
    """More tabs of the same browser."""
    more = [page.context.new_page() for _ in addresses]
    for each, address in zip(more, addresses, strict=True):
        each.goto(address)
    return more


@pytest.fixture
def leading(new_page: NewPage) -> Callable[..., tuple[Page, list[Page]]]:
    """A tab of the inbox that leads, and others that are told by it."""

    def open_tabs(nod: Served, more: int = 1, script: str = "", **options: object) -> tuple[Page, list[Page]]:
        page = new_page("about:blank", **options)
        page.context.add_init_script(HIDES + script)
        address = f"{nod.url}#/inbox"
        page.goto(address)
        await_streams(page, nod, 1)
        others = tabs_of(page, *([address] * more))
        for each in others:
            expect(each.locator("#inbox-list")).to_be_visible()
        return page, others

    return open_tabs


@pytest.mark.parametrize("script", ["", NO_LOCKS], ids=["locks", "plain address"])
def test_twelve_tabs_show_what_is_decided_in_one_of_them(nod: Served, leading, script):
    nod.ask("close #2 and assign #3 to Ana")
    (conversation,) = {each["conversation_id"] for each in nod.waiting()}
    page, inboxes = leading(nod, 5, script)
    conversations = tabs_of(page, *([f"{nod.url}#/c/{conversation}"] * 6))
    for each in conversations:
        expect(button(each.locator(CARDS), "Approve")).to_have_count(2)
    assert streams(nod) == 1
    detail = inboxes[-1].locator("#inbox-detail .card")
    expect(detail).to_contain_text("Close issue #2")
    button(detail, "Approve").click()
    button(conversations[-1].locator(CARDS, has_text="issue #3"), "Approve").click()
    for each in (page, *inboxes):
        expect(each.locator(".row", has_text="Approved by you")).to_have_count(2)
    for each in conversations:
        expect(each.locator(f"{CARDS}.succeeded")).to_have_count(2)
    assert streams(nod) == 1


@pytest.mark.parametrize("script", ["", NO_LOCKS], ids=["locks", "plain address"])
def test_where_the_tab_that_leads_is_closed_another_does_and_nothing_is_missed(nod: Served, leading, script):
    page, (other, third) = leading(nod, 2, script)
    page.close()
    nod.ask("close #2")
    await_streams(other, nod, 1)
    for each in (other, third):
        expect(each.locator(".row")).to_have_count(1)
    nod.ask("delete #5")
    for each in (other, third):
        expect(each.locator(".row")).to_have_count(2)


def test_where_the_tab_that_leads_crashes_another_does(nod: Served, leading):
    page, (other,) = leading(nod, 1)
    with pytest.raises(Error, match="crash"):
        page.goto("chrome://crash")
    nod.ask("close #2")
    expect(other.locator(".row")).to_have_count(1)


@pytest.mark.parametrize("script", ["", NO_LOCKS], ids=["locks", "plain address"])
def test_where_the_tab_that_leads_falls_silent_another_does(nod: Served, leading, script):
    page, (other,) = leading(nod, 1, script)
    # it tells the others nothing, and keeps its lock
    page.evaluate("BroadcastChannel.prototype.postMessage = () => {}")
    nod.ask("close #2")
    expect(other.locator(".row")).to_have_count(1)


@pytest.mark.parametrize("script", ["", NO_LOCKS, NO_CHANNEL], ids=["locks", "plain address", "old browser"])
def test_a_hidden_tab_holds_no_stream(nod: Served, leading, script):
    nod.ask("close #2")
    page, _ = leading(nod, 0, script)
    expect(page.locator(".row")).to_have_count(1)
    page.evaluate("turnAway(true)")
    await_streams(page, nod, 0)
    nod.press(nod.waiting()[0], "decline")
    nod.ask("delete #5")
    page.evaluate("turnAway(false)")
    expect(page.locator(".row")).to_have_text([re.compile("Delete issue #5")])
    await_streams(page, nod, 1)
    nod.ask("close #4")
    expect(page.locator(".row")).to_have_count(2)


def test_a_tab_that_is_hidden_leaves_leading_to_one_that_is_looked_at(nod: Served, leading):
    page, (other,) = leading(nod, 1)
    page.evaluate("turnAway(true)")
    nod.ask("close #2")
    expect(other.locator(".row")).to_have_count(1)
    other.evaluate("turnAway(true)")
    await_streams(other, nod, 0)
    page.evaluate("turnAway(false)")
    await_streams(page, nod, 1)
    expect(page.locator(".row")).to_have_count(1)


def test_a_page_that_comes_back_asks_again(nod: Served, leading):
    page, _ = leading(nod, 0)
    page.goto(f"{nod.url}#/rules")
    expect(page.get_by_text("No custom rules.")).to_be_visible()
    page.evaluate("turnAway(true)")
    nod.client.post("api/commands", json={"name": "approvals", "text": "policy always for delete_*"})
    page.evaluate("turnAway(false)")
    expect(page.get_by_role("article", name="Rule 1")).to_be_visible()


def test_an_answer_is_written_in_every_tab_of_its_conversation(serve: Serve, leading):
    with serve(pace=0.05) as nod:
        page, (other,) = leading(nod, 1)
        page.goto(f"{nod.url}#/")
        ask(page, "what can you do?")
        expect(page).to_have_url(re.compile("/c/"))
        other.goto(page.url)
        for each in (page, other):
            expect(said(each, "I'm a scripted demo")).to_be_visible()
            expect(each.locator("#working")).to_be_hidden(timeout=30_000)
        ask(other, "show #3")
        for each in (page, other):
            expect(each.locator("#thread .call")).to_be_visible()
        assert streams(nod) == 1


def test_the_tabs_of_two_people_in_one_browser_never_mix(serve: Serve, new_page: NewPage):
    with serve(NOD_HTTP_TOKENS=(f"ana:{ANA}", f"ben:{BEN}"), NOD_ADMINS=(), token=ANA) as nod:
        page = new_page(nod.url)
        other = page.context.new_page()
        other.goto(nod.url)
        for each, token in ((page, ANA), (other, BEN)):
            each.get_by_label("Access token").fill(token)
            button(each, "Sign in").click()
            each.locator("#to-inbox").click()
            expect(each.get_by_text("You're all caught up")).to_be_visible()
        await_streams(page, nod, 2)
        nod.ask("close #2")
        expect(page.locator(".row")).to_have_count(1)
        nod.client.post("api/chat", json={"message": "close #4"}, headers={"Authorization": f"Bearer {BEN}"})
        expect(other.locator(".row")).to_have_count(1)
        expect(other.locator(".row")).to_contain_text("#4")
        expect(page.locator(".row")).to_contain_text("#2")
        expect(page.locator(".row")).to_have_count(1)


def signed_in(nod: Served, page: Page, token: str) -> None:
    """Sign the browser in by a link, as the person of a token."""
    headers = {"Authorization": f"Bearer {token}"}
    answer = nod.client.post("api/commands", json={"name": "nod", "text": "console"}, headers=headers)
    page.goto("about:blank")
    page.goto(answer.json()["text"].partition("\n")[0])
    button(page, "Sign in").click()


def test_who_signs_out_in_one_tab_is_signed_out_in_all(serve: Serve, new_page: NewPage):
    with serve(NOD_HTTP_TOKENS=(f"ana:{ANA}",), token=ANA) as nod:
        page = new_page("about:blank")
        signed_in(nod, page, ANA)
        expect(page.locator("#who")).to_have_text("Signed in as ana")
        (other,) = tabs_of(page, nod.url)
        expect(other.locator("#who")).to_have_text("Signed in as ana")
        page.locator("#sign-out").click()
        for each in (page, other):
            expect(each.get_by_label("Access token")).to_be_visible()
        await_streams(page, nod, 0)


def test_a_tab_of_someone_else_becomes_that_of_who_is_signed_in_now(serve: Serve, new_page: NewPage):
    with serve(NOD_HTTP_TOKENS=(f"ana:{ANA}", f"ben:{BEN}"), token=ANA) as nod:
        page = new_page("about:blank")
        signed_in(nod, page, ANA)
        expect(page.locator("#who")).to_have_text("Signed in as ana")
        page.locator("#to-rules").click()
        (other,) = tabs_of(page, "about:blank")
        signed_in(nod, other, BEN)
        expect(other.locator("#who")).to_have_text("Signed in as ben")
        page.locator("#to-tools").click()
        expect(page.locator("#who")).to_have_text("Signed in as ben")


def asked_of(page: Page) -> list[str]:
    """What the page asks the API for, by name, as a list that grows."""
    asked: list[str] = []

    def note(address: str) -> None:
        if "/api/" in address:
            asked.append(address.partition("/api/")[2])

    page.on("request", lambda request: note(request.url))
    return asked


WAITS = """ // for the stream, however slow this machine is
    const { setTimeout } = self;
    self.setTimeout = (does, time, ...more) => setTimeout(does, time === 1000 ? 60_000 : time, ...more);
"""


def test_a_tab_that_opens_asks_once_for_all_it_shows(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana")
    conversation = f"conversations/{nod.waiting()[0]['conversation_id']}"
    page = new_page("about:blank")
    page.add_init_script(WAITS)
    asked = asked_of(page)
    inbox = ["proposals?mine=decide&limit=30&order=expires"]
    thread = [f"{conversation}/{each}" for each in ("messages", "team", "proposals")]
    views = (("inbox", inbox), (f"c/{conversation.partition('/')[2]}", thread))
    for waits, (view, own) in enumerate(views, 2):
        page.goto("about:blank")
        asked.clear()
        page.goto(f"{nod.url}#/{view}")
        expect(button(page.locator(".card"), "Approve").first).to_be_visible()
        expect(page).to_have_title(re.compile(rf"\({waits}\)"))
        await_streams(page, nod, 1)
        nod.ask("close #4")
        expect(page).to_have_title(
            re.compile(rf"\({waits + 1}\)")
        )  # told by the stream, after all that was asked
        always = ["me", "conversations?", "events?turns=true", "proposals?state=proposed"]
        assert sorted(each for each in asked if "questions" not in each) == sorted([*always, *own])


def test_a_tab_that_opens_behind_another_loads_its_view_when_it_is_looked_at(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page("about:blank")
    asked = asked_of(page)
    page.add_init_script(f"{HIDES} self.away = true;")
    page.goto(f"{nod.url}#/inbox")
    expect(page).to_have_title("Inbox · Nod")
    page.wait_for_load_state("networkidle")
    assert asked == []
    nod.press(nod.waiting()[0], "decline")
    nod.ask("delete #5")
    page.evaluate("turnAway(false)")
    expect(page.locator(".row")).to_have_text([re.compile("Delete issue #5")])
    await_streams(page, nod, 1)


def test_a_conversation_that_opens_behind_another_tab_has_its_title(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page("about:blank")
    page.add_init_script(f"{HIDES} self.away = true;")
    page.goto(f"{nod.url}#/c/{nod.waiting()[0]['conversation_id']}")
    expect(page).to_have_title("close #2 · Nod")
    assert streams(nod) == 0
    page.evaluate("turnAway(false)")
    expect(button(page.locator(CARDS), "Approve")).to_be_visible()


def test_the_inbox_makes_one_card_for_what_it_shows_first(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("close #4")
    page = new_page("about:blank")
    asked = asked_of(page)
    page.goto(f"{nod.url}#/inbox")
    expect(button(page.locator("#inbox-detail .card"), "Approve")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\(2\)"))
    assert len({each for each in asked if "questions" in each}) == 1


def test_a_tab_that_comes_back_asks_once_for_what_it_missed(nod: Served, leading):
    page, _ = leading(nod, 0)
    expect(page.get_by_text("You're all caught up")).to_be_visible()
    page.evaluate("turnAway(true)")
    await_streams(page, nod, 0)
    asked = asked_of(page)
    page.evaluate("turnAway(false)")
    await_streams(page, nod, 1)
    nod.ask("close #2")
    expect(page.locator(".row")).to_have_count(1)
    assert "me" in asked
    assert [each for each in set(asked) if asked.count(each) > 1 and "questions" not in each] == []


def test_where_no_stream_comes_the_view_is_loaded_without_it(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page("about:blank")
    page.route("**/api/events*", lambda route: route.abort())
    page.goto(f"{nod.url}#/inbox")
    expect(page.locator(".row")).to_have_count(1)
    expect(button(page.locator("#inbox-detail .card"), "Approve")).to_be_visible()

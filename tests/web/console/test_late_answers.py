"""What the page was told while an answer was on its way is not undone by that answer."""

import asyncio
import re

import pytest
from playwright.sync_api import Page, Route, expect

from bot.domain.model import Text
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import CARDS, NewPage, ask, button, said, wait_in_page
from tests.web.console.test_team import begun
from tests.web.scripted import ScriptedModel, say

pytestmark = pytest.mark.browser

LIST = "api/proposals?mine=decide&limit=30&order=expires"
COUNTS = """(() => {
    const { json } = Response.prototype;
    self.taken = [];
    Response.prototype.json = async function () {
        const answer = await json.call(this);
        setTimeout(() => taken.push(this.url)); // after what the page does with it
        return answer;
    };
})()"""


class Held:
    """What a page asks for at a path, from now on: the answers are of now, and arrive with ``come``."""

    def __init__(self, page: Page, nod: Served, path: str) -> None:
        self.page = page
        self.url = nod.url + path
        self.answer = nod.client.get(path).raise_for_status().text
        self._routes: list[Route] = []
        self._holds = True
        page.evaluate(COUNTS)
        page.add_init_script(COUNTS)
        page.route(re.compile(re.escape(self.url) + "$"), self._asked)

    def _asked(self, route: Route) -> None:
        if self._holds:
            self._routes.append(route)
        else:
            route.fallback()

    def until(self, asked: int) -> None:
        """Return once it was asked for so often; what is asked from then on is answered as ever."""
        while len(self._routes) < asked:
            self.page.wait_for_timeout(10)
        self._holds = False

    def come(self) -> None:
        """Return once the page has taken the answers in."""
        for route in self._routes:
            route.fulfill(body=self.answer, content_type="application/json")
        count = "([url, count]) => taken.filter((each) => each === url).length >= count"
        wait_in_page(self.page, count, [self.url, len(self._routes)])


def reloaded(page: Page, nod: Served, path: str, asked: int = 1) -> Held:
    """The page again, with what it asks for at the path on its way."""
    at = page.url
    page.goto("about:blank")  # what it was asking for is no longer wanted
    held = Held(page, nod, path)
    page.goto(at)
    held.until(asked)
    return held


def test_a_proposal_that_came_while_the_list_was_on_its_way_stays(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page(f"{nod.url}#/inbox")
    held = reloaded(page, nod, LIST)
    nod.ask("delete #5")
    rows = page.locator(".row")
    expect(rows).to_have_text([re.compile("Close issue #2"), re.compile("Delete issue #5")])
    held.come()
    expect(rows).to_have_text([re.compile("Close issue #2"), re.compile("Delete issue #5")])


def test_what_is_shown_first_is_the_first_of_the_list_not_what_came_before_it(nod: Served, new_page: NewPage):
    for message in ("close #2", "delete #5"):
        nod.ask(message)
    page = new_page(f"{nod.url}#/inbox")
    held = reloaded(page, nod, LIST)
    expect(page.locator(".row")).to_have_count(2)  # the feed begins with them, the newest first
    held.come()
    expect(page.locator("#inbox-detail .card")).to_contain_text("Close issue #2")
    expect(page.locator(".row a").first).to_have_attribute("aria-current", "true")


def test_one_that_ended_while_the_list_was_on_its_way_does_not_wait_again(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("delete #5")
    (first, second) = nod.waiting()
    page = new_page(f"{nod.url}#/inbox")
    held = reloaded(page, nod, LIST)
    row = page.locator(".row", has_text="#2")
    expect(row).to_contain_text("expires")
    nod.press(first, "decline")
    expect(row).to_contain_text("Declined")
    held.come()
    expect(row).to_contain_text("Declined")
    expect(row.get_by_role("checkbox")).to_be_disabled()
    nod.press(second, "decline")
    expect(page.locator(".row", has_text="#5")).to_contain_text("Declined")


def test_one_that_came_and_ended_while_the_list_was_on_its_way_is_not_waiting(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page(f"{nod.url}#/inbox")
    held = reloaded(page, nod, LIST)
    nod.ask("delete #5")
    row = page.locator(".row", has_text="#5")
    expect(row).to_be_visible()
    nod.press(nod.waiting()[-1], "cancel")
    expect(row).to_contain_text("Withdrawn")
    held.come()
    expect(page.locator(".row", has_text="#2")).to_be_visible()
    expect(row).to_have_count(0)


def test_what_came_back_from_an_outage_stands_in_the_order_of_the_list(nod: Served, new_page: NewPage):
    for message in ("close #2", "assign #3 to Ana", "delete #5"):
        nod.ask(message)
    page = new_page("about:blank")
    page.add_init_script("try { localStorage.setItem('nod.order', 'changed'); } catch {}")
    page.route("**/api/proposals?mine=*", lambda route: route.abort())
    page.goto(f"{nod.url}#/inbox")  # all it knows is what it asks for when the feed opens
    rows = page.locator(".row")
    expect(rows).to_have_text([re.compile("#5"), re.compile("#3"), re.compile("#2")])
    page.keyboard.press("j")
    expect(rows.nth(1).locator("a")).to_have_attribute("aria-current", "true")


def test_a_proposal_that_was_left_before_it_arrived_does_not_come_up(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    (gone,) = nod.waiting()
    nod.press(gone, "decline")
    nod.ask("delete #5")
    page = new_page(f"{nod.url}#/inbox")
    card = page.locator("#inbox-detail .card")
    expect(card).to_contain_text("Delete issue #5")
    held = Held(page, nod, f"api/proposals/{gone['id']}")
    page.evaluate("(id) => { location.hash = `#/inbox/${id}`; }", gone["id"])
    held.until(1)
    page.locator(".row a").click()
    held.come()
    expect(page.locator(".row a")).to_have_attribute("aria-current", "true")
    expect(card).to_contain_text("Delete issue #5")


def test_an_answer_that_was_told_is_not_forgotten(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #4")
    page = new_page(f"{nod.url}#/inbox")
    expect(page.locator(".row")).to_have_count(1)
    held = reloaded(page, nod, f"api/proposals/{proposal['id']}/questions")
    nod.press(proposal, "ask", reason="what changes?")
    answer = page.locator("#inbox-detail .answer")
    expect(answer.locator("li", has_text="open → closed")).to_be_visible()
    held.come()
    expect(answer.locator("li", has_text="open → closed")).to_be_visible()


def test_a_team_is_not_shown_as_it_was_before(nod: Served, new_page: NewPage):
    page = begun(nod, new_page)
    (plan,) = nod.waiting()
    team = page.locator("#team .team-list")
    held = reloaded(page, nod, f"api/conversations/{plan['conversation_id']}/team")
    nod.press(plan, "approve")
    expect(team).to_contain_text("waiting for approval", timeout=30_000)
    held.come()
    expect(page.locator("#thread .user")).to_be_visible()
    expect(team).to_contain_text("waiting for approval")


def test_a_message_that_was_sent_while_the_conversation_was_on_its_way_stays(serve: Serve, new_page: NewPage):
    more = asyncio.Event()  # never comes: the answer stays unfinished
    with serve(model=ScriptedModel(say("Hello."), [Text("I look."), more])) as nod:
        page = new_page(nod.url)
        ask(page, "hi")
        expect(said(page, "Hello.")).to_be_visible()
        expect(page.locator("#working")).to_be_hidden()
        conversation = nod.client.get("api/conversations").json()["conversations"][0]["id"]
        held = reloaded(page, nod, f"api/conversations/{conversation}/messages")
        ask(page, "and now?")
        second = page.locator("#thread .user[data-message]", has_text="and now?")
        expect(second).to_be_visible()
        held.come()
        expect(said(page, "Hello.")).to_be_visible()
        expect(second).to_be_visible()
        assert page.locator("#thread .said").all_inner_texts()[:3] == ["hi", "Hello.", "and now?"]


def test_a_group_of_which_one_was_decided_does_not_offer_it_again(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #2 and assign #3 to Ana and close #4")
    expect(button(page, "Approve all 3")).to_be_visible()
    (carrier,) = (each for each in nod.waiting() if each["group"])
    other = next(each for each in nod.waiting() if not each["group"])
    held = reloaded(page, nod, f"api/conversations/{carrier['conversation_id']}/proposals")
    expect(page).to_have_title(re.compile(r"\(3\)"))
    with page.expect_response(f"**/api/proposals/{carrier['id']}"):  # as the card with the group's buttons
        nod.press(other, "decline")
    held.come()
    expect(page.locator(f"{CARDS}.declined")).to_have_count(1)
    expect(page.locator(".crown")).to_contain_text(re.compile("2 of 3"))
    expect(button(page, "Approve all 2")).to_be_visible()


def test_a_page_shows_what_was_chosen_last(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page(f"{nod.url}#/usage")
    head = page.locator("#usage-list th").first
    expect(head).to_have_text("Day")
    held = Held(page, nod, "api/usage?by=conversation")
    page.get_by_role("button", name="Conversation", exact=True).click()
    held.until(1)
    page.get_by_role("button", name="Person", exact=True).click()
    expect(head).to_have_text("Person")
    held.come()
    expect(head).to_have_text("Person")


def test_a_rule_that_was_dropped_is_not_shown_again(nod: Served, new_page: NewPage):
    nod.client.post("api/commands", json={"name": "approvals", "text": "policy always for delete_*"})
    page = new_page(f"{nod.url}#/rules")
    rule = page.get_by_role("article", name="Rule 1")
    expect(rule).to_be_visible()
    page.locator("#to-inbox").click()
    held = Held(page, nod, "api/rules")
    page.locator("#to-rules").click()
    held.until(1)
    button(page, "Drop rule 1").click()
    expect(rule).to_have_count(0)
    held.come()
    expect(rule).to_have_count(0)


def test_a_pause_that_was_set_stays_above_the_page(nod: Served, new_page: NewPage):
    page = new_page(f"{nod.url}#/rules")
    expect(button(page, "Pause everything")).to_be_visible()
    held = Held(page, nod, "api/me")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    held.until(1)
    button(page, "Pause everything").click()
    banner = page.locator("#banners .banner", has_text="Paused")
    expect(banner).to_be_visible()
    held.come()
    expect(banner).to_be_visible()

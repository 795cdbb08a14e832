"""A word about a press is there for as long as it is so."""

import asyncio
import re

import pytest
from playwright.sync_api import Page, Route, expect

from bot.approvals import lifecycle
from bot.domain.annotations import Annotation
from tests.web.console.conftest import Served
from tests.web.console.test_console import CARDS, NewPage, ask, button, rare, violations

pytestmark = pytest.mark.browser


class LateAnswer:
    """The answer to a press, which arrives when the test says so."""

    def __init__(self, page: Page, verb: str) -> None:
        self._held: list[tuple[Route, str]] = []
        page.route(f"**/api/proposals/*/{verb}", self._hold)
        self.page = page

    def _hold(self, route: Route) -> None:
        self._held.append((route, route.fetch().text()))

    def come(self) -> None:
        while not self._held:
            self.page.wait_for_timeout(10)
        ((route, text),) = self._held
        with self.page.expect_response(route.request.url):
            route.fulfill(body=text, content_type="application/json")


@pytest.mark.parametrize("place", ["inbox", "conversation"])
def test_asked_does_not_stay_when_the_answer_was_there_first(nod: Served, new_page: NewPage, place: str):
    if place == "inbox":
        nod.ask("close #4")
        page = new_page(f"{nod.url}#/inbox")
        card = page.locator("#inbox-detail .card")
    else:
        page = new_page(nod.url)
        ask(page, "close #4")
        card = page.locator(CARDS)
    late = LateAnswer(page, "ask")
    rare(card, "Ask").click()
    card.locator(".card-form textarea").fill("what changes?")
    page.keyboard.press("Enter")
    answered = page.locator(".answer li, #thread .aside li", has_text="open → closed")
    said = page.locator("#thread .said li", has_text="open → closed")
    expect(answered.or_(said).first).to_be_visible()
    late.come()
    expect(card.locator(".card-form")).to_have_count(0)
    expect(button(card, "Approve")).not_to_have_attribute("aria-disabled", "true")
    expect(card.locator(".card-word")).to_be_hidden()


def test_what_a_press_did_is_not_said_once_someone_did_more(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #4")
    page = new_page(f"{nod.url}#/inbox")
    card = page.locator("#inbox-detail .card")
    rare(card, "Extend 24 h").click()
    word = card.locator(".card-word")
    expect(word).to_be_visible()
    nod.press(proposal, "extend")
    expect(word).to_be_hidden()


def test_a_copied_link_is_told_of_the_card_that_is_shown(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("delete #5")
    page = new_page(f"{nod.url}#/inbox")
    expect(page.locator(".row")).to_have_count(2)
    button(page, "Copy link").click()
    word = page.locator("#inbox-detail .notice-word")
    expect(word).to_be_visible()
    page.locator(".row a").nth(1).click()
    expect(word).to_be_hidden()


def test_an_error_of_a_page_goes_when_the_page_is_there(nod: Served, new_page: NewPage):
    page = new_page("about:blank")
    page.route("**/api/usage?*", lambda route: route.abort())
    page.goto(f"{nod.url}#/usage")
    word = page.locator("#usage-list .notice-word")
    expect(word).to_contain_text("Can't reach Nod")
    page.unroute("**/api/usage?*")
    button(page, "Person").click()
    expect(page.get_by_role("heading", name="Nothing has been used yet")).to_be_visible()
    expect(word).to_be_hidden()


def test_an_answer_to_a_tested_call_goes_when_the_call_is_another(nod: Served, new_page: NewPage):
    page = new_page(f"{nod.url}#/rules")
    form = page.get_by_role("form", name="Test a call")
    form.get_by_label("Tool").fill("close_issue")
    form.get_by_label("Arguments, as JSON").fill('{"number": 2}')
    button(form, "Test").click()
    expect(form.locator(".answer")).to_contain_text(re.compile("ask|approv", re.IGNORECASE))
    form.get_by_label("Tool").fill("delete_issue")
    expect(form.locator(".answer")).to_be_hidden()


def test_a_line_that_a_feature_adds_comes_to_the_card_on_screen_as_text(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #4")
    page = new_page(f"{nod.url}#/inbox")
    card = page.locator("#inbox-detail .card")
    expect(button(card, "Approve")).to_be_visible()
    line = Annotation("Second opinion", "closes <b>one</b>: https://evil.example/approve")
    now = nod.app.clock()
    writing = nod.app.database.write(lifecycle.annotate, proposal["id"], proposal["round"], line, now)
    assert asyncio.run_coroutine_threadsafe(writing, nod.loop).result(20)
    nod.loop.call_soon_threadsafe(nod.app.notifier.notify)
    expect(card.locator(".annotation", has_text=line.name)).to_have_text(line.line)
    expect(card.locator(".annotation a")).to_have_count(0)
    assert violations(page) == []
    button(card, "Approve").click()
    expect(page.locator("#inbox-detail")).not_to_contain_text("just changed")

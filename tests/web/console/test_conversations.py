"""The list of conversations: searched, and each renamed, exported and deleted from its page."""

import json

import pytest
from playwright.sync_api import expect

from bot.errors import ModelError
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import CARDS, NewPage, ask, button, card, said
from tests.web.scripted import ScriptedModel, say

pytestmark = pytest.mark.browser


def test_a_conversation_is_found_by_what_was_said_in_it(nod: Served, new_page: NewPage):
    nod.client.post("api/chat", json={"message": "Show open issues"}).raise_for_status()
    nod.client.post("api/chat", json={"message": "Who has the most work?"}).raise_for_status()
    page = new_page(nod.url)
    listed = page.locator("#conversations a")
    expect(listed).to_have_count(2)
    page.get_by_label("Search conversations").fill("dark mode")
    expect(listed).to_have_text(["Show open issues"])
    page.get_by_label("Search conversations").fill("most WORK")
    expect(listed).to_have_text(["Who has the most work?"])


def test_it_is_renamed_exported_and_deleted(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    expect(page.locator(CARDS)).to_be_visible()
    menu = page.locator("#conversation-menu")
    menu.locator("summary").click()
    menu.get_by_role("button", name="Rename").click()
    page.get_by_label("Title of the conversation").fill("The fourth")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("The fourth")
    menu.locator("summary").click()
    with page.expect_download() as saving:
        menu.get_by_role("button", name="Export").click()
    assert json.loads(saving.value.path().read_text())["title"] == "The fourth"
    menu.locator("summary").click()
    menu.get_by_role("button", name="Delete").click()
    button(page.locator("#told"), "Delete").click()
    expect(page.locator("#told")).to_contain_text("One of its proposals is open")
    button(card(page, "Close issue #4"), "Approve").click()
    expect(said(page, "Done: closed #4")).to_be_visible()
    menu.locator("summary").click()
    menu.get_by_role("button", name="Delete").click()
    button(page.locator("#told"), "Delete").click()
    expect(page.locator("#conversations a")).to_have_count(0)
    expect(page.get_by_role("heading", name="What would you like to get done?")).to_be_visible()


def test_a_turn_that_failed_has_a_button_that_continues_it(serve: Serve, new_page: NewPage) -> None:
    model = ScriptedModel([ModelError()], say("There it is."))
    with serve(model=model) as nod:
        page = new_page(nod.url)
        page.get_by_label("Message to Nod").fill("Where is it?")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Continue", exact=True).click()
        expect(page.locator("#thread")).to_contain_text("There it is.")
        expect(page.locator("#thread .user").last).to_contain_text("Continue")

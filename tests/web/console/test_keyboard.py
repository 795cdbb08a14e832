"""The console without a mouse: Tab, Enter, arrows and Escape reach and decide everything."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.console.conftest import Served
from tests.web.console.test_console import NewPage, button, issue, wait_until

pytestmark = pytest.mark.browser

MOST_STOPS = 120  # presses of Tab, more than any page here has stops


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the focus is on the target, and see that the focus is shown there."""
    expect(target).to_be_visible()
    focused = target.and_(page.locator(":focus-visible"))
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if focused.count():
            return
    raise AssertionError(f"Tab never reaches {target}")


def press_button(page: Page, within: Locator, name: str) -> None:
    tab_to(page, button(within, name))
    page.keyboard.press("Enter")


def open_card(page: Page, title: str) -> Locator:
    """Choose a proposal in the inbox's list, and return its card."""
    tab_to(page, page.locator(".row a").filter(has_text=title))
    page.keyboard.press("Enter")
    shown = page.locator("#inbox-detail .card")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text(title)
    return shown


def test_a_message_is_written_and_its_card_approved_without_a_mouse(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    expect(page.get_by_label("Message to Nod")).to_be_visible()
    tab_to(page, page.get_by_role("link", name="Skip to the message box"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message to Nod")).to_be_focused()
    page.keyboard.type("close #2")
    page.keyboard.press("Enter")
    card = page.locator("#thread .card").filter(has_text="Close issue #2")
    press_button(page, card, "Approve")
    wait_until(lambda: issue(nod, 2)["state"] == "closed")


def test_the_inbox_is_read_edited_and_decided_without_a_mouse(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("assign #3 to Ana")
    nod.ask("close #4")
    page = new_page(nod.url)
    tab_to(page, page.get_by_role("link", name="Inbox").first)
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(3)

    order = page.get_by_label("Order", exact=True)
    before = order.input_value()
    tab_to(page, order)
    page.keyboard.press("ArrowDown")
    expect(order).not_to_have_value(before)
    page.keyboard.press("ArrowUp")
    expect(order).to_have_value(before)

    card = open_card(page, "Close issue #2")
    press_button(page, card, "Decline")
    expect(card.get_by_label("Why not?")).to_be_focused()
    page.keyboard.press("Escape")
    expect(card.get_by_label("Why not?")).to_be_hidden()
    expect(button(card, "Decline")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("still open for a customer")
    press_button(page, card.locator("form"), "Decline")
    wait_until(lambda: len(nod.waiting()) == 2)

    card = open_card(page, "of issue #3")
    press_button(page, card, "Edit")
    form = card.locator(".card-form")
    expect(form).to_be_visible()
    tab_to(page, form.get_by_role("textbox", name="Assignee"))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Sam")
    press_button(page, form, "Approve as edited")
    wait_until(lambda: issue(nod, 3)["assignee"] == "Sam")

    card = open_card(page, "Close issue #4")
    press_button(page, card, "Approve")
    wait_until(lambda: issue(nod, 4)["state"] == "closed")
    assert issue(nod, 2)["state"] == "open"
    assert nod.waiting() == []

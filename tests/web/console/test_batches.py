"""A batch in the console: one table, ticked rows, a row that is looked at, and the keys of the inbox."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.tiers import thin
from tests.web.console.conftest import Served
from tests.web.console.test_console import NARROW, NewPage, ask, button, issue, violations

pytestmark = pytest.mark.browser


def table(page: Page) -> Locator:
    return page.locator("#thread .line-block:not(.live) .card.batch")


def asked(nod: Served, new_page: NewPage, **how: object) -> Page:
    page = new_page(nod.url, **how)
    ask(page, "close #2, close #3 and close #4")
    expect(table(page).locator("tbody tr")).to_have_count(3)
    return page


@pytest.mark.parametrize("scheme", thin(["light", "dark"]))
def test_a_batch_is_one_table_and_ticked_rows_are_approved(nod: Served, new_page: NewPage, scheme: str):
    page = asked(nod, new_page, color_scheme=scheme)
    assert violations(page) == []
    table(page).get_by_role("checkbox", name="Approve 2:").uncheck()
    button(table(page), "Approve 2, decline 1").click()
    expect(page.locator("#announcer")).to_contain_text(
        "2 approved, 1 declined."
    )  # the card: until they are done
    expect(table(page).locator("tbody .state")).to_have_text(["Done", "Declined", "Done"])
    expect(table(page).locator(".outcome")).to_contain_text("2 done, 1 declined. Approved by")
    assert [issue(nod, n)["state"] for n in (2, 3, 4)] == ["closed", "open", "closed"]


def test_a_row_is_looked_at_and_decided_by_itself(nod: Served, new_page: NewPage):
    page = asked(nod, new_page)
    table(page).locator("tbody tr").nth(1).get_by_role("button", name="Look").click()
    button(table(page).locator(".opened .card"), "Approve").click()
    expect(table(page).locator("tbody tr:not(.opened) .state")).to_have_text(["Waiting", "Done", "Waiting"])
    assert [issue(nod, n)["state"] for n in (2, 3, 4)] == ["open", "closed", "open"]


def test_a_look_at_a_row_counts_although_the_table_is_drawn_while_the_mouse_is_down(
    nod: Served, new_page: NewPage
):
    page = asked(nod, new_page)
    first, _, third = sorted(nod.waiting(), key=lambda p: str(p["description"]))
    nod.press(first, "decline")
    expect(table(page).locator("tbody .state").first).to_have_text("Declined")
    table(page).locator("tbody tr").nth(1).get_by_role("button", name="Look").hover()
    page.mouse.down()
    nod.press(third, "decline")
    expect(table(page).locator("tbody .state").last).to_have_text("Declined")
    page.mouse.up()
    expect(table(page).locator(".opened .card")).to_contain_text("#3")


def test_a_decision_does_not_count_if_the_table_is_drawn_while_the_mouse_is_down(
    nod: Served, new_page: NewPage
):
    page = asked(nod, new_page)
    button(table(page), "Decline all 3").hover()
    page.mouse.down()
    nod.press(next(p for p in nod.waiting() if "#2" in p["description"]), "decline")
    expect(button(table(page), "Decline all 2")).to_be_visible()
    page.mouse.up()
    expect(button(table(page), "Decline all 2")).to_be_visible()
    assert len(nod.waiting()) == 2


def test_the_inbox_has_one_line_for_a_batch_and_keys_approve_what_is_ticked(nod: Served, new_page: NewPage):
    page = asked(nod, new_page)
    page.goto(f"{nod.url}#/inbox")
    expect(page.locator(".rows .row")).to_have_count(1)
    expect(page.locator(".rows .row-small")).to_contain_text("One of 3 changes")
    box = page.locator("#inbox-detail .card.batch")
    expect(box.locator("tbody tr")).to_have_count(3)
    box.get_by_role("checkbox", name="Approve 3:").focus()
    page.keyboard.press("Space")
    page.locator(".rows .row a").focus()
    page.keyboard.press("a")
    expect(box.locator(".card-word")).to_contain_text("Press a or Enter")
    page.keyboard.press("a")
    expect(box.locator("tbody .state")).to_have_text(["Done", "Done", "Waiting"])


def test_a_batch_fits_a_phone(nod: Served, new_page: NewPage):
    page = asked(nod, new_page, **NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    button(table(page), "Approve 3").click()
    expect(table(page).locator("tbody .state")).to_have_text(["Done", "Done", "Done"])

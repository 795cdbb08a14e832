"""The inbox: a list and what is chosen in it, several together, by keys, and an address for each."""

import pytest
from playwright.sync_api import Page, expect

from tests.channels.http.console.conftest import Served
from tests.channels.http.console.test_console import NARROW, NewPage, button, fits, issue, rare, violations

pytestmark = pytest.mark.browser


def inbox(nod: Served, new_page: NewPage, waiting: int, **options: object) -> Page:
    page = new_page(f"{nod.url}#/inbox", **options)
    expect(page.locator(".row")).to_have_count(waiting)
    return page


def test_a_list_is_narrowed_by_words_tool_and_state(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana and delete #5")
    page = inbox(nod, new_page, 3)
    page.get_by_label("Search proposals").fill("#3")
    expect(page.locator(".row")).to_have_text(
        [r"Change assignee of issue #3 “Dark mode for the settings page”you, expires in 24 hours"]
    )
    page.get_by_label("Search proposals").fill("")
    page.get_by_label("Tool", exact=True).select_option("delete_issue")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row.destructive")).to_have_count(1)
    page.get_by_label("Tool", exact=True).select_option("")
    page.get_by_label("Person", exact=True).select_option(label="you")
    expect(page.locator(".row")).to_have_count(3)
    page.get_by_label("Person", exact=True).select_option("")
    page.get_by_role("button", name="Decided").click()
    expect(page.get_by_text("Nothing was decided yet")).to_be_visible()
    page.get_by_role("button", name="You asked").click()
    expect(page.locator(".row")).to_have_count(3)


def test_several_are_seen_and_approved_together(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana and delete #5")
    page = inbox(nod, new_page, 3)
    page.get_by_label("Select: Close issue #2").check()
    page.get_by_label("Select: Change assignee").check()
    expect(page.locator("#inbox-detail .card")).to_have_count(2)
    expect(page.get_by_text("2 selected.")).to_be_visible()
    button(page, "Approve 2").click()
    expect(page.locator("#inbox .notice-word")).to_have_text("Approved 2 of 2.")
    assert len(nod.waiting()) == 1


def test_it_is_read_and_decided_by_keys(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("delete #5")
    page = inbox(nod, new_page, 2)
    detail = page.locator("#inbox-detail .card")
    expect(detail).to_have_attribute(
        "aria-label", "Proposal, Waiting: Delete issue #5 “Document the rate limits of the public API”"
    )
    page.locator("body").press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keys")).to_be_hidden()
    page.keyboard.press("a")
    expect(button(detail, "Approve deletion")).to_be_focused()
    page.keyboard.press("d")
    expect(detail.get_by_label("Why not?")).to_be_focused()
    page.keyboard.press("Escape")
    expect(detail.get_by_label("Why not?")).to_be_hidden()
    page.keyboard.press("j")
    expect(detail).to_contain_text("Close issue #2")
    page.keyboard.press("e")
    expect(detail.locator(".card-form")).to_be_visible()
    page.keyboard.press("Escape")
    expect(detail.locator(".card-form")).to_be_hidden()
    page.keyboard.press("a")
    expect(detail.locator(".state")).to_have_text("Done")
    assert issue(nod, 2)["state"] == "closed"


def test_the_answer_to_a_question_comes_below_the_card_without_a_reload(nod: Served, new_page: NewPage):
    nod.ask("close #4")
    page = inbox(nod, new_page, 1)
    detail = page.locator("#inbox-detail .card")
    rare(detail, "Ask").click()
    page.keyboard.type("what *exactly* changes?")
    page.keyboard.press("Enter")
    answer = detail.locator(".answer")
    expect(answer.locator(".byline")).to_have_text("you: “what *exactly* changes?”")
    expect(answer.locator("li", has_text="open → closed")).to_be_visible()
    expect(detail.locator(".card-word")).to_be_hidden()
    expect(button(detail, "Approve")).to_be_enabled()
    assert violations(page) == []
    page.reload()
    expect(answer.locator("li", has_text="open → closed")).to_be_visible()
    button(detail, "Approve").click()
    expect(detail.locator(".state")).to_have_text("Done")
    expect(answer).to_have_count(0)


def test_each_proposal_has_an_address_that_opens_it_whatever_its_state(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #2")
    nod.press(proposal, "decline", reason="not now")
    page = new_page(f"{nod.url}#/inbox/{proposal['id']}")
    expect(page.locator("#inbox-detail .card")).to_contain_text("Declined by you: not now")
    page.goto(f"{nod.url}#/inbox/none")
    expect(page.locator("#inbox .notice-word")).to_have_text(
        "That proposal doesn't exist, or isn't for you to see."
    )


def test_on_a_phone_it_is_a_list_first_and_one_proposal_after_a_touch(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana")
    page = inbox(nod, new_page, 2, **NARROW)
    expect(page.locator("#inbox-detail")).to_be_hidden()
    assert fits(page)
    page.locator(".row a").first.click()
    expect(page.locator("#inbox-detail .card")).to_be_visible()
    expect(page.locator(".row").first).to_be_hidden()
    assert fits(page)
    page.get_by_role("link", name="All proposals").click()
    expect(page.locator(".row").first).to_be_visible()


def test_who_looks_elsewhere_is_notified_by_the_browser_if_they_turned_that_on(
    nod: Served, new_page: NewPage
):
    page = inbox(nod, new_page, 0)
    page.context.grant_permissions(["notifications"])
    page.add_init_script(
        "const Real = Notification;"
        "self.told = [];"
        "self.Notification = class extends Real {"
        "  constructor(title, options) { super(title, options); told.push([title, options.body, this]); }"
        "};"
        "Object.defineProperty(document, 'hidden', { get: () => self.away === true });"
    )
    page.reload()
    away = "self.away = true"
    page.evaluate(away)
    nod.ask("close #2")
    expect(page.locator(".row")).to_have_count(1)
    assert page.evaluate("told.length") == 0  # not turned on

    button(page, "Notify me in this browser").click()
    page.reload()
    nod.ask("close #3")
    expect(page.locator(".row")).to_have_count(2)
    assert page.evaluate("told.length") == 0  # it is looked at
    page.evaluate(away)
    proposal = next(p for p in nod.ask("delete #5") if p["tool_name"] == "delete_issue")
    page.wait_for_function("told.length === 1")
    assert page.evaluate("told[0].slice(0, 2)") == [proposal["description"], "you"]
    page.evaluate("told[0][2].dispatchEvent(new Event('click'))")
    expect(page).to_have_url(f"{nod.url}#/inbox/{proposal['id']}")

    button(page, "Turn notifications off").click()
    nod.ask("close #4")
    expect(page.locator(".row")).to_have_count(4)
    assert page.evaluate("told.length") == 1

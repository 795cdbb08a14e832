"""The inbox: a list and what is chosen in it, several together, by keys, and an address for each."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.console.conftest import Served
from tests.web.console.test_console import (
    NARROW,
    NewPage,
    button,
    fits,
    issue,
    rare,
    violations,
    wait_in_page,
    wait_until,
)

pytestmark = pytest.mark.browser


def inbox(nod: Served, new_page: NewPage, waiting: int, **options: object) -> Page:
    page = new_page(f"{nod.url}#/inbox", **options)
    expect(page.locator(".row")).to_have_count(waiting)
    return page


def test_what_waits_beyond_its_time_says_so(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = inbox(nod, new_page, 1)
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(hours=26))
    expect(page.locator(".row")).to_contain_text("you, was due to expire 2 hours ago")
    page.locator(".row").click()
    expect(page.locator(".byline").first).to_contain_text("Was due to expire 2 hours ago")


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
    expect(page.get_by_text("Nothing has been decided yet")).to_be_visible()
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


def shows(page: Page, title: str) -> None:
    """The pane shows that one card, and the list marks its row."""
    expect(page.locator("#inbox-detail .card")).to_have_count(1)
    expect(page.locator("#inbox-detail .card")).to_have_attribute("aria-label", re.compile(title))
    ident = page.locator("#inbox-detail .card").get_attribute("data-proposal")
    expect(page.locator(".row a[aria-current]")).to_have_attribute("href", f"#/inbox/{ident}")


def keys(page: Page, *pressed: str) -> None:
    """Each key more than a second after the one before."""
    for key in pressed:
        page.clock.fast_forward(1100)
        page.keyboard.press(key)


def by_keys(nod: Served, new_page: NewPage, waiting: int) -> Page:
    """The inbox with a clock that the test moves, its list in the order of changes."""
    page = new_page("about:blank")
    page.clock.install()
    page.goto(f"{nod.url}#/inbox")
    page.get_by_label("Order", exact=True).select_option("changed")
    page.reload()
    expect(page.locator(".row")).to_have_count(waiting)
    return page


def test_it_is_read_and_decided_by_keys_and_goes_to_the_next_that_waits(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("assign #3 to Ana")
    nod.ask("close #4")
    page = by_keys(nod, new_page, 3)
    detail = page.locator("#inbox-detail .card")
    shows(page, "Close issue #4")
    keys(page, "?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    keys(page, "d")
    expect(detail.get_by_label("Why not?")).to_be_focused()
    page.keyboard.press("Escape")
    keys(page, "j")
    shows(page, "Change assignee")
    keys(page, "e")
    expect(detail.locator(".card-form")).to_be_visible()
    page.keyboard.press("Escape")
    expect(detail.locator(".card-form")).to_be_hidden()
    keys(page, "a")
    expect(detail.locator(".card-word")).to_contain_text("Press a or Enter within five seconds")
    assert issue(nod, 3)["assignee"] is None
    keys(page, "Enter")
    shows(page, "Close issue #2")
    wait_until(lambda: issue(nod, 3)["assignee"] == "Ana")
    keys(page, "a", "a")
    shows(page, "Close issue #4")
    wait_until(lambda: issue(nod, 2)["state"] == "closed")
    assert issue(nod, 4)["state"] == "open"


def test_one_key_does_not_approve_and_its_second_counts_for_five_seconds_on_the_same_card(
    nod: Served, new_page: NewPage
):
    nod.ask("close #2")
    nod.ask("close #4")
    page = by_keys(nod, new_page, 2)
    word = page.locator("#inbox-detail .card-word")
    keys(page, "a")
    expect(word).to_be_visible()
    page.clock.fast_forward(5100)
    expect(word).to_be_hidden()
    page.keyboard.press("Enter")
    keys(page, "a", "j")
    shows(page, "Close issue #2")
    page.keyboard.press("Enter")
    keys(page, "k")
    shows(page, "Close issue #4")
    assert len(nod.waiting()) == 2


def test_what_is_typed_for_a_form_that_is_not_there_is_no_command(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = by_keys(nod, new_page, 1)
    keys(page, "a", "a")
    expect(page.locator("#inbox-detail .state")).to_have_text("Done")
    nod.ask("close #4")
    nod.ask("close #5")
    expect(page.locator(".row")).to_have_count(3)
    page.clock.fast_forward(1100)
    page.keyboard.type("d keep a joke aa")
    page.keyboard.press("Enter")
    shows(page, "Close issue #2")
    expect(page.locator(".card-form")).to_have_count(0)
    assert len(nod.waiting()) == 2
    keys(page, "k")
    shows(page, "Close issue #4")


def test_keys_act_only_on_what_the_list_shows_and_not_while_a_button_has_the_focus(
    nod: Served, new_page: NewPage
):
    (proposal,) = nod.ask("close #2")
    page = by_keys(nod, new_page, 1)
    page.goto(f"{nod.url}#/inbox/{proposal['id']}")
    page.get_by_label("Search proposals").fill("nothing like it")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    expect(page.locator("#inbox-detail .card")).to_have_count(0)
    page.get_by_label("Search proposals").fill("")
    expect(page.locator(".row")).to_have_count(1)
    page.locator("#inbox-detail .card").get_by_role("button").first.focus()
    keys(page, "d")
    expect(page.locator(".card-form")).to_have_count(0)
    page.evaluate("document.activeElement.blur()")
    button(page, "Decided").click()
    expect(page.get_by_text("Nothing has been decided yet")).to_be_visible()
    page.goto(f"{nod.url}#/inbox/{proposal['id']}")
    expect(page.locator("#inbox-detail .card.proposed")).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    keys(page, "d", "a", "a", "e")
    expect(page.locator(".card-form")).to_have_count(0)
    assert len(nod.waiting()) == 1


def test_the_keys_can_be_turned_off(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = by_keys(nod, new_page, 1)
    button(page, "Keys").click()
    page.get_by_label("Use these keys in this browser").uncheck()
    button(page.get_by_role("dialog"), "Close").click()
    page.reload()
    expect(page.locator(".row")).to_have_count(1)
    page.evaluate("document.activeElement.blur()")
    keys(page, "d", "?")
    expect(page.locator(".card-form")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_what_can_not_be_undone_asks_by_its_name_and_stays_out_of_what_is_approved_together(
    nod: Served, new_page: NewPage
):
    nod.ask("close #2 and assign #3 to Ana and delete #5")
    page = by_keys(nod, new_page, 3)
    page.get_by_label("Select all").check()
    expect(page.locator(".many p")).to_have_text("3 selected. 1 can't be undone: approve on the card.")
    button(page, "Approve 2").click()
    expect(page.locator("#inbox .notice-word")).to_have_text("Approved 2 of 2.")
    (left,) = nod.waiting()
    assert left["tool_name"] == "delete_issue"
    detail = page.locator("#inbox-detail .card")
    button(detail, "Approve deletion").click()
    form = detail.locator(".card-form")
    expect(form).to_contain_text("Delete issue #5 “Document the rate limits of the public API”?")
    expect(button(form, "Keep")).to_be_focused()
    assert violations(page) == []
    button(form, "Keep").click()
    expect(form).to_have_count(0)
    assert len(nod.waiting()) == 1
    button(detail, "Approve deletion").click()
    button(form, "Delete").click()
    expect(detail.locator(".state")).to_have_text("Done")


def test_what_expires_first_comes_first_and_a_search_keeps_what_is_selected(nod: Served, new_page: NewPage):
    first = nod.ask("close #2")[0]
    nod.ask("close #4")
    nod.press(first, "edit", arguments={**first["tool_arguments"]})
    page = inbox(nod, new_page, 2)
    titles = page.locator(".row-title")
    expect(titles.first).to_contain_text("#2")
    listed = [nod.client.get("api/proposals", params={"mine": "decide", "order": "expires", "limit": 1})]
    listed.append(nod.client.get(listed[0].url, params={"before": listed[0].json()["next"]}))
    ids = [each.json()["proposals"][0]["id"] for each in listed]
    assert ids == [p["id"] for p in sorted(nod.waiting(), key=lambda p: p["expires_at"])]
    page.get_by_label("Select: Close issue #2").check()
    page.get_by_label("Search proposals").fill("#4")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".many p")).to_have_text("1 selected, 1 not in this list.")
    page.get_by_label("Search proposals").fill("")
    expect(page.get_by_label("Select: Close issue #2")).to_be_checked()


SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) window.shifts.push([each.value, each.hadRecentInput]);
  }).observe({ type: "layout-shift", buffered: true });
}"""


def shifted(page: Page) -> float:
    """How much of the page has moved since this was asked last, as Chromium's layout-shift entries add up."""
    drawn = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    page.evaluate(drawn)
    return float(page.evaluate("() => window.shifts.splice(0).reduce((sum, [value]) => sum + value, 0)"))


@pytest.mark.parametrize("width", [390, 820, 1024, 1440])
def test_nothing_jumps(width: int, nod: Served, new_page: NewPage):
    for at in range(2, 8):
        nod.ask(f"close #{at}")
    page = new_page("about:blank", width=width)
    page.add_init_script(f"({SHIFTS})()")
    page.goto(f"{nod.url}#/inbox")
    many = len(nod.waiting())
    expect(page.locator(".row")).to_have_count(many)
    seen = {"load": shifted(page)}
    page.get_by_label("Search proposals").fill("#4")
    expect(page.locator(".row")).to_have_count(1)
    seen["search"] = shifted(page)
    page.get_by_label("Search proposals").fill("")
    expect(page.locator(".row")).to_have_count(many)
    seen["all again"] = shifted(page)
    page.get_by_label("Select: Close issue #4").check()
    seen["one is ticked"] = shifted(page)
    page.get_by_label("Select: Close issue #4").uncheck()
    seen["none is"] = shifted(page)
    button(page, "Decided").click()
    expect(page.locator(".row")).to_have_count(0)
    seen["another tab"] = shifted(page)
    assert seen.pop("load") < 0.05
    assert max(seen.values()) < 0.2, seen  # what stands below a list moves with its length


def test_all_of_a_search_are_selected_and_what_was_selected_before_it_stays(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana and delete #5")
    nod.ask("close #4")
    page = inbox(nod, new_page, 4)
    every = page.get_by_label("Select all")
    page.get_by_label("Select: Change assignee").check()
    expect(every).to_have_js_property("indeterminate", value=True)
    page.get_by_label("Search proposals").fill("Close")
    expect(page.locator(".row")).to_have_count(2)
    expect(every).not_to_be_checked()
    every.check()
    expect(page.locator(".many p")).to_have_text("3 selected, 1 not in this list.")
    expect(page.locator("#inbox-detail .card")).to_have_count(3)  # what is approved together is seen together
    page.get_by_label("Search proposals").fill("")
    expect(page.locator(".row")).to_have_count(4)
    expect(every).to_have_js_property("indeterminate", value=True)
    every.check()
    expect(page.locator(".many p")).to_have_text("4 selected. 1 can't be undone: approve on the card.")
    every.uncheck()
    expect(page.locator(".many")).to_be_hidden()
    page.get_by_label("Search proposals").fill("Close")
    expect(page.locator(".row")).to_have_count(2)
    every.check()
    button(page, "Approve 2").click()
    expect(page.locator("#inbox .notice-word")).to_have_text("Approved 2 of 2.")
    assert sorted(each["description"][:6] for each in nod.waiting()) == ["Change", "Delete"]


def test_under_a_search_or_another_tab_no_card_stands_that_the_list_does_not_show(
    nod: Served, new_page: NewPage
):
    nod.ask("close #2")
    nod.ask("close #4")
    page = inbox(nod, new_page, 2)
    page.locator(".row a", has_text="#4").click()
    shows(page, "Close issue #4")
    page.get_by_label("Search proposals").fill("#2")
    expect(page.locator(".row")).to_have_count(1)
    shows(page, "Close issue #2")
    button(page, "Decided").click()
    expect(page.locator(".row")).to_have_count(0)
    expect(page.locator("#inbox-detail .card")).to_have_count(0)


def test_on_a_phone_what_is_ticked_stays_in_the_list_until_it_is_reviewed(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana")
    page = inbox(nod, new_page, 2, **NARROW)
    page.get_by_label("Select: Close issue #2").check()
    expect(page.locator(".row")).to_have_count(2)
    expect(page.locator(".row").first).to_be_visible()
    button(page, "Review 1 selected").click()
    expect(button(page, "Approve 1")).to_be_visible()
    page.get_by_role("link", name="All proposals").click()
    expect(page.locator(".row").first).to_be_visible()
    assert fits(page)


@pytest.mark.parametrize("width", [390, 820, 1024, 1440])
def test_the_card_and_its_buttons_are_seen(width: int, nod: Served, new_page: NewPage):
    for at in range(8):
        nod.client.post("api/chat", json={"message": f"hello, this is conversation {at}"}).raise_for_status()
    nod.ask("close #2 and assign #3 to Ana")
    page = inbox(nod, new_page, 2, width=width)
    page.locator(".row a").first.click()
    card = page.locator("#inbox-detail .card").bounding_box()
    approve = button(page.locator("#inbox-detail .card"), "Approve").bounding_box()
    assert card["width"] >= 340
    assert approve["y"] + approve["height"] <= 800
    assert fits(page)
    listed, foot = (page.locator(each).bounding_box() for each in ("#conversations", ".side-foot"))
    assert listed["y"] + listed["height"] <= foot["y"]
    assert foot["y"] + foot["height"] <= 801
    assert violations(page) == []


@pytest.mark.parametrize("width", [820, 1024])
def test_no_label_is_broken_in_a_word_and_an_empty_value_says_so(width: int, nod: Served, new_page: NewPage):
    body = {"summary": "Deploy", "fields": {"environment": "none", "recipient_account_holder": ""}}
    nod.client.post("api/approvals", json=body).raise_for_status()
    page = inbox(nod, new_page, 1, width=width)
    page.locator(".row a").first.click()
    shown = page.locator("#inbox-detail .card")
    label = shown.locator("dt", has_text="Environment")
    lines = "each => [each.getBoundingClientRect().height, parseFloat(getComputedStyle(each).lineHeight)]"
    height, line = label.evaluate(lines)
    assert height < 1.5 * line
    expect(shown.locator(".value.new")).to_have_text("new value: none")
    expect(shown.locator(".nothing")).to_have_text("new value: empty text")


def test_the_row_of_the_card_that_an_address_names_is_in_view(nod: Served, new_page: NewPage):
    for at in range(25):
        body = {"summary": f"Deploy 1.{at}", "ttl_seconds": 3600 + at}
        nod.client.post("api/approvals", json=body).raise_for_status()
    (last,) = (p for p in nod.waiting() if p["description"] == "Deploy 1.24")
    page = new_page(f"{nod.url}#/inbox/{last['id']}")
    expect(page.locator(".row a[aria-current=true]")).to_be_in_viewport()


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
    nod: Served, new_page: NewPage, whole_chromium: Browser
):
    page = new_page("about:blank", browser=whole_chromium)
    page.context.grant_permissions(["notifications"])
    page.add_init_script(
        "const Real = Notification;"
        "self.told = [];"
        "self.Notification = class extends Real {"
        "  constructor(title, options) { super(title, options); told.push([title, options.body, this]); }"
        "};"
        "Object.defineProperty(document, 'hidden', { get: () => self.away === true });"
    )
    with page.expect_response("**/api/events?*"):  # a hidden tab would open no stream
        page.goto(f"{nod.url}#/inbox")
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
    wait_in_page(page, "told.length === 1")
    assert page.evaluate("told[0].slice(0, 2)") == [proposal["description"], "you"]
    page.evaluate("told[0][2].dispatchEvent(new Event('click'))")
    expect(page).to_have_url(f"{nod.url}#/inbox/{proposal['id']}")

    button(page, "Turn notifications off").click()
    nod.ask("close #4")
    expect(page.locator(".row")).to_have_count(4)
    assert page.evaluate("told.length") == 1


def test_a_press_on_a_link_of_the_menu_counts_although_its_number_changes(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    link = page.locator("#to-inbox")
    expect(link).to_be_visible()
    box = link.bounding_box()
    assert box
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    page.mouse.down()
    nod.ask("close #2")
    expect(link.locator(".count")).to_contain_text("1")
    page.mouse.up()
    expect(page.locator("#inbox-detail .card")).to_contain_text("#2")

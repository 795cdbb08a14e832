"""What is drawn again under someone's hands: focus, typed words, what is unfolded and scrolled stay."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import CARDS, NewPage, ask, button, rare
from tests.web.console.test_inbox import inbox
from tests.web.console.test_late_answers import LIST, reloaded

pytestmark = pytest.mark.browser


def test_who_writes_a_reason_is_not_interrupted_when_the_list_arrives(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("delete #5")
    page = inbox(nod, new_page, 2)
    held = reloaded(page, nod, LIST)
    page.locator(".row a").first.click()  # until the list is there no card is shown by itself
    detail = page.locator("#inbox-detail .card")
    button(detail, "Decline").click()
    reason = detail.get_by_label("Why not?")
    page.keyboard.type("not ")
    held.come()
    page.keyboard.type("now")
    expect(reason).to_have_value("not now")
    expect(reason).to_be_focused()


def test_the_buttons_for_several_keep_the_focus_while_one_of_them_changes(nod: Served, new_page: NewPage):
    nod.ask("close #2 and assign #3 to Ana and delete #5")
    page = inbox(nod, new_page, 3)
    for box in page.locator(".row input").all():
        box.check()
    button(page, "Approve 2").focus()
    nod.press(nod.waiting()[0], "decline")
    expect(button(page, "Approve 1")).to_be_focused()


def test_a_row_that_was_decided_by_another_keeps_the_focus(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #2")
    page = inbox(nod, new_page, 1)
    page.get_by_label("Select: Close issue #2").focus()
    nod.press(proposal, "decline")
    expect(page.locator(".row")).to_contain_text("Declined")
    expect(page.locator(".row a")).to_be_focused()


def test_what_is_unfolded_in_a_card_stays_while_it_changes(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask(f"create an issue '{'long ' * 30}' with high priority, assigned to Sam")
    page = inbox(nod, new_page, 1, bypass_csp=True)
    page.add_style_tag(content="details .boxed { max-height: 2em !important; overflow: auto; }")
    detail = page.locator("#inbox-detail .card")
    detail.get_by_text("Details").click()
    box = detail.locator("details[data-part=all] .boxed")
    expect(box).to_be_visible()
    box.evaluate("(each) => { each.scrollTop = 17; }")
    summary = detail.locator("details[data-part=all] summary")
    expect(summary).to_be_focused()
    before = detail.locator("time[data-told=expiry]").get_attribute("datetime") or ""
    nod.press(proposal, "extend")
    expect(detail.locator("time[data-told=expiry]")).not_to_have_attribute("datetime", before)
    expect(summary).to_be_focused()
    expect(box).to_be_visible()
    assert box.evaluate("(each) => each.scrollTop") == 17


def test_an_open_menu_stays_open_while_the_card_changes(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #4")
    page = inbox(nod, new_page, 1)
    detail = page.locator("#inbox-detail .card")
    detail.locator(".menu summary").click()
    button(detail, "Ask").focus()
    before = detail.locator("time[data-told=expiry]").get_attribute("datetime") or ""
    nod.press(proposal, "extend")
    expect(detail.locator("time[data-told=expiry]")).not_to_have_attribute("datetime", before)
    expect(button(detail, "Ask")).to_be_visible()
    expect(button(detail, "Ask")).to_be_focused()


def test_the_buttons_above_a_group_keep_the_focus_while_one_of_it_is_decided(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #2 and assign #3 to Ana and close #4")
    expect(page.locator(CARDS)).to_have_count(3)
    button(page, "Approve all 3").focus()
    nod.press(next(each for each in nod.waiting() if not each["group"]), "decline")
    expect(button(page, "Approve all 2")).to_be_focused()


def test_a_call_that_was_unfolded_stays_so_when_its_answer_is_complete(serve: Serve, new_page: NewPage):
    with serve(pace=0.1) as nod:
        page = new_page(nod.url)
        ask(page, "show open issues")
        page.locator("#thread .live .call summary").click()
        expect(page.locator("#working")).to_be_hidden(timeout=30_000)
        expect(page.locator("#thread .line-block:not(.live) .call .boxed")).to_be_visible()
        expect(page.locator("#thread .call summary")).to_be_focused()


def test_what_stands_behind_the_menu_gives_the_focus_back_to_it(nod: Served, new_page: NewPage):
    nod.ask("close #4")
    page = inbox(nod, new_page, 1)
    detail = page.locator("#inbox-detail .card")
    rare(detail, "Ask").click()
    expect(detail.locator(".card-form textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(detail.locator(".menu summary")).to_be_focused()
    before = detail.locator("time[data-told=expiry]").get_attribute("datetime") or ""
    rare(detail, "Extend 24 h").click()
    expect(detail.locator("time[data-told=expiry]")).not_to_have_attribute("datetime", before)
    expect(button(detail, "Extend 24 h")).to_be_hidden()
    expect(detail.locator(".menu summary")).to_be_focused()


def test_a_rule_that_was_dropped_leaves_the_focus_on_the_page(nod: Served, new_page: NewPage):
    for words in ("policy always for delete_*", "policy never for update_*"):
        nod.client.post("api/commands", json={"name": "approvals", "text": words}).raise_for_status()
    page = new_page(f"{nod.url}#/rules")
    drop = button(page, "Drop rule 1")
    drop.focus()
    page.keyboard.press("Enter")
    expect(drop).to_have_count(0)
    expect(page.get_by_role("article", name=re.compile("Rule"))).to_have_count(1)
    expect(page.locator("#page-scroll")).to_be_focused()

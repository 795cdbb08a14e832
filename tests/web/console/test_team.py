"""A team in the console: the offline model's lead and teammates, its plan card, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from bot.agent.demo.team import REQUEST
from tests.web.console.conftest import Served
from tests.web.console.test_console import NARROW, NewPage, ask, button, fits, issue, rare, said

pytestmark = pytest.mark.browser

PLAN = "#team .card.proposed"


def begun(nod: Served, new_page: NewPage, **options: int) -> Page:
    page = new_page(nod.url, **options)
    ask(page, REQUEST)
    expect(page.locator(PLAN)).to_contain_text("Plan: ")
    return page


def test_the_team_is_shown_and_its_plan_approved_and_carried_out(nod: Served, new_page: NewPage):
    page = begun(nod, new_page)
    team = page.locator("#team")
    expect(team.get_by_role("heading", name="Team: 2 teammates, 1 at work")).to_be_visible()
    expect(team.locator(".team-list")).to_contain_text("waiting for its plan to be approved")
    expect(said(page, "issue-surveyor is done")).to_contain_text("5 issues are open")
    plan = page.locator(PLAN)
    for words in ("Give #4", "update_issue", "Risks", "Alternatives", "a teammate, for you"):
        expect(plan).to_contain_text(words)
    assert fits(page)
    button(plan, "Approve plan").click()
    changes = page.locator("#team .card.proposed")
    expect(changes).to_have_count(2)
    assert issue(nod, 4)["assignee"] is None
    page.get_by_role("button", name="Approve all 2").click()
    expect(team.get_by_role("heading", name="Team: 2 teammates, all ended")).to_be_visible()
    expect(said(page, "issue-organiser is done")).to_be_visible()
    assert issue(nod, 4)["assignee"] is not None
    expect(team.locator(".card").first).to_be_hidden()  # folded, so that the last word is seen
    expect(said(page, "issue-organiser is done")).to_be_in_viewport()
    page.reload()
    expect(team.locator(".card")).to_have_count(3)
    expect(team.locator(".card").first).to_be_hidden()
    team.get_by_text("3 cards").click()
    expect(team.locator(".card").first).to_be_visible()


def test_a_plan_is_sent_back_with_words_and_comes_again(nod: Served, new_page: NewPage):
    page = begun(nod, new_page)
    button(page.locator(PLAN), "Ask for changes").click()
    form = page.locator("#team form")
    button(form, "Ask for changes").click()  # what should change is needed
    expect(form.locator("textarea:invalid")).to_be_focused()
    form.locator("textarea").fill("only #4")
    button(form, "Ask for changes").click()
    expect(page.locator(PLAN)).to_contain_text("Plan, version 2: ")
    expect(page.locator("#team .card.declined .state")).to_have_text("Sent back")


def test_a_plan_is_rejected_and_its_teammate_ends(nod: Served, new_page: NewPage):
    page = begun(nod, new_page)
    button(page.locator(PLAN), "Reject").click()
    page.locator("#team form textarea").fill("not now")
    button(page.locator("#team form"), "Reject").click()
    expect(said(page, re.compile("rejected the plan. Reason: not now"))).to_be_visible()
    assert issue(nod, 4)["assignee"] is None


def test_a_plan_approved_with_its_steps_says_what_it_allows_and_runs(nod: Served, new_page: NewPage):
    page = begun(nod, new_page)
    rare(page.locator(PLAN), "Approve plan and its steps").click()
    form = page.locator("#team form")
    expect(form).to_contain_text("may then use these without asking")
    expect(form).to_contain_text("update_issue")
    button(form, "Approve and allow").click()
    expect(page.locator("#team .card.succeeded")).to_have_count(3)
    assert issue(nod, 4)["assignee"] is not None


def test_the_team_fits_a_phone(nod: Served, new_page: NewPage):
    assert fits(begun(nod, new_page, **NARROW))

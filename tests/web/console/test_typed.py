"""What was typed is not lost when a session ends, and is for no one else."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import ANA, BEN
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import NARROW, NewPage, button
from tests.web.console.test_tabs import signed_in

pytestmark = pytest.mark.browser

TWO = {"NOD_HTTP_TOKENS": (f"ana:{ANA}", f"ben:{BEN}"), "NOD_ADMINS": ("http:ana", "http:ben"), "token": ANA}
SIZES = """[...document.querySelectorAll("input, textarea, select")]
    .map((each) => parseFloat(getComputedStyle(each).fontSize))"""


def enter(page: Page, token: str) -> None:
    page.get_by_label("Access token").fill(token)
    button(page, "Sign in").click()
    expect(page.locator("#who")).to_be_visible()


def expire(page: Page) -> None:
    """Let the session of this browser be over, and the tab be looked at again."""
    page.context.clear_cookies()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_label("Access token")).to_be_visible()


def test_a_reason_an_edit_and_a_message_are_there_after_signing_in_again(serve: Serve, new_page: NewPage):
    with serve(**TWO) as nod:
        nod.ask("close #2")
        nod.ask("rename #3 to 'Dark settings'")
        page = new_page("about:blank")
        signed_in(nod, page, ANA)
        expect(page.locator("#who")).to_have_text("Signed in as ana")
        page.locator("#message").fill("half a message")
        page.locator("#to-inbox").click()
        detail = page.locator("#inbox-detail .card")
        expect(detail).to_contain_text("#2")
        button(detail, "Decline").click()
        detail.get_by_label("Why not?").fill("not before the rel")
        page.locator(".row a", has_text="#3").click()
        button(detail, "Edit").click()
        detail.get_by_role("textbox", name="Title").fill("Darker set")
        expire(page)
        enter(page, ANA)
        expect(detail.get_by_role("textbox", name="Title")).to_have_value("Darker set")
        page.locator(".row a", has_text="#2").click()
        expect(detail.get_by_label("Why not?")).to_have_value("not before the rel")
        page.locator("#new").click()
        expect(page.locator("#message")).to_have_value("half a message")


def test_what_one_person_typed_is_not_shown_to_another(serve: Serve, new_page: NewPage):
    with serve(**TWO) as nod:
        nod.ask("close #2")
        page = new_page("about:blank")
        signed_in(nod, page, ANA)
        expect(page.locator("#who")).to_have_text("Signed in as ana")
        page.locator("#message").fill("for no one else")
        expire(page)
        enter(page, BEN)
        expect(page.locator("#who")).to_have_text("Signed in as ben")
        expect(page.locator("#message")).to_have_value("")
        assert "for no one else" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_signing_out_forgets_what_was_typed_in_every_tab(serve: Serve, new_page: NewPage):
    with serve(**TWO) as nod:
        page = new_page("about:blank")
        signed_in(nod, page, ANA)
        expect(page.locator("#who")).to_be_visible()
        other = page.context.new_page()
        other.goto(nod.url)
        for each in (page, other):
            each.locator("#message").fill("mine")
        page.locator("#sign-out").click()
        for each in (page, other):
            expect(each.get_by_label("Access token")).to_be_visible()
            assert "mine" not in each.evaluate("JSON.stringify(sessionStorage)")


def test_on_a_phone_no_field_is_so_small_that_it_zooms(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page(f"{nod.url}#/inbox", **NARROW)
    for path in ("inbox", "rules", "audit", "insights"):
        page.evaluate("(path) => { location.hash = `#/${path}`; }", path)
        expect(page.locator("#title")).not_to_have_text("New conversation")
        assert min(page.evaluate(SIZES)) >= 16


def test_with_forced_colours_the_chosen_row_is_marked(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    nod.ask("delete #5")
    page = new_page(f"{nod.url}#/inbox", forced_colors="active")
    outlines = "[...document.querySelectorAll('.row')].map((each) => getComputedStyle(each).outlineStyle)"
    expect(page.locator(".row")).to_have_count(2)
    expect(page.locator(".row [aria-current]")).to_have_count(1)
    assert sorted(page.evaluate(outlines)) == ["none", "solid"]

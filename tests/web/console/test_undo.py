"""Undo in the console: what it puts back is shown first, and its own card comes by itself."""

import re

import pytest
from playwright.sync_api import expect

from bot.domain.verbs import Verb
from tests.tiers import thin
from tests.web.console.conftest import Served
from tests.web.console.test_console import NARROW, NewPage, ask, button, card, violations

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", thin(["light", "dark"]))
def test_a_change_is_undone_where_it_was_approved(nod: Served, new_page: NewPage, scheme: str) -> None:
    page = new_page(nod.url, color_scheme=scheme, **NARROW)
    ask(page, "set #3 to urgent")
    shown = card(page, "issue #3").first
    expect(shown).to_contain_text("Can undo for 30 min")
    button(shown, "Approve").click()
    expect(shown).to_contain_text("Checked: priority is urgent.")
    button(shown, "Undo").click()
    form = shown.get_by_role("form", name="Undo")
    expect(form).to_contain_text("Priority: urgent → low")
    expect(form.get_by_role("button", name="Keep it")).to_be_focused()
    assert violations(page) == []
    form.get_by_role("button", name="Undo").click()

    expect(shown).to_contain_text("Undone by you")
    expect(shown.locator("[data-verb=undo]")).to_have_count(0)
    expect(page.locator("#thread")).to_contain_text("Undo pressed by you")
    expect(card(page, "issue #3").nth(1)).to_contain_text("Checked: priority is low.")
    assert violations(page) == []


def test_what_was_made_is_undone_by_a_card_that_asks(nod: Served, new_page: NewPage) -> None:
    page = new_page(nod.url)
    ask(page, "create an issue titled Printer is on fire")
    shown = card(page, "Printer is on fire").first
    button(shown, "Approve").click()
    button(shown, "Undo").click()
    shown.get_by_role("form", name="Undo").get_by_role("button", name="Undo").click()
    expect(shown).to_contain_text("It waits on a card of its own.")
    deletion = card(page, "Delete issue").last
    expect(deletion).to_have_class(re.compile("destructive"))
    expect(button(deletion, "Approve deletion")).to_be_visible()
    assert [p["verbs"] for p in nod.waiting()] == [[Verb.APPROVE, Verb.DECLINE, Verb.EXTEND]]

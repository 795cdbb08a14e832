"""What is data stays as it is: translated pages, other scripts, input methods."""

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.tiers import thin
from tests.web.console.conftest import Served
from tests.web.console.test_console import CARDS, NewPage, ask, button

pytestmark = pytest.mark.browser

TRANSLATED = """() => {
    const free = (node) => {
        const marked = node.parentElement.closest("[translate], script, style");
        return !marked || marked.getAttribute("translate") === "yes";
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    const words = nodes.filter((node) => node.data.trim() && free(node));
    for (const node of words) {
        const font = document.createElement("font");
        font.textContent = node.data.replace(/[\\p{L}\\p{N}]+/gu, "Ж");
        node.replaceWith(font);
    }
    return words.length;
}"""
COMPOSING = """(element, [key, ways]) => element.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...ways }))"""
SAFARI: dict[str, Any] = {"keyCode": 229}
OTHERS: dict[str, Any] = {"isComposing": True}
TITLES = {
    "Arabic": "نقل الإعداد من prod إلى test",
    "Hebrew": "העברה מ-prod אל test",
    "Japanese": "ログインページが開かない",
    "German": "Größenänderung schlägt fehl",
}


def test_a_translation_of_the_page_changes_nothing_of_what_is_decided(nod: Served, new_page: NewPage):
    nod.ask("create an issue 'Rename the open branch' with high priority, assigned to Sam")
    nod.ask("delete #5")
    page = new_page(f"{nod.url}#/inbox")
    expect(page.locator(".row")).to_have_count(2)
    page.locator(".row", has_text="Rename the open branch").get_by_role("link").click()
    detail = page.locator("#inbox-detail .card")
    detail.get_by_text("Details").click()
    button(detail, "Edit").click()
    assert page.evaluate(TRANSLATED) > 20
    shown = page.locator("#inbox").inner_text()
    for said in ("Rename the open branch", "high", "Sam", "create_issue", "Delete issue #5"):
        assert said in shown
    arguments = json.loads(detail.locator(".fold-out .boxed").first.inner_text())
    assert arguments["title"] == "Rename the open branch"
    expect(button(detail, "Cancel")).to_be_hidden()  # the page's own words are translated
    for option in page.locator(".sieve option").all_inner_texts()[1:2]:
        assert option in {"create_issue", "delete_issue"}


@pytest.mark.parametrize(
    "path", thin(["tools", "people", "memory", "rules", "schedules", "audit", "settings", "you"])
)
def test_a_translation_leaves_names_and_commands_of_the_pages(nod: Served, new_page: NewPage, path: str):
    nod.client.post("api/commands", json={"name": "approvals", "text": "policy always for delete_*"})
    page = new_page(f"{nod.url}#/{path}")
    said = {
        "tools": "create_issue",
        "rules": "policy always for delete_*",
        "people": "/nod link",
        "audit": "rule policy for delete_*",
        "you": "http:local",
        "settings": "NOD_PORT",
    }
    if path in said:
        expect(page.locator("#page")).to_contain_text(said[path])
    page.evaluate(TRANSLATED)
    if path in said:
        assert said[path] in page.locator("#page").inner_text(), path


@pytest.mark.parametrize("language", thin(TITLES))
def test_a_value_is_read_in_its_own_direction(nod: Served, new_page: NewPage, language: str):
    page = new_page(nod.url)
    ask(page, f"rename #3 to '{TITLES[language]}'")
    value = page.locator(f"{CARDS} ins bdi")
    expect(value).to_have_text(TITLES[language])
    wanted = "rtl" if language in {"Arabic", "Hebrew"} else "ltr"
    assert value.evaluate("(each) => getComputedStyle(each).direction") == wanted


def _composes(field: Locator, key: str, ways: dict[str, Any]) -> None:
    field.evaluate(COMPOSING, [key, ways])


@pytest.mark.parametrize("ways", [SAFARI, OTHERS], ids=["Safari", "others"])
def test_an_input_method_keeps_its_keys_in_a_reason(nod: Served, new_page: NewPage, ways: dict[str, Any]):
    nod.ask("close #2")
    page: Page = new_page(f"{nod.url}#/inbox")
    detail = page.locator("#inbox-detail .card")
    button(detail, "Decline").click()
    reason = detail.get_by_label("Why not?")
    reason.fill("まだ")
    for key in ("Enter", "Escape"):
        _composes(reason, key, ways)
    expect(reason).to_have_value("まだ")
    assert nod.waiting()
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_contain_text("Declined")


def test_an_input_method_keeps_its_keys_in_the_message_box_and_on_the_page(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page(nod.url)
    box = page.locator("#message")
    box.fill("ログイン")
    _composes(box, "Enter", SAFARI)
    expect(box).to_have_value("ログイン")
    page.goto(f"{nod.url}#/inbox")
    detail = page.locator("#inbox-detail .card")
    expect(button(detail, "Decline")).to_be_visible()
    page.locator("body").evaluate(COMPOSING, ["d", SAFARI])
    expect(detail.locator(".card-form")).to_have_count(0)


def test_a_key_that_is_held_sends_no_form(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page(f"{nod.url}#/inbox")
    detail = page.locator("#inbox-detail .card")
    button(detail, "Decline").focus()
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")  # a second one without a key up is a repeat
    page.keyboard.down("Enter")
    expect(detail.get_by_label("Why not?")).to_be_visible()
    assert nod.waiting()

"""What stands in front of Nod answers in its place: the console says so, and nothing typed is lost."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.reverse_proxy import Answer, ReverseProxy, proxied
from tests.web.console.conftest import Served
from tests.web.console.test_console import CARDS, NewPage, ask, button

pytestmark = pytest.mark.browser

HTML = "<html><body><h1>nginx</h1></body></html>"
JSON = ("Content-Type: application/json",)
SIGN_IN = "The sign-in in front of Nod answered in its place. Reload this page to sign in there."
ANSWERS = {
    "bad gateway": (Answer("502 Bad Gateway", HTML), "The proxy in front of Nod can't reach it (502)."),
    "unavailable": (Answer("503 Service Unavailable"), "The proxy in front of Nod can't reach it (503)."),
    "of a cloud": (Answer("520 Unknown", "error", JSON), "The proxy in front of Nod can't reach it (520)."),
    "no route": (
        Answer("404 Not Found", "404 page not found"),
        "The proxy in front of Nod can't reach it (404).",
    ),
    "time-out": (Answer("504 Gateway Time-out", HTML), "It may be done: look, then try again."),
    "too large": (
        Answer("413 Request Entity Too Large", HTML),
        "Send less, or ask an admin to raise its limit.",
    ),
    "forbidden": (Answer("403 Forbidden", HTML), "The proxy in front of Nod refused this (403)."),
    "its own JSON": (Answer("403 Forbidden", '{"message": "no"}', JSON), "refused this (403)."),
    "too often": (Answer("429 Too Many Requests", HTML), "Wait a minute, then try again."),
    "basic auth": (Answer("401 Unauthorized", HTML), SIGN_IN),
    "sign-in page": (Answer("200 OK", HTML), SIGN_IN),
    "redirect": (Answer("302 Found", headers=("Location: https://login.example.com/",)), SIGN_IN),
    "nothing": (Answer("200 OK", headers=JSON), "Nod's answer was lost on its way."),
    "half": (Answer("200 OK", '{"ok": tr', JSON), "Nod's answer was lost on its way."),
}


@pytest.fixture
def proxy(nod: Served) -> Iterator[ReverseProxy]:
    with proxied(nod.port) as proxy:
        yield proxy


def deciding(page: Page, nod: Served, proxy: ReverseProxy) -> None:
    (proposal,) = nod.ask("close #2")
    page.goto(f"{proxy.url}#/inbox/{proposal['id']}")


def test_what_a_proxy_says_of_a_press_is_told_and_the_press_works_again(
    nod: Served, proxy: ReverseProxy, new_page: NewPage
):
    page = new_page("about:blank")
    deciding(page, nod, proxy)
    card = page.locator("#inbox-detail .card")
    for name, (answer, words) in ANSWERS.items():
        proxy.answers = {"POST /api/proposals/": answer}
        button(card, "Approve").click()
        expect(card, name).to_contain_text(words)
        expect(page.locator("#token"), name).to_have_count(0)
        assert len(nod.waiting()) == 1
    proxy.answers = {}
    button(card, "Approve").click()
    expect(page.locator(".row", has_text="Approved by you")).to_have_count(1)


@pytest.mark.parametrize("name", ["too large", "sign-in page", "redirect", "bad gateway", "nothing"])
def test_a_message_that_a_proxy_kept_is_sent_again_by_a_press(
    nod: Served, proxy: ReverseProxy, new_page: NewPage, name: str
):
    answer, words = ANSWERS[name]
    page = new_page(proxy.url)
    proxy.answers = {"POST /api/chat": answer}
    ask(page, "close #2")
    expect(page.locator(".not-sent")).to_contain_text(words)
    proxy.answers = {}
    button(page.locator(".not-sent"), "Send again").click()
    expect(page.locator(CARDS)).to_have_count(1)
    assert len(nod.waiting()) == 1


def test_what_was_typed_is_there_after_the_sign_in_of_a_proxy(
    nod: Served, proxy: ReverseProxy, new_page: NewPage
):
    page = new_page("about:blank")
    deciding(page, nod, proxy)
    card = page.locator("#inbox-detail .card")
    button(card, "Decline").click()
    card.get_by_label("Why not?").fill("not before Monday")
    proxy.answers = {"POST /api/": ANSWERS["redirect"][0]}
    button(card, "Decline").last.click()
    expect(card).to_contain_text(SIGN_IN)
    proxy.answers = {}
    page.reload()
    expect(page.locator("#inbox-detail").get_by_label("Why not?")).to_have_value("not before Monday")


@pytest.mark.parametrize("name", ["no route", "forbidden", "basic auth", "sign-in page"])
def test_a_stream_that_a_proxy_answered_is_opened_again(
    nod: Served, proxy: ReverseProxy, new_page: NewPage, name: str
):
    page = new_page("about:blank")
    proxy.answers = {"GET /api/events": ANSWERS[name][0]}
    page.goto(f"{proxy.url}#/inbox")
    expect(page.locator("#connection")).to_have_text("Reconnecting…")
    proxy.answers = {}
    nod.ask("close #2")
    expect(page.locator(".row")).to_have_count(1)


def test_a_page_that_a_proxy_keeps_from_nod_says_so_and_asks_for_no_token(
    proxy: ReverseProxy, new_page: NewPage
):
    page = new_page("about:blank")
    for name, (answer, words) in ANSWERS.items():
        proxy.answers = {"GET /api/": answer}
        page.goto("about:blank")
        page.goto(proxy.url)
        expect(page.locator("#gate"), name).to_contain_text(words)
        expect(page.locator("#token"), name).to_have_count(0)
    proxy.answers = {}
    button(page, "Try again").click()
    expect(page.locator("#message")).to_be_visible()

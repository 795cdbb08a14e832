"""What holds for every page of the console, whatever it shows: it fits its window and misleads no one."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from bot.domain.model import Finished, StopReason, Text
from bot.settings import SCRIPTED_NOTICE
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import CARDS, NARROW, NewPage, ask, button, card, violations
from tests.web.scripted import ScriptedModel, say

pytestmark = pytest.mark.browser

HOLDS = """
    const real = self.fetch;
    self.fetch = async (...asked) => {
        const answer = await real(...asked);
        const path = String(asked[0]);
        if (!path.includes("api/audit/")) return answer;
        const first = new TextEncoder().encode('{"done": 2, "total": 8}\\n');
        const held = new Promise((resolve) => (self.passOn = resolve));
        const late = new TransformStream({
            start: (to) => path.includes("verify") && to.enqueue(first),
            transform: async (chunk, to) => {
                if (path.includes("verify")) await held;
                to.enqueue(chunk);
            },
            flush: () => held,
        });
        return new Response(answer.body.pipeThrough(late), answer);
    };
"""
"""What is asked of the audit log does not end before ``passOn()``."""

SMALL = {"width": 320, "height": 640}
_NAMED = (
    *("inbox", "rules", "tools", "files", "people", "usage", "insights", "audit", "features", "settings"),
    "you",
)
PAGES = ("#/", *(f"#/{name}" for name in _NAMED), "conversation")

LOADED = {
    "#/inbox": ".row",
    "#/rules": "#rules-list .facts",
    "#/tools": ".tool-row",
    "#/people": ".person",
    "#/usage": ".table-box",
    "#/insights": "#insights-list .plot",
    "#/audit": "#audit-list td",
    "#/features": "#features-list td",
    "#/settings": "#settings-list td",
    "#/you": "#you-list .facts",
    "conversation": f"{CARDS}.proposed",
}
"""What shows that a page has what it asked for."""

HEADINGS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6, [role=heading]")]
    .filter((each) => each.checkVisibility())
    .map((each) => Number(each.getAttribute("aria-level") ?? each.tagName[1]))"""

UNFOLD = """each => each.querySelectorAll("details").forEach((part) => { part.open = true; })"""

MISNAMED = """() => [...document.querySelectorAll("a[aria-label], button[aria-label], summary[aria-label]")]
    .filter((each) => each.checkVisibility() && each.innerText.trim())
    .filter((each) => !each.getAttribute("aria-label").includes(each.innerText.trim()))
    .map((each) => `${each.innerText} is called ${each.getAttribute("aria-label")}`)"""


def filled(nod: Served, new_page: NewPage, **size: Any) -> Page:
    """A conversation with a card that is done and three that wait, one of them with much to show."""
    page = new_page(nod.url, **size)
    ask(page, "assign #3 to Ana")
    button(card(page, "Change assignee of issue #3"), "Approve").click()
    expect(card(page, "Change assignee of issue #3").locator(".state")).to_have_text("Done")
    ask(page, f"close #2 and delete #5 and rename #1 to '{'long ' * 35}'")
    expect(page.locator(CARDS)).to_have_count(4)
    return page


def test_a_draft_survives_a_reload(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    box = page.get_by_label("Message to Nod")
    box.fill("what I was about to ask")
    page.reload()
    expect(box).to_have_value("what I was about to ask")


def test_an_address_that_is_no_page_says_so(nod: Served, new_page: NewPage):
    page = new_page(f"{nod.url}#/nonsense")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    expect(page.get_by_label("Message to Nod")).to_be_hidden()
    page.goto(f"{nod.url}#/c/%")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    assert violations(page) == []


def test_who_is_not_an_admin_sees_no_filters_of_the_audit_log_and_no_link_to_what_they_may_not_read(
    serve: Serve, new_page: NewPage
):
    tokens = (f"ana:{'a' * 20}", f"fay:{'f' * 20}", f"chief:{'c' * 20}")
    with serve(token="a" * 20, NOD_HTTP_TOKENS=tokens, NOD_ADMINS=("http:chief",)) as nod:
        (proposal,) = nod.ask("close #2")
        chief = {"Authorization": f"Bearer {'c' * 20}"}
        to_fay = {"url": f"api/proposals/{proposal['id']}/reassign", "json": {"reason": "http:fay"}}
        nod.client.post(**to_fay, headers=chief).raise_for_status()
        page = new_page(nod.url)
        page.get_by_label("Access token").fill("f" * 20)
        page.keyboard.press("Enter")
        expect(page.locator("#to-inbox")).to_be_visible()
        page.goto(f"{nod.url}#/audit")
        expect(page.get_by_role("heading", name="Only admins see this page")).to_be_visible()
        expect(button(page, "Verify")).to_have_count(0)
        page.goto(f"{nod.url}#/inbox")
        expect(page.locator("#inbox-detail .card")).to_contain_text("Asked by ana")
        expect(page.get_by_role("link", name="Open conversation")).to_have_count(0)


def test_the_audit_log_is_filtered_by_a_name_and_shows_no_old_rows_under_one_it_refuses(
    nod: Served, new_page: NewPage
):
    (proposal,) = nod.ask("close #2")
    nod.press(proposal, "decline", reason="we need it until the end of the quarter")
    page = new_page(f"{nod.url}#/audit")
    reason = page.get_by_text("we need it until the end of the quarter")
    expect(reason).to_be_visible()
    box = reason.bounding_box()
    assert box["x"] + box["width"] <= 1280
    # a word of a cell stands in one line: the text has as many boxes as lines
    lines = """cell => { const text = document.createRange(); text.selectNodeContents(cell);
        return new Set([...text.getClientRects()].map(box => box.top)).size; }"""
    for cell in page.locator("#audit-list td:nth-child(2), #audit-list td:nth-child(3)").all():
        assert cell.evaluate(lines) == 1, cell.inner_text()
    page.get_by_label("Who: a name or an account").fill("local")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Who: a name or an account")).to_have_value("http:local")
    expect(reason).to_be_visible()
    page.get_by_label("Who: a name or an account").fill("nemo")
    page.keyboard.press("Enter")
    expect(page.locator("#audit-list .notice-word")).to_contain_text("No one here is called that.")
    expect(page.locator("#audit-list td")).to_have_count(0)


def test_a_link_whose_words_name_another_host_leads_nowhere_and_shows_where_it_leads(
    serve: Serve, new_page: NewPage
):
    told = "[https://bank.example](https://evil.example/x) and [bank.com](https://evil.example)"
    told += " and [the bank](https://bank.example) and [www.bank.example/a](https://bank.example/a)"
    with serve(model=ScriptedModel(say(told))) as nod:
        page = new_page(nod.url)
        ask(page, "hello")
        said = page.locator("#thread .assistant:not(.live) .said")
        expect(said).to_contain_text("https://bank.example (https://evil.example/x)")
        expect(said).to_contain_text("bank.com (https://evil.example)")
        assert said.locator("a").evaluate_all("all => all.map((each) => each.host)") == ["bank.example"] * 2


def test_the_bars_of_usage_are_shares_of_the_total(serve: Serve, new_page: NewPage):
    ends = [[Text("Hello."), Finished(StopReason.FINISHED, (), tokens, tokens)] for tokens in (100, 300)]
    with serve(model=ScriptedModel(*ends)) as nod:
        for words in ("one", "two"):
            nod.client.post("api/chat", json={"message": words}).raise_for_status()
        page = new_page(f"{nod.url}#/usage")
        button(page, "Conversation").click()
        bars = page.locator("#usage-list meter")
        expect(bars).to_have_count(2)
        assert sorted(bars.evaluate_all("all => all.map((each) => each.value / each.max)")) == [0.25, 0.75]


def test_insights_are_plots_with_their_numbers_as_tables_below(nod: Served, new_page: NewPage):
    page = filled(nod, new_page)
    page.goto(f"{nod.url}#/insights")
    plots = page.locator("#insights-list .plot img")
    expect(plots).to_have_count(3)
    drawn = "all => all.map((each) => each.complete && each.naturalWidth > 0 && each.alt.length > 20)"
    assert plots.evaluate_all(drawn) == [True] * 3
    button(page, "Place").click()
    ended = page.locator("#insights-list .plot").first
    ended.get_by_text("As a table").click()
    expect(ended.get_by_role("row").last).to_contain_text(re.compile(r"the console\s*4\s*1"))
    with page.expect_download() as saved:
        button(page, "Export CSV").click()
    assert saved.value.suggested_filename == "insights.csv"


def test_insights_that_are_turned_off_are_in_no_menu(serve: Serve, new_page: NewPage):
    with serve(NOD_INSIGHTS=False) as nod:
        page = new_page(f"{nod.url}#/insights")
        expect(page.locator("#insights-list .notice-word")).to_contain_text("Insights are turned off")
        expect(page.locator("#to-usage")).to_be_visible()
        expect(page.locator("#to-insights")).to_have_count(0)


@pytest.mark.parametrize("size", [{}, NARROW, SMALL], ids=["desktop", "phone", "small"])
def test_no_page_is_too_high_or_misleads(size: dict[str, int], nod: Served, new_page: NewPage):
    page = filled(nod, new_page, **size)
    conversation = page.evaluate("location.hash")
    for at in PAGES:
        page.goto(nod.url + (conversation if at == "conversation" else at))
        page.reload()
        expect(page.locator("main.view:visible")).to_have_count(1)
        if at == "#/inbox":
            expect(page.locator(".row")).to_have_count(3)
        elif at == "conversation":
            expect(page.locator("main.view:visible .card.proposed")).to_have_count(3)
        html = page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert html[0] <= html[1], at
        levels = page.evaluate(HEADINGS)
        steps = zip([1, *levels], levels, strict=False)
        assert all(level <= before + 1 for before, level in steps), (at, levels)
        assert page.evaluate(MISNAMED) == [], at
        skip = page.locator("#skip")
        expect(page.locator(skip.get_attribute("href") or "")).to_be_visible()
        skip.focus()
        page.keyboard.press("Enter")
        expect(page.locator(skip.get_attribute("href") or "")).to_be_focused()


def test_the_welcome_begins_at_its_beginning_on_a_small_phone(nod: Served, new_page: NewPage):
    page = new_page(nod.url, **SMALL)
    expect(page.locator(".example").first).to_be_visible()
    page.wait_for_timeout(100)
    assert page.locator("#scroll").evaluate("each => each.scrollTop") == 0
    expect(page.get_by_role("heading", name="What would you like to get done?")).to_be_in_viewport()


def test_a_conversation_that_is_not_there_is_said_so_on_the_page(nod: Served, new_page: NewPage):
    page = new_page(f"{nod.url}#/c/doesnotexist")
    note = page.locator("#welcome .notice")
    expect(note).to_have_text("That conversation doesn't exist. It may have been deleted.")
    page.get_by_role("link", name="New conversation").click()
    expect(note).to_have_count(0)


def test_a_card_forgets_that_nod_was_out_of_reach_when_it_is_back(serve: Serve, new_page: NewPage):
    with serve() as nod:
        page = new_page(nod.url)
        ask(page, "close #4")
        shown = card(page, "Close issue #4")
        expect(shown).to_be_visible()
        port = nod.port
    expect(page.locator("#connection")).to_have_text("Reconnecting…")
    button(shown, "Approve").click()
    expect(shown.locator(".card-word")).to_have_text("Can't reach Nod. Is the server running?")
    with serve(NOD_PORT=port):
        expect(shown.locator(".card-word")).to_be_hidden(timeout=30_000)
        expect(button(shown, "Approve")).to_be_enabled()
        page.goto("about:blank")


def test_outside_the_demo_the_page_says_that_a_scripted_model_answers(serve: Serve, new_page: NewPage):
    with serve(demo=False) as nod:
        page = new_page(nod.url, **SMALL)
        expect(page.locator("#banners")).to_have_text(SCRIPTED_NOTICE)
        html = page.evaluate("[document.documentElement.scrollHeight, innerHeight]")
        assert html[0] <= html[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(scheme: str, nod: Served, new_page: NewPage):
    """On a desktop and on the smallest phone, and there with less motion and everything unfolded."""
    page = filled(nod, new_page, color_scheme=scheme)
    (waiting, *_) = nod.waiting()
    nod.press(waiting, "similar", rung="tool", lasting="1h")
    conversation = page.evaluate("location.hash")
    for at in PAGES:
        page.emulate_media(reduced_motion="no-preference")
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(nod.url + (conversation if at == "conversation" else at))
        expect(page.locator("main.view:visible")).to_have_count(1)
        expect(page.locator(LOADED.get(at, "body")).first).to_be_visible()
        assert violations(page) == [], at
        page.set_viewport_size(SMALL)  # type: ignore[arg-type] # a mapping of those two
        page.emulate_media(reduced_motion="reduce")
        page.locator("main.view:visible").evaluate(UNFOLD)
        assert violations(page) == [], (at, "small")


def test_a_check_and_an_export_of_the_audit_log_show_how_far_they_are(nod: Served, new_page: NewPage):
    nod.ask("close #2")
    page = new_page("about:blank")
    page.add_init_script(HOLDS)
    page.goto(f"{nod.url}#/audit")
    page.locator("table").wait_for()
    bar = page.get_by_role("progressbar")
    button(page, "Verify").click()
    expect(bar).to_have_attribute("aria-label", "Verifying the audit log")
    expect(page.locator(".notice-word:visible")).to_contain_text("2 of 8 rows")
    page.evaluate("passOn()")
    expect(page.locator(".notice-word:visible")).to_contain_text("nothing missing or altered")
    expect(bar).to_have_count(0)
    button(page, "Export CSV").click()
    expect(bar).to_have_attribute("aria-label", "Exporting the audit log")
    expect(page.locator(".notice-word:visible")).to_contain_text(re.compile(r"(\d+) of \1 rows"))
    with page.expect_download() as saved:
        page.evaluate("passOn()")
    assert saved.value.path().read_bytes().startswith(b'\xef\xbb\xbf"id",')
    expect(bar).to_have_count(0)


def test_a_first_visit_takes_less_than_200_kb(nod: Served):
    page = httpx.get(nod.url)
    files = ["", *re.findall(r'(?:href|src)="(static/[^"]+)"', page.text)]
    answers = [httpx.get(f"{nod.url}{each}") for each in dict.fromkeys(files)]
    assert all(each.status_code == 200 for each in answers)
    assert sum(each.num_bytes_downloaded for each in answers) < 200_000

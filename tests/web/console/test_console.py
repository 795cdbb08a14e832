"""The console as people use it: a real browser, the real server, the offline model."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, Route, expect

from bot import web
from bot.agent.demo.model import DemoModel
from bot.domain.model import Entry, Part, Text, Thought, ToolSpec
from bot.tools.mcp.interface import Action, Elicited, Question
from bot.web.bundle import bundle
from tests.web.console.conftest import PATIENCE, Json, Serve, Served
from tests.web.scripted import ScriptedModel

pytestmark = pytest.mark.browser

NewPage = Callable[..., Page]
STATIC = Path(web.__file__).parent / "static"
NARROW = {"width": 390, "height": 844}


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message to Nod").fill(text)
    page.keyboard.press("Enter")


CARDS = "#thread .line-block:not(.live) .card"
"""Cards in their place: those of an answer that is being written move there when it ends."""


def card(page: Page, title: str) -> Locator:
    """A card by what was asked for: its heading tells what was done, once it is done."""
    return page.locator(f'{CARDS}[aria-label*="{title}"]')


def said(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.locator("#thread .assistant .said").filter(has_text=text)


def button(within: Locator | Page, name: str) -> Locator:
    """The button with that word, whatever more its label tells after a colon."""
    return within.get_by_role("button", name=re.compile(f"^{name}(:|$)"))


def rare(within: Locator | Page, name: str) -> Locator:
    """The button of that name behind ⋯, which is opened."""
    within.locator(".menu summary").click()
    return button(within, name)


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds: each rule with the elements that break it."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found]


def issue(nod: Served, number: int) -> dict[str, object]:
    from bot.features.issues import rows as issues

    found = nod.app.database.read_now(issues.find, number)
    return {"title": found.title, "state": found.state, "assignee": found.assignee, "labels": found.labels}


def wait_until(true: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def wait_in_page(page: Page, expression: str, argument: object = None) -> None:
    """Return once an expression is true in the page.

    Playwright's own wait reads the expression within the page from its second look on, which the console's
    policy refuses.
    """
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression, argument):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def fits(page: Page) -> bool:
    """Nothing reaches beyond the right edge, and the page does not scroll sideways."""
    return page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth
            && [...document.querySelectorAll("#main :is(.column, article, button, dl, form)")]
                .every((each) => each.getBoundingClientRect().right <= innerWidth)"""
    )


def test_asking_shows_a_card_and_approving_it_runs_it_and_continues(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "assign #3 to Ana")
    shown = card(page, "Change assignee of issue #3")
    expect(shown.locator(".change")).to_contain_text("Assignee")
    expect(shown.locator("ins")).to_contain_text("Ana")
    shown.locator("time[data-told=expiry]").hover()
    expect(shown.locator("time[data-told=expiry]")).to_have_attribute("title", re.compile(r"\d{4}"))
    assert issue(nod, 3)["assignee"] is None
    button(shown, "Approve").click()
    expect(shown.locator(".state")).to_have_text("Done")
    expect(said(page, "Done: assigned #3 to Ana")).to_be_visible()
    expect(button(shown, "Approve")).to_have_count(0)
    assert issue(nod, 3)["assignee"] == "Ana"


def test_declining_takes_a_reason_along(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    shown = card(page, "Close issue #4")
    button(shown, "Decline").click()
    page.keyboard.type("we still need it")
    page.keyboard.press("Enter")
    expect(shown.locator(".state")).to_have_text("Declined")
    expect(shown).to_contain_text("we still need it")
    expect(said(page, "declined closing #4")).to_contain_text("we still need it")
    assert issue(nod, 4)["state"] == "open"


class HeldModel(DemoModel):
    """The offline model, which answers only while the test lets it."""

    def __init__(self) -> None:
        super().__init__(pace=0.002)
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        await self.may_answer.wait()
        async for part in super().stream(transcript, tools):
            yield part


def test_a_question_about_a_card_is_answered_and_the_card_stays_open(serve: Serve, new_page: NewPage):
    model = HeldModel()
    with serve(model=model) as nod:
        page = new_page(nod.url)
        ask(page, "close #4")
        shown = card(page, "Close issue #4")
        rare(shown, "Ask").click()
        page.keyboard.type("what exactly changes?")
        model.may_answer.clear()
        page.keyboard.press("Enter")
        expect(shown.locator(".card-word")).to_contain_text("Nothing was decided.")
        nod.loop.call_soon_threadsafe(model.may_answer.set)
        expect(said(page, "This is all it would do")).to_contain_text("open → closed")
        expect(shown.locator(".card-word")).to_be_hidden()  # it has its answer
        expect(page.locator("#thread blockquote")).to_have_text("what exactly changes?")
        button(shown, "Approve").click()
        expect(shown.locator(".state")).to_have_text("Done")


def test_what_destroys_stands_out_and_can_be_withdrawn_by_who_asked(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "delete #5")
    shown = card(page, "Delete issue #5")
    expect(shown.locator(".risk")).to_have_text("Can't be undone")
    expect(shown.get_by_text("Can't be undone")).to_have_count(1)
    (proposal,) = nod.waiting()
    if proposal["may_decide"]:
        expect(button(shown, "Approve deletion")).to_have_class(re.compile("danger"))
        nod.press(proposal, "cancel")
    else:
        expect(button(shown, "Approve deletion")).to_have_count(0)
        button(shown, "Withdraw").click()
    expect(shown.locator(".state")).to_have_text("Withdrawn")
    assert issue(nod, 5)["state"] == "open"


def test_an_edit_the_server_refuses_says_so_at_the_field_then_goes_through(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "create an issue 'Add CSV export' assigned to Sam with high priority")
    shown = card(page, "Create issue “Add CSV export”")
    button(shown, "Edit").click()
    title = shown.get_by_label("Title", exact=True)
    title.fill("")
    button(shown, "Ask again").click()
    expect(title).to_have_attribute("aria-invalid", "true")
    expect(title).to_be_focused()
    row = shown.locator(".form-row", has=page.get_by_label("Title", exact=True))
    expect(row.locator(".fault")).to_contain_text("This is empty. Write something.")
    title.fill("Export as CSV")
    shown.get_by_label("Priority", exact=True).select_option(label="urgent")
    button(shown, "Ask again").click()
    shown = card(page, "Create issue “Export as CSV”")
    expect(button(shown, "Approve")).to_be_visible()
    expect(shown.locator(".note")).to_contain_text("title: Add CSV export → Export as CSV")
    button(shown, "Approve").click()
    expect(shown.locator(".state")).to_have_text("Done")
    assert issue(nod, 7)["title"] == "Export as CSV"


def test_an_edit_is_approved_where_it_is_made(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "create an issue 'Add CSV export' with high priority")
    shown = card(page, "Create issue “Add CSV export”")
    button(shown, "Edit").click()
    title = shown.get_by_label("Title", exact=True)
    title.fill("")
    button(shown, "Approve as edited").click()
    expect(title).to_have_attribute("aria-invalid", "true")
    title.fill("Export as CSV")
    button(shown, "Approve as edited").click()
    expect(card(page, "Create issue “Export as CSV”").locator(".state")).to_have_text("Done")
    assert issue(nod, 7)["title"] == "Export as CSV"


def test_what_the_model_thinks_is_folded_away_and_no_part_of_the_answer(serve: Serve, new_page: NewPage):
    more = asyncio.Event()  # never comes: the answer stays unfinished
    model = ScriptedModel([Thought("There are <b>two</b> lamps.\n"), Text("Hello"), more])
    with serve(model=model) as nod:
        page = new_page(nod.url)
        ask(page, "hi")
        expect(said(page, "Hello")).to_be_visible()
        thought = page.locator("details.thoughts p")
        expect(thought).to_be_hidden()
        page.get_by_text("Thinking", exact=True).click()
        expect(thought).to_have_text("There are <b>two</b> lamps.")
        expect(said(page, "lamps")).to_have_count(0)


def test_the_form_offers_what_is_not_set_and_what_is_not_touched_stays(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "rename #1 to 'Login fails'")
    shown = card(page, "Change title of issue #1")
    button(shown, "Edit").click()
    button(shown, "Labels").click()
    for label in ("auth", "regression"):
        button(shown, "Add an entry").click()
        page.keyboard.type(label)
    button(shown, "State").click()
    expect(shown.get_by_label("State", exact=True)).to_be_focused()
    button(shown, "Leave State out").click()
    button(shown, "Ask again").click()
    shown = card(page, "Change title and labels of issue #1")
    expect(shown.locator(".change")).to_have_count(2)
    button(shown, "Approve").click()
    expect(shown.locator(".state")).to_have_text("Done")
    assert issue(nod, 1) == {
        "title": "Login fails",
        "state": "open",
        "assignee": "Ana",
        "labels": ("auth", "regression"),
    }


def test_approve_all_approves_every_card_of_the_answer(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #2 and assign #3 to Ana")
    button(page, "Approve all 2").click()
    expect(page.locator(f"{CARDS} .state")).to_have_text(["Done", "Done"])
    assert (issue(nod, 2)["state"], issue(nod, 3)["assignee"]) == ("closed", "Ana")


def test_decline_all_leaves_everything_as_it_is(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #2 and assign #3 to Ana")
    button(page.locator(".crown"), "Decline all 2").click()
    page.get_by_label("Why not?").fill("not this week")
    page.locator(".card-form").get_by_role("button", name="Decline all 2").click()
    expect(page.locator(f"{CARDS} .state")).to_have_text(["Declined", "Declined"])
    assert (issue(nod, 2)["state"], issue(nod, 3)["assignee"]) == ("open", None)


def test_approving_similar_lets_the_next_one_run_immediately(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    rare(card(page, "Close issue #4"), "Approve similar").click()
    page.get_by_label("close_issue with any arguments").check()
    page.get_by_label("For how long").select_option("1h")
    whose = page.get_by_label("Whose requests, and where")
    assert whose.locator("option").count() > 1
    chosen = whose.locator("option").nth(1).inner_text()
    whose.select_option(label=chosen)
    button(page, "Approve and allow").click()
    expect(said(page, "Done: closed #4")).to_be_visible()
    (given,) = nod.client.get("api/rules").json()["grants"]
    assert chosen in given["words"]
    ask(page, "close #2")
    expect(said(page, "Done: closed #2")).to_be_visible()
    assert issue(nod, 2)["state"] == "closed"
    shown = card(page, "Close issue #2")
    button(shown, "Revoke G-1").click()
    expect(shown.locator(".card-word")).to_have_text("Ended: 1 grant.")
    assert nod.client.get("api/rules").json()["grants"] == []


def told(page: Page, proposal: object, **changed: object) -> None:
    """Tell the page, as another tab of the browser that leads, that the proposal is in another state now."""
    page.evaluate(
        """async ([proposal, changed]) => {
            const { nameOf } = await import("/static/feed.js");
            const { account } = await (await fetch("/api/me")).json();
            const channel = new BroadcastChannel(nameOf(account, ""));
            const leader = { term: Date.now() + 3_600_000, by: "another" };
            proposal = { ...proposal, version: proposal.version + 10, verbs: [], ...changed };
            const event = { type: "proposal_update", proposal };
            channel.postMessage({ kind: "lead", ...leader, live: true, lastId: null });
            channel.postMessage({ kind: "event", ...leader, event, id: null });
        }""",
        [proposal, changed],
    )


def test_a_running_change_tells_for_how_long(nod: Served, new_page: NewPage):
    page, proposal, shown = in_inbox(nod, new_page)
    begun = (datetime.now(UTC) - timedelta(seconds=125)).isoformat()
    told(page, proposal, state="executing", updated_at=begun, outcome="Approved by you. Running…")
    expect(shown).to_contain_text(re.compile(r"Running… 2 min \d+ s"))


def in_inbox(nod: Served, new_page: NewPage) -> tuple[Page, Json, Locator]:
    """A page with the inbox, the one proposal in it, and its card."""
    page = new_page(nod.url)
    (proposal,) = nod.ask("close #4")
    page.goto(f"{nod.url}#/inbox")
    shown = page.locator("#inbox-list .card")
    expect(shown).to_be_visible()
    return page, proposal, shown


def test_a_running_change_can_be_stopped(nod: Served, new_page: NewPage):
    page, proposal, shown = in_inbox(nod, new_page)
    stop = {
        "verb": "stop",
        "label": "Stop",
        "doing": "Stopping…",
        "needs": "nothing",
        "look": "danger",
        "rare": False,
    }
    running = {"state": "executing", "outcome": "Approved by you. Running…", "printed": "1 of 2\n2 of 2"}
    told(page, proposal, verbs=["stop"], buttons=[stop], **running)
    expect(shown.locator("pre")).to_have_text("1 of 2\n2 of 2")
    button(shown, "Stop").click()
    expect(shown.locator(".card-word")).to_have_text("It isn't running.")


def test_retry_of_what_may_have_happened_asks_first(nod: Served, new_page: NewPage):
    page, proposal, shown = in_inbox(nod, new_page)
    sure = {
        "question": "Retry?",
        "yes": "Retry",
        "no": "Not now",
        "more": "Check first whether it already happened.",
    }
    retry = {
        "verb": "retry",
        "label": "Retry",
        "doing": "Running again…",
        "needs": "nothing",
        "look": "plain",
        "rare": False,
        "sure": sure,
    }
    told(page, proposal, state="failed", outcome="It may have happened.", verbs=["retry"], buttons=[retry])
    button(shown, "Retry").click()
    form = shown.get_by_role("form", name="Retry")
    expect(form).to_contain_text("Check first whether it already happened.")
    button(form, "Not now").click()
    expect(form).to_have_count(0)
    button(shown, "Retry").click()
    button(form, "Retry").click()
    expect(shown.locator(".card-word")).to_contain_text("still waiting")


def test_a_command_that_ended_badly_is_amber_and_open(nod: Served, new_page: NewPage):
    page, proposal, shown = in_inbox(nod, new_page)
    told(page, proposal, state="succeeded", ended_badly="Ended with code 3", result="no such file")
    expect(shown.locator(".state")).to_have_text("Ended with code 3")
    expect(shown.locator(".state")).to_have_class(re.compile("warned"))
    expect(shown.get_by_text("no such file")).to_be_visible()


def test_a_decided_card_is_low_and_has_its_details_on_demand(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    shown = card(page, "Close issue #4")
    expect(shown).to_be_visible()
    assert shown.bounding_box()["height"] <= 130
    button(shown, "Approve").click()
    expect(shown.locator(".state")).to_have_text("Done")
    assert shown.bounding_box()["height"] <= 68  # a line of it is what was read again
    expect(shown.locator(".change")).to_have_count(0)
    shown.get_by_text("Details").click()
    expect(shown.locator(".change")).to_be_visible()
    expect(shown).to_contain_text("Digest")


def test_a_proposal_can_be_given_more_time(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    before = page.locator(f"{CARDS} time[data-told=expiry]").get_attribute("datetime")
    rare(card(page, "Close issue #4"), "Extend 24 h").click()
    expect(page.locator(f"{CARDS} time[data-told=expiry]")).not_to_have_attribute("datetime", before or "")


def test_a_reload_keeps_the_card_and_pressing_it_works(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    expect(card(page, "Close issue #4")).to_be_visible()
    page.get_by_label("Message to Nod").fill("half a thought")
    page.reload()
    expect(page.get_by_label("Message to Nod")).to_have_value("half a thought")
    shown = card(page, "Close issue #4")
    expect(button(shown, "Approve")).to_be_visible()
    button(shown, "Approve").click()
    expect(said(page, "Done: closed #4")).to_be_visible()
    assert issue(nod, 4)["state"] == "closed"


def test_sentences_that_an_answer_ends_with_are_buttons_that_send_them(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    told = page.evaluate(
        """async () => {
            const { line } = await import("/static/line.js");
            const said = "I can do this:\\n→ not at the end\\n\\nChoose.";
            const text = `${said}\\n\\n- → Show open issues\\n→ Close #4\\n`;
            const message = { role: "assistant", text, calls: [], created_at: new Date().toISOString() };
            const sent = [];
            const made = line(message, (text) => sent.push(text));
            made.querySelectorAll("button").forEach((each) => each.click());
            const command = line({ ...message, text: "x\\n→ /approvals pause" }, () => {});
            const unseen = line({ ...message, text: "x\\n→ yes\u202e" }, () => {});
            return {
                sent,
                said: made.querySelector(".said").textContent,
                command: command.textContent,
                buttons: [command, unseen].map((each) => each.querySelectorAll("button").length),
            };
        }"""
    )
    assert told["sent"] == ["Show open issues", "Close #4"]
    assert "not at the end" in told["said"]
    assert "Close" not in told["said"]
    assert "/approvals pause" in told["command"]
    assert told["buttons"] == [0, 0]


def test_hostile_text_stays_text(nod: Served, new_page: NewPage):
    hostile = "<img src=x onerror=alert(1)> [click](javascript:alert(2)) **b**"
    page = new_page(nod.url)
    ask(page, f'create an issue "{hostile}"')
    shown = page.locator(CARDS)
    expect(shown.locator(".card-title")).to_contain_text(hostile)
    button(shown, "Approve").click()
    expect(said(page, "Done: created the issue")).to_contain_text("<img src=x onerror=alert(1)>")
    ask(page, "show open issues")
    expect(said(page, "open issues:")).to_contain_text("<img src=x onerror=alert(1)>")
    page.locator(".call summary").last.click()
    expect(page.locator(".call-body").last).to_contain_text("<img src=x")
    expect(page.locator("#thread img, #conversations img, #title img, #thread a")).to_have_count(0)


def test_the_inbox_follows_what_others_decide(nod: Served, new_page: NewPage):
    page = new_page(f"{nod.url}#/inbox")
    expect(page.get_by_text("You're all caught up")).to_be_visible()
    (first, second) = nod.ask("close #2 and assign #3 to Ana")
    rows = page.locator("#inbox-list .row")
    expect(rows).to_have_count(2)
    expect(page).to_have_title("(2) Inbox · Nod")
    expect(page.locator("#to-inbox .count")).to_have_text("2 waiting for you")
    nod.press(first, "approve")
    expect(rows.filter(has_text="Closed issue #2")).to_contain_text("Approved by you")
    expect(page).to_have_title("(1) Inbox · Nod")
    rows.filter(has_text="issue #3").get_by_role("link").click()
    button(page.locator("#inbox-list .card"), "Approve").click()
    expect(page.locator("#inbox-list .card .state")).to_have_text("Done")
    expect(page).to_have_title("Inbox · Nod")
    assert issue(nod, int(second["tool_arguments"]["number"]))["assignee"] == "Ana"


def test_a_card_that_changed_in_the_meantime_is_shown_again_instead_of_approved(
    nod: Served, new_page: NewPage
):
    page = new_page("about:blank")
    page.route("**/api/events?*", lambda route: route.abort())  # this page is told of nothing
    page.goto(nod.url)
    with page.expect_response("**/proposals"):  # read once more when the turn has ended
        ask(page, "rename #3 to 'Dark settings'")
    shown = page.locator(CARDS)
    expect(shown.locator("ins")).to_contain_text("Dark settings")
    page.route(
        re.compile(r"/proposals(\?|$)"), lambda _: None
    )  # and reads no list, which would tell it as well
    (proposal,) = nod.waiting()
    nod.press(proposal, "edit", round=1, arguments={"number": 3, "title": "Something else"})
    button(shown, "Approve").click()
    expect(shown.locator(".card-word")).to_contain_text("changed")
    expect(shown.locator("ins")).to_contain_text("Something else")
    assert issue(nod, 3)["title"] == "Dark mode for the settings page"
    button(shown, "Approve").click()
    expect(shown.locator(".card-word")).to_be_hidden()
    nod.press(proposal, "approve", round=2)  # came second: nothing more happens
    wait_until(lambda: issue(nod, 3)["title"] == "Something else")


def test_buttons_rest_while_a_press_is_on_its_way_and_the_card_waits_for_the_server(
    nod: Served, new_page: NewPage
):
    page = new_page(nod.url)
    ask(page, "close #4")
    shown = card(page, "Close issue #4")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/approve", hold)
    button(shown, "Approve").click()
    for name in ("Decline", "Edit"):
        expect(button(shown, name)).to_be_disabled()
    approving = shown.locator("[data-verb=approve]")
    expect(approving).to_have_text("Approving…")
    approving.dispatch_event("click")
    assert len(held) == 1
    assert held[0].request.post_data_json == {"round": 1}
    held[0].continue_()
    expect(shown.locator(".state")).to_have_text("Done")


def test_without_an_answer_the_card_says_so_and_can_be_pressed_again(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "close #4")
    shown = card(page, "Close issue #4")
    page.route("**/approve", lambda route: route.abort(), times=1)
    button(shown, "Approve").click()
    expect(shown.locator(".card-word")).to_contain_text("Can't reach Nod")
    button(shown, "Approve").click()
    expect(shown.locator(".state")).to_have_text("Done")


def test_a_phone_never_scrolls_sideways(nod: Served, new_page: NewPage):
    page = new_page(nod.url, **NARROW)
    assert fits(page)
    wide = "W" * 180
    ask(page, f"rename #1 to '{wide}' and delete #5")
    expect(page.locator(CARDS)).to_have_count(2)
    assert fits(page)
    button(page.locator(CARDS).first, "Edit").click()
    button(page, "Labels").click()
    button(page, "Add an entry").click()
    assert fits(page)
    page.keyboard.press("Escape")
    page.get_by_label("Open the menu").click()
    expect(page.get_by_role("link", name="New conversation")).to_be_visible()
    page.locator("#to-inbox").click()
    expect(page.locator("#inbox-list .row")).to_have_count(2)
    assert fits(page)
    page.locator("#inbox-list .row a").first.click()
    page.locator("#inbox-list .card").get_by_text("Details").click()
    assert fits(page)


def test_what_is_behind_the_dots_of_the_last_card_is_seen(nod: Served, new_page: NewPage):
    page = new_page(nod.url, height=400)
    ask(page, "close #2")
    expect(rare(card(page, "Close issue #2"), "Approve similar")).to_be_in_viewport(ratio=1)


def test_everything_works_by_keyboard(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    message = page.get_by_label("Message to Nod")
    expect(message).to_be_focused()
    page.keyboard.type("assign #3 to Ana")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("and close #4")
    expect(message).to_have_value("assign #3 to Ana\nand close #4")
    message.fill("close #4")
    page.keyboard.press("Enter")
    shown = card(page, "Close issue #4")
    expect(button(shown, "Edit")).to_be_visible()
    expect(page.locator("#working")).to_be_hidden()
    for found in (
        page.get_by_label("Attach files"),
        shown.locator("[data-part=all] summary"),
        shown.locator(".menu summary"),
        button(shown, "Edit"),
    ):
        page.keyboard.press("Shift+Tab")
        expect(found).to_be_focused()
    page.keyboard.press("Enter")
    expect(shown.get_by_label("number")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button(shown, "Edit")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(button(shown, "Decline")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(button(shown, "Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect(shown.locator(".state")).to_have_text("Done")
    expect(shown).to_be_focused()
    expect(page.locator("#announcer")).to_contain_text("Done: closed #4")


def test_an_answer_is_shown_while_it_is_written_and_can_be_stopped(serve: Serve, new_page: NewPage):
    with serve(pace=0.15) as nod:
        page = new_page(nod.url)
        ask(page, "what can you do?")
        expect(said(page, "I'm a scripted demo")).to_be_visible()
        assert "OPENAI_API_KEY" not in said(page, "I'm").inner_text()
        button(page, "Stop").click()
        expect(page.get_by_text("You stopped this answer.")).to_be_visible()
        expect(page.locator("#working")).to_be_hidden()


def test_the_tokens_of_a_turn_that_continues_after_an_approval_are_shown(serve: Serve, new_page: NewPage):
    with serve(pace=0.7) as nod:
        page = new_page(nod.url)
        ask(page, "close #4")
        button(card(page, "Close issue #4"), "Approve").click()
        begun = said(page, re.compile("^Done:"))
        expect(begun).to_be_visible()
        assert "#4" not in begun.inner_text()
        expect(begun).to_contain_text("Done: closed #4.")


def test_a_restart_of_the_server_is_survived(serve: Serve, new_page: NewPage):
    with serve() as nod:
        page = new_page(nod.url)
        ask(page, "close #4")
        shown = card(page, "Close issue #4")
        expect(shown).to_be_visible()
        port = nod.port
    expect(page.locator("#connection")).to_have_text("Reconnecting…")
    with serve(NOD_PORT=port) as nod:
        nod.press(nod.waiting()[0], "approve")
        expect(page.locator("#connection")).to_have_text("", timeout=30_000)
        expect(shown.locator(".state")).to_have_text("Done")
        expect(said(page, "Done: closed #4")).to_be_visible()
        page.goto("about:blank")


def test_with_tokens_the_page_asks_for_one(serve: Serve, new_page: NewPage):
    token = "ana-0123456789abcdef"
    with serve(token=token, NOD_HTTP_TOKENS=(f"ana:{token}",)) as nod:
        page = new_page(nod.url)
        page.get_by_label("Access token").fill("wrong")
        button(page, "Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("Unknown token. Check it and try again.")
        page.get_by_label("Access token").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator("#who")).to_have_text("Signed in as ana")
        ask(page, "close #4")
        button(card(page, "Close issue #4"), "Approve").click()
        expect(said(page, "Done: closed #4")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Access token")).to_be_visible()


def test_an_empty_conversation_names_the_model_and_offers_examples(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    expect(page.locator("#model")).to_contain_text("offline demo model")
    page.locator(".example").filter(has_text="Close #2 and #4, and assign #3 to Ana").click()
    expect(page.locator(CARDS)).to_have_count(3)
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_text("What would you like to get done?")).to_be_visible()
    expect(page.locator("#conversations a")).to_have_count(1)
    page.locator("#conversations a").click()
    expect(page.locator(CARDS)).to_have_count(3)


def test_every_example_leads_somewhere(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    expect(page.locator(".example").first).to_be_visible()
    for example in page.locator(".example").all_inner_texts():
        page.get_by_role("link", name="New conversation").click()
        page.locator(".example").get_by_text(example, exact=True).click()
        expect(page.locator("#thread .card, #thread .call").first).to_be_visible()
        expect(page.locator("#working")).to_be_hidden()


def test_markdown_becomes_nodes_and_nothing_else(nod: Served, new_page: NewPage):
    page = new_page(nod.url)

    def html(text: str) -> str:
        made: str = page.evaluate(
            """async (text) => {
                const { markdown } = await import("/static/markdown.js");
                const box = document.createElement("div");
                box.append(markdown(text));
                return new XMLSerializer().serializeToString(box).slice(4, -6);
            }""",
            text,
        )
        return made.replace(' xmlns="http://www.w3.org/1999/xhtml"', "").removeprefix(">")

    assert html("a <b>b</b> &amp;") == "<p>a &lt;b&gt;b&lt;/b&gt; &amp;amp;</p>"
    assert html("**bold** *it* `x<y` __b__ snake_case_name") == (
        "<p><strong>bold</strong> <em>it</em> <code>x&lt;y</code> <strong>b</strong> snake_case_name</p>"
    )
    assert html("**a *b* c** ***d***") == (
        "<p><strong>a <em>b</em> c</strong> <em><strong>d</strong></em></p>"
    )
    link = '<a href="https://a.example/x" target="_blank" rel="noopener noreferrer">'
    assert html("[ok](https://a.example/x) https://a.example/x.") == (
        f"<p>{link}ok</a> {link}https://a.example/x</a>.</p>"
    )
    for bad in ("javascript:alert(1)", "data:text/html,x", "//evil.example", "/api", " jAvascript:x"):
        assert "<a" not in html(f"[no]({bad})")
        assert "<a" not in html(f"<{bad}>")
    assert "<img" not in html("![i](https://a.example/i.png)")
    assert html("```html\n<script>alert(1)</script>\n```") == (
        '<div class="code-block"><pre tabindex="0"><code>&lt;script&gt;alert(1)&lt;/script&gt;</code></pre>'
        '<button type="button" class="copy-code" aria-live="polite">Copy</button></div>'
    )
    assert html("- one\n- two\n  - deep\n\n3. c\n4. d") == (
        '<ul><li>one</li><li>two<ul><li>deep</li></ul></li></ul><ol start="3"><li>c</li><li>d</li></ol>'
    )
    assert html("# Title\n> said\n\n---") == (
        '<p class="heading" role="heading" aria-level="3">Title</p><blockquote><p>said</p></blockquote><hr />'
    )
    assert html("| a | b |\n|---|--:|\n| **1** | <i> |") == (
        '<div class="table" role="group" aria-label="Table" tabindex="0"><table><thead><tr><th>a</th>'
        '<th class="right">b</th></tr></thead><tbody><tr><td><strong>1</strong></td>'
        '<td class="right">&lt;i&gt;</td></tr></tbody></table></div>'
    )
    assert html("~~gone~~") == "<p><s>gone</s></p>"
    assert html("- [x] one\n- [ ] two") == (
        '<ul><li class="task"><span class="task-box" role="img" aria-label="done">☑</span> one</li>'
        '<li class="task"><span class="task-box" role="img" aria-label="to do">☐</span> two</li></ul>'
    )
    assert html("### deep\n# high\n### deeper").count('aria-level="3"') == 2
    hidden = '[a]: https://evil.example "t"'
    assert html(hidden).startswith("<p>[a]: <a href=")
    assert html(hidden).endswith('>https://evil.example</a> "t"</p>')
    assert html("unclosed **bold and `code") == "<p>unclosed **bold and `code</p>"


def test_no_text_makes_markdown_slow(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    for text in ("*a ", "[", "`", "> ", "**", "[a](", "- ", "_a_*", "  - x\n", "http://"):
        milliseconds = page.evaluate(
            """async (text) => {
                const { markdown } = await import("/static/markdown.js");
                const begun = performance.now();
                markdown(text.repeat(20_000 / text.length));
                return performance.now() - begun;
            }""",
            text,
        )
        assert milliseconds < 2000, text


def test_characters_that_cannot_be_seen_are_shown_by_their_code(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "rename #3 to 'pay\u202e001\u200bnow'")
    expect(page.locator(f"{CARDS} ins .unseen")).to_have_text(["U+202E", "U+200B"])


def test_a_change_of_lines_is_shown_as_the_server_compared_it_and_new_text_as_text(
    nod: Served, new_page: NewPage
):
    page = new_page(nod.url)
    page.evaluate(
        """async () => {
            const { changes } = await import("/static/diff.js");
            const diff = "  one\\n- two\\n+ 2\\n… 9 lines stay the same";
            const made = changes([
                { field: "content of f", old_value: "…", new_value: "…", diff },
                { field: "note", old_value: null, new_value: "a\\nb\\n", diff: null },
                { field: "gone", old_value: "a\\nb", new_value: null, diff: null },
            ]);
            made.id = "made";
            document.body.append(made);
        }"""
    )
    lines = [" one", "-removed: two", "+added: 2", "… 9 lines stay the same", " a", " b"]
    expect(page.locator("#made .line")).to_have_text([*lines, "-removed: a", "-removed: b"])


def test_no_file_of_the_page_can_insert_markup():
    files = sorted(each for each in STATIC.iterdir() if each.is_file() and each.suffix != ".png")
    assert {"index.html", "console.css", "console.js"} <= {each.name for each in files}
    for each in files:
        text = each.read_text(encoding="utf-8")
        for forbidden in (
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "srcdoc",
            "setHTML", "createContextualFragment", "eval(", "Function(",
        ):  # fmt: skip
            assert forbidden not in text, (each.name, forbidden)
        if each.suffix == ".html":
            assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"https?://(?!www\.w3\.org/)[a-z]", text), each.name


def test_the_files_of_the_page_come_packed_all_together_and_once(nod: Served):
    page = httpx.get(nod.url)
    assert page.headers["cache-control"] == "no-cache"
    [script] = re.findall(
        r'<script type="module" src="(static/[0-9a-f]{16}/console.js)"></script>', page.text
    )
    packed = httpx.get(f"{nod.url}{script}")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-type"] == "text/javascript; charset=utf-8"
    assert packed.text == bundle(STATIC / "console.js")
    assert httpx.post(f"{nod.url}{script}").status_code == 405
    first = httpx.get(f"{nod.url}static/console.css")
    assert (first.headers["content-encoding"], first.headers["cache-control"]) == ("gzip", "no-cache")
    again = httpx.get(f"{nod.url}static/console.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_tab_that_is_opened_later_asks_for_the_page_and_its_data_alone(nod: Served, new_page: NewPage):
    page = new_page("about:blank")
    asked: list[str] = []
    page.context.on("request", lambda each: asked.append(each.url) if each.url.startswith(nod.url) else None)
    page.goto(f"{nod.url}#/inbox")
    expect(page.locator("#inbox-list")).to_be_visible()
    scripts = {each for each in asked if each.endswith((".js", ".css"))}
    served = {each: httpx.get(each).headers["cache-control"] for each in scripts}
    assert len(scripts) == 2  # a script and a style, for all tabs
    assert {each for each, kept in served.items() if "immutable" not in kept} == set()
    [version] = {each.split("/static/")[1].partition("/")[0] for each in scripts}
    other = httpx.get(f"{nod.url}static/{'0' * 16}/console.css")  # of a release that is gone, or not yet here
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")
    assert httpx.get(f"{nod.url}static/{version}/nothing.js").status_code == 404
    assert "immutable" not in httpx.get(f"{nod.url}static/{version}/nothing.js").headers.get(
        "cache-control", ""
    )


def test_the_page_is_served_with_a_policy_that_allows_no_inline_code(nod: Served):
    answer = httpx.get(nod.url)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_result_can_be_saved_as_a_file(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "assign #3 to Ana")
    shown = card(page, "Change assignee of issue #3")
    button(shown, "Approve").click()
    expect(shown.locator(".state")).to_have_text("Done")
    shown.locator("details[data-part=all] summary").click()
    with page.expect_download() as saving:
        button(shown, "Save as a file").click()
    saved = saving.value
    assert re.fullmatch(r"update_issue-[0-9a-f]{16}\.txt", saved.suggested_filename)
    assert '"assignee": "Ana"' in saved.path().read_text()


def test_what_a_script_asks_stands_in_the_inbox_as_a_request_and_is_approved_there(
    nod: Served, new_page: NewPage
):
    page = new_page(f"{nod.url}#/inbox")
    asked = {"summary": "Deploy 1.4", "fields": {"version": "1.4"}}
    request = nod.client.post("api/approvals", json=asked).json()["proposal"]
    card = page.locator("#inbox-list .card")
    expect(card.locator(".risk")).to_have_text("Request")
    expect(card).to_contain_text("Version")
    button(card, "Approve").click()
    expect(card.locator(".state")).to_have_text("Approved")
    ended = nod.client.get(f"api/approvals/{request['id']}", params={"wait": 10}).json()["proposal"]
    assert ended["end"] == "approved"


def test_a_servers_question_stands_in_its_conversation_and_is_filled_in_there(nod: Served, new_page: NewPage):
    page = new_page(nod.url)
    ask(page, "who has the most work?")
    expect(said(page, re.compile("open"))).to_be_visible()
    conversation = nod.client.get("api/conversations").json()["conversations"][0]["id"]
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    question = Question("lamps", "Which color?", conversation, "http:local", schema)
    loop = nod.app.web._task.get_loop()
    answer = asyncio.run_coroutine_threadsafe(nod.app.questions.ask(question), loop)
    shown = card(page, "lamps asks: Which color?")
    expect(shown.locator(".risk")).to_have_text("Question")
    expect(button(shown, "Approve")).to_have_count(0)
    button(shown, "Send answer").click()
    expect(shown.locator(".card-word")).to_contain_text("Fill in first: color")
    button(shown, "Fill in").click()
    shown.locator(".form-row").get_by_role("textbox").fill("red")
    button(shown, "Save").click()
    expect(shown).to_contain_text("red")
    button(shown, "Send answer").click()
    expect(shown.locator(".state")).to_have_text("Answered")
    assert answer.result(10) == Elicited(Action.ACCEPT, {"color": "red"})

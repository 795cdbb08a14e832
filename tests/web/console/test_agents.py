"""The Agents page: a token is made once its tools were listed, shown once, and ended."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import NewPage, button, violations

pytestmark = pytest.mark.browser

ANA, CHIEF = "a" * 20, "c" * 20
SETTINGS: dict[str, Any] = {
    "token": ANA,
    "NOD_HTTP_TOKENS": (f"ana:{ANA}", f"chief:{CHIEF}"),
    "NOD_ADMINS": ("http:chief",),
}
SMALL = {"width": 320, "height": 640}


def enter(nod: Served, new_page: NewPage, at: str = "agents", token: str = ANA, **how: Any) -> Page:
    page = new_page(nod.url, **how)
    page.get_by_label("Access token").fill(token)
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_be_visible()
    page.goto(f"{nod.url}#/{at}")
    return page


def make(page: Page, name: str = "claude-code", tools: str = "*_issue*, list_*") -> str:
    """Make a token as a person does; returns it."""
    button(page, "Make a token").click()
    page.get_by_label("Name of the program").fill(name)
    page.get_by_label("Tools it may call").fill(tools)
    button(page, "Show its tools").click()
    listed = page.get_by_label("What it may call")
    expect(listed).to_contain_text("create_issue")
    expect(listed).not_to_contain_text("remember")
    assert page.get_by_role("article").count() == 0
    button(page, "Make the token").click()
    token = page.get_by_label("The token").input_value()
    button(page, "Done").click()
    return token


def test_a_token_is_made_after_its_tools_were_listed_then_used_and_ended(serve: Serve, new_page: NewPage):
    with serve(**SETTINGS) as nod:
        page = enter(nod, new_page)
        expect(page.get_by_text("Nothing calls tools for you.")).to_be_visible()
        token = make(page)
        assert token.startswith("noda_")
        card = page.get_by_role("article", name="Agent claude-code")
        expect(card).to_contain_text("May call *_issue*, list_*")
        expect(card).to_contain_text("Not used yet")
        agent = {"Authorization": f"Bearer {token}"}
        tools = httpx.get(f"{nod.url}api/tools", headers=agent).json()["tools"]
        assert "create_issue" in {each["name"] for each in tools}
        page.reload()
        expect(card).to_contain_text("Used ")
        assert token not in page.content()
        page.goto(f"{nod.url}#/you")
        expect(page.get_by_role("heading", name="What calls tools for you")).to_be_visible()
        mine = page.locator("#you-list").get_by_role("article", name="Agent claude-code")
        mine.get_by_role("button", name="End claude-code").click()
        button(mine, "Keep").click()
        mine.get_by_role("button", name="End claude-code").click()
        button(mine, "End").click()
        expect(page.locator("#you-list .notice-word")).to_have_text("Ended: claude-code.")
        expect(mine).to_have_count(0)
        assert httpx.get(f"{nod.url}api/tools", headers=agent).status_code == 401


def test_what_a_form_gets_wrong_is_said_and_nothing_is_made(serve: Serve, new_page: NewPage):
    with serve(**SETTINGS) as nod:
        page = enter(nod, new_page)
        button(page, "Make a token").click()
        page.get_by_label("Name of the program").fill("no name!")
        page.get_by_label("Tools it may call").fill("nothing_like_it")
        button(page, "Show its tools").click()
        expect(page.get_by_label("What it may call")).to_contain_text("may call no tool now")
        button(page, "Make the token").click()
        expect(page.locator("#agents-list .notice-word")).to_contain_text("is not a name for a token")
        button(page, "Back").click()
        expect(page.get_by_label("Name of the program")).to_have_value("no name!")
        assert nod.client.get("api/agents").json()["agents"] == []


def test_admins_see_everyones_and_end_them(serve: Serve, new_page: NewPage):
    with serve(**SETTINGS) as nod:
        make(enter(nod, new_page))
        page = enter(nod, new_page, token=CHIEF)
        expect(page.get_by_role("heading", name="Everyone else")).to_be_visible()
        card = page.get_by_role("article", name="Agent claude-code")
        expect(card).to_contain_text("For ana")
        card.get_by_role("button", name="End claude-code").click()
        button(card, "End").click()
        expect(card).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_page_and_its_forms(serve: Serve, new_page: NewPage, scheme: str):
    with serve(**SETTINGS) as nod:
        page = enter(nod, new_page, color_scheme=scheme)
        for size in ({"width": 1280, "height": 800}, SMALL):
            page.set_viewport_size(size)  # type: ignore[arg-type] # a mapping of those two
            button(page, "Make a token").click()
            assert violations(page) == []
            page.get_by_label("Name of the program").fill(f"agent-{size['width']}")
            page.get_by_label("Tools it may call").fill("*_issue*")
            button(page, "Show its tools").click()
            expect(page.get_by_label("What it may call")).to_be_visible()
            assert violations(page) == []
            button(page, "Make the token").click()
            expect(page.get_by_label("The token")).to_be_visible()
            assert violations(page) == []
            html = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert html[0] <= html[1]
            button(page, "Done").click()
            page.get_by_role("button", name=f"End agent-{size['width']}").click()
            assert violations(page) == []
            button(page, "Keep").click()

"""The Memory page: what is remembered is read, edited, exported and forgotten."""

import pytest
from playwright.sync_api import expect

from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.people import LOCAL
from bot.features.memory import rows as memory
from bot.features.memory.facts import About, Fact
from bot.store.audit.log import Author
from tests.web.console.conftest import Served
from tests.web.console.test_console import NewPage

pytestmark = pytest.mark.browser


def keep(nod: Served, text: str, about: About, scope: str) -> None:
    by = Author(Act.REMEMBER, str(LOCAL), str(LOCAL), LOCAL.channel)
    fact = Fact(0, text, (about, scope), LOCAL, nod.app.clock(), None)
    nod.app.database.write_now(memory.add_fact, fact, by)


def test_a_fact_is_edited_and_forgotten_on_the_page(nod: Served, new_page: NewPage):
    keep(nod, "My desk is at the window.", About.PERSON, str(LOCAL))
    keep(nod, "Deploys are on <b>Tuesday</b>.", About.PLACE, str(Address("slack", "T1/C2")))
    page = new_page(f"{nod.url}#/memory")
    mine = page.get_by_role("article", name="Fact 1")
    expect(page.get_by_role("heading", name="For you")).to_be_visible()
    expect(page.get_by_role("article", name="Fact 2")).to_contain_text("Deploys are on <b>Tuesday</b>.")
    mine.get_by_role("button", name="Edit fact 1").click()
    expect(mine.get_by_role("textbox")).to_be_focused()
    mine.get_by_role("textbox").fill("the password is hunter2")
    mine.get_by_role("button", name="Save fact 1").click()
    word = page.locator("#memory-list .notice-word")
    expect(word).to_contain_text("This looks like a secret")
    mine.get_by_role("textbox").fill("My desk is at the door.")
    mine.get_by_role("button", name="Save fact 1").click()
    expect(word).to_have_text("Remembered: My desk is at the door.")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export JSON").click()
    assert saved.value.suggested_filename == "memory.json"
    mine.get_by_role("button", name="Forget fact 1").click()
    mine.get_by_role("button", name="Keep fact 1").click()
    mine.get_by_role("button", name="Forget fact 1").click()
    mine.get_by_role("button", name="Forget fact 1").click()
    expect(word).to_have_text("Forgotten: My desk is at the door.")
    expect(page.get_by_role("article")).to_have_count(1)

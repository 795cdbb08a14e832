"""The People page: who is who, and separating an account again."""

import pytest
from playwright.sync_api import expect

from bot.domain.chat import Address, Command
from bot.domain.people import LOCAL, Actor
from tests.web.console.conftest import Served
from tests.web.console.test_console import NewPage

pytestmark = pytest.mark.browser

CHAT = Actor("slack", "T1/U7", "Ana Berg")


def link(nod: Served) -> None:
    """Make one person of who is at this machine and an account in Slack."""

    def say(actor: Actor, words: str) -> str:
        return nod.handle(Command(actor, "nod", words, Address("slack", "T1/D1"))).text

    code = say(LOCAL, "link").split("`")[1]
    say(CHAT, f"link {code} yes")
    assert "are one person now" in say(LOCAL, f"link yes {CHAT}")


def test_linked_accounts_are_one_person_until_one_is_unlinked(nod: Served, new_page: NewPage):
    link(nod)
    page = new_page(f"{nod.url}#/you")
    page.get_by_role("link", name="Who is who").click()
    person = page.get_by_role("article", name="Person Ana Berg")
    expect(person.get_by_role("listitem")).to_have_count(2)
    expect(person).to_contain_text("Admin by the settings")
    unlink = person.get_by_role("button", name="Unlink slack:T1/U7")
    unlink.click()
    expect(person).to_contain_text("Grants that this person gave end.")
    person.get_by_role("button", name="Cancel").click()
    unlink.click()
    expect(person.get_by_role("button", name="Unlink", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    word = page.locator("#people-list .notice-word")
    expect(word).to_have_text("Unlinked: slack:T1/U7 is a separate person again.")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("article").get_by_role("button")).to_have_count(0)


def test_who_is_away_is_shown_with_who_decides_until_it_is_ended(nod: Served, new_page: NewPage):
    at = Address("slack", "T1/D1")
    said = nod.handle(Command(CHAT, "nod", "away cli:ben for 3d", at)).text
    assert "cli:ben may decide what you may" in said
    page = new_page(f"{nod.url}#/people")
    person = page.get_by_role("article", name="Person Ana Berg")
    expect(person).to_contain_text("Away until")
    expect(person).to_contain_text("cli:ben may decide what they may.")
    person.get_by_role("button", name="End the absence of slack:T1/U7").click()
    expect(page.locator("#people-list .notice-word")).to_have_text("Ended: cli:ben for Ana Berg.")
    expect(person).to_have_count(0)


def test_what_is_muted_is_shown_to_the_person_alone_until_it_is_ended(nod: Served, new_page: NewPage):
    at = Address("http", "local")
    assert "You are not told of" in nod.handle(Command(LOCAL, "nod", "mutes create_issue for 8h", at)).text
    page = new_page(f"{nod.url}#/people")
    person = page.get_by_role("article").first
    expect(person).to_contain_text("Muted until")
    expect(person).to_contain_text("create_issue")
    person.get_by_role("button", name="End the mute of create_issue").click()
    expect(page.locator("#people-list .notice-word")).to_have_text("You are told again of create_issue.")
    expect(person).not_to_contain_text("Muted")

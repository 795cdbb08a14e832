"""Rules and grants in the console, for admins: a real browser, the real server."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import NARROW, fits, violations

pytestmark = pytest.mark.browser

NewPage = Callable[..., Page]


def rules_page(nod: Served, new_page: NewPage, **options: object) -> Page:
    return new_page(f"{nod.url}#/rules", **options)


def grant(nod: Served, message: str = "assign #3 to Ana", **how: str) -> None:
    (proposal,) = nod.ask(message)
    nod.press(proposal, "similar", **{"rung": "tool", "lasting": "8h", **how})


def say(nod: Served, words: str) -> None:
    nod.client.post("api/commands", json={"name": "approvals", "text": words}).raise_for_status()


def test_grants_are_listed_with_who_and_how_long_and_revoked_one_or_all(nod: Served, new_page: NewPage):
    for message in ("assign #3 to Ana", "create an issue 'Add CSV export'", "close #4"):
        grant(nod, message, lasting="conversation" if "CSV" in message else "8h")
    page = rules_page(nod, new_page)
    first = page.get_by_role("article", name="Grant G-1")
    expect(first).to_contain_text("G-1: update_issue with any arguments")
    expect(first).to_contain_text(re.compile(r"Given by you .*; used 0 times; ends in (8|7) hours"))
    expect(page.get_by_role("article", name="Grant G-2")).to_contain_text("ends with its conversation")
    page.get_by_role("button", name="Revoke G-1").click()
    expect(page.locator(".card-word")).to_have_text("Ended: 1 grant.")
    expect(first).to_have_count(0)
    page.get_by_role("button", name="Revoke all grants").click()
    expect(page.get_by_text("No grants: every change still asks.")).to_be_visible()
    (waiting,) = nod.ask("assign #4 to Ben")
    assert waiting["state"] == "proposed"


def test_a_rule_is_tried_set_and_dropped_and_tells_who_set_it(nod: Served, new_page: NewPage):
    page = rules_page(nod, new_page)
    page.get_by_role("combobox", name="Tool", exact=True).fill("update_issue")
    page.get_by_label("Arguments, as JSON").fill('{"number": 3, "assignee": "Ana"}')
    page.get_by_role("button", name="Test").click()
    answer = page.get_by_role("form", name="Test a call").get_by_role("status")
    expect(answer).to_contain_text("It would ask for one approval")
    page.get_by_label("Set a rule", exact=True).last.fill("policy never for update_issue")
    page.keyboard.press("Enter")
    shown = page.get_by_role("article", name="Rule 1")
    expect(shown).to_contain_text("policy never for update_issue")
    expect(shown).to_contain_text(re.compile("set by http:local just now"))
    expect(page.locator(".card-word")).to_contain_text("runs without asking anyone")
    page.get_by_role("button", name="Test").click()
    expect(answer).to_contain_text("It would run immediately")
    page.get_by_role("button", name="Drop rule 1").click()
    expect(shown).to_have_count(0)


def test_a_rule_is_tried_on_the_past_before_it_is_set(nod: Served, new_page: NewPage):
    (proposal,) = nod.ask("close #2")
    nod.press(proposal, "decline", reason="we need it")
    page = rules_page(nod, new_page)
    field = page.get_by_label("Set a rule", exact=True).last
    field.fill("policy never for close_issue")
    page.get_by_role("button", name="Try on the past").click()
    told = page.get_by_role("status", name="What the rule would have changed")
    expect(told).to_contain_text("Would not have been asked for1")
    expect(told).to_contain_text("had declined, edited or undone 1")
    expect(told.get_by_role("listitem")).to_contain_text("declined by you: we need it")
    expect(told.get_by_role("link")).to_have_attribute("href", f"#/inbox/{proposal['id']}")
    expect(told).to_contain_text("Reads are not included.")
    expect(page.get_by_role("article", name="Rule 1")).to_have_count(0)
    field.fill("polcy never")
    expect(told).to_be_empty()
    page.get_by_role("button", name="Try on the past").click()
    expect(told).to_contain_text("Use one of")


def test_a_wrong_word_is_told_with_the_fix_and_what_was_typed_stays(nod: Served, new_page: NewPage):
    page = rules_page(nod, new_page)
    field = page.get_by_label("Set a rule", exact=True).last
    field.fill("polcy never")
    page.keyboard.press("Enter")
    expect(page.locator(".card-word.bad")).to_contain_text("Did you mean")
    expect(field).to_have_value("polcy never")


def test_everything_can_be_paused_and_resumed(nod: Served, new_page: NewPage):
    page = rules_page(nod, new_page)
    page.get_by_role("button", name="Pause everything").click()
    expect(page.get_by_text("Paused. Nothing runs")).to_be_visible()
    banner = page.locator("#banners")
    expect(banner).to_contain_text(re.compile(r"Paused by you since \d\d:\d\d\. Nothing runs"))
    page.get_by_role("link", name="Inbox").first.click()
    page.get_by_role("link", name="Resume on the rules page").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause everything")).to_be_visible()
    expect(banner).to_have_text("")


def test_it_works_by_keyboard_and_fits_a_phone(nod: Served, new_page: NewPage):
    say(nod, f"policy always for {'w' * 150}*")
    grant(nod)
    page = rules_page(nod, new_page, **NARROW)
    revoke = page.get_by_role("button", name="Revoke G-1")
    expect(revoke).to_be_visible()
    assert fits(page)
    revoke.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("No grants: every change still asks.")).to_be_visible()
    page.get_by_label("Open the menu").click()
    expect(page.get_by_role("link", name="Rules", exact=True)).to_have_attribute("aria-current", "page")


def test_hostile_words_stay_text(nod: Served, new_page: NewPage):
    say(nod, "policy always for <img/src=x/onerror=alert(1)>\u202e*")
    page = rules_page(nod, new_page)
    shown = page.get_by_role("article", name="Rule 1")
    expect(shown).to_contain_text("policy always for <img/src=x/onerror=alert(1)>*")  # without the unseen
    expect(shown).not_to_contain_text("\u202e")
    assert page.locator("#rules img").count() == 0


def test_who_is_not_an_admin_reads_what_concerns_them_and_changes_nothing(serve: Serve, new_page: NewPage):
    tokens = ("ana:ana-0123456789abcdef", "chief:chief-0123456789abcdef")
    with serve(NOD_HTTP_TOKENS=tokens, NOD_ADMINS=("http:chief",), token="ana-0123456789abcdef") as nod:
        with httpx.Client(base_url=nod.url, headers={"Authorization": f"Bearer {tokens[1][6:]}"}) as chief:
            for words in ("policy always for delete_*", "ttl 4h in slack:T1/C2"):
                said = chief.post("api/commands", json={"name": "approvals", "text": words})
                assert said.status_code == 200
        grant(nod)
        assert httpx.get(f"{nod.url}api/rules").status_code == 401
        page = rules_page(nod, new_page)
        page.get_by_label("Access token").fill("ana-0123456789abcdef")
        page.keyboard.press("Enter")
        expect(page.get_by_role("article", name="Rule 1")).to_contain_text("policy always for delete_*")
        expect(page.get_by_role("article", name="Grant G-1")).to_be_visible()
        expect(page.get_by_role("article")).to_have_count(2)
        expect(page.locator("#rules-list button:visible, #rules-list form:visible")).to_have_count(0)
        expect(page.locator("#to-audit")).to_have_count(0)


def test_every_recipe_and_every_form_gives_words_that_are_taken(nod: Served, new_page: NewPage):
    page = rules_page(nod, new_page)
    page.get_by_text("Begin with a recipe").click()
    recipes = page.locator(".recipes button")
    expect(recipes).to_have_count(12)
    for number, recipe in enumerate(recipes.all(), start=1):
        recipe.click()
        words = page.get_by_label("Set a rule", exact=True).last.input_value()
        with page.expect_response("**/api/commands") as answered:
            page.get_by_role("button", name="Set the rule").click()
        assert answered.value.ok, words
        expect(page.get_by_role("article", name=f"Rule {number}", exact=True)).to_be_visible()
    subjects = page.get_by_label("What the rule says").locator("option")
    for subject in [each.get_attribute("value") or "" for each in subjects.all()]:
        page.get_by_label("What the rule says").select_option(subject)
        for field in page.locator(".rule-form .rule-part input[type=text]").all():
            if field.input_value() in ("", "*") and field.get_attribute("id") in ("rule-to", "rule-account"):
                field.fill("slack:T1/C2")
        words = page.get_by_label("Set a rule", exact=True).last.input_value()
        answer = nod.client.post("api/commands", json={"name": "approvals", "text": words})
        assert answer.status_code == 200, (words, answer.text)


def test_a_rule_is_narrowed_further_in_the_form_and_shows_when_it_ends(nod: Served, new_page: NewPage):
    page = rules_page(nod, new_page)
    page.get_by_label("For which tools").fill("update_issue")
    page.get_by_text("Narrow it further").click()
    page.get_by_label("For what this account asks").fill("slack:T1/U7")
    page.get_by_label("Until").fill("tomorrow 18:00")
    page.get_by_label("Between").fill("18:00")
    page.get_by_label("and", exact=True).fill("08:00")
    page.get_by_label("On these days").fill("weekdays")
    page.get_by_label("Where the arguments are").fill("priority in (low, normal)")
    words = page.get_by_label("Set a rule", exact=True).last
    expect(words).to_have_value(
        "policy always for update_issue by slack:T1/U7 until tomorrow 18:00 between 18:00 and 08:00 "
        "on weekdays where priority in (low, normal)"
    )
    page.get_by_role("button", name="Set the rule").click()
    rule = page.get_by_role("article", name="Rule 1", exact=True)
    expect(rule).to_contain_text("between 18:00 and 08:00 on weekdays where priority in (low, normal)")
    expect(rule).to_contain_text("ends ")
    page.get_by_label("Where the arguments are").fill("priorty = low")
    page.get_by_role("button", name="Set the rule").click()
    expect(page.locator(".card-word")).to_contain_text("it has no priorty (did you mean priority?)")
    page.get_by_label("What the rule says").select_option("plans")
    expect(page.get_by_text("Narrow it further")).to_be_hidden()


def test_which_model_answers_is_chosen_by_name_where_there_are_several(
    serve: Serve, new_page: NewPage, tmp_path: Path
):
    tables = [f'[{name}]\nbase_url = "http://127.0.0.1:9/v1"\n' for name in ("first", "private")]
    (tmp_path / "models.toml").write_text("".join(tables))
    with serve(NOD_MODELS=tmp_path / "models.toml", demo=False) as nod:
        page = rules_page(nod, new_page)
        page.get_by_label("What the rule says").select_option("Which model answers")
        page.get_by_label("Model", exact=True).select_option("private")
        page.get_by_label("Where", exact=True).fill("slack:T1/U7")
        expect(page.get_by_label("For which tools")).to_be_hidden()
        page.get_by_role("button", name="Set the rule").click()
        rule = page.get_by_role("article", name="Rule 1", exact=True)
        expect(rule).to_contain_text("model private for slack:T1/U7")


def test_a_second_opinion_is_asked_for_in_the_form(serve: Serve, new_page: NewPage, tmp_path: Path):
    tables = [f'[{name}]\nbase_url = "http://127.0.0.1:9/v1"\n' for name in ("first", "private")]
    (tmp_path / "models.toml").write_text("".join(tables))
    with serve(NOD_MODELS=tmp_path / "models.toml", demo=False) as nod:
        page = rules_page(nod, new_page)
        page.get_by_label("What the rule says").select_option("Who gives a second opinion")
        page.get_by_label("Model", exact=True).select_option("private")
        page.get_by_label("Then", exact=True).select_option("Its no asks for one more approval")
        page.get_by_label("For which tools").fill("delete_*")
        assert violations(page) == []
        page.get_by_role("button", name="Set the rule").click()
        rule = page.get_by_role("article", name="Rule 1", exact=True)
        expect(rule).to_contain_text("opinion private raises for delete_*")

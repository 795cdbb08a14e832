"""A question of the agent in the console, and a plan that it carries out."""

import pytest
from playwright.sync_api import expect

from bot.testing.world import Says, ScriptedModel
from tests.web.console.conftest import Serve
from tests.web.console.test_console import NewPage

pytestmark = pytest.mark.browser


def test_a_question_is_answered_in_words_and_a_plan_is_ticked_off(serve: Serve, new_page: NewPage):
    model = ScriptedModel()
    asks = ("ask_person", {"question": "Which color should the label have?", "choices": ["red", "sky blue"]})
    issue = {"tool": "create_issue", "arguments": {"title": "Paint it"}}
    steps = [{"description": "Look around"}, {"description": "Note it down", "calls": [issue]}]
    plan = ("plan_submit", {"summary": "Paint the label", "steps": steps})
    done = ("create_issue", {"title": "Paint it"})
    model.answers.extend(
        [Says("A question.", (asks,)), Says("A plan.", (plan,)), Says("Now.", (done,)), Says("All done.")]
    )
    with serve(model=model) as nod:
        page = new_page(nod.url)
        page.get_by_role("textbox").fill("paint the label")
        page.keyboard.press("Enter")
        expect(page.get_by_text("An answer approves nothing.")).to_be_visible()
        expect(page.get_by_role("button", name="sky blue: Which color")).to_be_visible()
        page.get_by_role("button", name="Answer in words: Which color").click()
        page.get_by_role("textbox", name="What is your answer?").fill("green")
        page.get_by_role("button", name="Answer in words", exact=True).click()
        folded = page.get_by_role("article", name="Proposal, Answered: Which color")
        expect(folded).to_contain_text("Answered by you")
        expect(folded.locator(".answered")).to_have_text("green")
        expect(page.get_by_role("button", name="Approve plan: Plan")).to_be_visible()
        page.get_by_role("button", name="Approve plan: Plan").click()
        expect(page.get_by_text("1 of 2 steps done")).to_be_visible()
        expect(page.get_by_text("✅ Note it down")).to_be_visible()

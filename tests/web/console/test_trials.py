"""A trial in the console: what a command would do is its card, and Approve does that."""

import os
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.kit import call, says
from tests.kit.model import ScriptedModel
from tests.tools.builtin.trials.world import world
from tests.web.console.conftest import Serve, Served
from tests.web.console.test_batches import table
from tests.web.console.test_console import NARROW, NewPage, ask, button, card, issue, rare, violations

pytestmark = pytest.mark.browser

SCRIPT = (
    "echo three >> a.txt; mkdir -p .git/hooks; printf '#!/bin/sh\\nmake lint\\n' > .git/hooks/pre-commit;"
    "chmod +x .git/hooks/pre-commit; printf '\\0\\1' > logo.png; echo 2 files; exit 3"
)


def _picture(page: Page, name: str) -> None:
    """Where pictures are wanted, to be looked at."""
    if folder := os.environ.get("NOD_TEST_PICTURES"):
        page.wait_for_timeout(400)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize(
    ("name", "look"), [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", NARROW)]
)
def test_a_trial_is_shown_applied_and_undone(
    serve: Serve, new_page: NewPage, name: str, look: dict[str, Any]
) -> None:
    model = ScriptedModel()
    model.will(says("I'll set it up.", call("shell_run", argv=["sh", "-c", SCRIPT])), says("It is there."))
    with world() as around:  # whose folders the account of a command may walk to
        given = {"NOD_WORKSPACE": str(around.workspace), "NOD_SHELL": True, "NOD_TRIALS": True}
        with serve(model=model, **given) as nod:
            page = new_page(nod.url, **look)
            ask(page, "set up the hook")
            shown = card(page, "Run “sh").first
            expect(shown).to_contain_text("Tried in a closed copy")
            expect(shown).to_contain_text("make lint")
            expect(shown).to_contain_text("sha256")
            assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
            assert violations(page) == []
            _picture(page, f"trial-waits-{name}")
            rare(shown, "Approve and run it for real").click()
            form = shown.get_by_role("form", name="Approve and run it for real")
            expect(form).to_contain_text("effects outside files")
            expect(shown.get_by_text("Can be undone for 30 min")).to_have_count(1)
            _picture(page, f"trial-for-real-{name}")
            form.get_by_role("button", name="Not now").click()
            button(shown, "Approve").click()
            if (sure := shown.get_by_role("form", name="Approve")).count():
                sure.get_by_role("button", name="Approve").click()
            expect(shown).to_contain_text("Applied the result of its trial: 5 files changed")
            expect(shown).to_contain_text("Checked: code of .git/hooks is folder, mode 755")
            assert (around.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
            _picture(page, f"trial-ended-{name}")
            button(shown, "Undo").click()
            form = shown.get_by_role("form", name="Undo")
            expect(form).to_contain_text("Undoing does this: Put back .git, .git/hooks")
            _picture(page, f"trial-undo-{name}")
            form.get_by_role("button", name="Undo").click()
            expect(shown).to_contain_text("Undone by you")
            assert (around.workspace / "a.txt").read_text() == "one\ntwo\n"
            assert violations(page) == []
            _picture(page, f"trial-undone-{name}")


def test_all_of_a_batch_is_undone_after_a_question(nod: Served, new_page: NewPage) -> None:
    page = new_page(nod.url)
    ask(page, "close #2, close #3 and close #4")
    button(table(page).first, "Approve 3").click()
    button(table(page).first, "Undo all").click()
    form = table(page).first.get_by_role("form", name="Undo all")
    expect(form).to_contain_text("Each row gets back what was there.")
    assert violations(page) == []
    form.get_by_role("button", name="Keep them").click()
    assert issue(nod, 2)["state"] == "closed"
    button(table(page).first, "Undo all").click()
    form.get_by_role("button", name="Undo all").click()
    expect(page.locator("#announcer")).to_contain_text("3 being undone.")  # the card shows it until they are
    expect(table(page)).to_have_count(2)
    assert [issue(nod, n)["state"] for n in (2, 3, 4)] == ["open"] * 3

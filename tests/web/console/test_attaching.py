"""Files for Nod in the console: picked, dropped or pasted, taken away again, sent, and saved."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.console.conftest import Served
from tests.web.console.test_console import NewPage, violations

pytestmark = pytest.mark.browser

GIVE = """
    ([kind, names]) => {
      const data = new DataTransfer();
      names.forEach((name) => data.items.add(new File(["name,sum\\nAna,12"], name, { type: "text/csv" })));
      const box = document.getElementById("message");
      const told = { bubbles: true, cancelable: true };
      const event = kind === "paste"
        ? new ClipboardEvent(kind, { ...told, clipboardData: data })
        : new DragEvent(kind, { ...told, dataTransfer: data });
      box.dispatchEvent(event);
    }
"""


def test_files_are_picked_dropped_and_pasted_and_go_with_the_message(
    nod: Served, new_page: NewPage, tmp_path: Path
):
    page: Page = new_page(nod.url)
    expect(page.get_by_label("Message to Nod")).to_be_focused()  # the page is ready
    (tmp_path / "picked.csv").write_text("name,sum\nAna,12")
    page.set_input_files("#picked", tmp_path / "picked.csv")
    page.evaluate(GIVE, ["drop", ["dropped.csv", "unwanted.csv"]])
    page.evaluate(GIVE, ["paste", ["pasted.csv"]])
    chips = page.locator("#attached .file-name")
    expect(chips).to_have_text(["picked.csv", "dropped.csv", "unwanted.csv", "pasted.csv"])
    page.get_by_role("button", name="Remove unwanted.csv").click()
    assert violations(page) == []

    page.get_by_label("Message to Nod").fill("What is in these?")
    page.keyboard.press("Enter")
    expect(chips).to_have_count(0)
    sent = page.locator("#thread .user .file-name")
    expect(sent).to_have_text(["picked.csv", "dropped.csv", "pasted.csv"])
    page.locator("#thread .assistant").first.wait_for()
    page.reload()
    expect(sent).to_have_text(["picked.csv", "dropped.csv", "pasted.csv"])
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save picked.csv").click()
    assert Path(saved.value.path()).read_text() == "name,sum\nAna,12"


def test_files_alone_are_sent_and_what_is_no_use_is_said(nod: Served, new_page: NewPage):
    page: Page = new_page(nod.url)
    expect(page.get_by_label("Message to Nod")).to_be_focused()  # the page is ready
    page.evaluate(GIVE, ["drop", ["a.csv"]])
    page.set_input_files(
        "#picked", [{"name": "clip.mp4", "mimeType": "video/mp4", "buffer": b"\0\0\0\x20ftypisom"}]
    )
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#thread .notice")).to_contain_text("I can't read clip.mp4: it is a video.")

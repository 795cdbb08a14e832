"""The Files page: what tools made in this person's conversations."""

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import expect
from sqlmodel import Session

from bot.domain.files import File
from bot.domain.times import now
from bot.store import outputs
from tests.web.console.conftest import Served
from tests.web.console.test_console import NewPage

pytestmark = pytest.mark.browser


def test_a_file_is_listed_with_its_conversation_and_saved(nod: Served, new_page: NewPage, tmp_path: Path):
    page = new_page(f"{nod.url}#/files")
    expect(page.get_by_role("heading", name="No files yet")).to_be_visible()
    [proposal] = nod.ask("close #4")

    def keep(session: Session) -> None:
        outputs.store_output(
            session, proposal["conversation_id"], File("Report of today.csv", "a;b\n" * 700), now()
        )

    asyncio.run_coroutine_threadsafe(nod.app.database.write(keep), nod.loop).result(20)
    page.reload()
    row = page.get_by_role("row").filter(has_text="close #4")
    expect(row).to_contain_text("3 kB")
    with page.expect_download() as saving:
        row.get_by_role("button").click()
    saved = tmp_path / "saved"
    saving.value.save_as(saved)
    assert saved.read_text() == "a;b\n" * 700
    row.get_by_role("link", name="close #4").click()
    expect(page.get_by_role("log")).to_contain_text("close #4")

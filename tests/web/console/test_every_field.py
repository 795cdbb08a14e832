"""Whatever is asked for: all of it can be read in the console and at the command line."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from bot.cli.main import main
from tests.channels.test_every_field import Marks, objects, unseen
from tests.web.console.conftest import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]
_ONE_NOD = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


@settings(max_examples=10, suppress_health_check=_ONE_NOD)
@given(st.data())
def test_every_field_and_line_can_be_read_before_approve_works(
    nod: Served, new_page: Callable[..., Page], data: st.DataObject
) -> None:
    marks = Marks()
    body = {"tool_name": "Deploy", "input": data.draw(objects(marks))}
    asked = nod.client.post("api/permissions", json=body).raise_for_status().json()["proposal"]
    page = new_page(f"{nod.url}#/inbox/{asked['id']}")
    card = page.locator(f"#inbox-detail .card[data-proposal='{asked['id']}']")
    expect(card.locator("button", has_text="Approve")).to_be_visible()
    environment = {"NOD_DATABASE_URL": nod.app.settings.database_url}
    printed = CliRunner().invoke(main, ["show", asked["id"]], env=environment, catch_exceptions=False)
    for text in (card.text_content() or "", printed.output):
        assert [mark for mark in marks.made if mark not in text.casefold()] == [], text
        assert unseen(text) == ""
    page.close()

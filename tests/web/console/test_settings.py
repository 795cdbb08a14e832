"""Settings and doctor in the console."""

import pytest
from playwright.sync_api import expect

from tests.web.console.conftest import Serve
from tests.web.console.test_console import NewPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_an_admin_reads_the_settings_and_has_everything_checked(serve: Serve, new_page: NewPage):
    with serve(NOD_PROPOSAL_TTL="36h", NOD_WEBHOOK_SECRET="very-secret-0123456789") as nod:
        page = new_page(f"{nod.url}#/settings")
        given = page.get_by_role("region", name="Settings")
        expect(given.get_by_role("row", name="NOD_PROPOSAL_TTL 36h")).to_be_visible()
        expect(given.get_by_role("row", name="NOD_WEBHOOK_SECRET set")).to_be_visible()
        page.get_by_text("with their defaults").click()
        expect(page.get_by_role("row", name="NOD_RETENTION 30d")).to_be_visible()
        page.get_by_role("button", name="Check everything").click()
        expect(page.get_by_role("button", name="Check again")).to_be_enabled(timeout=150_000)
        model = page.get_by_role("listitem").filter(has_text="OPENAI_API_KEY or OPENAI_BASE_URL")
        expect(model).to_contain_text("Worth a look")

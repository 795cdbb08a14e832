"""The page at /docs, in a browser: it shows what can be called."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.web.console.conftest import Served

pytestmark = pytest.mark.browser


def test_the_description_of_the_http_interface_is_laid_out_and_asks_no_one_else(
    nod: Served, new_page: Callable[..., Page]
):
    asked: list[str] = []
    page = new_page("about:blank")
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{nod.url}docs")
    operations = page.locator(".opblock")
    expect(operations.first).to_be_visible(timeout=60_000)  # the description takes seconds to make
    expect(page.locator('[data-path="/api/proposals"]').first).to_be_visible()
    assert operations.count() > 15
    operations.first.locator(".opblock-summary-control").click(timeout=60_000)  # the page is still at work
    expect(operations.first.locator(".responses-wrapper")).to_be_visible()
    expect(page.get_by_text("Unable to render")).to_have_count(0)
    assert all(url.startswith((nod.url, "data:")) for url in asked), asked

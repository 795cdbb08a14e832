"""The pages of connecting in a real browser, whose rules on forms, origins and cookies let people through."""

import re

import pytest
from playwright.async_api import Browser, async_playwright

from tests.features.connections.conftest import Connectable
from tests.web.console.conftest import ARGUMENTS, CHROMIUM

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium"),
]


async def test_a_person_goes_through_the_pages_to_the_number(there: Connectable):
    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = await browser.new_page()
        said: list[str] = []
        page.on("console", lambda line: said.append(line.text))
        await page.goto(await there.link())
        await page.get_by_role("button", name="Continue to tracker").click()
        await page.get_by_text("You signed in at").wait_for()
        digits = re.search(r"\b\d{6}\b", await page.inner_text("main"))
        assert digits
        await browser.close()
    assert said == []
    assert (await there.say(f"confirm {digits[0]}")).text.startswith(
        "Connected: As Ana at tracker (octocat)."
    )

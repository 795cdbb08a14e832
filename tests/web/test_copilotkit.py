"""A page of CopilotKit's React packages against ``/agui``, in Chromium: what people see is what happened."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect
from starlette.responses import FileResponse, HTMLResponse
from starlette.routing import Route

from tests.web.conftest import Serve
from tests.web.console.conftest import ARGUMENTS, CHROMIUM
from tests.web.scripted import ScriptedModel, ask, say
from tests.web.test_agui_client import NODE

PACKAGES = NODE / "node_modules"
MILK, TEA, SALT = (("keep", {"text": text}) for text in ("milk", "tea", "salt"))
PATIENCE = 60_000  # milliseconds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("node") and (PACKAGES / "@copilotkit/react-core").is_dir() and CHROMIUM.exists()),
        reason="needs Chromium, node, and npm install of CopilotKit's packages",
    ),
]


async def bundled(folder: Path) -> Path:
    """The page as one script; its packages are found from where it lies."""
    source, made = folder / "copilotkit.mjs", folder / "page.js"
    source.write_bytes((Path(__file__).parent / "pages" / source.name).read_bytes())
    (folder / "node_modules").symlink_to(PACKAGES)
    files = [f"--loader:.{kind}=empty" for kind in ("css", "woff", "woff2", "ttf")]
    running = await asyncio.create_subprocess_exec(
        *(PACKAGES / ".bin/esbuild", source, "--bundle", "--format=esm", *files, "--log-level=error"),
        *('--define:process.env.NODE_ENV="production"', f"--outfile={made}"),
    )
    assert await running.wait() == 0
    return made


async def shows(page: Page, *texts: str) -> None:
    await expect(page.locator("output")).to_have_text("silent", timeout=PATIENCE)
    await expect(page.locator("#said p")).to_have_text(list(texts), timeout=PATIENCE)


async def test_a_page_of_copilotkit_shows_each_text_once_in_order_and_is_never_stuck(
    serve: Serve, tmp_path: Path
):
    script = await bundled(tmp_path)
    model = ScriptedModel(
        ask(("read", {}), text="I look."),
        ask(MILK, TEA, text="Two cards."),
        say("Both are decided."),
        ask(SALT, text="One more."),
        say("It was decided elsewhere."),
        ask(MILK, text="A last one."),
    )
    async with serve(model=model, patience=300) as nod, async_playwright() as playwright:
        html = '<meta charset="utf-8"><body><script type="module" src="/page.js"></script>'
        nod.app.web.app.router.routes[:0] = [
            Route("/page", lambda _: HTMLResponse(html)),
            Route("/page.js", lambda _: FileResponse(script)),
        ]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = await (await browser.new_context()).new_page()
        await page.goto(f"{nod.url}/page?thread=errands")
        cards = page.locator(".card")

        async def write(text: str) -> None:
            await page.locator("input").fill(text)
            await page.keyboard.press("Enter")

        await shows(page)
        await write("keep both")
        said = ["keep both", "I look.", "read", "Two cards.", "keep", "keep"]
        await shows(page, *said)
        await cards.nth(0).get_by_text("Approve").click()
        await cards.nth(1).get_by_text("Decline").click()
        said.append("Both are decided.")
        await shows(page, *said)
        assert nod.notes.kept == ["milk"]

        await write("and salt")
        said += ["and salt", "One more.", "keep"]
        await shows(page, *said)
        (open_,) = (await nod.client.get("/api/proposals?state=proposed")).json()["proposals"]
        await nod.press(open_, "approve")  # elsewhere
        await nod.idle()
        await cards.get_by_text("Decline").click()
        said.append("It was decided elsewhere.")
        await expect(page.locator("#said")).to_contain_text("Already approved", timeout=PATIENCE)
        await page.reload()
        await shows(page, *said)
        assert nod.notes.kept == ["milk", "salt"]

        await write("one more")
        said += ["one more", "A last one.", "keep"]
        await shows(page, *said)
        (open_,) = (await nod.client.get("/api/proposals?state=proposed")).json()["proposals"]
        nod.clock.now += timedelta(days=30)
        await cards.get_by_text("Withdraw").click()
        late = "Already expired, just now: no one decided in time. Nothing was changed."
        await shows(page, *said, late, "Understood.")
        await write("what else?")
        await expect(page.get_by_text("Understood.")).to_have_count(2, timeout=PATIENCE)
        await page.reload()
        await shows(page, *said, "Understood.", "what else?", "Understood.")
        await browser.close()

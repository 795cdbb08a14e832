"""The console as an app on a phone: its manifest, and the page that says that Nod can't be reached."""

import struct

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.web.console.conftest import Serve, Served
from tests.web.console.test_console import NARROW, NewPage

pytestmark = pytest.mark.browser

GOVERNED = """() => new Promise((done) => {
    const { serviceWorker } = navigator;
    if (serviceWorker.controller) done();
    else serviceWorker.addEventListener("controllerchange", () => done());
})"""
KEPT = """async () => {
    const names = await caches.keys();
    const kept = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return kept.flat().map((each) => new URL(each.url).pathname).sort();
}"""


def test_the_manifest_names_pictures_that_are_there_in_those_sizes(nod: Served):
    address = httpx.URL(f"{nod.url}static/manifest.webmanifest")
    manifest = httpx.get(address).json()
    assert str(address.join(manifest["start_url"])) == f"{nod.url}#/inbox"
    assert str(address.join(manifest["scope"])) == nod.url
    for icon in manifest["icons"]:
        answer = httpx.get(address.join(icon["src"]))
        assert answer.headers["content-type"].startswith(icon["type"])
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", answer.content[16:24])
            assert icon["sizes"] == f"{width}x{height}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_while_nod_is_away_a_page_says_so(scheme: str, serve: Serve, new_page: NewPage):
    with serve() as nod:
        size = NARROW if scheme == "dark" else {}
        page = new_page(f"{nod.url}#/tools", service_workers="allow", color_scheme=scheme, **size)
        expect(page.locator(".tool-row").first).to_be_visible()
        page.evaluate(GOVERNED)
        port = nod.port
        parts = ("offline.css", "offline.html", "offline.js", "icon.svg")
        assert page.evaluate(KEPT) == sorted(f"/static/{each}" for each in parts)
    page.reload()
    expect(page.get_by_role("heading", name="Can't reach Nod")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    with serve(NOD_PORT=port):
        expect(page.locator(".tool-row").first).to_be_visible(timeout=30_000)
        page.goto("about:blank")

"""A whole Nod on a free port, with the offline model and the demo's issues, and the system's Chromium."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from bot.agent.demo.model import DemoModel
from bot.app.app import App
from bot.app.assembly import build
from bot.domain.chat import Command, Reply
from bot.domain.model import Model
from bot.domain.times import now
from bot.features.issues.samples import store_samples
from bot.settings import Settings
from tests.kit import make_tables
from tests.kit.urls import Urls

CHROMIUM = Path("/usr/bin/chromium")
_SHELL = Path("/usr/bin/chromium-headless-shell")  # the engine with no browser around it: half the time
_OFF = (
    # Playwright's own, of which only the last list counts
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    # what the address bar opens is a page of its own in each window: half a second each
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",  # a microphone that beeps
    "--use-fake-ui-for-media-stream",
    f"--disable-features={','.join(_OFF)}",
]
PATIENCE = 10_000  # milliseconds

Json = dict[str, Any]


@dataclass
class Served:
    """A running Nod and, over HTTP, someone else who decides."""

    app: App
    client: httpx.Client
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        return self.app.web.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def waiting(self) -> list[Json]:
        """What waits, oldest first."""
        answer = self.client.get("api/proposals", params={"state": "proposed"})
        found: list[Json] = answer.json()["proposals"]
        return sorted(found, key=lambda proposal: proposal["created_at"])

    def press(self, proposal: Json, verb: str, **body: Any) -> Json:
        answer = self.client.post(f"api/proposals/{proposal['id']}/{verb}", json=body)
        answer.raise_for_status()
        pressed: Json = answer.json()["proposal"]
        return pressed

    def handle(self, command: Command) -> Reply:
        """What Nod answers to a command that someone types in a chat."""
        return asyncio.run_coroutine_threadsafe(self.app.core.assistant.handle(command), self.loop).result(20)

    def ask(self, message: str) -> list[Json]:
        """Say something elsewhere; what it proposes."""
        self.client.post("api/chat", json={"message": message}).raise_for_status()
        return self.waiting()


Serve = Callable[..., contextlib.AbstractContextManager[Served]]


@pytest.fixture
def serve(database_of: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """``with serve() as nod``: up in a thread of its own, over the test's database; again for a restart."""
    monkeypatch.chdir(tmp_path)  # no .env of anybody's
    make_tables(url := database_of("nod"))

    @contextlib.contextmanager
    def start(
        *,
        pace: float = 0.002,
        token: str | None = None,
        demo: bool = True,
        model: Model | None = None,
        **settings: Any,
    ) -> Iterator[Served]:
        given = {
            "NOD_DATABASE_URL": url,
            "NOD_PORT": 0,
            "NOD_ADMINS": ("http:local",),
            **settings,
        }
        model = model or (None if "NOD_MODELS" in settings else DemoModel(pace))
        app = build(Settings.load(**given), model=model, demo=demo)
        app.database.write_now(store_samples, now())
        started = threading.Event()
        stopped = asyncio.Event()
        loops: list[asyncio.AbstractEventLoop] = []
        faults: list[BaseException] = []

        async def serving() -> None:
            loops.append(asyncio.get_running_loop())
            async with app.running():
                started.set()
                await stopped.wait()

        def run() -> None:
            try:
                asyncio.run(serving())
            except BaseException as error:  # noqa: BLE001 - told to the test below
                faults.append(error)
            finally:
                started.set()

        thread = threading.Thread(target=run, name="nod", daemon=True)
        thread.start()
        assert started.wait(20)
        if not faults:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            base = f"http://127.0.0.1:{app.web.port}/"
            with httpx.Client(base_url=base, headers=headers, timeout=20) as client:
                yield Served(app, client, loops[0])
            loops[0].call_soon_threadsafe(stopped.set)
        thread.join(30)
        assert not thread.is_alive()
        assert faults == []

    return start


@pytest.fixture
def nod(serve: Serve) -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """One for this folder; longer, and its event loop would be in the way of the asyncio tests."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """The engine alone where that is installed."""
    yield from _launched(playwright, _SHELL if _SHELL.exists() else CHROMIUM)


@pytest.fixture(scope="package")
def whole_chromium(playwright: Playwright) -> Iterator[Browser]:
    """The browser as people have it, for what the engine alone does not do, such as notifications."""
    yield from _launched(playwright, CHROMIUM)


def _launched(playwright: Playwright, path: Path) -> Iterator[Browser]:
    if not path.exists():
        pytest.skip(f"there is no {path}: install Chromium to run the console's tests")
    browser = playwright.chromium.launch(executable_path=str(path), args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def new_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page in a fresh profile. At the end none may have raised, shown a dialog, broken its policy."""
    contexts = []
    faults: list[str] = []

    def refuse(dialog: Any) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def make(
        url: str, *, width: int = 1280, height: int = 800, browser: Browser = chromium, **options: Any
    ) -> Page:
        options = {"service_workers": "block", **options}
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", refuse)
        page.on("console", lambda m: faults.append(m.text) if "Content Security Policy" in m.text else None)
        page.goto(url)
        return page

    expect.set_options(timeout=PATIENCE)
    yield make
    for context in contexts:
        context.close()
    assert faults == []

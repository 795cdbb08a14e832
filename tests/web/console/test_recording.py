"""What is said into the console's microphone is sent as a recording, heard, and answered."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bot.agent.demo.model import DemoModel
from bot.features.voice.lengths import measure_seconds
from tests.fakes.hearing_server import HearingServer
from tests.web.console.conftest import Serve
from tests.web.console.test_console import NewPage, violations

pytestmark = pytest.mark.browser


@pytest.fixture
def hearing() -> Iterator[HearingServer]:
    """A server that transcribes, in a thread of its own."""
    server, ready = HearingServer(), threading.Event()
    over = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        async with server:
            loops.append(asyncio.get_running_loop())
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="hearing", daemon=True)
    thread.start()
    assert ready.wait(20)
    yield server
    loops[0].call_soon_threadsafe(over.set)
    thread.join(20)


@pytest.fixture
def models(hearing: HearingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "models.toml"
    head = f'base_url = "{hearing.url}"\nkey = "EARS_KEY"\n'
    file.write_text(f'[talker]\n{head}\n[ears]\nmodel = "whisper-1"\naudio = true\n{head}')
    monkeypatch.setenv("EARS_KEY", hearing.key)
    return file


def test_a_recording_is_made_by_keyboard_sent_and_answered_with_what_was_heard(
    serve: Serve, new_page: NewPage, hearing: HearingServer, models: Path
) -> None:
    hearing.will_hear("Show open issues")
    with serve(model=DemoModel(0.002), NOD_MODELS=str(models)) as nod:
        page = new_page(nod.url)
        button = page.locator("#record")
        expect(button).to_have_accessible_name("Record what you say")
        assert violations(page) == []
        button.focus()
        page.keyboard.press("Enter")
        expect(button).to_have_accessible_name("Stop recording")
        assert violations(page) == []
        expect(page.locator("#announcer")).to_contain_text("Recording")
        page.keyboard.press("Space")
        expect(page.locator("#attached .file-name")).to_contain_text("recording.webm")
        expect(button).to_have_accessible_name("Record what you say")
        expect(page.locator("#send")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#thread")).to_contain_text("Heard: “Show open issues”")
        [heard] = hearing.heard
        assert heard.name == "recording.webm"
        assert measure_seconds("video/webm", heard.data) is not None


def test_without_a_model_that_transcribes_there_is_no_button(serve: Serve, new_page: NewPage) -> None:
    with serve() as nod:
        page = new_page(nod.url)
        expect(page.locator("#attach")).to_be_visible()
        expect(page.locator("#record")).to_be_hidden()


def test_a_microphone_that_is_refused_is_told(
    serve: Serve, new_page: NewPage, hearing: HearingServer, models: Path
) -> None:
    with serve(model=DemoModel(0.002), NOD_MODELS=str(models)) as nod:
        page = new_page(nod.url)
        refuse = "() => { throw new DOMException('no', 'NotAllowedError'); }"
        page.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = {refuse}; }}")
        page.locator("#record").click()
        expect(page.locator("#announcer")).to_contain_text("Allow it in the address bar")
        expect(page.locator("#record")).to_be_enabled()
        assert hearing.heard == []

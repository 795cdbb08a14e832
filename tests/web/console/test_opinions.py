"""In the running program another model's words come onto a card that is open in the console."""

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.fakes.openai_server import OpenAIServer, Reply, ask, say
from tests.web.console.conftest import Serve
from tests.web.console.test_console import NARROW, NewPage, violations
from tests.web.console.test_console import ask as send

pytestmark = pytest.mark.browser

WORDS = {"does": "creates an issue that anyone can read", "asked": "no", "concerns": ["<b>public</b> board"]}
SAID = "creates an issue that anyone can read; <b>public</b> board; one more approval is needed"


def answer_both(body: dict[str, Any]) -> Reply:
    """The agent's model asks for an issue once; the other one says its words."""
    if body["model"] == "local":
        return say(json.dumps(WORDS))
    if any(each["role"] == "tool" for each in body["messages"]):
        return say("Done.")
    return ask(("create_issue", {"title": "<b>public</b> board", "priority": "high"}))


@contextlib.contextmanager
def model_server() -> Iterator[OpenAIServer]:
    """A server of both models, in a thread of its own."""
    server, ready, over = OpenAIServer(script=answer_both), threading.Event(), threading.Event()

    async def serve_models() -> None:
        async with server:
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve_models()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        over.set()
        thread.join(10)


def _picture(page: Page, name: str) -> None:
    """Where pictures are wanted, to be looked at."""
    if folder := os.environ.get("NOD_TEST_PICTURES"):
        page.wait_for_timeout(400)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.mark.parametrize(
    ("name", "look"), [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", NARROW)]
)
def test_the_words_come_while_the_card_is_open_and_raise(
    serve: Serve,
    new_page: NewPage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    look: dict[str, Any],
) -> None:
    with model_server() as server:
        monkeypatch.setenv("ITS_KEY", server.key)
        tables = [f'[{each}]\nbase_url = "{server.url}"\nkey = "ITS_KEY"\n' for each in ("first", "local")]
        (tmp_path / "models.toml").write_text("".join(tables))
        given = {"NOD_MODELS": tmp_path / "models.toml", "NOD_ADMINS": ("http:local", "http:ben")}
        with serve(demo=False, **given) as nod:
            rule = {"subject": "opinion", "model": "local", "raising": "raises", "tools": "create_issue"}
            made = nod.client.post("/api/rules", json=rule).json()
            assert made["text"].startswith("Set: rule 1: opinion local raises for create_issue.")
            page = new_page(nod.url, **look)
            send(page, "Put it on my private list")
            line = page.locator(".annotation")
            expect(line.first).to_have_text(f"Second opinion (local): {SAID}", timeout=15_000)
            expect(line.locator("a")).to_have_count(0)
            expect(line).to_have_count(1)
            assert violations(page) == []
            _picture(page, f"opinion-{name}")
            [card] = nod.client.get("/api/proposals?state=proposed").json()["proposals"]
            assert (card["quorum"], card["annotations"][-1]["late"], card["record"]) == (2, True, [])
            told = next(each for each in server.requests if each["model"] == "local")
            assert "Put it on my private list" in json.dumps(told)
            assert server.refused == []

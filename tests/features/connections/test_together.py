"""Two people of one Nod, each with their own account at one server: who reads and changes what as whom."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from bot.app.assembly import build
from bot.domain.model import Entry, Part, ToolSpec
from bot.settings import Settings
from tests.features.connections.conftest import KEY, Browser
from tests.features.connections.tracker import Tracker
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.web.conftest import ANA, BEN, TOKENS, Notes, Served
from tests.web.scripted import ScriptedModel, Step, ask, say

pytestmark = pytest.mark.slow


class Watched(ScriptedModel):
    """A scripted model; ``offered`` has the names of the tools of each request."""

    def __init__(self, *answers: Sequence[Step]) -> None:
        super().__init__(*answers)
        self.offered: list[set[str]] = []

    async def stream(self, transcript: Sequence[Entry], tools: Sequence[ToolSpec]) -> AsyncIterator[Part]:
        self.offered.append({tool.name for tool in tools})
        async for part in super().stream(transcript, tools):
            yield part


@contextlib.asynccontextmanager
async def running(url: str, clock: FakeClock, model: ScriptedModel) -> AsyncIterator[Served]:
    """A Nod with its real MCP toolset."""
    settings = Settings.load(
        NOD_DATABASE_URL=url,
        NOD_PORT=0,
        NOD_MCP_CONFIG="mcp.json",
        NOD_SECRET_KEY=(KEY,),
        NOD_HTTP_TOKENS=TOKENS,
    )
    app = build(settings, model=model, clock=clock)
    async with asyncio.timeout(120), app.running(ticking=False):
        nod = Served(app, model, Notes(), clock, httpx.AsyncClient())
        async with nod.caller(ANA) as client:
            nod.client = client
            yield nod


async def connect(nod: Served, tracker: Tracker, client: httpx.AsyncClient, user: str) -> str:
    """Connect an account over the API; what the person reads."""
    tracker.people.user = user
    link = (await client.post("/api/connections/tracker/link")).json()["url"]
    async with httpx.AsyncClient(timeout=20) as browser:
        page = await Browser(nod.url, browser).sign_in(link)
    digits = page.text.split('class="digits"><strong>')[1][:6]
    answer = await client.post("/api/connections/confirm", json={"digits": digits})
    return str(answer.json()["text"])


async def test_each_reads_and_changes_as_themselves_before_and_after_a_restart(
    database_of: Urls, clock: FakeClock, tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))
    model = ScriptedModel(
        ask(("tracker_list_issues", {})),
        say("Yours."),
        ask(("tracker_close_issue", {"number": 1})),
        say("Closed."),
    )
    async with running(url, clock, model) as nod, nod.caller(BEN) as ben:
        assert "As ana at tracker (octocat)" in await connect(nod, tracker, nod.client, "octocat")
        assert "As ben at tracker (hubot)" in await connect(nod, tracker, ben, "hubot")
        tracker.log.clear()
        await nod.chat("what is mine")
        assert ("octocat", "list_issues", {}) in tracker.log
        [proposal] = await nod.proposed("close 1")
        assert proposal["connection"]["name"] == "octocat"
        assert not [each for each in tracker.log if each[1] == "close_issue"]
        assert (await nod.press(proposal, "approve", ben)).is_error
        done = await nod.client.post(f"/api/proposals/{proposal['id']}/approve?wait=20", json={})
        assert done.json()["proposal"]["state"] == "succeeded", done.text
        assert ("octocat", "close_issue", {"number": 1}) in tracker.log
        await nod.idle()
    tracker.log.clear()
    model = ScriptedModel(ask(("tracker_list_issues", {})), say("Yours."))
    async with running(url, clock, model) as nod, nod.caller(BEN) as ben:
        await nod.chat("what is mine", ben)
        assert {each[0] for each in tracker.log if each[1] == "list_issues"} == {"hubot"}


async def test_who_has_connected_nothing_is_offered_nothing_and_the_model_is_told(
    database_of: Urls, clock: FakeClock, tracker: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))
    model = Watched(say("You have none."), ask(("connect", {"server": "tracker"})), say("Open the console."))
    async with running(url, clock, model) as nod:
        await nod.chat("what is mine")
        [offered] = model.offered
        assert "connect" in offered
        assert not [name for name in offered if name.startswith("tracker")]
        assert "has connected no account at: tracker" in str(model.seen[0][0])
        await nod.chat("connect me")
    assert tracker.log == []

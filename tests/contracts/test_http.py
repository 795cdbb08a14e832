"""The contract over HTTP: people read rows, press by POST, and learn of changes by asking again."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import httpx
import pytest

from bot.channels.base import posters
from bot.domain.similarity import GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.testing.contract import Contract
from bot.testing.driver import SeenCard
from bot.testing.world import Says, World
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

pytestmark = pytest.mark.platform

TOKENS = {name: f"{name}-0123456789abcdef" for name in ("ana", "ben", "eve")}
GROUP_VERBS = {Verb.APPROVE_ALL, Verb.DECLINE_ALL, Verb.UNDO_ALL}


class HttpDriver:
    """A conversation of Ana's token; a task reads it again and again, as a page that polls would."""

    ben = "http:ben"

    def __init__(self, world: World) -> None:
        self.world = world
        self._conversation: str | None = None
        self._proposals: list[dict[str, Any]] = []
        self._messages: list[dict[str, Any]] = []
        self._files: dict[str, str] = {}
        self._team: dict[str, Any] = {}
        self._told: dict[str, list[str]] = {"ana": [], "ben": [], "eve": []}
        self._clients = {
            name: httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=20)
            for name, token in TOKENS.items()
        }

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.world.app.web.port}{path}"

    async def watch(self) -> None:
        """Keep what is seen current."""
        while True:
            with suppress(httpx.HTTPError, AssertionError, KeyError):
                if self._conversation:
                    base = f"/api/conversations/{self._conversation}"
                    ana = self._clients["ana"]
                    found = (await ana.get(self._url(f"{base}/proposals"))).json()["proposals"]
                    for proposal in (p for p in found if p["batch"] and p["batch"]["id"] == p["id"]):
                        table = (await ana.get(self._url(f"/api/batches/{proposal['id']}"))).json()["batch"]
                        proposal["verbs"] += [each["verb"] for each in table["buttons"]]
                        proposal["group"] = table
                    self._proposals = found
                    for proposal in self._proposals:
                        if any("in a file" in note for note in proposal["notes"]):
                            await self._fetch(proposal)
                    self._messages = (await ana.get(self._url(f"{base}/messages"))).json()["messages"]
                    self._team = (await ana.get(self._url(f"{base}/team"))).json()["team"]
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def say(self, text: str) -> None:
        body = {"message": text} | ({"conversation_id": self._conversation} if self._conversation else {})
        async with self._clients["ana"].stream("POST", self._url("/api/chat"), json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    self._conversation = event.get("conversation_id", self._conversation)

    def cards(self) -> Sequence[SeenCard]:
        return [_seen(p) for p in self._proposals]

    def texts(self) -> Sequence[str]:
        return [m["text"] for m in self._messages if m["role"] != "user"]

    def files(self) -> Sequence[str]:
        return list(self._files.values())

    async def _fetch(self, proposal: dict[str, Any]) -> None:
        """Download what the proposal offers, as a person would click."""
        base = self._url(f"/api/proposals/{proposal['id']}/files")
        for offered in (await self._clients["ana"].get(base)).json()["files"]:
            got = await self._clients["ana"].get(f"{base}/{offered['id']}")
            self._files[offered["id"]] = got.text

    def told(self, *, eve: bool = False) -> Sequence[str]:
        return self._told["eve" if eve else "ana"]

    async def press(self, card: SeenCard, verb: Verb, *, eve: bool = False) -> None:
        now = next(p for p in self._proposals if p["id"] == card.handle["id"])
        if verb not in now["verbs"]:
            raise LookupError(verb)
        await self._press(now, verb, "eve" if eve else "ana")

    async def press_remembered(self, card: SeenCard, verb: Verb) -> None:
        await self._press(card.handle, verb, "ana")

    async def ben_presses(self, card: SeenCard, verb: Verb) -> None:
        await self._press(card.handle, verb, "ben")

    async def _press(self, proposal: dict[str, Any], verb: Verb, who: str, **more: Any) -> None:
        shown = proposal["group"]["round"] if verb in GROUP_VERBS else proposal["round"]
        path = f"/api/proposals/{proposal['id']}/{verb}"
        answer = await self._clients[who].post(self._url(path), json={"round": shown, **more})
        body = answer.json()
        if answer.status_code != 200 or body["answer"] != "accepted":
            self._told[who].append(body.get("text") or body["error"])

    async def read_all(self, card: SeenCard) -> str:
        return json.dumps(card.handle["tool_arguments"], ensure_ascii=False).replace("\\\\", "\\")

    def refuse_cards(self) -> None:
        raise NotImplementedError("nothing is posted: people read rows")

    def fail_redraws(self, times: int) -> None:
        raise NotImplementedError("nothing is redrawn: people read rows")

    async def approve_similar(self, card: SeenCard, rung: GrantScope, lasting: GrantDuration) -> str:
        path = f"/api/proposals/{card.handle['id']}/ladder"
        offered = (await self._clients["ana"].get(self._url(path))).json()
        if Verb.SIMILAR not in card.verbs or rung not in [step["rung"] for step in offered["ladder"]]:
            raise LookupError(rung)
        await self._press(card.handle, Verb.SIMILAR, "ana", rung=rung, lasting=lasting)
        return json.dumps(offered)

    async def write(self, card: SeenCard, verb: Verb, words: str) -> None:
        await self._press(card.handle, verb, "ana", reason=words)

    async def fill_in(self, card: SeenCard, name: str, text: str) -> None:
        await self._press(card.handle, Verb.EDIT, "ana", arguments={name: text})
        now = {**card.handle, "round": card.handle["round"] + 1}
        await self._press(now, Verb.APPROVE, "ana")

    def boards(self) -> Sequence[str]:
        return [json.dumps(self._team)] if self._team else []

    async def command(self, line: str, *, eve: bool = False) -> str:
        name, _, text = line.removeprefix("/").partition(" ")
        body = {"name": name, "text": text, "conversation_id": self._conversation or ""}
        answer = await self._clients["eve" if eve else "ana"].post(self._url("/api/commands"), json=body)
        said = answer.json()
        return str(said.get("text") or said["error"])


def _seen(proposal: dict[str, Any]) -> SeenCard:
    words = [proposal["description"], proposal["outcome"], *proposal["notes"], *proposal["votes"]]
    words += [f"{f['field']} {f['old_value']} {f['new_value']}" for f in proposal["preview"]]
    words += [proposal["deciders"], proposal["expires_at"], proposal["error"] or "", proposal["printed"]]
    words += [proposal["undo"], proposal["again"]]
    return SeenCard("\n".join(words), tuple(Verb(a) for a in proposal["verbs"]), proposal)


@pytest.fixture
async def driver(database_of: Urls, clock: FakeClock) -> AsyncIterator[HttpDriver]:
    def settings() -> Settings:
        return Settings.load(
            NOD_DATABASE_URL=database_of("nod"),
            NOD_PORT=0,
            NOD_HTTP_TOKENS=tuple(f"{name}:{token}" for name, token in TOKENS.items()),
            NOD_ADMINS=("http:ana", "http:ben"),
        )

    world = World(settings, lambda _: None, clock, make_tables)
    await world.start()
    driver = HttpDriver(world)
    watching = asyncio.create_task(driver.watch())
    yield driver
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await driver.close()
    await world.stop()


class TestHttp(Contract):
    async def test_a_card_that_cannot_be_posted_ends_its_proposal_and_the_model_is_told(
        self, driver: HttpDriver
    ) -> None:
        """Nothing is posted over HTTP; what is true here is that a proposal is there to be read."""
        assert "http" not in posters(driver.world.app.channels)

    async def test_a_redraw_that_fails_is_made_up_for_later(self, driver: HttpDriver) -> None:
        """Nothing is redrawn over HTTP; each answer renders the row."""
        assert "http" not in posters(driver.world.app.channels)

    async def test_who_asked_sees_that_a_call_is_tried_first(self, driver: HttpDriver) -> None:
        driver.world.script(Says("Should I?", (("tidy", {"text": "bread"}),)))
        client, url = driver._clients["ana"], driver._url("/api/chat")
        async with client.stream("POST", url, json={"message": "tidy up"}) as answer:
            said = [line async for line in answer.aiter_lines()]
        assert any("Trying first: Tidy the notes" in line for line in said)

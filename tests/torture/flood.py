"""Thousands of messages in the same moment: each is answered or politely refused, and memory is bounded.

A third comes over HTTP in conversations of their own, a third over HTTP into one conversation of each person,
and a third in threads of Slack. Someone presses a card each second all the while.
"""

import asyncio
import contextlib
import itertools
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import httpx

from tests.fakes.openai_server import Json, OpenAIServer, Reply, ask, say
from tests.torture.chats import Chats
from tests.torture.figures import spread
from tests.torture.nods import PATIENCE, TOKENS, Nods

_AT_ONCE = 100  # senders
_CARDS = 400
_METRICS = "flood-metrics-token"
_WAITING = re.compile(r'^nod_work_waiting\{work="turn"\} (\S+)$', re.MULTILINE)
_OPEN = (
    "SELECT 'a message' WHERE EXISTS (SELECT 1 FROM turn WHERE state = 'wanted') "
    "OR EXISTS (SELECT 1 FROM message WHERE delivered = false)"
)
_UNANSWERED = """
    SELECT count(*) FROM message AS said WHERE said.role = 'user' AND NOT EXISTS (
        SELECT 1 FROM message AS later WHERE later.conversation_id = said.conversation_id
        AND later.role IN ('assistant', 'notice') AND later.after >= said.id)
"""


@dataclass
class Flooded:
    """What came of it."""

    messages: int
    accepted: Counter[str] = field(default_factory=Counter)  # by way
    refused: Counter[str] = field(default_factory=Counter)  # by the words
    lost: Counter[str] = field(default_factory=Counter)  # by the fault that was the answer
    taking: float = 0.0  # seconds until the last was taken in or refused
    answering: float = 0.0  # until the last was answered
    unanswered: int = 0
    deepest: int = 0  # turns that waited at a time
    pressed: list[float] = field(default_factory=list)  # from a press to its answer
    before: int = 0  # MiB of the process
    peak: int = 0
    after: int = 0

    @property
    def faults(self) -> list[str]:
        lost = [f"{count} messages were lost: {words}" for words, count in self.lost.items()]
        return [*lost, f"{self.unanswered} messages have no answer"] if self.unanswered else lost

    def __str__(self) -> str:
        accepted = ", ".join(f"{many} {way}" for way, many in sorted(self.accepted.items()))
        refused = "; ".join(f"{many} times {words!r}" for words, many in self.refused.items())
        return "\n".join(
            (
                f"{self.messages} messages, taken in: {accepted}",
                f"refused: {refused or 'none'}",
                f"the last was taken in or refused after {self.taking:.0f} s",
                f"the last was answered after {self.answering:.0f} s",
                f"turns that waited at a time: at most {self.deepest}",
                f"press to answer while they came: {spread(self.pressed)}",
                f"memory: {self.before} MiB before, {self.peak} at most, {self.after} after",
                f"{len(self.faults)} faults",
            )
        )


def _script(body: Json) -> Reply:
    last = body["messages"][-1]
    if last["role"] == "user" and last["content"].startswith("cards"):
        return ask(*(("mark", {"text": f"card {number}"}) for number in range(20)))
    return say("Done.")


async def flood(url: str, folder: Path, many: int) -> Flooded:
    """One process on an empty database, with the limits it has by default."""
    environment = {
        "NOD_METRICS_TOKEN": _METRICS,
        "NOD_MAX_MESSAGES": "3600",
        "NOD_MAX_CONVERSATIONS": "1000",
        "NOD_PROPOSAL_TTL": "24h",
        "NOD_MAX_OPEN_PER_CONVERSATION": str(_CARDS),
    }
    async with (
        OpenAIServer(script=_script) as model,
        Chats(random.Random(1)) as chats,
        Nods(url, folder, 1, {"OPENAI_BASE_URL": model.url, **chats.environment, **environment}) as nods,
        httpx.AsyncClient(timeout=PATIENCE, limits=httpx.Limits(max_connections=_AT_ONCE + 2)) as client,
    ):
        chats.slack.port = nods.port
        return await _Flood(nods, chats, client, many).run()


class _Flood:
    def __init__(self, nods: Nods, chats: Chats, client: httpx.AsyncClient, many: int) -> None:
        self._nods = nods
        self._chats = chats
        self._client = client
        self._numbers = iter(range(many))
        self._found = Flooded(many)
        self._site = f"http://127.0.0.1:{nods.ports[0]}"
        self._one: dict[str, str] = {}  # each person's conversation that all goes into

    async def run(self) -> Flooded:
        cards = await self._cards()
        for who in TOKENS:
            self._one[who] = await self._begin(who, f"hello from {who}")
        await self._rest()
        found = self._found
        found.before = self._memory("VmRSS")
        began = time.monotonic()
        async with self._watched(cards):
            await asyncio.gather(*(self._send() for _ in range(_AT_ONCE)))
            found.taking = time.monotonic() - began
            await self._rest()
            found.answering = time.monotonic() - began
        found.peak, found.after = self._memory("VmHWM"), self._memory("VmRSS")
        found.unanswered = int((await self._nods.column(_UNANSWERED))[0])
        return found

    async def _cards(self) -> list[str]:
        """Cards that wait, to be pressed one after the other."""
        for number in range(_CARDS // 20):
            await self._begin("ana", f"cards {number}")
        await self._nods.until(f"SELECT 'all' WHERE (SELECT count(*) FROM proposal) >= {_CARDS}")
        return await self._nods.column("SELECT id FROM proposal")

    async def _rest(self) -> None:
        while await self._nods.column(_OPEN):  # noqa: ASYNC110 - a database rings no bell
            await asyncio.sleep(0.5)

    async def _send(self) -> None:
        people = itertools.cycle(TOKENS)
        for number in self._numbers:
            who = next(people)
            if number % 3 == 0:
                await self._chats.slack.mention(random.choice(("U7", "U8", "U9")), f"hello {number}")
                self._found.accepted["in Slack"] += 1  # the fake delivers again what is not taken
            else:
                await self._over_http(who, number, self._one[who] if number % 3 == 1 else "")

    async def _over_http(self, who: str, number: int, conversation: str) -> None:
        """Sent again where there was no answer, as clients do."""
        body = {"message": f"hello {number}"} | ({"conversation_id": conversation} if conversation else {})
        while True:
            with contextlib.suppress(httpx.HTTPError):
                async with self._posting(who, body) as answer:
                    if answer.status_code not in (HTTPStatus.OK, HTTPStatus.CONFLICT):
                        await answer.aread()
                    self._note(
                        answer, "into one conversation" if conversation else "in as many conversations"
                    )
                    return

    def _note(self, answer: httpx.Response, way: str) -> None:
        if answer.status_code in (HTTPStatus.OK, HTTPStatus.CONFLICT):
            self._found.accepted[way] += 1
        elif answer.status_code == HTTPStatus.TOO_MANY_REQUESTS and "Retry-After" in answer.headers:
            self._found.refused[answer.json()["error"]] += 1
        else:
            self._found.lost[f"{answer.status_code} {answer.text[:200]}"] += 1

    @contextlib.asynccontextmanager
    async def _posting(self, who: str, body: Json) -> AsyncIterator[httpx.Response]:
        headers = {"Authorization": f"Bearer {TOKENS[who]}"}
        async with self._client.stream(
            "POST", f"{self._site}/api/chat", json=body, headers=headers
        ) as answer:
            yield answer

    async def _begin(self, who: str, words: str) -> str:
        async with self._posting(who, {"message": words}) as answer:
            await anext(answer.aiter_lines())
        return await self._nods.until("SELECT conversation_id FROM message WHERE text = :words", words=words)

    @contextlib.asynccontextmanager
    async def _watched(self, cards: list[str]) -> AsyncIterator[None]:
        """Press a card and look at the metrics each second."""
        presser = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.torture.presser"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        tasks = [asyncio.create_task(self._press(presser, cards)), asyncio.create_task(self._measure())]
        try:
            yield
        finally:
            presser.kill()
            await presser.wait()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _press(self, presser: asyncio.subprocess.Process, cards: list[str]) -> None:
        if presser.stdin is None or presser.stdout is None:
            return
        presser.stdin.write(json.dumps([self._site, TOKENS["ana"], cards]).encode() + b"\n")
        async for line in presser.stdout:
            status, seconds = json.loads(line)
            if status == HTTPStatus.OK:
                self._found.pressed.append(seconds)

    async def _measure(self) -> None:
        while True:
            headers = {"Authorization": f"Bearer {_METRICS}"}
            told = await self._client.get(f"{self._site}/metrics", headers=headers)
            if depth := _WAITING.search(told.text):
                self._found.deepest = max(self._found.deepest, int(float(depth[1])))
            await asyncio.sleep(1)

    def _memory(self, what: str) -> int:
        """MiB of the process."""
        status = Path(f"/proc/{self._nods.pid(self._nods.ports[0])}/status").read_text()
        return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) // 1024  # type: ignore[index]

"""What people are told while something that real processes stand on fails, and that they work afterwards."""

import asyncio
import contextlib
import os
import random
import re
import resource
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.fakes.openai_server import Json, OpenAIServer, Reply, ask, fail, say
from tests.kit import Hold
from tests.kit.urls import POSTGRES_URL
from tests.torture.chats import Chats
from tests.torture.harness import SPEAKER
from tests.torture.nods import PATIENCE, PAUSE, TOKENS, Nods
from tests.torture.nursery import CLOCK, Nursery
from tests.torture.postgres import Postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SILENCE = 3  # seconds that the model's server may take
_LATE = "The database isn't answering in time. Try again in a moment."
_OWNER = (
    "SELECT pid FROM process JOIN turn ON process.id = owner "
    "WHERE conversation_id = :conversation AND state = 'wanted'"
)
_CARD = (
    "SELECT proposal.id FROM proposal JOIN conversation ON conversation.id = conversation_id "
    "WHERE channel = :channel AND EXISTS (SELECT 1 FROM copy WHERE proposal_id = proposal.id)"
)


class Model:
    """It calls the tool that the first word names; ``hold`` keeps back what answers a word.

    ``faults`` are what answers a word each time.
    """

    def __init__(self) -> None:
        self.held: dict[str, Hold] = {}
        self.faults: dict[str, Reply] = {}

    def hold(self, word: str) -> Hold:
        """Where the next answer to a message with this first word waits; those after it do not."""
        self.held[word] = Hold()
        return self.held[word]

    def __call__(self, body: Json) -> Reply:
        last = body["messages"][-1]
        newest = str(last.get("content") or "").rpartition("\n\n")[2]  # messages in a row are sent as one
        word, _, rest = SPEAKER.sub("", newest).partition(" ")
        if last["role"] == "user" and word in ("mark", "blow_up"):
            return ask((word, {"text": rest}))
        if last["role"] == "user" and (fault := self.faults.get(word)):
            return fault
        if last["role"] == "user" and (held := self.held.pop(word, None)):
            held.reached.set()
            return Reply(say("Too late.").chunks, wait=held.go)
        return say("Done.")


class Place:
    """Nods that are up, and a client of them."""

    def __init__(self, nods: Nods, model: Model, server: OpenAIServer, folder: Path) -> None:
        self.nods = nods
        self.model = model
        self.server = server
        self.folder = folder
        self.chats: Chats
        self.client = httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKENS['ana']}"}, timeout=30)

    def url(self, path: str, at: int = 0) -> str:
        return f"http://127.0.0.1:{self.nods.ports[at]}{path}"

    @property
    def pid(self) -> int:
        return self.nods.pid(self.nods.ports[0])

    @property
    def log(self) -> str:
        return self.nods.log(self.nods.ports[0])

    async def say(self, words: str, at: int = 0, after: str = "") -> str:
        """Send it, in the conversation that came ``after`` or a new one, and leave before the answer.

        Gives its conversation.
        """
        body = {"message": words}
        if after:
            [key] = await self.nods.column("SELECT key FROM conversation WHERE id = :after", after=after)
            body["conversation_id"] = key.rpartition("/")[2]
        async with self.client.stream("POST", self.url("/api/chat", at), json=body) as answer:
            assert answer.status_code == 200, await answer.aread()
            await anext(answer.aiter_lines())
        return await self.nods.until(
            "SELECT conversation_id FROM message WHERE text = :words AND role = 'user'", words=words
        )

    async def asked(self, words: str, at: int = 0) -> str:
        """The proposal that this led to."""
        return await self.of(await self.say(words, at))

    async def of(self, conversation: str) -> str:
        return await self.nods.until(
            "SELECT id FROM proposal WHERE conversation_id = :conversation", conversation=conversation
        )

    async def press(self, ident: str, verb: str = "approve", at: int = 0) -> httpx.Response:
        return await self.client.post(self.url(f"/api/proposals/{ident}/{verb}", at), json={})

    async def state(self, ident: str, state: str) -> None:
        await self.nods.until("SELECT id FROM proposal WHERE id = :i AND state = :s", i=ident, s=state)

    async def said(self, conversation: str) -> list[str]:
        return await self.nods.column(
            "SELECT text FROM message WHERE conversation_id = :conversation ORDER BY id",
            conversation=conversation,
        )

    async def answered(self, conversation: str, words: str = "Done.") -> None:
        await self.nods.until(
            "SELECT id FROM message WHERE conversation_id = :conversation AND text LIKE :words",
            conversation=conversation,
            words=f"%{words}%",
        )

    async def is_at(self, status: int, at: int = 0) -> bool:
        """Whether ``/readyz`` answers with this."""
        with contextlib.suppress(httpx.HTTPError):
            return (await self.client.get(self.url("/readyz", at))).status_code == status
        return False


async def eventually(look: Callable[[], Any]) -> None:
    """Return once it is so."""
    async with asyncio.timeout(PATIENCE):
        while not await look():  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(PAUSE)


@contextlib.asynccontextmanager
async def place(
    url: str, folder: Path, processes: int, nursery: Nursery, **environment: str
) -> AsyncIterator[Place]:
    model = Model()
    async with OpenAIServer(script=model) as server:
        given = {"OPENAI_BASE_URL": server.url, "NOD_PROPOSAL_TTL": "24h", **environment}
        async with Nods(url, folder, processes, given, nursery=nursery) as nods:
            there = Place(nods, model, server, folder)
            yield there
            await there.client.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nursery() -> AsyncIterator[Nursery]:
    async with Nursery() as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """One process on SQLite."""
    folder = tmp_path_factory.mktemp("one")
    async with place(
        f"sqlite:///{folder}/nod.db", folder, 1, nursery, NOD_MODEL_TIMEOUT=f"{SILENCE}s"
    ) as there:
        yield there


@contextlib.contextmanager
def limited(pid: int, what: int, most: int) -> Iterator[None]:
    """The process may have no more of it than this."""
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, what, before)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Postgres]:
    """A PostgreSQL of its own, so that it can be stopped."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to its user
        async with Postgres(_PROGRAMS[-1], Path(folder)) as opened:
            yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(
    nursery: Nursery, server: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Place]:
    """Two processes on PostgreSQL, in Slack and Telegram as well."""
    folder = tmp_path_factory.mktemp("two")
    async with (
        Chats(random.Random(1)) as chats,
        place(server.url, folder, 2, nursery, **chats.environment) as there,
    ):
        chats.slack.port = there.nods.port
        there.chats = chats
        yield there


async def ready(place: Place, at: int = 0) -> None:
    await eventually(lambda: place.is_at(200, at))


async def refuses(place: Place, at: int = 0) -> None:
    await eventually(lambda: place.is_at(503, at))


async def test_while_the_disk_is_full_people_are_told_and_afterwards_everything_works(one: Place) -> None:
    ident = await one.asked("mark before it was full")
    with limited(one.pid, resource.RLIMIT_FSIZE, len(one.log) + 20_000):
        await refuses(one)
        press = await one.press(ident)
        message = await one.client.post(one.url("/api/chat"), json={"message": "mark while it was full"})
    assert (press.status_code, press.json()["error"]) == (503, _LATE)
    assert (message.status_code, message.json()["error"]) == (503, _LATE)
    await ready(one)
    assert (await one.press(ident)).status_code == 200
    await one.state(ident, "succeeded")


async def test_without_files_to_open_it_says_so_and_what_came_is_answered_once_there_are_some(
    one: Place,
) -> None:
    ident = await one.asked("mark before there were none")
    await ready(one)
    async with httpx.AsyncClient(headers=one.client.headers, timeout=30) as newcomer:
        with limited(one.pid, resource.RLIMIT_NOFILE, 5):
            answer = await one.client.get(one.url("/readyz"))
            assert (answer.status_code, answer.json()["error"]) == (503, "no more files can be opened")
            assert (await one.press(ident)).status_code == 200
            waits = asyncio.create_task(newcomer.get(one.url("/readyz")))
            await eventually(lambda: logged(one, "out of system resource"))
            assert not waits.done()
        assert (await waits).status_code == 200
    answer = await one.press(ident, "retry")
    await one.state(ident, "succeeded")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Reply(wait=asyncio.Event()), r"The model's server did not answer within \d\d? seconds\."),
        (fail(500, headers={"Retry-After": "0"}), r"The model's server is in trouble \(HTTP 500\)\."),
        (say("Half an answer").cut(after=1), r"The language model's answer was cut off\."),
    ],
    ids=["silent", "ill", "cut"],
)
async def test_without_an_answer_of_the_model_people_are_told_and_the_next_message_is_answered(
    one: Place, fault: Reply, told: str, request: pytest.FixtureRequest
) -> None:
    word = request.node.callspec.id
    ident = await one.asked(f"mark before it was {word}")
    one.model.faults[word] = fault
    conversation = await one.say(f"{word} now")
    await one.answered(conversation, "when it answers again.")
    assert await one.say(f"and after {word}", after=conversation) == conversation
    await one.answered(conversation)
    first, words, *rest = await one.said(conversation)
    assert (first, rest) == (f"{word} now", [f"and after {word}", "Done."])
    assert re.match(told, words), words
    assert (await one.press(ident)).status_code == 200
    await one.state(ident, "succeeded")


async def logged(place: Place, words: str) -> bool:
    return words in place.log


async def test_what_takes_its_process_down_twice_is_given_up_and_people_are_told(one: Place) -> None:
    conversation = await one.say("blow_up this")
    await one.answered(conversation, "I kept being restarted while working on this, so I gave up.")
    assert len(one.nods.figures.kills) == 2
    await ready(one)
    await one.answered(await one.say("and now"))


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_jumps_an_hour_loses_and_doubles_nothing(one: Place, hours: int) -> None:
    ident = await one.asked(f"mark before it jumped {hours}")
    jump = one.folder / CLOCK
    jump.write_text(str(hours * 3600))
    try:
        await ready(one)
        for words in (f"and now {hours}", f"and again {hours}"):
            conversation = await one.say(words)
            await one.answered(conversation)
            assert await one.said(conversation) == [words, "Done."]
        assert (await one.press(ident)).status_code == 200
        await one.state(ident, "succeeded")
        later = await one.asked(f"mark while it was wrong {hours}")
    finally:
        jump.unlink()
    await ready(one)
    assert (await one.press(later)).status_code == 200
    await one.state(later, "succeeded")
    verified = await one.client.get(one.url("/api/audit/verify"))
    assert verified.json()["intact"], verified.text


_postgres = pytest.mark.skipif(not (POSTGRES_URL and _PROGRAMS), reason="there is no PostgreSQL to start")


@_postgres
async def test_a_process_that_freezes_is_replaced_and_what_it_says_when_it_comes_back_is_refused(
    two: Place,
) -> None:
    hold = two.model.hold("wait")
    conversation = await two.say("wait for it")
    await hold.reached.wait()
    frozen = await two.nods.until(_OWNER, conversation=conversation)
    os.kill(int(frozen), signal.SIGSTOP)
    try:
        await two.answered(conversation)  # by the other one
    finally:
        hold.go.set()
        os.kill(int(frozen), signal.SIGCONT)
    await two.nods.until("SELECT pid FROM process WHERE CAST(pid AS text) = :pid", pid=frozen)
    for at in (0, 1):
        await ready(two, at)
        await two.answered(await two.say(f"and now {at}", at))
    assert await two.said(conversation) == ["wait for it", "Done."]


@_postgres
async def test_while_postgres_is_away_people_are_told_and_afterwards_everything_works(
    two: Place, server: Postgres
) -> None:
    slack, telegram = (two.chats.all[channel] for channel in ("slack", "telegram"))
    ident = await two.asked("mark before it went away")
    await slack.say("mark in slack")
    await telegram.say("mark in telegram")
    in_slack, in_telegram = [await two.nods.until(_CARD, channel=each) for each in ("slack", "telegram")]
    await server.stop()
    try:
        for at in (0, 1):
            await refuses(two, at)
            press = await two.press(ident, at=at)
            message = await two.client.post(two.url("/api/chat", at), json={"message": "mark never"})
            for answer in (press, message):
                assert (answer.status_code, answer.json()["error"]) == (503, _LATE)
        assert await slack.press(in_slack, "Approve")
        assert await telegram.press(in_telegram, "Approve")
        await eventually(lambda: whispered(two, "Please try again."))
        await eventually(lambda: toasted(two, "Your press counts once I can."))
    finally:
        await server.start()
    for at in (0, 1):
        await ready(two, at)
    logs = [two.nods.log(port) for port in two.nods.ports]
    assert not any("Traceback" in log for log in logs)
    assert all("connection refused" in log.lower() for log in logs)
    await two.state(in_telegram, "succeeded")  # Telegram keeps a press until it is taken
    assert (await two.press(ident)).status_code == 200
    assert await slack.press(in_slack, "Approve")
    for each in (ident, in_slack):
        await two.state(each, "succeeded")


async def whispered(place: Place, words: str) -> bool:
    told = (each for each in place.chats.slack.posted if each.only_for)
    return any(words in each.words for each in told)


async def toasted(place: Place, words: str) -> bool:
    return any(words in each.text for each in place.chats.telegram.queries.values())

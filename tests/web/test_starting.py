"""A start asks everything that can refuse it before it touches a row or begins work."""

import asyncio
import contextlib
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from bot.app.assembly import build
from bot.approvals import incoming
from bot.channels.base import Hearing
from bot.domain.chat import Address, Message
from bot.domain.people import Actor
from bot.domain.work_limits import Bounds
from bot.errors import SettingsError
from bot.settings import Settings
from bot.store import turns
from bot.store.database import Database
from bot.store.locks.process_lock import notify_processes
from bot.tools.tool import Tool
from bot.web.server import open_socket
from tests.kit import FakeClock, Hold, RecordingChannel, until
from tests.kit.urls import Urls
from tests.store.conftest import Rows
from tests.web.conftest import Notes, Serve
from tests.web.scripted import ScriptedModel, ask

pytestmark = pytest.mark.slow


async def test_starts_that_cannot_listen_cost_an_accepted_message_nothing(
    serve: Serve, database_of: Urls, clock: FakeClock
) -> None:
    async with serve():
        pass
    database = Database(database_of("nod"))
    message = Message(Address("http", "room"), Actor("http", "ana"), "hi", "e1")
    accepted = database.write_now(incoming.store_message, message, clock(), Bounds())
    assert accepted is not None
    with open_socket("127.0.0.1", 0) as taken:
        for _ in range(6):
            with pytest.raises(SettingsError, match="NOD_PORT: cannot listen"):
                async with serve(NOD_PORT=taken.getsockname()[1]):
                    pass
    async with serve() as nod:
        await nod.idle()
        transcript = nod.model.seen[-1]
        assert "hi" in str(transcript)
    assert database.read_now(turns.list_wanted) == []
    database.close()


@pytest.mark.usefixtures("only_on_sqlite")
async def test_an_approved_write_does_not_run_in_a_start_that_is_refused(serve: Serve) -> None:
    notes: Notes
    async with serve(model=ScriptedModel(ask(("keep", {"text": "x"})))) as nod:
        (proposal,) = await nod.proposed()
        notes = nod.notes
        nod.app.dispatcher.pause()
        await nod.press(proposal, "approve")
    with open_socket("127.0.0.1", 0) as taken, pytest.raises(SettingsError, match="NOD_PORT"):
        async with serve(NOD_PORT=taken.getsockname()[1]):
            pass
    assert notes.kept == []
    async with serve() as nod:
        await nod.idle()
    assert notes.kept == ["x"]


async def test_what_is_overdue_at_a_start_is_left_to_the_ticks(serve: Serve, clock: FakeClock) -> None:
    async with serve(model=ScriptedModel(ask(("keep", {"text": "x"})))) as nod:
        (proposal,) = await nod.proposed()
    clock.forward(timedelta(days=3))
    async with serve() as nod:
        assert (await nod.client.get("/readyz")).status_code == 200
        assert (await nod.proposal(proposal["id"]))["state"] == "proposed"
        await nod.app.core.recovery.expire_due(clock())
        assert (await nod.proposal(proposal["id"]))["state"] == "expired"


@pytest.mark.usefixtures("only_on_sqlite")
async def test_a_press_in_another_process_is_done_without_a_tick(serve: Serve, tmp_path: Path) -> None:
    async with serve(model=ScriptedModel(ask(("keep", {"text": "x"})))) as nod:
        (proposal,) = await nod.proposed()
        nod.app.dispatcher.pause()  # as a press there would, this one wakes nothing here
        await nod.press(proposal, "approve")
        await asyncio.sleep(0.05)
        nod.app.dispatcher.resume()
        assert nod.notes.kept == []
        other = Database(f"sqlite:///{tmp_path / 'nod.db'}")
        notify_processes(other.engine)
        other.close()
        await until(lambda: nod.notes.kept == ["x"])


@pytest.mark.usefixtures("only_on_sqlite")
@pytest.mark.slow  # a write waits for ten seconds
async def test_a_press_that_waits_too_long_for_the_database_is_503_in_words(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve(model=ScriptedModel(ask(("keep", {"text": "x"})))) as nod:
        (proposal,) = await nod.proposed()
        with closing(sqlite3.connect(tmp_path / "nod.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = await nod.press(proposal, "approve")
            other.execute("ROLLBACK")
        assert answer.status_code == 503
        assert answer.json()["error"] == "The database isn't answering in time. Try again in a moment."
        assert (await nod.press(proposal, "approve")).status_code == 200


@pytest.mark.usefixtures("only_on_sqlite")
async def test_it_is_not_ready_while_another_process_keeps_it_from_writing(
    serve: Serve, tmp_path: Path
) -> None:
    async with serve() as nod:
        with closing(sqlite3.connect(tmp_path / "nod.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = await nod.client.get("/readyz")
            assert answer.status_code == 503
            assert answer.json()["error"] == "the database can't be written"
            other.execute("ROLLBACK")
        assert (await nod.client.get("/readyz")).status_code == 200


class SlowTools:
    """A source of tools that takes its time."""

    name = "slow"

    def __init__(self) -> None:
        self.hold = Hold()

    async def tools(self) -> list[Tool]:
        await self.hold.wait()
        return []


async def test_it_is_ready_only_when_its_start_has_finished(
    serve: Serve, database_of: Urls, clock: FakeClock
) -> None:
    async with serve():
        pass
    database = Database(database_of("nod"))
    Rows(database, clock).running()  # a start asks for the tools to end what a process left
    database.close()
    slow = SlowTools()
    app = build(
        Settings.load(NOD_DATABASE_URL=database_of("nod"), NOD_PORT=0),
        model=ScriptedModel(),
        toolsets=[slow],
        clock=clock,
    )

    async def ready() -> int:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}") as client:
            return (await client.get("/readyz")).status_code

    async with contextlib.AsyncExitStack() as stack:
        start = asyncio.create_task(stack.enter_async_context(app.running(ticking=False)))
        await slow.hold.reached.wait()
        assert await ready() == 503
        slow.hold.go.set()
        await start
        assert await ready() == 200
    assert not app.site.is_up


async def test_each_platform_tells_when_it_was_heard_and_a_dead_one_leaves_the_rest_ready(
    serve: Serve,
) -> None:
    async with serve() as nod:
        nod.app.channels["chat"] = chat = RecordingChannel()
        chat.heard = Hearing(3.4)
        chats = [{"name": "chat", "heard_seconds_ago": 3, "fault": ""}]
        found = {"ok": True, "model_fault": "", "channels": chats}
        for path in ("/healthz", "/readyz"):
            told = (await nod.client.get(path)).json()
            assert {name: told[name] for name in found} == found
        chat.heard = Hearing(75.0, "nothing heard for 75 s")
        for path in ("/healthz", "/readyz"):
            answer = await nod.client.get(path)
            assert answer.status_code == 200
            assert answer.json()["channels"][0]["fault"] == "nothing heard for 75 s"
        del nod.app.channels["chat"]


async def test_each_answer_names_its_request(serve: Serve):
    async with serve() as nod:
        named = [(await nod.client.get(path)).headers["x-request-id"] for path in ("/healthz", "/nowhere")]
        assert len(set(named)) == len(named)
        assert all(named)

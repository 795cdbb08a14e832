"""A server's question, from end to end: asked where the call was, answered by whose call it is, over HTTP."""

import asyncio
import contextlib
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.app.app import App
from bot.app.assembly import build
from bot.approvals.elicitation import PATIENCE
from bot.approvals.team import teammates
from bot.domain.chat import Address, Incoming, Message, Reply
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.teams import TeamLimits
from bot.settings import Settings
from bot.store import conversations, proposals
from bot.tools.mcp.interface import Action, Elicited, Question
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls
from tests.tools.mcp.conftest import HttpLamps, until
from tests.tools.mcp.servers import lamps
from tests.web.scripted import ScriptedModel, ask

pytestmark = pytest.mark.slow

TOKENS = ("ana:ana-0123456789abcdef", "ben:ben-0123456789abcdef")
CHOOSE = ("lamps_choose", {"lamp": "desk", "approval_reason": "You said so."})


@dataclass
class Talk:
    """A running Nod with the lamps, and Ana and Ben who press."""

    app: App
    client: httpx.AsyncClient

    async def say(self, text: str) -> str:
        """Ana writes; gives the conversation's id."""
        actor = Actor("http", "ana", "ana")
        reply = await self.app.core.assistant.handle(
            Message(Address("http", "ana/c1"), actor, text, text, begin="c1")
        )
        assert reply.conversation_id
        return reply.conversation_id

    async def until(self, true: Callable[[Proposal], bool]) -> Proposal:
        """The first proposal of which this is so, once there is one."""
        notifier = self.app.channels["http"].notifier  # type: ignore[attr-defined]
        while True:
            generation = notifier.generation
            found = [
                p for p in await self.app.database.read(proposals.list_in_states, list(State)) if true(p)
            ]
            if found:
                return found[0]
            await notifier.wait(generation, 0.05)

    async def question(self) -> Proposal:
        return await self.until(lambda p: p.kind.name == "question" and p.state == "proposed")

    async def ended(self, proposal: Proposal) -> Proposal:
        return await self.until(lambda p: p.id == proposal.id and p.settled)

    async def press(self, proposal: Proposal, verb: str, who: str = "ana", **body: Any) -> httpx.Response:
        token = {"Authorization": f"Bearer {who}-0123456789abcdef"}
        path = f"/api/proposals/{proposal.id}/{verb}"
        return await self.client.post(path, json=body, headers=token)

    async def shown(self, proposal: Proposal, who: str = "ana") -> dict[str, Any]:
        token = {"Authorization": f"Bearer {who}-0123456789abcdef"}
        answer = (await self.client.get(f"/api/proposals/{proposal.id}", headers=token)).json()
        return answer["proposal"]


@pytest.fixture
def config(tmp_path: Path, folder: Path, http_lamps: HttpLamps) -> Callable[..., Path]:
    """Write who the lamps are: a process, or those at an address where nothing is about the process."""

    def write(*words: str, at_an_address: bool, **more: Any) -> Path:
        if at_an_address:
            server = {"url": http_lamps.url, **more}
        else:
            server = {"command": sys.executable, "args": [lamps.__file__, str(folder), *words], **more}
            server["env"] = {"PYTHONPATH": str(Path(lamps.__file__).parents[4])}
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"lamps": server | {"prefix": "lamps_"}}}))
        return file

    return write


Talking = Callable[..., contextlib.AbstractAsyncContextManager[Talk]]


@pytest.fixture
def talking(
    database_of: Urls, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, config
) -> Talking:
    monkeypatch.chdir(tmp_path)
    make_tables(url := database_of("nod"))

    @contextlib.asynccontextmanager
    async def start(*calls: tuple[str, dict[str, Any]], era: str = "", **more: Any) -> AsyncIterator[Talk]:
        database, patience = more.pop("NOD_DATABASE_URL", url), more.pop("patience", 60)
        settings = Settings.load(
            NOD_DATABASE_URL=database,
            NOD_PORT=0,
            NOD_HTTP_TOKENS=TOKENS,
            NOD_ADMINS=("http:ben",),
            NOD_MCP_CONFIG=config(era, at_an_address=not era and "command" not in more, **more),
        )
        app = build(settings, model=ScriptedModel(*([ask(*calls)] if calls else [])), clock=clock)
        async with (
            asyncio.timeout(180),
            app.running(ticking=False),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}", timeout=20) as client,
        ):
            await app.mcp.start_and_wait(patience)
            yield Talk(app, client)

    return start


async def chosen(talk: Talk) -> tuple[Proposal, Proposal]:
    """Ana's call runs and its server asks: the call and the question."""
    await talk.say("paint the desk")
    call = await talk.until(lambda p: p.tool_name == "lamps_choose" and p.state == "proposed")
    await talk.press(call, "approve")
    return call, await talk.question()


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_person_fills_in_what_a_server_asks_and_the_waiting_call_continues_with_it(
    talking, done, era
):
    async with talking(CHOOSE, era=era) as talk:
        call, question = await chosen(talk)
        shown = await talk.shown(question)
        assert shown["description"] == "lamps asks: Which color for desk?"
        assert shown["verbs"] == ["edit", "approve", "decline"]
        assert (shown["requester"], shown["deciders"], shown["may_decide"]) == ("ana", "ana", True)
        assert shown["outcome"] == "Waiting for an answer."
        assert shown["schema"]["properties"]["color"]["enum"] == ["red", "blue"]
        empty = await talk.press(question, "approve")
        assert empty.status_code == 422
        assert empty.json()["fields"] == {"color": "fill this in first"}
        wrong = await talk.press(question, "approve", arguments={"color": "green"})
        assert (wrong.status_code, list(wrong.json()["fields"])) == (422, ["color"])
        assert (await talk.press(question, "approve", arguments={"color": "red"})).status_code == 200
        assert (await talk.ended(call)).result == "paint desk red"
        assert done() == ["paint desk red"]
        assert (await talk.shown(question))["outcome"] == "Answered by ana."


async def test_no_one_else_answers_for_them_not_even_an_admin(talking, done):
    async with talking(CHOOSE) as talk:
        call, question = await chosen(talk)
        for verb in ("approve", "decline", "edit"):
            answer = await talk.press(question, verb, "ben", arguments={"color": "red"})
            assert answer.status_code == 403
        await talk.press(question, "decline")
        assert (await talk.ended(call)).state is State.FAILED
        assert done() == []


async def test_a_question_may_be_filled_in_first_and_sent_later(talking, done):
    async with talking(CHOOSE) as talk:
        call, question = await chosen(talk)
        assert (await talk.press(question, "edit", arguments={"color": "blue"})).status_code == 200
        assert done() == []
        assert (await talk.shown(question))["preview"][0]["new_value"] == "blue"
        assert (await talk.press(question, "approve")).status_code == 409  # of which contents?
        round_ = (await talk.shown(question))["round"]
        assert (await talk.press(question, "approve", round=round_)).status_code == 200
        assert (await talk.ended(call)).result == "paint desk blue"


async def test_what_no_one_answers_expires_and_the_server_is_told_that_no_one_did(talking, clock, done):
    async with talking(CHOOSE) as talk:
        call, question = await chosen(talk)
        clock.forward(PATIENCE + timedelta(seconds=1))
        await talk.app.core.recovery.expire_due(clock())
        assert (await talk.ended(question)).state is State.EXPIRED
        failed = await talk.ended(call)
        assert (failed.state, "cancel" in str(failed.error)) == (State.FAILED, True)
        assert (await talk.shown(question))["outcome"] == "Expired: no one answered in time."
        assert (await talk.press(question, "approve", arguments={"color": "red"})).json()[
            "answer"
        ] == "already"
        assert done() == []


@pytest.mark.usefixtures("only_on_sqlite")  # whose file can be copied at any moment
async def test_a_question_whose_process_died_is_ended_with_clear_words(talking, tmp_path, done):
    async with talking(CHOOSE) as talk:
        call, question = await chosen(talk)
        with (
            closing(sqlite3.connect(tmp_path / "nod.db")) as living,
            closing(sqlite3.connect(tmp_path / "left.db")) as left,
        ):
            living.backup(left)  # what a process that died right now leaves behind
    async with talking(NOD_DATABASE_URL=f"sqlite:///{tmp_path / 'left.db'}") as talk:
        shown = await talk.shown(question)
        assert (shown["state"], shown["cause"]) == ("cancelled", "unasked")
        assert shown["outcome"] == "Withdrawn: the call that asked this has ended."
        assert (await talk.shown(call))["cause"] == "outcome_unknown"
        assert done() == []


async def test_a_stop_in_good_order_ends_its_questions_too(talking):
    async with talking(CHOOSE) as talk:
        _, question = await chosen(talk)
    async with talking() as talk:
        assert (await talk.shown(question))["cause"] == "unasked"


async def test_a_question_in_the_middle_of_a_turn_is_asked_before_the_turn_can_end(talking, done):
    trusted = {"trust": "trusted"}
    async with talking(("lamps_inquire", {"lamp": "desk"}), **trusted) as talk:
        await talk.say("which color?")
        question = await talk.question()
        await talk.press(question, "approve", arguments={"color": "red"})
        await talk.app.dispatcher.wait_until_idle()
        model: Any = talk.app.core.assistant.loop.models.default
        assert "desk would be red" in str(model.seen[-1])


async def test_an_address_to_open_is_shown_and_approving_says_i_have_been_there(talking):
    async with talking() as talk:
        conversation = await talk.say("hello")
        await talk.app.dispatcher.wait_until_idle()
        url = "https://bank.example/login"
        asking = asyncio.create_task(
            talk.app.questions.ask(Question("bank", "Please log in.", conversation, "http:ana", url=url))
        )
        question = await talk.question()
        shown = await talk.shown(question)
        assert shown["verbs"] == ["approve", "decline"]
        (address,) = shown["preview"]
        assert (address["field"], address["old_value"], address["new_value"]) == (
            "Open this address",
            None,
            url,
        )
        await talk.press(question, "approve")
        assert await asking == Elicited(Action.ACCEPT)


async def test_a_question_in_a_teammates_work_stands_with_its_team(talking):
    async with talking() as talk:
        ident = await talk.say("hello")
        await talk.app.dispatcher.wait_until_idle()
        read, write = talk.app.database.read, talk.app.database.write
        lead = await read(conversations.get_conversation, ident)
        spawned = {"role": "painter", "task": "Paint.", "tools": None, "needs_plan": True, "call": "1"}
        limits = {"limits": TeamLimits(), "now": talk.app.clock()}
        teammate, _ = await write(partial(teammates.spawn, **spawned, **limits), lead, lead.requester)
        asking = asyncio.create_task(
            talk.app.questions.ask(Question("bank", "How much?", teammate.id, "http:ana", {"type": "object"}))
        )
        shown = await talk.shown(await talk.question())
        assert (shown["teammate"], shown["conversation_id"]) == ("painter", ident)
        await talk.press(await talk.question(), "approve")
        assert await asking == Elicited(Action.ACCEPT, {})


async def test_a_question_of_a_call_that_is_broken_off_is_ended(talking):
    async with talking() as talk:
        conversation = await talk.say("hello")
        await talk.app.dispatcher.wait_until_idle()
        asking = asyncio.create_task(
            talk.app.questions.ask(
                Question("bank", "How much?", conversation, "http:ana", {"type": "object"})
            )
        )
        question = await talk.question()
        asking.cancel()
        assert (await talk.ended(question)).cause == "unasked"
        assert list(await talk.app.questions.tools()) == []


async def test_a_question_is_ended_also_when_its_call_is_broken_off_while_it_is_being_opened(talking):
    opened, hold = asyncio.Event(), asyncio.Event()
    async with talking() as talk:
        conversation = await talk.say("hello")
        await talk.app.dispatcher.wait_until_idle()

        async def slowly(incoming: Incoming) -> Reply:
            reply = await talk.app.core.assistant.handle(incoming)
            opened.set()
            await hold.wait()
            return reply

        talk.app.questions.start(slowly)
        asking = asyncio.create_task(
            talk.app.questions.ask(
                Question("bank", "How much?", conversation, "http:ana", {"type": "object"})
            )
        )
        await opened.wait()
        asking.cancel()
        hold.set()
        assert (await talk.ended(await talk.until(lambda p: p.kind.name == "question"))).cause == "unasked"


async def test_a_call_that_belongs_to_no_conversation_bothers_no_one(talking):
    async with talking() as talk:
        nowhere = Question("bank", "How much?", "nowhere", "http:ana", {"type": "object"})
        assert (await talk.app.questions.ask(nowhere)).action is Action.DECLINE


async def test_servers_begin_with_nod_and_one_that_says_nothing_holds_up_no_start(talking, tmp_path):
    started = tmp_path / "started"
    touch = f"import pathlib, sys; pathlib.Path({str(started)!r}).touch(); sys.stdin.read()"
    async with talking(command=sys.executable, args=["-c", touch], patience=0) as talk:
        assert talk.app.site.is_up
        await until(started.exists)
        [trouble] = talk.app.site.logins.troubles().values()
        assert "still starting" in trouble

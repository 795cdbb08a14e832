"""In a chat: a person is asked about their agent in private, and an agent's card is decided there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from bot.approvals.accounts import linking
from bot.approvals.agent_tokens import make_consent_request
from bot.approvals.requests import RequestGate
from bot.channels.slack.channel import SlackChannel
from bot.domain.agents import Agent
from bot.domain.people import SHELL, Actor
from bot.domain.policy import Policy
from bot.settings import Settings
from bot.store import tokens
from bot.store.rules import Policies
from bot.store.tokens import AgentTerms
from bot.testing.world import World
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, FakeSlack, Posted

pytestmark = [pytest.mark.slow, pytest.mark.platform]

PERSON = Actor("slack", "T1/U7", "Ana")
OPERATOR = Actor(SHELL, "root", "root")


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    fake = FakeSlack()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
async def world(slack: FakeSlack, tmp_path: Path) -> AsyncIterator[World]:
    settings = partial(
        Settings.load,
        _env_file=None,
        NOD_DATABASE_URL=f"sqlite:///{tmp_path / 'slack.db'}",
        NOD_PORT=0,
        NOD_LOG_LEVEL="error",
        SLACK_BOT_TOKEN=BOT_TOKEN,
        SLACK_APP_TOKEN=APP_TOKEN,
        SLACK_API_URL=slack.url,
    )
    made = World(settings, lambda app: SlackChannel(app.settings, app.database, app.clock))
    await made.start()
    await slack.until(lambda: slack._socket)
    yield made
    await made.stop()


async def test_a_person_says_yes_in_their_chat_and_decides_their_agents_card_there(
    slack: FakeSlack, world: World
) -> None:
    app = world.app
    until = app.clock() + timedelta(days=30)
    terms = AgentTerms(PERSON, ("note",), (), ("note",), until)
    token = await app.database.write(tokens.issue_token, "claude-code", OPERATOR, app.clock(), terms)
    agent = Agent("claude-code", token.split("_")[1], PERSON, ("note",), (), frozenset({"note"}))
    opened = await RequestGate(app.core.gate).open(make_consent_request(agent, ["note"], [], OPERATOR, until))
    await app.dispatcher.wake(*opened.jobs)
    [card, *_] = await slack.until(lambda: slack.cards("D7"))
    assert all(words in str(card) for words in ("claude-code", "root", "note"))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}", headers=headers) as client:
        assert (await client.get("/api/tools")).status_code == 403
        await slack.click(card, "Approve")
        await slack.until(lambda: "Approve" not in card.buttons)
        await app.dispatcher.wait_until_idle()
        assert [t["name"] for t in (await client.get("/api/tools")).json()["tools"]] == ["note"]
        made = (await client.post("/api/tools/note/calls", json={"arguments": {"text": "milk"}})).json()[
            "call"
        ]
        assert made["end"] == "waiting"
        cards = await slack.until(lambda: len(slack.cards("D7")) > 1 and slack.cards("D7"))
        asked = next(each for each in cards if each is not card)
        assert "claude-code, for " in str(asked)
        await slack.click(asked, "Approve")
        await slack.until(lambda: "Approve" not in asked.buttons)
        await app.dispatcher.wait_until_idle()
        done = (await client.get(f"/api/calls/{made['id']}")).json()["call"]
    assert done["end"] == "succeeded"
    assert world.notes == ["milk"]


@contextlib.asynccontextmanager
async def agent_of_ana(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """An agent that Ana allowed everything that tools do."""
    app = world.app
    names = ("note", "inquire", "paint_as_asked")
    terms = AgentTerms(PERSON, names, (), names, app.clock() + timedelta(days=30), agreed=True)
    token = await app.database.write(tokens.issue_token, "claude-code", OPERATOR, app.clock(), terms)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{app.web.port}"
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        yield client


async def ask(slack: FakeSlack, world: World) -> Posted:
    """A call of an agent of Ana's waits; returns its card in her chat."""
    async with agent_of_ana(world) as client:
        made = await client.post("/api/tools/note/calls", json={"arguments": {"text": "milk"}})
        assert made.status_code == 201, made.text
    [card] = await slack.until(lambda: slack.cards("D7"))
    assert "Approve" in card.buttons
    return card


async def test_the_card_of_a_token_whose_time_is_over_is_redrawn_by_the_sweep_that_ends_it(
    slack: FakeSlack, world: World
) -> None:
    card = await ask(slack, world)
    world.clock.forward(timedelta(days=31))
    [sweep] = [each for each in world.app.sweeps if each.name == "end_agents"]
    await sweep.run(world.clock())
    await world.app.dispatcher.wait_until_idle()
    assert ("Approve" in card.buttons, "its token has ended" in str(card)) == (False, True)


async def test_the_card_of_a_token_that_ends_with_a_link_is_redrawn_by_the_unlinking(
    slack: FakeSlack, world: World
) -> None:
    app, phone = world.app, Actor("telegram", "991", "Ana")
    await app.database.write(linking.link_accounts, Policies(Policy()), PERSON, phone, PERSON, app.clock())
    card = await ask(slack, world)
    await slack.slash("U7", "/nod", "unlink telegram:991", channel="D7")
    await world.app.dispatcher.wait_until_idle()
    assert ("Approve" in card.buttons, "its token has ended" in str(card)) == (False, True)


async def answer(slack: FakeSlack, card: Posted, color: str) -> None:
    """Ana fills in a server's question and sends it."""
    said = "lamps has a question in a call of claude-code, for Ana"
    await slack.until(lambda: any(said in str(each) for each in slack.in_channel("D7")))
    await slack.click(card, "Fill in")
    await slack.until(lambda: [each for each in slack.modals if each.open])
    await slack.submit("U7", {"Color": color})
    await slack.until(lambda: color in str(card))
    await slack.click(card, "Send answer")


async def test_what_a_server_asks_in_a_read_of_an_agent_is_asked_of_its_person_in_their_chat(
    slack: FakeSlack, world: World
) -> None:
    async with agent_of_ana(world) as client:
        calling = asyncio.create_task(client.post("/api/tools/inquire/calls", json={}))
        [card, *_] = await slack.until(lambda: slack.cards("D7"))
        await answer(slack, card, "red")
        said = (await calling).json()["call"]
    assert (said["end"], said["text"]) == ("succeeded", "accept: red")


async def test_what_a_server_asks_in_a_change_of_an_agent_is_asked_of_its_person_in_their_chat(
    slack: FakeSlack, world: World
) -> None:
    async with agent_of_ana(world) as client:
        made = (await client.post("/api/tools/paint_as_asked/calls", json={})).json()["call"]
        [card] = await slack.until(lambda: slack.cards("D7"))
        await slack.click(card, "Approve")
        asked = await slack.until(lambda: [each for each in slack.cards("D7") if "Fill in" in each.buttons])
        assert slack.in_channel("C1") == []
        await answer(slack, asked[0], "red")
        done = (await client.get(f"/api/calls/{made['id']}", params={"wait": 30})).json()["call"]
        assert (done["end"], "accept: red" in done["text"]) == ("succeeded", True)

"""In a chat: a person is asked about their agent in private, and an agent's card is decided there."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from bot.approvals.accounts import linking
from bot.approvals.agents import make_consent
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
    token = await app.database.write(tokens.issue, "claude-code", OPERATOR, app.clock(), terms)
    agent = Agent("claude-code", token.split("_")[1], PERSON, ("note",), (), frozenset({"note"}))
    opened = await app.core.gate.open(make_consent(agent, ["note"], [], OPERATOR, until))
    await app.dispatcher.wake(*opened.jobs)
    [card, *_] = await slack.until(lambda: slack.cards("D7"))
    assert all(words in str(card) for words in ("claude-code", "root", "note"))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}", headers=headers) as client:
        assert (await client.get("/api/tools")).status_code == 403
        await slack.click(card, "Approve")
        await slack.until(lambda: "Approve" not in card.buttons)
        await app.dispatcher.idle()
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
        await app.dispatcher.idle()
        done = (await client.get(f"/api/calls/{made['id']}")).json()["call"]
    assert done["end"] == "succeeded"
    assert world.notes == ["milk"]


async def ask(slack: FakeSlack, world: World) -> Posted:
    """A call of an agent of Ana's waits; returns its card in her chat."""
    app = world.app
    terms = AgentTerms(PERSON, ("note",), (), ("note",), app.clock() + timedelta(days=30), agreed=True)
    token = await app.database.write(tokens.issue, "claude-code", OPERATOR, app.clock(), terms)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{app.web.port}", headers=headers) as client:
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
    await world.app.dispatcher.idle()
    assert ("Approve" in card.buttons, "its token has ended" in str(card)) == (False, True)


async def test_the_card_of_a_token_that_ends_with_a_link_is_redrawn_by_the_unlinking(
    slack: FakeSlack, world: World
) -> None:
    app, phone = world.app, Actor("telegram", "991", "Ana")
    await app.database.write(linking.join, Policies(Policy()), PERSON, phone, PERSON, app.clock())
    card = await ask(slack, world)
    await slack.slash("U7", "/nod", "unlink telegram:991", channel="D7")
    await world.app.dispatcher.idle()
    assert ("Approve" in card.buttons, "its token has ended" in str(card)) == (False, True)

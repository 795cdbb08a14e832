"""Rules and grants: what loosens for a person does not loosen for their agents, unless it names them."""

import pytest

from bot.domain.people import Actor
from bot.domain.rule_values import Mode, Quorum, Subject
from bot.domain.rules import Rule
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.store import rules
from tests.features.agents.kit import SETTINGS, agent_of, call, look, press, waiting
from tests.web.conftest import ANA, BEN, CHIEF, Json, Serve, Served
from tests.web.scripted import ask, say

CHIEF_ACTOR = Actor("http", "chief", "chief")


async def set_rule(nod: Served, subject: Subject, value: object, scope: str = "*", tools: str = "*") -> None:
    rule = Rule(0, subject, scope, tools, value)  # type: ignore[arg-type]
    await nod.app.database.write(rules.set_rule, rule, CHIEF_ACTOR, nod.clock())


@pytest.mark.parametrize("scope", ["*", "http:*", "http:ana"])
async def test_no_rule_that_loosens_for_people_covers_an_agent(serve: Serve, scope: str):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await set_rule(nod, Subject.POLICY, Mode.NEVER, scope)
        assert (await call(agent, "keep", text="milk"))["end"] == "waiting"


async def test_no_setting_loosens_for_an_agent(serve: Serve):
    settings = SETTINGS | {"NOD_APPROVAL_POLICY": "destructive"}
    async with serve(**settings) as nod, agent_of(nod) as agent:
        assert (await call(agent, "keep", text="milk"))["end"] == "waiting"


@pytest.mark.parametrize("scope", ["agents:*", "agents:claude-code"])
async def test_a_rule_that_names_the_agents_place_loosens_for_it(serve: Serve, scope: str):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        await set_rule(nod, Subject.POLICY, Mode.NEVER, scope)
        done = await call(agent, "keep", wait=5, text="milk")
        assert (done["end"], done["text"]) == ("succeeded", '{"kept": 1}')
        end = (await call(other, "keep", wait=0.05 if scope != "agents:*" else 5, text="tea"))["end"]
        assert end == ("succeeded" if scope == "agents:*" else "waiting")


async def test_what_makes_stricter_covers_an_agent(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await set_rule(nod, Subject.POLICY, Mode.NEVER, "agents:*")
        await set_rule(nod, Subject.POLICY, Mode.ALWAYS)
        await set_rule(nod, Subject.QUORUM, Quorum(2), tools="keep")
        assert (await call(agent, "read"))["end"] == "waiting"
        await call(agent, "keep", text="milk")
        assert {card["quorum"] for card in await waiting(nod)} == {1, 2}


async def similar(nod: Served, card: Json, token: str, reach: GrantAudience, status: int = 200) -> None:
    async with nod.caller(token) as person:
        body = {"rung": GrantScope.TOOL, "lasting": GrantDuration.DAY, "reach": reach, "seen": card["seen"]}
        answer = await nod.press(card, "similar", person, **body)
    assert answer.status_code == status, answer.text
    await nod.idle()


@pytest.mark.parametrize("reach", [GrantAudience.REQUESTER, GrantAudience.EVERYONE])
async def test_a_grant_that_was_given_to_a_person_does_not_cover_their_agent(
    serve: Serve, reach: GrantAudience
):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        nod.model.answer(ask(("keep", {"text": "milk"})), say("Done."))
        [card] = await nod.proposed()
        await similar(nod, card, CHIEF, reach)
        assert (await call(agent, "keep", text="tea"))["end"] == "waiting"


async def test_a_grant_born_of_an_agents_card_covers_that_agent_alone(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        await call(agent, "keep", text="milk")
        [card] = await waiting(nod, CHIEF)
        async with nod.caller(CHIEF) as chief:
            found = (await chief.get(f"/api/proposals/{card['id']}/ladder")).json()
            assert [each["reach"] for each in found["reaches"]] == ["here"]
        await similar(nod, card, CHIEF, GrantAudience.HERE)
        assert (await call(agent, "keep", wait=5, text="tea"))["end"] == "succeeded"
        assert (await call(other, "keep", text="tea"))["end"] == "waiting"
        nod.model.answer(ask(("keep", {"text": "bread"})), say("Done."))
        [mine] = await nod.proposed()
        assert mine["state"] == "proposed"


async def test_a_grant_for_an_agent_ends_with_its_token(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await call(agent, "keep", text="milk")
        [card] = await waiting(nod, CHIEF)
        await similar(nod, card, CHIEF, GrantAudience.HERE)
        async with nod.caller(CHIEF) as chief:
            [grant] = (await chief.get("/api/grants")).json()["grants"]
            assert "claude-code, for ana" in grant["words"]
            [seen] = (await chief.get("/api/agents")).json()["agents"]
            await chief.delete(f"/api/agents/{seen['label']}")
            assert (await chief.get("/api/grants")).json()["grants"] == []


async def test_four_eyes_count_the_person_as_who_asked(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        asked = (await agent.post("/api/approvals", json={"summary": "Deploy"})).json()["proposal"]
        async with nod.caller(ANA) as ana:
            answer = await nod.press(asked, "approve", ana)
        assert (answer.status_code, "Four eyes" in answer.json()["error"]) == (403, True)
        await press(nod, "approve", asked, token=BEN)
        assert (await agent.get(f"/api/approvals/{asked['id']}")).json()["proposal"]["end"] == "approved"


async def test_where_no_one_may_decide_the_call_is_refused_with_how_to_set_it(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await set_rule(nod, Subject.DECIDERS, ("member",), "agents:*")
        refused = await call(agent, "keep", status=403, text="milk")
        assert "/approvals route CHAT in agents/NAME" in refused["error"]


async def test_an_admin_names_an_agents_place_as_people_say_it(serve: Serve):
    async with serve(**SETTINGS) as nod, nod.caller(CHIEF) as chief, agent_of(nod) as agent:
        body = {"name": "approvals", "text": "policy never for keep in agents/claude-code"}
        answer = await chief.post("/api/commands", json=body)
        assert answer.status_code == 200, answer.text
        made = await call(agent, "keep", wait=5, text="milk")
        assert (await look(agent, made))["end"] == "succeeded"

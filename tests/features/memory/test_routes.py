"""What Nod remembers over HTTP: each caller sees, edits, exports and forgets what is theirs."""

from collections.abc import AsyncIterator

import httpx
import pytest

from bot.features.memory.facts import MAX_FACT_CHARS
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say

pytestmark = pytest.mark.platform

FACT = "Ana's desk is at the window."


@pytest.fixture
async def nod(serve: Serve) -> AsyncIterator[Served]:
    """Ana has had two facts remembered: one of her own, one of the team."""
    calls = [
        ("remember", {"fact": FACT, "about": "person"}),
        ("remember", {"fact": "Blue.", "about": "team"}),
    ]
    model = ScriptedModel(ask(*calls), say("Done."))
    who = {"NOD_ADMINS": ("http:chief",)}
    async with serve(model=model, NOD_HTTP_TOKENS=TOKENS, token=ANA, **who) as served:
        await served.client.post("/api/chat", json={"message": "remember it"})
        found = (await served.client.get("/api/proposals", params={"state": "proposed"})).json()["proposals"]
        for each in found:
            at = f"/api/proposals/{each['id']}/approve"
            assert (await served.client.post(at, params={"wait": 20})).status_code == 200
        yield served


async def own(nod: Served) -> str:
    """The path of Ana's fact."""
    found = (await nod.client.get("/api/memory")).json()["facts"]
    return next(f"/api/memory/{each['id']}" for each in found if each["about"] == "person")


async def facts(client: httpx.AsyncClient) -> list[str]:
    return [each["fact"] for each in (await client.get("/api/memory")).json()["facts"]]


async def test_a_person_sees_theirs_and_the_teams_and_others_only_the_teams(nod: Served):
    mine = await own(nod)
    found = (await nod.client.get("/api/memory")).json()["facts"]
    assert [(each["whose"], each["about"], each["may_change"]) for each in found] == [
        ("you", "person", True),
        ("the team", "team", True),
    ]
    for token, may in ((BEN, False), (CHIEF, True)):
        async with nod.caller(token) as other:
            [team] = (await other.get("/api/memory")).json()["facts"]
            assert (team["fact"], team["may_change"]) == ("Blue.", may)
            for answer in (
                await other.patch(mine, json={"fact": "x"}),
                await other.delete(mine),
            ):
                assert answer.status_code == 404
                assert FACT not in answer.text


async def test_a_fact_is_edited_within_its_bounds_and_forgotten(nod: Served):
    mine = await own(nod)
    edited = await nod.client.patch(mine, json={"fact": "At the door. forget 2"})
    assert edited.json() == {
        "ok": True,
        "text": "Remembered: At the door. forget 2",
        "id": int(mine.rpartition("/")[2]),
        "fact": "At the door. forget 2",
    }
    for fact in ("x" * 100_000, "x" * (MAX_FACT_CHARS + 1), "", "  ", "the password is hunter2"):
        assert (await nod.client.patch(mine, json={"fact": fact})).status_code in (413, 422)
    assert await facts(nod.client) == ["At the door. forget 2", "Blue."]
    assert (await nod.client.delete(mine)).json()["text"] == "Forgotten: At the door. forget 2"
    assert (await nod.client.delete(mine)).status_code == 404
    assert await facts(nod.client) == ["Blue."]

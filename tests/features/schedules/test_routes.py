"""Schedules over HTTP: everybody sees and ends their own; a token that is revoked runs nothing."""

from datetime import timedelta
from typing import Any

import pytest

from bot.domain.people import Actor
from bot.store import tokens
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say

pytestmark = pytest.mark.platform

DAILY = {"task": "list what is late", "at": "10:00", "every": "day", "approval_reason": ""}


async def listed(nod: Served, token: str = ANA) -> tuple[bool, list[dict[str, Any]]]:
    async with nod.caller(token) as client:
        found = (await client.get("/api/schedules")).json()
        return found["everyone"], found["schedules"]


async def made(nod: Served, token: str = ANA) -> str:
    """The id of one that someone asked for and approved."""
    async with nod.caller(token) as client:
        stream = await client.post("/api/chat", json={"message": "every day at 10"})
        assert stream.status_code == 200
        [asked] = (await client.get("/api/proposals")).json()["proposals"]
        done = await client.post(f"/api/proposals/{asked['id']}/approve", params={"wait": 20})
        assert done.json()["proposal"]["state"] == "succeeded"
        return str(asked["id"])


async def test_everybody_lists_pauses_runs_and_deletes_their_own(serve: Serve) -> None:
    model = ScriptedModel(ask(("schedule_task", DAILY)), say("It is set."), say("Nothing is late."))
    async with serve(model=model, token=ANA, NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=("http:chief",)) as nod:
        ident = await made(nod)
        everyone, [mine] = await listed(nod)
        assert (everyone, mine["task"], mine["words"], mine["person"], mine["state"]) == (
            False,
            "list what is late",
            "every day at 10:00 (UTC)",
            "ana",
            "active",
        )
        assert await listed(nod, BEN) == (False, [])
        assert (await listed(nod, CHIEF))[0]
        at = f"/api/schedules/{ident}"
        async with nod.caller(BEN) as ben:
            assert (await ben.post(at, json={"do": "pause"})).status_code == 404
            assert (await ben.delete(at)).status_code == 404
        paused = (await nod.client.post(at, json={"do": "pause"})).json()
        assert paused["text"].startswith("Schedule ")
        assert (paused["changed"], paused["schedule"]["id"], paused["schedule"]["state"]) == (
            True,
            ident,
            "paused",
        )
        again = (await nod.client.post(at, json={"do": "pause"})).json()
        assert (again["changed"], again["text"]) == (False, f"Schedule {ident[:8]} is paused already.")
        assert [each["state"] for each in (await listed(nod))[1]] == ["paused"]
        assert (await nod.client.post(at, json={"do": "explode"})).status_code == 422
        await nod.client.post(at, json={"do": "resume"})
        await nod.client.post(at, json={"do": "run"})
        assert await run_due(nod) == 1
        async with nod.caller(CHIEF) as chief:
            deleted = (await chief.delete(at)).json()
        assert (deleted["changed"], deleted["schedule"]["state"]) == (True, "ended")
        assert await listed(nod) == (False, [])


async def test_what_a_revoked_token_asked_for_runs_no_longer(serve: Serve) -> None:
    model = ScriptedModel(ask(("schedule_task", DAILY)), say("It is set."))
    chief = Actor("http", "chief", "chief")
    async with serve(model=model, token=CHIEF, NOD_HTTP_TOKENS=TOKENS, NOD_ADMINS=(str(chief),)) as nod:
        token = nod.app.database.write_now(tokens.issue_token, "dora", chief, nod.clock())
        await made(nod, token)
        nod.app.database.write_now(tokens.revoke_token, "dora", chief, nod.clock())
        nod.clock.forward(timedelta(hours=2))
        assert await run_due(nod) == 0
        assert (await listed(nod, CHIEF))[1] == []


async def run_due(nod: Served) -> int:
    """Do what the clock does for schedules; gives how many runs it began."""
    [sweep] = (each for each in nod.app.sweeps if each.name == "run_due")
    return await sweep.run(nod.clock())

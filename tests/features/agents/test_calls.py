"""An agent calls tools over HTTP: reads are answered, writes wait for people, and results are its own."""

import json
from datetime import timedelta

from sqlmodel import Session, select

from bot.store.tables.agents import AgentCallRow
from tests.features.agents.kit import SETTINGS, agent_of, call, look, press, waiting
from tests.web.conftest import CHIEF, Serve


async def test_what_only_reads_is_answered_immediately(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        nod.notes.kept.append("milk")
        read = await call(agent, "read")
        assert (read["end"], read["text"], read["id"]) == ("succeeded", '["milk"]', "")
        assert await waiting(nod) == []


async def test_a_write_becomes_a_card_that_names_the_agent_and_its_person(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        made = await call(agent, "keep", text="milk")
        assert made["end"] == "waiting"
        assert len(made["id"]) == 32
        [card] = await waiting(nod)
        assert card["requester"] == "claude-code, for ana"
        assert card["requester_account"] == "http:ana"
        assert nod.notes.kept == []
        await press(nod, "approve")
        done = await look(agent, made)
        assert (done["end"], done["text"]) == ("succeeded", '{"kept": 1}')
        assert nod.notes.kept == ["milk"]


async def test_what_a_tool_answered_is_for_the_agent_and_its_person_alone(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        made = await call(agent, "keep", text="milk")
        await press(nod, "approve")
        [mine] = (await nod.client.get("/api/proposals")).json()["proposals"]
        assert mine["result"] == '{"kept": 1}'
        for token in (CHIEF,):
            async with nod.caller(token) as person:
                [theirs] = (await person.get("/api/proposals")).json()["proposals"]
                assert (theirs["state"], theirs["result"], theirs["result_fields"]) == ("succeeded", None, [])
                assert (await person.get(f"/api/proposals/{mine['id']}/result")).status_code == 404
        assert (await other.get(f"/api/calls/{made['id']}")).status_code == 404


async def test_the_six_ends_are_told_apart(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        declined = await call(agent, "keep", text="1")
        await press(nod, "decline", reason="Not today")
        expired = await call(agent, "keep", text="2")
        nod.clock.forward(timedelta(hours=25))
        await nod.app.core.recovery.expire_due(nod.clock())
        withdrawn = await call(agent, "keep", text="3")
        await press(nod, "cancel", token=CHIEF)
        cancelled = await call(agent, "keep", text="4")
        await agent.post(f"/api/calls/{cancelled['id']}/cancel")
        nod.notes.failing = True
        failed = await call(agent, "keep", text="5")
        await press(nod, "approve")
        ends = [await look(agent, each) for each in (declined, expired, withdrawn, cancelled, failed)]
        assert [each["end"] for each in ends] == ["declined", "expired", "withdrawn", "cancelled", "failed"]
        assert "Not today" in ends[0]["text"]
        assert "the notebook is closed" in ends[4]["text"]
        assert all(each["is_error"] for each in ends)
        async with nod.caller(CHIEF) as chief:
            told = (await chief.get("/api/proposals")).text
        assert "the notebook is closed" not in told


async def test_streams_exports_lists_and_the_audit_log_tell_how_it_ended_without_its_contents(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, nod.caller(CHIEF) as chief:
        async with nod.stream("GET", "/api/events", chief) as stream:
            await stream.raw()
            made = await call(agent, "keep", text="milk")
            [row] = await nod.app.database.read(_calls)
            await press(nod, "approve")
            seen = [await stream.next()]
            while seen[-1]["proposal"]["state"] != "succeeded":
                seen.append(await stream.next())
        assert '{"kept": 1}' in (await look(agent, made))["text"]
        assert row.outcome is None
        [row] = await nod.app.database.read(_calls)
        assert row.outcome == {"result": '{"kept": 1}'}
        ident = seen[-1]["proposal"]["id"]
        paths = ("/api/proposals", f"/api/proposals/{ident}", "/api/audit", "/api/audit/export")
        told = [json.dumps(seen), *[(await chief.get(path)).text for path in paths]]
        assert not [each for each in told if '"kept": 1' in each or '\\"kept\\"' in each]
        files = await chief.get(f"/api/proposals/{ident}/files")
        assert files.json()["files"] == []


def _calls(session: Session) -> list[AgentCallRow]:
    return list(session.exec(select(AgentCallRow)))

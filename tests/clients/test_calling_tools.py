"""The client calls Nod's tools with the token of an agent."""

import asyncio

import pytest

from nod_client import NodError, Refused
from tests.clients.conftest import BOTH, House, Ticks
from tests.features.agents.kit import make_agent


@BOTH
async def test_it_reads_immediately_and_waits_for_what_people_decide(house: House, client):
    token = await make_agent(house.nod)
    async with client(house.url, token, clock=Ticks()) as nod:
        read = await nod.call_tool("read")
        assert (read.end, read.text, read.is_open) == ("succeeded", "[]", False)
        asked = asyncio.create_task(nod.call_tool("keep", {"text": "milk"}, reason="for tea"))
        proposal = await house.press("approve")
        done = await asked
        assert proposal["requester"] == "claude-code, for ana"
        assert (done.end, done.text, done.decided_by) == ("succeeded", '{"kept": 1}', "ben")


@BOTH
async def test_a_call_is_looked_at_and_withdrawn(house: House, client):
    token = await make_agent(house.nod)
    async with client(house.url, token, clock=Ticks()) as nod:
        made = await nod.call_tool("keep", {"text": "milk"}, wait=0, key="one")
        again = await nod.call_tool("keep", {"text": "milk"}, wait=0, key="one")
        assert (made.end, again.id, again.joined) == ("waiting", made.id, True)
        assert (await nod.cancel_call(made.id)).end == "cancelled"
        assert (await nod.look_call(made.id)).end == "cancelled"
        with pytest.raises(Refused, match="no tool called"):
            await nod.call_tool("lamp")
        with pytest.raises((NodError, ValueError)):
            await nod.look_call("../me")

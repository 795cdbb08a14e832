"""The same call again joins, is told its end once, or is a new one; a key lets the client decide that."""

from datetime import timedelta

from tests.features.agents.kit import SETTINGS, agent_of, call, look, press, waiting
from tests.web.conftest import Serve


async def test_the_same_call_joins_while_it_waits(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        first = await call(agent, "keep", text="milk")
        second = await call(agent, "keep", status=200, text="milk")
        assert (second["id"], second["joined"], first["joined"]) == (first["id"], True, False)
        other = await call(agent, "keep", text="tea")
        assert other["id"] != first["id"]
        assert len(await waiting(nod)) == 2


async def test_an_end_that_was_not_told_is_told_once(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        first = await call(agent, "keep", text="milk")
        await press(nod, "approve")
        told = await call(agent, "keep", status=200, text="milk")
        assert (told["id"], told["end"], told["text"]) == (first["id"], "succeeded", '{"kept": 1}')
        again = await call(agent, "keep", text="milk")
        assert (again["id"] != first["id"], again["end"]) == (True, "waiting")
        assert nod.notes.kept == ["milk"]


async def test_a_decline_is_repeated_for_an_hour_without_a_card(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await call(agent, "keep", text="milk")
        await press(nod, "decline", reason="Not today")
        for _ in range(3):
            told = await call(agent, "keep", status=200, text="milk")
            assert (told["end"], "ben" in told["text"], "Not today" in told["text"]) == (
                "declined",
                True,
                True,
            )
        assert await waiting(nod) == []
        nod.clock.forward(timedelta(minutes=61))
        assert (await call(agent, "keep", text="milk"))["end"] == "waiting"


async def test_an_untold_end_is_not_told_after_an_hour(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        await call(agent, "keep", text="milk")
        await press(nod, "approve")
        nod.clock.forward(timedelta(minutes=61))
        assert (await call(agent, "keep", text="milk"))["end"] == "waiting"


async def test_a_key_lets_the_client_decide_what_is_the_same(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        first = await call(agent, "keep", key="a", text="milk")
        second = await call(agent, "keep", key="b", text="milk")
        assert second["id"] != first["id"]
        again = await call(agent, "keep", status=200, key="a", text="milk")
        assert again["id"] == first["id"]
        taken = await call(agent, "keep", status=409, key="a", text="tea")
        assert "idempotency key" in taken["error"].lower()
        elsewhere = await call(other, "keep", key="a", text="milk")
        assert elsewhere["id"] not in (first["id"], second["id"])


async def test_two_agents_never_join_each_other(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        mine, theirs = await call(agent, "keep", text="milk"), await call(other, "keep", text="milk")
        assert mine["id"] != theirs["id"]


async def test_an_edit_is_told_with_what_ran_instead(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        made = await call(agent, "keep", text="milk")
        [card] = await waiting(nod)
        await press(nod, "approve", arguments=card["tool_arguments"] | {"text": "tea"})
        done = await look(agent, made)
        assert done["end"] == "succeeded"
        assert done["text"].startswith("ben changed text from milk to tea.")
        assert done["arguments"]["text"] == "tea"


async def test_a_call_waits_as_long_as_it_is_told(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        made = await call(agent, "keep", wait=0.05, text="milk")
        assert made["end"] == "waiting"
        assert made["waits_for"] == "ana, any approver or any admin"


async def test_calls_are_bounded_by_the_minute_and_cards_by_their_number(serve: Serve):
    settings = SETTINGS | {"NOD_MAX_AGENT_CALLS": 5, "NOD_MAX_OPEN_PER_PERSON": 6}
    async with serve(**settings) as nod, agent_of(nod) as agent, agent_of(nod, "other") as other:
        for number in range(3):
            await call(agent, "keep", text=str(number))
        full = await call(agent, "keep", status=429, text="more")
        assert "wait for a decision already" in full["error"]
        assert (await call(agent, "keep", status=200, text="0"))["joined"]
        often = await call(agent, "read", status=429)
        assert "At most 5 calls a minute" in often["error"]
        await call(other, "read")  # another token has its own
        nod.clock.forward(timedelta(minutes=2))
        await call(agent, "read")
        assert (await nod.client.post("/api/approvals", json={"summary": "x"})).status_code == 201


async def test_bad_input_gets_words_and_no_card(serve: Serve):
    async with serve(**SETTINGS) as nod, agent_of(nod) as agent:
        for given, status in (
            ({"text": 3}, 422), ({}, 422), ({"text": "a", "lamp": "x"}, 422), ({"text": "a" * 300_000}, 413),
        ):  # fmt: skip
            assert (await call(agent, "keep", status=status, **given))["error"]
        halved = b'{"arguments": {"text": "\\ud800"}}'
        for content in (halved, b'{"arguments": []}', b'{"arguments": {}, "lamp": 1}'):
            answer = await agent.post(
                "/api/tools/keep/calls", content=content, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == 422
        assert (await agent.post("/api/tools/keep/calls", content=b"x" * 10_000_000)).status_code == 413
        assert await waiting(nod) == []

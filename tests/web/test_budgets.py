"""Budgets: people are warned at 80 %, then the model is not asked, and an admin may extend it."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from bot.domain.model import Finished, StopReason, Text
from tests.web.conftest import ANA, BEN, CHIEF, TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask

ADMIN: dict[str, Any] = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",)}
PRICED: dict[str, Any] = {"NOD_MODEL_PRICE": (0, 1_000_000)}  # 1 USD for each token of an answer


def costing(amount: int, text: str = "Well.") -> list[Any]:
    return [Text(text), Finished(StopReason.FINISHED, completion_tokens=amount)]


async def command(client: httpx.AsyncClient, text: str) -> str:
    found = (await client.post("/api/commands", json={"name": "approvals", "text": text})).json()
    return str(found["text"] if "text" in found else found["error"])


async def notices(nod: Served, ident: str) -> list[str]:
    """What Nod itself told in a conversation."""
    await nod.idle()
    shown = (await nod.client.get(f"/api/conversations/{ident}/messages")).json()
    return [each["text"] for each in shown["messages"] if each["role"] == "notice"]


async def test_a_budget_warns_then_stops_the_model_and_an_admin_extends_it_across_a_restart(serve: Serve):
    model = ScriptedModel(costing(5), costing(4))
    async with serve(model=model, token=ANA, **PRICED, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        assert await command(chief, "budget 10 USD a month for http:ana") == (
            "Set: rule 1: budget 10 USD a month for http:ana."
        )
        await nod.chat("one")
        begun, *_ = await nod.chat("two")
        assert await notices(nod, begun["conversation_id"]) == [
            "90% of a budget is used: 9 USD of 10 USD a month for ana."
        ]
        model.answer(costing(2))
        await nod.chat("three")
        asked = len(model.seen)
        told = (await nod.chat("four"))[-1]
        assert "The budget is used up (11 USD of 10 USD a month for ana)." in str(told)
        assert "/approvals budget extend 1" in str(told)
        assert len(model.seen) == asked
        async with nod.caller(BEN) as ben:
            assert "Understood." in str(await nod.chat("hello", ben))
        spent = (await nod.client.get("/api/usage")).json()["budgets"]
        assert [(each["rule"], each["spent"], each["limit"]) for each in spent] == [(1, 11, 10)]
    async with serve(model=model, token=ANA, **PRICED, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        assert "used up" in str(await nod.chat("still?"))
        assert "admin" in await command(nod.client, "budget extend 1 5 USD")
        assert (await command(chief, "budget extend 1 5 EUR")).startswith(
            "Prices are in USD, so a budget is, too."
        )
        extended = await command(chief, "budget extend 1 5 USD")
        assert extended.startswith("Extended: rule 2: budget 10 USD a month, and 5 USD more from ")
        assert "Understood." in str(await nod.chat("now?"))
        assert "11 USD of 10 USD a month" in await command(chief, "budget")
        nod.clock.forward(timedelta(days=31))
        assert "0 USD of 10 USD a month" in await command(chief, "budget")


async def test_an_approved_change_is_done_though_the_budget_is_used_up(serve: Serve):
    call = ask(("keep", {"text": "milk"}))
    call[-1] = Finished(StopReason.FINISHED, call[-1].calls, completion_tokens=10)  # type: ignore[union-attr]
    model = ScriptedModel(call)
    async with serve(model=model, token=ANA, **PRICED, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        await command(chief, "budget 3 USD a day")
        [open_] = await nod.proposed("keep milk")
        assert (await nod.press(open_, "approve")).status_code == httpx.codes.OK
        done = (await nod.client.get(f"/api/proposals/{open_['id']}", params={"wait": 30})).json()
        assert done["proposal"]["state"] == "succeeded"
        [said] = await notices(nod, open_["conversation_id"])
        assert said.startswith("The budget is used up (10 USD of 3 USD a day).")
        assert len(model.seen) == 1


async def test_one_request_has_its_own_budget(serve: Serve):
    async def steps(number: int) -> ScriptedModel:
        answers = [ask(("read", {})) for _ in range(number)]
        for each in answers:
            each[-1] = Finished(StopReason.FINISHED, each[-1].calls, completion_tokens=2)  # type: ignore[union-attr]
        return ScriptedModel(*answers)

    model = await steps(5)
    async with serve(model=model, token=ANA, **PRICED, **ADMIN) as nod, nod.caller(CHIEF) as chief:
        assert "Set: rule 1: budget 4 USD a turn." in await command(chief, "budget 4 USD a turn")
        assert "The budget for one request is used up (4 USD of 4 USD a turn)." in str(await nod.chat("look"))
        assert len(model.seen) == 2
        assert "used up" in str(await nod.chat("continue"))
        assert len(model.seen) == 4


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("20 EUR a month", "Prices are in USD"),
        ("0 USD a month", "above 0"),
        ("-1 USD a month", "is not an amount"),
        ("nan USD a month", "is not an amount"),
        ("20 USD a year", "Write it as 20 EUR a month"),
        ("20 USD a month by http:ana", "has no by"),
        ("20 USD a month for http:ana in http:ben", "one person or place"),
        ("extend 7", "There is no such budget"),
    ],
)
async def test_what_is_no_budget_is_refused_in_words(serve: Serve, words: str, why: str):
    async with serve(token=CHIEF, **ADMIN) as nod:
        assert why in await command(nod.client, f"budget {words}")


async def test_a_budget_without_a_price_says_that_nothing_counts_and_is_set_over_the_api(serve: Serve):
    async with serve(token=CHIEF, **ADMIN) as nod:
        assert "scripted model has no price" in await command(nod.client, "budget 20 USD a month")
        body = {"subject": "budget", "amount": 2.5, "currency": "USD", "per": "week", "place": "slack:T1/C2"}
        assert (
            (await nod.client.post("/api/rules", json=body))
            .json()["text"]
            .startswith("Set: rule 2: budget 2.50 USD a week for slack:T1/C2.")
        )

"""Which model answers whom: by rule, and in place of one that fails."""

from datetime import timedelta

import pytest

from bot.domain.chat import Address
from bot.domain.named_models import NamedModel
from bot.domain.prices import Price, Prices
from bot.errors import ModelCut, ModelError
from tests.kit import ADA, ANA, BEN, ROOM, MakeNod, Nod, breaks, call, says
from tests.kit.model import ScriptedModel

NAMED = (
    NamedModel("scripted", "gpt", fallback="spare", images=True),
    NamedModel("spare", "llama", "https://spare.example/v1"),
    NamedModel("private", "qwen", "http://10.0.0.1/v1", window=8_000),
)
PRICES = Prices("EUR", {"scripted": Price(1, 1, 1), "spare": Price(1000, 1000, 1000)})
TOLD = (
    "scripted gives no answers now, so spare at spare.example answers in its place: "
    "what is said here goes there."
)


class Away(ModelError):
    is_transient = other_model_may_answer = True


@pytest.fixture
def nod(make_nod: MakeNod) -> Nod:
    others = (ScriptedModel("spare"), ScriptedModel("private"))
    made = make_nod(others=others, named=NAMED, admins=(ADA,), prices=PRICES)
    made.others[0].rule = lambda _: says("Spare here.")
    made.others[1].rule = lambda _: says("Private here.")
    return made


async def answers(nod: Nod, **who) -> str:
    await nod.say("hello", **who)
    await nod.idle()
    return [line for line in nod.chat.shown.splitlines() if line != TOLD][-1]


async def rule(nod: Nod, text: str) -> str:
    return (await nod.command(f"/approvals {text}", by=ADA)).text


async def test_a_rule_says_which_model_answers_in_a_place_and_that_of_a_person_comes_first(nod: Nod):
    assert await answers(nod) == "OK."
    assert await rule(nod, f"model private for {ROOM}") == f"Set: rule 1: model private for {ROOM}."
    assert await answers(nod) == "Private here."
    assert await answers(nod, at=Address("chat", "elsewhere")) == "OK."
    assert (await rule(nod, f"model spare for {BEN}")).startswith("Set: rule 2: model spare for ")
    assert await answers(nod, by=BEN) == "Spare here."
    assert await answers(nod, by=ANA) == "Private here."
    said = await rule(nod, "model")
    assert said.startswith(
        "There are scripted, spare, private. Where no rule says another, scripted answers.\n"
    )
    assert await rule(nod, "drop 1") == f"Dropped: rule 1: model private for {ROOM}."
    assert await answers(nod) == "OK."


async def test_only_a_model_that_is_set_up_can_be_chosen_and_only_by_an_admin(nod: Nod):
    assert "'gpt-9' is not a model here" in await rule(nod, "model gpt-9 for here")
    assert "'spare' is not a model here, or there is text after its name" in await rule(
        nod, "model spare slack:T1/C1"
    )
    refused = await nod.command("/approvals model spare", by=ANA)
    assert "admin" in refused.text
    assert await answers(nod) == "OK."


async def test_where_the_chosen_model_is_gone_no_other_company_gets_the_words(make_nod: MakeNod, nod: Nod):
    await rule(nod, f"model private for {ROOM}")
    nod.others = ()
    await nod.restart()
    said = await answers(nod)
    assert said.startswith("An admin chose the model private here (rule 1), and it is not set up.")
    assert nod.model.transcripts == []


async def test_one_that_is_down_is_stood_in_for_and_people_are_told_once(nod: Nod):
    nod.model.will(breaks(Away("The model's server can't be reached."), after="Half an"))
    assert await answers(nod) == "Spare here."
    assert nod.chat.shown.count(TOLD) == 1
    assert len(nod.model.transcripts) == 1
    assert await answers(nod) == "Spare here."  # it is left alone for a minute
    assert len(nod.model.transcripts) == 1
    nod.clock.forward(timedelta(minutes=2))
    assert await answers(nod) == "OK."
    nod.model.will(*[breaks(ModelCut()) for _ in range(3)])
    assert await answers(nod) == "Spare here."
    assert nod.chat.shown.count(TOLD) == 1
    turns = await nod.database.read(lambda session: session.connection().exec_driver_sql(
        "SELECT model, cost FROM turn ORDER BY id").all())  # fmt: skip
    assert [(model, round(cost, 6)) for model, cost in turns] == [
        ("spare", 0.015), ("spare", 0.015), ("scripted", 0.000015), ("spare", 0.015),
    ]  # fmt: skip


async def test_nothing_but_the_named_one_stands_in_and_not_for_every_fault(nod: Nod):
    nod.model.will(breaks(ModelError("Please check OPENAI_API_KEY.")))
    assert await answers(nod) == "Please check OPENAI_API_KEY."
    nod.model.will(breaks(Away("Down.")))
    nod.others[0].will(breaks(Away("Down, too.")))
    assert (await answers(nod)).startswith("Down, too.")
    await rule(nod, f"model private for {ROOM}")
    nod.others[1].will(breaks(Away("Down here.")))
    assert (await answers(nod)).startswith("Down here.")


async def test_a_call_of_the_one_that_stands_in_passes_the_same_gate(nod: Nod):
    nod.model.will(breaks(Away("Down.")))
    nod.others[0].will(says("I will.", call("paint", lamp="desk", color="red")))
    await nod.say("paint it")
    await nod.idle()
    [proposal] = await nod.proposals()
    assert nod.world.runs_of(proposal) == []


async def test_the_history_follows_the_window_of_the_model(nod: Nod):
    for each in ("one", "two", "three"):
        await nod.say(each * 4000)
        await nod.idle()
    whole = sum(len(str(entry)) for entry in nod.model.transcripts[-1])
    await rule(nod, f"model private for {ROOM}")
    await nod.say("and now?")
    await nod.idle()
    assert whole > 40_000
    assert sum(len(str(entry)) for entry in nod.others[1].transcripts[-1]) < 8_000 * 3

"""A long conversation over a server whose window is small: it goes to its end and forgets no order."""

import json
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from statistics import median

import pytest

from bot.agent.openai.model import OpenAIModel
from bot.domain.proposals import State
from tests.fakes.openai_server import Json, OpenAIServer, Reply, ask, fail, say
from tests.kit import MakeNod, Nod, ScriptedModel

pytestmark = [pytest.mark.platform, pytest.mark.slow]

WINDOW = 8_000  # tokens
TURNS = 200
ORDER = "Paint every lamp red, and never the one by the door."
LONG = " and this is what I mean by it" * 20


def tokens(body: Json) -> int:
    """Roughly as OpenAI counts English and JSON."""
    return len(json.dumps(body, ensure_ascii=False)) // 4


class Small:
    """A server that refuses each request beyond its window; its answers read, change or just speak."""

    def __init__(self) -> None:
        self.taken: list[Json] = []
        self.refused = 0

    def __call__(self, body: Json) -> Reply:
        if tokens(body) > WINDOW:
            self.refused += 1
            words = f"This model's maximum context length is {WINDOW} tokens. Reduce the length."
            return fail(400, words, code="context_length_exceeded")
        self.taken.append(body)
        said = [each for each in body["messages"] if each["role"] == "user"][-1]["content"]
        if body["messages"][-1]["role"] != "user":
            return say("That is done." + LONG)
        if said.startswith("look"):
            return ask(("look", {"lamp": "desk"}), ("look", {"lamp": "door"}), text="I will look.")
        if said.startswith("paint"):
            return ask(("paint", {"lamp": "desk", "color": "red", "approval_reason": LONG}))
        return say("I see." + LONG)


@pytest.fixture
def small() -> Small:
    return Small()


@pytest.fixture
async def nod(make_nod: MakeNod, small: Small) -> AsyncIterator[Nod]:
    nod = make_nod()
    async with OpenAIServer(script=small) as server:
        nod.model = OpenAIModel(
            model="gpt-test",
            api_key=server.key,
            base_url=server.url,
            strict=True,
            stream_options=True,
            parallel_tool_calls=True,
            max_retries=0,
        )
        nod.rebuild()
        yield nod
        await nod.model.close()
    nod.model = ScriptedModel()


def sayings(bodies: Sequence[Json]) -> list[str]:
    return [json.dumps(each["messages"], ensure_ascii=False) for each in bodies]


def common(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


async def test_200_turns_within_a_window_of_8000_tokens(nod: Nod, small: Small) -> None:
    nod.world.lamps["door"] = "white " * 1000
    await nod.say(ORDER)
    await nod.idle()
    for number in range(1, TURNS):
        what = ("look", "paint", "and")[number % 3]
        before = len(small.taken)
        await nod.say(f"{what} number {number}{LONG}")
        await nod.idle()
        assert len(small.taken) > before, nod.chat.shown[-500:]
        for proposal in [p for p in await nod.proposals() if p.state is State.PROPOSED]:
            await nod.approve(proposal)
        assert f"number {number}{LONG}" in sayings(small.taken[-1:])[0]
    assert "fit the model" not in nod.chat.shown
    for text in sayings(small.taken):
        assert ORDER in text
    assert max(map(tokens, small.taken)) <= WINDOW
    assert small.refused <= 5
    alike = [common(one, other) / len(one) for one, other in pairwise(sayings(small.taken))]
    assert median(alike) > 0.99
    assert sum(each > 0.9 for each in alike) > len(alike) * 0.6  # it is shortened in steps, not at each turn

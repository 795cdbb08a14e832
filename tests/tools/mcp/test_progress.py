"""How far a running call is, in its server's words: on the card of a write, in the turn of a read."""

import pytest

from bot.domain.events import ToolProgress
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from tests.kit import call, says
from tests.tools.mcp.conftest import until

pytestmark = pytest.mark.slow

REWIRE = call("lamps_rewire", lamp="desk", approval_reason="it buzzes")


async def test_a_card_tells_how_far_its_call_is_and_then_shows_the_result_as_fields(
    connect, http, make_nod, folder
):
    nod = make_nod(connect(http()))
    [proposal] = await nod.asked(REWIRE)
    nod.model.will(says("Rewired."))
    await nod.press(Verb.APPROVE, proposal)
    await until(lambda: "Running (25%, old wires out)…" in nod.chat.card_of(proposal).outcome)
    running = await nod.now(proposal)
    assert (running.state, running.version) == (State.EXECUTING, nod.chat.card_of(proposal).version)
    (folder / "wires").touch()
    await nod.idle()
    card = nod.chat.card_of(proposal)
    assert card.result == "Lamp: desk\nWires: 4\nEarthed: yes\nFuse: none"
    assert card.result_fields == (("Lamp", "desk"), ("Wires", "4"), ("Earthed", "yes"), ("Fuse", "none"))
    assert "Running" not in card.outcome
    assert (await nod.now(proposal)).progress is None
    assert '"wires": 4' in nod.model.results[-1]


async def test_the_turn_tells_how_far_a_read_is(connect, http, make_nod, folder):
    nod = make_nod(connect(http()))
    nod.model.will(says("", call("lamps_measure", lamp="desk")), says("It is tall."))
    await nod.say("measure it")

    def told() -> list[str]:
        return [e.words for s in nod.chat.streams for e in s.events if isinstance(e, ToolProgress)]

    await until(lambda: told() == ["holding a ruler to desk"])
    (folder / "measured").touch()
    await nod.idle()
    assert nod.model.results == ["desk is tall"]
    assert nod.chat.shown.endswith("It is tall.")

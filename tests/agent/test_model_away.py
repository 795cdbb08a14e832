"""The model's server is away for a while: people are told once, and the turn continues by itself."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.errors import ModelError
from tests.kit import Nod, breaks, call, says
from tests.kit.model import Scripted

pytestmark = pytest.mark.slow

RED = {"lamp": "desk", "color": "red"}
AWAY = "The model's server can't be reached."
TOLD = f"{AWAY} I'll continue by myself when it answers again."
SOON = timedelta(seconds=10)


class Away(ModelError):
    is_transient = True


def away(times: int = 1) -> Sequence[Scripted]:
    return [breaks(Away(AWAY)) for _ in range(times)]


async def shown(nod: Nod) -> list[str]:
    return [text for text in nod.chat.shown.splitlines() if text]


async def test_after_an_approval_the_turn_continues_by_itself_once_the_model_answers(nod: Nod) -> None:
    [proposal] = await nod.asked(call("paint", RED))
    nod.model.will(*away())
    await nod.approve(proposal)
    assert (await shown(nod))[-1] == TOLD
    await nod.tick(timedelta(seconds=1))
    assert len(nod.model.transcripts) == 2
    nod.model.will(says("It is red now."))
    await nod.tick(SOON)
    assert (await shown(nod))[-2:] == [TOLD, "It is red now."]
    assert "red" in nod.model.results[-1]
    for _ in range(3):
        await nod.tick(timedelta(hours=1))
    assert len(nod.model.transcripts) == 3
    assert len(nod.world.runs_of(proposal)) == 1


async def test_a_turn_that_waits_for_the_model_survives_a_restart_and_a_crash(nod: Nod) -> None:
    nod.model.will(*away())
    await nod.say("hello?")
    await nod.idle()
    await nod.restart()
    await nod.crash()
    assert len(nod.model.transcripts) == 1
    nod.model.will(says("Here I am."))
    await nod.tick(SOON)
    assert await shown(nod) == [TOLD, "Here I am."]


async def test_people_are_told_once_however_often_it_is_tried_in_vain(nod: Nod) -> None:
    nod.model.will(*away(4), says("At last."))
    await nod.say("hello?")
    await nod.idle()
    for _ in range(4):
        await nod.tick(timedelta(minutes=11))
    assert await shown(nod) == [TOLD, "At last."]
    assert len(nod.model.transcripts) == 5


async def test_it_is_tried_less_and_less_often_and_after_a_day_people_know(nod: Nod) -> None:
    nod.model.rule = lambda _: away()[0]
    await nod.say("hello?")
    await nod.idle()
    tries = []
    for _ in range(3):
        before = len(nod.model.transcripts)
        for _ in range(30):
            await nod.tick(timedelta(minutes=2))
        tries.append(len(nod.model.transcripts) - before)
    assert tries[0] > tries[1] == tries[2] == 6
    await nod.tick(timedelta(days=1))
    last = f"{AWAY} I've tried for a day. Send “continue” once it answers again."
    assert await shown(nod) == [TOLD, last]
    asked = len(nod.model.transcripts)
    await nod.tick(timedelta(days=2))
    assert len(nod.model.transcripts) == asked
    nod.model.rule = lambda _: says("Back.")
    await nod.say("continue")
    await nod.idle()
    assert (await shown(nod))[-1] == "Back."


async def test_a_message_in_the_meantime_is_answered_and_nothing_is_tried_after_it(nod: Nod) -> None:
    nod.model.will(*away(), says("Both."))
    await nod.say("one")
    await nod.idle()
    await nod.say("two")
    await nod.idle()
    await nod.tick(timedelta(hours=1))
    assert await shown(nod) == [TOLD, "Both."]
    assert len(nod.model.transcripts) == 2


async def test_who_stops_it_is_not_surprised_later(nod: Nod) -> None:
    nod.model.will(*away())
    await nod.say("hello?")
    await nod.idle()
    assert (await nod.command("/nod stop")).text == "Stopped."
    await nod.tick(timedelta(hours=1))
    assert len(nod.model.transcripts) == 1


async def test_a_clock_that_is_set_back_does_not_hold_it_up(nod: Nod) -> None:
    nod.model.will(*away(), says("Here."))
    await nod.say("hello?")
    await nod.idle()
    await nod.tick(timedelta(days=-3))
    assert await shown(nod) == [TOLD, "Here."]


async def test_what_does_not_pass_by_itself_is_not_tried_again(nod: Nod) -> None:
    nod.model.will(breaks(ModelError("Please check OPENAI_API_KEY.")))
    await nod.say("hello?")
    await nod.idle()
    await nod.tick(timedelta(hours=1))
    assert await shown(nod) == ["Please check OPENAI_API_KEY."]
    assert len(nod.model.transcripts) == 1


async def test_a_second_outage_in_one_piece_of_work_is_told_again(nod: Nod) -> None:
    nod.model.will(*away(), says("I will.", call("paint", RED)))
    await nod.say("red, please")
    await nod.idle()
    await nod.tick(SOON)
    [proposal] = await nod.proposals()
    nod.model.will(*away(), says("Done."))
    await nod.press(Verb.APPROVE, proposal)
    await nod.idle()
    assert (await nod.now(proposal)).state is State.SUCCEEDED
    await nod.tick(SOON)
    assert [line for line in await shown(nod) if line in (TOLD, "Done.")] == [TOLD, TOLD, "Done."]


@pytest.mark.parametrize("fault", [Away(AWAY), ModelError("The key is not accepted.")])
async def test_the_log_has_the_first_failure_and_the_end_of_them(nod: Nod, fault: ModelError) -> None:
    nod.model.rule = lambda _: breaks(fault)
    with capture_logs() as logs:
        for word in "abc":
            await nod.say(word)
            await nod.idle()
        nod.model.rule = lambda _: says("Yes.")
        for word in "de":
            await nod.say(word)
            await nod.idle()
    told = [line for line in logs if "language model" in line["event"]]
    assert [(line["log_level"], line.get("why")) for line in told] == [("error", str(fault)), ("info", None)]

"""How much one answer, one conversation and one person may ask for, and what is said beyond that."""

from datetime import timedelta

import pytest

from bot.agent.loop import TurnLimits
from bot.approvals.requests import RequestGate
from bot.domain.chat import Address, Answer, Request
from bot.domain.events import ToolFinished, ToolStarted
from bot.domain.verbs import Verb
from bot.domain.work_limits import CALLS_PER_ANSWER, Bounds
from bot.errors import TooManyCalls
from tests.kit import ANA, BEN, Hold, MakeNod, Nod, call, says

RED = {"lamp": "desk", "color": "red"}


@pytest.mark.slow
async def test_an_answer_opens_at_most_a_hundred_proposals_and_is_told_to_ask_again_for_the_rest(
    nod: Nod,
) -> None:
    opened = await nod.asked(*(call("pay", amount=n) for n in range(CALLS_PER_ANSWER + 5)))
    assert len(opened) == CALLS_PER_ANSWER
    await nod.press(Verb.APPROVE_ALL, opened[0])
    await nod.idle()
    beyond = [r for r in nod.model.results if "Too many calls" in r]
    assert len(beyond) == 5
    assert "Make the others in your next answers." in beyond[0]


async def test_an_answer_makes_at_most_a_hundred_calls(nod: Nod) -> None:
    nod.model.will(says("", *(call("look", lamp="desk") for _ in range(500))), says("Done."))
    await nod.say()
    await nod.idle()
    assert len(nod.world.reads) == CALLS_PER_ANSWER
    assert sum("Too many calls" in r for r in nod.model.results) == 500 - CALLS_PER_ANSWER
    started = [e for e in nod.chat.streams[0].events if isinstance(e, ToolStarted)]
    assert len(started) == CALLS_PER_ANSWER


async def test_a_conversation_and_a_person_have_so_many_open_proposals(make_nod: MakeNod) -> None:
    nod = make_nod(bounds=Bounds(open_in_conversation=2, open_by_person=3))
    assert len(await nod.asked(*(call("paint", RED) for _ in range(3)))) == 2
    elsewhere = Address("chat", "hall")
    assert len(await nod.asked(call("paint", RED), call("paint", RED), at=elsewhere)) == 1
    nod.model.will(says("I will.", call("paint", RED)), says("It is full."))
    await nod.say(at=Address("chat", "attic"))
    await nod.idle()
    [told] = nod.model.results
    assert told == (
        "ERROR: Too much is waiting: a person may have 3 open proposals. "
        "Tell them that some must be decided first."
    )
    [started] = [e for e in nod.chat.streams[-1].events if isinstance(e, ToolStarted)]
    [finished] = [e for e in nod.chat.streams[-1].events if isinstance(e, ToolFinished)]
    assert (started.summary, finished.ok) == ("Paint lamp desk red", False)
    with pytest.raises(TooManyCalls) as refused:
        await RequestGate(nod.gate).open(Request(ANA, "paint", RED, Address("chat", "attic"), "Look."))
    assert refused.value.message == (
        "3 of your proposals wait for a decision already. Try again once some are decided."
    )
    assert len(await nod.asked(call("paint", RED), by=BEN, at=Address("chat", "ben"))) == 1


async def test_who_sends_more_than_the_bound_is_asked_to_wait_and_heard_an_hour_later(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(bounds=Bounds(messages=2))
    await nod.say("one", event="e1")
    await nod.say("two")
    refused = await nod.say("three")
    assert (refused.answer, refused.text) == (
        Answer.LATER,
        "You sent 2 messages within an hour. Please wait, then send it again.",
    )
    assert (await nod.say("one", event="e1")).answer is Answer.DUPLICATE
    assert (await nod.say("mine", by=BEN)).answer is Answer.ACCEPTED
    nod.clock.forward(timedelta(hours=1, seconds=1))
    assert (await nod.say("three")).answer is Answer.ACCEPTED
    await nod.idle()
    assert [text for text in await nod.said() if text in ("one", "two", "three", "mine")] == [
        "one",
        "two",
        "mine",
        "three",
    ]


async def test_a_person_starts_so_many_conversations_a_day(make_nod: MakeNod) -> None:
    nod = make_nod(bounds=Bounds(conversations=2))
    for room in ("a", "b"):
        assert (await nod.say(at=Address("chat", room))).answer is Answer.ACCEPTED
    refused = await nod.say(at=Address("chat", "c"))
    assert refused.answer is Answer.LATER
    assert refused.text.startswith("You started 2 conversations within a day.")
    assert (await nod.say(at=Address("chat", "a"))).answer is Answer.ACCEPTED
    await nod.idle()


async def test_messages_that_join_a_turn_do_not_use_up_its_steps(make_nod: MakeNod) -> None:
    nod = make_nod(limits=TurnLimits(model_calls=2))
    for _ in range(12):
        hold = Hold()
        nod.model.will(says("Hm.", hold=hold))
        await nod.say("and this")
        await hold.reached.wait()
        await nod.say("one more")
        hold.go.set()
    await nod.idle()
    assert "steps" not in nod.chat.shown


async def test_a_turn_that_no_one_joins_still_has_an_end(make_nod: MakeNod) -> None:
    nod = make_nod(limits=TurnLimits(model_calls=3))
    nod.model.rule = lambda _: says("Looking.", call("look", lamp="desk"))
    await nod.say()
    await nod.idle()
    assert len(nod.model.transcripts) == 3
    assert "steps" in nod.chat.shown


@pytest.mark.parametrize(
    ("refused", "words"),
    [(call("fly"), "fly"), (call("paint", "{broken"), "JSON"), (call("paint", lamp="desk"), "color")],
)
async def test_a_call_that_could_not_be_proposed_is_shown_with_the_reason(nod: Nod, refused, words) -> None:
    nod.model.will(says("", refused), says("Sorry."))
    await nod.say(by=ANA)
    await nod.idle()
    events = nod.chat.streams[0].events
    [started] = [e for e in events if isinstance(e, ToolStarted)]
    [finished] = [e for e in events if isinstance(e, ToolFinished)]
    assert (started.call_id, finished.ok) == (refused.id, False)
    assert words in finished.result


async def test_what_two_answers_of_one_turn_say_are_two_paragraphs(nod: Nod) -> None:
    nod.model.will(says("Let me look.", call("look", lamp="desk")), says("It is white."))
    await nod.say()
    await nod.idle()
    assert nod.chat.streams[0].text == "Let me look.\n\nIt is white."

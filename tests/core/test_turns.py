"""A turn: from a message until the agent is silent or must wait."""

import pytest
from sqlmodel import Session, select

from bot.agent.loop import Limits
from bot.agent.model import Stop
from bot.domain.chat import Address, Answer
from bot.domain.events import (
    Ending,
    ProposalOpened,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
)
from bot.domain.jobs import Job, Work
from bot.domain.proposals import State
from bot.errors import ModelCut, ModelError
from bot.store.tables import TurnRow
from bot.tools.tool import FixedToolset, Tool
from tests.core.conftest import MakeNod
from tests.kit import ANA, BEN, Hold, Nod, breaks, call, says

RED = {"lamp": "desk", "color": "red"}


def _turns(session: Session) -> list[TurnRow]:
    return list(session.exec(select(TurnRow).order_by(TurnRow.id)))  # type: ignore[arg-type]


async def turns(nod: Nod) -> list[TurnRow]:
    return await nod.database.read(_turns)


async def test_a_message_is_answered_in_the_order_it_streams(nod: Nod) -> None:
    nod.model.will(says("Hello there."))
    reply = await nod.say("hi")
    await nod.idle()
    assert reply.answer is Answer.ACCEPTED
    [stream] = nod.chat.streams
    assert stream.text == "Hello there."
    assert stream.events[-1] == TurnEnded(Ending.DONE, reply.message_id or 0, "Hello there.")
    assert await nod.said() == ["hi", "Hello there."]


async def test_a_turn_tells_of_its_reads_and_proposals_as_they_happen(nod: Nod) -> None:
    nod.model.will(says("Let me look.", call("look", lamp="desk")), says("Drab.", call("paint", RED)))
    await nod.say()
    await nod.idle()
    kinds: list[type[TurnEvent]] = []
    for event in nod.chat.streams[0].events:
        if not kinds or kinds[-1] is not type(event):
            kinds.append(type(event))
    assert kinds == [TextDelta, ToolStarted, ToolFinished, TextDelta, ProposalOpened, TurnEnded]


async def test_what_a_turn_cost_is_kept(nod: Nod) -> None:
    await nod.asked(call("look", lamp="desk"))
    [turn] = await turns(nod)
    assert (turn.state, turn.model_calls, turn.prompt_tokens, turn.completion_tokens) == ("done", 2, 20, 10)


async def test_a_parked_turn_holds_no_task_and_no_wanted_row(nod: Nod) -> None:
    await nod.asked(call("paint", RED))
    assert nod.dispatcher._tasks == {}
    [turn] = await turns(nod)
    assert turn.state == "waiting"


async def test_the_turn_goes_on_only_when_every_call_of_the_answer_has_ended(nod: Nod) -> None:
    first, second = await nod.asked(call("paint", RED), call("pay", amount=5))
    await nod.approve(first)
    assert len(nod.model.transcripts) == 1
    await nod.approve(second)
    assert len(nod.model.transcripts) == 2
    assert [r.split(":")[0] for r in nod.model.results] == ["SUCCEEDED", "SUCCEEDED"]


async def test_a_second_delivery_of_an_event_is_not_a_second_message(nod: Nod) -> None:
    await nod.say("hi", event="e1")
    await nod.idle()
    assert (await nod.say("hi", event="e1")).answer is Answer.DUPLICATE
    await nod.idle()
    assert await nod.said() == ["hi", "OK."]


@pytest.mark.parametrize("words", ["", "  \n ", "x" * 32_001], ids=["empty", "blank", "too long"])
async def test_a_message_that_cannot_be_read_is_refused_in_words_and_not_kept(nod: Nod, words: str) -> None:
    reply = await nod.say(words)
    assert reply.answer is Answer.INVALID
    assert reply.text
    assert nod.model.transcripts == []


async def test_text_that_no_database_holds_is_cleaned_on_the_way_in_and_out(nod: Nod) -> None:
    nod.model.will(says("a\ud800b\x00c"))
    await nod.say("d\udfffe\x00f")
    await nod.idle()
    assert await nod.said() == ["d?ef", "a?bc"]


async def test_a_message_that_comes_while_a_turn_runs_joins_it(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("One moment.", hold=hold), says("Both, then."))
    await nod.say("first")
    await hold.reached.wait()
    await nod.say("second", by=BEN)
    hold.go.set()
    await nod.idle()
    assert nod.model.heard == ["first", "second"]
    assert await nod.said() == ["first", "One moment.", "second", "Both, then."]
    assert len(nod.chat.streams) == 1
    assert [turn.state for turn in await turns(nod)] == ["done"]


async def test_two_conversations_do_not_wait_for_each_other(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("Slow.", hold=hold))
    await nod.say("first")
    await hold.reached.wait()
    elsewhere = Address("chat", "elsewhere")
    other = await nod.say("second", at=elsewhere)
    await nod.dispatcher._tasks[Job(Work.TURN, other.conversation_id or "")]
    hold.go.set()
    await nod.idle()
    assert await nod.said(elsewhere) == ["second", "OK."]


async def test_a_person_stops_a_turn_and_the_conversation_goes_on_with_the_next_message(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("A long story.", hold=hold))
    await nod.say("tell me")
    await hold.reached.wait()
    reply = await nod.command("/nod stop")
    await nod.idle()
    assert reply.text == "Stopped."
    last = nod.chat.streams[0].events[-1]
    assert isinstance(last, TurnEnded)
    assert last.ending is Ending.STOPPED
    assert [turn.state for turn in await turns(nod)] == ["stopped"]
    await nod.tick()
    assert len(nod.model.transcripts) == 1
    await nod.say("never mind")
    await nod.idle()
    assert nod.model.heard == ["tell me", "never mind"]
    assert nod.chat.shown.endswith("OK.")


async def test_stopping_when_nothing_runs_says_so(nod: Nod) -> None:
    await nod.asked(call("paint", RED))
    assert (await nod.command("/stop")).text == "Nothing was running here."


async def test_an_answer_that_comes_after_the_stop_opens_no_proposal(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("", call("look", lamp="desk")), says("Red.", call("paint", RED)))
    nod.world.before["look"] = hold
    await nod.say()
    await hold.reached.wait()
    nod.valve.real = type(nod.dispatcher)()  # another process: this one's task cannot be interrupted
    await nod.command("/nod stop")
    hold.go.set()
    await nod.idle()
    assert await nod.proposals() == []
    assert await nod.said() == ["please"]


async def test_a_turn_may_ask_the_model_only_so_often_and_says_so(make_nod: MakeNod) -> None:
    nod = make_nod(limits=Limits(model_calls=3))
    nod.model.will(*(says("", call("look", lamp="desk")) for _ in range(5)))
    await nod.say("look")
    await nod.idle()
    assert len(nod.model.transcripts) == 3
    assert "more steps than one turn may have" in nod.chat.shown
    await nod.say("go on")
    await nod.idle()
    assert len(nod.model.transcripts) == 6


async def test_a_servers_fault_is_told_in_plain_words_and_the_conversation_goes_on(nod: Nod) -> None:
    nod.model.will(breaks(ModelError("The language model is busy. Try again in a minute.")))
    await nod.say("hi")
    await nod.idle()
    assert nod.chat.shown == "The language model is busy. Try again in a minute."
    [turn] = await turns(nod)
    assert (turn.state, turn.error) == ("failed", "The language model is busy. Try again in a minute.")
    await nod.say("again")
    await nod.idle()
    assert nod.model.heard == ["hi", "again"]
    assert nod.chat.shown.endswith("OK.")


async def test_a_message_that_came_while_a_turn_failed_is_answered(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(breaks(ModelError("Busy."), hold=hold), says("Yes?"))
    await nod.say("first")
    await hold.reached.wait()
    await nod.say("second")
    hold.go.set()
    await nod.idle()
    assert nod.chat.shown == "Busy.\nYes?"
    assert [turn.state for turn in await turns(nod)] == ["failed", "done"]


async def test_what_breaks_unforeseen_is_told_without_its_inside(nod: Nod) -> None:
    nod.model.will(breaks(KeyError("secret detail")))
    await nod.say()
    await nod.idle()
    assert nod.chat.shown == "Something broke on my side, and the log says what. Please try again."
    await nod.say("again")
    await nod.idle()
    assert nod.chat.shown.endswith("OK.")


async def test_tools_that_cannot_be_listed_fail_the_turn_in_words(nod: Nod) -> None:
    twice: tuple[Tool, ...] = (nod.toolset.fixed[0], nod.toolset.fixed[0])
    good, nod.toolset = nod.toolset, FixedToolset("twice", twice)
    await nod.close()
    nod._build()
    await nod.say()
    await nod.idle()
    assert "Something broke on my side" in nod.chat.shown
    nod.toolset = good
    await nod.restart()
    assert [turn.state for turn in await turns(nod)] == ["failed"]


async def test_an_answer_that_breaks_off_is_asked_for_again_from_the_start(nod: Nod) -> None:
    nod.model.will(breaks(ModelCut(), after="Half an"), says("A whole answer."))
    await nod.say()
    await nod.idle()
    assert nod.chat.streams[0].text == "A whole answer."
    assert await nod.said() == ["please", "A whole answer."]


async def test_an_answer_that_breaks_off_three_times_is_told_in_words(nod: Nod) -> None:
    nod.model.will(*(breaks(ModelCut(), after="Half an") for _ in range(3)))
    await nod.say()
    await nod.idle()
    assert len(nod.model.transcripts) == 3
    assert nod.chat.shown.endswith("The language model's answer broke off. Please try again.")


@pytest.mark.parametrize(
    ("stop", "words"),
    [(Stop.LENGTH, "ran into its length limit"), (Stop.FILTERED, "withheld the rest")],
)
async def test_an_answer_that_was_cut_says_so_and_its_calls_are_not_used(
    nod: Nod, stop: Stop, words: str
) -> None:
    nod.model.will(says("I will paint", call("paint", RED), stop=stop))
    await nod.say()
    await nod.idle()
    assert words in nod.chat.shown
    assert await nod.proposals() == []
    assert [turn.state for turn in await turns(nod)] == ["done"]


async def test_two_calls_under_one_id_are_told_apart(nod: Nod) -> None:
    one = call("look", lamp="desk")
    nod.world.lamps["door"] = "black"
    await nod.asked(one, type(one)(one.id, "look", '{"lamp": "door"}'))
    assert nod.model.results == ["white", "black"]
    assert len({c.id for c in nod.model.calls}) == 2


async def test_the_requester_is_who_wrote_last(nod: Nod) -> None:
    await nod.say("hello", by=BEN, private=False)
    await nod.idle()
    [p] = await nod.asked(call("paint", RED), by=ANA)
    assert (p.requester, p.state) == (ANA, State.PROPOSED)

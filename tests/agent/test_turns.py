"""A turn: from a message until the agent is silent or must wait."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlmodel import Session, col, select
from structlog.contextvars import get_contextvars

from bot.agent.loop import TurnLimits
from bot.domain.chat import Address, Answer, Command, act_on_choice
from bot.domain.events import (
    AnswerBegun,
    Ending,
    ProposalOpened,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
)
from bot.domain.jobs import Job, Work
from bot.domain.model import AssistantText, StopReason
from bot.domain.proposal_states import State
from bot.errors import ModelCut, ModelError
from bot.store.tables.conversations import MessageRow, TurnRow
from bot.tools.tool import Tool
from bot.tools.toolset import FixedToolset
from tests.kit import ANA, BEN, ROOM, Hold, MakeNod, Nod, breaks, call, says

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
    asked = reply.message_id or 0
    assert stream.events[-1] == TurnEnded(Ending.DONE, asked, "Hello there.", message_id=asked + 1)
    assert await nod.said() == ["hi", "Hello there."]


async def test_a_turn_tells_of_its_reads_and_proposals_as_they_happen(nod: Nod) -> None:
    nod.model.will(says("Let me look.", call("look", lamp="desk")), says("Drab.", call("paint", RED)))
    await nod.say()
    await nod.idle()
    kinds: list[type[TurnEvent]] = []
    for event in nod.chat.streams[0].events:
        if not isinstance(event, AnswerBegun) and (not kinds or kinds[-1] is not type(event)):
            kinds.append(type(event))
    assert kinds == [TextDelta, ToolStarted, ToolFinished, TextDelta, ProposalOpened, TurnEnded]


async def test_what_a_turn_cost_is_kept(nod: Nod) -> None:
    await nod.asked(call("look", lamp="desk"))
    [turn] = await turns(nod)
    assert (turn.state, turn.model_calls, turn.prompt_tokens, turn.completion_tokens) == ("done", 2, 20, 10)


async def test_a_parked_turn_holds_no_task_and_no_wanted_row(nod: Nod) -> None:
    await nod.asked(call("paint", RED))
    assert nod.dispatcher.tasks == {}
    [turn] = await turns(nod)
    assert turn.state == "waiting"


async def test_the_turn_continues_only_when_every_call_of_the_answer_has_ended(nod: Nod) -> None:
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


class Listening(Hold):
    """Keeps what a line in the log would be about."""

    async def wait(self) -> None:
        self.about = get_contextvars()


async def test_what_is_logged_in_a_turn_and_in_a_tool_says_what_it_is_about(nod: Nod) -> None:
    nod.world.before |= {"look": (turn := Listening()), "paint": (run := Listening())}
    [p] = await nod.asked(call("paint", lamp="desk", color="red"))
    await nod.approve(p)
    await nod.asked(call("look", lamp="desk"))
    assert turn.about.pop("turn")
    assert turn.about == {"conversation": p.conversation_id}
    assert run.about == {"proposal": p.id}


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
    await nod.dispatcher.tasks[Job(Work.TURN, other.conversation_id or "")]
    hold.go.set()
    await nod.idle()
    assert await nod.said(elsewhere) == ["second", "OK."]


async def test_a_person_stops_a_turn_and_the_conversation_continues_with_the_next_message(nod: Nod) -> None:
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


async def test_a_stop_of_an_earlier_answer_stops_no_later_turn_and_says_nothing(nod: Nod) -> None:
    hold = Hold()
    earlier = nod.clock()
    nod.clock.forward(timedelta(minutes=1))
    nod.model.will(says("A long story.", hold=hold))
    await nod.say("tell me")
    await hold.reached.wait()
    late = Command(ANA, "stop", "", ROOM, begun_by=earlier)
    assert (await nod.assistant.handle(late)).text == ""
    assert (await nod.assistant.handle(replace(late, begun_by=nod.clock()))).text == "Stopped."
    await nod.idle()
    assert [turn.state for turn in await turns(nod)] == ["stopped"]


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
    nod = make_nod(limits=TurnLimits(model_calls=3))
    nod.model.will(*(says("", call("look", lamp="desk")) for _ in range(5)))
    await nod.say("look")
    await nod.idle()
    assert len(nod.model.transcripts) == 3
    assert "too many steps" in nod.chat.shown
    await nod.say("go on")
    await nod.idle()
    assert len(nod.model.transcripts) == 6


async def test_a_servers_fault_is_told_in_plain_words_and_the_conversation_continues(nod: Nod) -> None:
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


async def test_a_button_of_a_conversation_that_has_ended_starts_none(nod: Nod) -> None:
    nod.model.will(breaks(ModelError("Busy.")), says("There."))
    again = act_on_choice("Try again", "1", ANA, ROOM, private=True, names={})
    late = act_on_choice("Try again", "2", ANA, ROOM, private=True, names={})
    await nod.say("hi")
    await nod.idle()
    assert (await nod.assistant.handle(again)).answer is Answer.ACCEPTED
    await nod.idle()
    await nod.command("/nod new")
    assert (await nod.assistant.handle(again)).answer is Answer.DUPLICATE
    reply = await nod.assistant.handle(late)
    assert (reply.answer, reply.text) == (
        Answer.STALE,
        "This conversation has ended. Write what you need to start a new one.",
    )
    assert len(await turns(nod)) == 2


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
    assert (
        nod.chat.shown
        == "Something failed on my side. Send “continue” to try again. The log has the details."
    )
    await nod.say("again")
    await nod.idle()
    assert nod.chat.shown.endswith("OK.")


class Unlisted(FixedToolset):
    """A toolset that can't say which tools it has."""

    async def tools(self) -> Sequence[Tool]:
        raise RuntimeError("the shelf is locked")


async def test_tools_that_cannot_be_listed_fail_the_turn_in_words(nod: Nod) -> None:
    good, nod.toolset = nod.toolset, Unlisted("unlisted", ())
    await nod.close()
    nod.rebuild()
    await nod.say()
    await nod.idle()
    assert "Something failed on my side" in nod.chat.shown
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
    assert "The language model's answer was cut off. I'll continue by myself" in nod.chat.shown


@pytest.mark.parametrize("silence", ["", " \n\n"])
async def test_an_empty_answer_is_asked_for_again(nod: Nod, silence: str) -> None:
    nod.model.will(says(silence), says("Here I am."))
    await nod.say()
    await nod.idle()
    assert nod.chat.shown == "Here I am."
    assert await nod.said() == ["please", "Here I am."]


async def test_a_model_that_stays_empty_is_told_to_people_and_the_conversation_lives(nod: Nod) -> None:
    nod.model.will(*(says("") for _ in range(3)))
    await nod.say()
    await nod.idle()
    assert "empty answer" in nod.chat.shown
    nod.model.will(says("Back."))
    await nod.say("and now?")
    await nod.idle()
    assert nod.chat.shown.endswith("\nBack.")
    assert all(e.text.strip() or e.calls for e in nod.model.transcripts[-1] if isinstance(e, AssistantText))


async def test_an_empty_answer_of_an_older_release_is_not_sent_to_the_server(nod: Nod) -> None:
    await nod.say()
    await nod.idle()
    await nod.database.write(_silence_answers)
    await nod.say("still there?")
    await nod.idle()
    assert [e for e in nod.model.transcripts[-1] if isinstance(e, AssistantText)] == []


def _silence_answers(session: Session) -> None:
    session.execute(update(MessageRow).where(col(MessageRow.role) == "assistant").values(text=""))


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "paint", "arguments": {"lamp": "desk", "color": "red"}}',
        '```json\n{"name": "paint", "parameters": {"lamp": "desk"}}\n```',
        '<tool_call>{"function": {"name": "paint", "arguments": "{}"}}</tool_call>',
        '[TOOL_CALLS][{"name": "paint", "arguments": {"lamp": "desk"}}]',
        'I will paint it.\n\n{"name": "paint", "arguments": {"lamp": "desk", "color": "red"}}\n\nOne moment.',
        '<tool_call>{"name": "look", "arguments": {}}</tool_call>\n<tool_call>{"name": "paint"}</tool_call>',
        "Sure.\n<tool_call>\n<function=paint>\n<parameter=lamp>\ndesk\n</parameter>\n</function>\n</tool_call>",
        'First {"name": "Ana"}, then {"type": "function", "name": "paint", "parameters": {"lamp": "desk"}}',
    ],
)
async def test_a_call_written_as_text_runs_nothing_and_the_model_is_told_once(nod: Nod, text: str) -> None:
    nod.model.will(says(text), says("I will paint it.", call("paint", RED)))
    await nod.say()
    await nod.idle()
    assert "as text" in nod.model.heard[-1]
    assert [p.state for p in await nod.proposals()] == [State.PROPOSED]
    assert text not in await nod.said()


async def test_json_that_is_no_call_is_an_answer(nod: Nod) -> None:
    text = 'Here: {"name": "Ana", "arguments": "none"}, <function=map>, {"name": "paint"} and {"id": {"id": {'
    nod.model.will(says(text))
    await nod.say("my profile as JSON, please")
    await nod.idle()
    assert nod.chat.shown == text


async def test_an_answer_that_the_provider_cut_says_so_and_its_calls_are_not_used(nod: Nod) -> None:
    nod.model.will(says("I will paint", call("paint", RED), stop=StopReason.FILTERED))
    await nod.say()
    await nod.idle()
    assert "withheld the rest" in nod.chat.shown
    assert await nod.proposals() == []
    assert [turn.state for turn in await turns(nod)] == ["done"]


async def test_an_answer_that_was_cut_at_its_length_is_continued_once(nod: Nod) -> None:
    cut = says("I will paint", call("paint", RED), stop=StopReason.LENGTH)
    nod.model.will(cut, says("it red.", call("paint", RED)))
    await nod.say()
    await nod.idle()
    assert "length limit" in nod.model.heard[-1]
    assert nod.chat.shown == "I will paint\n\nit red."
    assert [p.state for p in await nod.proposals()] == [State.PROPOSED]
    nod.model.will(cut, cut)
    await nod.say("again")
    await nod.idle()
    assert len(nod.model.transcripts) == 4
    assert nod.chat.shown.endswith("My answer ran into its length limit and stops here.)")
    assert [turn.state for turn in await turns(nod)] == ["waiting", "done"]


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


async def test_of_many_reads_of_one_answer_only_four_run_at_the_same_time(nod: Nod) -> None:
    hold = nod.world.before["look"] = Hold()
    nod.model.will(says("", *(call("look", lamp=f"lamp {n}") for n in range(10))), says("Done."))
    await nod.say()
    await hold.reached.wait()
    for _ in range(200):  # as many rounds as ten calls could need
        await asyncio.sleep(0)
    assert len(nod.world.reads) == 4
    hold.go.set()
    await nod.idle()
    assert len(nod.world.reads) == 10
    assert [r for r in nod.model.results if r.startswith("ERROR")] == nod.model.results[-10:]


async def test_a_message_that_came_while_a_turn_was_given_up_gets_a_turn_of_its_own(nod: Nod) -> None:
    holds = [Hold(), Hold()]
    nod.model.will(*(says("Never said.", hold=hold) for hold in holds), says("Both of you."))
    await nod.say("one")
    await holds[0].reached.wait()
    nod.clock.forward(timedelta(seconds=1))
    await nod.say("two", by=BEN)
    for hold in holds:
        await hold.reached.wait()
        await nod.crash(wait=hold is holds[-1])
    assert [turn.state for turn in await turns(nod)] == ["failed", "done"]
    assert "I kept being restarted while working on this" in nod.chat.shown
    assert (await nod.said())[-1] == "Both of you."


async def test_a_process_that_dies_between_two_calls_of_the_model_does_not_count_twice(nod: Nod) -> None:
    hold, late = Hold(), Hold()
    nod.model.will(says("Let me look.", call("look", lamp="desk"), hold=hold))
    nod.model.will(
        says("And again.", call("look", lamp="desk")), says("White.", hold=late), says("It's white.")
    )
    await nod.say("which color?")
    await hold.reached.wait()
    await nod.crash(wait=False)
    await late.reached.wait()
    await nod.crash()
    assert (await nod.said())[-1] == "It's white."

"""What is said arrives, once; cards show what is, wherever they stand."""

from datetime import timedelta

import pytest

from bot.domain.chat import Verb
from bot.domain.proposals import Cause, State
from bot.errors import ChannelError, CopyGone, NotDeliverable, ToolError
from tests.core.conftest import MakeNod
from tests.kit import ADA, ANA, ROOM, WALL, Hold, Nod, RecordingChannel, ToolCall, call, says


def red(lamp: str = "desk") -> ToolCall:
    return call("paint", lamp=lamp, color="red")


@pytest.fixture
async def routed(make_nod: MakeNod) -> Nod:
    """Cards of every conversation go to the wall too; the chat is where people read rows themselves."""
    return make_nod(channels=[RecordingChannel(pulls=True), RecordingChannel("wall")], routes=[WALL])


async def later(nod: Nod) -> None:
    """After what was not shown is shown again."""
    await nod.tick(timedelta(seconds=61))


async def test_a_card_is_posted_where_it_was_asked_for_and_redrawn_after_the_decision(nod: Nod) -> None:
    [p] = await nod.asked(red())
    assert nod.chat.card_of(p).pending
    assert list(nod.chat.places.values()) == [ROOM]
    await nod.approve(p)
    assert nod.chat.card_of(p).outcome == "Done. Approved by Ana from chat."
    assert len(nod.chat.cards) == 1


async def test_the_last_card_of_an_answer_carries_the_buttons_for_all(nod: Nod) -> None:
    one, two, three = await nod.asked(red(), red("door"), red("roof"))
    assert [nod.chat.card_of(p).group is not None for p in (one, two, three)] == [False, False, True]
    await nod.press(Verb.DECLINE, one)
    await nod.idle()
    group = nod.chat.card_of(three).group
    assert group is not None
    assert (group.size, group.open) == (3, 2)
    assert "approve_all" in nod.chat.card_of(three).actions
    await nod.approve(two)
    assert "approve_all" not in nod.chat.card_of(three).actions


async def test_every_copy_in_every_channel_is_redrawn(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL])
    [p] = await nod.asked(red())
    await nod.approve(p)
    assert nod.chat.card_of(p).state is State.SUCCEEDED
    assert nod.channels["wall"].card_of(p).state is State.SUCCEEDED


async def test_cards_are_routed_from_where_people_read_rows_too(routed: Nod) -> None:
    [p] = await routed.asked(red())
    assert routed.channels["wall"].card_of(p).pending
    assert routed.chat.cards == {}
    assert routed.chat.texts == []
    await routed.approve(p)
    assert routed.channels["wall"].card_of(p).state is State.SUCCEEDED


async def test_a_copy_that_could_not_be_redrawn_is_redrawn_after_a_restart(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.chat.refusals["redraw_card"] = ChannelError("rate limited")
    await nod.approve(p)
    assert nod.chat.card_of(p).pending
    nod.chat.refusals.clear()
    await nod.restart()
    assert nod.chat.card_of(p).state is State.SUCCEEDED


async def test_a_copy_that_could_not_be_redrawn_is_redrawn_by_the_next_tick(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.chat.refusals["redraw_card"] = ChannelError("rate limited")
    await nod.approve(p)
    nod.chat.refusals.clear()
    await nod.tick()
    assert nod.chat.card_of(p).state is State.SUCCEEDED


@pytest.mark.parametrize("gone", [CopyGone(), NotDeliverable("kicked out")], ids=["deleted", "kicked out"])
async def test_a_copy_that_can_never_be_redrawn_is_left_alone(nod: Nod, gone: ChannelError) -> None:
    [p] = await nod.asked(red())
    nod.chat.refusals["redraw_card"] = gone
    assert (await nod.approve(p)).state is State.SUCCEEDED
    nod.chat.refusals.clear()
    await nod.tick()
    assert nod.chat.card_of(p).pending


async def test_text_that_did_not_arrive_is_posted_later_and_once(nod: Nod) -> None:
    nod.chat.refusals |= {"send": ChannelError("down"), "post": ChannelError("down")}
    await nod.say("hi")
    await nod.idle()
    assert nod.chat.shown == ""
    nod.chat.refusals.clear()
    await later(nod)
    await later(nod)
    assert [text for _, text in nod.chat.texts] == ["OK."]


async def test_what_was_left_unsaid_is_said_before_the_next_answer(nod: Nod) -> None:
    nod.chat.refusals |= {"send": ChannelError("down"), "post": ChannelError("down")}
    nod.model.will(says("First."))
    await nod.say("hi")
    await nod.idle()
    nod.chat.refusals.clear()
    nod.model.will(says("Second."))
    await nod.say("hello?")
    await nod.idle()
    assert [text for _, text in nod.chat.texts] == ["First."]
    assert nod.chat.streams[-1].text == "Second."
    await later(nod)
    assert len(nod.chat.texts) == 1


async def test_what_was_left_unsaid_is_not_taken_for_said_when_the_next_answer_arrives(nod: Nod) -> None:
    nod.chat.refusals |= {"send": ChannelError("down"), "post": ChannelError("down")}
    nod.model.will(says("First."))
    await nod.say("hi")
    await nod.idle()
    del nod.chat.refusals["send"]
    await nod.say("hello?")
    await nod.idle()
    nod.chat.refusals.clear()
    await later(nod)
    assert [text for _, text in nod.chat.texts] == ["First."]


async def test_a_stream_that_breaks_does_not_stop_the_turn_and_the_whole_text_follows(nod: Nod) -> None:
    hold = Hold()
    nod.model.will(says("", call("look", lamp="desk")), says("It is white.", red(), hold=hold))
    await nod.say()
    await hold.reached.wait()
    nod.chat.refusals["send"] = ChannelError("the stream was closed")
    hold.go.set()
    await nod.idle()
    assert [text for _, text in nod.chat.texts] == ["It is white."]
    [p] = await nod.proposals()
    assert nod.chat.card_of(p).pending


async def test_text_that_can_never_arrive_is_not_tried_again(nod: Nod) -> None:
    nod.chat.refusals |= {"send": ChannelError("down"), "post": NotDeliverable("blocked")}
    await nod.say("hi")
    await nod.idle()
    nod.chat.refusals.clear()
    await later(nod)
    assert nod.chat.texts == []


async def test_a_card_that_can_be_shown_to_nobody_ends_its_proposal_and_admins_are_told(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(admins=[ADA])
    nod.chat.refusals["post_card"] = NotDeliverable("the channel is archived")
    [p] = await nod.asked(red())
    assert (p.state, p.cause) == (State.CANCELLED, Cause.UNDELIVERABLE)
    assert nod.model.results[0].startswith("UNDELIVERABLE")
    [(address, told)] = nod.chat.texts
    assert (address.channel, address.key) == ("chat", "ada")
    assert "Paint lamp desk red. Reason: the channel is archived" in told


async def test_a_card_that_does_not_arrive_just_now_is_posted_later_and_its_text_only_once(nod: Nod) -> None:
    nod.chat.refusals["post_card"] = ChannelError("rate limited")
    [p] = await nod.asked(red())
    assert p.state is State.PROPOSED
    nod.chat.refusals.clear()
    await later(nod)
    assert nod.chat.card_of(p).pending
    assert nod.chat.shown == "I will."


async def test_a_card_that_does_not_arrive_for_an_hour_ends_its_proposal(nod: Nod) -> None:
    nod.chat.refusals["post_card"] = ChannelError("rate limited")
    [p] = await nod.asked(red())
    await nod.tick(timedelta(minutes=59))
    assert (await nod.now(p)).state is State.PROPOSED
    await nod.tick(timedelta(minutes=1))
    assert (await nod.now(p)).cause is Cause.UNDELIVERABLE


async def test_one_place_that_shows_the_card_is_enough(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL])
    nod.channels["wall"].refusals["post_card"] = NotDeliverable("archived")
    [p] = await nod.asked(red())
    assert p.state is State.PROPOSED
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_conversation_whose_channel_is_off_is_still_worked_on(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.close()
    channel = nod.channels.pop("chat")
    nod._build()
    await nod.press(Verb.APPROVE, p, by=ANA)
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert channel.card_of(p).pending
    nod.channels["chat"] = channel
    await nod.restart()
    assert channel.card_of(p).state is State.SUCCEEDED


async def test_a_failure_shows_its_words_and_offers_a_retry(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.broken = ToolError("no paint")
    await nod.approve(p)
    card = nod.chat.card_of(p)
    assert (card.result, [str(action) for action in card.actions]) == ("no paint", ["retry"])


async def test_every_channel_hears_of_every_change_wherever_the_proposal_lives(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[RecordingChannel(pulls=True), RecordingChannel("wall")])
    [p] = await nod.asked(red())
    asked = nod.channels["wall"].changes
    assert asked > 0
    await nod.approve(p)
    assert nod.channels["wall"].changes > asked

"""What is said arrives, once; cards show what is, wherever they stand."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url
from sqlmodel import Session

from bot.channels.delivery.pauses import GIVE_UP
from bot.domain.cards import Card
from bot.domain.chat import Address, Answer
from bot.domain.model import ToolCall
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.verbs import Verb
from bot.errors import ChannelError, CopyGone, NotDeliverable, ToolError
from bot.store import posted_cards
from bot.store.backups import back_up
from tests.kit import (
    ADA,
    ANA,
    BEN,
    ROOM,
    WALL,
    Hold,
    MakeNod,
    Nod,
    RecordingChannel,
    ShowingChannel,
    call,
    says,
)


def red(lamp: str = "desk") -> ToolCall:
    return call("paint", lamp=lamp, color="red")


@pytest.fixture
async def routed(make_nod: MakeNod) -> Nod:
    """Cards of every conversation go to the wall too; the chat is where people read rows themselves."""
    return make_nod(channels=[ShowingChannel(), RecordingChannel("wall")], routes=[WALL])


async def later(nod: Nod) -> None:
    """After what was not shown is shown again."""
    await nod.tick(timedelta(seconds=61))


async def test_a_card_is_posted_where_it_was_asked_for_and_redrawn_after_the_decision(nod: Nod) -> None:
    [p] = await nod.asked(red())
    assert nod.chat.card_of(p).pending
    assert list(nod.chat.places.values()) == [ROOM]
    await nod.approve(p)
    assert nod.chat.card_of(p).outcome == "Done. Approved by Ana."
    assert len(nod.chat.cards) == 1


async def test_the_first_card_of_an_answer_carries_the_buttons_for_all(nod: Nod) -> None:
    one, two, three = await nod.asked(red(), red("door"), call("pay", amount=1))
    assert [nod.chat.card_of(p).group is not None for p in (one, two, three)] == [True, False, False]
    await nod.press(Verb.DECLINE, three)
    await nod.idle()
    group = nod.chat.card_of(one).group
    assert group is not None
    assert (group.size, group.open_count) == (3, 2)
    assert "approve_all" in nod.chat.card_of(one).verbs
    await nod.approve(two)
    assert "approve_all" not in nod.chat.card_of(one).verbs


async def test_every_copy_in_every_channel_is_redrawn(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL])
    [p] = await nod.asked(red())
    await nod.approve(p)
    assert nod.chat.card_of(p).state is State.SUCCEEDED
    assert nod.channels["wall"].card_of(p).state is State.SUCCEEDED


async def test_cards_are_routed_from_where_people_read_rows_too(routed: Nod) -> None:
    [p] = await routed.asked(red())
    assert routed.channels["wall"].card_of(p).pending
    await routed.approve(p)
    assert routed.channels["wall"].card_of(p).state is State.SUCCEEDED


async def test_a_card_that_looks_the_same_is_not_drawn_again(nod: Nod) -> None:
    one, two = await nod.asked(red(), call("paint", lamp="door", color="red"))
    await nod.press(Verb.DECLINE, two)
    await nod.idle()
    before = len(nod.chat.drawn)
    nod.database.write_now(posted_cards.mark_open_outdated)
    await nod.tick()
    assert len(nod.chat.drawn) == before
    assert nod.database.read_now(posted_cards.list_outdated_messages) == []
    assert (await nod.approve(one)).state is State.SUCCEEDED
    assert nod.chat.card_of(one).state is State.SUCCEEDED


async def test_a_copy_that_could_not_be_redrawn_is_redrawn_after_a_restart(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.chat.refusals["redraw_card"] = ChannelError("rate limited")
    await nod.approve(p)
    assert nod.chat.card_of(p).pending
    nod.chat.refusals.clear()
    await nod.restart()
    assert nod.chat.card_of(p).state is State.SUCCEEDED


@pytest.mark.usefixtures("only_on_sqlite")
async def test_after_an_older_database_is_put_back_a_pause_and_its_end_draw_every_open_card_again(
    make_nod: MakeNod, tmp_path: Path
) -> None:
    nod = make_nod(admins=[ADA])
    [p] = await nod.asked(red())
    file = Path(make_url(nod.url).database or "")
    back_up(file, tmp_path / "monday.db")
    await nod.press(Verb.DECLINE, p)
    await nod.idle()
    [late] = await nod.asked(red("door"))
    assert nod.chat.card_of(p).state is State.DECLINED
    await nod.close()
    shutil.copy(tmp_path / "monday.db", file)
    await nod.up()
    assert nod.chat.card_of(p).state is State.DECLINED  # no row says that it shows this

    await nod.command("/approvals pause", by=ADA)
    await nod.idle()
    assert "Nothing runs until" in nod.chat.card_of(p).notes[-1]
    await nod.command("/approvals resume", by=ADA)
    await nod.idle()
    assert nod.chat.card_of(p).pending
    assert nod.chat.card_of(p).notes == ()
    assert (await nod.press(Verb.APPROVE, late)).answer is Answer.UNKNOWN
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_copy_that_could_not_be_redrawn_is_redrawn_by_the_next_tick(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.chat.refusals["redraw_card"] = ChannelError("rate limited")
    await nod.approve(p)
    nod.chat.refusals.clear()
    await nod.tick(timedelta(seconds=1))
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


async def test_of_a_text_in_several_posts_each_is_posted_once_though_one_was_refused(nod: Nod) -> None:
    nod.chat.refusals["send"] = ChannelError("down")
    nod.chat.paragraphs = ["Two.", "Three.", "never said"]
    nod.model.will(says("One.\n\nTwo.\n\nThree."))
    await nod.say("hi")
    for _ in range(3):
        await later(nod)
    assert [text for _, text in nod.chat.texts] == ["One.", "Two.", "Three."]


async def test_a_stream_that_ends_between_two_posts_is_continued_where_it_ended(nod: Nod) -> None:
    broken = ChannelError("down")
    broken.arrived = 1
    nod.chat.refusals["end"] = broken
    nod.chat.paragraphs = ["never said"]
    nod.model.will(says("One.\n\nTwo."))
    await nod.say("hi")
    await later(nod)
    assert [text for _, text in nod.chat.texts] == ["Two."]


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


async def test_a_question_about_a_card_that_is_asked_while_an_answer_is_streamed_is_told_after_it(
    nod: Nod,
) -> None:
    (p,) = await nod.asked(red())
    hold = Hold()
    nod.model.will(says("It is white.", hold=hold), says("The one by the window."))
    await nod.say("And the desk?")
    await hold.reached.wait()
    await nod.press(Verb.ASK, p, at=ROOM, reason="Which lamp?")
    hold.go.set()
    await nod.idle()
    [told] = [text for _, text in nod.chat.texts if "Which lamp?" in text]
    assert told.startswith("Question from Ana")
    assert "The one by the window." in nod.chat.streams[-1].text


async def test_text_that_a_place_takes_never_goes_to_who_asked_and_is_not_tried_there_again(nod: Nod) -> None:
    nod.model.will(says("Hello."))
    nod.chat.refusals |= {"send": ChannelError("down"), "post": NotDeliverable("blocked")}
    await nod.say("hi")
    await nod.idle()
    nod.chat.refusals.clear()
    await later(nod)
    own = Address("chat", ANA.key)
    assert nod.chat.texts == [(own, "I can't answer where you asked. blocked."), (own, "Hello.")]


async def test_a_card_that_can_be_shown_to_no_one_ends_its_proposal_and_admins_are_told(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(admins=[ADA])
    nod.chat.refusals["post_card"] = NotDeliverable("the channel is archived")
    [p] = await nod.asked(red())
    assert (p.state, p.cause) == (State.CANCELLED, Cause.UNDELIVERABLE)
    assert nod.model.results[0].startswith("UNDELIVERABLE")
    await nod.tick()
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


async def test_what_could_not_be_shown_for_an_hour_arrives_once_when_the_platform_is_back(nod: Nod) -> None:
    down = ChannelError("Slack can't be reached")
    nod.chat.refusals |= {"send": down, "post": down, "post_card": down, "redraw_card": down}
    [p] = await nod.asked(red())
    for _ in range(6):
        await nod.tick(timedelta(minutes=11))
    assert (await nod.now(p)).state is State.PROPOSED
    nod.chat.refusals.clear()
    await later(nod)
    await later(nod)
    assert [text for _, text in nod.chat.texts] == ["I will."]
    assert nod.chat.card_of(p).pending
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_card_that_does_not_arrive_for_half_a_day_ends_its_proposal(nod: Nod) -> None:
    nod.chat.refusals["post_card"] = ChannelError("rate limited")
    [p] = await nod.asked(red())
    await nod.tick(GIVE_UP - timedelta(minutes=1))
    assert (await nod.now(p)).state is State.PROPOSED
    await nod.tick(timedelta(minutes=1))
    assert (await nod.now(p)).cause is Cause.UNDELIVERABLE


async def test_text_that_does_not_arrive_for_half_a_day_goes_to_who_asked_and_says_why(nod: Nod) -> None:
    down = ChannelError("the channel takes nothing")
    nod.chat.refusals |= {"send": down, "post": down}
    nod.model.will(says("Hello."))
    await nod.say("hi")
    await nod.idle()
    await nod.tick(GIVE_UP)
    nod.chat.refusals.clear()
    await later(nod)
    own = Address("chat", ANA.key)
    why = "I can't answer where you asked. the channel takes nothing."
    assert nod.chat.texts == [(own, why), (own, "Hello.")]


async def test_a_notice_on_an_answer_arrives_where_the_answer_is_refused_for_its_contents(nod: Nod) -> None:
    nod.model.will(says("Hello."))
    nod.chat.refusals |= {"send": ChannelError("down"), "post": NotDeliverable("blocked")}
    await nod.say("hi")
    await nod.idle()
    nod.chat.refusals.clear()
    nod.chat.unwanted.add("Hello.")
    await later(nod)
    assert nod.chat.texts == [(Address("chat", ANA.key), "I can't answer where you asked. blocked.")]


async def test_what_a_platform_refuses_for_a_moment_is_tried_again_later_each_time(
    nod: Nod,
) -> None:
    nod.chat.refusals["post_card"] = ChannelError("internal_error")
    [p] = await nod.asked(red())
    tries = []
    for second in range(1, 240):
        nod.chat.attempts = 0
        nod.clock.forward(timedelta(seconds=1))
        await nod.recovery.retry_refused_posts(nod.clock())
        await nod.idle()
        tries += [second] * nod.chat.attempts
    assert tries == [1, 3, 8, 23, 53, 113, 173, 233]
    nod.chat.refusals.clear()
    await nod.tick(timedelta(minutes=1))
    assert nod.chat.card_of(p).pending
    nod.clock.forward(timedelta(days=1))
    assert nod.turns.due() == []


async def test_one_place_that_shows_the_card_is_enough(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL])
    nod.channels["wall"].refusals["post_card"] = NotDeliverable("archived")
    [p] = await nod.asked(red())
    assert p.state is State.PROPOSED
    assert (await nod.approve(p)).state is State.SUCCEEDED


async def test_a_place_that_refuses_for_a_moment_gets_its_cards_though_others_have_theirs(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL])
    wall = nod.channels["wall"]
    wall.refusals["post_card"] = ChannelError("internal_error")
    await nod.asked(red(), red("door"))
    assert (len(nod.chat.cards), len(wall.cards)) == (2, 0)
    wall.refusals.clear()
    await nod.tick(timedelta(seconds=1))
    assert (len(nod.chat.cards), len(wall.cards)) == (2, 2)
    assert nod.chat.shown == "I will."


async def test_a_card_that_changed_while_posted_is_redrawn_though_another_place_refuses_for_a_moment(
    make_nod: MakeNod, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_card = posted_cards.add_card

    def add_outdated_card(session: Session, ident: str, address: Address, ref: str, *_: object) -> bool:
        return add_card(session, ident, address, ref, shown_version=0)

    monkeypatch.setattr(posted_cards, "add_card", add_outdated_card)
    nod = make_nod(channels=[RecordingChannel(), RecordingChannel("wall")], routes=[WALL])
    nod.channels["wall"].refusals["post_card"] = ChannelError("internal_error")
    await nod.asked(red())
    assert len(nod.chat.drawn) == 1


async def test_a_conversation_whose_channel_is_off_is_still_worked_on(nod: Nod) -> None:
    [p] = await nod.asked(red())
    await nod.close()
    channel = nod.channels.pop("chat")
    nod.rebuild()
    nod.model.will(says("It is red now."))
    await nod.press(Verb.APPROVE, p, by=ANA)
    await nod.idle()
    assert (await nod.now(p)).state is State.SUCCEEDED
    assert channel.card_of(p).pending
    assert "It is red now." in await nod.said()
    nod.channels["chat"] = channel
    await nod.restart()
    assert channel.card_of(p).state is State.SUCCEEDED
    assert channel.shown.endswith("It is red now.")


async def test_a_failure_shows_its_words_and_offers_a_retry(nod: Nod) -> None:
    [p] = await nod.asked(red())
    nod.world.broken = ToolError("no paint")
    await nod.approve(p)
    card = nod.chat.card_of(p)
    assert (card.result, [str(action) for action in card.verbs]) == ("no paint", ["retry"])


async def test_every_channel_is_told_of_every_change_wherever_the_proposal_lives(make_nod: MakeNod) -> None:
    nod = make_nod(channels=[ShowingChannel(), RecordingChannel("wall")])
    [p] = await nod.asked(red())
    asked = nod.channels["wall"].changes
    assert asked > 0
    await nod.approve(p)
    assert nod.channels["wall"].changes > asked


async def test_a_card_whose_tool_ends_in_a_moment_is_redrawn_once(nod: Nod) -> None:
    [p] = await nod.asked(red())
    drawn = len(nod.chat.drawn)
    await nod.approve(p)
    assert [card.state for card in nod.chat.drawn[drawn:]] == [State.SUCCEEDED]


async def test_a_card_whose_answer_was_lost_is_redrawn_once_it_is_pressed(nod: Nod) -> None:
    nod.chat.lost_answers = 1
    [p] = await nod.asked(red())
    await later(nod)
    lost, known = nod.chat.cards
    await nod.press(Verb.APPROVE, p, at=ROOM, ref=lost)
    await nod.idle()
    assert [nod.chat.cards[ref].outcome for ref in (lost, known)] == ["Done. Approved by Ana."] * 2
    assert len(nod.world.runs) == 1


@pytest.mark.parametrize("decided", [True, False])
async def test_a_press_that_changes_nothing_redraws_a_card_of_a_lost_answer_too(
    nod: Nod, decided: bool
) -> None:
    nod.chat.lost_answers = 1
    [p] = await nod.asked(red())
    await later(nod)
    lost = next(iter(nod.chat.cards))
    await nod.approve(p)
    assert nod.chat.cards[lost].pending
    if decided:
        await nod.press(Verb.APPROVE, p, at=ROOM, ref=lost)
    else:
        assert await nod.lookup.card(p.id, ANA, ROOM, lost) is not None
    await nod.tick()
    assert nod.chat.cards[lost].state is State.SUCCEEDED


async def test_a_press_on_a_message_that_cannot_carry_the_card_changes_nothing(nod: Nod) -> None:
    [p, q] = await nod.asked(red(), red("door"))
    of_p, _ = nod.chat.cards
    for at, ref in ((Address("chat", "elsewhere"), "chat-9"), (ROOM, of_p)):
        assert (await nod.press(Verb.APPROVE, q, at=at, ref=ref)).answer is Answer.UNKNOWN
        assert await nod.lookup.card(q.id, ANA, at, ref) is None
    await nod.idle()
    assert nod.world.runs == []
    assert (await nod.press(Verb.APPROVE, p, at=ROOM, ref=of_p)).answer is Answer.ACCEPTED
    await nod.idle()


async def test_a_copy_given_up_while_the_platform_was_off_is_redrawn_once_it_is_pressed(nod: Nod) -> None:
    [p] = await nod.asked(red())
    [ref] = nod.chat.cards
    nod.chat.refusals["redraw_card"] = NotDeliverable("the token was revoked")
    await nod.approve(p)
    nod.chat.refusals.clear()
    assert nod.chat.cards[ref].pending
    assert (await nod.press(Verb.APPROVE, p, at=ROOM, ref=ref)).answer is Answer.ALREADY
    await nod.idle()
    assert nod.chat.cards[ref].state is State.SUCCEEDED


async def test_who_may_decide_gets_the_card_where_the_one_who_asked_may_not_approve_it(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(admins=[ANA, BEN])
    (asked,) = await nod.asked(call("smash", lamp="desk"))
    own, bens = (card_at(nod, address) for address in (ROOM, Address("chat", "ben")))

    assert Verb.APPROVE in bens.verbs
    assert not {Verb.APPROVE, Verb.SIMILAR} & set(own.verbs)
    assert Verb.DECLINE in own.verbs
    assert "Sent to those who may approve it." in own.notes
    assert (await nod.approve(asked, by=BEN)).state is State.SUCCEEDED


async def test_a_card_that_its_requester_may_approve_goes_to_no_one_else(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ANA, BEN])
    await nod.asked(red())
    assert list(nod.chat.places.values()) == [ROOM]


async def test_a_copy_elsewhere_says_who_may_decide_as_it_is_read_there(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA])
    await nod.command("/approvals approvers member", by=ADA)
    await nod.command("/approvals route chat:hall", by=ADA)
    (asked,) = await nod.asked(red(), private=False)
    here, there = (card_at(nod, address) for address in (ROOM, Address("chat", "hall")))

    assert here.deciders == "anyone in this chat"
    assert Verb.APPROVE in here.verbs
    assert there.deciders == "anyone in the chat where it was asked"
    assert there.verbs == ()
    refused = await nod.press(Verb.APPROVE, asked, by=BEN, at=Address("chat", "hall"))
    assert "anyone in the chat where it was asked" in refused.text


async def test_a_copy_elsewhere_names_the_place_where_it_was_asked(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA])
    await nod.command("/approvals approvers member", by=ADA)
    await nod.command("/approvals route chat:hall", by=ADA)
    await nod.say("hello", private=False, names={str(ROOM): "the room"})
    await nod.idle()
    await nod.asked(red(), private=False)
    here, there = (card_at(nod, address) for address in (ROOM, Address("chat", "hall")))

    assert (here.requester_line, there.requester_line) == ("Asked by Ana", "Asked by Ana in the room")
    assert there.deciders == "anyone in the room"


async def test_a_copy_of_what_was_asked_in_the_console_calls_the_console_a_place_once(
    make_nod: MakeNod,
) -> None:
    nod = make_nod(admins=[ADA], channels=[RecordingChannel("http"), RecordingChannel("chat")])
    await nod.command("/approvals route chat:hall", by=ADA)
    await nod.say(
        "hello", by=(ops := Actor("http", "ops", "ops")), at=(there := Address("http", "ops")), private=False
    )
    await nod.idle()
    await nod.asked(red(), by=ops, at=there, private=False)
    assert card_at(nod, Address("chat", "hall")).requester_line == "Asked by ops in the console"


async def test_a_routed_copy_says_who_may_decide_where_the_requester_alone_may(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA])
    await nod.command("/approvals route chat:hall", by=ADA)
    await nod.asked(red())
    here, there = (card_at(nod, address) for address in (ROOM, Address("chat", "hall")))
    assert (here.asker_decides, there.asker_decides) == (True, False)
    assert there.deciders == "Ana or any admin"


async def test_a_copy_of_what_was_asked_in_private_says_so(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ANA, BEN])
    await nod.asked(call("smash", lamp="desk"))
    assert card_at(nod, Address("chat", "ben")).requester_line == "Asked by Ana in a private chat"


async def test_approvers_may_decide_what_a_route_takes_to_them_from_a_private_chat(make_nod: MakeNod) -> None:
    nod = make_nod(admins=[ADA], policy=Policy(approvers=frozenset({str(BEN)})))
    await nod.command("/approvals route chat:hall", by=ADA)
    (asked,) = await nod.asked(red())
    assert (await nod.approve(asked, by=BEN)).state is State.SUCCEEDED


def card_at(nod: Nod, address: Address) -> Card:
    (ref,) = (ref for ref, place in nod.chat.places.items() if place == address)
    return nod.chat.cards[ref]

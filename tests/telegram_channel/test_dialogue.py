"""Edit and decline with a reason: the moves, and the whole dialogue over HTTP and across a restart."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.dialogue import Dialogue, Step
from bot.channels.telegram.form import fields_of
from bot.domain.chat import Address, Answer, Reply, Verb
from tests.conftest import FakeClock
from tests.fakes.telegram_server import FakeTelegram, Posted
from tests.telegram_channel.conftest import ADMIN, ANA
from tests.telegram_channel.core import ARGUMENTS, PROPOSAL, SCHEMA, FakeCore, done, make_card

HERE = Address("telegram", str(ANA))
TEAM = -100200
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TITLE = next(f for f in fields_of(SCHEMA, ARGUMENTS) if f.name == "title")


def test_picking_and_answering_leads_to_confirming():
    asked = Dialogue.edit(make_card(), NOW).pick(TITLE, NOW).prompted(5)
    assert asked.listens(5, NOW, private=False)
    given = asked.give(TITLE, "New", NOW)
    assert (given.step, given.changes, given.prompt) == (Step.CONFIRM, {"title": "New"}, None)
    assert given.arguments(ARGUMENTS) == {**ARGUMENTS, "title": "New"}


def test_the_old_value_is_no_change():
    asked = Dialogue.edit(make_card(), NOW).pick(TITLE, NOW).give(TITLE, "New", NOW)
    assert asked.give(TITLE, "Old title", NOW).step is Step.PICK


@pytest.mark.parametrize(
    ("reply_to", "later", "private", "listens"),
    [
        (5, timedelta(days=20), False, True),
        (6, timedelta(0), True, False),
        (None, timedelta(minutes=5), True, True),
        (None, timedelta(minutes=5), False, False),
        (None, timedelta(hours=1), True, False),
    ],
)
def test_only_an_answer_is_taken_as_one(reply_to, later, private, listens):
    asked = Dialogue.decline(make_card(), NOW).prompted(5)
    assert asked.listens(reply_to, NOW + later, private=private) is listens


def test_it_comes_back_from_json_the_same():
    asked = (
        Dialogue.edit(make_card(), NOW).pick(TITLE, NOW).give(TITLE, "x", NOW).pick(TITLE, NOW).prompted(9)
    )
    assert Dialogue.from_state(json.loads(json.dumps(asked.state()))) == asked


async def card_in(
    channel: TelegramChannel, telegram: FakeTelegram, core: FakeCore, at: Address = HERE
) -> Posted:
    await channel.post_card(at, core.propose(make_card(), at))
    return await telegram.see(int(at.key), "Close issue")


async def test_a_text_field_is_edited_by_reply_saved_and_then_approved(
    channel, telegram: FakeTelegram, core: FakeCore
):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Edit")
    picker = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, picker, "title: Old title")
    question = await telegram.see(ANA, "new value for title")
    assert question.forces_reply
    await telegram.say(ANA, "New title", reply_to=question)
    form = await telegram.see(ANA, "not saved yet")
    assert "title: Old title → New title" in form.text
    core.reply = Reply(Answer.ACCEPTED, "Saved.")
    await telegram.press(ANA, form, "Save")
    (press,) = core.presses
    assert (press.verb, press.round) == (Verb.EDIT, 1)
    assert press.arguments == {**ARGUMENTS, "title": "New title"}
    assert "title: Old title → New title" in form.text
    await telegram.press(ANA, form, "Approve")
    assert (core.presses[1].verb, core.presses[1].round) == (Verb.APPROVE, 2)


async def test_a_choice_is_made_with_buttons(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Edit")
    form = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, form, "state: open")
    await telegram.press(ANA, form, "closed")
    await telegram.press(ANA, form, "Change another")
    await telegram.press(ANA, form, "urgent: false")
    await telegram.press(ANA, form, "true")
    await telegram.press(ANA, form, "Save")
    assert core.presses[0].arguments == {**ARGUMENTS, "state": "closed", "urgent": True}


async def test_an_answer_that_does_not_fit_is_asked_again(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Edit")
    await telegram.press(ANA, await telegram.see(ANA, "Which part"), "number: 7")
    await telegram.say(ANA, "many", reply_to=await telegram.see(ANA, "new value"))
    again = await telegram.see(ANA, "not a number")
    await telegram.say(ANA, "8", reply_to=again)
    await telegram.see(ANA, "number: 7 → 8")
    assert core.messages == []


async def test_a_field_that_may_be_empty_is_emptied(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Edit")
    await telegram.press(ANA, await telegram.see(ANA, "Which part"), "owner: ben")
    await telegram.say(ANA, "-")
    await telegram.press(ANA, await telegram.see(ANA, "not saved yet"), "Save")
    assert core.presses[0].arguments == {**ARGUMENTS, "owner": None}


async def test_a_dialogue_survives_a_restart(
    make_channel: Callable[..., TelegramChannel], telegram: FakeTelegram, core: FakeCore, clock: FakeClock
):
    first = make_channel()
    await first.start(core.inbox, core)
    posted = await card_in(first, telegram, core)
    await telegram.press(ANA, posted, "Decline with a reason")
    question = await telegram.see(ANA, "why not?")
    await first.stop()
    clock.forward(timedelta(days=1))
    second = make_channel()
    await second.start(core.inbox, core)
    core.reply = Reply(Answer.ACCEPTED, "Declined.")
    await telegram.say(ANA, "not on a Friday", reply_to=question)
    await telegram.see(ANA, "Declined.")
    assert [(p.verb, p.reason) for p in core.presses] == [(Verb.DECLINE, "not on a Friday")]
    await second.stop()


async def test_a_dialogue_is_cancelled_by_command_and_by_button(
    channel, telegram: FakeTelegram, core: FakeCore
):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Decline with a reason")
    await telegram.say(ANA, "/cancel")
    await telegram.see(ANA, "Stopped asking")
    await telegram.press(ANA, posted, "Edit")
    form = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, form, "Cancel")
    assert form.labels == []
    await telegram.say(ANA, "just talking")
    await core.took()
    assert [m.text for m in core.messages] == ["just talking"]
    assert core.presses == []


async def test_in_a_group_only_the_person_asked_can_answer(channel, telegram: FakeTelegram, core: FakeCore):
    telegram.group(TEAM)
    posted = await card_in(channel, telegram, core, Address("telegram", str(TEAM)))
    await telegram.press(ANA, posted, "Edit")
    form = await telegram.see(TEAM, "Which part")
    assert (await telegram.press(ADMIN, form, "title: Old title")).alert
    await telegram.press(ANA, form, "title: Old title")
    question = await telegram.see(TEAM, "new value for title")
    assert question.markup == {
        "force_reply": True,
        "selective": True,
        "input_field_placeholder": "title",
    }
    assert question.entities[0]["user"]["id"] == ANA
    await telegram.say(ADMIN, "I think it is fine", TEAM, reply_to=question)
    await core.took()
    assert [m.text for m in core.messages] == ["I think it is fine"]
    await telegram.say(ANA, "New", TEAM, reply_to=question)
    await telegram.see(TEAM, "not saved yet")


async def test_a_form_of_a_proposal_that_ended_is_closed(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Decline with a reason")
    core.cards[PROPOSAL] = done(core.cards[PROPOSAL])
    await telegram.say(ANA, "too late", reply_to=await telegram.see(ANA, "why not?"))
    await telegram.see(ANA, "decided or changed meanwhile")
    assert [(p.verb, p.arguments) for p in core.presses] == [(Verb.EDIT, None)]  # only asks what happened


async def test_who_may_not_decide_is_not_asked(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core)
    core.may = False
    assert (await telegram.press(ANA, posted, "Edit")).alert
    assert (await telegram.press(ANA, posted, "Decline with a reason")).alert
    assert not telegram.shown(ANA, "why not?")


async def test_what_the_core_refuses_is_said_and_the_form_stays(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Edit")
    form = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, form, "state: open")
    await telegram.press(ANA, form, "closed")
    core.reply = Reply(Answer.INVALID, "no", fields={"state": "already closed"})
    query = await telegram.press(ANA, form, "Save")
    assert (query.text, query.alert) == ("state: already closed", True)
    assert "Save" in form.labels

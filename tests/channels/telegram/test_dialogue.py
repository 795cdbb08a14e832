"""Edit and decline with a reason: the moves, and the whole dialogue over HTTP and across a restart."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.dialogue import NOT_YOURS_TEXT, Dialogue, DialogueStep
from bot.domain.chat import Address, Answer, Reply
from bot.domain.forms import fields_of
from bot.domain.preview import PreviewField
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.verbs import Verb
from tests.channels.telegram.conftest import ADMIN, ANA
from tests.channels.telegram.core import ARGUMENTS, PROPOSAL, SCHEMA, FakeCore, done, make_card
from tests.fakes.telegram_server import FakeTelegram, Posted
from tests.kit import FakeClock

HERE = Address("telegram", str(ANA))
TEAM = -100200
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TITLE = next(f for f in fields_of(SCHEMA, ARGUMENTS) if f.name == "title")


def test_picking_and_answering_leads_to_confirming():
    asked = Dialogue.begin_edit(make_card(), NOW).pick(TITLE, NOW).with_prompt(5)
    assert asked.expects_reply_to(5)
    given = asked.with_value(TITLE, "New", NOW)
    assert (given.step, given.changes, given.prompt) == (DialogueStep.CONFIRM, {"title": "New"}, None)
    assert given.apply_changes(ARGUMENTS) == {**ARGUMENTS, "title": "New"}


def test_the_old_value_is_no_change():
    asked = Dialogue.begin_edit(make_card(), NOW).pick(TITLE, NOW).with_value(TITLE, "New", NOW)
    assert asked.with_value(TITLE, "Old title", NOW).step is DialogueStep.PICK


def test_only_a_reply_to_the_question_is_taken_as_its_answer():
    asked = Dialogue.begin_words(make_card(), Verb.DECLINE, NOW).with_question("why not? ")
    assert not asked.expects_reply_to(5)
    assert asked.matches_question("why not?")
    assert not asked.matches_question("")
    assert asked.with_prompt(5).expects_reply_to(5)
    assert not asked.with_prompt(5).expects_reply_to(6)


def test_it_comes_back_from_json_the_same():
    asked = (
        Dialogue.begin_edit(make_card(), NOW)
        .pick(TITLE, NOW)
        .with_value(TITLE, "x", NOW)
        .pick(TITLE, NOW)
        .with_prompt(9)
    )
    assert Dialogue.from_state(json.loads(json.dumps(asked.as_state()))) == asked


@pytest.mark.parametrize("step", ["reach", "lasting"])
def test_choices_for_a_grant_that_are_open_at_an_upgrade_still_count(step: str):
    begun = Dialogue.begin_grant(make_card(), GrantScope.KEY, GrantAudience.REQUESTER, NOW)
    assert Dialogue.from_state({**begun.as_state(), "step": step}) == begun


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
    await telegram.press(ANA, picker, "Title: Old title")
    question = await telegram.see(ANA, "new value for Title")
    assert question.forces_reply
    await telegram.say(ANA, "New title", reply_to=question)
    form = await telegram.see(ANA, "not saved yet")
    assert "Title: Old title → New title" in form.text
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
    await telegram.press(ANA, form, "State: open")
    await telegram.press(ANA, form, "closed")
    await telegram.press(ANA, form, "Change another")
    await telegram.press(ANA, form, "Urgent: no")
    await telegram.press(ANA, form, "yes")
    await telegram.press(ANA, form, "Save")
    assert core.presses[0].arguments == {**ARGUMENTS, "state": "closed", "urgent": True}


async def test_a_forged_button_of_a_field_or_choice_that_does_not_exist_changes_nothing(
    channel, telegram: FakeTelegram, core: FakeCore
):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Edit")
    form = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, form, "State: open")
    for action in (ButtonAction.FIELD, ButtonAction.CHOOSE):
        forged = await telegram.press_data(ANA, form, ButtonData(action, PROPOSAL, 1, 9999).pack())
        assert forged.text == NOT_YOURS_TEXT
    await telegram.press(ANA, form, "closed")
    await telegram.press(ANA, form, "Save")
    assert core.presses[0].arguments == {**ARGUMENTS, "state": "closed"}


async def test_an_answer_that_does_not_fit_is_asked_again(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Edit")
    await telegram.press(ANA, await telegram.see(ANA, "Which part"), "Number: 7")
    await telegram.say(ANA, "many", reply_to=await telegram.see(ANA, "new value"))
    again = await telegram.see(ANA, "whole number")
    await telegram.say(ANA, "8", reply_to=again)
    await telegram.see(ANA, "Number: 7 → 8")
    assert core.messages == []


async def test_a_field_that_may_be_empty_is_emptied(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Edit")
    await telegram.press(ANA, await telegram.see(ANA, "Which part"), "Owner: ben")
    await telegram.say(ANA, "-", reply_to=await telegram.see(ANA, "new value for Owner"))
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
    await telegram.see(ANA, "Cancelled.")
    await telegram.press(ANA, posted, "Edit")
    form = await telegram.see(ANA, "Which part")
    await telegram.press(ANA, form, "Cancel")
    assert form.labels == []
    await telegram.say(ANA, "just talking")
    await core.took()
    assert [m.text for m in core.messages] == ["just talking"]
    assert core.presses == []


@pytest.mark.parametrize("label", ["Decline with a reason", "Edit"])
async def test_a_question_that_could_not_be_sent_takes_no_answer_and_the_press_says_so(
    channel, telegram: FakeTelegram, core: FakeCore, label: str
):
    posted = await card_in(channel, telegram, core)
    telegram.fail("sendMessage", 500, "Internal Server Error")
    query = await telegram.press(ANA, posted, label)
    assert (query.text, query.alert) == ("Telegram didn't take my answer. Press again.", True)
    await telegram.say(ANA, "what else is there to do today?")
    await core.took()
    assert [m.text for m in core.messages] == ["what else is there to do today?"]
    assert core.presses == []
    assert not (await telegram.press(ANA, posted, label)).text
    await telegram.see(ANA, {"Edit": "Which part"}.get(label, "why not?"))


async def test_a_payload_that_could_not_be_shown_is_said_and_shown_at_the_next_press(
    channel, telegram: FakeTelegram, core: FakeCore
):
    card = core.propose(make_card(fields=(PreviewField("text", None, "x" * 4500),)), HERE)
    await channel.post_card(HERE, card)
    posted = await telegram.see(ANA, "cut here")
    telegram.fail("sendMessage", 500, "Internal Server Error")
    assert (await telegram.press(ANA, posted, "View all")).alert
    assert not (await telegram.press(ANA, posted, "View all")).alert
    await telegram.until(lambda: [m for m in telegram.shown(ANA) if "Approve" in m.labels])


async def test_a_message_that_replies_to_nothing_is_no_reason(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Decline with a reason")
    await telegram.see(ANA, "why not?")
    await telegram.say(ANA, "list the open issues please")
    await core.took()
    assert [m.text for m in core.messages] == ["list the open issues please"]
    assert core.presses == []


@pytest.mark.parametrize(
    ("buttons", "question", "typed"),
    [
        (["Decline with a reason"], "why not?", "too dear"),
        (["Edit", "Title: Old title"], "new value for", "New"),
    ],
)
async def test_a_question_whose_id_was_lost_is_asked_again_when_it_is_answered(
    channel, telegram: FakeTelegram, core: FakeCore, buttons, question, typed
):
    message = await card_in(channel, telegram, core)
    for label in buttons[:-1]:
        await telegram.press(ANA, message, label)
        message = await telegram.see(ANA, "Which part")
    telegram.lose("sendMessage")
    assert (await telegram.press(ANA, message, buttons[-1])).alert
    await telegram.say(ANA, typed, reply_to=await telegram.see(ANA, question))
    await telegram.see(ANA, "lost track of that question")
    again = await telegram.see(ANA, question, count=2)
    assert core.taken == []
    core.reply = Reply(Answer.ACCEPTED, "Declined.")
    await telegram.say(ANA, typed, reply_to=again)
    await telegram.see(ANA, "Declined." if typed == "too dear" else "not saved yet")
    assert core.messages == []


@pytest.mark.parametrize("over", ["another", "/cancel"])
async def test_an_answer_to_a_question_that_is_over_is_no_order_to_nod(
    channel, telegram: FakeTelegram, core: FakeCore, over: str
):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Decline with a reason")
    question = await telegram.see(ANA, "why not?")
    if over == "another":
        await telegram.press(ANA, posted, "Edit")
        await telegram.see(ANA, "Which part")
    else:
        await telegram.say(ANA, over)
        await telegram.see(ANA, "Cancelled.")
    await telegram.say(ANA, "pay it from account 12", reply_to=question)
    await telegram.see(ANA, "I'm no longer waiting for that answer, so nothing was done.")
    assert core.taken == []


async def test_in_a_group_only_the_person_asked_can_answer(channel, telegram: FakeTelegram, core: FakeCore):
    telegram.group(TEAM)
    telegram.whispers = False
    posted = await card_in(channel, telegram, core, Address("telegram", str(TEAM)))
    await telegram.press(ANA, posted, "Edit")
    form = await telegram.see(TEAM, "Which part")
    assert (await telegram.press(ADMIN, form, "Title: Old title")).alert
    await telegram.press(ANA, form, "Title: Old title")
    question = await telegram.see(TEAM, "new value for Title")
    assert question.markup == {
        "force_reply": True,
        "selective": True,
        "input_field_placeholder": "Title",
    }
    assert question.entities[0]["user"]["id"] == ANA
    await telegram.say(ADMIN, "I think it is fine", TEAM, reply_to=question)
    await core.took()
    assert [m.text.rpartition("\n")[2] for m in core.messages] == ["I think it is fine"]
    await telegram.say(ANA, "New", TEAM, reply_to=question)
    await telegram.see(TEAM, "not saved yet")


async def test_a_form_of_a_proposal_that_ended_is_closed(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core)
    await telegram.press(ANA, posted, "Decline with a reason")
    core.cards[PROPOSAL] = done(core.cards[PROPOSAL])
    await telegram.say(ANA, "too late", reply_to=await telegram.see(ANA, "why not?"))
    await telegram.see(ANA, "decided or changed in the meantime")
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
    await telegram.press(ANA, form, "State: open")
    await telegram.press(ANA, form, "closed")
    core.reply = Reply(Answer.INVALID, "no", fields={"state": "already closed"})
    query = await telegram.press(ANA, form, "Save")
    assert (query.text, query.alert) == ("State: already closed", True)
    assert "Save" in form.labels

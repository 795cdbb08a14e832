"""In a group: forms, reasons, payloads and *More* for the one person who pressed, if Telegram does that."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.channels.telegram.channel import TelegramChannel
from bot.domain.chat import Address, Answer, Reply
from bot.domain.preview import PreviewField
from bot.domain.verbs import Verb
from tests.channels.telegram.conftest import ADMIN, ANA, FakeTime
from tests.channels.telegram.core import ARGUMENTS, PROPOSAL, FakeCore, done, make_card
from tests.fakes.telegram_server import FakeTelegram, Posted
from tests.kit import FakeClock

TEAM = -100200
THERE = Address("telegram", str(TEAM))
LONG = PreviewField("text", None, "x" * 9000)
RARE = (Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.SIMILAR, Verb.EXTEND)


@pytest.fixture(autouse=True)
def team(telegram: FakeTelegram) -> int:
    return telegram.group(TEAM)


async def card_there(channel: TelegramChannel, telegram: FakeTelegram, core: FakeCore, **of: Any) -> Posted:
    await channel.post_card(THERE, core.propose(make_card(**of), THERE))
    return await telegram.see(TEAM, "Close issue")


def only_for(telegram: FakeTelegram, *people: int) -> list[list[str]]:
    """What each of them sees there, besides what everyone does."""
    return [[m.text for m in telegram.seen_by(each, TEAM) if m.receiver] for each in people]


async def test_a_form_is_shown_to_the_one_who_pressed_and_changes_where_it_stands(
    channel, telegram: FakeTelegram, core: FakeCore
):
    card = await card_there(channel, telegram, core)
    await telegram.press(ANA, card, "Edit")
    form = await telegram.see(TEAM, "Which part")
    assert only_for(telegram, ANA, ADMIN) == [[form.text], []]
    await telegram.press(ANA, form, "State: open")
    await telegram.press(ANA, form, "closed")
    core.reply = Reply(Answer.ACCEPTED, "Edited. It needs approval in this form.")
    await telegram.press(ANA, form, "Save")
    assert core.presses[0].arguments == {**ARGUMENTS, "state": "closed"}
    assert (form.text, form.labels) == ("Edited. It needs approval in this form.", [])
    page = telegram.seen_by(ANA, TEAM)[-1]
    assert (page.receiver, page.labels[0]) == (ANA, "Approve")
    assert len(telegram.seen_by(ADMIN, TEAM)) == 1


async def test_a_field_and_a_reason_are_answered_alone(channel, telegram: FakeTelegram, core: FakeCore):
    card = await card_there(channel, telegram, core)
    await telegram.press(ANA, card, "Edit")
    await telegram.press(ANA, await telegram.see(TEAM, "Which part"), "Title: Old title")
    question = await telegram.see(TEAM, "new value for Title")
    assert question.forces_reply
    await telegram.say(ANA, "New", TEAM, reply_to=question)
    assert "Title: Old title → New" in (await telegram.see(TEAM, "not saved yet")).text
    await telegram.press(ANA, card, "Decline with a reason")
    why = await telegram.see(TEAM, "why not?")
    core.reply = Reply(Answer.ACCEPTED, "Declined.")
    await telegram.say(ANA, "not on a Friday", TEAM, reply_to=why)
    told = await telegram.see(TEAM, "Declined.")
    assert [(p.verb, p.reason) for p in core.presses] == [(Verb.DECLINE, "not on a Friday")]
    assert told.receiver == ANA
    assert [m.text for m in telegram.seen_by(ADMIN, TEAM)] == [card.text]


async def test_more_is_a_menu_for_the_one_who_pressed_and_goes_with_the_decision(
    channel, telegram: FakeTelegram, core: FakeCore
):
    card = await card_there(channel, telegram, core, verbs=RARE)
    before = card.labels
    await telegram.press(ANA, card, "⋯ More")
    menu = await telegram.see(TEAM, "More: ")
    assert menu.text == "More: Close issue #7"
    assert menu.labels == ["Approve similar", "Extend", "Decline with a reason", "Copy ID"]
    assert card.labels == before
    assert only_for(telegram, ANA, ADMIN) == [[menu.text], []]
    await telegram.press(ANA, menu, "Extend")
    assert [p.verb for p in core.presses] == [Verb.EXTEND]
    await channel.redraw_card(THERE, f"{TEAM}/{card.message_id}", done(core.cards[PROPOSAL]))
    assert menu.deleted


async def test_everything_is_shown_to_the_one_who_pressed_and_counts_for_them_alone(
    channel, telegram: FakeTelegram, core: FakeCore
):
    card = await card_there(channel, telegram, core, fields=(LONG,))
    await telegram.press(ANA, card, "View all")
    page = telegram.seen_by(ANA, TEAM)[-1]
    assert page.labels[0] == "Approve"
    assert len(telegram.seen_by(ADMIN, TEAM)) == 1
    approve = page.buttons[0]["callback_data"]
    assert (await telegram.press_data(ADMIN, card, approve)).text.startswith("Press View all first")
    assert core.presses == []
    await telegram.press(ADMIN, card, "View all")
    assert page.labels  # each keeps their own
    await telegram.press(ANA, page, "Approve")
    assert [(p.verb, p.actor.key) for p in core.presses] == [(Verb.APPROVE, str(ANA))]
    await channel.redraw_card(THERE, f"{TEAM}/{card.message_id}", done(core.cards[PROPOSAL]))
    assert page.labels == []


async def test_a_forged_press_of_what_another_sees_is_refused(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.press(ANA, await card_there(channel, telegram, core), "Edit")
    form = await telegram.see(TEAM, "Which part")
    query = await telegram.press_data(ADMIN, form, form.buttons[0]["callback_data"])
    assert (query.text, query.alert) == ("I can't find this here.", True)
    assert "Which part" in form.text


async def test_a_message_of_before_a_restart_still_works(
    make_channel: Callable[..., TelegramChannel], telegram: FakeTelegram, core: FakeCore, clock: FakeClock
):
    first = make_channel()
    await first.start(core.inbox, core)
    card = await card_there(first, telegram, core, verbs=RARE)
    await telegram.press(ANA, card, "Edit")
    form = await telegram.see(TEAM, "Which part")
    await telegram.press(ANA, card, "⋯ More")
    menu = await telegram.see(TEAM, "More: ")
    await first.stop()
    clock.forward(timedelta(days=1))
    second = make_channel()
    await second.start(core.inbox, core)
    await telegram.press(ANA, form, "State: open")
    assert "closed" in form.labels
    await telegram.press(ANA, menu, "Extend")
    core.cards[PROPOSAL] = done(core.cards[PROPOSAL])
    core.reply = Reply(Answer.ALREADY, "Already approved by Ben.")
    assert (await telegram.press(ANA, form, "closed")).text == "Already approved by Ben."
    assert menu.deleted
    await second.stop()


@pytest.mark.slow
@pytest.mark.parametrize("label", ["Edit", "Decline with a reason", "⋯ More", "View all"])
@pytest.mark.parametrize("how", ["older", "refused", "late"])
async def test_where_telegram_does_not_do_that_everyone_sees_it_as_before(
    channel, telegram: FakeTelegram, core: FakeCore, seconds: FakeTime, how: str, label: str
):
    of = {"fields": (LONG,)} if label == "View all" else {}
    card = await card_there(channel, telegram, core, **of)

    async def until_late() -> None:
        """The chat's pace lets the next message through once the press was too long ago."""
        for _ in range(20 - len(telegram.shown(TEAM)) if how == "late" else 0):
            await channel.post(THERE, "busy")

    telegram.whispers, telegram.may_whisper = how != "older", how != "refused"
    if label == "Decline with a reason":
        await telegram.press(ANA, card, "⋯ More")
        card = telegram.menu(ANA, TEAM) or card
    await until_late()
    begun = seconds.now
    await telegram.press(ANA, card, label)
    seen = {"Edit": "Which part", "View all": "Risk: write", "Decline with a reason": "why not?"}
    if label in seen:
        assert (await telegram.see(TEAM, seen[label])).receiver is None
    else:
        await telegram.until(lambda: "Copy ID" in card.labels)
        assert not telegram.shown(TEAM, "More: ")
    assert (seconds.now - begun > 15) == (how == "late")


async def test_a_form_that_telegram_dropped_is_shown_again(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_there(channel, telegram, core), "Edit")
    form = await telegram.see(TEAM, "Which part")
    telegram.forgotten = True
    await telegram.press(ANA, form, "State: open")
    again = await telegram.see(TEAM, "new value for State")
    assert (again is not form, again.receiver) == (True, ANA)


async def test_words_for_the_bot_alone_that_answer_nothing_are_no_message_to_the_model(
    channel, telegram: FakeTelegram, core: FakeCore
):
    card = await card_there(channel, telegram, core, verbs=RARE)
    await telegram.press(ANA, card, "⋯ More")
    await telegram.say(ANA, "what is this?", TEAM, reply_to=await telegram.see(TEAM, "More: "))
    told = await telegram.see(TEAM, "Only you and I see this.")
    assert told.receiver == ANA
    assert core.messages == []


async def test_in_a_private_chat_nothing_changes(channel, telegram: FakeTelegram, core: FakeCore):
    here = Address("telegram", str(ANA))
    await channel.post_card(here, core.propose(make_card(), here))
    await telegram.press(ANA, await telegram.see(ANA, "Close issue"), "Edit")
    await telegram.see(ANA, "Which part")
    assert all("ephemeral_message_parameters" not in params for params in telegram.called("sendMessage"))

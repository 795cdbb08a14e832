"""Approve similar over HTTP: one message with all choices; pressed by who began it, across a restart."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from bot.channels.telegram.buttons import ButtonAction, ButtonData
from bot.channels.telegram.channel import TelegramChannel
from bot.domain.chat import Address, Answer, Reply
from bot.domain.preview import PreviewField
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from tests.channels.telegram.conftest import ADMIN, ANA
from tests.channels.telegram.core import PROPOSAL, FakeCore, done, make_card
from tests.fakes.telegram_server import FakeTelegram, Posted
from tests.kit import FakeClock

pytestmark = pytest.mark.slow

HERE = Address("telegram", str(ANA))
TEAM = -100200
TOPIC = Address("telegram", f"{TEAM}/5")
ACTIONS = (Verb.APPROVE, Verb.DECLINE, Verb.EDIT, Verb.EXTEND, Verb.SIMILAR)


async def card_in(
    channel: TelegramChannel, telegram: FakeTelegram, core: FakeCore, at: Address = HERE, **changes
) -> Posted:
    await channel.post_card(at, core.propose(make_card(verbs=ACTIONS, **changes), at))
    return await telegram.see(int(at.key.partition("/")[0]), "Close issue")


def rows(posted: Posted) -> list[list[str]]:
    return [[b["text"] for b in row] for row in posted.markup["inline_keyboard"]]


async def test_the_card_keeps_its_rows(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core)
    assert rows(posted) == [
        ["Approve", "Decline"],
        ["Edit", "⋯ More"],
    ]
    await telegram.press(ANA, posted, "⋯ More")
    assert rows(posted) == [
        ["Approve", "Decline"],
        ["Edit"],
        ["Approve similar", "Extend"],
        ["Decline with a reason"],
        ["Copy ID"],
    ]


async def test_every_step_is_said_in_words_and_the_choice_is_pressed(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar: Close issue #7")
    for words in (
        "1. issue_close with exactly these arguments",
        "2. issue_close with number = 7, whatever the rest",
        "3. issue_close with any arguments",
        "Chosen: 1, for Ana in the conversation where it was asked.",
    ):
        assert words in ladder.text
    assert rows(ladder) == [
        ["✅ 1. with exactly these arguments"],
        ["⬜ 2. with number = 7, whatever the rest"],
        ["⬜ 3. with any arguments"],
        ["✅ Ana in the conversation where it was as…"],
        ["⬜ Ana everywhere"],
        ["As long as this conversation"],
        ["1 hour", "8 hours", "24 hours"],
        ["Cancel"],
    ]
    await telegram.press(ANA, ladder, "⬜ 2. with number = 7, whatever the rest")
    assert "Chosen: 2, for Ana in" in ladder.text
    assert [label for label in ladder.labels if label.startswith("✅")] == [
        "✅ 2. with number = 7, whatever the rest",
        "✅ Ana in the conversation where it was as…",
    ]
    assert core.presses == []
    core.reply = Reply(Answer.ACCEPTED, "Approved. G-1 now allows that.")
    query = await telegram.press(ANA, ladder, "8 hours")
    (press,) = core.presses
    assert (press.verb, press.round, press.rung, press.lasting, press.address) == (
        Verb.SIMILAR,
        1,
        GrantScope.KEY,
        GrantDuration.EIGHT_HOURS,
        HERE,
    )
    assert query.text == ladder.text == "Approved. G-1 now allows that."
    assert ladder.labels == []


async def test_who_chooses_nothing_allows_the_narrowest(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    await telegram.press(ANA, await telegram.see(ANA, "Approve similar"), "1 hour")
    assert [(p.rung, p.reach, p.lasting) for p in core.presses] == [
        (GrantScope.EXACT, GrantAudience.HERE, GrantDuration.HOUR)
    ]


async def test_one_can_cancel(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar")
    await telegram.press(ANA, ladder, "⬜ 3. with any arguments")
    await telegram.press(ANA, ladder, "Cancel")
    assert (ladder.labels, core.presses) == ([], [])


async def test_only_who_began_can_continue(channel, telegram: FakeTelegram, core: FakeCore):
    telegram.group(TEAM)
    telegram.whispers = False
    posted = await card_in(channel, telegram, core, TOPIC)
    await telegram.press(ANA, posted, "Approve similar")
    ladder = await telegram.see(TEAM, "Approve similar")
    assert (await telegram.press(ADMIN, ladder, "⬜ 3. with any arguments")).alert
    await telegram.press(ADMIN, posted, "Approve similar")  # one's own ladder opens no other
    assert (await telegram.press(ADMIN, ladder, "⬜ 3. with any arguments")).alert
    assert (await telegram.press(ADMIN, ladder, "Cancel")).alert
    await telegram.press(ANA, ladder, "✅ 1. with exactly these arguments")
    await telegram.press(ANA, ladder, "1 hour")
    assert [(p.actor.key, p.address) for p in core.presses] == [(str(ANA), TOPIC)]


async def test_it_continues_after_a_restart(
    make_channel: Callable[..., TelegramChannel], telegram: FakeTelegram, core: FakeCore, clock: FakeClock
):
    first = make_channel()
    await first.start(core.inbox, core)
    await telegram.press(ANA, await card_in(first, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar")
    await telegram.press(ANA, ladder, "⬜ 2. with number = 7, whatever the rest")
    await first.stop()
    clock.forward(timedelta(days=1))
    second = make_channel()
    await second.start(core.inbox, core)
    await telegram.press(ANA, ladder, "As long as this conversation")
    assert [(p.rung, p.lasting) for p in core.presses] == [(GrantScope.KEY, GrantDuration.CONVERSATION)]
    await second.stop()


@pytest.mark.parametrize("gone", ["decided", "changed", "rung"])
async def test_what_moved_in_the_meantime_is_not_granted(
    channel, telegram: FakeTelegram, core: FakeCore, gone
):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar")
    await telegram.press(ANA, ladder, "⬜ 3. with any arguments")
    match gone:
        case "decided":
            core.cards[PROPOSAL] = done(core.cards[PROPOSAL])
        case "changed":
            core.cards[PROPOSAL] = make_card(round=2, version=2)
        case _:
            core.rungs.pop()
    told = (await telegram.press(ANA, ladder, "1 hour")).text
    assert told == "This was decided or changed in the meantime."
    assert core.presses == []


async def test_a_choice_that_is_not_offered_grants_nothing(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar")
    for callback in (
        ButtonData(ButtonAction.DURATION, PROPOSAL, 1, 9),
        ButtonData(ButtonAction.DURATION, PROPOSAL, 1),
        ButtonData(ButtonAction.SCOPE, PROPOSAL, 1, 9),
        ButtonData(ButtonAction.SCOPE, PROPOSAL, 1),
        ButtonData(ButtonAction.SAVE, PROPOSAL, 1),
    ):
        assert (await telegram.press_data(ANA, ladder, callback.pack())).text
    assert core.presses == []


async def test_where_nothing_can_be_allowed_it_is_said(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core)
    core.may = False
    assert (await telegram.press(ANA, posted, "Approve similar")).alert
    assert not telegram.shown(ANA, "Approve similar")


async def test_a_cut_card_has_to_be_viewed_first(channel, telegram: FakeTelegram, core: FakeCore):
    posted = await card_in(channel, telegram, core, fields=(PreviewField("f", None, "x" * 5000),))
    assert "Approve similar" not in posted.labels
    begin = ButtonData(ButtonAction.SIMILAR, PROPOSAL, 1).pack()
    assert "View all" in (await telegram.press_data(ANA, posted, begin)).text
    await telegram.press(ANA, posted, "View all")
    whole = (await telegram.until(lambda: [m for m in telegram.shown(ANA) if "Approve similar" in m.labels]))[
        0
    ]
    assert [(opened, str(actor)) for opened, actor in core.opened] == [(PROPOSAL, f"telegram:{ANA}")]
    await telegram.press(ANA, whole, "Approve similar")
    await telegram.see(ANA, "Approve similar")


async def test_words_longer_than_a_message_are_all_shown(channel, telegram: FakeTelegram, core: FakeCore):
    long = "issue_close with title = " + "y" * 5000
    core.rungs[1] = (GrantScope.KEY, long)
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Each step")
    await telegram.press(ANA, ladder, next(label for label in ladder.labels if label.startswith("⬜ 2.")))
    last = await telegram.see(ANA, "Chosen: 2")
    assert ladder.labels == []
    assert "".join(m.text for m in telegram.shown(ANA)).count("y") >= 10000
    await telegram.press(ANA, last, "1 hour")
    assert core.presses[0].rung is GrantScope.KEY


async def test_extend_is_one_press(channel, telegram: FakeTelegram, core: FakeCore):
    core.reply = Reply(Answer.ACCEPTED, "It waits until tomorrow now.")
    query = await telegram.press(ANA, await card_in(channel, telegram, core), "Extend")
    assert query.text == "It waits until tomorrow now."
    assert [(p.verb, p.address) for p in core.presses] == [(Verb.EXTEND, HERE)]


async def test_others_and_other_places_are_chosen_in_plain_words(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.press(ANA, await card_in(channel, telegram, core), "Approve similar")
    ladder = await telegram.see(ANA, "Approve similar")
    await telegram.press(ANA, ladder, "⬜ 3. with any arguments")
    assert "for Ana in the conversation where it was asked" in ladder.text
    await telegram.press(ANA, ladder, "⬜ Ana everywhere")
    assert "for Ana everywhere" in ladder.text
    assert "As long as this conversation" not in ladder.labels  # it reaches beyond it
    await telegram.press(ANA, ladder, "1 hour")
    assert [(p.rung, p.reach, p.lasting) for p in core.presses] == [
        (GrantScope.TOOL, GrantAudience.REQUESTER, GrantDuration.HOUR)
    ]

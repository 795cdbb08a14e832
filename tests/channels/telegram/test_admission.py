"""Who may talk to Nod at all."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from telegram import User

from bot.channels.telegram.admission import Admission
from bot.channels.telegram.places import TelegramPlace
from bot.channels.telegram.text import Rich
from bot.domain.chat import Address
from bot.errors import SettingsError
from bot.settings import Settings
from bot.store.database import Database
from tests.channels.telegram.conftest import ADMIN, ANA, APPROVER
from tests.channels.telegram.core import PROPOSAL, FakeCore, make_card
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock

STRANGER = 555
TEAM = -100200


class SentTexts:
    """Stands for `Transport`: keeps what is sent, by the chat."""

    def __init__(self) -> None:
        self.by_chat: dict[int, list[str]] = {}

    async def send(self, place: TelegramPlace, rich: Rich, _: object = None) -> None:
        self.by_chat.setdefault(place.chat_id, []).append(rich.text)


@pytest.fixture(autouse=True)
def people(telegram: FakeTelegram) -> None:
    telegram.person(STRANGER, "Sam")
    telegram.group(TEAM)


async def test_a_stranger_gets_one_line_however_often_they_write(
    channel, telegram: FakeTelegram, core: FakeCore
):
    for _ in range(3):
        await telegram.say(STRANGER, "hello?")
    await telegram.say(ANA, "known")
    await core.took()
    await telegram.see(STRANGER, "We haven't met")
    await telegram.say(STRANGER, "/help")
    await telegram.say(STRANGER, "hello??")
    await telegram.until(lambda: len(telegram.called("getUpdates")) > 2)
    assert len(telegram.shown(STRANGER)) == 1
    assert [m.text for m in core.messages] == ["known"]
    assert core.commands == []


async def test_an_admin_lets_a_stranger_in_with_a_button(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.say(STRANGER, "hello?")
    code = (await telegram.see(STRANGER, "Your code is")).text.removesuffix(".").split()[-1]
    asked = await telegram.see(ADMIN, code)
    await telegram.press(ADMIN, asked, "Let in")
    await telegram.see(STRANGER, "What can I do")
    assert asked.labels == []
    await telegram.say(STRANGER, "thanks")
    await core.took()
    assert [m.text for m in core.messages] == ["thanks"]


async def test_only_an_admin_can_let_people_in(channel, telegram: FakeTelegram, core: FakeCore):
    await telegram.say(STRANGER, "hello?")
    asked = await telegram.see(ADMIN, "Their code is")
    await telegram.press(STRANGER, asked, "Let in")
    await telegram.press(ADMIN, asked, "Keep out")
    assert not telegram.shown(STRANGER, "What can I do")
    await telegram.say(STRANGER, "please?")
    await telegram.say(ANA, "known")
    await core.took()
    assert [m.text for m in core.messages] == ["known"]


async def test_of_two_admins_who_press_together_one_decides_and_the_other_learns_that(
    make_channel, telegram: FakeTelegram, core: FakeCore
):
    serving = make_channel(NOD_ADMINS=f"telegram:{ADMIN},telegram:{APPROVER}")
    await serving.start(core.inbox, core)
    await telegram.say(STRANGER, "hello?")
    cards = [await telegram.see(admin, "Their code is") for admin in (ADMIN, APPROVER)]
    queries = await asyncio.gather(
        telegram.press(ADMIN, cards[0], "Let in"), telegram.press(APPROVER, cards[1], "Keep out")
    )
    told = sorted(query.text for query in queries)
    assert told[0] in ("Ada has already decided.", "Abe has already decided.")
    assert told[1] == "Done."
    await serving.stop()


async def test_without_an_admin_the_line_says_what_to_do(
    make_channel, telegram: FakeTelegram, core: FakeCore
):
    lonely = make_channel(NOD_ADMINS="")
    await lonely.start(core.inbox, core)
    await telegram.say(STRANGER, "hello?")
    await telegram.see(STRANGER, f"Your Telegram ID is {STRANGER}")
    await lonely.stop()


async def test_where_no_admin_can_be_asked_no_one_says_that_one_was(
    channel, telegram: FakeTelegram, core: FakeCore
):
    telegram.blocked[ADMIN] = "bot can't initiate conversation with a user"
    await telegram.say(STRANGER, "hello?")
    told = await telegram.see(STRANGER, f"Your Telegram ID is {STRANGER}")
    assert "I've asked" not in told.text


async def turn_away(admission: Admission, user_id: int) -> None:
    await admission.turn_away(User(user_id, "Sam", is_bot=False), TelegramPlace(user_id))


async def test_two_processes_with_one_strangers_first_messages_ask_the_admins_once(
    make_settings: Callable[..., Settings], database: Database, clock: FakeClock
) -> None:
    sent = SentTexts()
    processes = [Admission(make_settings(), database, cast(Any, sent), clock) for _ in range(2)]
    await asyncio.gather(*(turn_away(each, STRANGER) for each in processes))
    assert len(sent.by_chat[ADMIN]) == 1
    assert len(sent.by_chat[STRANGER]) == 1


async def test_requests_that_no_admin_answered_close_the_way_to_them_for_a_week(
    make_settings: Callable[..., Settings], database: Database, clock: FakeClock
) -> None:
    sent = SentTexts()
    admission = Admission(make_settings(), database, cast(Any, sent), clock)
    for n in range(21):
        await turn_away(admission, STRANGER + n)
    assert len(sent.by_chat[ADMIN]) == 20
    assert "Your Telegram ID is" in sent.by_chat[STRANGER + 20][0]
    clock.forward(timedelta(days=7, seconds=1))
    await turn_away(admission, STRANGER + 21)
    assert len(sent.by_chat[ADMIN]) == 21
    assert "I've asked an admin" in sent.by_chat[STRANGER + 21][0]


async def test_an_unknown_group_gets_one_line_and_an_allowed_one_is_served(
    make_channel, telegram: FakeTelegram, core: FakeCore
):
    other = telegram.group(-100300)
    serving = make_channel(TELEGRAM_ALLOWED_CHATS=str(TEAM))
    await serving.start(core.inbox, core)
    await telegram.say(STRANGER, "@nod_test_bot a", other)
    await telegram.say(STRANGER, "@nod_test_bot b", other)
    await telegram.say(STRANGER, "@nod_test_bot c", TEAM)
    await core.took()
    await telegram.see(other, "not set up for this group")
    assert len(telegram.shown(other)) == 1
    assert [m.text for m in core.messages] == ["c"]
    await serving.stop()


async def test_a_strangers_press_is_refused_privately(channel, telegram: FakeTelegram, core: FakeCore):
    there = Address("telegram", str(TEAM))
    await channel.post_card(there, core.propose(make_card(), there))
    query = await telegram.press(STRANGER, await telegram.see(TEAM, "Close issue"), "Approve")
    assert query.alert
    assert core.presses == []


async def test_who_a_rule_names_decides_without_being_let_in_and_is_heard_on_nothing_else(
    channel, telegram: FakeTelegram, core: FakeCore
):
    core.named = {f"telegram:{STRANGER}"}
    there = Address("telegram", str(TEAM))
    await channel.post_card(there, core.propose(make_card(), there))
    card = await telegram.see(TEAM, "Close issue")
    await telegram.press(STRANGER, card, "Approve")
    assert [p.actor.key for p in core.presses] == [str(STRANGER)]
    await telegram.press(STRANGER, card, "Decline with a reason")
    question = await telegram.see(TEAM, "Sam, why not?")
    await telegram.say(STRANGER, "not today", TEAM, reply_to=question)
    await core.took(2)
    assert core.presses[-1].reason == "not today"
    await telegram.press(STRANGER, card, "Decline with a reason")
    await telegram.say(STRANGER, "/cancel", TEAM)
    await telegram.see(TEAM, "Cancelled")
    await telegram.say(STRANGER, f"/start {PROPOSAL}")
    await core.took(3)
    assert [c.text for c in core.commands] == [f"show {PROPOSAL}"]
    for words in ("hello?", "/help", f"/show {PROPOSAL[:8]}", f"/cancel {PROPOSAL}", f"/nod {PROPOSAL}"):
        await telegram.say(STRANGER, words)
    await telegram.see(STRANGER, "We haven't met")
    await telegram.say(ANA, "known")
    await core.took(4)
    assert (len(core.commands), [m.text for m in core.messages]) == (1, ["known"])


async def test_anyone_who_writes_as_a_chat_is_asked_to_write_as_themselves(
    make_channel, telegram: FakeTelegram, core: FakeCore
):
    serving = make_channel(TELEGRAM_ALLOWED_CHATS=str(TEAM))
    await serving.start(core.inbox, core)
    await telegram.say(ANA, "@nod_test_bot hello", TEAM, sender_chat=telegram.chats[TEAM])
    await telegram.see(TEAM, "write as yourself".capitalize())
    assert core.taken == []
    await serving.stop()


def test_a_list_with_a_name_in_it_stops_the_start(make_channel):
    with pytest.raises(SettingsError, match="TELEGRAM_ALLOWED_USERS"):
        make_channel(TELEGRAM_ALLOWED_USERS="@ana")

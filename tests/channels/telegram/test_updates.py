"""Updates that the library cannot read: stepped over one by one, so that the others arrive."""

from collections.abc import Callable

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from bot.channels.telegram.channel import TelegramChannel
from bot.domain.chat import Address
from bot.errors import ChannelError
from bot.settings import Settings
from bot.store import events
from bot.store.database import Database
from tests.channels.telegram.conftest import ANA, FakeTime
from tests.channels.telegram.core import FakeCore
from tests.fakes.telegram_server import FakeTelegram
from tests.kit import FakeClock


async def test_what_cannot_be_read_is_left_out_and_everything_around_it_arrives(
    channel, telegram: FakeTelegram, core: FakeCore
):
    with capture_logs() as logs:
        await telegram.say(ANA, "before")
        unreadable = await telegram.say_unreadable(ANA)
        await telegram.say(ANA, "after")
        await core.took(2)
        await telegram.until(
            lambda: any(int(c.get("offset", 0)) > unreadable for c in telegram.called("getUpdates"))
        )
    assert [m.text for m in core.messages] == ["before", "after"]
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert (line["update"], line["kinds"]) == (unreadable, ["message"])


async def test_an_update_of_no_known_shape_does_not_hold_up_the_next(
    channel, telegram: FakeTelegram, core: FakeCore
):
    await telegram.deliver({"message": "text"})
    await telegram.deliver({"callback_query": {"id": 7}})
    await telegram.deliver({"edited_message": {"chat": []}})
    await telegram.say(ANA, "after")
    await core.took()
    assert [m.text for m in core.messages] == ["after"]


async def test_a_kept_update_that_can_no_longer_be_read_does_not_stop_the_start(
    make_channel, telegram: FakeTelegram, core: FakeCore, database: Database, clock: FakeClock
):
    broken = {"update_id": 5, "message": {"text": "no chat"}}
    await database.write(events.record, "telegram", "update:5", broken, clock())
    channel = make_channel()
    await channel.start(core.inbox, core)
    await telegram.say(ANA, "after")
    await core.took()
    assert [m.text for m in core.messages] == ["after"]
    await channel.stop()


async def test_what_the_database_does_not_take_is_handled_once_it_does(
    make_settings: Callable[..., Settings],
    telegram: FakeTelegram,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
):
    async def well_again(_: float) -> None:
        core.fault = None

    channel = TelegramChannel(make_settings(), database, clock, sleep=well_again)
    core.fault = OperationalError("", None, Exception("the database is away"))
    await channel.start(core.inbox, core)
    await telegram.say(ANA, "hello")
    await core.took()
    await channel.stop()
    assert [m.text for m in core.messages] == ["hello"]
    assert await database.read(events.list_unhandled, "telegram") == []


async def test_it_tells_when_telegram_was_heard_and_that_a_silent_one_is_dead(
    make_settings: Callable[..., Settings],
    telegram: FakeTelegram,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
    seconds: FakeTime,
):
    channel = TelegramChannel(make_settings(), database, clock, elapsed=seconds)
    assert channel.hearing().fault == "it isn't connected"
    await channel.start(core.inbox, core)
    assert (channel.hearing().ago, channel.hearing().fault) == (0.0, "")
    seconds.now += 40
    assert (channel.hearing().ago, channel.hearing().fault) == (40.0, "")
    seconds.now += 40
    assert channel.hearing().fault == "nothing heard for 80 s"
    await telegram.say(ANA, "hello")
    await core.took()
    assert (channel.hearing().ago, channel.hearing().fault) == (0.0, "")
    await channel.stop()


async def test_another_program_with_the_same_token_is_told_until_it_is_gone(
    make_settings: Callable[..., Settings],
    telegram: FakeTelegram,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
    seconds: FakeTime,
):
    channel = TelegramChannel(make_settings(), database, clock, elapsed=seconds)
    telegram.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request")
    await channel.start(core.inbox, core)
    await telegram.say(ANA, "hello")
    await core.took()
    assert channel.hearing().fault == "another program polls with this token. Give each its own bot"
    seconds.now += 61
    await telegram.say(ANA, "hello again")
    await core.took(2)
    assert channel.hearing().fault == ""
    await channel.stop()


@pytest.mark.parametrize("status", [401, 404])
async def test_it_polls_again_after_an_answer_that_looks_like_a_wrong_token(
    channel: TelegramChannel, telegram: FakeTelegram, core: FakeCore, status: int
):
    telegram.fail("getUpdates", status, "Unauthorized")
    await telegram.say(ANA, "hello")
    await core.took()
    assert channel.hearing().fault == ""


async def test_a_token_that_is_revoked_is_told_by_whatever_telegram_refuses(
    make_settings: Callable[..., Settings],
    telegram: FakeTelegram,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
    seconds: FakeTime,
):
    settings = make_settings(NOD_PUBLIC_URL="https://nod.example.org")
    channel = TelegramChannel(settings, database, clock, elapsed=seconds)
    await channel.start(core.inbox, core)
    telegram.fail("sendMessage", 401, "Unauthorized", times=2)
    for _ in range(2):
        with pytest.raises(ChannelError):
            await channel.post(Address("telegram", str(ANA)), "hello")
        assert channel.hearing().fault == "Telegram no longer accepts TELEGRAM_BOT_TOKEN"
        seconds.now += 61
        assert channel.hearing().fault == ""  # nothing asked Telegram since
    await channel.stop()


async def test_by_webhook_a_telegram_that_has_nothing_to_say_is_no_fault(
    make_channel: Callable[..., TelegramChannel], core: FakeCore
):
    channel = make_channel(NOD_PUBLIC_URL="https://nod.example.org")
    await channel.start(core.inbox, core)
    assert (channel.hearing().ago, channel.hearing().fault) == (None, "")
    await channel.stop()

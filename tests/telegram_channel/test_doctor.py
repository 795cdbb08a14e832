"""What the doctor sees and which mend it names."""

from bot.channels.telegram.doctor import check
from tests.fakes.telegram_server import FakeTelegram


def found(findings, words):
    return next(f for f in findings if words in f.name)


async def test_all_is_well(make_settings, telegram: FakeTelegram):
    findings = await check(make_settings())
    assert all(f.ok and not f.mend for f in findings)
    assert found(findings, "@nod_test_bot")


async def test_a_wrong_token_and_a_dead_server_have_different_mends(make_settings):
    (wrong,) = await check(make_settings(TELEGRAM_BOT_TOKEN="1:x"))
    (dead,) = await check(make_settings(TELEGRAM_API_URL="http://127.0.0.1:9"))
    assert (wrong.ok, dead.ok) == (False, False)
    assert "BotFather" in wrong.mend
    assert "TELEGRAM_API_URL" in dead.mend


async def test_a_webhook_that_does_not_fit_the_settings_is_named(make_settings, telegram: FakeTelegram):
    telegram.webhook = {"url": "https://elsewhere.example/x"}
    assert not found(await check(make_settings()), "elsewhere").ok
    assert not found(await check(make_settings(NOD_PUBLIC_URL="https://nod.example")), "elsewhere").ok


async def test_privacy_mode_off_and_nobody_admitted_are_named(make_settings, telegram: FakeTelegram):
    telegram.privacy = False
    findings = await check(make_settings(NOD_ADMINS="", TELEGRAM_ALLOWED_USERS=""))
    assert "setprivacy" in found(findings, "privacy mode: off").mend
    assert not found(findings, "nobody may talk").ok


async def test_without_a_token_there_is_nothing_to_check(make_settings):
    (only,) = await check(make_settings(TELEGRAM_BOT_TOKEN=None))
    assert only.ok

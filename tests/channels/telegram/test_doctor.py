"""What the doctor sees and which fix it names."""

import pytest

from bot.channels.telegram.doctor import check
from bot.channels.telegram.kind import KIND
from bot.channels.telegram.webhook import find_webhook_fault
from bot.domain.doctor_findings import Health
from tests.fakes.telegram_server import FakeTelegram


def found(findings, words):
    return next(f for f in findings if words in f.name)


async def test_all_is_well(make_settings, telegram: FakeTelegram):
    findings = await check(make_settings())
    assert all(not f.failed and not f.fix for f in findings)
    assert found(findings, "@nod_test_bot")


async def test_a_wrong_token_and_a_dead_server_have_different_fixes(make_settings):
    (wrong,) = await check(make_settings(TELEGRAM_BOT_TOKEN="1:x"))
    (dead,) = await check(make_settings(TELEGRAM_API_URL="http://127.0.0.1:9"))
    assert wrong.failed
    assert dead.failed
    assert "BotFather" in wrong.fix
    assert "TELEGRAM_API_URL" in dead.fix


async def test_a_webhook_that_does_not_fit_the_settings_is_named(make_settings, telegram: FakeTelegram):
    telegram.webhook = {"url": "https://elsewhere.example/x"}
    assert found(await check(make_settings()), "elsewhere").health is not Health.OK
    moved = await check(make_settings(NOD_PUBLIC_URL="https://nod.example"))
    assert found(moved, "elsewhere").health is not Health.OK


async def test_a_webhook_without_https_is_named(make_settings, telegram: FakeTelegram):
    del telegram
    settings = make_settings(NOD_PUBLIC_URL="http://nod.example", TELEGRAM_API_URL="https://api.telegram.org")
    assert "https only" in find_webhook_fault(settings)


async def test_privacy_mode_off_and_no_one_admitted_are_named(make_settings, telegram: FakeTelegram):
    telegram.privacy = False
    findings = await check(make_settings(NOD_ADMINS="", NOD_APPROVERS="", TELEGRAM_ALLOWED_USERS=""))
    assert "setprivacy" in found(findings, "privacy mode: off").fix
    assert found(findings, "no one may talk").health is not Health.OK


async def test_without_a_token_there_is_nothing_to_check(make_settings):
    (only,) = await KIND.check(make_settings(TELEGRAM_BOT_TOKEN=None))
    assert not only.failed


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("NOD_ADMINS", "telegram:@ana", "NOD_ADMINS: '@ana' is not a Telegram id"),
        ("TELEGRAM_ALLOWED_USERS", "@bob", "TELEGRAM_ALLOWED_USERS: '@bob' is not a Telegram id"),
        ("TELEGRAM_WEBHOOK_SECRET", "no spaces", "TELEGRAM_WEBHOOK_SECRET"),
    ],
)
async def test_the_doctor_refuses_what_a_start_refuses(make_settings, setting, value, words):
    findings = await check(make_settings(**{setting: value}))
    assert any(f.failed and words in f.fix for f in findings)
    assert found(findings, "token: @nod_test_bot")

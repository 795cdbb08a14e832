"""Checks of Telegram for `nod doctor`: the token, the webhook, and what the bot may read in groups."""

from collections.abc import Sequence

from telegram import Bot, User, WebhookInfo
from telegram.error import InvalidToken, TelegramError

from bot.channels.kinds import look_at_places
from bot.channels.telegram.admission import AllowList
from bot.channels.telegram.places import TelegramPlace
from bot.channels.telegram.transport import send_typing
from bot.channels.telegram.webhook import WEBHOOK_PATH, find_webhook_fault, make_webhook_secret
from bot.domain.chat import Address
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.errors import SettingsError
from bot.settings import Settings

_MANY_PENDING_UPDATES = 50  # with more of them waiting at Telegram, the doctor mentions it


async def check(settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
    """Check the settings, and ask Telegram about them and about the places where Nod is to post.

    Never raises for an answer of Telegram.
    """
    findings = _check_settings(settings)
    token = settings.telegram_bot_token
    if token:
        findings += await _ask_telegram(settings, token.get_secret_value(), places)
    return findings


def _check_settings(settings: Settings) -> list[Finding]:
    """Check for faults with which Nod would not start."""
    findings = []
    try:
        AllowList.from_settings(settings)
    except SettingsError as error:
        findings.append(fail("Telegram accounts", error.message))
    try:
        make_webhook_secret(settings, "")
    except SettingsError as error:
        findings.append(fail("Telegram webhook secret", error.message))
    return findings


async def _ask_telegram(settings: Settings, token: str, places: Sequence[Address]) -> list[Finding]:
    root = settings.telegram_api_url.rstrip("/")
    bot = Bot(token, f"{root}/bot", f"{root}/file/bot")
    try:
        async with bot:
            return [
                *_check_identity(bot.bot, settings),
                *_check_webhook(await bot.get_webhook_info(), settings),
                *await look_at_places(places, lambda place: send_typing(bot, TelegramPlace.of(place))),
            ]
    except InvalidToken:
        return [fail("Telegram token", "Set TELEGRAM_BOT_TOKEN to what @BotFather gave you.")]
    except TelegramError as error:
        fix = f"{root} did not answer ({type(error).__name__}). Check the network and TELEGRAM_API_URL."
        return [fail("Telegram connection", fix)]


def _check_identity(me: User, settings: Settings) -> list[Finding]:
    findings = [ok(f"Telegram token: @{me.username}")]
    if not me.can_join_groups:
        fix = "To use it in groups: @BotFather, /setjoingroups, Enable."
        findings.append(ok("Telegram groups: can't be added", fix))
    elif me.can_read_all_group_messages:
        fix = "The model gets what was said before a mention. To stop that: @BotFather, /setprivacy, Enable."
        findings.append(warn("Telegram privacy mode: off, it receives every group message", fix))
    else:
        findings.append(ok("Telegram privacy mode: on"))
    admitted = (*settings.telegram_allowed_users, *settings.telegram_allowed_chats)
    accounts = (*settings.admins, *settings.approvers, *settings.approver_chats)
    if not admitted and not any(account.startswith("telegram:") for account in accounts):
        fix = "Set TELEGRAM_ALLOWED_USERS, or NOD_ADMINS=telegram:ID so that an admin can let people in."
        findings.append(fail("Telegram: no one may talk to Nod", fix))
    return findings


def _check_webhook(state: WebhookInfo, settings: Settings) -> list[Finding]:
    findings = []
    wanted = settings.public_url.rstrip("/") + WEBHOOK_PATH if settings.public_url else ""
    fault = find_webhook_fault(settings)
    if fault:
        findings.append(fail("Telegram webhook: NOD_PUBLIC_URL", fault))
    elif wanted and state.url != wanted:
        fix = f"Start Nod once, it sets {wanted}."
        findings.append(warn(f"Telegram webhook: {state.url or 'none'}", fix))
    elif not wanted and state.url:
        fix = "Another program may use this bot. Starting Nod takes the webhook away and polls."
        findings.append(fail(f"Telegram webhook: {state.url}", fix))
    else:
        findings.append(ok(f"Telegram updates: {'webhook' if wanted else 'long polling'}"))
    if state.url and state.last_error_message:
        fix = f"Telegram could not deliver: {state.last_error_message}. Check that NOD_PUBLIC_URL leads here."
        findings.append(fail("Telegram webhook delivery", fix))
    if state.pending_update_count > _MANY_PENDING_UPDATES:
        fix = "They are handled once Nod runs."
        findings.append(ok(f"Telegram: {state.pending_update_count} updates wait", fix))
    return findings

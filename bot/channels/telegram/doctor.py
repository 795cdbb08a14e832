"""Whether Telegram will work: the token, the webhook or its absence, what the bot may read in groups."""

from dataclasses import dataclass

from telegram import Bot, User, WebhookInfo
from telegram.error import InvalidToken, TelegramError

from bot.channels.telegram.channel import WEBHOOK
from bot.settings import Settings

_PENDING = 50  # updates that wait at Telegram before it is worth a word


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; ``mend`` says what to do and is empty where nothing is to be done."""

    name: str
    ok: bool
    mend: str = ""


async def check(settings: Settings) -> list[Finding]:
    """Ask Telegram; never raises for what Telegram or the network says."""
    if settings.telegram_bot_token is None:
        return [Finding("Telegram", ok=True, mend="Not set up: set TELEGRAM_BOT_TOKEN to use it.")]
    root = settings.telegram_api_url.rstrip("/")
    bot = Bot(settings.telegram_bot_token.get_secret_value(), f"{root}/bot", f"{root}/file/bot")
    try:
        async with bot:
            return [*_identity(bot.bot, settings), *_webhook(await bot.get_webhook_info(), settings)]
    except InvalidToken:
        return [
            Finding("Telegram token", ok=False, mend="Set TELEGRAM_BOT_TOKEN to what @BotFather gave you.")
        ]
    except TelegramError as error:
        mend = f"{root} did not answer ({type(error).__name__}). Check the network and TELEGRAM_API_URL."
        return [Finding("Telegram connection", ok=False, mend=mend)]


def _identity(me: User, settings: Settings) -> list[Finding]:
    found = [Finding(f"Telegram token: @{me.username}", ok=True)]
    if not me.can_join_groups:
        mend = "To use it in groups: @BotFather, /setjoingroups, Enable."
        found.append(Finding("Telegram groups: cannot be added", ok=True, mend=mend))
    elif me.can_read_all_group_messages:
        mend = "Nod only answers mentions, replies and commands: @BotFather, /setprivacy, Enable."
        found.append(
            Finding("Telegram privacy mode: off, it receives every group message", ok=True, mend=mend)
        )
    else:
        found.append(Finding("Telegram privacy mode: on", ok=True))
    admitted = (*settings.telegram_allowed_users, *settings.telegram_allowed_chats)
    accounts = (*settings.admins, *settings.approvers, *settings.approver_chats)
    if not admitted and not any(a.startswith("telegram:") for a in accounts):
        mend = "Set TELEGRAM_ALLOWED_USERS, or NOD_ADMINS=telegram:ID so that an admin can let people in."
        found.append(Finding("Telegram: nobody may talk to Nod", ok=False, mend=mend))
    return found


def _webhook(state: WebhookInfo, settings: Settings) -> list[Finding]:
    found = []
    wanted = settings.public_url.rstrip("/") + WEBHOOK if settings.public_url else ""
    if wanted and state.url != wanted:
        mend = f"Start Nod once, it sets {wanted}."
        found.append(Finding(f"Telegram webhook: {state.url or 'none'}", ok=False, mend=mend))
    elif not wanted and state.url:
        mend = "Another program may use this bot. Starting Nod takes the webhook away and polls."
        found.append(Finding(f"Telegram webhook: {state.url}", ok=False, mend=mend))
    else:
        found.append(Finding(f"Telegram updates: {'webhook' if wanted else 'long polling'}", ok=True))
    if state.url and state.last_error_message:
        mend = (
            f"Telegram could not deliver: {state.last_error_message}. Check that NOD_PUBLIC_URL leads here."
        )
        found.append(Finding("Telegram webhook delivery", ok=False, mend=mend))
    if state.pending_update_count > _PENDING:
        mend = "They are handled once Nod runs."
        found.append(Finding(f"Telegram: {state.pending_update_count} updates wait", ok=True, mend=mend))
    return found

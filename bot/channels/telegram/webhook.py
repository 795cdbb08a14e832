"""The webhook to which Telegram posts updates: its address, its secret, and the faults of its settings."""

import hashlib
import hmac
import re

from bot.errors import SettingsError
from bot.settings import Settings

WEBHOOK_PATH = "/telegram/webhook"
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
_SECRET_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,256}")

_CLOUD_ORIGIN = "https://api.telegram.org"  # another Bot API server may take http


def find_webhook_fault(settings: Settings) -> str:
    """Return why Telegram would refuse the webhook, and how to fix it; empty if it would not."""
    url = settings.public_url
    is_cloud = settings.telegram_api_url.startswith(_CLOUD_ORIGIN)
    if not url or url.startswith("https://") or not is_cloud:
        return ""
    return f"Telegram takes a webhook over https only, and this is {url}. Leave it empty for long polling."


def make_webhook_secret(settings: Settings, token: str) -> str:
    """Return the secret that Telegram sends with every update: from the settings, or made of the token.

    Raises SettingsError if the setting has other characters than Telegram allows.
    """
    if settings.telegram_webhook_secret is None:
        return hmac.new(token.encode(), b"telegram webhook", hashlib.sha256).hexdigest()
    secret = settings.telegram_webhook_secret.get_secret_value()
    if not _SECRET_PATTERN.fullmatch(secret):
        raise SettingsError("TELEGRAM_WEBHOOK_SECRET: 1 to 256 of A-Z, a-z, 0-9, _ and -")
    return secret

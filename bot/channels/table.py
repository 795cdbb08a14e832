"""The chat platforms that Nod knows. A new one is its folder and one line here."""

from bot.channels.discord.kind import KIND as DISCORD
from bot.channels.slack.kind import KIND as SLACK
from bot.channels.telegram.kind import KIND as TELEGRAM
from bot.errors import SettingsError
from bot.settings import Settings

CHANNELS = (SLACK, TELEGRAM, DISCORD)


def require_admin(settings: Settings) -> None:
    """Raises SettingsError where people could reach Nod and no one could set it right."""
    reached = settings.http_tokens or any(kind.configured(settings) for kind in CHANNELS)
    if reached and not settings.admins:
        examples = ", ".join(kind.example for kind in CHANNELS)
        raise SettingsError(
            f"NOD_ADMINS: name at least one account that may set the rules, such as {examples} or http:ana"
        )

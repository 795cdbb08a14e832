"""What the doctor says of Discord before there is anything to ask it."""

from bot.channels.discord.doctor import check
from bot.domain.chat import Address
from bot.settings import Settings


async def test_without_a_token_discord_is_not_asked_about_places() -> None:
    settings = Settings(
        _env_file=None,
        DISCORD_API_URL="http://127.0.0.1:1",
        DISCORD_PUBLIC_KEY="0" * 64,
        DISCORD_APPLICATION_ID="1",
        DISCORD_SERVERS="2",
    )
    findings = await check(settings, [Address("discord", "3"), Address("discord", "4")])
    assert [finding.name for finding in findings] == ["DISCORD_BOT_TOKEN"]

"""Is the Discord application set up? Every fault comes with its fix."""

import re
from collections.abc import Sequence

from bot.channels.discord.places import INTERACTIONS, DiscordPlace
from bot.channels.discord.transport import DiscordRest
from bot.channels.kinds import look_at_places
from bot.domain.chat import Address
from bot.domain.findings import Finding, fail, ok
from bot.errors import ChannelError
from bot.settings import Settings

_APP = "discord.com/developers/applications, your app"
_KEY = re.compile(r"[0-9a-f]{64}")
_FIXES = {
    "DISCORD_BOT_TOKEN": f"Copy the token from {_APP}, Bot.",
    "DISCORD_PUBLIC_KEY": f"Copy the Public Key (64 characters) from {_APP}, General Information.",
    "DISCORD_APPLICATION_ID": f"Copy the Application ID from {_APP}, General Information.",
    "DISCORD_SERVERS": "Name the IDs of the servers whose members may talk to Nod (Copy Server ID).",
}


def local(settings: Settings) -> list[Finding]:
    """Check the settings alone; a start is refused for a fault."""
    servers = settings.discord_servers
    good = (
        settings.discord_bot_token,
        _KEY.fullmatch(settings.discord_public_key),
        settings.discord_application_id.isdecimal(),
        servers and all(map(str.isdecimal, servers)),
    )
    return [fail(name, fix) for fits, (name, fix) in zip(good, _FIXES.items(), strict=True) if not fits]


async def check(settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
    """Look at the Discord settings and ask Discord about them, and about the places where Nod is to post."""
    rest = DiscordRest(settings)
    try:
        asked = local(settings) or await _ask_discord(settings, rest)
        return [*asked, *await look_at_places(places, lambda each: rest.check(DiscordPlace.of(each)))]
    except ChannelError as error:
        return [fail("Discord", f"{error.message}. Check DISCORD_BOT_TOKEN and DISCORD_API_URL.")]
    finally:
        await rest.close()


async def _ask_discord(settings: Settings, rest: DiscordRest) -> list[Finding]:
    app = await rest.call("GET", "/applications/@me")
    url = f"{(settings.public_url or 'https://YOUR-ADDRESS').rstrip('/')}{INTERACTIONS}"
    findings = [ok(f"Discord token: {app.get('name')}")]
    for name, given, theirs in (
        ("DISCORD_APPLICATION_ID", settings.discord_application_id, app.get("id")),
        ("DISCORD_PUBLIC_KEY", settings.discord_public_key, app.get("verify_key")),
    ):
        if given != theirs:
            findings.append(fail(name, f"It is not that of the token's application. Set it to {theirs}."))
    if app.get("interactions_endpoint_url") != url:
        fix = f"Start Nod, then set Interactions Endpoint URL to {url} at {_APP}, General Information."
        findings.append(fail("Discord interactions", fix))
    for server in settings.discord_servers:
        try:
            await rest.call("GET", f"/guilds/{server}")
        except ChannelError:
            findings.append(fail(f"Discord server {server}", f"Install the app there: {_APP}, Installation."))
    return findings

"""Checks of the Discord application for `nod doctor`. Every fault comes with its fix."""

import re
from collections.abc import Sequence

from bot.channels.discord.places import INTERACTIONS, DiscordPlace
from bot.channels.discord.transport import DiscordRest
from bot.channels.kinds import look_at_places
from bot.domain.chat import Address
from bot.domain.doctor_findings import Finding, fail, ok
from bot.errors import ChannelError
from bot.settings import Settings

_APP = "discord.com/developers/applications, your app"
_KEY = re.compile(r"[0-9a-f]{64}")  # a public key in hexadecimal


def check_settings(settings: Settings) -> list[Finding]:
    """Check the settings alone, and return the faults: Nod does not start with any."""
    faults = []
    if not settings.discord_bot_token:
        faults.append(fail("DISCORD_BOT_TOKEN", f"Copy the token from {_APP}, Bot."))
    if not _KEY.fullmatch(settings.discord_public_key):
        fix = f"Copy the Public Key (64 characters) from {_APP}, General Information."
        faults.append(fail("DISCORD_PUBLIC_KEY", fix))
    if not settings.discord_application_id.isdecimal():
        fix = f"Copy the Application ID from {_APP}, General Information."
        faults.append(fail("DISCORD_APPLICATION_ID", fix))
    servers = settings.discord_servers
    if not servers or not all(server.isdecimal() for server in servers):
        fix = "Name the IDs of the servers whose members may talk to Nod (Copy Server ID)."
        faults.append(fail("DISCORD_SERVERS", fix))
    return faults


async def check(settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
    """Check the settings, and ask Discord about them and about the places where Nod is to post.

    The application is not asked about while a setting is at fault; without a token Discord is asked nothing.
    """
    faults = check_settings(settings)
    if not settings.discord_bot_token:
        return faults
    rest = DiscordRest(settings)
    try:
        findings = faults or await _check_application(settings, rest)
        return findings + await look_at_places(
            places, lambda place: rest.check_may_post(DiscordPlace.of(place))
        )
    except ChannelError as error:
        return [fail("Discord", f"{error.message}. Check DISCORD_BOT_TOKEN and DISCORD_API_URL.")]
    finally:
        await rest.close()


async def _check_application(settings: Settings, rest: DiscordRest) -> list[Finding]:
    """Compare the settings with what Discord knows of the token's application and its servers."""
    app = await rest.call("GET", "/applications/@me")
    url = f"{(settings.public_url or 'https://YOUR-ADDRESS').rstrip('/')}{INTERACTIONS}"
    findings = [ok(f"Discord token: {app.get('name')}")]
    for name, given, expected in (
        ("DISCORD_APPLICATION_ID", settings.discord_application_id, app.get("id")),
        ("DISCORD_PUBLIC_KEY", settings.discord_public_key, app.get("verify_key")),
    ):
        if given != expected:
            findings.append(fail(name, f"It is not that of the token's application. Set it to {expected}."))
    if app.get("interactions_endpoint_url") != url:
        fix = f"Start Nod, then set Interactions Endpoint URL to {url} at {_APP}, General Information."
        findings.append(fail("Discord interactions", fix))
    for server in settings.discord_servers:
        try:
            await rest.call("GET", f"/guilds/{server}")
        except ChannelError:
            findings.append(fail(f"Discord server {server}", f"Install the app there: {_APP}, Installation."))
    return findings

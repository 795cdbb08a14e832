"""Is the Slack app set up? Every fault comes with its mend."""

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.channels.slack.faults import code_of
from bot.channels.slack.manifest import SCOPES
from bot.channels.slack.workspaces import make_client
from bot.domain.findings import Finding
from bot.settings import Settings

_WHERE = "api.slack.com/apps, your app"


async def check(settings: Settings) -> list[Finding]:
    """Look at the Slack settings and ask Slack about them; empty where Slack is not set up at all."""
    tokens = (settings.slack_bot_token, settings.slack_app_token, settings.slack_client_id)
    if not any(tokens):
        return []
    findings = [_transport(settings)]
    if settings.slack_bot_token is not None:
        findings += await _bot_token(settings, settings.slack_bot_token.get_secret_value())
    elif not settings.slack_client_id:
        mend = f"set SLACK_BOT_TOKEN to the Bot User OAuth Token (xoxb-…) from {_WHERE}, OAuth & Permissions"
        findings.append(Finding("Slack bot token", ok=False, mend=mend))
    if settings.slack_app_token is not None:
        findings.append(await _app_token(settings, settings.slack_app_token.get_secret_value()))
    if settings.slack_client_id:
        findings.append(_oauth(settings))
    return findings


def _transport(settings: Settings) -> Finding:
    if settings.slack_app_token is not None:
        return Finding("Slack transport: Socket Mode", ok=True)
    if settings.slack_signing_secret is not None:
        return Finding("Slack transport: HTTP at /slack/events", ok=True)
    mend = (
        "set SLACK_APP_TOKEN (xapp-…, scope connections:write) for Socket Mode, "
        "or SLACK_SIGNING_SECRET for HTTP; without one nothing arrives from Slack"
    )
    return Finding("Slack transport", ok=False, mend=mend)


def _oauth(settings: Settings) -> Finding:
    if settings.slack_client_secret is None:
        mend = f"set SLACK_CLIENT_SECRET from {_WHERE}, Basic Information"
        return Finding("Slack install flow", ok=False, mend=mend)
    if settings.public_url is None:
        mend = "set NOD_PUBLIC_URL to the https address people reach /slack/install at"
        return Finding("Slack install flow", ok=False, mend=mend)
    return Finding("Slack install flow: /slack/install", ok=True)


async def _bot_token(settings: Settings, token: str) -> list[Finding]:
    try:
        found = await make_client(settings, token).auth_test()
    except SlackApiError as error:
        mend = f"Slack says {code_of(error)}; copy the Bot User OAuth Token (xoxb-…) again from {_WHERE}"
        return [Finding("Slack bot token", ok=False, mend=mend)]
    except (SlackClientError, aiohttp.ClientError, OSError) as error:
        mend = f"{settings.slack_api_url} cannot be reached ({error}); check the network and SLACK_API_URL"
        return [Finding("Slack reachable", ok=False, mend=mend)]
    who = Finding(f"Slack bot token: {found.get('user')} in {found.get('team')}", ok=True)
    headers = {str(k).lower(): v for k, v in (found.headers or {}).items()}
    return [who, _scopes(headers.get("x-oauth-scopes"))]


def _scopes(header: str | None) -> Finding:
    if header is None:
        return Finding(
            "Slack scopes", ok=False, mend="Slack did not say which scopes the token has; try again"
        )
    granted = {scope.strip() for scope in header.split(",")}
    missing = [scope for scope in SCOPES if scope not in granted]
    if missing:
        mend = f"missing: {', '.join(missing)}; paste manifest.yml as the app's manifest and install it again"
        return Finding("Slack scopes", ok=False, mend=mend)
    return Finding("Slack scopes", ok=True)


async def _app_token(settings: Settings, token: str) -> Finding:
    name = "Slack app token"
    if not token.startswith("xapp-"):
        return Finding(name, ok=False, mend="SLACK_APP_TOKEN is the App-Level Token and begins with xapp-")
    try:
        await make_client(settings, None).apps_connections_open(app_token=token)
    except SlackApiError as error:
        mend = (
            f"Slack says {code_of(error)}; make an App-Level Token with connections:write at {_WHERE}, "
            "Basic Information, and turn Socket Mode on"
        )
        return Finding(name, ok=False, mend=mend)
    except (SlackClientError, aiohttp.ClientError, OSError) as error:
        return Finding(name, ok=False, mend=f"Slack cannot be reached: {error}")
    return Finding(name, ok=True)

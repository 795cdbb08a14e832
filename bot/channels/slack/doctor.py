"""The doctor's checks of the Slack app: its settings, tokens and scopes. Every fault comes with its fix."""

import re
from collections.abc import Sequence

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from bot.channels.kinds import look_at_places
from bot.channels.slack.client import make_client
from bot.channels.slack.errors import code_of, translate_errors
from bot.channels.slack.manifest import SCOPES
from bot.channels.slack.places import SlackPlace
from bot.channels.slack.posting import check_place
from bot.channels.slack.workspaces import organisation_of
from bot.domain.chat import Address
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.settings import Settings

_WHERE = "api.slack.com/apps, your app"  # the page with the tokens


async def check(settings: Settings, places: Sequence[Address] = ()) -> list[Finding]:
    """Look at the Slack settings and ask Slack about them, and about the places where Nod is to post."""
    findings = check_settings(settings)
    if settings.slack_bot_token is not None:
        token = settings.slack_bot_token.get_secret_value()
        findings += await _check_bot_token(settings, token)
        client = make_client(settings, token)

        async def check_one_place(address: Address) -> None:
            with translate_errors():
                await check_place(client, SlackPlace.of(address))

        findings += await look_at_places(places, check_one_place)
    if settings.slack_app_token is not None:
        findings.append(await _check_app_token(settings, settings.slack_app_token.get_secret_value()))
    if settings.slack_client_id and settings.slack_client_secret:
        findings.append(_check_install_flow(settings))
    return findings


def check_settings(settings: Settings) -> list[Finding]:
    """Check the settings alone, without asking Slack. Nod does not start while any of them is at fault."""
    findings = [_check_transport(settings)]
    if settings.slack_bot_token is None and not settings.slack_client_id:
        fix = f"set SLACK_BOT_TOKEN to the Bot User OAuth Token (xoxb-…) from {_WHERE}, OAuth & Permissions"
        findings.append(fail("Slack bot token", fix))
    if settings.slack_client_id and settings.slack_client_secret is None:
        fix = f"set SLACK_CLIENT_SECRET from {_WHERE}, Basic Information"
        findings.append(fail("Slack install flow", fix))
    return findings


def _check_transport(settings: Settings) -> Finding:
    if settings.slack_app_token is not None:
        return ok("Slack transport: Socket Mode")
    if settings.slack_signing_secret is not None:
        return ok("Slack transport: HTTP at /slack/events")
    fix = (
        "set SLACK_APP_TOKEN (xapp-…, scope connections:write) for Socket Mode, "
        "or SLACK_SIGNING_SECRET for HTTP; without one nothing arrives from Slack"
    )
    return fail("Slack transport", fix)


def _check_install_flow(settings: Settings) -> Finding:
    if settings.public_url is None:
        fix = "set NOD_PUBLIC_URL to the https address people reach /slack/install at"
        return fail("Slack install flow", fix)
    return ok("Slack install flow: /slack/install")


async def _check_bot_token(settings: Settings, token: str) -> list[Finding]:
    if not token.startswith("xoxb-"):
        fix = f"SLACK_BOT_TOKEN begins with xoxb-; copy it from {_WHERE}, OAuth & Permissions"
        return [fail("Slack bot token", fix)]
    try:
        response = await make_client(settings, token).auth_test()
    except SlackApiError as error:
        fix = f"Slack says {code_of(error)}; copy the Bot User OAuth Token (xoxb-…) again from {_WHERE}"
        return [fail("Slack bot token", fix)]
    except (SlackClientError, aiohttp.ClientError, OSError) as error:
        fix = f"{settings.slack_api_url} cannot be reached ({error}); check the network and SLACK_API_URL"
        return [fail("Slack reachable", fix)]
    who = ok(f"Slack bot token: {response.get('user')} in {response.get('team')}")
    headers = {str(name).lower(): value for name, value in (response.headers or {}).items()}
    scopes = _check_scopes(headers.get("x-oauth-scopes"))
    organisation = organisation_of(response)
    if organisation:
        return [who, scopes, *_check_accounts(settings, organisation, "organisation")]
    return [who, scopes, *_check_accounts(settings, str(response.get("team_id")), "workspace")]


def _check_accounts(settings: Settings, team: str, kind: str) -> list[Finding]:
    """Return a fault for accounts in the settings outside the workspace or organisation of the token.

    No person has such an account there, so the setting has no effect.
    """
    accounts = (*settings.admins, *settings.approvers, *settings.approver_chats)
    in_slack = [account for account in accounts if account.startswith("slack:")]
    others = [account for account in in_slack if not _is_in(account, team)]
    if not others:
        return []
    fix = f"write slack:{team}/U… (a member's profile, ⋮, Copy member ID); this {kind} is {team}"
    return [fail(f"Slack accounts {', '.join(others)}", fix)]


def _is_in(account: str, team: str) -> bool:
    return re.fullmatch(rf"slack:{re.escape(team)}/[A-Z0-9]+", account) is not None


def _check_scopes(header: str | None) -> Finding:
    if header is None:
        return fail("Slack scopes", "Slack did not say which scopes the token has; try again")
    granted = {scope.strip() for scope in header.split(",")}
    missing = [scope for scope in SCOPES if scope not in granted]
    if missing == ["usergroups:read"]:
        return warn("Slack scopes", "rules can't name user groups without usergroups:read; see manifest.yml")
    if missing:
        fix = f"missing: {', '.join(missing)}; paste manifest.yml as the app's manifest and install it again"
        return fail("Slack scopes", fix)
    return ok("Slack scopes")


async def _check_app_token(settings: Settings, token: str) -> Finding:
    name = "Slack app token"
    if not token.startswith("xapp-"):
        return fail(name, "SLACK_APP_TOKEN is the App-Level Token and begins with xapp-")
    try:
        await make_client(settings, None).apps_connections_open(app_token=token)
    except SlackApiError as error:
        fix = (
            f"Slack says {code_of(error)}; make an App-Level Token with connections:write at {_WHERE}, "
            "Basic Information, and turn Socket Mode on"
        )
        return fail(name, fix)
    except (SlackClientError, aiohttp.ClientError, OSError) as error:
        return fail(name, f"Slack cannot be reached: {error}")
    return ok(name)

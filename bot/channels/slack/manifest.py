"""The manifest of the Slack app: its name, scopes, events and commands, to paste when creating the app.

``manifest.yml`` in the repository is the output of `manifest_yaml()`.
"""

import json
from typing import Any

SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "im:history",
    "im:write",
    "mpim:history",
    "usergroups:read",
    "users:read",
)
EVENTS = (
    "agent_session_stopped",
    "app_home_opened",
    "app_mention",
    "app_uninstalled",
    "channel_id_changed",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "tokens_revoked",
)
PROMPTS = (
    ("What can you do?", "What can you do, and what do you ask before doing?"),
    ("What's waiting for me?", "Which proposals are waiting for a decision?"),
)
_COMMANDS = (
    ("/nod", "Talk about Nod itself", "help | status | team | link"),
    (
        "/approvals",
        "Decide proposals and set the rules (admins)",
        "list | show ID | approve ID | decline ID | cancel ID | policy | grants | audit | pause | help",
    ),
)
_DESCRIPTION = (
    "A teammate that does real work through tools and asks, with buttons, before it changes anything."
)


def manifest(http: str | None = None) -> dict[str, Any]:
    """Return the manifest for Socket Mode, or for HTTP where ``http`` is the bot's public root URL."""
    url = f"{http.rstrip('/')}/slack/events" if http else None
    request_url = {"request_url": url} if url else {}
    oauth: dict[str, Any] = {"scopes": {"bot": list(SCOPES)}}
    if http:
        oauth = {"redirect_urls": [f"{http.rstrip('/')}/slack/oauth_redirect"]} | oauth
    return {
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {
            "name": "Nod",
            "description": "Does the work, and asks before it changes anything",
            "background_color": "#1f3b4d",
        },
        "features": {
            "agent_view": {
                "agent_description": _DESCRIPTION,
                "suggested_prompts": [{"title": title, "message": message} for title, message in PROMPTS],
            },
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "Nod", "always_online": True},
            "slash_commands": _describe_commands(url),
        },
        "oauth_config": oauth,
        "settings": {
            "event_subscriptions": request_url | {"bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True} | request_url,
            "org_deploy_enabled": True,
            "socket_mode_enabled": url is None,
            "token_rotation_enabled": False,
        },
    }


def _describe_commands(url: str | None) -> list[dict[str, Any]]:
    commands = []
    for name, description, hint in _COMMANDS:
        command: dict[str, Any] = {"command": name}
        if url:
            command["url"] = url
        commands.append(command | {"description": description, "usage_hint": hint, "should_escape": True})
    return commands


def manifest_yaml(http: str | None = None) -> str:
    """Return the manifest as the text of a YAML file."""
    if http:
        where = f"HTTP at {http}"
    else:
        where = "Socket Mode; `nod slack manifest --http URL` prints the HTTP variant"
    return f"# Paste this where Slack asks for an app manifest. {where}.\n{_as_yaml(manifest(http))}"


def _as_yaml(value: Any, indent: int = 0) -> str:
    """Write dicts, lists and scalars as YAML; strings are quoted as in JSON, which is valid YAML."""
    pad = "  " * indent
    if isinstance(value, dict):
        return "".join(f"{pad}{key}:{_write_nested(item, indent)}" for key, item in value.items())
    lines = []
    for item in value:
        if isinstance(item, dict):
            lines.append(f"{pad}- {_as_yaml(item, indent + 1).lstrip()}")
        else:
            lines.append(f"{pad}- {json.dumps(item, ensure_ascii=False)}\n")
    return "".join(lines)


def _write_nested(item: Any, indent: int) -> str:
    if isinstance(item, dict | list):
        return f"\n{_as_yaml(item, indent + 1)}"
    return f" {json.dumps(item, ensure_ascii=False)}\n"

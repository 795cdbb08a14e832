"""The question to a server: whose account is a new token? People see the account before it is used.

There are three ways to ask. A provider's entry in the settings names an address; an MCP server's entry names
a tool, since MCP itself can't tell; and a sign-in with the scope ``openid`` has the issuer's userinfo.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, MCPError, types
from mcp.client.streamable_http import streamable_http_client

from bot.domain.connections import encodings_of
from bot.domain.text import replace_unstorable
from bot.errors import SignInError
from bot.features.connections.sign_in.provider_entries import Provider
from bot.telemetry.logs import logger
from bot.tools.mcp.config import Http, ServerConfig, WhoAmI
from bot.tools.mcp.dialects import is_same_issuer
from bot.tools.mcp.signin import make_sign_in_client
from bot.tools.response_bounds import bound_response

log = logger(__name__)

_TIMEOUT_SECONDS = 45.0
_MAX_NAME_CHARS = 200
_MAX_SUBJECT_CHARS = 255
_TRUE_VALUES = (True, 1, "true", "True", "1")  # of ``email_verified``: Apple and Cognito send it as text


@dataclass(frozen=True, slots=True)
class FoundAccount:
    """An account at a server, in texts that no one has checked.

    ``email`` is verified by the issuer, or empty.
    """

    name: str = ""
    subject: str = ""
    email: str = ""


async def find_account(config: ServerConfig, issuer: str, scope: str, token: str) -> FoundAccount:
    """Return the account of a token; empty if there is no way to ask. Raises SignInError.

    If the settings name an address or a tool, an answer without an account is an error: Nod could not tell
    accounts apart.
    """
    transport = config.transport
    if not isinstance(transport, Http):
        raise TypeError(f"{config.name} has no address")
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            if isinstance(config, Provider):
                return await _ask_provider(config, transport.url, token)
            if config.whoami is not None:
                return await _ask_tool(config, transport, config.whoami, token)
            if "openid" in scope.split():
                return await _ask_issuer(transport.url, issuer, token)
    except Exception as error:
        if isinstance(error, SignInError):
            raise  # it says already what is wrong
        log.warning("a server did not tell whose account it is", server=config.name, why=type(error).__name__)
        raise SignInError(f"{config.name} does not say whose account this is. Start again.") from None
    return FoundAccount()


async def _ask_provider(provider: Provider, url: str, token: str) -> FoundAccount:
    """Return the account from the address that the settings name; empty if they name no address."""
    endpoint = provider.account_endpoint
    if endpoint is None:
        return FoundAccount()
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    async with make_sign_in_client(url) as http:
        response = await http.get(endpoint.url, headers=headers)
    response.raise_for_status()
    account = _read_account(response.json(), endpoint.field, endpoint.subject, token)
    if account is None:
        raise SignInError(f"{provider.name} does not say whose account this is ({endpoint.url}).")
    return account


async def _ask_tool(config: ServerConfig, http_config: Http, whoami: WhoAmI, token: str) -> FoundAccount:
    """Return the account from the tool that the entry names, called without arguments and with this token."""
    headers = {"Accept-Encoding": "identity", **http_config.headers, "Authorization": f"Bearer {token}"}
    http = httpx2.AsyncClient(
        headers=headers,
        timeout=_TIMEOUT_SECONDS,
        follow_redirects=False,
        event_hooks={"response": [bound_response]},
    )
    async with http, Client(streamable_http_client(http_config.url, http_client=http), cache=None) as client:
        answer = await client.call_tool(whoami.tool, {})
    if answer.is_error:
        raise MCPError(types.INTERNAL_ERROR, "the tool failed")
    content = answer.structured_content or _read_json(answer)
    account = _read_account(content, whoami.field, whoami.subject, token)
    if account is None:
        raise SignInError(f"{config.name} does not say whose account this is ({whoami.tool}).")
    return account


async def _ask_issuer(url: str, issuer: str, token: str) -> FoundAccount:
    """Return the account from the issuer's userinfo (OpenID Connect Core 1.0, 5.3); empty without one."""
    async with make_sign_in_client(url) as http:
        metadata = (await http.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")).json()
        endpoint = metadata.get("userinfo_endpoint") if isinstance(metadata, dict) else None
        if not isinstance(endpoint, str) or not is_same_issuer(str(metadata.get("issuer")), issuer):
            return FoundAccount()
        response = await http.get(endpoint, headers={"Authorization": f"Bearer {token}"})
        response.raise_for_status()
        claims: Mapping[str, Any] = response.json()
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise ValueError("the userinfo names no subject")
    name = claims.get("preferred_username") or claims.get("email") or claims.get("name") or ""
    if _has_token(token, str(name), subject, str(claims.get("email"))):
        raise ValueError("the userinfo has the token in it")
    is_verified = claims.get("email_verified") in _TRUE_VALUES
    email = str(claims.get("email") or "") if is_verified else ""
    return FoundAccount(
        replace_unstorable(str(name))[:_MAX_NAME_CHARS],
        replace_unstorable(subject)[:_MAX_SUBJECT_CHARS],
        replace_unstorable(email)[:_MAX_NAME_CHARS],
    )


def _read_account(content: Any, name_path: str, subject_path: str, token: str) -> FoundAccount | None:
    """Return the account in a parsed answer; None if it has no ID, or if it repeats the token.

    ``subject_path`` may be empty: then the name is the ID as well.
    """
    name = _look_up(content, name_path)
    subject = _look_up(content, subject_path or name_path)
    if not subject or _has_token(token, name, subject):
        return None
    return FoundAccount(name[:_MAX_NAME_CHARS], subject[:_MAX_SUBJECT_CHARS])


def _has_token(token: str, *texts: str) -> bool:
    """Return whether a text has the token, plain or encoded. People and the audit log read these texts."""
    return any(form in text for form in encodings_of([token]) for text in texts)


def _read_json(answer: types.CallToolResult) -> Any:
    """Return the text of a tool's answer, parsed as JSON. Raises ValueError."""
    text = "".join(part.text for part in answer.content if isinstance(part, types.TextContent))
    return json.loads(text)


def _look_up(content: Any, path: str) -> str:
    """Return the text or number at a path such as ``user.login``; empty if it is missing."""
    value = content
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return replace_unstorable(str(value))

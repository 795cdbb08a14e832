"""Providers of accounts for a team's own tools: OAuth 2 servers that the file of ``NOD_CONNECTIONS`` names.

A tool names a provider, as in ``@tool(connection="tracker")``, and has the person's token in its context
while it runs. `load_providers` reads the file when Nod starts. An example:

    {"connections": {
      "tracker": {"authorization": "https://tracker.example/oauth/authorize",
                  "token": "https://tracker.example/oauth/token",
                  "client": "nod", "secret": "TRACKER_SECRET", "scopes": ["read"], "write_scopes": ["write"],
                  "whoami": {"url": "https://tracker.example/api/me", "field": "login", "subject": "id"}}
    }}
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bot.domain.connections import Identity
from bot.errors import SettingsError
from bot.tools.mcp.config import Http, OAuthClient, ServerConfig

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class AccountEndpoint:
    """The address that returns the account of a token (``whoami`` in the file)."""

    url: str
    field: str  # the path of the account's name in the answer, such as ``user.login``
    subject: str  # the path of the account's ID; empty: the name is the ID


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(ServerConfig):
    """An OAuth 2 server, with the addresses of its endpoints.

    ``transport`` has the address of the token endpoint. (For an MCP server it says how the
    server is reached.)
    """

    issuer: str
    authorization: str  # the address of the authorization endpoint, at which people sign in
    revocation: str = ""  # the address of the revocation endpoint; empty without one
    # asked for the account of a token; None: the account has no name
    account_endpoint: AccountEndpoint | None = None
    write_scopes: tuple[str, ...] = ()  # asked for only once a tool is to change something
    is_secret_in_header: bool = False  # Nod's secret is in a header of a token request, not in its body


def _check_address(url: str) -> str:
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise ValueError("write an address such as https://example.com/oauth/token")
    return url


_Address = Annotated[str, AfterValidator(_check_address)]
_NonEmpty = Annotated[str, Field(min_length=1, max_length=2000)]
_Scope = Annotated[str, Field(pattern=r"^[\x21\x23-\x5b\x5d-\x7e]{1,100}$")]  # RFC 6749, section 3.3


class _StrictModel(BaseModel):
    """The base of the models of the file: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _WhoAmI(_StrictModel):
    """The key ``whoami`` of an entry, which becomes an `AccountEndpoint`."""

    url: _Address
    field: _NonEmpty
    subject: str = ""


class _Entry(_StrictModel):
    """The entry of one provider. ``secret`` is the name of the environment variable that holds Nod's secret.

    ``client_auth``: the part of a request to the token endpoint that has the secret.
    """

    authorization: _Address
    token: _Address
    revocation: _Address | None = None
    issuer: _NonEmpty | None = None
    client: _NonEmpty
    secret: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    client_auth: Literal["body", "header"] = "body"
    scopes: list[_NonEmpty] = []
    write_scopes: list[_Scope] = []
    identity: Literal["person", "place"] = "person"
    whoami: _WhoAmI | None = None


def load_providers(path: Path, environment: Mapping[str, str]) -> tuple[Provider, ...]:
    """Read the file; secrets are taken from ``environment``. Raises SettingsError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"NOD_CONNECTIONS: {path} cannot be read ({error}); name a JSON file") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: this is not JSON: {error}") from None
    entries = content.get("connections") if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise SettingsError(f'{path}: write {{"connections": {{"name": {{"authorization": …}}}}}}')
    return tuple(_read_entry(path, name, given, environment) for name, given in entries.items())


def _read_entry(path: Path, name: str, given: Any, environment: Mapping[str, str]) -> Provider:
    where = f"{path}: connection {name!r}"
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{where}: a name has up to 40 letters, digits, '_' and '-'")
    try:
        entry = _Entry.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise SettingsError(f"{where}: {faults}") from None
    secret = environment.get(entry.secret, "") if entry.secret else ""
    if entry.secret and not secret:
        raise SettingsError(f"{where}: the environment variable {entry.secret} is not set; set it")
    parts = urlsplit(entry.authorization)
    account_endpoint = None
    if entry.whoami is not None:
        account_endpoint = AccountEndpoint(entry.whoami.url, entry.whoami.field, entry.whoami.subject)
    return Provider(
        name,
        Http(entry.token, {}, OAuthClient(entry.client, secret, tuple(entry.scopes))),
        identity=Identity(entry.identity),
        issuer=entry.issuer or f"{parts.scheme}://{parts.netloc}",
        authorization=entry.authorization,
        revocation=entry.revocation or "",
        write_scopes=tuple(entry.write_scopes),
        account_endpoint=account_endpoint,
        is_secret_in_header=entry.client_auth == "header",
    )

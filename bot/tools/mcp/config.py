"""Configuration of MCP servers: the usual ``mcpServers`` JSON, read once into `ServerConfig` values.

    {"mcpServers": {
      "git": {"command": "mcp-server-git", "env": {"GIT_TOKEN": "${GIT_TOKEN}"}, "trust": "trusted"},
      "tracker": {"url": "https://tracker.example/mcp", "headers": {"X-Api-Key": "${TRACKER_KEY}"},
                  "allow": ["list_*", "create_issue"], "deny": ["*_admin"], "prefix": "trk_", "timeout": 30},
      "wiki": {"url": "https://wiki.example/mcp", "oauth": {"clientId": "nod", "scopes": ["read"]}}
    }}

``identity`` (``nod``, ``person`` or ``place``) says under whose account calls are made, and ``whoami`` which
tool tells that account's name. They, ``trust``, ``allow``, ``deny``, ``prefix`` and ``timeout`` (seconds) are
Nod's own keys; the rest is what other MCP clients read, so one file serves them all (``startup_timeout_sec``
and ``_ms`` are Codex's).
"""

import contextlib
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails

from bot.domain.connections import Identity
from bot.domain.redaction import HIDDEN, redact_text
from bot.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,39}")
_VARIABLE = re.compile(r"(\$)?\$\{([^{}]*)\}")
_IGNORED = ("description", "autoApprove", "alwaysAllow")  # of other clients; here only people approve
_TYPES = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}
ADDRESS_STARTUP_SECONDS = 60.0
PROCESS_STARTUP_SECONDS = 300.0  # npx and uvx may fetch it first
_PLACES = ("workspaceFolder", "userHome")
_SECRET_LENGTH = 8  # shorter values are words such as "true", which hiding would only garble
_TEXTS = 'write a list of texts such as ["one", "two"]'
_NAMED_TEXTS = 'write an object of texts such as {"NAME": "value"}, numbers in quotes'
_FIXES = {
    "args": _TEXTS,
    "allow": _TEXTS,
    "deny": _TEXTS,
    "env": _NAMED_TEXTS,
    "headers": _NAMED_TEXTS,
    "oauth": 'write an object such as {"clientId": "nod", "scopes": ["read"]}',
    "disabled": "write true or false",
    "trust": 'write "untrusted" (every call asks) or "trusted" (what it says it reads runs)',
    "identity": 'write "nod" (one account for all), "person" (each their own) or "place" (one for a chat)',
    "whoami": 'write an object such as {"tool": "get_me", "field": "login", "subject": "id"}',
    "prefix": "use up to 40 letters, digits, '_' and '-'",
    "timeout": "write seconds, as a number more than 0 and at most 3600",
    "startup_timeout_sec": "write seconds, as a number more than 0 and at most 3600",
    "startup_timeout_ms": "write milliseconds, as a number more than 0 and at most 3600000",
}
"""What to write where a key has another kind of value than it takes; others take text."""


class Trust(StrEnum):
    UNTRUSTED = "untrusted"  # every call asks, also those of tools that it calls read-only
    TRUSTED = "trusted"  # its read-only tools run immediately


@dataclass(frozen=True, slots=True)
class Stdio:
    """A server that Nod starts. It gets a minimal environment and ``env``.

    ``filled`` are the values that stood for variables in its entry: they may be secrets.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    filled: frozenset[str] = field(default=frozenset(), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Nod as registered with a server's sign-in; ``id`` empty: it registers itself.

    ``scopes`` are asked for instead of those that the server names.
    """

    id: str = ""
    secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Http:
    """A server that runs elsewhere and speaks streamable HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: OAuthClient = OAuthClient()
    learned: set[str] = field(default_factory=set, repr=False, compare=False)
    """Tokens of a sign-in, so that `ServerConfig.scrub` knows them."""

    @property
    def signs_in(self) -> bool:
        """True if people sign in there; not where the entry has a token already."""
        return not any(name.lower() == "authorization" for name in self.headers)


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """The tool that tells a connection's account: the fields of its name and of its subject."""

    tool: str
    field: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of one server. ``prefix`` is put before its tools' names.

    ``timeout`` is in seconds, for each call, ``startup`` for its first word and its list; None: by its kind.
    """

    name: str
    launch: Stdio | Http
    trust: Trust = Trust.UNTRUSTED
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    prefix: str = ""
    timeout: float = 60.0
    startup: float | None = None
    identity: Identity = Identity.NOD
    whoami: WhoAmI | None = None

    @property
    def startup_seconds(self) -> float:
        if self.startup is not None:
            return self.startup
        if isinstance(self.launch, Stdio):
            return PROCESS_STARTUP_SECONDS
        return ADDRESS_STARTUP_SECONDS

    def offers(self, tool_name: str) -> bool:
        """Return whether a tool, by the name its server gives it, is for the model at all; deny wins."""
        return any(fnmatchcase(tool_name, p) for p in self.allow) and not any(
            fnmatchcase(tool_name, p) for p in self.deny
        )

    def scrub(self, text: str) -> str:
        """Return the text without this server's secrets, wherever they stand in it."""
        if isinstance(self.launch, Stdio):
            inside = self.launch.env
        else:
            inside = self.launch.headers
        parts = {part for value in inside.values() for part in (value, *value.split())}
        if isinstance(self.launch, Stdio):
            parts |= self.launch.filled
        else:
            parts |= {
                self.launch.url,
                urlsplit(self.launch.url).query,
                urlsplit(self.launch.url).password or "",
                self.launch.client.secret,
                *self.launch.learned,
            }
        for part in sorted(parts, key=len, reverse=True):
            if len(part) >= _SECRET_LENGTH:
                text = text.replace(part, HIDDEN)
        return redact_text(text)


def load_servers(path: Path, environment: Mapping[str, str]) -> tuple[ServerConfig, ...]:
    """Read the file; variables (`_fill_variables`) are taken from ``environment``.

    Raises SettingsError that names the file and, for every fault in it, the server, the key and the fix.
    What is disabled is not looked at.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"NOD_MCP_CONFIG: {path} cannot be read ({error}); name a JSON file") from None
    try:
        whole = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: this is not JSON: {error}") from None
    servers = whole.get("mcpServers") if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        raise SettingsError(f'{path}: write {{"mcpServers": {{"name": {{"command": …}}}}}}')
    faults: list[str] = []
    found = []
    for name, given in servers.items():
        if isinstance(given, dict) and given.get("disabled") is True:
            continue
        wrong = list(_general_faults(name, given))
        try:
            filled: set[str] = set()
            entry = _Entry.of(given if isinstance(given, dict) else {}, environment, path.parent, filled)
            found.append(entry.config(name, frozenset(filled)))
        except ValidationError as error:
            wrong += dict.fromkeys(map(_in_words, error.errors()))
        faults += [f"{path}: server {name!r}: {fault}" for fault in wrong]
    if faults:
        raise SettingsError("; ".join(faults))
    return tuple(found)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs; raises ValueError where a key is used twice: only one would count."""
    whole = dict(pairs)
    if len(whole) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is used twice in one object")
    return whole


class _Shape(BaseModel):
    """A JSON object whose keys are known and whose values are of the right kind."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _fill_variables(text: str, info: ValidationInfo) -> str:
    """Return the text with the variables of the environment, as other clients write them.

    ``${NAME}`` and ``${env:NAME}``; ``${NAME:-else}`` where it may be unset or empty; ``$${NAME}`` for the
    text ``${NAME}`` itself. ``${workspaceFolder}`` is the file's folder, ``${userHome}`` that of the account.
    """
    around = info.context or {}

    def fill(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        name, has_default, default = found[2].removeprefix("env:").partition(":-")
        value = around["environment"].get(name)
        if name in _PLACES and value is None:
            return str(around["folder"].resolve() if name == "workspaceFolder" else Path.home())
        if name.startswith("input:"):
            raise ValueError(f"Nod asks for no inputs; write ${{NAME}} instead of ${{{name}}} and set NAME")
        if has_default and not value:
            return default
        if value is None:
            raise ValueError(f"the environment variable {name or '(no name)'} is not set; set it")
        around["filled"].add(value)
        return str(value)

    return _VARIABLE.sub(fill, text)


def _folder(text: str, info: ValidationInfo) -> str:
    folder = (info.context or {})["folder"] / Path(text).expanduser()
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    return str(folder) if text else ""


def _address(url: str) -> str:
    """Return an http address without a password, which every library on the way would log."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if not url or (parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc):
            return url
    raise ValueError("write an address such as https://example.com/mcp; a password goes into headers")


Filled = Annotated[str, AfterValidator(_fill_variables)]


class _OAuth(_Shape):
    id: Annotated[Filled, Field(alias="clientId")] = ""
    secret: Annotated[Filled, Field(alias="clientSecret")] = ""
    scopes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _secret_of_a_client(self) -> Self:
        if self.secret and not self.id:
            raise ValueError("a clientSecret needs its clientId")
        return self


class _WhoAmI(_Shape):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    field: Annotated[str, Field(min_length=1, max_length=200)]
    subject: Annotated[str, Field(max_length=200)] = ""


class _Entry(_Shape):
    """One server's entry in the file."""

    command: Filled = ""
    args: tuple[Filled, ...] = ()
    env: dict[str, Filled] = {}
    cwd: Annotated[str, AfterValidator(_fill_variables), AfterValidator(_folder)] = ""
    url: Annotated[Filled, AfterValidator(_address)] = ""
    headers: dict[str, Filled] = {}
    oauth: _OAuth = _OAuth()
    type: str = ""
    disabled: bool = False
    trust: Trust = Trust.UNTRUSTED
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_\-]{0,40}$")] | None = None
    timeout: Annotated[float, Field(gt=0, le=3600)] = 60.0
    startup_timeout_sec: Annotated[float, Field(gt=0, le=3600)] | None = None
    startup_timeout_ms: Annotated[float, Field(gt=0, le=3_600_000)] | None = None
    identity: Identity = Identity.NOD
    whoami: _WhoAmI | None = None

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        if self.identity is Identity.NOD and self.whoami is not None:
            raise ValueError('whoami is for an entry whose identity is "person" or "place"')
        if self.identity is Identity.NOD:
            return self
        if self.command:
            raise ValueError(
                f'identity {self.identity.value!r} is for a server at a "url": a command has one account'
            )
        if any(name.lower() == "authorization" for name in self.headers):
            raise ValueError(
                f"identity {self.identity.value!r} takes no Authorization header: each account has its own"
            )
        parts = urlsplit(self.url)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError(f"identity {self.identity.value!r} needs an address that begins with https://")
        return self

    @classmethod
    def of(
        cls, given: Mapping[str, Any], environment: Mapping[str, str], folder: Path, filled: set[str]
    ) -> Self:
        """Read it with the variables of ``environment``; their values are added to ``filled``.

        Raises ValidationError.
        """
        known = {key: value for key, value in given.items() if key not in _IGNORED}
        around = {"environment": environment, "folder": folder, "filled": filled}
        return cls.model_validate_json(json.dumps(known), context=around)

    def config(self, name: str, filled: frozenset[str]) -> ServerConfig:
        """Make it a value; ``filled`` are the values of its variables."""
        launch: Stdio | Http
        startup = self.startup_timeout_sec
        if startup is None and self.startup_timeout_ms is not None:
            startup = self.startup_timeout_ms / 1000
        if self.command:
            folder = Path(self.cwd) if self.cwd else None
            launch = Stdio(self.command, self.args, self.env, folder, filled)
        else:
            launch = Http(self.url, self.headers, OAuthClient(**dict(self.oauth)))
        if self.prefix is None:
            prefix = re.sub(r"[^A-Za-z0-9_\-]", "_", name) + "_"
        else:
            prefix = self.prefix
        whoami = WhoAmI(**dict(self.whoami)) if self.whoami else None
        return ServerConfig(
            name,
            launch,
            self.trust,
            self.allow,
            self.deny,
            prefix,
            self.timeout,
            startup,
            self.identity,
            whoami,
        )


def _general_faults(name: str, given: Any) -> Iterator[str]:
    """Yield the faults of an entry other than those of its keys' values."""
    if not _NAME.fullmatch(name):
        yield "a name has up to 40 letters, digits, '.', '_' and '-'"
    if not isinstance(given, dict):
        yield 'write an object such as {"command": "npx"}'
    elif bool(given.get("command")) == bool(given.get("url")):
        yield 'write either "command" (Nod starts it) or "url" (it runs elsewhere)'
    elif (kind := given.get("type")) and not given.get(_TYPES.get(str(kind), "")):
        yield f'type: {kind!r} is not spoken here; leave it out, or write "stdio" or "http"'


def _in_words(error: ErrorDetails) -> str:
    """Return a key's fault and its fix."""
    if not error["loc"] and error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if not error["loc"]:
        return f"it can't be read ({error['msg']})"
    key, *inside = map(str, error["loc"])
    if error["type"] == "extra_forbidden" and not inside:
        known = list(_Entry.model_fields)
        near = difflib.get_close_matches(key, known, 1)
        fix = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        return f"{key}: there is no such key; {fix}"
    if error["type"] == "value_error":
        return f"{'.'.join([key, *inside])}: {error['ctx']['error']}"
    return f"{key}: {_FIXES.get(key, 'write text')}"

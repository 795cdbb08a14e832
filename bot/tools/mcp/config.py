"""Configuration of MCP servers: the usual ``mcpServers`` JSON, read once into `ServerConfig` values.

    {"mcpServers": {
      "git": {"command": "mcp-server-git", "env": {"GIT_TOKEN": "${GIT_TOKEN}"}, "trust": "trusted"},
      "tracker": {"url": "https://tracker.example/mcp", "headers": {"X-Api-Key": "${TRACKER_KEY}"},
                  "allow": ["list_*", "create_issue"], "deny": ["*_admin"], "prefix": "trk_", "timeout": 30},
      "wiki": {"url": "https://wiki.example/mcp", "oauth": {"clientId": "nod", "scopes": ["read"]}}
    }}

These keys are Nod's own: ``trust``, ``allow``, ``deny``, ``prefix``, ``timeout`` (seconds), ``identity``
(under whose account calls are made: ``nod``, ``person`` or ``place``) and ``whoami`` (the tool that tells
that account's name). The others are those of other MCP clients, so one file serves all. Two of them,
``startup_timeout_sec`` and ``startup_timeout_ms``, come from Codex.
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

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,39}")
_VARIABLE_PATTERN = re.compile(r"(\$)?\$\{([^{}]*)\}")  # "${NAME}", or "$${NAME}" for that text itself
_IGNORED_KEYS = ("description", "autoApprove", "alwaysAllow")  # other clients' keys; here only people approve
_KEY_OF_TYPE = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}
"""The key that an entry needs, by the value of its ``type``."""
ADDRESS_STARTUP_SECONDS = 60.0
PROCESS_STARTUP_SECONDS = 300.0  # npx and uvx may fetch it first
_MIN_SECRET_CHARS = 8  # shorter values are words such as "true", not secrets
_LIST_FIX = 'write a list of texts such as ["one", "two"]'
_OBJECT_FIX = 'write an object of texts such as {"NAME": "value"}, numbers in quotes'
_FIXES = {
    "args": _LIST_FIX,
    "allow": _LIST_FIX,
    "deny": _LIST_FIX,
    "env": _OBJECT_FIX,
    "headers": _OBJECT_FIX,
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
"""The fix for a value of the wrong type, by key; other keys take text."""


class Trust(StrEnum):
    UNTRUSTED = "untrusted"  # every call asks for approval, even of tools that the server calls read-only
    TRUSTED = "trusted"  # tools that the server calls read-only run without approval


@dataclass(frozen=True, slots=True)
class Stdio:
    """A server that Nod starts as a process, with a minimal environment and ``env``."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Nod's client at a server's sign-in. With an empty ``id`` Nod registers a client itself.

    ``scopes`` are asked for instead of the scopes that the server names.
    """

    id: str = ""
    secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Http:
    """A server that is called at an address, over streamable HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: OAuthClient = OAuthClient()
    sign_in_tokens: set[str] = field(default_factory=set, repr=False, compare=False)
    """The tokens of sign-ins there, which `ServerConfig.scrub` hides. The module that reads one adds it."""

    @property
    def signs_in(self) -> bool:
        """True if the entry has no token, so that people sign in there."""
        return not any(name.lower() == "authorization" for name in self.headers)


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """The tool that tells a connection's account, and the fields of its answer that have it.

    ``field`` has the account's name, ``subject`` its id at the server.
    """

    tool: str
    field: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The configuration of one server."""

    name: str
    transport: Stdio | Http
    """The process to start, or the address to call."""
    trust: Trust = Trust.UNTRUSTED
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    prefix: str = ""
    """The prefix of its tools' names for the model."""
    timeout: float = 60.0
    """Seconds for each call."""
    startup: float | None = None
    """Seconds for its start and its list of tools; None for the default of its kind."""
    identity: Identity = Identity.NOD
    whoami: WhoAmI | None = None
    variable_values: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """The values of the variables in its entry, such as ``${GIT_TOKEN}``. They may be secrets."""

    @property
    def startup_seconds(self) -> float:
        if self.startup is not None:
            return self.startup
        if isinstance(self.transport, Stdio):
            return PROCESS_STARTUP_SECONDS
        return ADDRESS_STARTUP_SECONDS

    def offers(self, tool_name: str) -> bool:
        """Return whether the model may see a tool, by the server's own name for it; ``deny`` wins."""
        if any(fnmatchcase(tool_name, pattern) for pattern in self.deny):
            return False
        return any(fnmatchcase(tool_name, pattern) for pattern in self.allow)

    def scrub(self, text: str) -> str:
        """Return the text with this server's secrets replaced by `HIDDEN`."""
        transport = self.transport
        secrets = set(self.variable_values)
        if isinstance(transport, Stdio):
            values = transport.env.values()
        else:
            values = transport.headers.values()
            address = urlsplit(transport.url)
            secrets |= {transport.url, address.query, address.password or "", transport.client.secret}
            secrets |= transport.sign_in_tokens
        for value in values:
            secrets |= {value, *value.split()}  # "Bearer abc", and also "abc"
        # a secret may be a part of another, so the longest is replaced first
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _MIN_SECRET_CHARS:
                text = text.replace(secret, HIDDEN)
        return redact_text(text)

    def has_sign_in_token(self, text: str) -> bool:
        """Return whether a text contains a token of a sign-in at this server (`Http.sign_in_tokens`).

        A server must not put one into the description of a tool, which the model reads.
        """
        if not isinstance(self.transport, Http):
            return False
        return any(
            token in text for token in self.transport.sign_in_tokens if len(token) >= _MIN_SECRET_CHARS
        )


def load_servers(path: Path, environment: Mapping[str, str]) -> tuple[ServerConfig, ...]:
    """Read the file of servers. ``environment`` has the values of variables (`_fill_variables`).

    Disabled servers are ignored. Raises SettingsError, which names the file and, for every fault, the server,
    the key and the fix.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"NOD_MCP_CONFIG: {path} cannot be read ({error}); name a JSON file") from None
    try:
        document = json.loads(text, object_pairs_hook=_make_object)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: this is not JSON: {error}") from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise SettingsError(f'{path}: write {{"mcpServers": {{"name": {{"command": …}}}}}}')
    faults: list[str] = []
    configs = []
    for name, raw_entry in servers.items():
        if isinstance(raw_entry, dict) and raw_entry.get("disabled") is True:
            continue
        entry_faults = list(_find_entry_faults(name, raw_entry))
        if isinstance(raw_entry, dict):
            try:
                configs.append(_Entry.read_config(name, raw_entry, environment, path.parent))
            except ValidationError as error:
                descriptions = [_describe_fault(fault) for fault in error.errors()]
                entry_faults += dict.fromkeys(descriptions)  # each once
        faults += [f"{path}: server {name!r}: {fault}" for fault in entry_faults]
    if faults:
        raise SettingsError("; ".join(faults))
    return tuple(configs)


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dictionary. Raises ValueError if a key is used twice."""
    json_object = dict(pairs)
    if len(json_object) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is used twice in one object")
    return json_object


class _StrictModel(BaseModel):
    """A JSON object that has known keys only, with values of the right types."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _fill_variables(text: str, info: ValidationInfo) -> str:
    """Return the text with its variables replaced, in the syntax of other clients.

    ``${NAME}`` and ``${env:NAME}`` are variables of the environment. ``${NAME:-else}`` has a default for an
    unset or empty one, ``$${NAME}`` is the text ``${NAME}`` itself. ``${workspaceFolder}`` is the file's
    folder, ``${userHome}`` the home folder. Each value of the environment that is used is added to the set
    ``variable_values`` of the context.
    """
    context = info.context or {}

    def replace_variable(match: re.Match[str]) -> str:
        if match[1]:  # "$${NAME}"
            return match[0][1:]
        name, has_default, default = match[2].removeprefix("env:").partition(":-")
        value = context["environment"].get(name)
        if name == "workspaceFolder" and value is None:
            return str(context["folder"].resolve())
        if name == "userHome" and value is None:
            return str(Path.home())
        if name.startswith("input:"):
            raise ValueError(f"Nod asks for no inputs; write ${{NAME}} instead of ${{{name}}} and set NAME")
        if has_default and not value:
            return default
        if value is None:
            raise ValueError(f"the environment variable {name or '(no name)'} is not set; set it")
        context["variable_values"].add(value)
        return str(value)

    return _VARIABLE_PATTERN.sub(replace_variable, text)


def _check_folder(text: str, info: ValidationInfo) -> str:
    """Return the path of a folder, which may be relative to the file's. An empty text stays empty."""
    if not text:
        return ""
    folder = Path(text)
    is_there = False
    # RuntimeError: no such person as in "~name"; OSError: Nod may not look there, or the name is too long
    with contextlib.suppress(RuntimeError, OSError):
        folder = (info.context or {})["folder"] / folder.expanduser()
        is_there = folder.is_dir()
    if not is_there:
        raise ValueError(f"there is no folder {folder}")
    return str(folder)


def _check_address(url: str) -> str:
    """Return an http address. A password in it is refused: libraries would log it."""
    if not url:
        return url
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc:
            return url
    raise ValueError("write an address such as https://example.com/mcp; a password goes into headers")


Filled = Annotated[str, AfterValidator(_fill_variables)]
"""A text in which variables are replaced by their values (`_fill_variables`)."""


class _OAuth(_StrictModel):
    id: Annotated[Filled, Field(alias="clientId")] = ""
    secret: Annotated[Filled, Field(alias="clientSecret")] = ""
    scopes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_secret(self) -> Self:
        if self.secret and not self.id:
            raise ValueError("a clientSecret needs its clientId")
        return self


class _WhoAmI(_StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    field: Annotated[str, Field(min_length=1, max_length=200)]
    subject: Annotated[str, Field(max_length=200)] = ""


class _Entry(_StrictModel):
    """One server's entry in the file."""

    command: Filled = ""
    args: tuple[Filled, ...] = ()
    env: dict[str, Filled] = {}
    cwd: Annotated[Filled, AfterValidator(_check_folder)] = ""
    url: Annotated[Filled, AfterValidator(_check_address)] = ""
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
    def read_config(
        cls, name: str, raw_entry: Mapping[str, Any], environment: Mapping[str, str], folder: Path
    ) -> ServerConfig:
        """Return the configuration of the server with this entry. Raises ValidationError.

        ``environment`` has the values of its variables. ``folder`` is the file's.
        """
        variable_values: set[str] = set()  # `_fill_variables` adds those that the entry uses
        relevant = {key: value for key, value in raw_entry.items() if key not in _IGNORED_KEYS}
        context = {"environment": environment, "folder": folder, "variable_values": variable_values}
        entry = cls.model_validate_json(json.dumps(relevant), context=context)
        return entry.make_config(name, frozenset(variable_values))

    def make_config(self, name: str, variable_values: frozenset[str]) -> ServerConfig:
        startup = self.startup_timeout_sec
        if startup is None and self.startup_timeout_ms is not None:
            startup = self.startup_timeout_ms / 1000
        transport: Stdio | Http
        if self.command:
            folder = Path(self.cwd) if self.cwd else None
            transport = Stdio(self.command, self.args, self.env, folder)
        else:
            transport = Http(self.url, self.headers, OAuthClient(**dict(self.oauth)))
        prefix = self.prefix
        if prefix is None:  # by default, the name of the server
            prefix = re.sub(r"[^A-Za-z0-9_\-]", "_", name) + "_"
        whoami = WhoAmI(**dict(self.whoami)) if self.whoami else None
        return ServerConfig(
            name,
            transport,
            trust=self.trust,
            allow=self.allow,
            deny=self.deny,
            prefix=prefix,
            timeout=self.timeout,
            startup=startup,
            identity=self.identity,
            whoami=whoami,
            variable_values=variable_values,
        )


def _find_entry_faults(name: str, raw_entry: Any) -> Iterator[str]:
    """Yield the faults of an entry as a whole. `_Entry` finds those of single keys."""
    if not _NAME_PATTERN.fullmatch(name):
        yield "a name has up to 40 letters, digits, '.', '_' and '-'"
    if not isinstance(raw_entry, dict):
        yield 'write an object such as {"command": "npx"}'
        return
    kind = raw_entry.get("type")
    needed_key = _KEY_OF_TYPE.get(str(kind), "")
    if bool(raw_entry.get("command")) == bool(raw_entry.get("url")):  # both, or neither
        yield 'write either "command" (Nod starts it) or "url" (it runs elsewhere)'
    elif kind and not raw_entry.get(needed_key):
        if needed_key:
            yield f'type: {kind!r} needs "{needed_key}"; leave the type out'
        else:
            yield f'type: {kind!r} is not spoken here; leave it out, or write "stdio" or "http"'


def _describe_fault(error: ErrorDetails) -> str:
    """Return a validation error of pydantic in words: the key, its fault and the fix.

    The error's ``loc`` is the path to the value, empty for the entry itself. The type ``value_error`` is that
    of our own validators, which bring the fix with them.
    """
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

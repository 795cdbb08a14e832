"""Which MCP servers there are: the ecosystem's own ``mcpServers`` JSON, read once into `ServerConfig` values.

    {"mcpServers": {
      "git": {"command": "mcp-server-git", "env": {"GIT_TOKEN": "${GIT_TOKEN}"}, "trust": "trusted"},
      "tracker": {"url": "https://tracker.example/mcp", "headers": {"X-Api-Key": "${TRACKER_KEY}"},
                  "allow": ["list_*", "create_issue"], "deny": ["*_admin"], "prefix": "trk_", "timeout": 30},
      "wiki": {"url": "https://wiki.example/mcp", "oauth": {"clientId": "nod", "scopes": ["read"]}}
    }}

``trust``, ``allow``, ``deny``, ``prefix`` and ``timeout`` (seconds) are Nod's own keys; the rest is what
other MCP clients read, so one file serves them all.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bot.domain.redaction import HIDDEN, redact_text
from bot.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,39}")
_PREFIX = re.compile(r"[A-Za-z0-9_\-]{0,40}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_OWN = ("trust", "allow", "deny", "prefix", "timeout")
_THEIRS = ("command", "args", "env", "cwd", "url", "headers", "oauth", "type", "disabled")
_IGNORED = ("description", "autoApprove", "alwaysAllow")  # of other clients; here only people approve
_TYPES = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}
_LONGEST = 3600.0
_SECRET_LENGTH = 8  # shorter values are words such as "true", which hiding would only garble


class Trust(StrEnum):
    UNTRUSTED = "untrusted"  # its word that a tool only reads counts for nothing: every call asks
    TRUSTED = "trusted"  # its read-only tools run immediately


@dataclass(frozen=True, slots=True)
class Stdio:
    """A server that Nod starts. It gets a minimal environment and ``env``."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None


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
        """Whether people sign in there; not where the entry has a token already."""
        return not any(name.lower() == "authorization" for name in self.headers)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server. ``timeout`` is in seconds, for each call; ``prefix`` stands before its tools' names."""

    name: str
    launch: Stdio | Http
    trust: Trust = Trust.UNTRUSTED
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    prefix: str = ""
    timeout: float = 60.0

    def offers(self, tool_name: str) -> bool:
        """Whether a tool, by the name its server gives it, is for the model at all; deny wins."""
        return any(fnmatchcase(tool_name, p) for p in self.allow) and not any(
            fnmatchcase(tool_name, p) for p in self.deny
        )

    def scrub(self, text: str) -> str:
        """The text without this server's secrets, wherever they stand in it."""
        inside = self.launch.env if isinstance(self.launch, Stdio) else self.launch.headers
        parts = {part for value in inside.values() for part in (value, *value.split())}
        if isinstance(self.launch, Http):
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


def load(path: Path, environment: Mapping[str, str]) -> tuple[ServerConfig, ...]:
    """Read the file; ``${NAME}`` in ``env``, ``headers`` and ``url`` is taken from ``environment``.

    Raises SettingsError that names the file and, for every fault in it, the server, the key and the fix.
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
        reader = _Reader(name, given, environment, path.parent)
        config = reader.config()
        faults += [f"{path}: server {name!r}: {fault}" for fault in reader.faults]
        if config is not None:
            found.append(config)
    if faults:
        raise SettingsError("; ".join(faults))
    return tuple(found)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys stand once; of two servers of one name the wrong one might count."""
    whole = dict(pairs)
    if len(whole) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is used twice in one object")
    return whole


class _Reader:
    """Reads one server's entry; what is wrong is collected in ``faults``, each with its fix."""

    def __init__(self, name: str, given: Any, environment: Mapping[str, str], folder: Path) -> None:
        self.faults: list[str] = []
        self._name = name
        self._given: dict[str, Any] = given if isinstance(given, dict) else {}
        self._environment = environment
        self._folder = folder
        if not isinstance(given, dict):
            self._fault('write an object such as {"command": "npx"}')
        if not _NAME.fullmatch(name):
            self._fault("a name has up to 40 letters, digits, '.', '_' and '-'")

    def config(self) -> ServerConfig | None:
        """None where the server is disabled or something is wrong."""
        if self.faults or self._get("disabled", bool, default=False):
            return None
        self._check_keys()
        launch = self._launch()
        timeout = self._get("timeout", (int, float), default=60.0)
        if isinstance(timeout, bool) or not 0 < timeout <= _LONGEST:
            self._fault("timeout: write seconds, more than 0 and at most 3600")
        trust = self._get("trust", str, default=Trust.UNTRUSTED)
        if trust not in set(Trust):
            self._fault(
                'trust: write "untrusted" (every call asks) or "trusted" (what it says it reads runs)'
            )
        prefix = self._get("prefix", str, default=re.sub(r"[^A-Za-z0-9_\-]", "_", self._name) + "_")
        if not _PREFIX.fullmatch(prefix):
            self._fault("prefix: use up to 40 letters, digits, '_' and '-'")
        allow, deny = self._words("allow", ("*",)), self._words("deny")
        if self.faults or launch is None:
            return None
        return ServerConfig(self._name, launch, Trust(trust), allow, deny, prefix, float(timeout))

    def _check_keys(self) -> None:
        for key in self._given:
            if key not in (*_OWN, *_THEIRS, *_IGNORED):
                near = difflib.get_close_matches(key, (*_OWN, *_THEIRS), 1)
                mend = f"did you mean {near[0]!r}?" if near else f"there are {', '.join((*_THEIRS, *_OWN))}"
                self._fault(f"{key}: there is no such key; {mend}")

    def _launch(self) -> Stdio | Http | None:
        command, url = self._get("command", str, default=""), self._get("url", str, default="")
        kind = self._get("type", str, default="")
        if bool(command) == bool(url):
            self._fault('write either "command" (Nod starts it) or "url" (it runs elsewhere)')
            return None
        if kind and _TYPES.get(kind) != ("command" if command else "url"):
            self._fault(f'type: {kind!r} is not spoken here; leave it out, or write "stdio" or "http"')
        if command:
            cwd = self._get("cwd", str, default="")
            folder = self._folder / Path(cwd).expanduser() if cwd else None
            if folder is not None and not folder.is_dir():
                self._fault(f"cwd: there is no folder {folder}")
            return Stdio(command, self._words("args"), self._values("env"), folder)
        url = self._filled("url", url)
        if not _is_address(url):
            self._fault("url: write an address such as https://example.com/mcp; a password goes into headers")
        return Http(url, self._values("headers"), self._client())

    def _client(self) -> OAuthClient:
        given = self._get("oauth", dict, default={})
        texts = {key: given.get(key, "") for key in ("clientId", "clientSecret")}
        scopes = given.get("scopes", [])
        whole = isinstance(scopes, list) and all(isinstance(each, str) for each in (*texts.values(), *scopes))
        if not whole or given.keys() - {*texts, "scopes"}:
            self._fault('oauth: write an object such as {"clientId": "nod", "scopes": ["read"]}')
            return OAuthClient()
        ident, secret = (self._filled(f"oauth.{key}", text) for key, text in texts.items())
        if secret and not ident:
            self._fault("oauth: a clientSecret needs its clientId")
        return OAuthClient(ident, secret, tuple(scopes))

    def _get(self, key: str, kind: type | tuple[type, ...], *, default: Any) -> Any:
        value = self._given.get(key, default)
        if not isinstance(value, kind):
            self._fault(f"{key}: {_SHAPES.get(key, 'write text')}")
            return default
        return value

    def _words(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._given.get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            self._fault(f'{key}: write a list of texts such as ["one", "two"]')
            return default
        return tuple(value)

    def _values(self, key: str) -> dict[str, str]:
        value = self._given.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            self._fault(f'{key}: write an object of texts such as {{"NAME": "value"}}, numbers in quotes')
            return {}
        return {name: self._filled(f"{key}.{name}", each) for name, each in value.items()}

    def _filled(self, where: str, text: str) -> str:
        for name in _VARIABLE.findall(text):
            if name not in self._environment:
                self._fault(f"{where}: the environment variable {name or '(no name)'} is not set; set it")
        return _VARIABLE.sub(lambda match: self._environment.get(match[1], ""), text)

    def _fault(self, words: str) -> None:
        self.faults.append(words)


def _is_address(url: str) -> bool:
    """An http address without a password, which every library on the way would log."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


_SHAPES = {
    "timeout": "write seconds, as a number",
    "disabled": "write true or false",
    "oauth": 'write an object such as {"clientId": "nod", "scopes": ["read"]}',
}

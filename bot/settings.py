"""Settings: read once, from the environment and ``.env``; a wrong value stops the start with one line.

Each group of settings is a class, and `Settings` joins them. A field is read from the variable ``NOD_`` and
its name in capitals, or from another that the field names; ``.env.example`` explains each. The texts of
faults are written for the person who sets the variable, and say what to write instead.
"""

import base64
import os
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bot.domain.named_models import Api, NamedModel, ToolCalls, is_one_word, model_address, read_models
from bot.domain.people import Actor
from bot.domain.prices import Prices, read_prices
from bot.domain.times import format_length, parse_duration
from bot.errors import SettingsError

T = TypeVar("T")

SCRIPTED_NOTICE = "The scripted demo model answers here. Set OPENAI_API_KEY for a real one."
"""The notice to people where no model is named, outside the demo."""
ONLY_TRANSCRIPTION_NOTICE = (
    "NOD_MODELS names only models that transcribe, so the scripted demo model answers. Add another."
)
"""The notice to people where every named model only transcribes recordings."""
_DEFAULT_PRICE_FILE = Path(str(files("bot.domain") / "prices.txt"))

_POSTGRES = "postgresql+psycopg"
_DATABASE_HINT = "write sqlite:///file.db or postgresql+psycopg://user:password@host/name"
_ACCOUNT_HINT = (
    "Use slack:T0123/U0456 (workspace and member ID, in Slack's profile menu), telegram:991 (a numeric id) "
    "or http:NAME (a name in NOD_HTTP_TOKENS); `nod doctor` prints the ids it can see"
)
EXAMPLE_SECRET_KEY = "an-example-that-anyone-can-read-so-never-us="  # noqa: S105 - in .env.example, so no secret
EXAMPLE_PUSH_KEY = EXAMPLE_SECRET_KEY.removesuffix("=")

# the forms and bounds of single values
_ENTRY_POINT = re.compile(r"entry:[\w.\-]+")
_PAGER_KEY = re.compile(r"[A-Za-z0-9]{32}")
_SECRET_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")  # 32 bytes in the base64url of Fernet
_PUSH_KEY = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]=?")
"""32 bytes as base64url: the last of 43 letters carries four bits."""
_MIN_TOKEN_LENGTH = 16
_MAX_PORT = 65_535
LOOPBACK = ("127.0.0.1", "::1", "localhost")

# variables that are no settings, and blanks that are no part of a value
_BLANKS = " \t\r\n\v\f\x00\x85\xa0\u2028\u2029\ufeff"
"""Characters around a value, such as a line's end in a mounted file, that are no part of it."""
_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://\S+")
"""The value of NAME_PORT, which Kubernetes sets for each Service, so NOD_PORT for one called ``nod``.

https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
"""
_SERVICE_VARIABLE = re.compile(
    r"NOD(_[A-Z0-9_]+)?"
    r"_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""The names of the other variables that Kubernetes sets for a Service with such a name."""
_PROXY_VARIABLES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
_CERTIFICATE_VARIABLES = {"SSL_CERT_FILE": Path.is_file, "SSL_CERT_DIR": Path.is_dir}

_PLATFORM_PREFIXES = ("OPENAI_", "SLACK_", "TELEGRAM_", "DISCORD_")
"""The beginnings of the names of variables that do not begin with ``NOD_``."""
_PER_PROCESS_PREFIXES = (
    "NOD_DATABASE_URL",
    "NOD_HOST",
    "NOD_HTTP_",
    "NOD_LOG_LEVEL",
    "NOD_MAX_CONNECTIONS",
    "NOD_METRICS_",
    "NOD_OIDC_",
    "NOD_PORT",
    "NOD_TOKEN",
    "NOD_URL",
    "OTEL_",
)
"""The beginnings of the names of variables that may differ between the processes on one database."""
_SHARED_HASH_LENGTH = 4  # the characters of a setting's hash, too few to reveal its value
_MAX_SHOWN_LENGTH = 60  # the most characters of a wrong value that a fault repeats


def is_set_by_cluster(name: str, value: str) -> bool:
    """Return whether Kubernetes has set this variable for a Service, so that it is no setting."""
    is_port = name.startswith("NOD") and name.endswith("_PORT")
    is_service_link = is_port and _SERVICE_LINK.fullmatch(value) is not None
    return is_service_link or _SERVICE_VARIABLE.fullmatch(name) is not None


def find_environment_faults(environment: Mapping[str, str]) -> list[str]:
    """Return the faults of the variables for proxies and certificates, which libraries read, a line each.

    The libraries report such a fault as an outage, though it never ends.
    """
    proxies = [name for proxy in _PROXY_VARIABLES for name in (proxy, proxy.lower())]
    faults = [
        f"{name}: Nod can't go through a SOCKS proxy. Name an HTTP proxy in HTTPS_PROXY, and start Nod "
        f"without {name}"
        for name in proxies
        if environment.get(name, "").strip().lower().startswith("socks")
    ]
    for name, exists in _CERTIFICATE_VARIABLES.items():
        given = environment.get(name, "").strip()
        if given and not exists(Path(given)):
            faults.append(f"{name}: {given} does not exist. Name what is there, or start Nod without {name}")
    bundle = environment.get("SSL_CERT_FILE", "").strip()
    if bundle and Path(bundle).is_file():
        try:
            ssl.create_default_context(cafile=bundle)
        except OSError as error:
            faults.append(f"SSL_CERT_FILE: {bundle} holds no certificates ({error.strerror or error})")
    return faults


# The functions below validate or parse the value of one field. Their errors are ValueErrors with a text for
# people. Values that are no text come from code, and are left as they are.


def _parse_duration(text: object) -> object:
    if isinstance(text, str):
        return parse_duration(text)
    return text


def _split_list(text: object) -> object:
    """Split a comma-separated list."""
    if isinstance(text, str):
        return [word.strip() for word in text.split(",") if word.strip()]
    return text


def _check_header_secret(secret: SecretStr | None) -> SecretStr | None:
    """Validate a secret, if there is one: an HTTP header must be able to hold it."""
    text = secret.get_secret_value() if secret is not None else ""
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ValueError("it contains a space, a line break or a character that no key has. Copy it again")
    return secret


def _check_address(text: str) -> str:
    """Validate an address of http or https."""
    parts = urlsplit(text)
    if not is_one_word(text) or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write an address such as https://example.com/v1")
    return text


def require_libraries(feature: str, extra: str, *libraries: str) -> None:
    """Raise ValueError where one of the ``libraries`` that a feature needs is not installed.

    ``extra``: the name of the optional dependencies of Nod's package that installs them.
    """
    for library in libraries:
        if find_spec(library) is None:
            raise ValueError(f"{feature} needs more libraries. Run: pip install 'nod-approvals[{extra}]'")


def check_database_address(url: str) -> str:
    """Validate the address of a database, and that its libraries are installed. Raises ValueError."""
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(_DATABASE_HINT) from None
    if parts.drivername not in ("sqlite", _POSTGRES) or not parts.database:
        raise ValueError(_DATABASE_HINT)
    if parts.drivername == "sqlite" and (parts.host or parts.query or parts.database == ":memory:"):
        raise ValueError("name a file, as in sqlite:///nod.db: what waits must outlive the process")
    if parts.drivername == _POSTGRES:
        require_libraries("PostgreSQL", "postgres", "psycopg", "procrastinate")
    return url


def _check_tracing(url: str) -> str:
    """Validate, where an address for traces is set, that their libraries are installed."""
    require_libraries("tracing", "otel", "opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter")
    return url


def _parse_network(text: object) -> object:
    """Parse an IP address, or a range of them in CIDR notation."""
    if not isinstance(text, str):
        return text
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(f"'{text}' is not an address. Use one such as 127.0.0.1 or 10.0.0.0/8") from None


def _parse_port(text: object) -> object:
    """Parse the number of a port."""
    if not isinstance(text, str):
        return text
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= _MAX_PORT:
        raise ValueError(f"'{text}' is not a port. Use numbers from 1 to {_MAX_PORT}, such as 80,443")
    return int(text)


def _parse_two_prices(text: object) -> object:
    """Parse the two prices of a million tokens: of prompts, and of answers."""
    if not isinstance(text, str):
        return text
    if not re.fullmatch(r"\s*\d+(\.\d+)?\s*,\s*\d+(\.\d+)?\s*", text):
        raise ValueError("write two numbers, such as 0.25,2: a million tokens of prompts, and of answers")
    return tuple(map(float, text.split(",")))


def _read_file(path: Path, parse: Callable[[str], T]) -> T:
    """Return what ``parse`` makes of the text of a file. Raises ValueError, which names the file."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from None


def _parse_zone(name: object) -> object:
    """Parse the IANA name of a time zone."""
    if not isinstance(name, str):
        return name
    try:
        return ZoneInfo(name.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"'{name}' is not a time zone. Use a name such as Europe/London") from None


Duration = Annotated[timedelta, BeforeValidator(_parse_duration)]
DatabaseAddress = Annotated[str, AfterValidator(check_database_address)]
HttpAddress = Annotated[str, AfterValidator(_check_address)]
Zone = Annotated[ZoneInfo, BeforeValidator(_parse_zone)]
# lists, of which the variable has the items with commas between them; NoDecode: pydantic would expect JSON
TextList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
Network = IPv4Network | IPv6Network
Networks = Annotated[
    tuple[Annotated[Network, BeforeValidator(_parse_network)], ...], NoDecode, BeforeValidator(_split_list)
]
Ports = Annotated[
    tuple[Annotated[int, BeforeValidator(_parse_port)], ...], NoDecode, BeforeValidator(_split_list)
]
TwoPrices = Annotated[tuple[float, ...], NoDecode, BeforeValidator(_parse_two_prices)]


class _Environment(EnvSettingsSource):
    """The environment, without values that are blank or that Kubernetes set: for these, .env counts."""

    def __call__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__call__().items() if not _is_unset(name, value)}

    def prepare_field_value(
        self,
        field_name: str,
        field: FieldInfo,
        value: Any,
        value_is_complex: bool,  # noqa: FBT001 - as the library calls it
    ) -> Any:
        """Return the value of a field's variable; None where the variable is not set."""
        if value is None:
            return None
        return super().prepare_field_value(field_name, field, value, value_is_complex)


def _is_unset(name: str, value: object) -> bool:
    """Return whether the value of a variable is blank, or Kubernetes has set it: then it is no setting."""
    if not isinstance(value, str):
        return False
    stripped = value.strip(_BLANKS)
    return not stripped or is_set_by_cluster(name, stripped)


def _name_variable(field: str) -> str:
    """Return the name of a field's variable, which begins with NOD or with a platform's name."""
    name = field.upper()
    if name.startswith(_PLATFORM_PREFIXES):
        return name
    return f"NOD_{name}"


class ModelSettings(BaseModel):
    """The language model."""

    openai_api_key: SecretStr | None = None
    openai_base_url: Annotated[str, AfterValidator(model_address)] | None = None
    model: str = "gpt-5-mini"
    model_file: Path | None = Field(None, validation_alias="NOD_MODELS")
    model_api: Literal["chat", "responses"] = "chat"
    model_tools: Literal["native", "text"] = "native"
    model_images: bool = False
    model_window: int | None = Field(None, ge=2000)
    model_price: TwoPrices = ()
    price_file: Path | None = Field(None, validation_alias="NOD_PRICES")
    model_timeout: Duration = timedelta(seconds=60)
    model_strict: bool = True
    model_stream_options: bool = True
    model_parallel_tool_calls: bool = True

    # pydantic finds validators as attributes of the class
    _check_model_key = field_validator("openai_api_key")(_check_header_secret)

    def prices(self, default: str) -> Prices:
        """Return the prices of the price file, overridden by those in NOD_MODELS and by NOD_MODEL_PRICE.

        ``default``: the name of the model for which NOD_MODEL_PRICE is. Raises SettingsError.
        """
        try:
            prices = _read_file(self.price_file or _DEFAULT_PRICE_FILE, read_prices)
        except ValueError as error:
            raise SettingsError(f"NOD_PRICES: {error}") from None
        for model in self.list_all_models():
            price = model.price or prices.find_price(model.name) or prices.find_price(model.model)
            prices = prices.with_price(model.name, price)
        return prices.with_price(default, self.model_price)

    def list_answering_models(self) -> list[NamedModel]:
        """Return every model that answers people, the default one first; raises SettingsError."""
        models = self.list_all_models()
        if any(model.audio and model.name == self.model for model in models):
            raise SettingsError(f"NOD_MODEL: {self.model} transcribes recordings; name a model that answers")
        return [model for model in models if not model.audio]

    def list_transcription_models(self) -> list[NamedModel]:
        """Return every model that transcribes recordings; raises SettingsError."""
        return [model for model in self.list_all_models() if model.audio]

    def list_all_models(self) -> list[NamedModel]:
        """Return every named model, the default one first; raises SettingsError.

        These are the models of the file NOD_MODELS. The model of NOD_MODEL is added if the file lacks it and
        an API key or a server is set.
        """
        by_name: dict[str, NamedModel] = {}
        if self.model_file is not None:
            try:
                by_name = _read_file(self.model_file, partial(read_models, default=self.model))
            except ValueError as error:
                raise SettingsError(f"NOD_MODELS: {error}") from None
        variables = {**dotenv_values(".env"), **os.environ}
        for name, model in by_name.items():
            by_name[name] = self._complete_model(model, variables)
        if self.model not in by_name and self._has_server:
            by_name[self.model] = self._make_default_model()
        is_model_set = self.model != type(self).model_fields["model"].default
        if by_name and self.model not in by_name and is_model_set:
            raise SettingsError(
                f"NOD_MODEL: {self.model_file} has no {self.model}; it has {', '.join(by_name)}"
            )
        # False comes before True: the default model is the first
        return sorted(by_name.values(), key=lambda model: model.name != self.model)

    @property
    def _api_key(self) -> str:
        return self.openai_api_key.get_secret_value() if self.openai_api_key else ""

    @property
    def _has_server(self) -> bool:
        """True if an API key or a server is set, so that there is a server for the model of NOD_MODEL."""
        return bool(self._api_key or self.openai_base_url)

    def _complete_model(self, model: NamedModel, variables: Mapping[str, str | None]) -> NamedModel:
        """Return a model of the file NOD_MODELS with its server and its API key; raises SettingsError.

        A model without a server of its own shares that of NOD_MODEL. ``variables``: the environment;
        ``model.key`` names the variable with the model's API key.
        """
        secret = (variables.get(model.key) or "").strip(_BLANKS)
        if model.key and not secret:
            raise SettingsError(f"NOD_MODELS: {model.name}: the variable {model.key} is not set")
        try:
            _check_header_secret(SecretStr(secret))
        except ValueError as error:
            raise SettingsError(f"{model.key}: {error}") from None
        if not (model.key or model.base_url or self._has_server):
            raise SettingsError(f"NOD_MODELS: {model.name}: write its base_url, or set OPENAI_API_KEY")
        # the key of NOD_MODEL is sent only to the server of NOD_MODEL
        shared_key = "" if model.key or model.base_url else self._api_key
        return replace(
            model,
            base_url=model.base_url or self.openai_base_url,
            secret=secret or shared_key,
            key=model.key or "OPENAI_API_KEY",
        )

    def _make_default_model(self) -> NamedModel:
        """Return the model of NOD_MODEL as the settings describe it."""
        return NamedModel(
            name=self.model,
            model=self.model,
            base_url=self.openai_base_url,
            key="OPENAI_API_KEY",
            api=Api(self.model_api),
            tools=ToolCalls(self.model_tools),
            images=self.model_images,
            window=self.model_window,
            timeout=self.model_timeout.total_seconds(),
            strict=self.model_strict,
            stream_options=self.model_stream_options,
            parallel_tool_calls=self.model_parallel_tool_calls,
            secret=self._api_key,
            setting_to_correct="NOD_MODEL",
        )

    @property
    def uses_demo_model(self) -> bool:
        """True if no model that answers is named, so that the demo model does; raises SettingsError."""
        return not self.list_answering_models()

    @property
    def model_notice(self) -> str:
        """The notice to people if the demo model answers; empty if another model does."""
        if not self.uses_demo_model:
            return ""
        return ONLY_TRANSCRIPTION_NOTICE if self.list_transcription_models() else SCRIPTED_NOTICE


class AgentSettings(BaseModel):
    """The agent's turns, its teammates and its schedules."""

    max_model_calls: int = Field(12, ge=1, le=100)
    history_tokens: int | None = Field(None, ge=1000)
    timezone: Zone = ZoneInfo("UTC")
    instructions: str = Field("", max_length=8000)
    max_teammates: int = Field(4, ge=0, le=20)
    insights: bool | Literal["people"] = True
    max_schedules: int = Field(20, ge=0, le=1000)
    schedule_tokens: int = Field(100_000, ge=1000, le=10**9)


class StoreSettings(BaseModel):
    """The database, with the keys that seal its audit log and encrypt its secrets."""

    database_url: DatabaseAddress = Field("sqlite:///nod.db", repr=False)
    audit_key: TextList = Field((), repr=False)
    secret_key: TextList = Field((), repr=False)
    retention: Duration = timedelta(days=30)

    @field_validator("audit_key", mode="wrap")
    @classmethod
    def _check_audit_keys(cls, given: Any, validate: ValidatorFunctionWrapHandler) -> tuple[str, ...]:
        keys: tuple[str, ...] = validate(given)
        if (given and not keys) or any(len(key) < _MIN_TOKEN_LENGTH for key in keys):
            raise ValueError("write at least 16 random characters; older keys may follow after a comma")
        return keys

    @field_validator("secret_key", mode="wrap")
    @classmethod
    def _check_secret_keys(cls, given: Any, validate: ValidatorFunctionWrapHandler) -> tuple[str, ...]:
        keys: tuple[str, ...] = validate(given)
        if (given and not keys) or not all(_SECRET_KEY.fullmatch(key) for key in keys):
            raise ValueError("write what nod secrets new prints; older keys may follow after a comma")
        return keys

    @property
    def audit_keys(self) -> tuple[bytes, ...]:
        """The keys that seal the audit log, the newest first."""
        return tuple(key.encode() for key in self.audit_key)

    @property
    def sqlite_file(self) -> Path | None:
        """The database file; None where the database is a server."""
        url = make_url(self.database_url)
        if url.drivername == "sqlite":
            return Path(url.database or "")
        return None


class ApprovalSettings(BaseModel):
    """The people who decide, and what they decide."""

    admins: TextList = ()
    approvers: TextList = ()
    approver_chats: TextList = ()
    approval_policy: Literal["always", "writes", "destructive"] = "writes"
    plan_approval: Literal["human", "lead", "both"] = "human"
    proposal_ttl: Duration = timedelta(hours=24)

    @field_validator("approval_policy", mode="before")
    @classmethod
    def _refuse_never(cls, mode: object) -> object:
        if mode == "never":
            raise ValueError(
                "'never' would let every change run unasked. Use always, writes or destructive, and free "
                "single tools with /approvals policy never for TOOL"
            )
        return mode

    @field_validator("admins", "approvers", "approver_chats")
    @classmethod
    def _check_accounts(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            try:
                Actor.parse(value)
            except ValueError:
                raise ValueError(f"'{value}' is not an account. {_ACCOUNT_HINT}") from None
        return values


class ToolSettings(BaseModel):
    """The tools, and the channels of other packages."""

    issues: bool = True
    workspace: Path | None = None
    shell: bool = False
    trials: bool = False
    docker_url: str | None = None
    fetch: bool = False
    fetch_ports: Ports = (80, 443)
    mcp_config: Path | None = None
    connections: Path | None = None
    tools: TextList = ()
    channels: TextList = ()

    @field_validator("tools")
    @classmethod
    def _check_modules(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            is_module = all(part.isidentifier() for part in value.split("."))
            if not is_module and not _ENTRY_POINT.fullmatch(value):
                raise ValueError("write modules such as acme.tools, and entry:name for installed packages")
        return values


class WebSettings(BaseModel):
    """The console and the HTTP interface: where it is, and who may sign in."""

    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    public_url: HttpAddress | None = None
    http_tokens: TextList = Field((), repr=False)
    trusted_proxies: Networks = Field((), validation_alias="NOD_HTTP_TRUSTED_PROXIES")
    user_header: str = Field("", pattern=r"^[A-Za-z0-9-]{0,60}$", validation_alias="NOD_HTTP_USER_HEADER")
    oidc_issuer: HttpAddress | None = None
    oidc_name: str = Field("your organisation", max_length=40)
    oidc_client_id: str = ""
    oidc_client_secret: SecretStr | None = None
    oidc_allowed: TextList = ()
    webhook_secret: SecretStr | None = Field(None, min_length=_MIN_TOKEN_LENGTH)
    webhook_hosts: TextList = ()
    pager_key: SecretStr | None = None
    pager_url: HttpAddress | None = None
    push_key: SecretStr | None = None
    url: HttpAddress | None = None
    token: SecretStr | None = None

    _check_token = field_validator("token")(_check_header_secret)

    @field_validator("pager_key")
    @classmethod
    def _check_pager_key(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value() if key is not None else ""
        if text and not _PAGER_KEY.fullmatch(text):
            raise ValueError("write the integration key of PagerDuty's Events API v2, 32 letters and digits")
        return key

    @field_validator("webhook_secret")
    @classmethod
    def _check_webhook_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        text = secret.get_secret_value() if secret is not None else ""
        if text.startswith("whsec_"):
            try:
                base64.b64decode(text.removeprefix("whsec_"), validate=True)
            except ValueError:
                raise ValueError("write base64 after whsec_, or leave out whsec_") from None
        return secret

    @field_validator("push_key")
    @classmethod
    def _check_push_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None:
            return None
        if not _PUSH_KEY.fullmatch(key.get_secret_value()):
            raise ValueError("write what nod push keys prints")
        require_libraries("Web Push", "push", "http_ece", "py_vapid")
        return key

    @field_validator("http_tokens")
    @classmethod
    def _check_tokens(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        seen: set[str] = set()
        for value in values:
            name, _, token = value.partition(":")
            if not name.replace("-", "_").isidentifier() or len(token) < _MIN_TOKEN_LENGTH:
                raise ValueError("write name:token pairs, comma-separated, each token at least 16 characters")
            if name in seen:
                raise ValueError(f"the name '{name}' is used twice")
            if token in seen:
                raise ValueError(f"two names share the token of '{name}'. Give each name its own")
            seen |= {name, token}
        return values

    @model_validator(mode="after")
    def _check_web(self) -> Self:
        if not (self.http_tokens or self.has_organisation_sign_in) and self.host not in LOOPBACK:
            raise ValueError("NOD_HTTP_TOKENS: needed when NOD_HOST is not loopback; add name:token")
        if self.user_header and not self.trusted_proxies:
            raise ValueError(
                "NOD_HTTP_TRUSTED_PROXIES: name the proxies that NOD_HTTP_USER_HEADER may come from"
            )
        if self.oidc_issuer:
            self._check_oidc(self.oidc_issuer)
        return self

    def _check_oidc(self, issuer: str) -> None:
        needed = {
            "NOD_OIDC_CLIENT_ID: write what the provider calls Nod": self.oidc_client_id,
            "NOD_OIDC_ALLOWED: name who may sign in: addresses, domains, or * for all": self.oidc_allowed,
            "NOD_PUBLIC_URL: needed for signing in; the provider sends people back there": self.public_url,
        }
        for words, value in needed.items():
            if not value:
                raise ValueError(words)
        if not issuer.startswith("https://") and urlsplit(issuer).hostname not in LOOPBACK:
            raise ValueError("NOD_OIDC_ISSUER: must begin with https://")

    @property
    def has_organisation_sign_in(self) -> bool:
        """True if people sign in with their organisation's accounts."""
        return bool(self.oidc_issuer or self.user_header)

    @property
    def names_by_token(self) -> dict[str, str]:
        """The names of the tokens, by token."""
        pairs = (pair.partition(":") for pair in self.http_tokens)
        return {token: name for name, _, token in pairs}

    @property
    def own_url(self) -> str:
        """The address at which commands reach a running Nod."""
        if self.url:
            return self.url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - not to listen on
        is_ipv6 = ":" in host
        return f"http://[{host}]:{self.port}" if is_ipv6 else f"http://{host}:{self.port}"

    @property
    def base_path(self) -> str:
        """The path of Nod below its public address, such as ``/nod``; empty where Nod is at its root."""
        return urlsplit(self.public_url or "").path.rstrip("/")

    def site_url(self) -> str:
        """The address of the console, without a slash at its end."""
        return (self.public_url or self.own_url).rstrip("/")


class TelemetrySettings(BaseModel):
    """Logs, traces and metrics."""

    metrics_token: SecretStr | None = Field(None, min_length=_MIN_TOKEN_LENGTH)
    metrics_port: int | None = Field(None, ge=1, le=65535)
    otlp_endpoint: Annotated[HttpAddress, AfterValidator(_check_tracing)] | None = Field(
        None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    otlp_headers: TextList = Field((), validation_alias="OTEL_EXPORTER_OTLP_HEADERS", repr=False)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("otlp_headers")
    @classmethod
    def _check_headers(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        pairs = (value.partition("=") for value in values)
        if not all(name.strip() and separator for name, separator, _ in pairs):
            raise ValueError("write name=value pairs, comma-separated, such as authorization=Bearer%20abc")
        return values

    @model_validator(mode="after")
    def _check_metrics(self) -> Self:
        if self.metrics_port is not None and self.metrics_token is None:
            raise ValueError("NOD_METRICS_TOKEN: needed when NOD_METRICS_PORT is set; 16 random characters")
        return self

    @property
    def otlp_header_pairs(self) -> dict[str, str]:
        """The headers for the collector; values are percent-encoded, such as %20 for a space."""
        pairs = (value.partition("=") for value in self.otlp_headers)
        return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}


class LimitSettings(BaseModel):
    """The bounds of what people may cause."""

    max_connections: int = Field(1000, ge=10)
    max_messages: int = Field(3600, ge=1)
    max_conversations: int = Field(1000, ge=1)
    max_open_by_person: int = Field(2000, ge=1, validation_alias="NOD_MAX_OPEN_PER_PERSON")
    max_turns_by_person: int = Field(10, ge=1, le=100, validation_alias="NOD_MAX_TURNS_PER_PERSON")
    max_open_in_conversation: int = Field(200, ge=1, validation_alias="NOD_MAX_OPEN_PER_CONVERSATION")
    max_file_mb: int = Field(10, ge=0, le=50)
    max_agent_calls: int = Field(120, ge=1)
    agent_wait: int = Field(45, ge=0, le=3600)


class SlackSettings(BaseModel):
    """The app in Slack."""

    slack_bot_token: SecretStr | None = None
    slack_app_token: SecretStr | None = None
    slack_signing_secret: SecretStr | None = None
    slack_client_id: str | None = None
    slack_client_secret: SecretStr | None = None
    slack_api_url: HttpAddress = "https://slack.com/api/"

    _check_slack_tokens = field_validator("slack_bot_token", "slack_app_token")(_check_header_secret)


class TelegramSettings(BaseModel):
    """The bot in Telegram."""

    telegram_bot_token: SecretStr | None = None
    telegram_webhook_secret: SecretStr | None = None
    telegram_api_url: HttpAddress = "https://api.telegram.org"
    telegram_allowed_users: TextList = ()
    telegram_allowed_chats: TextList = ()

    _check_telegram_token = field_validator("telegram_bot_token")(_check_header_secret)


class DiscordSettings(BaseModel):
    """The app in Discord."""

    discord_bot_token: SecretStr | None = None
    discord_public_key: str = ""
    discord_application_id: str = ""
    discord_servers: TextList = ()
    discord_api_url: HttpAddress = "https://discord.com/api/v10"

    _check_discord_token = field_validator("discord_bot_token")(_check_header_secret)


class Settings(
    DiscordSettings,
    TelegramSettings,
    SlackSettings,
    LimitSettings,
    TelemetrySettings,
    WebSettings,
    ToolSettings,
    ApprovalSettings,
    StoreSettings,
    AgentSettings,
    ModelSettings,
    BaseSettings,
):
    """All settings. The fields come in the reverse order of these base classes, so those of models first."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        env_ignore_empty=True,
        frozen=True,
        alias_generator=AliasGenerator(validation_alias=_name_variable),
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - handed over by name
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values: what code gives, then the environment, then .env."""
        return init_settings, _Environment(settings_cls), dotenv_settings, file_secret_settings

    @model_validator(mode="before")
    @classmethod
    def _strip_values(cls, given: Any) -> Any:
        """Leave out the blanks around each value, blank values, and values that Kubernetes set."""
        if not isinstance(given, dict):
            return given
        texts = {name: value.strip(_BLANKS) for name, value in given.items() if isinstance(value, str)}
        unset = {name for name, value in texts.items() if _is_unset(name, value)}
        return {name: value for name, value in (given | texts).items() if name not in unset}

    @model_validator(mode="after")
    def _check_folders(self) -> Self:
        """Validate the workspace, in which tools read without approval.

        Raises ValueError if Nod's own files lie in it, or if the shell is on without it.
        """
        if self.workspace is None:
            if self.shell:
                raise ValueError("NOD_WORKSPACE: name the folder in which NOD_SHELL may run commands")
            return self
        own_files = [Path(".env").resolve()]
        if self.sqlite_file:
            own_files.append(self.sqlite_file.resolve())
        if any(file.is_relative_to(self.workspace.resolve()) for file in own_files):
            raise ValueError("NOD_WORKSPACE: name a folder that holds neither the database nor .env")
        return self

    def environment(self) -> dict[str, str]:
        """Return the variables that give these settings, with values as people write them; secrets, too."""
        values = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value not in (None, "", ()):
                values[str(field.validation_alias)] = _write_value(value)
        return values

    def hash_shared(self) -> dict[str, str]:
        """Return a hash of each setting that must be equal in all processes on one database.

        The hashes are too short to reveal the values.
        """
        hashes = {}
        for name, value in self.environment().items():
            if not name.startswith(_PER_PROCESS_PREFIXES):
                hashes[name] = sha256(value.encode()).hexdigest()[:_SHARED_HASH_LENGTH]
        return hashes

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the environment; raises SettingsError with one line for all faults, naming each variable."""
        settings, faults = cls.inspect(**overrides)
        if settings is None or faults:
            raise SettingsError("; ".join(faults))
        return settings

    @classmethod
    def inspect(cls, **overrides: Any) -> tuple[Self | None, list[str]]:
        """Read the settings. Returns them, with defaults in place of wrong values, and a line for each fault.

        None in place of the settings where even defaults leave a fault, or if ``.env`` can't be read.
        """
        faults: list[str] = []
        given = dict(overrides)  # the values that code gives, and from the second round on defaults
        # each round gives the wrong variables their defaults, and so finds the faults of the others
        while True:
            try:
                return cls(**given), faults
            except ValidationError as error:
                wrong = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
                faults += [_describe_fault(fault) for fault in error.errors()]
                defaulted = given.keys() - overrides.keys()
                if not wrong or wrong <= defaulted:  # a fault of no single variable, or of defaults
                    return None, faults
                given |= {name: default for name, default in cls._defaults().items() if name in wrong}
            except (OSError, UnicodeError) as error:
                return None, [*faults, _describe_unreadable(error)]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {str(field.validation_alias): field.default for field in cls.model_fields.values()}


def _describe_unreadable(error: OSError | UnicodeError) -> str:
    """Return why ``.env`` can't be read, and what to do."""
    if isinstance(error, UnicodeError):
        return ".env: it is not UTF-8 text. Save it as UTF-8"
    user, folder = os.geteuid(), Path.cwd()
    if not isinstance(error, PermissionError):
        return f".env: can't be read ({error.strerror}). Make it a file that user {user} may read"
    if os.access(folder, os.X_OK):
        return f".env: user {user} may not read it. Let that user read it, or remove the file"
    owner = folder.stat()
    allowed = f"user {owner.st_uid} or in group {owner.st_gid}"
    return f"{folder}: user {user} may not enter this folder. Run Nod as {allowed}, or start it elsewhere"


def _write_value(value: Any) -> str:
    """Return a value as a person writes it in a variable."""
    match value:
        case SecretStr():
            return str(value.get_secret_value())
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(map(str, value))
        case timedelta():
            text = format_length(value.total_seconds())
            if " " in text:
                return f"{round(value.total_seconds())}s"
            return text
    return str(value)


def _describe_fault(fault: ErrorDetails) -> str:
    """Return a fault as a line: the variable, what is wrong, and what to write instead."""
    variable = str(next(iter(fault["loc"]), ""))
    given = str(fault.get("input"))[:_MAX_SHOWN_LENGTH]
    context = fault.get("ctx", {})  # the limit that was exceeded, the allowed values, or the error
    match fault["type"]:
        case "value_error":
            what = str(context.get("error") or fault["msg"])
        case "literal_error":
            names = context["expected"].replace(" or ", ", ").replace("'", "")
            what = f"'{given}' is not one of {names}"
        case "greater_than_equal" | "less_than_equal":
            what = f"'{given}' is out of range. Use {_describe_range(variable)}"
        case "int_parsing" | "int_type":
            what = f"'{given}' is not a number. Use {_describe_range(variable)}"
        case "bool_parsing" | "bool_type":
            what = f"'{given}' is neither true nor false. Use true or false"
        case "too_short":
            what = f"write at least {context['min_length']} random characters"
        case "string_too_long":
            what = f"too long. Use at most {context['max_length']} characters"
        case _:
            what = f"{fault['msg'][0].lower()}{fault['msg'][1:]}"
    return f"{variable}: {what}" if variable else what


def _describe_range(variable: str) -> str:
    """Return the range of numbers that a variable takes, in words."""
    field = next(field for field in Settings.model_fields.values() if field.validation_alias == variable)
    least = next((bound.ge for bound in field.metadata if hasattr(bound, "ge")), 0)
    most = next((bound.le for bound in field.metadata if hasattr(bound, "le")), None)
    if most is None:
        return f"a number from {least}"
    return f"a number from {least} to {most}"

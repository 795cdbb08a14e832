"""Settings: read once, from the environment and ``.env``; a wrong value stops the start with one line."""

import base64
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bot.domain.people import Actor
from bot.errors import SettingsError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"([0-9]{1,7})([smhdw])")
_ENTRY = re.compile(r"entry:[\w.\-]+")
_FLAGS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_DATABASES = "write sqlite:///file.db or postgresql+psycopg://user:password@host/name"
_TOKEN_LENGTH = 16
_LONGEST = timedelta(days=3660)


def duration(text: object) -> object:
    """``90s``, ``15m``, ``24h``, ``7d``, ``2w`` as a timedelta; raises ValueError for any other text."""
    if not isinstance(text, str):
        return text
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError("write a duration such as 90s, 15m, 24h, 7d or 2w")
    length = timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    if not timedelta(seconds=1) <= length <= _LONGEST:
        raise ValueError("write a duration from 1s to 520w")
    return length


def words(value: object) -> object:
    """A comma-separated list."""
    return [w.strip() for w in value.split(",") if w.strip()] if isinstance(value, str) else value


def flag(text: object) -> object:
    """``true`` or ``false``, as people write them; raises ValueError for any other text."""
    if not isinstance(text, str):
        return text
    if text.strip().lower() not in _FLAGS:
        raise ValueError("write true or false")
    return _FLAGS[text.strip().lower()]


def address(text: str) -> str:
    """An http address; raises ValueError for anything else."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write an address such as https://example.com/v1")
    return text


Duration = Annotated[timedelta, BeforeValidator(duration)]
Flag = Annotated[bool, BeforeValidator(flag)]
HttpAddress = Annotated[str, AfterValidator(address)]
Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(words)]


class Settings(BaseSettings):
    """Every setting, by its environment variable; ``.env.example`` tells what each is for."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", extra="ignore", env_ignore_empty=True, frozen=True
    )

    database_url: str = Field("sqlite:///nod.db", validation_alias="NOD_DATABASE_URL", repr=False)
    host: str = Field("127.0.0.1", validation_alias="NOD_HOST")
    port: int = Field(8080, ge=0, le=65535, validation_alias="NOD_PORT")
    http_tokens: Words = Field((), validation_alias="NOD_HTTP_TOKENS", repr=False)
    url: HttpAddress | None = Field(None, validation_alias="NOD_URL")
    token: SecretStr | None = Field(None, validation_alias="NOD_TOKEN")
    webhook_secret: SecretStr | None = Field(None, validation_alias="NOD_WEBHOOK_SECRET")
    webhook_hosts: Words = Field((), validation_alias="NOD_WEBHOOK_HOSTS")
    public_url: HttpAddress | None = Field(None, validation_alias="NOD_PUBLIC_URL")
    admins: Words = Field((), validation_alias="NOD_ADMINS")
    approvers: Words = Field((), validation_alias="NOD_APPROVERS")
    approver_chats: Words = Field((), validation_alias="NOD_APPROVER_CHATS")
    approval_policy: Literal["always", "writes", "destructive"] = Field(
        "writes", validation_alias="NOD_APPROVAL_POLICY"
    )
    proposal_ttl: Duration = Field(timedelta(hours=24), validation_alias="NOD_PROPOSAL_TTL")
    retention: Duration = Field(timedelta(days=30), validation_alias="NOD_RETENTION")
    max_model_calls: int = Field(12, ge=1, le=100, validation_alias="NOD_MAX_MODEL_CALLS")
    history_tokens: int = Field(24_000, ge=1000, validation_alias="NOD_HISTORY_TOKENS")
    max_teammates: int = Field(4, ge=0, le=20, validation_alias="NOD_MAX_TEAMMATES")
    plan_approval: Literal["human", "lead", "both"] = Field("human", validation_alias="NOD_PLAN_APPROVAL")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", validation_alias="NOD_LOG_LEVEL")

    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    openai_base_url: HttpAddress | None = Field(None, validation_alias="OPENAI_BASE_URL")
    model: str = Field("gpt-5-mini", validation_alias="NOD_MODEL")
    model_strict: Flag = Field(default=True, validation_alias="NOD_MODEL_STRICT")
    model_stream_options: Flag = Field(default=True, validation_alias="NOD_MODEL_STREAM_OPTIONS")
    model_parallel_tool_calls: Flag = Field(default=True, validation_alias="NOD_MODEL_PARALLEL_TOOL_CALLS")

    workspace: Path | None = Field(None, validation_alias="NOD_WORKSPACE")
    shell: bool = Field(False, validation_alias="NOD_SHELL")  # noqa: FBT003
    docker_url: str | None = Field(None, validation_alias="NOD_DOCKER_URL")
    fetch: bool = Field(False, validation_alias="NOD_FETCH")  # noqa: FBT003
    mcp_config: Path | None = Field(None, validation_alias="NOD_MCP_CONFIG")
    tools: Words = Field((), validation_alias="NOD_TOOLS")

    slack_bot_token: SecretStr | None = Field(None, validation_alias="SLACK_BOT_TOKEN")
    slack_app_token: SecretStr | None = Field(None, validation_alias="SLACK_APP_TOKEN")
    slack_signing_secret: SecretStr | None = Field(None, validation_alias="SLACK_SIGNING_SECRET")
    slack_client_id: str | None = Field(None, validation_alias="SLACK_CLIENT_ID")
    slack_client_secret: SecretStr | None = Field(None, validation_alias="SLACK_CLIENT_SECRET")
    slack_api_url: HttpAddress = Field("https://slack.com/api/", validation_alias="SLACK_API_URL")

    telegram_bot_token: SecretStr | None = Field(None, validation_alias="TELEGRAM_BOT_TOKEN")
    telegram_webhook_secret: SecretStr | None = Field(None, validation_alias="TELEGRAM_WEBHOOK_SECRET")
    telegram_api_url: HttpAddress = Field("https://api.telegram.org", validation_alias="TELEGRAM_API_URL")
    telegram_allowed_users: Words = Field((), validation_alias="TELEGRAM_ALLOWED_USERS")
    telegram_allowed_chats: Words = Field((), validation_alias="TELEGRAM_ALLOWED_CHATS")

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        try:
            parts = make_url(url)
        except (ArgumentError, ValueError):
            raise ValueError(_DATABASES) from None
        if parts.drivername not in ("sqlite", "postgresql+psycopg") or not parts.database:
            raise ValueError(_DATABASES)
        if parts.drivername == "sqlite" and (parts.host or parts.query or parts.database == ":memory:"):
            raise ValueError("name a file, as in sqlite:///nod.db: what waits must outlive the process")
        return url

    @field_validator("admins", "approvers", "approver_chats")
    @classmethod
    def _accounts(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            Actor.parse(value)
        return values

    @field_validator("tools")
    @classmethod
    def _modules(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not all(part.isidentifier() for part in value.split(".")) and not _ENTRY.fullmatch(value):
                raise ValueError("write modules such as acme.tools, and entry:name for installed packages")
        return values

    @field_validator("webhook_secret")
    @classmethod
    def _long_enough(cls, secret: SecretStr | None) -> SecretStr | None:
        text = secret.get_secret_value() if secret is not None else ""
        if secret is not None and len(text) < _TOKEN_LENGTH:
            raise ValueError("write at least 16 random characters")
        if text.startswith("whsec_"):
            try:
                base64.b64decode(text.removeprefix("whsec_"), validate=True)
            except ValueError:
                raise ValueError("after whsec_ write base64, or leave whsec_ away") from None
        return secret

    @field_validator("http_tokens")
    @classmethod
    def _pairs(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        seen: set[str] = set()
        for value in values:
            name, _, token = value.partition(":")
            if not name.replace("-", "_").isidentifier() or len(token) < _TOKEN_LENGTH:
                raise ValueError("write name:token pairs, comma-separated, each token at least 16 characters")
            if name in seen:
                raise ValueError(f"the name {name!r} stands twice")
            if token in seen:
                raise ValueError(f"the token of {name!r} is another's too; give each name its own")
            seen |= {name, token}
        return values

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not self.http_tokens and self.host not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError("NOD_HTTP_TOKENS: needed when NOD_HOST is not loopback; add name:token")
        if self.workspace is not None:
            self._check_workspace(self.workspace.resolve())
        elif self.shell:
            raise ValueError("NOD_WORKSPACE: name the folder in which NOD_SHELL may run commands")
        return self

    def _check_workspace(self, workspace: Path) -> None:
        """Raises ValueError: reads in it run without asking, so Nod's own files must not lie there."""
        own = [Path(".env").resolve(), *([self.sqlite_file.resolve()] if self.sqlite_file else [])]
        if any(file.is_relative_to(workspace) for file in own):
            raise ValueError("NOD_WORKSPACE: name a folder that holds neither the database nor .env")

    @property
    def tokens(self) -> dict[str, str]:
        """Token name by token value."""
        return {t.partition(":")[2]: t.partition(":")[0] for t in self.http_tokens}

    @property
    def own_url(self) -> str:
        """Where the commands that speak to a running Nod find it."""
        here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - not to listen on
        return self.url or f"http://{f'[{here}]' if ':' in here else here}:{self.port}"

    def require_admin(self) -> None:
        """Raises SettingsError where people could reach Nod and nobody could set it right."""
        reached = self.slack_bot_token or self.slack_client_id or self.telegram_bot_token or self.http_tokens
        if reached and not self.admins:
            raise SettingsError(
                "NOD_ADMINS: name at least one account that may set the rules, such as slack:T0123/U0456, "
                "telegram:991 or http:ana"
            )

    @property
    def sqlite_file(self) -> Path | None:
        """The database file; None where the database is a server."""
        url = make_url(self.database_url)
        return Path(url.database or "") if url.drivername == "sqlite" else None

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the environment; raises SettingsError with one line per fault, naming the variable."""
        try:
            return cls(**overrides)
        except ValidationError as error:
            raise SettingsError("; ".join(map(_told, error.errors()))) from None
        except (OSError, UnicodeError) as error:
            raise SettingsError(f".env: cannot be read ({error}); make it a UTF-8 file of yours") from None


def _told(fault: ErrorDetails) -> str:
    where = ".".join(map(str, fault["loc"]))
    what = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {what[0].lower()}{what[1:]}" if where else what

"""Models by name: a TOML file that people can edit, with one table for each model. Pure.

``["claude"]`` begins a table, whose keys are the fields of `NamedModel`. An error names the line of the wrong
value.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from bot.domain.times import parse_duration

_MOST_BYTES, _MOST_MODELS = 200_000, 100
_NAME = re.compile(r"[\w.:/@+-]{1,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HEADER = re.compile(r"\s*\[\s*(?:\"([^\"]*)\"|'([^']*)'|([\w-]+))\s*([.\]])")
_SMALLEST_WINDOW, _LARGEST_WINDOW = 2_000, 100_000_000
_OURS = frozenset(
    {"model", "messages", "input", "instructions", "stream", "stream_options", "tools", "parallel_tool_calls"}
)
"""Fields of a request that Nod fills in itself."""


class Api(StrEnum):
    CHAT = "chat"  # Chat Completions
    RESPONSES = "responses"  # the Responses API


class ToolCalls(StrEnum):
    NATIVE = "native"  # through the server's own field for them
    TEXT = "text"  # written by the model into its answer


@dataclass(frozen=True, slots=True)
class NamedModel:
    """One model. ``name`` is what people here call it, ``model`` what its server does.

    Without ``base_url`` it is at the server of the settings, with their key; else ``key`` names the variable
    that holds the key, and ``secret`` is that key. ``price`` is of a million tokens, as in the price
    file, ``minute_price`` of a minute of recordings. ``audio``: it transcribes recordings, and answers
    no one. ``options`` go into each request as they are.
    """

    name: str
    model: str = ""
    base_url: str | None = None
    key: str = ""
    api: Api = Api.CHAT
    tools: ToolCalls = ToolCalls.NATIVE
    images: bool = False
    audio: bool = False
    window: int | None = None  # tokens
    price: tuple[float, ...] = ()
    minute_price: float = 0.0
    fallback: str = ""  # the name of the model that answers when this one can't
    timeout: float = 60.0  # seconds
    strict: bool = True
    stream_options: bool = True
    parallel_tool_calls: bool = True
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    secret: str = field(default="", repr=False)
    setting: str = "NOD_MODELS"  # the setting that names the model

    @property
    def host(self) -> str:
        """The host name of the model's server."""
        return urlsplit(self.base_url or "https://api.openai.com").hostname or ""


def read_models(text: str, default: str = "") -> dict[str, NamedModel]:
    """Read a file of models; raises ValueError with the number of the first wrong line and its fault.

    ``default`` is the model of the settings, which may be a fallback although the file does not have it.
    """
    if len(text) > _MOST_BYTES:
        raise ValueError(f"it is longer than {_MOST_BYTES:,} characters")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        where = f"line {found[2]}: {found[1]}" if found else str(error)
        raise ValueError(f"{where}. Write it as in docs/models.md") from None
    if len(tables) > _MOST_MODELS:
        raise ValueError(f"it has {len(tables)} models; {_MOST_MODELS} is the most")
    models = {name: _model(text, name, table) for name, table in tables.items()}
    for each in models.values():
        if each.fallback and (each.fallback not in {*models, default} or each.fallback == each.name):
            line = _line(text, each.name, "fallback")
            raise ValueError(f"line {line}: fallback: name another model of this file")
    return models


def _model(text: str, name: str, table: Any) -> NamedModel:
    at = f"line {_line(text, name)}: {name[:100]}"
    if not isinstance(table, dict) or not _NAME.fullmatch(name):
        raise ValueError(f'{at}: begin each model with its name in brackets, such as ["gpt-4.1"]; no spaces')
    values: dict[str, Any] = {}
    for key, value in table.items():
        try:
            if key not in _READERS:
                raise ValueError(f"there is no such value; use {', '.join(_READERS)}. Quote a name with dots")
            values[key] = _READERS[key](value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"line {_line(text, name, key)}: {key[:100]}: {error}") from None
    return NamedModel(name, **{"model": name, **values})


def _line(text: str, table: str, key: str = "") -> int:
    """Return the line on which a table, or a value in it, begins."""
    at, inside = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            inside = table in header.groups()[:3]
            at = at or (number if inside else 0)
            if inside and key and header[4] == "." and re.search(rf"\.\s*[\"']?{re.escape(key)}\b", line):
                return number
        elif key and inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
            return number
        elif not key and re.match(rf"\s*[\"']?{re.escape(table)}[\"']?\s*[.=]", line):
            at = at or number
    return at or 1


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= 300:  # noqa: PLR2004 - a name or an address
        raise ValueError('write it in quotes, such as "gpt-5-mini"')
    return value.strip()


def is_one_word(text: str) -> bool:
    """Tell if a text has no space and nothing invisible: `urlsplit` silently drops line breaks."""
    return text.isprintable() and " " not in text


def model_address(text: str) -> str:
    """Return an http address without a name and a password, which a model's client does not send.

    Raises ValueError for anything else.
    """
    parts = urlsplit(text)
    is_address = is_one_word(text) and parts.scheme in ("http", "https") and bool(parts.hostname)
    if not is_address or "@" in parts.netloc:
        raise ValueError("write an address such as https://example.com/v1, without a name or a password")
    return text


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("write the name of the variable that holds the key, never the key itself")
    return value


def _one_of(kind: type[Api] | type[ToolCalls]) -> Callable[[Any], StrEnum]:
    def read(value: Any) -> StrEnum:
        if value not in set(kind):
            raise ValueError(f"use one of {', '.join(kind)}")
        return kind(value)

    return read


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("write true or false, without quotes")
    return value


def _window(value: Any) -> int:
    if type(value) is not int or not _SMALLEST_WINDOW <= value <= _LARGEST_WINDOW:
        raise ValueError(f"write a number of tokens from {_SMALLEST_WINDOW:,} on, such as 128000")
    return value


def _price(value: Any) -> tuple[float, ...]:
    numbers = value if isinstance(value, list) else []
    good = all(type(each) in (int, float) and 0 <= each < 1e9 for each in numbers)  # noqa: PLR2004
    if len(numbers) not in (2, 3) or not good:
        raise ValueError("write two or three prices of a million tokens, such as [0.25, 2, 0.025]")
    return tuple(map(float, numbers))


def _minute_price(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e6:  # noqa: PLR2004
        raise ValueError("write the price of a minute of recordings, such as 0.006")
    return float(value)


def _seconds(value: Any) -> float:
    try:
        seconds = parse_duration(_text(value)).total_seconds()
    except ValueError:
        raise ValueError('write a time such as "60s" or "5m"') from None
    if not 1 <= seconds <= 3600:  # noqa: PLR2004 - an hour
        raise ValueError("use a time from 1s to 1h")
    return seconds


def _options(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("write a table, such as options = { temperature = 0.2 }")
    ours = sorted(_OURS & value.keys())
    if ours:
        raise ValueError(f"{', '.join(ours)} is set by Nod; leave it out")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("write only texts, numbers, true, false, lists and tables") from None
    return value


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "model": _text,
    "base_url": lambda value: model_address(_text(value)),
    "key": _variable,
    "api": _one_of(Api),
    "tools": _one_of(ToolCalls),
    "images": _switch,
    "audio": _switch,
    "window": _window,
    "price": _price,
    "minute_price": _minute_price,
    "fallback": _text,
    "timeout": _seconds,
    "strict": _switch,
    "stream_options": _switch,
    "parallel_tool_calls": _switch,
    "options": _options,
}

"""Models by name: a TOML file that people edit (``NOD_MODELS``), with one table for each model. Pure.

``["claude"]`` begins a table, whose keys are the fields of `NamedModel`, such as ``base_url = "https://…"``.
`read_models` reads the file for the settings; each key has a reader in `_READERS`, which checks and converts
its value. An error names the line of the wrong value.
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

_MAX_FILE_CHARS = 200_000
_MAX_MODELS = 100  # in the file
_NAME = re.compile(r"[\w.:/@+-]{1,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
# the start of a table: ["my model"], ['my model'], [my-model], or of a table in it: [my-model.options]; the
# first three groups are its name in the three notations
_HEADER = re.compile(r"\s*\[\s*(?:\"([^\"]*)\"|'([^']*)'|([\w-]+))\s*(?P<mark>[.\]])")
_MIN_WINDOW_TOKENS = 2_000
_MAX_WINDOW_TOKENS = 100_000_000
_FIELDS_SET_BY_NOD = frozenset(
    {"model", "messages", "input", "instructions", "stream", "stream_options", "tools", "parallel_tool_calls"}
)
"""The fields of a request to a model's server that Nod fills in, so that ``options`` may not."""


class Api(StrEnum):
    """The interface of a model's server that is used."""

    CHAT = "chat"  # Chat Completions
    RESPONSES = "responses"  # the Responses API


class ToolCalls(StrEnum):
    """The way in which a model asks for calls."""

    NATIVE = "native"  # through the server's own field for them
    TEXT = "text"  # written by the model into its answer


@dataclass(frozen=True, slots=True)
class NamedModel:
    """One model, as the file or the settings describe it."""

    name: str  # Nod's name for it, in rules and for people
    model: str = ""  # the server's name for it
    base_url: str | None = None  # the address of its server; None: the address in the settings
    key: str = ""  # the name of the environment variable with the key; empty: the key of the settings
    api: Api = Api.CHAT
    tools: ToolCalls = ToolCalls.NATIVE
    images: bool = False  # it takes pictures
    audio: bool = False  # it only transcribes recordings, and gives no answers
    window: int | None = None  # the number of tokens that it takes; None: not known
    price: tuple[float, ...] = ()  # the prices of a million tokens, two or three numbers as in the price file
    minute_price: float = 0.0  # the price of a minute of recordings
    fallback: str = ""  # the name of the model that answers when this one can't
    timeout: float = 60.0  # seconds
    strict: bool = True  # tools are offered in OpenAI's strict mode
    stream_options: bool = True  # the request asks for the number of tokens
    parallel_tool_calls: bool = True  # an answer may have several calls
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)  # further fields of each request
    secret: str = field(default="", repr=False)  # the key itself, which the settings fill in
    setting_to_correct: str = "NOD_MODELS"  # the setting that errors tell people to correct

    @property
    def host(self) -> str:
        """The host name of the model's server."""
        return urlsplit(self.base_url or "https://api.openai.com").hostname or ""


def read_models(text: str, default: str = "") -> dict[str, NamedModel]:
    """Read a file of models; raises ValueError with the number of the first wrong line and its fault.

    ``default`` is the model of the settings, which may be a fallback although the file does not have it.
    """
    if len(text) > _MAX_FILE_CHARS:
        raise ValueError(f"it is longer than {_MAX_FILE_CHARS:,} characters")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        parts = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        fault = f"line {parts[2]}: {parts[1]}" if parts else str(error)
        raise ValueError(f"{fault}. Write it as in docs/models.md") from None
    if len(tables) > _MAX_MODELS:
        raise ValueError(f"it has {len(tables)} models; {_MAX_MODELS} is the most")
    models = {name: _read_model(text, name, table) for name, table in tables.items()}
    for model in models.values():
        is_other_model = model.fallback in {*models, default} and model.fallback != model.name
        if model.fallback and not is_other_model:
            line = _find_line(text, model.name, "fallback")
            raise ValueError(f"line {line}: fallback: name another model of this file")
    return models


def _read_model(text: str, name: str, table: Any) -> NamedModel:
    """Return the model of one table; ``text`` is the file, for the numbers of lines in errors."""
    where = f"line {_find_line(text, name)}: {name[:100]}"
    if not isinstance(table, dict) or not _NAME.fullmatch(name):
        raise ValueError(
            f'{where}: begin each model with its name in brackets, such as ["gpt-4.1"]; no spaces'
        )
    values: dict[str, Any] = {}
    for key, value in table.items():
        try:
            if key not in _READERS:
                raise ValueError(f"there is no such value; use {', '.join(_READERS)}. Quote a name with dots")
            values[key] = _READERS[key](value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"line {_find_line(text, name, key)}: {key[:100]}: {error}") from None
    return NamedModel(name, **{"model": name, **values})


def _find_line(text: str, table: str, key: str = "") -> int:
    """Return the number of the line on which a table begins or, with ``key``, a value in it.

    The parser of TOML does not tell lines, so they are searched for. A value that is not found counts as on
    the line where its table begins, and a table that is not found as on the first line.
    """
    if key:
        key_line = _find_key_line(text, table, key)
        if key_line is not None:
            return key_line
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            is_beginning = _names_table(header, table)
        else:
            is_beginning = _assigns(line, table)  # a table without a header: claude = {…}
        if is_beginning:
            return number
    return 1


def _find_key_line(text: str, table: str, key: str) -> int | None:
    """Return the number of the line with a value of a table; None if it is not found."""
    is_inside = False  # the line belongs to the table
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is None:
            if is_inside and _assigns(line, key):
                return number
            continue
        is_inside = _names_table(header, table)
        # a value may have a header of its own, as ``options`` in [claude.options]
        names_key = re.search(rf"\.\s*[\"']?{re.escape(key)}\b", line)
        if is_inside and header["mark"] == "." and names_key:
            return number
    return None


def _names_table(header: re.Match[str], table: str) -> bool:
    """Return whether a header is that of a table, or of a table in it."""
    names = header.groups()[:3]  # the name, in one of the three notations
    return table in names


def _assigns(line: str, key: str) -> bool:
    """Return whether a line sets the key, as ``key = …`` or ``key.more = …`` does."""
    return re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line) is not None


def _read_text(value: Any) -> str:
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


def _read_variable(value: Any) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("write the name of the variable that holds the key, never the key itself")
    return value


def _make_choice_reader(kind: type[Api] | type[ToolCalls]) -> Callable[[Any], StrEnum]:
    def read(value: Any) -> StrEnum:
        if value not in set(kind):
            raise ValueError(f"use one of {', '.join(kind)}")
        return kind(value)

    return read


def _read_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("write true or false, without quotes")
    return value


def _read_window(value: Any) -> int:
    if type(value) is not int or not _MIN_WINDOW_TOKENS <= value <= _MAX_WINDOW_TOKENS:
        raise ValueError(f"write a number of tokens from {_MIN_WINDOW_TOKENS:,} on, such as 128000")
    return value


def _read_price(value: Any) -> tuple[float, ...]:
    numbers = value if isinstance(value, list) else []
    are_prices = all(type(number) in (int, float) and 0 <= number < 1e9 for number in numbers)  # noqa: PLR2004
    if len(numbers) not in (2, 3) or not are_prices:
        raise ValueError("write two or three prices of a million tokens, such as [0.25, 2, 0.025]")
    return tuple(map(float, numbers))


def _read_minute_price(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e6:  # noqa: PLR2004
        raise ValueError("write the price of a minute of recordings, such as 0.006")
    return float(value)


def _read_seconds(value: Any) -> float:
    try:
        seconds = parse_duration(_read_text(value)).total_seconds()
    except ValueError:
        raise ValueError('write a time such as "60s" or "5m"') from None
    if not 1 <= seconds <= 3600:  # noqa: PLR2004 - an hour
        raise ValueError("use a time from 1s to 1h")
    return seconds


def _read_options(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("write a table, such as options = { temperature = 0.2 }")
    taken = sorted(_FIELDS_SET_BY_NOD & value.keys())
    if taken:
        raise ValueError(f"{', '.join(taken)} is set by Nod; leave it out")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("write only texts, numbers, true, false, lists and tables") from None
    return value


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "model": _read_text,
    "base_url": lambda value: model_address(_read_text(value)),
    "key": _read_variable,
    "api": _make_choice_reader(Api),
    "tools": _make_choice_reader(ToolCalls),
    "images": _read_switch,
    "audio": _read_switch,
    "window": _read_window,
    "price": _read_price,
    "minute_price": _read_minute_price,
    "fallback": _read_text,
    "timeout": _read_seconds,
    "strict": _read_switch,
    "stream_options": _read_switch,
    "parallel_tool_calls": _read_switch,
    "options": _read_options,
}

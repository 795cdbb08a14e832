# ruff: noqa: INP001 - a script, not a package
"""Write docs/configuration.md: each setting with what it takes, and the words of .env.example."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from zoneinfo import ZoneInfo

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from bot.domain.times import format_length
from bot.settings import Settings

_HEAD = """\
# Configuration

Every setting is a variable of the environment, or a line of `.env` in the folder where Nod starts; the
environment wins. All are optional. `nod init` asks for the most important ones and writes `.env`, and
`nod doctor` checks them. A wrong value stops the start with one line that says what to write instead.
[`.env.example`](../.env.example) has them all to copy. Rules that admins set while Nod runs are in the
[policy cookbook](cookbook.md).

Lists are separated by commas. Lengths of time are written `90s`, `15m`, `24h` or `7d`. This page is made by
`make configuration` from the settings themselves.
"""
_SHELF = "\n## {}\n\n| setting | for what | takes | default |\n|---|---|---|---|\n"
_FIELDS = {str(field.validation_alias): field for field in Settings.model_fields.values()}
_SETTING = re.compile(r"((?:# (?![A-Z_]+=).+\n)+)# ([A-Z_]+)=(.*)\n")


def page(example: str) -> str:
    """The page, in the order and with the words of .env.example."""
    _, *parts = re.split(r"^# --- (.+)\n", example, flags=re.MULTILINE)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return _HEAD + "".join(
        _SHELF.format(title) + "".join(_row(*found) for found in _SETTING.findall(section))
        for title, section in sections
    )


def _row(comment: str, name: str, shown: str) -> str:
    said = " ".join(line.removeprefix("# ") for line in comment.splitlines())
    default = _default(_FIELDS[name].default)
    example = f", such as `{shown}`" if "..." not in shown and f"`{shown}`" != default else ""
    return f"| `{name}` | {said} | {_takes(_FIELDS[name])}{example} | {default} |\n"


def _default(value: Any) -> str:
    match value:
        case None | () | "":
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case timedelta():
            return f"`{format_length(value.total_seconds())}`"
        case tuple():
            return f"`{','.join(map(str, value))}`"
    return f"`{value}`"


def _takes(field: FieldInfo) -> str:
    kinds = [each for each in get_args(field.annotation) if each is not type(None)]
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{each}`" for each in kinds)
    if get_origin(field.annotation) is tuple:
        return "a list"
    kind = kinds[0] if kinds else field.annotation
    if kind is int:
        least, most = (
            next((getattr(limit, at) for limit in field.metadata if hasattr(limit, at)), None)
            for at in ("ge", "le")
        )
        return f"a number from {least}" + (f" to {most}" if most is not None else "")
    if kind is bool and (further := [f"`{word}`" for each in kinds[1:] for word in get_args(each)]):
        return ", ".join(["`true`", "`false`", *further])
    words: dict[Any, str] = {
        bool: "`true` or `false`",
        timedelta: "a length of time",
        ZoneInfo: "a time zone",
        Path: "a path",
        SecretStr: "a secret",
    }
    return words.get(kind, "text")


if __name__ == "__main__":
    here = Path(__file__)
    here.with_suffix(".md").write_text(page((here.parent.parent / ".env.example").read_text()))

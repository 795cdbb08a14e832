"""What Discord refuses, in its own words and codes: messages, components, windows, commands. Pure.

The limits are those of https://docs.discord.com/developers (resources/message, components/reference).
"""

from collections.abc import Iterable, Sequence
from typing import Any

CONTENT, EMBED, EMBEDS, CUSTOM_ID, BUTTON, OPTIONS = 2000, 4096, 6000, 100, 80, 25
EPHEMERAL = 1 << 6
SETTABLE = (1 << 2) | EPHEMERAL  # of the flags a message may be made with here

Json = dict[str, Any]


class Refusal(Exception):
    """An answer with an error code."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.body = {"code": code, "message": message, **more}


def invalid(where: str, why: str) -> Refusal:
    return Refusal(400, 50035, "Invalid Form Body", errors={where: {"_errors": [{"message": why}]}})


def _length(where: str, text: Any, most: int, least: int = 1) -> None:
    if not isinstance(text, str) or not least <= len(text) <= most:
        raise invalid(where, f"Must be between {least} and {most} in length.")


def check_message(body: Json, *, files: bool = False) -> None:
    content, embeds, components = (body.get(key) or () for key in ("content", "embeds", "components"))
    if not (content or embeds or components or files):
        raise Refusal(400, 50006, "Cannot send an empty message")
    _length("content", content or "", CONTENT, 0)
    if len(embeds) > 10:
        raise invalid("embeds", "Must be 10 or fewer in length.")
    for embed in embeds:
        _length("embeds.description", embed.get("description"), EMBED)
    if sum(len(embed["description"]) + len(embed.get("title", "")) for embed in embeds) > EMBEDS:
        raise invalid("embeds", "Embed size exceeds maximum size of 6000")
    if (body.get("flags") or 0) & ~SETTABLE:
        raise invalid("flags", "These flags can't be set.")
    if len(body.get("nonce") or "") > 25:
        raise invalid("nonce", "Must be 25 or fewer in length.")
    _check_rows(components)


def _check_rows(rows: Sequence[Json]) -> None:
    if len(rows) > 5:
        raise invalid("components", "Must be 5 or fewer in length.")
    for row in rows:
        if row.get("type") != 1 or not 1 <= len(row["components"]) <= 5:
            raise invalid("components", "A row takes 1 to 5 buttons.")
        for button in row["components"]:
            _check_button(button)
    _unique(each["custom_id"] for row in rows for each in row["components"] if "custom_id" in each)


def _check_button(button: Json) -> None:
    if button.get("type") != 2:
        raise invalid("components", "Only buttons are known here.")
    _length("label", button.get("label"), BUTTON)
    link = button["style"] == 5
    if link != ("url" in button) or link == ("custom_id" in button) or button["style"] not in range(1, 6):
        raise invalid("components", "A link has an address, any other button a custom id.")
    _length("custom_id or url", button.get("custom_id") or button.get("url"), 512 if link else CUSTOM_ID)


def _unique(idents: Iterable[str]) -> None:
    found = list(idents)
    if len(found) != len(set(found)):
        raise invalid("components", "Component custom id cannot be duplicated")


def check_window(window: Json) -> None:
    _length("custom_id", window.get("custom_id"), CUSTOM_ID)
    _length("title", window.get("title"), 45)
    parts = window.get("components") or []
    if not 1 <= len(parts) <= 5:
        raise invalid("components", "Must be between 1 and 5 in length.")
    for part in parts:
        if part["type"] == 10:
            _length("content", part.get("content"), 4000)
        elif part["type"] == 18:
            _length("label", part.get("label"), 45)
            _length("description", part.get("description", ""), 100, 0)
            _check_input(part["component"])
        else:
            raise invalid("components", "A window takes labels and texts.")
    _unique(part["component"]["custom_id"] for part in parts if part["type"] == 18)


def _check_input(component: Json) -> None:
    _length("custom_id", component.get("custom_id"), CUSTOM_ID)
    if component["type"] == 4:
        _length("value", component.get("value", ""), component.get("max_length", 4000), 0)
        if component["style"] not in (1, 2):
            raise invalid("style", "Must be 1 or 2.")
        return
    options = component.get("options") or []
    if component["type"] != 3 or not 1 <= len(options) <= OPTIONS:
        raise invalid("options", "Must be between 1 and 25 in length.")
    for option in options:
        _length("label", option.get("label"), 100)
        _length("value", option.get("value"), 100)
    if len({option["value"] for option in options}) < len(options):
        raise invalid("options", "The specified option value is already used")
    most = component.get("max_values", 1)
    if sum(bool(option.get("default")) for option in options) > most or not 1 <= most <= len(options):
        raise invalid("options", "More are chosen than can be.")


def check_commands(commands: Sequence[Json]) -> None:
    for command in commands:
        _length("name", command.get("name"), 32)
        if command.get("type", 1) == 1:
            _length("description", command.get("description"), 100)
        elif command.get("description"):
            raise invalid("description", "A message command has no description.")
        for option in command.get("options") or ():
            _length("options.description", option.get("description"), 100)

"""What the Bot API refuses, in its own words: text, entities and keyboards. Pure."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

TEXT = 4096
CAPTION = 1024
ENTITIES = 100

_STYLES = {"primary", "success", "danger"}
_KINDS = {
    "bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link", "text_mention",
    "blockquote", "expandable_blockquote", "custom_emoji", "date_time",
}  # fmt: skip
_QUOTES = {"blockquote", "expandable_blockquote"}


class Refusal(Exception):
    """An answer with ``ok: false``."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


def bad(description: str) -> Refusal:
    return Refusal(400, f"Bad Request: {description}")


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def check_text(text: str, entities: list[dict[str, Any]], most: int = TEXT, *, empty: bool = False) -> str:
    """The text as Telegram keeps it; leading and trailing space is cut off."""
    if not text.strip() and not empty:
        raise bad("message text is empty")
    if units(text) > most:
        raise bad("message is too long" if most == TEXT else "message caption is too long")
    if len(entities) > ENTITIES:
        raise bad("can't parse entities: too many entities")
    for entity in entities:
        _check_entity(text, entity)
    quotes = [e for e in entities if e["type"] in _QUOTES]
    for a in quotes:
        for b in quotes:
            if (
                a is not b
                and a["offset"] < b["offset"] + b["length"]
                and b["offset"] < a["offset"] + a["length"]
            ):
                raise bad("can't parse entities: quotes can't be nested")
    return text.strip()


def _check_entity(text: str, entity: dict[str, Any]) -> None:
    raw = text.encode("utf-16-le")
    start, length = entity["offset"], entity["length"]
    if entity["type"] not in _KINDS:
        raise bad(f"can't parse entities: unsupported entity type {entity['type']}")
    if start < 0 or length <= 0:
        raise bad("can't parse entities: entity offset or length is out of range")
    if 2 * (start + length) > len(raw):
        raise bad(f"entity beginning at UTF-16 offset {start} ends after the end of the text")
    for at, word in ((start, "begins"), (start + length, "ends")):
        if 2 * at < len(raw) and 0xDC <= raw[2 * at + 1] <= 0xDF:
            raise bad(f"entity beginning at UTF-16 offset {start} {word} in a middle of a UTF-16 symbol")
    if entity["type"] == "text_link" and not _web(entity.get("url", "")):
        raise bad("can't parse entities: wrong link")
    if entity["type"] == "date_time" and not (
        isinstance(entity.get("unix_time"), int)
        and re.fullmatch(r"r|w?[dD]?[tT]?", entity.get("date_time_format", ""))
    ):
        raise bad("can't parse entities: wrong date-time entity")
    if entity["type"] == "text_mention" and "id" not in entity.get("user", {}):
        raise bad("can't parse entities: user not found")


def check_markup(markup: dict[str, Any] | None, *, older: bool = False) -> None:
    """``older``: of a server that knows neither disabled buttons (10.3) nor those that copy (7.11)."""
    if markup is None or markup.get("force_reply"):
        if markup and len(markup.get("input_field_placeholder", "")) > 64:
            raise bad("INPUT_FIELD_PLACEHOLDER_INVALID")
        return
    buttons = [b for row in markup["inline_keyboard"] for b in row]
    if len(buttons) > 100 or any(len(row) > 8 for row in markup["inline_keyboard"]):
        raise bad("REPLY_MARKUP_TOO_LONG")
    for button in buttons:
        if not button.get("text", "").strip():
            raise bad("inline keyboard button text must be non-empty")
        data = button.get("callback_data")
        if data is not None and not 1 <= len(data.encode()) <= 64:
            raise bad("BUTTON_DATA_INVALID")
        if "url" in button and not _web(button["url"]):
            raise bad(f"inline keyboard button URL '{button['url']}' is invalid: Wrong HTTP URL")
        kinds = [kind for kind in ("callback_data", "url", "copy_text", "disabled") if kind in button]
        if older and kinds and kinds[0] in ("copy_text", "disabled"):
            raise bad("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
        if len(kinds) != 1:
            raise bad("BUTTON_TYPE_INVALID")
        if not 1 <= len(button.get("copy_text", {}).get("text", "x")) <= 256:
            raise bad("BUTTON_COPY_TEXT_INVALID")
        if button.get("style", "primary") not in _STYLES:
            raise bad("BUTTON_STYLE_INVALID")


def _web(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and "." in (parts.hostname or "")


def decoded(name: str, value: str) -> Any:
    """A form field as the JSON value the client meant."""
    if name in ("text", "caption", "callback_query_id", "url", "secret_token"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value

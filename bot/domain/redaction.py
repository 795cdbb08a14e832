"""Secrets never reach a card, a log or an export. The digest still covers the true value."""

import re
from collections.abc import Mapping
from typing import Any

from bot.domain.proposals import PreviewField, canonical

HIDDEN = "••••••"

_SECRET_NAME = re.compile(
    r"(^|[_\-.])(password|passwd|secret|token|api[_-]?key|private[_-]?key|authorization|credentials?)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}"  # Slack
    r"|\b\d{6,12}:[\w-]{30,}\b"  # Telegram bot token
    r"|\bsk-[\w-]{16,}|\bgh[opsu]_\w{20,}|\bgithub_pat_\w{20,}|\bAKIA[0-9A-Z]{16}\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?<=Bearer )[\w.~+/-]{12,}=*"
)


def redact_text(text: str) -> str:
    """Replace what looks like a secret, wherever it stands in the text."""
    return _SECRET_VALUE.sub(HIDDEN, text)


def redact(value: Any, schema: Mapping[str, Any] | None = None) -> Any:
    """Copy JSON data without its secrets.

    A property is secret by its name, by ``"writeOnly": true`` or ``"format": "password"`` in the schema of
    the object (JSON Schema's own words for it), or by a value that looks like a known kind of key.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        properties = (schema or {}).get("properties", {})
        return {
            key: HIDDEN
            if item is not None and (_SECRET_NAME.search(key) or _is_secret(properties.get(key, {})))
            else redact(item, properties.get(key))
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        items = (schema or {}).get("items")
        return [redact(item, items) for item in value]
    return value


def _is_secret(schema: Mapping[str, Any]) -> bool:
    """Also where the secret may be left out (``anyOf`` with null)."""
    one = bool(schema.get("writeOnly")) or schema.get("format") == "password"
    return one or any(_is_secret(choice) for choice in schema.get("anyOf", ()))


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], schema: Mapping[str, Any] | None = None
) -> tuple[PreviewField, ...]:
    """Which properties differ, as text for people, without secrets; a changed secret is told as hidden."""
    old, new = redact(before, schema), redact(after, schema)
    return tuple(
        PreviewField(name, _text(old, name), _text(new, name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name) or (name in before) != (name in after)
    )


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value if value is None or isinstance(value, str) else canonical(value)

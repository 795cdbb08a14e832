"""The fields of a tool call as Telegram can ask for them: a button for each choice, or typed text. Pure.

Only the arguments at the top are fields; lists and objects are typed as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

_MOST_CHOICES = 40
_MOST_FIELDS = 60
_NUMBERS = frozenset({"integer", "number"})


class BadAnswer(ValueError):
    """What was typed does not fit the field; the message is for the person."""


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. ``choices`` are offered as buttons; ``nullable`` ones may be left empty."""

    name: str
    description: str
    kind: str
    choices: tuple[Any, ...]
    nullable: bool
    schema: Mapping[str, Any]
    value: Any

    def read(self, text: str) -> Any:
        """Turn typed text into the field's value; raises BadAnswer."""
        value: Any = text
        if self.kind != "string":
            try:
                value = json.loads(text.strip())
            except ValueError:
                if self.kind in _NUMBERS:
                    raise BadAnswer("That is not a number.") from None
                if self.kind:
                    raise BadAnswer("That is not valid JSON.") from None
        return self.checked(value)

    def checked(self, value: Any) -> Any:
        """Give the value back; raises BadAnswer when the tool's schema refuses it."""
        for fault in Draft202012Validator(self.schema).iter_errors(value):
            raise BadAnswer(_brief(fault.message))
        return value


def fields_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    """Every top-level argument in the schema's order, then those the schema does not know."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    definitions = schema.get("$defs") or {}
    names = [*properties, *(n for n in arguments if n not in properties)]
    return tuple(
        _field(n, properties.get(n, {}), definitions, arguments.get(n)) for n in names[:_MOST_FIELDS]
    )


def shown(value: Any) -> str:
    """Write a value for people."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _field(name: str, schema: Mapping[str, Any], definitions: Mapping[str, Any], value: Any) -> Field:
    plain = _resolved(schema, definitions)
    options = [_resolved(o, definitions) for o in plain.get("anyOf") or plain.get("oneOf") or [plain]]
    kinds = [k for o in options for k in _kinds(o)]
    real = [o for o in options if _kinds(o) != ["null"]]
    main = real[0] if real else plain
    choices: tuple[Any, ...] = ()
    if len(real) == 1 and "enum" in main:
        choices = tuple(v for v in main["enum"] if v is not None)
    elif len(real) == 1 and "const" in main:
        choices = (main["const"],)
    elif [k for k in kinds if k != "null"] == ["boolean"]:
        choices = (True, False)
    first = next((k for k in kinds if k != "null"), "")
    if not first:
        first = "string" if isinstance(value, str) or value is None else ""
    return Field(
        name=name,
        description=str(plain.get("description") or main.get("description") or ""),
        kind=first if len({k for k in kinds if k != "null"}) <= 1 else "",
        choices=choices if len(choices) <= _MOST_CHOICES else (),
        nullable="null" in kinds,
        schema={**schema, "$defs": dict(definitions)} if definitions else schema,
        value=value,
    )


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind] if kind else []


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return (
        {**definitions[name], **{k: v for k, v in schema.items() if k != "$ref"}}
        if name in definitions
        else schema
    )


def _brief(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:299]}…"  # noqa: PLR2004 - a line or two of a phone

"""What a tool's JSON schema asks for, as `Field`s that a modal can show; ``forms.py`` renders them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.channels.slack import limits, text

MAX_FIELDS = 60  # leaves room in a view of 100 blocks


class Shape(StrEnum):
    """How a value is asked for."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    FLAG = "flag"
    CHOICE = "choice"
    CHOICES = "choices"
    LINES = "lines"  # an array of text, one item per line
    DATE = "date"
    USER = "user"
    DATA = "data"  # anything else, as JSON


@dataclass(frozen=True, slots=True)
class Field:
    """One argument; ``given`` is the value it has now, where ``present``."""

    name: str
    block_id: str
    shape: Shape
    title: str
    description: str
    required: bool
    nullable: bool
    present: bool
    given: Any
    options: tuple[Any, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def editable(self) -> bool:
        """Whether a modal can hold the value it has."""
        return text.width(text.clean(as_text(self))) <= limits.INPUT_VALUE


def fields_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    """Read an object schema; arguments the schema does not name are asked for as what they are."""
    properties: dict[str, Any] = dict(schema.get("properties") or {})
    properties |= {name: _guess(value) for name, value in arguments.items() if name not in properties}
    named = list(enumerate(properties.items()))[:MAX_FIELDS]
    return tuple(
        _field(part, schema, name=name, block_id=f"field-{i}", arguments=arguments)
        for i, (name, part) in named
    )


def _guess(value: Any) -> dict[str, Any]:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    return next(({"type": name} for kind, name in kinds if isinstance(value, kind)), {})


def _field(
    part: Any, root: Mapping[str, Any], *, name: str, block_id: str, arguments: Mapping[str, Any]
) -> Field:
    schema, nullable = _resolve(part if isinstance(part, Mapping) else {}, root)
    shape, options = _shape(schema, root)
    return Field(
        name=name,
        block_id=block_id,
        shape=shape,
        title=str(schema.get("title") or name),
        description=str(schema.get("description") or ""),
        required=name in (root.get("required") or ()),
        nullable=nullable,
        present=name in arguments,
        given=arguments.get(name, schema.get("default")),
        options=options,
        schema=schema,
    )


def _resolve(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0
) -> tuple[dict[str, Any], bool]:
    """Follow local references and take "or null" apart; unions of more stay as they are."""
    flat, nullable = dict(schema), False
    reference = flat.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and depth < 8:  # noqa: PLR2004 - loops end
        target: Any = root
        for step in reference[2:].split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        inner, nullable = _resolve(target if isinstance(target, Mapping) else {}, root, depth + 1)
        flat = inner | {k: v for k, v in flat.items() if k != "$ref"}
    for word in ("anyOf", "oneOf", "allOf"):
        parts = flat.get(word)
        if not isinstance(parts, Sequence) or isinstance(parts, str):
            continue
        rest = [p for p in parts if isinstance(p, Mapping) and p.get("type") != "null"]
        nullable = nullable or (len(rest) < len(parts) and word != "allOf")
        if len(rest) == 1 and depth < 8:  # noqa: PLR2004
            inner, more = _resolve(rest[0], root, depth + 1)
            flat = inner | {k: v for k, v in flat.items() if k != word}
            nullable = nullable or more
    kinds = flat.get("type")
    if isinstance(kinds, list):
        nullable = nullable or "null" in kinds
        kinds = [k for k in kinds if k != "null"]
        flat["type"] = kinds[0] if len(kinds) == 1 else kinds
    if isinstance(flat.get("enum"), list) and None in flat["enum"]:
        flat["enum"], nullable = [v for v in flat["enum"] if v is not None], True
    return flat, nullable


def _shape(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Shape, tuple[Any, ...]]:
    kind, choices = schema.get("type"), schema.get("enum")
    if "const" in schema:
        choices = [schema["const"]]
    if isinstance(choices, list) and 0 < len(choices) <= limits.SELECT_OPTIONS:
        return Shape.CHOICE, tuple(choices)
    if kind == "array":
        items, _ = _resolve(schema.get("items") or {}, root)
        some = items.get("enum")
        if isinstance(some, list) and 0 < len(some) <= limits.SELECT_OPTIONS:
            return Shape.CHOICES, tuple(some)
        return (Shape.LINES if items.get("type") == "string" else Shape.DATA), ()
    if kind == "string":
        special = {"date": Shape.DATE, "user": Shape.USER}
        return special.get(str(schema.get("format")), Shape.TEXT), ()
    simple = {"integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.FLAG}
    return simple.get(str(kind), Shape.DATA), ()


def as_text(asked: Field) -> str:
    """How the value stands in a text input; empty for those that are no text."""
    value = asked.given
    match asked.shape:
        case Shape.CHOICE | Shape.CHOICES | Shape.FLAG | Shape.DATE | Shape.USER:
            return ""
        case _ if value is None:
            return ""
        case Shape.LINES if isinstance(value, list) and all(
            isinstance(v, str) and "\n" not in v for v in value
        ):
            return "\n".join(value)
        case Shape.TEXT if isinstance(value, str):
            return value
        case Shape.NUMBER | Shape.INTEGER if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, indent=2)

"""Descriptions of a schema's parts, with the facts that the sent schema can't state.

Many keys of JSON schema, such as ``minimum`` and ``pattern``, are refused by some maker's server. They are
left out of the schema that is sent, and become sentences in the part's description: "At least 1."
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.agent.openai.schemas.parts import MAX_VALUE_CHARS, Part, list_enum_texts, list_types, list_values

KEPT_FORMATS = frozenset({"date-time"})
"""The formats that every maker takes."""
_MAX_DESCRIPTION_CHARS = 2_000
_MAX_TOLD_BOUND = 1_000_000  # no value comes near a bound of this size, so it is not worth a sentence
_BOUND_TEXTS = {
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "exclusiveMinimum": "More than {}.",
    "exclusiveMaximum": "Less than {}.",
    "multipleOf": "A multiple of {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
}


def describe_part(part: Part) -> str:
    """Return a part's description, and the facts that its schema can't state for every maker."""
    description = str(part.get("description") or "").strip()
    facts = list(_list_facts(part))
    if not facts:
        return description[:_MAX_DESCRIPTION_CHARS]
    sentences = filter(None, [end_sentence(description), *facts])
    return " ".join(sentences)[:_MAX_DESCRIPTION_CHARS]


def end_sentence(text: str) -> str:
    """Return the text with a full stop, if it ends without any mark."""
    if text and text[-1] not in ".!?:;…":
        return f"{text}."
    return text


def _list_facts(part: Part) -> Iterator[str]:
    values = list_values(part)
    if values and not _is_enum_enough(part, values):
        yield f"One of: {_format_values(values)}."
    yield from _list_bounds(part)
    if isinstance(part.get("format"), str) and part["format"] not in KEPT_FORMATS:
        yield f"Format: {part['format'][:MAX_VALUE_CHARS]}."
    if isinstance(part.get("pattern"), str):
        yield f"Pattern: {part['pattern'][:MAX_VALUE_CHARS]}"
    if part.get("uniqueItems") is True:
        yield "No item twice."
    extra_properties = part.get("additionalProperties")
    if isinstance(extra_properties, Mapping) and extra_properties:
        types = " or ".join(list_types(extra_properties)) or "anything"
        yield f"Its names are free; each value: {types}."
    if part.get("default") is not None:
        yield f"Default: {_format_values([part['default']])}."
    examples = part.get("examples")
    if isinstance(examples, list) and examples:
        yield f"For example: {_format_values(examples[:3])}."


def _is_enum_enough(part: Part, values: Sequence[Any]) -> bool:
    """Tell if the sent ``enum`` has all values. Null need not be in it, since it is sent as a type."""
    return bool(list_enum_texts(part)) and all(isinstance(value, str | None) for value in values)


def _list_bounds(part: Part) -> list[str]:
    """Return the bounds of a part in words, without bounds that no value comes near."""
    not_empty: list[str] = []
    bounds: list[str] = []
    for key, text in _BOUND_TEXTS.items():
        value: Any = part.get(key)
        is_worth_telling = _is_number(value) and abs(value) < _MAX_TOLD_BOUND
        if not is_worth_telling:
            continue
        is_least_length = key in ("minLength", "minItems")
        if not is_least_length or value > 1:
            bounds.append(text.format(value))
        elif value == 1:
            not_empty.append("Not empty.")
    return [*not_empty, *bounds]  # "Not empty." comes first


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format_values(values: Sequence[Any]) -> str:
    text = ", ".join(json.dumps(value, ensure_ascii=False, default=str) for value in values)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"

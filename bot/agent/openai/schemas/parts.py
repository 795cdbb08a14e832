"""Facts of one part of a tool's schema, such as its types and values, and the union of two parts."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Part = Mapping[str, Any]
"""A tool's own schema, or a schema inside it."""

MAX_VALUE_CHARS = 300  # the most characters of a value, or of a list of values in words
_MAX_ENUM_VALUES = 200
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_TYPES_OF_VALUES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_TYPE_HINTS = {
    "object": ("properties", "additionalProperties", "required", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""The keys that are only found with a type, for parts that don't state theirs."""


def list_types(part: Part) -> list[str]:
    """Return the types that a part may have; none if it may have any.

    These are the stated types, else the types of its values, else the type that its keys hint at.
    """
    types = _list_stated_types(part)
    if not types:
        types_of_values = [_TYPES_OF_VALUES.get(type(value), "") for value in list_values(part)]
        types = list(filter(None, types_of_values))
    if not types:
        types = [name for name, keys in _TYPE_HINTS.items() if any(key in part for key in keys)][:1]
    if types and part.get("nullable") is True:
        types.append("null")
    if "integer" in types and "number" in types:
        types.remove("integer")
    return list(dict.fromkeys(types))


def _list_stated_types(part: Part) -> list[str]:
    stated = part.get("type")
    names = stated if isinstance(stated, list) else [stated]
    return [name for name in names if name in _TYPES]


def list_values(part: Part) -> list[Any]:
    """Return the only values that a part may have, by ``const`` or ``enum``; empty without these keys."""
    if "const" in part:
        return [part["const"]]
    values = part.get("enum")
    return values if isinstance(values, list) else []


def list_enum_texts(part: Part) -> list[str]:
    """Return the texts among the values, if every maker takes such an ``enum``; else an empty list.

    No text may be empty or long, and the number of texts is limited.
    """
    texts = list(dict.fromkeys(value for value in list_values(part) if isinstance(value, str)))
    is_accepted = len(texts) <= _MAX_ENUM_VALUES and all(0 < len(text) <= MAX_VALUE_CHARS for text in texts)
    return texts if is_accepted else []


def find_item(part: Part) -> Any:
    """Return the schema of a list's items; alternatives where each position has a schema of its own."""
    items, places = part.get("items", True), part.get("prefixItems")
    if isinstance(places, list) and places:
        return {"anyOf": places}
    if isinstance(items, list) and items:
        return {"anyOf": items}
    if isinstance(items, list) or items is False:
        return True
    return items


def list_required(part: Part) -> list[str]:
    """Return the names of the required properties."""
    required = part.get("required")
    if not isinstance(required, list):
        return []
    return list(dict.fromkeys(name for name in required if isinstance(name, str)))


def list_alternatives(part: Part) -> list[Any]:
    """Return the alternatives of a part, with null if it is nullable; none if it has no alternatives."""
    for key in ("anyOf", "oneOf"):
        alternatives = part.get(key)
        if isinstance(alternatives, list) and alternatives:
            null = [{"type": "null"}] if part.get("nullable") is True else []
            return [*alternatives, *null]
    return []


def is_object(part: Part) -> bool:
    return isinstance(part.get("properties"), Mapping) or part.get("type") == "object"


def has_one_type(part: Part) -> bool:
    """Tell if a part states its own type, so that its alternatives only narrow it."""
    return isinstance(part.get("type"), str) and part["type"] in _TYPES


def unite_parts(part: Part, other: Part, *, optional: bool) -> Json:
    """Return a part with the keys of both parts; the first part's value counts for a key that both have.

    ``optional``: only the properties of ``other`` are taken, and none of them is required.
    """
    united: Json = dict(part)
    if not optional:
        added = {key: value for key, value in other.items() if key not in ("required", "properties")}
        united = {**added, **part}
        if "required" in other:
            united["required"] = [*list_required(part), *list_required(other)]
    new_properties = other.get("properties")
    if isinstance(new_properties, Mapping):
        properties = part.get("properties")
        united["properties"] = dict(properties) if isinstance(properties, Mapping) else {}
        for name, new in new_properties.items():
            own = united["properties"].setdefault(name, new)
            if optional:
                united["properties"][name] = _make_either(own, new)
    return united


def _make_either(first: Any, second: Any) -> Any:
    """Return a part that may be either of two; two lists of texts become one."""
    if first == second or not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return first
    first_values, second_values = list_values(first), list_values(second)
    values = [*first_values, *second_values]
    if first_values and second_values and all(isinstance(value, str) for value in values):
        without_values = {key: value for key, value in first.items() if key not in ("const", "enum")}
        return {**without_values, "enum": list(dict.fromkeys(values))}
    if list_types(first) == list_types(second):
        return first
    return {"anyOf": [first, second]}


def add_description(written: Json, description: str) -> Json:
    """Return a part that is to be sent with this description, or as it is without one."""
    return {**written, "description": description} if description else written

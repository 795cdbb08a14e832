"""Facts of one part of a tool's JSON schema, such as its types and values, and the union of two parts.

A part is a schema, or a schema inside one: of a property, an item or an alternative. A tool of an MCP server
may bring any schema, so no key is sure to have the type that the standard demands. ``writer.py`` and
``descriptions.py`` ask here.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Part = Mapping[str, Any]
"""A tool's own schema, or a schema inside it."""

MAX_VALUE_CHARS = 300  # the most characters of a value, or of a list of values in words
_MAX_ENUM_VALUES = 200
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_TYPES_OF_VALUES = {  # the name of a type in JSON schema, by the type in Python
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
"""Keys by which the type of a part that does not state it is known."""
_KEYS_OF_OTHER_SCHEMAS = ("$ref", "anyOf", "oneOf", "allOf")  # the type of a part may be stated in these


def list_types(part: Part) -> list[str]:
    """Return the types that a part may have; an empty list if it may have any type.

    These are the stated types, else the types of its values, else the first type that its keys imply.
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
        types.remove("integer")  # each integer is a number
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
    """Return the texts among the values of a part, if every model server takes this ``enum``; else none.

    Every server takes an enum of at most 200 texts, none of them empty or longer than 300 characters.
    """
    texts = list(dict.fromkeys(value for value in list_values(part) if isinstance(value, str)))
    is_accepted = len(texts) <= _MAX_ENUM_VALUES and all(0 < len(text) <= MAX_VALUE_CHARS for text in texts)
    return texts if is_accepted else []


def find_item(part: Part) -> Any:
    """Return the schema of a list's items; True, which allows any item, if it has no schema for them.

    If each position has a schema of its own, these become alternatives for every item.
    """
    items = part.get("items", True)
    schemas_by_position = part.get("prefixItems")
    if isinstance(schemas_by_position, list) and schemas_by_position:
        return {"anyOf": schemas_by_position}
    if isinstance(items, list) and items:  # the older way to state a schema for each position
        return {"anyOf": items}
    if isinstance(items, list) or items is False:
        return True  # an empty list, or no items allowed: some model servers refuse both
    return items


def list_required(part: Part) -> list[str]:
    """Return the names of the required properties."""
    required = part.get("required")
    if not isinstance(required, list):
        return []
    return list(dict.fromkeys(name for name in required if isinstance(name, str)))


def list_alternatives(part: Part) -> list[Any]:
    """Return the alternatives of a part, and null among them if the part may be null; else an empty list."""
    for key in ("anyOf", "oneOf"):
        alternatives = part.get(key)
        if isinstance(alternatives, list) and alternatives:
            null = [{"type": "null"}] if part.get("nullable") is True else []
            return [*alternatives, *null]
    return []


def is_object(part: Part) -> bool:
    """Tell if a part states that it is an object, or has properties."""
    return isinstance(part.get("properties"), Mapping) or part.get("type") == "object"


def has_one_type(part: Part) -> bool:
    """Tell if a part states one type, so that its alternatives can only narrow this type."""
    return isinstance(part.get("type"), str) and part["type"] in _TYPES


def merge_part(part: Part, other: Part) -> Json:
    """Return a part with the keys, properties and required names of both parts.

    Of a key or a property that both have, the first part's value is taken.
    """
    added = {key: value for key, value in other.items() if key not in ("required", "properties")}
    merged: Json = {**added, **part}
    if "required" in other:
        merged["required"] = [*list_required(part), *list_required(other)]
    new_properties = other.get("properties")
    if isinstance(new_properties, Mapping):
        merged["properties"] = _copy_properties(part)
        for name, new in new_properties.items():
            merged["properties"].setdefault(name, new)
    return merged


def add_optional_properties(part: Part, other: Part) -> Json:
    """Return a part with the properties of another part, none of which becomes required.

    A property that both have may be either of the two.
    """
    extended: Json = dict(part)
    new_properties = other.get("properties")
    if isinstance(new_properties, Mapping):
        extended["properties"] = _copy_properties(part)
        for name, new in new_properties.items():
            own = extended["properties"].get(name, new)
            extended["properties"][name] = _make_either(own, new)
    return extended


def _copy_properties(part: Part) -> Json:
    properties = part.get("properties")
    return dict(properties) if isinstance(properties, Mapping) else {}


def _make_either(first: Any, second: Any) -> Any:
    """Return a part that may be either of two.

    Two lists of texts become one list. If both have the same types, the first stands for both.
    """
    if first == second or not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return first
    first_values = list_values(first)
    second_values = list_values(second)
    values = [*first_values, *second_values]
    if first_values and second_values and all(isinstance(value, str) for value in values):
        without_values = {key: value for key, value in first.items() if key not in ("const", "enum")}
        return {**without_values, "enum": list(dict.fromkeys(values))}
    types = list_types(first)
    if types != list_types(second):
        return {"anyOf": [first, second]}
    states_types_elsewhere = any(key in part for part in (first, second) for key in _KEYS_OF_OTHER_SCHEMAS)
    if not types and states_types_elsewhere:
        return {"anyOf": [first, second]}
    return first


def add_description(part: Json, description: str) -> Json:
    """Return a part with this description, or as it is if the description is empty."""
    return {**part, "description": description} if description else part

"""Reading of JSON schemas as far as conditions need it: the kinds of value that a part may have.

A *part* is the schema of one field or item within a tool's schema, the *root*. The *kind* of a value is its
type in words for people, such as "a number". A part that names neither types nor fields allows any value.
"""

from collections.abc import Mapping
from typing import Any

from bot.domain.redaction import find_referred

MAX_DEPTH = 8
"""The most references and alternatives inside one another; also for paths and brackets of conditions."""
# the kinds of values, as messages to people name them
LIST = "a list"
NUMBER = "a number"
OBJECT = "an object"
TEXT = "text"
YES_OR_NO = "yes or no"

Schema = Mapping[str, Any]

_KINDS = {
    "boolean": YES_OR_NO,
    "integer": NUMBER,
    "number": NUMBER,
    "string": TEXT,
    "array": LIST,
    "object": OBJECT,
}
_ALTERNATIVES = frozenset({"$ref", "anyOf", "oneOf"})  # keywords that say what else a part may be
# keywords by which a schema may have fields that its "properties" do not list
_FURTHER_FIELDS = ("additionalProperties", "patternProperties", "allOf")


def kind_of(value: object) -> str:
    """Return the kind of a value that a condition can name; "something else" for any other value."""
    if isinstance(value, bool):
        return YES_OR_NO
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return TEXT
    return "something else"


def list_kinds(part: Schema) -> list[str]:
    """Return the kinds of value that a schema allows, by its types or its enum; empty if it has neither."""
    types = part.get("type")
    if not types:
        return [kind_of(value) for value in part.get("enum", ())]
    if not isinstance(types, list):
        types = [types]
    return [_KINDS[name] for name in types if name in _KINDS]


def list_alternatives(part: Schema, root: Schema, depth: int = 0) -> list[Schema]:
    """Return the alternatives of a schema, with references into ``root`` followed.

    Each alternative has what the schema says next to ``anyOf`` or ``$ref``, too. Alternatives that say
    nothing, or are null, are left out.
    """
    reference = part.get("$ref")
    if isinstance(reference, str) and depth < MAX_DEPTH:
        referred = find_referred(root, reference)
        if isinstance(referred, Mapping):
            return list_alternatives(_join(part, referred), root, depth + 1)
        return []
    alternatives = part.get("anyOf") or part.get("oneOf")
    if isinstance(alternatives, list) and depth < MAX_DEPTH:
        found = []
        for alternative in alternatives:
            if isinstance(alternative, Mapping) and alternative.get("type") != "null":
                found += list_alternatives(_join(part, alternative), root, depth + 1)
        return found
    if {"type", "enum", "properties"} & part.keys():
        return [part]
    return []


def _join(part: Schema, alternative: Schema) -> Schema:
    """Return an alternative of a part, with the keywords that stand in the part next to its alternatives."""
    common = {key: value for key, value in part.items() if key not in _ALTERNATIVES}
    joined = {**common, **alternative}
    own_fields = part.get("properties")
    further_fields = alternative.get("properties")
    if isinstance(own_fields, Mapping) and isinstance(further_fields, Mapping):
        joined["properties"] = {**own_fields, **further_fields}
    return joined


def may_have_field(part: Schema, name: str) -> bool:
    """Return whether a value of this schema may have a field of that name, or an item at that index."""
    kinds = list_kinds(part)
    if not kinds or OBJECT in kinds or "properties" in part:
        return True
    return LIST in kinds and name.isdecimal()


def lacks_field(part: Schema, name: str) -> bool:
    """Return whether a schema lists its fields, and this one is not among them.

    Unlike in JSON Schema, fields that are not listed are allowed only where one of `_FURTHER_FIELDS` says so.
    """
    properties = part.get("properties")
    if not isinstance(properties, Mapping) or any(part.get(keyword) for keyword in _FURTHER_FIELDS):
        return False
    return name not in properties


def find_part(part: Schema, name: str) -> Schema:
    """Return the schema of a field, or of an item of a list; empty where it has no schema."""
    if name.isdecimal() and "items" in part:
        found = part["items"]
    else:
        properties = part.get("properties")
        found = properties.get(name) if isinstance(properties, Mapping) else None
    if isinstance(found, Mapping):
        return found
    return {}

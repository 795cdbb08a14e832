"""JSON schemas of tools' arguments in the form that language models take.

`make_model_schema` turns pydantic's schema of a tool into the form that is offered to a model.
`fits_strict_mode` tells if OpenAI's *strict mode* takes a schema: a model's calls are then sure to fit it.
The rules of strict mode: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

from typing import Any

Schema = dict[str, Any]

_KEYWORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
    "$ref", "$defs", "description", "pattern", "format", "minLength", "maxLength", "minItems", "maxItems",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
})  # fmt: skip
_FORMATS = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_MAX_PROPERTIES = 5_000
_MAX_ENUM_VALUES = 1_000
_MAX_NAMES_CHARS = 120_000  # all names of properties and definitions, and all values of enums
_LARGE_ENUM_VALUES = 250  # an enum with more values is large
_MAX_LARGE_ENUM_CHARS = 15_000  # all values of a large enum


def make_model_schema(schema: Schema) -> Schema:
    """Return the schema with all properties required, no others allowed, and references written out.

    It has no defaults and no titles. A reference to a definition that refers to itself stays a reference.
    """
    definitions = schema.get("$defs", {})
    model_schema: Schema = _write_out(schema, definitions, ())
    if _has_reference(model_schema):
        # in a definition every reference stays, as if the part were inside of all definitions
        names = tuple(definitions)
        model_schema["$defs"] = {name: _write_out(part, {}, names) for name, part in definitions.items()}
    return model_schema


def fits_strict_mode(schema: Any) -> bool:
    """Tell if strict mode takes a schema. A request fails if it wrongly says that a tool is strict."""
    return _has_strict_form(schema) and _is_small_enough(schema)


def _is_small_enough(schema: Any) -> bool:
    """Tell if a schema is within strict mode's limits; a definition counts once."""
    property_count = value_count = char_count = 0
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        if not isinstance(part, dict):
            continue
        names = [*part.get("properties", {}), *part.get("$defs", {})]
        enum = [str(value) for value in part.get("enum", ())]
        enum_chars = sum(map(len, enum))
        if len(enum) > _LARGE_ENUM_VALUES and enum_chars > _MAX_LARGE_ENUM_CHARS:
            return False
        property_count += len(part.get("properties", {}))
        value_count += len(enum)
        char_count += sum(map(len, names)) + enum_chars + len(str(part.get("const", "")))
        parts += part.get("properties", {}).values()
        parts += part.get("$defs", {}).values()
        parts += part.get("anyOf", ())
        parts.append(part.get("items"))
    has_few_parts = property_count <= _MAX_PROPERTIES and value_count <= _MAX_ENUM_VALUES
    return has_few_parts and char_count <= _MAX_NAMES_CHARS


def _has_strict_form(schema: Any) -> bool:
    """Tell if strict mode takes a schema and all its parts, without regard to the limits of size."""
    if not isinstance(schema, dict) or not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return False
    if schema.keys() - _KEYWORDS:
        return False
    if "format" in schema and schema["format"] not in _FORMATS:
        return False
    if "(?" in schema.get("pattern", ""):  # lookahead and the like
        return False
    if "$ref" in schema and len(schema) > 1:  # nothing may be next to a reference
        return False
    types = schema.get("type")
    if not isinstance(types, list):
        types = [types]
    is_object = "object" in types or "properties" in schema
    if is_object and schema.get("additionalProperties") is not False:
        return False
    if not set(schema.get("properties", {})) <= set(schema.get("required", ())):
        return False
    if ("array" in types and "items" not in schema) or schema.get("enum") == []:
        return False
    parts = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("anyOf", []),
    ]
    if "items" in schema:
        parts.append(schema["items"])
    return all(map(_has_strict_form, parts))


def _write_out(node: Any, definitions: Schema, inside: tuple[str, ...]) -> Any:
    """Return a part of a schema in the form for models, with references to ``definitions`` written out.

    ``inside``: the names of the definitions that the part is inside of; references to them stay.
    """
    if isinstance(node, list):
        return [_write_out(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in inside:
            return {"$ref": reference}
        other_keys = {key: value for key, value in node.items() if key != "$ref"}
        return _write_out({**definitions[name], **other_keys}, definitions, (*inside, name))
    written: Schema = {}
    for key, value in node.items():
        if key == "properties":
            written[key] = {name: _write_out(item, definitions, inside) for name, item in value.items()}
        elif key == "title" and isinstance(value, str):  # else it is not the title of a schema
            continue
        elif key not in ("default", "$defs"):
            written[key] = _write_out(value, definitions, inside)
    # a mapping with free keys, such as dict[str, int]
    takes_any_key = node.get("additionalProperties", False) is not False and "properties" not in node
    if written.get("type") == "object" and not takes_any_key:
        written.setdefault("properties", {})
        written["required"] = list(written["properties"])
        written["additionalProperties"] = False
    return written


def _has_reference(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_has_reference, node))
    if isinstance(node, dict):
        return "$ref" in node or any(map(_has_reference, node.values()))
    return False

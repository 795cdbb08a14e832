"""A pydantic JSON schema in the form language models take: OpenAI's strict mode, where it can be had.

Strict mode's rules: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
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
_MAX_NAMES_CHARS = 120_000  # of all names of properties and definitions, and all values of enums
_LARGE_ENUM_VALUES = 250
_MAX_LARGE_ENUM_CHARS = 15_000


def make_offered(schema: Schema) -> Schema:
    """Return the schema with all properties required, no others allowed, and references written out.

    It has no defaults and no titles.
    """
    definitions = schema.get("$defs", {})
    whole: Schema = _write_out(schema, definitions, ())
    if _refers(whole):
        whole["$defs"] = {
            name: _write_out(each, {}, tuple(definitions)) for name, each in definitions.items()
        }
    return whole


def fits_strict(schema: Any) -> bool:
    """Return whether strict mode takes this; a tool that says it does and does not breaks every request."""
    return _may_be_strict(schema) and _is_small_enough(schema)


def _is_small_enough(schema: Any) -> bool:
    """Return whether all of a schema is within strict mode's limits; a reference counts once."""
    properties = values = chars = 0
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        if not isinstance(part, dict):
            continue
        named = [name for key in ("properties", "$defs") for name in part.get(key, {})]
        enum = [str(value) for value in part.get("enum", ())]
        properties += len(part.get("properties", {}))
        values += len(enum)
        chars += sum(map(len, named)) + sum(map(len, enum)) + len(str(part.get("const", "")))
        if len(enum) > _LARGE_ENUM_VALUES and sum(map(len, enum)) > _MAX_LARGE_ENUM_CHARS:
            return False
        for key in ("properties", "$defs"):
            parts += part.get(key, {}).values()
        parts += [*part.get("anyOf", ()), part.get("items")]
    return properties <= _MAX_PROPERTIES and values <= _MAX_ENUM_VALUES and chars <= _MAX_NAMES_CHARS


def _may_be_strict(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return False
    if schema.keys() - _KEYWORDS or schema.get("format", "date") not in _FORMATS:
        return False
    if "(?" in schema.get("pattern", ""):  # no looking around
        return False
    if "$ref" in schema and len(schema) > 1:  # nothing stands next to a reference
        return False
    said = schema.get("type")
    types = said if isinstance(said, list) else [said]
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
    return all(map(_may_be_strict, parts)) and ("items" not in schema or _may_be_strict(schema["items"]))


def _write_out(node: Any, definitions: Schema, inside: tuple[str, ...]) -> Any:
    """Return a part as it is offered; ``inside`` are the definitions that it is a part of."""
    if isinstance(node, list):
        return [_write_out(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in inside:
            return {"$ref": reference}
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _write_out({**definitions[name], **beside}, definitions, (*inside, name))
    kept: Schema = {}
    for key, value in node.items():
        if key == "properties":
            kept[key] = {name: _write_out(item, definitions, inside) for name, item in value.items()}
        elif key not in ("default", "$defs") and not (key == "title" and isinstance(value, str)):
            kept[key] = _write_out(value, definitions, inside)
    free_keys = node.get("additionalProperties", False) is not False and "properties" not in node
    if kept.get("type") == "object" and not free_keys:
        kept.setdefault("properties", {})
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    return kept


def _refers(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_refers, node))
    return isinstance(node, dict) and ("$ref" in node or any(map(_refers, node.values())))

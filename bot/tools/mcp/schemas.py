"""A server's JSON schema of a tool's arguments: for checks, and in a simpler form for the model.

`ArgumentSchema` checks a call's arguments against the unchanged schema, in a child process, because a schema
from outside may take centuries to check. `simplify_schema` returns a simpler form of the schema, which the
model gets.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.domain.digests import to_canonical_json
from bot.domain.forms import defaults_of
from bot.errors import BadArguments
from bot.tools.child import Child, TookTooLong

CHECK_SECONDS = 2.0
"""The time for one check, after which it is killed."""

_OBJECTS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")  # keywords
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")  # keywords
_MAX_SCHEMA_CHARS = 64 * 1024
_TOO_SLOW_FAULT = {
    "arguments": "they can't be checked against the tool's schema in time; don't call this tool"
}
_CHILD = Child(Path(__file__).with_name("checker.py"), seconds=CHECK_SECONDS)


class TooSlow(ValueError):
    """A schema that takes too long to check, whatever the arguments."""


class ArgumentSchema:
    """A schema that arguments are checked against, in a child that can be killed (``checker.py``).

    The constructor raises ValueError if the schema is no JSON schema, or takes too long to check (TooSlow).
    The constructor and `check` block for at most `CHECK_SECONDS`, so use them in a thread. The keys of the
    child's answers (``checked``, ``fields`` and ``schema_fault``) are described in ``checker.py``.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if len(to_canonical_json(schema)) > _MAX_SCHEMA_CHARS:
            raise ValueError(f"its schema is larger than {_MAX_SCHEMA_CHARS // 1024} KiB")
        self._schema = schema
        self.defaults = defaults_of(schema)
        self._is_too_slow = False
        """True once a check took too long; no further check is tried then."""
        try:
            answer = _CHILD.ask({"schema": schema, "arguments": {}})
        except TookTooLong:
            raise TooSlow(f"its schema takes longer than {CHECK_SECONDS:g} s to check") from None
        if "schema_fault" in answer:
            raise ValueError(answer["schema_fault"])

    def check(self, raw: Any) -> dict[str, Any]:
        """Return a copy of the arguments with the schema's defaults. Raises BadArguments, naming the fields.

        If an optional argument is null, though the schema forbids null, it counts as not given. Defaults are
        filled in here so that people see and approve them, except for those that the schema itself refuses.
        """
        if not isinstance(raw, dict):
            raise BadArguments({"arguments": "this must be a JSON object"})
        try:
            to_canonical_json(raw).encode()  # raises for half an emoji as well, which UTF-8 can't hold
        except (ValueError, TypeError, RecursionError) as error:
            raise BadArguments({"arguments": f"this is not JSON ({type(error).__name__})"}) from None
        if self._is_too_slow:
            raise BadArguments(_TOO_SLOW_FAULT)
        try:
            question = {"schema": self._schema, "arguments": raw, "defaults": self.defaults}
            answer = _CHILD.ask(question)
        except TookTooLong:
            self._is_too_slow = True
            raise BadArguments(_TOO_SLOW_FAULT) from None
        if "checked" not in answer:
            raise BadArguments(answer["fields"])
        arguments: dict[str, Any] = answer["checked"]
        return arguments


def simplify_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in a form that every model's API reads. Its root is an object.

    JSON Schema also allows ``true`` and ``false`` as a schema, and a list as ``items`` (in older drafts).
    Wherever a usual keyword holds such a schema, an object takes its place.
    """
    simple: dict[str, Any] = _simplify(schema)
    return {**simple, "type": "object", "properties": simple.get("properties", {})}


def _simplify(schema: Any) -> Any:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if not isinstance(schema, Mapping):
        return schema
    return {keyword: _simplify_value(keyword, value) for keyword, value in schema.items()}


def _simplify_value(keyword: str, value: Any) -> Any:
    """Return the value of a keyword, with the schemas in it simplified."""
    if keyword in _OBJECTS_OF_SCHEMAS and isinstance(value, Mapping):
        return {name: _simplify(part) for name, part in value.items()}
    if keyword in _LISTS_OF_SCHEMAS and isinstance(value, list):
        return [_simplify(part) for part in value]
    if keyword == "items":
        if isinstance(value, list):
            return {}
        return _simplify(value)
    if keyword == "additionalProperties" and isinstance(value, Mapping):
        return _simplify(value)
    return value

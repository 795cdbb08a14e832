"""A server's JSON schema: arguments are checked against it as it is; the model gets it nearly as it is.

Words about what does not fit never repeat the value, which may be a secret.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from referencing import Registry

from bot.domain.proposals import canonical
from bot.errors import BadArguments
from bot.tools.schema import fits_strict

_MANY = ("properties", "patternProperties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MOST = 160  # characters of what a schema asks for in an error


class Arguments:
    """A schema that arguments are checked against. Raises ValueError where it is no JSON schema.

    References reach inside the schema only: nothing is fetched.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except (SchemaError, RecursionError) as error:
            raise ValueError(f"this is no JSON schema: {str(error).splitlines()[0]}") from None
        self._validator = kind(schema, registry=Registry())
        self._required = frozenset(schema.get("required", ()))

    def check(self, raw: Any) -> dict[str, Any]:
        """A copy of the arguments; null where an optional one may not be null means "not given".

        Raises BadArguments, naming the fields.
        """
        if not isinstance(raw, dict):
            raise BadArguments({"arguments": "this must be a JSON object"})
        try:
            canonical(raw).encode()
            errors = list(self._validator.iter_errors(raw))
            unwanted = {name for name in map(_null, errors) if name} - self._required
            kept = copy.deepcopy({name: value for name, value in raw.items() if name not in unwanted})
            if unwanted:
                errors = list(self._validator.iter_errors(kept))
        except Exception as error:  # noqa: BLE001 - a reference that leads nowhere or round in circles, no JSON
            raise BadArguments({"arguments": f"they cannot be checked ({type(error).__name__})"}) from None
        if errors:
            raise BadArguments({field: words for error in errors for field, words in _told(error)})
        return kept


def as_offered(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema for the model: an object at the root, and every part of it an object too.

    ``true``, ``false`` and lists of schemas (``items`` of older drafts) are legal parts, but not every reader
    of a schema expects them.
    """
    whole: dict[str, Any] = _plain(schema)
    return {**whole, "type": "object", "properties": whole.get("properties", {})}


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether OpenAI's strict mode takes it: as `fits_strict` says, and nothing optional in it."""
    return fits_strict(schema) and _all_required(schema)


def _plain(node: Any) -> Any:
    """One part of a schema, and all parts in it."""
    if isinstance(node, bool):
        return {} if node else {"not": {}}
    if not isinstance(node, Mapping):
        return node
    return {key: _plain_value(key, value) for key, value in node.items()}


def _plain_value(key: str, value: Any) -> Any:
    if key in _MANY and isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if key in _LISTS and isinstance(value, list):
        return [_plain(part) for part in value]
    if key == "items":
        return {} if isinstance(value, list) else _plain(value)
    if key == "additionalProperties" and isinstance(value, Mapping):
        return _plain(value)
    return value


def _all_required(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_all_required, node))
    if not isinstance(node, dict):
        return True
    properties = node.get("properties", {})
    return set(properties) <= set(node.get("required", ())) and all(
        _all_required(part)
        for part in (
            *properties.values(),
            *node.get("$defs", {}).values(),
            node.get("anyOf"),
            node.get("items"),
        )
    )


def _null(error: Any) -> str | None:
    """The top-level argument that is null and may not be, if that is the error."""
    path = list(error.absolute_path)
    return str(path[0]) if len(path) == 1 and error.instance is None else None


def _told(error: Any) -> Iterable[tuple[str, str]]:
    """The fields that do not fit, each with what would."""
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [(".".join([*path, name]), "this is required") for name in missing]
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        return [
            (".".join([*path, name]), "there is no such field")
            for name in error.instance
            if name not in known
        ]
    return [(".".join(path) or "arguments", _words(error.validator, error.validator_value))]


def _words(keyword: str, wanted: Any) -> str:
    if keyword == "type":
        return f"should be {' or '.join([wanted] if isinstance(wanted, str) else wanted)}"
    if keyword in ("anyOf", "oneOf", "not"):
        return "fits none of the forms that are allowed here"
    value = json.dumps(wanted, ensure_ascii=False)
    value = value if len(value) <= _MOST else f"{value[:_MOST]}…"
    return f"should be one of {value}" if keyword == "enum" else f"should satisfy {keyword} {value}"

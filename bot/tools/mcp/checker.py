"""Checks arguments against a server's JSON schema, in a process that can be killed (``bot/tools/child.py``).

A schema and its patterns are a stranger's, and there are small ones that take centuries. A question is
``{"schema": …, "given": …}``; the answer is ``{"kept": …}``, ``{"fields": {field: words}}`` for arguments
that do not fit, or ``{"bad": words}`` for what is no schema. Words never repeat a value,
which may be a secret.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from referencing import Registry

from bot.domain.text import shortened
from bot.tools.child import serve

_MOST = 160  # characters of what a schema asks for in an error
_MOST_ERRORS = 50


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """One question; references reach inside the schema only, nothing is fetched."""
    schema, given = question["schema"], question["given"]
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return {"bad": f"this is no JSON schema: {str(error).splitlines()[0][:_MOST]}"}
    required = frozenset(schema.get("required", ()))
    try:
        validator = kind(schema, registry=Registry())
        errors = list(validator.iter_errors(given))
        unwanted = {name for name in map(_null, errors) if name} - required
        kept = {name: value for name, value in given.items() if name not in unwanted}
        if unwanted:
            errors = list(validator.iter_errors(kept))
    except Exception as error:  # noqa: BLE001 - a reference that leads nowhere or round in circles
        return {"fields": {"arguments": f"they can't be checked ({type(error).__name__})"}}
    if errors:
        return {"fields": {field: words for error in errors[:_MOST_ERRORS] for field, words in _told(error)}}
    return {"kept": kept}


def _null(error: Any) -> str | None:
    """The top-level argument that is null and may not be, if that is the error."""
    path = list(error.absolute_path)
    return str(path[0]) if len(path) == 1 and error.instance is None else None


_NAMED = 30  # fields of a server's schema


def _told(error: Any) -> Iterable[tuple[str, str]]:
    """The fields that do not fit, each with what would."""
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [(".".join([*path, name]), "this is required") for name in missing]
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        there = ", ".join(list(known)[:_NAMED]) or "none"
        return [
            (".".join([*path, name]), f"there is no such field; there are: {there}")
            for name in error.instance
            if name not in known
        ]
    return [(".".join(path) or "arguments", _words(error.validator, error.validator_value))]


def _words(keyword: str, wanted: Any) -> str:
    if keyword == "type":
        return f"should be {' or '.join([wanted] if isinstance(wanted, str) else wanted)}"
    if keyword in ("anyOf", "oneOf", "not"):
        return "fits none of the forms that are allowed here"
    value = shortened(json.dumps(wanted, ensure_ascii=False), _MOST)
    return f"should be one of {value}" if keyword == "enum" else f"should satisfy {keyword} {value}"


if __name__ == "__main__":
    serve(answer, float(sys.argv[1]))

"""A process that checks arguments against an MCP server's JSON schema.

A schema and its patterns come from outside, and even a small one can take centuries to check. So this is not
done in Nod's own process but in one that is killed when it takes too long (``bot/tools/child.py``).

A question is a JSON object:

- ``schema``: the JSON schema
- ``arguments``: the arguments
- ``defaults``: values for arguments that are not given; it may be left out

The answer is a JSON object with one of these keys. Its texts never repeat a value, which may be a secret.

- ``checked``: the arguments, which fit the schema, with the defaults filled in
- ``fields``: the faults of arguments that don't fit, as texts by field
- ``schema_fault``: a text that says why the schema is no JSON schema
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import regex
from jsonschema import (  # type: ignore[import-untyped]
    Draft202012Validator,
    FormatChecker,
    SchemaError,
    ValidationError,
)
from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped]
from referencing import Registry

from bot.domain.text import shorten
from bot.tools.child import serve

_MAX_DEMAND_CHARS = 160  # the part of a schema's demand that an error shows
_MAX_ERRORS = 50
_MAX_LISTED_FIELDS = 30  # the fields that the error for an unknown field names


def answer_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one question. Only references inside the schema are followed; nothing is fetched."""
    schema = question["schema"]
    arguments = question["arguments"]
    dialect = validator_for(schema, default=Draft202012Validator)
    validator_class = extend(dialect, {"pattern": _check_pattern})
    try:
        # without the check of formats, which would refuse a pattern that is valid in JavaScript only
        validator_class.check_schema(schema, format_checker=FormatChecker(()))
        schema = _drop_unreadable_patterns(schema)
    except (SchemaError, RecursionError) as error:
        first_line = str(error).splitlines()[0]
        return {"schema_fault": f"this is no JSON schema: {first_line[:_MAX_DEMAND_CHARS]}"}
    required = frozenset(schema.get("required", ()))
    try:
        validator = validator_class(schema, registry=Registry())
        checked, errors = _check_without_nulls(validator, arguments, required)
        if not errors:
            checked = _fill_in(validator, checked, question.get("defaults", {}))
    except Exception as error:  # noqa: BLE001 - a reference that leads nowhere or round in circles
        return {"fields": {"arguments": f"they can't be checked ({type(error).__name__})"}}
    if not errors:
        return {"checked": checked}
    fields: dict[str, str] = {}
    for fault in errors[:_MAX_ERRORS]:
        fields.update(_describe_faults(fault))
    return {"fields": fields}


def _check_without_nulls(
    validator: Any, arguments: dict[str, Any], required: frozenset[str]
) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the arguments and their errors.

    Optional arguments that are null, though the schema forbids null, are left out: models write null for "not
    given".
    """
    errors = list(validator.iter_errors(arguments))
    refused_nulls = {_find_refused_null(error) for error in errors} - required
    refused_nulls.discard(None)
    if not refused_nulls:
        return arguments, errors
    remaining = {name: value for name, value in arguments.items() if name not in refused_nulls}
    return remaining, list(validator.iter_errors(remaining))


def _find_refused_null(error: Any) -> str | None:
    """Return the name of the argument if the error is that it is null; None for any other error."""
    path = list(error.absolute_path)
    if len(path) == 1 and error.instance is None:
        return str(path[0])
    return None


def _fill_in(validator: Any, arguments: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with all missing defaults, or with the missing defaults that the schema allows."""
    missing = {name: value for name, value in defaults.items() if name not in arguments}
    with_all = {**arguments, **missing}
    if validator.is_valid(with_all):
        return with_all
    for name, value in missing.items():
        with_one_more = {**arguments, name: value}
        if validator.is_valid(with_one_more):
            arguments = with_one_more
    return arguments


def _check_pattern(_: Any, pattern: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    """Check a text against a ``pattern``, which JSON Schema writes in the syntax of JavaScript.

    Most are valid in Python as well. The others are given to the `regex` package, which knows more of that
    syntax. One that it can't read either is left to the server.
    """
    if not isinstance(instance, str):
        return
    try:
        if _is_python(pattern):
            match = re.search(pattern, instance)
        else:
            match = regex.search(_translate(pattern), instance)
    except (regex.error, ValueError):
        return
    if match is None:
        yield ValidationError(f"does not match {pattern}")


def _translate(pattern: str) -> str:
    r"""Translate JavaScript's ``\u{1F600}`` and ``[^]`` (any character) for the `regex` package."""
    translated = re.sub(r"\\u\{([0-9A-Fa-f]{1,6})\}", lambda match: f"\\U{match[1]:0>8}", pattern)
    return translated.replace("[^]", r"[\s\S]")


def _drop_unreadable_patterns(schema: Any) -> Any:
    """Return the schema without ``patternProperties`` that Python's `re` can't read, at any depth.

    The keywords that forbid other fields are dropped as well: they would refuse the fields of those patterns.
    """
    if isinstance(schema, list):
        return [_drop_unreadable_patterns(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    patterns = schema.get("patternProperties")
    dropped: set[str] = set()
    if isinstance(patterns, dict) and not all(map(_is_python, patterns)):
        dropped = {"patternProperties", "additionalProperties", "unevaluatedProperties"}
    return {key: _drop_unreadable_patterns(part) for key, part in schema.items() if key not in dropped}


def _is_python(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _describe_faults(error: Any) -> Iterable[tuple[str, str]]:
    """Return pairs of a field that does not fit, and a text that says which value would fit."""
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return [(".".join([*path, name]), "this is required") for name in missing]
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        listed = ", ".join(list(known)[:_MAX_LISTED_FIELDS]) or "none"
        unknown = [name for name in error.instance if name not in known]
        return [(".".join([*path, name]), f"there is no such field; there are: {listed}") for name in unknown]
    field = ".".join(path) or "arguments"
    return [(field, _describe_keyword(error.validator, error.validator_value))]


def _describe_keyword(keyword: str, demand: Any) -> str:
    """Describe the demand of a schema's keyword; ``demand`` is the keyword's value."""
    if keyword == "type":
        types = [demand] if isinstance(demand, str) else demand
        return f"should be {' or '.join(types)}"
    if keyword in ("anyOf", "oneOf", "not"):
        return "fits none of the forms that are allowed here"
    value = shorten(json.dumps(demand, ensure_ascii=False), _MAX_DEMAND_CHARS)
    if keyword == "enum":
        return f"should be one of {value}"
    return f"should satisfy {keyword} {value}"


if __name__ == "__main__":
    serve(answer_question, float(sys.argv[1]))

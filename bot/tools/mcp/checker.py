"""Checks arguments against a server's JSON schema, in a process that can be killed (``bot/tools/child.py``).

A schema and its patterns are a stranger's, and there are small ones that take centuries. A question is
``{"schema": …, "given": …}``, with ``"defaults"`` where they are to be filled in; the answer is
``{"kept": …}``, ``{"fields": {field: words}}`` for arguments that do not fit, or ``{"bad": words}`` for what
is no schema. Words never repeat a value, which may be a secret.
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

_MOST = 160  # characters of what a schema asks for in an error
_MOST_ERRORS = 50
_NAMED = 30  # fields of a server's schema


def answer_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one question. References reach inside the schema only, nothing is fetched."""
    schema, given = question["schema"], question["given"]
    kind = extend(validator_for(schema, default=Draft202012Validator), {"pattern": _check_pattern})
    try:
        kind.check_schema(schema, format_checker=FormatChecker(()))  # patterns are JavaScript's
        schema = _drop_foreign_names(schema)
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
        if not errors:
            kept = _fill_in(validator, kept, question.get("defaults", {}))
    except Exception as error:  # noqa: BLE001 - a reference that leads nowhere or round in circles
        return {"fields": {"arguments": f"they can't be checked ({type(error).__name__})"}}
    if errors:
        return {
            "fields": {
                field: words for error in errors[:_MOST_ERRORS] for field, words in _describe_faults(error)
            }
        }
    return {"kept": kept}


def _fill_in(validator: Any, kept: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with their missing defaults: all, or as many as the schema allows."""
    missing = {name: value for name, value in defaults.items() if name not in kept}
    if validator.is_valid({**kept, **missing}):
        return {**kept, **missing}
    for name, value in missing.items():
        if validator.is_valid({**kept, name: value}):
            kept = {**kept, name: value}
    return kept


def _check_pattern(_: Any, pattern: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    """Hold a text against a pattern of JavaScript's; one that can't be read here is left to the server."""
    if not isinstance(instance, str):
        return
    try:
        reads = re if _is_python(pattern) else regex
        found = reads.search(pattern if reads is re else _translate(pattern), instance)
    except (regex.error, ValueError):
        return
    if found is None:
        yield ValidationError(f"does not match {pattern}")


def _translate(pattern: str) -> str:
    """Translate a JavaScript pattern into the syntax of the `regex` package."""
    spelt = re.sub(r"\\u\{([0-9A-Fa-f]{1,6})\}", lambda found: f"\\U{found[1]:0>8}", pattern)
    return spelt.replace("[^]", r"[\s\S]")


def _drop_foreign_names(schema: Any) -> Any:
    """Return the schema without the patterns for names of fields that Python's `re` can't read.

    Nor does it say then that there are no other fields.
    """
    if isinstance(schema, list):
        return [_drop_foreign_names(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    patterns = schema.get("patternProperties")
    dropped: set[str] = set()
    if isinstance(patterns, dict) and not all(map(_is_python, patterns)):
        dropped = {"patternProperties", "additionalProperties", "unevaluatedProperties"}
    return {key: _drop_foreign_names(part) for key, part in schema.items() if key not in dropped}


def _is_python(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _null(error: Any) -> str | None:
    """Return the name of a top-level argument if the error is that it is null."""
    path = list(error.absolute_path)
    if len(path) == 1 and error.instance is None:
        return str(path[0])
    return None


def _describe_faults(error: Any) -> Iterable[tuple[str, str]]:
    """Return the fields that do not fit, each with what would."""
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
    value = shorten(json.dumps(wanted, ensure_ascii=False), _MOST)
    if keyword == "enum":
        return f"should be one of {value}"
    return f"should satisfy {keyword} {value}"


if __name__ == "__main__":
    serve(answer_question, float(sys.argv[1]))

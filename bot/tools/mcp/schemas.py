"""A server's JSON schema: arguments are checked against it as it is; the model gets it nearly as it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.domain.forms import defaults_of
from bot.domain.proposals import canonical
from bot.errors import BadArguments
from bot.tools.child import Child, TookTooLong

SECONDS = 2.0
"""How long one check may take; then it is killed."""

_MANY = ("properties", "patternProperties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_LARGEST = 64 * 1024  # characters of a schema
_TOO_LONG = {"arguments": "they can't be checked against the tool's schema in time; don't call this tool"}
_CHILD = Child(Path(__file__).with_name("checker.py"), seconds=SECONDS)


class TooSlow(ValueError):
    """A schema that takes too long to check, whatever the arguments."""


class Arguments:
    """A schema that arguments are checked against, in a child that can be killed (``checker.py``).

    Raises ValueError where it is no JSON schema, or one that takes too long to check. Blocks for as long as
    the child takes, `SECONDS` at most: make and use it in a thread.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if len(canonical(schema)) > _LARGEST:
            raise ValueError(f"its schema is larger than {_LARGEST // 1024} KiB")
        self._schema = schema
        self.defaults = defaults_of(schema)
        self._hopeless = False
        try:
            tried = _CHILD.ask({"schema": schema, "given": {}})
        except TookTooLong:
            raise TooSlow(f"its schema takes longer than {SECONDS:g} s to check") from None
        if "bad" in tried:
            raise ValueError(tried["bad"])

    def check(self, raw: Any) -> dict[str, Any]:
        """Return a copy of the arguments; null where an optional one may not be null means "not given".

        What is not given is filled in by the schema's ``default``, so that it is shown, sent and recorded,
        and no server fills in anything else. A default that the schema itself refuses there is left to the
        server. Raises BadArguments, naming the fields. What took too long once is not tried again.
        """
        if not isinstance(raw, dict):
            raise BadArguments({"arguments": "this must be a JSON object"})
        try:
            canonical(raw).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise BadArguments({"arguments": f"this is not JSON ({type(error).__name__})"}) from None
        if self._hopeless:
            raise BadArguments(_TOO_LONG)
        try:
            told = _CHILD.ask({"schema": self._schema, "given": raw, "defaults": self.defaults})
        except TookTooLong:
            self._hopeless = True
            raise BadArguments(_TOO_LONG) from None
        if "kept" not in told:
            raise BadArguments(told["fields"])
        kept: dict[str, Any] = told["kept"]
        return kept


def as_offered(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema for the model: an object at the root, and every part of it an object too.

    ``true``, ``false`` and lists of schemas (``items`` of older drafts) are legal parts, but not every reader
    of a schema expects them.
    """
    whole: dict[str, Any] = _plain(schema)
    return {**whole, "type": "object", "properties": whole.get("properties", {})}


def _plain(node: Any) -> Any:
    """Return one part of a schema, and all parts in it."""
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
        if isinstance(value, list):
            return {}
        return _plain(value)
    if key == "additionalProperties" and isinstance(value, Mapping):
        return _plain(value)
    return value

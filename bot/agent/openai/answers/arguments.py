"""Parsing of a call's arguments: exactly one JSON object, whatever a server puts around it. Pure.

Proxies of Claude send ``{}`` before the arguments, others encode them twice, send them twice, fence them, or
leave a brace or an end token behind. What is left in doubt is told to the model and never guessed.
"""

import json
import re
from typing import Any, NamedTuple

_MAX_ENCODED = 3  # times that an object is written as a text
_MAX_OBJECTS = 8
_TWICE = (
    "the arguments have the field {!r} twice with different values, so nothing was called. Write it once."
)
_SEVERAL = "the arguments are several JSON objects, so nothing was called. Write one object for each call."
_MARK = (
    r"(?:<[|\uff5c][^<>\n]{1,60}[|\uff5c]>|</?(?:s|tool_calls?|function|arguments|parameters)>|<end_of_turn>)"
)
_BEHIND = re.compile(rf"(?:\s|{_MARK})*\Z")
_BRACES = re.compile(rf"[\s}}\]]{{0,8}}(?:\s|{_MARK})*\Z")
_BEFORE = re.compile(rf"(?:\s|{_MARK})*")
_FENCED = re.compile(r"\s*```(?:json|JSON)?\s*\n(.*?)\n?\s*```(.*)\Z", re.DOTALL)


class ReadArguments(NamedTuple):
    """Parsed arguments. ``text`` is JSON where it could be read.

    ``refused`` says why a call must not be made.
    """

    text: str
    refused: str = ""


class _DoubtError(Exception):
    pass


def read_arguments(given: Any) -> ReadArguments:
    """Read what a server sent as the arguments of one call. What can't be read is given back as it is."""
    if given is None:
        return ReadArguments("{}")
    if isinstance(given, str):
        text = given
    else:
        text = json.dumps(given, ensure_ascii=False)
    text = _join_surrogates(text).removeprefix("\ufeff")
    if not text.strip() or text.strip() == "null":
        return ReadArguments("{}")
    try:
        found = _read(text, 0)
    except _DoubtError as doubt:
        return ReadArguments(json.dumps({"written": text}, ensure_ascii=False), str(doubt))
    except (ValueError, RecursionError):
        return ReadArguments(text)
    if found is None:
        return ReadArguments(text)
    return ReadArguments(text if _is_sound(text) else json.dumps(found, ensure_ascii=False))


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same to JSON. To Python 1 and true are equal, too."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _read(text: str, depth: int) -> dict[str, Any] | None:
    """Return the one JSON object in a text; None without one, or with other values next to it.

    Raises _DoubtError where several objects differ.
    """
    fenced = _FENCED.match(text)
    if fenced:
        if not _BEHIND.match(fenced[2]):
            return None
        text = fenced[1]
    decoder = json.JSONDecoder(object_pairs_hook=_object, strict=False)
    at = _BEFORE.match(text).end()  # type: ignore[union-attr]  # it matches the empty text
    objects: list[dict[str, Any]] = []
    while at < len(text) and len(objects) < _MAX_OBJECTS:
        if objects and _BRACES.match(text, at):
            break
        value, at = decoder.raw_decode(text, at)
        if isinstance(value, str) and not objects and _BEHIND.match(text, at) and depth < _MAX_ENCODED:
            return _read(value, depth + 1)
        if not isinstance(value, dict):
            return None
        objects.append(value)
        at = _BEFORE.match(text, at).end()  # type: ignore[union-attr]
    full = [value for value in objects if value]
    if any(not is_same_json(value, full[0]) for value in full):
        raise _DoubtError(_SEVERAL)
    return next(iter(full or objects), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if not is_same_json(found[name], value):
                raise _DoubtError(_TWICE.format(name[:60]))
    return found


def _is_sound(text: str) -> bool:
    """Return whether it is one JSON object as it stands."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError
        return found

    try:
        return isinstance(json.loads(text, object_pairs_hook=once), dict)
    except ValueError:
        return False


def _join_surrogates(text: str) -> str:
    """Join pairs of lone surrogates, and replace unpaired ones by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

"""Parsing of a call's arguments: exactly one JSON object, whatever a server puts around it. Pure.

Proxies of Claude send ``{}`` before the arguments. Other servers encode them twice, send them twice, put them
into a fence, or leave a brace or an end token behind them. What stays in doubt is refused, and never guessed.
"""

import json
import re
from typing import Any, NamedTuple

from bot.agent.openai.answers.thoughts import join_surrogates

_MAX_ENCODED = 3  # how often an object may be encoded as a JSON text
_MAX_OBJECTS = 8  # the most objects in a row that are read
_TWICE_TEXT = (
    "the arguments have the field {!r} twice with different values, so nothing was called. Write it once."
)
_SEVERAL_TEXT = (
    "the arguments are several JSON objects, so nothing was called. Write one object for each call."
)

# a mark of a model's template, such as "<|im_end|>", "</tool_call>" or "<end_of_turn>"
_MARK_PART = (
    r"(?:<[|\uff5c][^<>\n]{1,60}[|\uff5c]>|</?(?:s|tool_calls?|function|arguments|parameters)>|<end_of_turn>)"
)
_END = re.compile(rf"(?:\s|{_MARK_PART})*\Z")  # nothing but white space and marks follows
_END_WITH_EXTRA_BRACES = re.compile(rf"[\s}}\]]{{0,8}}(?:\s|{_MARK_PART})*\Z")  # the same, after a few braces
_SPACE_AND_MARKS = re.compile(rf"(?:\s|{_MARK_PART})*")
# JSON in a fence of Markdown, and the text after it
_FENCED = re.compile(r"\s*```(?:json|JSON)?\s*\n(.*?)\n?\s*```(.*)\Z", re.DOTALL)


class ReadArguments(NamedTuple):
    """The arguments of a call after parsing."""

    text: str  # one JSON object, or what the server sent if no object could be read
    refusal: str = ""  # why the call must not be made, in words for the model; empty if it may be


class _DoubtError(Exception):
    """The arguments have more than one meaning; the message says why, in words for the model."""


def read_arguments(given: Any) -> ReadArguments:
    """Read what a server sent as the arguments of one call.

    If the arguments are in doubt, the object returned is ``{"written": …}`` with the text that was sent.
    """
    if given is None:
        return ReadArguments("{}")
    if isinstance(given, str):
        text = given
    else:
        text = json.dumps(given, ensure_ascii=False)
    text = join_surrogates(text).removeprefix("\ufeff")
    if not text.strip() or text.strip() == "null":
        return ReadArguments("{}")
    try:
        arguments = _read_object(text, 0)
    except _DoubtError as doubt:
        return ReadArguments(json.dumps({"written": text}, ensure_ascii=False), str(doubt))
    except (ValueError, RecursionError):
        return ReadArguments(text)
    if arguments is None or _is_plain_object(text):
        return ReadArguments(text)
    return ReadArguments(json.dumps(arguments, ensure_ascii=False))


def is_same_json(one: Any, other: Any) -> bool:
    """Tell if two values are the same to JSON; to Python alone, 1 and true are equal, too."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _read_object(text: str, depth: int) -> dict[str, Any] | None:
    """Return the one JSON object in a text, or None. None also if other values stand next to it.

    An object that is sent twice counts once, and empty objects next to another one don't count. ``depth``:
    how often the text was decoded from JSON before. Raises _DoubtError if several objects differ, ValueError
    for text that is no JSON.
    """
    fenced = _FENCED.match(text)
    if fenced:
        if not _END.match(fenced[2]):
            return None
        text = fenced[1]
    decoder = json.JSONDecoder(object_pairs_hook=_make_object_refusing_doubt, strict=False)
    position = _skip_space_and_marks(text, 0)
    objects: list[dict[str, Any]] = []
    while position < len(text) and len(objects) < _MAX_OBJECTS:
        if objects and _END_WITH_EXTRA_BRACES.match(text, position):  # only surplus braces are left
            break
        value, position = decoder.raw_decode(text, position)
        is_encoded = isinstance(value, str) and not objects and _END.match(text, position) is not None
        if is_encoded and depth < _MAX_ENCODED:
            return _read_object(value, depth + 1)
        if not isinstance(value, dict):
            return None
        objects.append(value)
        position = _skip_space_and_marks(text, position)
    full_objects = [value for value in objects if value]
    if any(not is_same_json(value, full_objects[0]) for value in full_objects):
        raise _DoubtError(_SEVERAL_TEXT)
    if full_objects:
        return full_objects[0]
    return objects[0] if objects else None


def _skip_space_and_marks(text: str, position: int) -> int:
    match = _SPACE_AND_MARKS.match(text, position)
    return match.end() if match else position


def _make_object_refusing_doubt(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dictionary. Raises _DoubtError for a name with two values."""
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        for name, value in pairs:
            if not is_same_json(by_name[name], value):
                raise _DoubtError(_TWICE_TEXT.format(name[:60]))
    return by_name


def _is_plain_object(text: str) -> bool:
    """Tell if a text is one JSON object and nothing else, with each name once."""
    try:
        return isinstance(json.loads(text, object_pairs_hook=make_object_without_repeats), dict)
    except ValueError:
        return False


def make_object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dictionary. Raises ValueError on a repeated name."""
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise ValueError
    return by_name

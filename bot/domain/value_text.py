"""Names and values of a call's arguments in words: labels, plain values, outlines, one line for a title.

An *outline* shows a nested value without JSON: a line for each field, indented below the field that it is in.
What could be mistaken for something else in it, such as the text "yes" for a flag, is quoted.

=====================  ================================================  ===============================
Function               Use                                               A nested value
=====================  ================================================  ===============================
`speak_value`          a field of a card or a form                       becomes an outline
`outline_value`        a nested value below its label                    becomes an outline
`summarize_value`      a value in the title of a call                    is left out, or counted
`summarize_arguments`  all arguments of a call in its title              is left out, or counted
=====================  ================================================  ===============================
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_MAX_DEPTH = 8  # levels of lists and objects; a deeper value is shown as JSON
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")
_TEXT_INDENT_CHARS = 4  # of the lines of a text in an outline
_FIELD_INDENT_CHARS = 2  # of the fields inside a field
# texts that are quoted in an outline, since they read like a flag, nothing, a number or a quoted text
_LOOKS_LIKE_NO_TEXT = re.compile(r"yes|no|none|-?\d[\d.eE+-]*|\".*", re.DOTALL)
# texts that are quoted as an entry of a list, since they read like a field or an entry: "a: b", "1. a"
_LOOKS_LIKE_FIELD = re.compile(r":( |$)|^\d+\. ")
_CAMEL_CASE_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")


def label_of(name: str) -> str:
    """Return a field's name as people read it: ``due_date`` and ``dueDate`` become ``Due date``."""
    if not _WORD.fullmatch(name):
        if re.match(r"[a-z]+( |$)", name):
            return name[:1].upper() + name[1:]
        return name
    words = re.split(r"[_-]", _CAMEL_CASE_BORDER.sub("_", name))
    if len(words) == 1 and not words[0].islower():
        return name  # an acronym, or a proper name
    is_acronym = [word.isupper() and len(word) > 1 for word in words]
    cased = zip(words, is_acronym, strict=True)
    label = " ".join(word if keeps_case else word.lower() for word, keeps_case in cased)
    return label[:1].upper() + label[1:]


def speak_value(value: Any, *, is_choice: bool = True) -> str:
    """Return a value as people read it: ``yes``, ``none``, ``red, blue``; a nested value as an outline.

    ``is_choice``: a text is one word of a fixed list, so that ``in_progress`` reads ``in progress``.
    """
    match value:
        case None | [] | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            if is_choice and _WORD.fullmatch(value):
                return value.replace("_", " ")
            return value
        case int() | float():
            return json.dumps(value)
        case list() if all(map(_is_plain, value)):
            return ", ".join(speak_value(item, is_choice=is_choice) for item in value)
    return outline_value(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return "\n" not in value
    return isinstance(value, int | float)


def outline_value(value: Any) -> str:
    """Return lists and objects as an outline: a block for each entry, a line for each field, all of it.

    A text of several lines keeps its line breaks, indented, so that no line of it looks like a field.
    """
    return "\n".join(_outline_lines(value))


def _outline_lines(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the lines of an object, a list or a single value."""
    if depth >= _MAX_DEPTH and isinstance(value, dict | list):
        yield from json.dumps(value, ensure_ascii=False, indent=2).split("\n")
    elif isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _outline_field(name, inner, depth)
    elif isinstance(value, list) and value:
        for number, entry in enumerate(value, 1):
            first_line, *further_lines = _outline_lines(entry, depth + 1)
            mark = f"{number}. "
            yield mark + first_line
            yield from _indent(further_lines, len(mark))
    elif isinstance(value, str) and "\n" in value:
        yield "(text)"
        yield from _indent(value.replace("\r", "␍").split("\n"), _TEXT_INDENT_CHARS)
    elif isinstance(value, str) and _LOOKS_LIKE_FIELD.search(value):
        yield json.dumps(value, ensure_ascii=False)
    else:
        yield _inline_value(value)


def _outline_field(name: str, value: Any, depth: int) -> Iterator[str]:
    label = _outline_label(name)
    # an object with a single field is joined with that field in one label: "Address / City"
    while isinstance(value, dict) and len(value) == 1 and depth < _MAX_DEPTH:
        inner_name, value = next(iter(value.items()))
        depth += 1
        label = f"{label} / {_outline_label(inner_name)}"
    if isinstance(value, str) and "\n" in value:
        yield f"{label}:"
        yield from _indent(value.replace("\r", "␍").split("\n"), _TEXT_INDENT_CHARS)
    elif isinstance(value, dict | list) and value and not _is_list_of_words(value):
        yield f"{label}:"
        yield from _indent(_outline_lines(value, depth + 1), _FIELD_INDENT_CHARS)
    else:
        yield f"{label}: {_inline_value(value)}"


def _indent(lines: Iterable[str], width: int) -> Iterator[str]:
    margin = " " * width
    return (margin + line for line in lines)


def _outline_label(name: str) -> str:
    """Return a field's label; the quoted name if it is not of the usual form, such as ``a: b``."""
    if _WORD.fullmatch(name):
        return label_of(name)
    return json.dumps(name, ensure_ascii=False)


def _inline_value(value: Any) -> str:
    """Return a value in one line; a text that reads like a number, a flag or nothing is quoted."""
    match value:
        case "":
            return "(empty)"
        case []:
            return "(no entries)"
        case dict() if not value:
            return "(no fields)"
        case list():
            return ", ".join(value)
        case str() if value.strip() != value or value.startswith("(") or _LOOKS_LIKE_NO_TEXT.fullmatch(value):
            return json.dumps(value, ensure_ascii=False)
        case str():
            return value.replace("\r", "␍")
    return speak_value(value)


def _is_list_of_words(value: Any) -> bool:
    """Tell if a list holds single words only, so that commas separate them without doubt."""
    return isinstance(value, list) and all(isinstance(item, str) and _WORD.fullmatch(item) for item in value)


def summarize_arguments(arguments: Mapping[str, Any], cut: Callable[[str], str] = lambda words: words) -> str:
    """Return a call's arguments in one line for its title: ``issue = 7, labels = ["bug"]``.

    ``cut`` shortens each value. Lists of objects are counted. Objects and texts of several lines are left
    out: the card has them below.
    """
    parts = []
    for name, value in arguments.items():
        words = summarize_value(value)
        if words is not None:
            parts.append(f"{name} = {cut(words)}")
    return ", ".join(parts)


def summarize_value(value: Any) -> str | None:
    """Return a value as it is written in a title; None for a value that only the card's fields show."""
    match value:
        case str() if "\n" in value.strip():
            return None
        case str():
            return value
        case list() if not all(map(_is_plain, value)):
            if len(value) == 1:
                return "1 entry"
            return f"{len(value)} entries"
        case dict():
            return None
    return json.dumps(value, ensure_ascii=False)

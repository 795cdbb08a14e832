"""The only reader of tools' JSON schemas: the fields of a call, how to ask for them, how to display them.

Slack's modals, Telegram's dialogue and the console's form are all made from `fields_of`. A field's value is
checked here only as far as that can be known right away, by `Field.fault`; the tool checks everything when
the form is sent. A schema is untrusted: it is followed `_MAX_DEPTH` levels down, and none of its patterns is
run.
"""

import json
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.domain.proposals import canonical
from bot.domain.redaction import HIDDEN, find_referred, redact
from bot.domain.text import shorten, whole_until
from bot.domain.value_text import label_of, speak_value

MOST_FIELDS = 60
_MORE_FIELDS = "More fields than fit here. The others stay as they are."
_MAX_DEPTH = 8  # references and unions inside one another
_MOST_OPTIONS = 100
_MULTILINE = 400  # a text that may be longer than this gets several lines
_NUMBER = (int, float)
_BOUNDS: Mapping[str, tuple[tuple[type, ...], Callable[[Any, Any], bool]]] = {
    "minLength": ((str,), operator.ge),
    "maxLength": ((str,), operator.le),
    "minItems": ((list,), operator.ge),
    "maxItems": ((list,), operator.le),
    "minimum": (_NUMBER, operator.ge),
    "maximum": (_NUMBER, operator.le),
    "exclusiveMinimum": (_NUMBER, operator.gt),
    "exclusiveMaximum": (_NUMBER, operator.lt),
}
"""Of which values each bound of JSON Schema speaks, and what it asks of their length or of themselves."""


class BadAnswer(ValueError):
    """An answer that does not fit its field; the message is for the person."""


class Shape(StrEnum):
    """The kind of input for a field."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    FLAG = "flag"
    CHOICE = "choice"  # one of ``options``
    CHOICES = "choices"  # any of ``options``
    LINES = "lines"  # a list of texts
    DATE = "date"
    USER = "user"  # an account, as an Actor's text
    DATA = "data"  # anything else, as JSON


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. ``value`` is what it is now: given, or the default."""

    name: str
    label: str
    shape: Shape
    description: str
    required: bool
    nullable: bool
    present: bool  # it is among the arguments; otherwise ``value`` is the default, or None
    value: Any
    options: tuple[Any, ...] = ()
    multiline: bool = False
    secret: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict)  # its own part, references resolved

    @property
    def default(self) -> bool:
        """True if ``value`` is the default, given or not."""
        return self.value is not None and (
            not self.present or is_same(self.value, self.schema.get("default"))
        )

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values there are, where exactly one of a few is to be chosen."""
        if self.shape is Shape.FLAG:
            return (True, False)
        if self.shape is Shape.CHOICE:
            return self.options
        return ()

    @property
    def may_be_empty(self) -> bool:
        """True if "" or no entries is a value."""
        few = self.schema.get("minLength") or self.schema.get("minItems")
        return self.shape in (Shape.TEXT, Shape.LINES, Shape.CHOICES) and not few

    @property
    def as_text(self) -> str:
        """The value as text in an input, so that `read` gives it back; empty for none."""
        value = self.value
        lines = self.shape is Shape.LINES and isinstance(value, list)
        if lines and all(isinstance(v, str) and "\n" not in v for v in value):
            return "\n".join(value)
        if value is None or (isinstance(value, str) and self.shape is not Shape.DATA):
            return value or ""
        return json.dumps(value, ensure_ascii=False, indent=2)

    def fault(self, value: Any) -> str:
        """Return the fault of a value, as far as it shows without the tool; empty for none."""
        if value is None:
            if self.nullable or not self.required:
                return ""
            return "This is needed."
        return _misfit(value, self.shape, self.options) or _out_of_bounds(value, self.schema)

    def check_value(self, value: Any) -> Any:
        """Give the value back; raises BadAnswer where it does not fit."""
        words = self.fault(value)
        if words:
            raise BadAnswer(words)
        return value

    def read(self, text: str) -> Any:
        """Turn typed text into a value that fits; raises BadAnswer."""
        return self.check_value(self._parse(text))

    def _parse(self, text: str) -> Any:
        match self.shape:
            case Shape.TEXT | Shape.DATE | Shape.USER:
                return text
            case Shape.LINES if not text.lstrip().startswith("["):
                return _entries(text)
            case Shape.CHOICE if self.option(text) is not None:
                return self.option(text)
            case Shape.CHOICES if not text.lstrip().startswith("["):
                return [self.option(part) for part in text.split(",") if part.strip()]
        try:
            return json.loads(text.strip())
        except (ValueError, RecursionError):
            if self.shape is Shape.LINES:
                return _entries(text)  # the first of them begins with a bracket
            raise BadAnswer(_EXPECTED.get(self.shape, "This must be JSON.")) from None

    def option(self, text: str) -> Any:
        """Return the option with this label, or None."""
        label = text.strip().casefold()
        for option in self.options:
            if label in (str(option).casefold(), speak_value(option).casefold()):
                return option
        return None


def _entries(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


_EXPECTED = {
    Shape.INTEGER: "Write a whole number.",
    Shape.NUMBER: "Write a number.",
    Shape.FLAG: "Choose yes or no.",
    Shape.CHOICE: "Choose one of the options.",
    Shape.CHOICES: "Choose from the options.",
    Shape.LINES: "Write one entry a line.",
    Shape.TEXT: "Write a text.",
    Shape.DATE: "Give a date, such as 2026-11-30.",
    Shape.USER: "Choose a person.",
}


def fields_of(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return every argument in the schema's order, then those the schema does not name.

    At most `MOST_FIELDS`.
    """
    return tuple(_all_fields(schema, arguments, MOST_FIELDS))


def fill_in(
    fields: Iterable[Field], arguments: Mapping[str, Any], read: Callable[[Field], Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments with a form's values for these fields, and the faults by field.

    ``read`` gives what was entered, None for nothing; it raises BadAnswer. What no one touched stays.
    """
    values, faults = dict(arguments), {}
    for each in fields:
        try:
            value = read(each)
        except BadAnswer as error:
            faults[each.name] = str(error)
            continue
        if each.default and value == each.value:
            continue
        if value == [] and not each.required and not each.present:
            value = None
        if value is not None or (each.nullable and (each.present or each.required)):
            values[each.name] = value
        elif each.required:
            faults[each.name] = "This is needed."
        else:
            values.pop(each.name, None)
    return values, faults


def leaves_out(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Say so where there are more arguments than `fields_of` gives; empty where there are not."""
    known = schema.get("properties")
    names = {*arguments, *(known if isinstance(known, Mapping) else ())}
    if len(names) > MOST_FIELDS:
        return _MORE_FIELDS
    return ""


def option_labels(options: Sequence[Any], most: int) -> list[str]:
    """Return labels for options, each of at most ``most`` characters.

    Options that would look the same when cut show their ends, too.
    """
    texts = [speak_value(option) for option in options]
    labels = [shorten(text, most) for text in texts]
    counts = Counter(labels)
    for index, label in enumerate(labels):
        if counts[label] > 1:
            labels[index] = _cut_middle(f"{index + 1}. ", texts[index], most)
    return labels


def _cut_middle(number: str, text: str, most: int) -> str:
    half = (most - len(number)) // 2
    return f"{number}{shorten(text, half)}{text[whole_until(text, max(0, len(text) - half)) :]}"


def _all_fields(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], most: int | None = None
) -> Iterator[Field]:
    known = schema.get("properties")
    properties: dict[str, Any] = dict(known) if isinstance(known, Mapping) else {}
    properties |= {name: {} for name in arguments if name not in properties}
    return (_field(*named, schema, arguments) for named in list(properties.items())[:most])


def _field(name: str, part: Any, root: Mapping[str, Any], arguments: Mapping[str, Any]) -> Field:
    schema, nullable = resolve_part(part, root)
    given = arguments.get(name)
    shape, options = _shape(schema, root, given)
    required = root.get("required")
    secret = schema.get("writeOnly") is True or schema.get("format") == "password"
    return Field(
        name=name,
        label=str(schema.get("title") or label_of(name)),
        shape=shape,
        description=str(schema.get("description") or ""),
        required=isinstance(required, Sequence) and name in required and "default" not in schema,
        nullable=nullable,
        present=name in arguments,
        value=given if name in arguments else _hide_secrets(name, schema.get("default"), secret=secret),
        options=options,
        multiline=_multiline(schema, given),
        secret=secret or given == HIDDEN,
        schema=schema,
    )


def resolve_part(part: Any, root: Mapping[str, Any], depth: int = 0) -> tuple[dict[str, Any], bool]:
    """Follow local references, join ``allOf``, take "or null" apart; unions of more stay as they are."""
    flat: dict[str, Any] = dict(part) if isinstance(part, Mapping) else {}
    nullable = False
    if depth >= _MAX_DEPTH:
        return flat, nullable
    if isinstance(reference := flat.get("$ref"), str) and reference.startswith("#/"):
        inner, nullable = resolve_part(find_referred(root, reference), root, depth + 1)
        flat = inner | {k: v for k, v in flat.items() if k != "$ref"}
    for word in ("allOf", "anyOf", "oneOf"):
        parts = flat.get(word)
        if not isinstance(parts, list):
            continue
        real = [each for each in parts if not (isinstance(each, Mapping) and each.get("type") == "null")]
        if word != "allOf" and len(real) < len(parts):
            nullable = True
        if word == "allOf" or len(real) == 1:
            joined: dict[str, Any] = {}
            for each in real:
                inner, more = resolve_part(each, root, depth + 1)
                joined |= inner
                nullable = nullable or (more and len(real) == 1)
            flat = joined | {k: v for k, v in flat.items() if k != word}
        elif len(real) < len(parts):
            flat[word] = real
    return _without_null(flat, nullable=nullable)


def _without_null(flat: dict[str, Any], *, nullable: bool) -> tuple[dict[str, Any], bool]:
    kinds, choices = flat.get("type"), flat.get("enum")
    if isinstance(kinds, list):
        nullable = nullable or "null" in kinds
        real = [kind for kind in kinds if kind != "null"]
        flat["type"] = real[0] if len(real) == 1 else real
    if isinstance(choices, list) and None in choices:
        flat["enum"], nullable = [choice for choice in choices if choice is not None], True
    return flat, nullable


def _shape(schema: Mapping[str, Any], root: Mapping[str, Any], given: Any) -> tuple[Shape, tuple[Any, ...]]:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= _MOST_OPTIONS:
        return Shape.CHOICE, tuple(choices)
    kind = schema.get("type") or _kind_of(given)
    if kind == "array":
        items, _ = resolve_part(schema.get("items"), root)
        some = items.get("enum")
        if given is not None and not (isinstance(given, list) and all(isinstance(v, str) for v in given)):
            return Shape.DATA, ()
        if isinstance(some, list) and 0 < len(some) <= _MOST_OPTIONS and _all_text(some):
            return Shape.CHOICES, tuple(some)
        return (Shape.LINES if items.get("type") == "string" else Shape.DATA), ()
    if kind == "string" and (given is None or isinstance(given, str)):
        special = {"date": Shape.DATE, "user": Shape.USER}
        return special.get(str(schema.get("format")), Shape.TEXT), ()
    simple = {"integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.FLAG}
    return simple.get(str(kind), Shape.DATA), ()


def _all_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _kind_of(value: Any) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "")


def _multiline(schema: Mapping[str, Any], given: Any) -> bool:
    most = schema.get("maxLength")
    roomy = isinstance(most, int) and most > _MULTILINE
    return roomy or schema.get("format") == "multiline" or (isinstance(given, str) and "\n" in given)


def _misfit(value: Any, shape: Shape, options: Sequence[Any]) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    match shape:
        case Shape.CHOICE:
            fits = value in options
        case Shape.CHOICES:
            fits = isinstance(value, list) and all(each in options for each in value)
        case Shape.LINES:
            fits = isinstance(value, list) and _all_text(value)
        case Shape.FLAG:
            fits = isinstance(value, bool)
        case Shape.INTEGER:
            fits = number and value == int(value)
        case Shape.NUMBER:
            fits = number
        case Shape.DATA:
            fits = True
        case _:
            fits = isinstance(value, str)
    return "" if fits else _EXPECTED[shape]


def _out_of_bounds(value: Any, schema: Mapping[str, Any]) -> str:
    if isinstance(value, bool):
        return ""
    for keyword, (kinds, keeps) in _BOUNDS.items():
        wanted = schema.get(keyword)
        if isinstance(value, kinds) and isinstance(wanted, _NUMBER) and not isinstance(wanted, bool):
            measured = len(value) if isinstance(value, str | list) else value
            if not keeps(measured, wanted):
                return describe_bound(keyword, wanted)
    return ""


def describe_bound(keyword: str, wanted: Any) -> str:
    """Describe a bound of JSON Schema for people; empty for any other keyword."""
    one = wanted == 1
    match keyword:
        case "minLength":
            if one:
                return "This is empty. Write something."
            return f"At least {wanted} characters."
        case "maxLength":
            return f"At most {wanted} character{'' if one else 's'}."
        case "minItems":
            return f"At least {wanted} entr{'y' if one else 'ies'}."
        case "maxItems":
            return f"At most {wanted} entr{'y' if one else 'ies'}."
        case "minimum":
            return f"At least {wanted}."
        case "maximum":
            return f"At most {wanted}."
        case "exclusiveMinimum":
            return f"More than {wanted}."
        case "exclusiveMaximum":
            return f"Less than {wanted}."
    return ""


def list_values(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the name and text of each argument that would run; defaults come last and are marked.

    Defaults that are not among the arguments are told, too: a proposal of an earlier release runs with them.
    """
    running = [each for each in _all_fields(schema, arguments) if each.present or each.default]
    return tuple((each.name, _write_default(each)) for each in sorted(running, key=lambda each: each.default))


def defaults_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that a tool's schema names, by argument; null doesn't count."""
    known = schema.get("properties")
    properties = known if isinstance(known, Mapping) else {}
    named = {name: resolve_part(part, schema)[0].get("default") for name, part in properties.items()}
    return {name: value for name, value in named.items() if value is not None}


def without_defaults(arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that do not hold their default."""
    return {name: value for name, value in arguments.items() if not is_same(value, defaults.get(name))}


def is_same(value: Any, default: Any) -> bool:
    """Return whether a value is a default, which is not null; 1 is not yes."""
    return default is not None and canonical(value) == canonical(default)


def _hide_secrets(name: str, value: Any, *, secret: bool) -> Any:
    return redact({name: value}, {"properties": {name: {"writeOnly": secret}}})[name]


def _write_default(each: Field) -> str:
    value = _hide_secrets(each.name, each.value, secret=each.secret)
    if value == "":
        words = "(empty)"
    else:
        words = speak_value(value, is_choice=each.shape in (Shape.CHOICE, Shape.CHOICES))
    if each.default:
        return f"{words} (default)"
    return words

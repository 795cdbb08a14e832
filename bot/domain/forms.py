"""Forms: the fields of a call by its tool's JSON schema, how to ask people for them, how to display them.

People edit a call's arguments in a form, or answer a question by it. Slack's modals, Telegram's dialogue and
the console's form are all made from `fields_of`, and cards list values by `list_values`. A channel reads what
people typed with `Field.read`, and `fill_in` makes the arguments. `Field.find_fault` checks what a schema
says about one value; the tool checks everything when the form is sent. A schema is untrusted: it is followed
`_MAX_DEPTH` levels down, and none of its patterns is run. A *part* of a schema is the schema of one argument
within the tool's schema, the *root*.
"""

import json
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeGuard

from bot.domain.digests import to_canonical_json
from bot.domain.redaction import HIDDEN, find_referred, redact
from bot.domain.text import find_cut, shorten
from bot.domain.value_text import label_of, speak_value

MOST_FIELDS = 60
"""The most fields of a form."""
_MORE_FIELDS = "More fields than fit here. The others stay as they are."
_MAX_DEPTH = 8  # levels of references and unions inside one another
_MAX_OPTIONS = 100  # a field with more options is a text and no choice
_MULTILINE_CHARS = 400  # a text that may be longer gets an input of several lines
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
"""The bounds of JSON Schema: the types of values for which each counts, and the comparison that must hold.

For a text or a list, the length is compared.
"""


class BadAnswer(ValueError):
    """A person's entry that does not fit its field; the message is for that person."""


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
    """The field of a form for one argument of a call."""

    name: str  # the name of the argument
    label: str  # the name for people
    shape: Shape
    description: str
    required: bool
    nullable: bool  # the argument may be null
    present: bool  # the arguments have a value for the field
    value: Any  # the value in the arguments, or else the default, or None
    options: tuple[Any, ...] = ()  # the values to choose from, for the shapes CHOICE and CHOICES
    multiline: bool = False  # the input has several lines
    secret: bool = False  # the value is hidden
    schema: Mapping[str, Any] = field(default_factory=dict)  # the field's own schema, references resolved

    @property
    def default(self) -> bool:
        """True if ``value`` is the schema's default, whether the arguments have it or lack the field.

        The HTTP API has a field of this name.
        """
        if self.value is None:
            return False
        return not self.present or is_same(self.value, self.schema.get("default"))

    @property
    def single_choices(self) -> tuple[Any, ...]:
        """The values of which exactly one is chosen; empty for a field of another shape."""
        if self.shape is Shape.FLAG:
            return (True, False)
        if self.shape is Shape.CHOICE:
            return self.options
        return ()

    @property
    def may_be_empty(self) -> bool:
        """True if an empty text, or an empty list, is a right value."""
        has_minimum = self.schema.get("minLength") or self.schema.get("minItems")
        return self.shape in (Shape.TEXT, Shape.LINES, Shape.CHOICES) and not has_minimum

    @property
    def as_text(self) -> str:
        """The value as the text of an input, from which `read` returns the same value; empty for no value."""
        value = self.value
        if value is None:
            return ""
        if isinstance(value, str) and self.shape is not Shape.DATA:
            return value
        if self.shape is Shape.LINES and isinstance(value, list):
            has_simple_lines = all(isinstance(line, str) and "\n" not in line for line in value)
            if has_simple_lines:
                return "\n".join(value)
        return json.dumps(value, ensure_ascii=False, indent=2)

    def find_fault(self, value: Any) -> str:
        """Return the fault of a value in words, as far as the schema shows it; empty for a right value."""
        if value is None:
            if self.nullable or not self.required:
                return ""
            return "This is needed."
        return _describe_misfit(value, self.shape, self.options) or _describe_broken_bound(value, self.schema)

    def check_value(self, value: Any) -> Any:
        """Return the value; raise BadAnswer if it does not fit."""
        words = self.find_fault(value)
        if words:
            raise BadAnswer(words)
        return value

    def read(self, text: str) -> Any:
        """Turn typed text into a value that fits; raises BadAnswer."""
        return self.check_value(self._parse(text))

    def _parse(self, text: str) -> Any:
        """Return the value that a text means.

        Texts, dates, lists and choices are typed as they are, ``red, blue`` for two choices. A list may also
        be typed as JSON. Values of other shapes are always typed as JSON. Raises BadAnswer.
        """
        is_json_list = text.lstrip().startswith("[")
        match self.shape:
            case Shape.TEXT | Shape.DATE | Shape.USER:
                return text
            case Shape.LINES if not is_json_list:
                return _split_lines(text)
            case Shape.CHOICE if self.find_option(text) is not None:
                return self.find_option(text)
            case Shape.CHOICES if not is_json_list:
                return [self.find_option(part) for part in text.split(",") if part.strip()]
        try:
            return json.loads(text.strip())
        except (ValueError, RecursionError):
            if self.shape is Shape.LINES:
                return _split_lines(text)  # not JSON after all: the first line begins with a bracket
            raise BadAnswer(_EXPECTED.get(self.shape, "This must be JSON.")) from None

    def find_option(self, text: str) -> Any:
        """Return the option that people know by this text, in upper or lower case, or None."""
        label = text.strip().casefold()
        for option in self.options:
            if label in (str(option).casefold(), speak_value(option).casefold()):
                return option
        return None


def _split_lines(text: str) -> list[str]:
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
    """Return the fields of the schema's arguments, then of all others; at most `MOST_FIELDS`."""
    return tuple(_list_fields(schema, arguments, MOST_FIELDS))


def fill_in(
    fields: Iterable[Field], arguments: Mapping[str, Any], read: Callable[[Field], Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments with the values that were entered for these fields, and the faults by field name.

    ``read`` returns the value that was entered for a field, None for no value; it raises BadAnswer. A field
    that the person left as it was changes no argument, and adds none.
    """
    values = dict(arguments)
    faults: dict[str, str] = {}
    for field_ in fields:
        try:
            value = read(field_)
        except BadAnswer as error:
            faults[field_.name] = str(error)
            continue
        if field_.default and value == field_.value:
            continue  # the default was left as it was: the argument stays as it is, or stays absent
        if value == [] and not field_.required and not field_.present:
            value = None  # no entries in an optional list that had none: the argument stays absent
        # None is entered as null only for an argument that must be there, or was there before
        takes_null = field_.nullable and (field_.present or field_.required)
        if value is not None or takes_null:
            values[field_.name] = value
        elif field_.required:
            faults[field_.name] = "This is needed."
        else:  # an optional field was emptied
            values.pop(field_.name, None)
    return values, faults


def describe_left_out(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return a sentence if there are more arguments than `fields_of` returns; else an empty text."""
    properties = schema.get("properties")
    names = {*arguments, *(properties if isinstance(properties, Mapping) else ())}
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


def _cut_middle(prefix: str, text: str, most: int) -> str:
    """Return the prefix, the beginning of the text, ``…`` and its end, in at most ``most`` characters."""
    half = (most - len(prefix)) // 2
    end_start = find_cut(text, max(0, len(text) - half))
    return f"{prefix}{shorten(text, half)}{text[end_start:]}"


def _list_fields(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], most: int | None = None
) -> Iterator[Field]:
    declared = schema.get("properties")
    properties: dict[str, Any] = dict(declared) if isinstance(declared, Mapping) else {}
    properties |= {name: {} for name in arguments if name not in properties}
    for name, part in list(properties.items())[:most]:
        yield _make_field(name, part, schema, arguments)


def _make_field(name: str, part: Any, root: Mapping[str, Any], arguments: Mapping[str, Any]) -> Field:
    """Return the field of an argument; ``part``: the argument's schema within ``root``, the tool's schema."""
    schema, nullable = resolve_part(part, root)
    given = arguments.get(name)
    shape, options = _find_shape(schema, root, given)
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
        multiline=_is_multiline(schema, given),
        secret=secret or given == HIDDEN,
        schema=schema,
    )


def resolve_part(part: Any, root: Mapping[str, Any], depth: int = 0) -> tuple[dict[str, Any], bool]:
    """Return a part of a schema in its simplest form, and True if its value may be null.

    Local references are followed, ``allOf`` is joined, and null is taken out of unions (``anyOf``, ``oneOf``,
    lists of types). A union of which one type is left is replaced by that type.
    """
    flat: dict[str, Any] = dict(part) if isinstance(part, Mapping) else {}  # the form that is returned
    nullable = False
    if depth >= _MAX_DEPTH:
        return flat, nullable
    reference = flat.get("$ref")
    if isinstance(reference, str) and reference.startswith("#") and reference != "#":
        inner, nullable = resolve_part(find_referred(root, reference), root, depth + 1)
        flat = inner | _without_key(flat, "$ref")
    for word in ("allOf", "anyOf", "oneOf"):
        if isinstance(flat.get(word), list):
            flat, has_null = _join_parts(flat, word, root, depth)
            nullable = nullable or has_null
    return _without_null(flat, nullable=nullable)


def _join_parts(
    flat: dict[str, Any], word: str, root: Mapping[str, Any], depth: int
) -> tuple[dict[str, Any], bool]:
    """Return a schema without the keyword ``word`` if its parts can be joined, and True if null is one value.

    All parts of ``allOf`` are joined. So is a union with only one part besides null; of any other union null
    is taken out.
    """
    parts = flat[word]
    others = [part for part in parts if not _is_null_type(part)]
    has_null = len(others) < len(parts)
    nullable = has_null and word != "allOf"
    if word == "allOf" or len(others) == 1:
        joined: dict[str, Any] = {}
        for other in others:
            inner, is_inner_nullable = resolve_part(other, root, depth + 1)
            joined |= inner
            if len(others) == 1:
                nullable = nullable or is_inner_nullable
        return joined | _without_key(flat, word), nullable
    if has_null:
        return flat | {word: others}, nullable
    return flat, nullable


def _without_key(flat: Mapping[str, Any], left_out: str) -> dict[str, Any]:
    return {key: value for key, value in flat.items() if key != left_out}


def _is_null_type(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "null"


def _without_null(flat: dict[str, Any], *, nullable: bool) -> tuple[dict[str, Any], bool]:
    """Remove null from a list of types and from choices; return the rest, and True if null was allowed."""
    types, choices = flat.get("type"), flat.get("enum")
    if isinstance(types, list):
        nullable = nullable or "null" in types
        others = [name for name in types if name != "null"]
        flat["type"] = others[0] if len(others) == 1 else others
    if isinstance(choices, list) and None in choices:
        nullable = True
        flat["enum"] = [choice for choice in choices if choice is not None]
    return flat, nullable


def _find_shape(
    schema: Mapping[str, Any], root: Mapping[str, Any], given: Any
) -> tuple[Shape, tuple[Any, ...]]:
    """Return the shape of a field and its options; ``given``: the argument, which need not fit the schema."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if _is_choice(choices):
        return Shape.CHOICE, tuple(choices)
    type_name = schema.get("type") or _name_type(given)
    if type_name == "array":
        items, _ = resolve_part(schema.get("items"), root)
        if given is not None and not (isinstance(given, list) and _all_text(given)):
            return Shape.DATA, ()
        item_choices = items.get("enum")
        if _is_choice(item_choices) and _all_text(item_choices):
            return Shape.CHOICES, tuple(item_choices)
        return (Shape.LINES if items.get("type") == "string" else Shape.DATA), ()
    if type_name == "string" and (given is None or isinstance(given, str)):
        special = {"date": Shape.DATE, "user": Shape.USER}
        return special.get(str(schema.get("format")), Shape.TEXT), ()
    simple = {"integer": Shape.INTEGER, "number": Shape.NUMBER, "boolean": Shape.FLAG}
    return simple.get(str(type_name), Shape.DATA), ()


def _is_choice(options: Any) -> TypeGuard[list[Any]]:
    return isinstance(options, list) and 0 < len(options) <= _MAX_OPTIONS


def _all_text(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _name_type(value: Any) -> str:
    """Return JSON Schema's name for the type of a simple value; else an empty text."""
    if isinstance(value, bool):  # which is an int, too
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else ""


def _is_multiline(schema: Mapping[str, Any], given: Any) -> bool:
    max_chars = schema.get("maxLength")
    if isinstance(max_chars, int) and max_chars > _MULTILINE_CHARS:
        return True
    return schema.get("format") == "multiline" or (isinstance(given, str) and "\n" in given)


def _describe_misfit(value: Any, shape: Shape, options: Sequence[Any]) -> str:
    """Return a sentence on what is expected if the value has another shape; else an empty text."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    match shape:
        case Shape.CHOICE:
            fits = value in options
        case Shape.CHOICES:
            fits = isinstance(value, list) and all(item in options for item in value)
        case Shape.LINES:
            fits = isinstance(value, list) and _all_text(value)
        case Shape.FLAG:
            fits = isinstance(value, bool)
        case Shape.INTEGER:
            fits = is_number and value == int(value)
        case Shape.NUMBER:
            fits = is_number
        case Shape.DATA:
            fits = True
        case _:
            fits = isinstance(value, str)
    return "" if fits else _EXPECTED[shape]


def _describe_broken_bound(value: Any, schema: Mapping[str, Any]) -> str:
    """Return a sentence on the first bound that the value breaks; empty if the value keeps all bounds."""
    if isinstance(value, bool):
        return ""
    for keyword, (types, compare) in _BOUNDS.items():
        bound = schema.get(keyword)
        is_bound = isinstance(bound, _NUMBER) and not isinstance(bound, bool)
        if is_bound and isinstance(value, types):
            measure = len(value) if isinstance(value, str | list) else value
            if not compare(measure, bound):
                return describe_bound(keyword, bound)
    return ""


def describe_bound(keyword: str, bound: Any) -> str:
    """Describe a bound of JSON Schema for people; empty for any other keyword."""
    characters = "character" if bound == 1 else "characters"
    entries = "entry" if bound == 1 else "entries"
    match keyword:
        case "minLength" if bound == 1:
            return "This is empty. Write something."
        case "minLength":
            return f"At least {bound} {characters}."
        case "maxLength":
            return f"At most {bound} {characters}."
        case "minItems":
            return f"At least {bound} {entries}."
        case "maxItems":
            return f"At most {bound} {entries}."
        case "minimum":
            return f"At least {bound}."
        case "maximum":
            return f"At most {bound}."
        case "exclusiveMinimum":
            return f"More than {bound}."
        case "exclusiveMaximum":
            return f"Less than {bound}."
    return ""


def list_values(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the name and text of each argument that would run; defaults come last and are marked.

    Defaults are listed also where the arguments lack them: a proposal of an earlier release runs with them.
    """
    shown = [field_ for field_ in _list_fields(schema, arguments) if field_.present or field_.default]
    shown.sort(key=lambda field_: field_.default)  # False comes first
    return tuple((field_.name, _describe_value(field_)) for field_ in shown)


def defaults_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that a tool's schema names, by argument; null doesn't count."""
    declared = schema.get("properties")
    properties = declared if isinstance(declared, Mapping) else {}
    defaults = {}
    for name, part in properties.items():
        resolved, _ = resolve_part(part, schema)
        if resolved.get("default") is not None:
            defaults[name] = resolved["default"]
    return defaults


def without_defaults(arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments whose values are not their defaults."""
    return {name: value for name, value in arguments.items() if not is_same(value, defaults.get(name))}


def is_same(value: Any, default: Any) -> bool:
    """Return whether a value is the default; null does not count, and 1 is not the same as true."""
    return default is not None and to_canonical_json(value) == to_canonical_json(default)


def _hide_secrets(name: str, value: Any, *, secret: bool) -> Any:
    return redact({name: value}, {"properties": {name: {"writeOnly": secret}}})[name]


def _describe_value(shown: Field) -> str:
    value = _hide_secrets(shown.name, shown.value, secret=shown.secret)
    if value == "":
        words = "(empty)"
    else:
        words = speak_value(value, is_choice=shown.shape in (Shape.CHOICE, Shape.CHOICES))
    return f"{words} (default)" if shown.default else words

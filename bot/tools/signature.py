"""The signature of a tool's function: its parameters as a pydantic model, and its docstring as descriptions.

The decorator `tool` (``decorator.py``) reads a `Signature` once. `Signature.validate` turns what a model or
a form gives into canonical arguments: JSON data, which people see and approve, with defaults filled in.
`Signature.make_call_arguments` turns canonical arguments into what the function takes (dates, enums).
``bot/tools/schema.py`` makes the JSON schema for language models from the pydantic model.

`Storable`, `STORABLE` and `NOT_BLANK` are annotations for text parameters of tools.
"""

import copy
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticSerializationError, to_jsonable_python

from bot.domain.forms import describe_bound, is_same
from bot.domain.text import find_unstorable, is_blank
from bot.errors import BadArguments
from bot.tools.schema import Schema, fits_strict_mode, make_model_schema

_BOUNDS = {
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
    "greater_than_equal": ("minimum", "ge"),
    "less_than_equal": ("maximum", "le"),
    "greater_than": ("exclusiveMinimum", "gt"),
    "less_than": ("exclusiveMaximum", "lt"),
}
"""By the type of pydantic's error: the keyword of JSON Schema, and the bound's key in the error's ``ctx``."""
_TYPE_TEXTS = {
    "int": "This must be a whole number.",
    "int_from_float": "This must be a whole number.",
    "float": "This must be a number.",
    "finite_number": "This must be a number.",
    "bool": "This must be yes or no.",
    "string": "This must be text.",
    "list": "This must be a list.",
    "dict": "This must be an object.",
    "model": "This must be an object.",
    "model_attributes": "This must be an object.",
    "missing": "This is needed.",
    "extra_forbidden": "There is no such field.",
    "date": "This must be a date, such as 2026-11-30.",
    "date_from_datetime": "This must be a date, such as 2026-11-30.",
    "datetime": "This must be a date and time, such as 2026-11-30T14:00Z.",
    "datetime_from_date": "This must be a date and time, such as 2026-11-30T14:00Z.",
    "time_delta": "This must be a length of time, such as PT30M.",
}
"""The texts of faults, by the type of pydantic's error without ``_type`` or ``_parsing`` at its end."""
_ARGUMENT_LINE = re.compile(r"(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")  # "number: its number", "number (int): …"
_MODEL_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's description, and its parameters as a pydantic model with their defaults."""

    description: str
    """The first paragraph of the docstring."""
    model: type[BaseModel]
    schema: Schema
    """The model's JSON schema, as language models take it."""
    strict: bool
    """True if strict mode takes the schema."""
    defaults: Mapping[str, Any]
    """All defaults as JSON data, by parameter. The tool's version depends on them.

    For example null, 10, or the name of a class whose object is no JSON data.
    """
    filled_defaults: Mapping[str, Any]
    """The defaults that are filled into arguments: all that are JSON data and not null, such as 10."""
    refused_defaults: Mapping[str, Any]
    """The ``filled_defaults`` that the parameter's own type refuses.

    For example 0 as "no limit" for a number from 1. Such a value in a call counts as not given.
    """
    injected_types: Mapping[str, type]
    """The types of the parameters that Nod passes and a model does not see (`CallContext`), by parameter."""

    @classmethod
    def of(cls, function: Callable[..., Any], *injected_types: type) -> "Signature":
        """Read the signature. A parameter of one of ``injected_types`` is no argument of the tool.

        Raises TypeError if a parameter has no type or can't be passed by name.
        """
        description, descriptions = _read_docstring(function)
        parameters = _read_parameters(function, descriptions, injected_types)
        model = create_model(f"{function.__name__}_arguments", __config__=_MODEL_CONFIG, **parameters.fields)
        filled_defaults, refused_defaults = _check_defaults(parameters.fillable)
        schema = make_model_schema(model.model_json_schema())
        return cls(
            description,
            model,
            schema,
            fits_strict_mode(schema),
            parameters.defaults,
            filled_defaults,
            refused_defaults,
            parameters.injected_types,
        )

    def validate(self, raw: Any) -> dict[str, Any]:
        """Return canonical JSON arguments with defaults filled in. Raises BadArguments.

        An optional argument that is not given, or null, is left out if it has no default to fill in.
        """
        dumped = self._parse(raw).model_dump(mode="json")
        arguments = {}
        for name, value in dumped.items():
            if not self._is_left_out(name, value):
                arguments[name] = value
            elif name in self.filled_defaults:
                arguments[name] = copy.deepcopy(self.filled_defaults[name])
        return arguments

    def make_call_arguments(self, arguments: Mapping[str, Any], *injected_values: Any) -> dict[str, Any]:
        """Return the function's arguments in its own types.

        ``injected_values``: a value for each of the types that Nod passes, such as a `CallContext`.
        """
        model = self._parse(arguments)
        call_arguments = {}
        for name in model.model_fields_set:
            value = getattr(model, name)
            if not self._is_left_out(name, value):
                call_arguments[name] = value
        for name, kind in self.injected_types.items():
            for value in injected_values:
                if isinstance(value, kind):
                    call_arguments[name] = value
        return call_arguments

    def _is_left_out(self, name: str, value: Any) -> bool:
        """Tell if a parsed value means "not given": null, for an optional parameter."""
        return value is None and name in self.defaults

    def _parse(self, raw: Any) -> BaseModel:
        """Check the arguments. An argument that equals its refused default counts as not given."""
        checked = raw
        if isinstance(raw, Mapping):
            refused = self.refused_defaults  # for a name that is not in it, `is_same` is False
            checked = {name: value for name, value in raw.items() if not is_same(value, refused.get(name))}
        try:
            return self.model.model_validate(checked)
        except ValidationError as error:
            faults = {}
            for fault in error.errors():
                path = ".".join(map(str, fault["loc"])) or "arguments"
                faults[path] = self._describe_fault(fault)
            raise BadArguments(faults) from None

    def _describe_fault(self, fault: ErrorDetails) -> str:
        words = describe_pydantic_error(fault)
        if fault["type"] != "extra_forbidden" or len(fault["loc"]) != 1:
            return words
        return f"{words} There are: {', '.join(self.model.model_fields) or 'none'}."


def describe_pydantic_error(fault: ErrorDetails) -> str:
    """Return a text for one error of pydantic's, in Nod's own words: for forms, models and scripts."""
    kind, context = fault["type"], fault.get("ctx", {})
    if fault["input"] == "" and kind in ("string_too_short", "too_short"):
        return "This is empty. Write something."
    if kind in _BOUNDS:
        # pydantic calls a text "too_short" in some places, and "string_too_short" in others
        if f"string_{kind}" in _BOUNDS and isinstance(fault["input"], str):
            kind = f"string_{kind}"
        keyword, context_key = _BOUNDS[kind]
        return describe_bound(keyword, context[context_key])
    if kind in ("literal_error", "enum"):
        return f"This must be {_unquote(context['expected'])}."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = f": {_unquote(context['expected_tags'])}" if "expected_tags" in context else ""
        return f"Say which kind it is in {_unquote(context['discriminator'])}{tags}."
    if kind == "string_pattern_mismatch":
        return f"This must match {context['pattern']}."
    type_name = kind.removesuffix("_type").removesuffix("_parsing")
    words = _TYPE_TEXTS.get(type_name) or fault["msg"].removeprefix("Value error, ")
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _unquote(listed: str) -> str:
    """Return a list of pydantic's, such as ``'a', 'b' or 'c'``, without its quotes."""
    return listed.replace("'", "")


def find_parameter(function: object, kind: type) -> str:
    """Return the name of the first parameter annotated ``kind`` or ``kind | None``; empty without one.

    Parameters that a partial function has filled in are skipped. The name is also empty if the annotations
    can't be read.
    """
    bound: Mapping[str, Any] = {}
    if isinstance(function, functools.partial):
        bound = function.keywords
        function = function.func
    if not inspect.isroutine(function):
        function = getattr(function, "__call__", None)  # noqa: B004 - an object's method has the annotations
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - code of others, with a name that only type checkers see
        return ""
    hints.pop("return", None)
    for name, hint in hints.items():
        is_of_kind = hint is kind or kind in get_args(hint)
        if is_of_kind and name not in bound:
            return name
    return ""


def _read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a docstring's first paragraph, and the descriptions of parameters under ``Args:``, by name."""
    text, _, arguments = f"\n{inspect.getdoc(function) or ''}".partition("\nArgs:\n")
    first_paragraph = text.strip().partition("\n\n")[0]
    argument_lines = textwrap.dedent(arguments.partition("\n\n")[0]).splitlines()
    descriptions: dict[str, str] = {}
    name = ""
    for line in argument_lines:
        match = _ARGUMENT_LINE.match(line)
        if line[:1].isspace() and name:  # it continues the line before
            descriptions[name] = f"{descriptions[name]} {line.strip()}".strip()
        elif match:
            name = match[1]
            descriptions[name] = match[2].strip()
    return " ".join(first_paragraph.split()), descriptions


class _Default(NamedTuple):
    value: Any  # JSON data
    annotation: Any  # the type of its parameter


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a function."""

    fields: dict[str, Any] = field(default_factory=dict)
    """The type and the default of each field of the pydantic model, as `create_model` takes them."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """The value of `Signature.defaults`."""
    fillable: dict[str, _Default] = field(default_factory=dict)
    """The defaults that are JSON data and not null."""
    injected_types: dict[str, type] = field(default_factory=dict)
    """The types of the parameters that Nod passes, by parameter."""


def _read_parameters(
    function: Callable[..., Any], descriptions: Mapping[str, str], injected_types: Collection[type]
) -> _Parameters:
    """Read the parameters of a function. Raises TypeError as `Signature.of` does."""
    hints = get_type_hints(function, include_extras=True)
    parameters = _Parameters()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"parameter {name} of tool {function.__name__} must be given by name")
        if name not in hints:
            raise TypeError(f"parameter {name} of tool {function.__name__} needs a type")
        if hints[name] in injected_types:
            parameters.injected_types[name] = hints[name]
            continue
        annotation, default = hints[name], parameter.default
        if default is not parameter.empty:
            json_default = to_jsonable_python(default, fallback=_name_class)
            parameters.defaults[name] = json_default
            if default is not None and _is_json(default):
                parameters.fillable[name] = _Default(json_default, annotation)
            if not _takes_none(annotation):
                annotation = annotation | None  # null means "not given"
        if name in descriptions:
            annotation = Annotated[annotation, Field(description=descriptions[name])]
        model_default = None if name in parameters.defaults else ...  # pydantic: "..." is "required"
        parameters.fields[name] = (annotation, model_default)
    return parameters


def _name_class(value: Any) -> str:
    return type(value).__qualname__


def _is_json(default: Any) -> bool:
    try:
        to_jsonable_python(default)
    except PydanticSerializationError:
        return False
    return True


def _takes_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _takes_none(get_args(annotation)[0])
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _check_defaults(fillable: Mapping[str, _Default]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return `Signature.filled_defaults` and `Signature.refused_defaults`."""
    filled: dict[str, Any] = {}
    refused: dict[str, Any] = {}
    for name, (default, annotation) in fillable.items():
        fields: dict[str, Any] = {name: (annotation, ...)}  # required, so that no default hides the check
        model = create_model("default", __config__=_MODEL_CONFIG, **fields)
        try:
            filled[name] = model.model_validate({name: default}).model_dump(mode="json")[name]
        except ValidationError:
            filled[name] = refused[name] = default
    return filled, refused


def _refuse_unstorable(text: str) -> str:
    why = find_unstorable(text)
    if why:
        # passed as a value, because pydantic reads braces in the message itself as fields
        raise PydanticCustomError("storable", "{why}", {"why": why})
    return text


def _refuse_blank(text: str) -> str:
    if text and is_blank(text):
        raise PydanticCustomError("blank", "This is empty. Write something")
    return text


# put these last in an annotation: after them, pydantic's errors about a length don't say that it is a text's
STORABLE = AfterValidator(_refuse_unstorable)
"""Refuses a text with characters that a database can't store."""
NOT_BLANK = AfterValidator(_refuse_blank)
"""Refuses a text of nothing but blank and invisible characters. The empty text is allowed."""
Storable = Annotated[str, STORABLE]
"""A text without NUL and without halves of characters, which a database and other programs take."""

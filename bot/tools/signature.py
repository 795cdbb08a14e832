"""A tool's function: its signature as a pydantic model that checks arguments, and its docstring as texts.

``bot/tools/schema.py`` makes the JSON schema for language models of it.
"""

import copy
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticSerializationError, to_jsonable_python

from bot.domain.forms import describe_bound, is_same
from bot.domain.text import blank, unstorable
from bot.errors import BadArguments
from bot.tools.schema import Schema, fits_strict, make_offered

# the keyword of JSON Schema, and the limit's name in the context of pydantic's fault, by the fault's type
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
_KINDS = {
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
"""The texts of faults, by the type of pydantic's fault without ``_type`` or ``_parsing`` at its end."""
_ARGUMENT_LINE = re.compile(r"(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters as a pydantic model, and their defaults."""

    description: str
    """The first paragraph of the docstring."""
    model: type[BaseModel]
    schema: Schema
    """The model's JSON schema, as language models take it."""
    strict: bool
    """True if strict mode takes the schema."""
    defaults: Mapping[str, Any]
    """All defaults as JSON data, by parameter. The tool's version depends on them."""
    filled: Mapping[str, Any]
    """The defaults that are filled into arguments: all that are JSON data and not null."""
    unchecked: Mapping[str, Any]
    """The defaults in ``filled`` that the parameter's own type refuses, such as 0 for "no limit"."""
    own: Mapping[str, type]
    """The types of parameters that only the caller passes, such as `CallContext`, by the parameter's name."""

    @classmethod
    def of(cls, function: Callable[..., Any], *own_types: type) -> "Signature":
        """Read the signature. Raises TypeError if a parameter has no type or can't be passed by name."""
        hints = get_type_hints(function, include_extras=True)
        description, documented = docstring(function)
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        fillable: dict[str, tuple[Any, Any]] = {}  # defaults to fill in, each with its parameter's type
        own: dict[str, type] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(f"parameter {name} of tool {function.__name__} must be given by name")
            if name not in hints:
                raise TypeError(f"parameter {name} of tool {function.__name__} needs a type")
            if hints[name] in own_types:
                own[name] = hints[name]
                continue
            annotation, default = hints[name], parameter.default
            if default is not parameter.empty:
                defaults[name] = to_jsonable_python(default, fallback=lambda value: type(value).__qualname__)
                if default is not None and _is_json(default):
                    fillable[name] = (defaults[name], annotation)
                if not _takes_none(annotation):
                    annotation = annotation | None  # null means "not given"
            if name in documented:
                annotation = Annotated[annotation, Field(description=documented[name])]
            fields[name] = (annotation, None if name in defaults else ...)  # pydantic: "..." is "required"
        config = ConfigDict(extra="forbid", allow_inf_nan=False)
        model = create_model(f"{function.__name__}_arguments", __config__=config, **fields)
        filled, unchecked = _check_defaults(fillable, config)
        schema = make_offered(model.model_json_schema())
        strict = fits_strict(schema)
        return cls(description, model, schema, strict, defaults, filled, unchecked, own)

    def validate(self, raw: Any) -> dict[str, Any]:
        """Return canonical JSON arguments with defaults filled in. Raises BadArguments.

        An optional argument that is not given, or null, is left out if it has no default to fill in.
        """
        dumped = self._parse(raw).model_dump(mode="json")
        arguments = {}
        for name, value in dumped.items():
            if not self._is_left_out(name, value):
                arguments[name] = value
            elif name in self.filled:
                arguments[name] = copy.deepcopy(self.filled[name])
        return arguments

    def make_call_arguments(self, arguments: Mapping[str, Any], *own: Any) -> dict[str, Any]:
        """Return the function's arguments in its own types. ``own``: the values of the caller's types."""
        model = self._parse(arguments)
        call_arguments = {}
        for name in model.model_fields_set:
            value = getattr(model, name)
            if not self._is_left_out(name, value):
                call_arguments[name] = value
        for name, kind in self.own.items():
            for value in own:
                if isinstance(value, kind):
                    call_arguments[name] = value
        return call_arguments

    def _is_left_out(self, name: str, value: Any) -> bool:
        return value is None and name in self.defaults

    def _parse(self, raw: Any) -> BaseModel:
        """Check the arguments, except an argument that still has a default which its type refuses."""
        checked = raw
        if isinstance(raw, Mapping):
            unchecked = self.unchecked
            checked = {name: value for name, value in raw.items() if not is_same(value, unchecked.get(name))}
        try:
            return self.model.model_validate(checked)
        except ValidationError as error:
            faults = {}
            for fault in error.errors():
                field = ".".join(map(str, fault["loc"])) or "arguments"
                faults[field] = self._describe(fault)
            raise BadArguments(faults) from None

    def _describe(self, fault: ErrorDetails) -> str:
        words = fault_in_words(fault)
        if fault["type"] != "extra_forbidden" or len(fault["loc"]) != 1:
            return words
        return f"{words} There are: {', '.join(self.model.model_fields) or 'none'}."


def fault_in_words(fault: ErrorDetails) -> str:
    """Return the text of a pydantic fault in our own words, for forms, for the model and for scripts."""
    kind, context = fault["type"], fault.get("ctx", {})
    if fault["input"] == "" and kind in ("string_too_short", "too_short"):
        return "This is empty. Write something."
    if kind in _BOUNDS:
        if f"string_{kind}" in _BOUNDS and isinstance(fault["input"], str):
            kind = f"string_{kind}"  # pydantic calls a text "too_short" in some places
        keyword, name = _BOUNDS[kind]
        return describe_bound(keyword, context[name])
    if kind in ("literal_error", "enum"):
        return f"This must be {context['expected'].replace(chr(39), '')}."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        if "expected_tags" in context:
            tags = f": {context['expected_tags'].replace(chr(39), '')}"
        else:
            tags = ""
        return f"Say which kind it is in {context['discriminator'].replace(chr(39), '')}{tags}."
    if kind == "string_pattern_mismatch":
        return f"This must match {context['pattern']}."
    kind = kind.removesuffix("_type").removesuffix("_parsing")
    words = _KINDS.get(kind) or fault["msg"].removeprefix("Value error, ")
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _is_json(default: Any) -> bool:
    try:
        to_jsonable_python(default)
    except PydanticSerializationError:
        return False
    return True


def _check_defaults(
    fillable: Mapping[str, tuple[Any, Any]], config: ConfigDict
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the defaults as arguments have them, and the defaults that their own types refuse."""
    filled: dict[str, Any] = {}
    unchecked: dict[str, Any] = {}
    for name, (default, annotation) in fillable.items():
        field: dict[str, Any] = {name: (annotation, ...)}
        model = create_model("default", __config__=config, **field)
        try:
            filled[name] = model.model_validate({name: default}).model_dump(mode="json")[name]
        except ValidationError:
            filled[name] = unchecked[name] = default
    return filled, unchecked


def _takes_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _takes_none(get_args(annotation)[0])
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


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


def docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
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


def _storable(text: str) -> str:
    why = unstorable(text)
    if why:
        # not as the template, for that reads braces
        raise PydanticCustomError("storable", "{why}", {"why": why})
    return text


def _refuse_unseen(text: str) -> str:
    if text and blank(text):
        raise PydanticCustomError("blank", "This is empty. Write something")
    return text


# both stand last in an annotation: for rules after them pydantic does not know that the value is a text
STORABLE = AfterValidator(_storable)
SEEN = AfterValidator(_refuse_unseen)
Storable = Annotated[str, STORABLE]
"""A text without NUL and halves of characters, so that every program can be given it."""

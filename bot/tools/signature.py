"""A function's signature as a tool sees it: arguments checked by a pydantic model, words from the docstring.

What language models take of its JSON schema is in ``bot/tools/schema.py``. `Storable` is text that both
databases can keep.
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
"""By what pydantic calls the fault, without ``_type`` or ``_parsing`` behind."""
_ARGUMENT_LINE = re.compile(r"(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters as a pydantic model, and what may be left out.

    ``schema`` is the model's as language models take it. ``defaults`` are JSON data by parameter, as the
    tool's version has them. ``filled`` are those that stand in the arguments of a call that does not give
    them: neither null nor a Python object that is no JSON data. ``unchecked`` are those of them that the
    parameter's own type refuses, such as 0 for "no limit" where a limit is at least 1. ``own`` are
    the parameters that take no argument but what the caller has, by name, each with its type.
    ``description`` is the first paragraph of the docstring. ``strict``: strict mode takes the schema.
    """

    description: str
    model: type[BaseModel]
    schema: Schema
    strict: bool
    defaults: Mapping[str, Any]
    filled: Mapping[str, Any]
    unchecked: Mapping[str, Any]
    own: Mapping[str, type]

    @classmethod
    def of(cls, function: Callable[..., Any], *own_types: type) -> "Signature":
        """Read the signature. Raises TypeError if a parameter has no type or can't be passed by name."""
        hints = get_type_hints(function, include_extras=True)
        description, documented = docstring(function)
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        plain: dict[str, tuple[Any, Any]] = {}  # with the type of each
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
                    plain[name] = (defaults[name], annotation)
                annotation = annotation if _takes_none(annotation) else annotation | None
            if name in documented:
                annotation = Annotated[annotation, Field(description=documented[name])]
            fields[name] = (annotation, None if name in defaults else ...)
        config = ConfigDict(extra="forbid", allow_inf_nan=False)
        model = create_model(f"{function.__name__}_arguments", __config__=config, **fields)
        filled, unchecked = _settle_defaults(plain, config)
        schema = make_offered(model.model_json_schema())
        strict = fits_strict(schema)
        return cls(description, model, schema, strict, defaults, filled, unchecked, own)

    def validate(self, raw: Any) -> dict[str, Any]:
        """Return canonical JSON arguments with defaults filled in. Raises BadArguments.

        What was not given and has no default, or null, is left out.
        """
        dumped = self._parse(self._checkable(raw)).model_dump(mode="json")
        settled = copy.deepcopy(dict(self.filled))
        settled |= {name: value for name, value in dumped.items() if not self._is_left_out(name, value)}
        return {name: settled[name] for name in dumped if name in settled}

    def make_call_arguments(self, arguments: Mapping[str, Any], *own: Any) -> dict[str, Any]:
        """Return the arguments of the function in its own types, without unchanged defaults."""
        model = self._parse(self._checkable(arguments))
        given = {name: getattr(model, name) for name in model.model_fields_set}
        typed = {name: value for name, value in given.items() if not self._is_left_out(name, value)}
        return typed | {
            name: each for name, kind in self.own.items() for each in own if isinstance(each, kind)
        }

    def _is_left_out(self, name: str, value: Any) -> bool:
        return value is None and name in self.defaults

    def _checkable(self, raw: Any) -> Any:
        """Return the arguments without unchanged defaults that their own types would refuse."""
        if not isinstance(raw, Mapping):
            return raw
        unchecked = self.unchecked
        return {name: value for name, value in raw.items() if not is_same(value, unchecked.get(name))}

    def _parse(self, raw: Any) -> BaseModel:
        try:
            return self.model.model_validate(raw)
        except ValidationError as error:
            raise BadArguments(
                {
                    ".".join(map(str, each["loc"])) or "arguments": self._in_words(each)
                    for each in error.errors()
                }
            ) from None

    def _in_words(self, fault: ErrorDetails) -> str:
        words = fault_in_words(fault)
        if fault["type"] != "extra_forbidden" or len(fault["loc"]) != 1:
            return words
        return f"{words} There are: {', '.join(self.model.model_fields) or 'none'}."


def fault_in_words(fault: ErrorDetails) -> str:
    """Return an error of pydantic in our own words, as it is displayed at a form's field.

    The model and scripts read it, too.
    """
    kind, context = fault["type"], fault.get("ctx", {})
    if fault["input"] == "" and kind in ("string_too_short", "too_short"):
        return "This is empty. Write something."
    if kind in _BOUNDS:
        if f"string_{kind}" in _BOUNDS and isinstance(fault["input"], str):
            kind = f"string_{kind}"
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
    said = _KINDS.get(kind, fault["msg"].removeprefix("Value error, "))
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def _is_json(default: Any) -> bool:
    try:
        to_jsonable_python(default)
    except PydanticSerializationError:
        return False
    return True


def _settle_defaults(
    plain: Mapping[str, tuple[Any, Any]], config: ConfigDict
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the defaults as arguments have them, and those of them that their own types refuse."""
    filled: dict[str, Any] = {}
    unchecked: dict[str, Any] = {}
    for name, (default, annotation) in plain.items():
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
    """Return the name of the first parameter annotated ``kind`` or ``kind | None``, or an empty text.

    A callable whose annotations can't be read has none.
    """
    inner = function.func if isinstance(function, functools.partial) else function
    bound = function.keywords if isinstance(function, functools.partial) else {}
    written = inner if inspect.isroutine(inner) else getattr(inner, "__call__", None)  # noqa: B004 - its hints
    try:
        hints = get_type_hints(written)
    except Exception:  # noqa: BLE001 - code of others: a name that is there for type checkers alone
        return ""
    hints.pop("return", None)
    named = (name for name, hint in hints.items() if hint is kind or kind in get_args(hint))
    return next((name for name in named if name not in bound), "")


def docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the first paragraph, and the descriptions under ``Args:``, with their continued lines."""
    before, _, rest = f"\n{inspect.getdoc(function) or ''}".partition("\nArgs:\n")
    head = before.strip().partition("\n\n")[0]
    lines = textwrap.dedent(rest.partition("\n\n")[0]).splitlines()
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[:1].isspace() and name:
            found[name] = f"{found[name]} {line.strip()}".strip()
        elif match := _ARGUMENT_LINE.match(line):
            name = match[1]
            found[name] = match[2].strip()
    return " ".join(head.split()), found


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


STORABLE = AfterValidator(_storable)  # stands last: the rules after it would not see a text
SEEN = AfterValidator(_refuse_unseen)  # stands last, too
Storable = Annotated[str, STORABLE]
"""Text that every program can be given, too: no NUL, and no half of a character."""

"""A function's signature as a tool sees it: arguments checked by a pydantic model, words from the docstring.

What language models take of its JSON schema is in ``bot/tools/schema.py``. `Storable` is text that both
databases can keep.
"""

import inspect
import re
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails, PydanticCustomError, to_jsonable_python

from bot.domain.forms import bound_in_words
from bot.domain.text import blank, unstorable
from bot.errors import BadArguments
from bot.tools.schema import Schema, offered


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters as a pydantic model, and what may be left out.

    ``schema`` is the model's as language models take it. ``defaults`` are JSON data by parameter. ``own`` are
    the parameters that take no argument but what the caller has, by name, each with its type.
    """

    model: type[BaseModel]
    schema: Schema
    defaults: Mapping[str, Any]
    own: Mapping[str, type]

    @classmethod
    def of(cls, function: Callable[..., Any], *own_types: type) -> "Signature":
        """Read the signature. Raises TypeError if a parameter has no type or can't be passed by name."""
        hints = get_type_hints(function, include_extras=True)
        _, documented = docstring(function)
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
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
                annotation = annotation if _takes_none(annotation) else annotation | None
            if name in documented:
                annotation = Annotated[annotation, Field(description=documented[name])]
            fields[name] = (annotation, None if name in defaults else ...)
        config = ConfigDict(extra="forbid", allow_inf_nan=False)
        model = create_model(f"{function.__name__}_arguments", __config__=config, **fields)
        return cls(model, offered(model.model_json_schema()), defaults, own)

    def validate(self, raw: Any) -> dict[str, Any]:
        """Canonical JSON arguments: types settled, what was not given left out. Raises BadArguments."""
        dumped = self._parse(raw).model_dump(mode="json")
        return {name: value for name, value in dumped.items() if not self._left_out(name, value)}

    def passed(self, arguments: Mapping[str, Any], *own: Any) -> dict[str, Any]:
        """What the function is called with: its own types, without what is left to its defaults."""
        model = self._parse(dict(arguments))
        given = {name: getattr(model, name) for name in model.model_fields_set}
        typed = {name: value for name, value in given.items() if not self._left_out(name, value)}
        return typed | {
            name: each for name, kind in self.own.items() for each in own if isinstance(each, kind)
        }

    def _left_out(self, name: str, value: Any) -> bool:
        return value is None and name in self.defaults

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


def fault_in_words(fault: ErrorDetails) -> str:
    """What would fit, in our own words: a form shows it at the field, the model and scripts read it."""
    kind, context = fault["type"], fault.get("ctx", {})
    if fault["input"] == "" and kind in ("string_too_short", "too_short"):
        return "This is empty. Write something."
    if kind in _BOUNDS:
        kind = f"string_{kind}" if f"string_{kind}" in _BOUNDS and isinstance(fault["input"], str) else kind
        keyword, name = _BOUNDS[kind]
        return bound_in_words(keyword, context[name])
    if kind in ("literal_error", "enum"):
        return f"This must be {context['expected'].replace(chr(39), '')}."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = f": {context['expected_tags'].replace(chr(39), '')}" if "expected_tags" in context else ""
        return f"Say which kind it is in {context['discriminator'].replace(chr(39), '')}{tags}."
    if kind == "string_pattern_mismatch":
        return f"This must match {context['pattern']}."
    kind = kind.removesuffix("_type").removesuffix("_parsing")
    said = _KINDS.get(kind, fault["msg"].removeprefix("Value error, "))
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def _takes_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _takes_none(get_args(annotation)[0])
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


_ARGUMENT_LINE = re.compile(r"(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")


def docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """First paragraph, and the descriptions under ``Args:``; deeper indented lines continue with theirs."""
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
    if why := unstorable(text):
        # not as the template, for that reads braces
        raise PydanticCustomError("storable", "{why}", {"why": why})
    return text


def _seen(text: str) -> str:
    if text and blank(text):
        raise PydanticCustomError("blank", "This is empty. Write something")
    return text


STORABLE = AfterValidator(_storable)  # stands last: the rules after it would not see a text
SEEN = AfterValidator(_seen)  # stands last, too
Storable = Annotated[str, STORABLE]
"""Text that every program can be given, too: no NUL, and no half of a character."""

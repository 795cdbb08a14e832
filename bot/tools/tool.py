"""A tool: what it is called, what it takes, how much it can harm, what it would change, how it runs.

A team's own tool is a typed async function under `@tool`. Other sources (an MCP server, the built-in issue
tracker) hand over the same `Tool` values through a `Toolset`. Nothing here decides whether a tool may run:
that is ``bot/agent/gate.py``, the one door.
"""

import hashlib
import inspect
import json
import re
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from bot.domain.proposals import PreviewField, canonical
from bot.domain.risk import Level, Risk
from bot.errors import BadArguments

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a running tool may know about its call; taken by a parameter annotated ``CallContext``.

    ``idempotency_key`` is the same for every run of one proposal and empty for reads.
    """

    conversation_id: str
    requested_by: str
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers: JSON data or text for the model and people, and a link to it where there is one."""

    data: Any
    url: str | None = None

    @property
    def text(self) -> str:
        return self.data if isinstance(self.data, str) else json.dumps(self.data, ensure_ascii=False)


Run = Callable[[Arguments, CallContext], Awaitable[ToolOutput]]
Preview = Callable[[Arguments], Awaitable[Sequence[PreviewField]]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, ready to be offered, proposed and run.

    ``parameters`` is a JSON schema (object). ``validate`` takes decoded JSON and returns canonical arguments
    or raises BadArguments. ``classify`` and ``summary`` take canonical arguments. ``timeout`` is in seconds.
    ``version`` changes whenever the meaning of the same arguments could have changed.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool
    version: str
    group: str
    reads: bool  # True: no arguments make it write
    idempotent: bool
    timeout: float
    validate: Callable[[Any], dict[str, Any]]
    classify: Callable[[Arguments], Risk]
    summary: Callable[[Arguments], str]
    run: Run
    preview: Preview | None = None

    async def preview_fields(self, arguments: Arguments) -> tuple[PreviewField, ...]:
        """The tool's own preview, or every argument as a new value where it has none."""
        if self.preview is not None:
            return tuple(await self.preview(arguments))
        return tuple(PreviewField(name, None, _shown(value)) for name, value in arguments.items())


class Toolset(Protocol):
    """A source of tools; asked anew for each turn, so a source may come, go and change."""

    name: str

    async def tools(self) -> Sequence[Tool]: ...


@dataclass(frozen=True, slots=True)
class FixedToolset:
    """Tools that are there from start to end."""

    name: str
    fixed: tuple[Tool, ...]

    async def tools(self) -> Sequence[Tool]:
        return self.fixed


def tool(
    *,
    writes: bool = True,
    destructive: bool = False,
    idempotent: bool = False,
    group: str = "own",
    summary: str | Callable[[Arguments], str] | None = None,
    preview: Preview | None = None,
    classify: Callable[[Arguments], Risk] | None = None,
    timeout: float = 30.0,
    version: str = "1",
) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    """Make a `Tool` of a typed async function.

    The schema comes from the signature; descriptions from the docstring: its first paragraph for the tool,
    the lines ``name: text`` under ``Args:`` for the parameters. A parameter with a default is optional;
    null in it means "not given". A tool writes unless it says ``writes=False``. ``summary`` is a format
    string over the arguments (``"Close issue #{number}"``) or a function of them. Raises TypeError, where
    the tool is defined, for a parameter without an annotation or a function that is not async.
    """

    def make(function: Callable[..., Awaitable[Any]]) -> Tool:
        name = function.__name__
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"tool {name} must be an async function")
        signature = _Signature.of(function)
        parameters = _strict(signature.model.model_json_schema())
        description, _ = _docstring(function)

        async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
            # through the model once more, so that the function gets its own types (dates, enums)
            given = signature.typed(arguments)
            if signature.context:
                given[signature.context] = context
            output = await function(**given)
            return output if isinstance(output, ToolOutput) else ToolOutput(output)

        risk = _declared_risk(writes=writes, destructive=destructive)
        shape = canonical([name, description, parameters, version])
        return Tool(
            name=name,
            description=description or name.replace("_", " "),
            parameters=parameters,
            strict=True,
            version=hashlib.sha256(shape.encode()).hexdigest()[:16],
            group=group,
            reads=not (writes or destructive or classify),
            idempotent=idempotent,
            timeout=timeout,
            validate=signature.validate,
            classify=classify or (lambda _: risk),
            summary=_summary(summary, name),
            run=run,
            preview=preview,
        )

    return make


def _declared_risk(*, writes: bool, destructive: bool) -> Risk:
    if destructive:
        return Risk(Level.DESTRUCTIVE, "it cannot be undone")
    if writes:
        return Risk(Level.WRITE, "it changes something")
    return Risk(Level.READ, "it only reads")


def _summary(given: str | Callable[[Arguments], str] | None, name: str) -> Callable[[Arguments], str]:
    if callable(given):
        return given
    template = given

    def summary(arguments: Arguments) -> str:
        if template is None:
            inside = ", ".join(f"{key} = {_shown(value)}" for key, value in arguments.items())
            return f"{name.replace('_', ' ').capitalize()}" + (f": {inside}" if inside else "")
        return template.format_map(_Blank(arguments))

    return summary


class _Blank(dict[str, Any]):
    """Format-string fields that were not given read as nothing."""

    def __missing__(self, key: str) -> str:
        return ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Signature:
    """A function's parameters as a pydantic model, and what may be left out."""

    model: type[BaseModel]
    optional: frozenset[str]
    context: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "_Signature":
        hints = get_type_hints(function, include_extras=True)
        _, documented = _docstring(function)
        fields: dict[str, Any] = {}
        optional: set[str] = set()
        context = None
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in hints or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"parameter {name} of tool {function.__name__} needs a type")
            if hints[name] is CallContext:
                context = name
                continue
            annotation = hints[name]
            if name in documented:
                annotation = Annotated[annotation, Field(description=documented[name])]
            if parameter.default is parameter.empty:
                fields[name] = (annotation, ...)
            else:
                optional.add(name)
                fields[name] = (annotation if _takes_none(annotation) else annotation | None, None)
        model = create_model(
            f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields
        )
        return cls(model, frozenset(optional), context)

    def _parse(self, raw: Any) -> BaseModel:
        try:
            return self.model.model_validate(raw)
        except ValidationError as error:
            raise BadArguments(
                {".".join(map(str, e["loc"])) or "arguments": e["msg"] for e in error.errors()}
            ) from None

    def validate(self, raw: Any) -> dict[str, Any]:
        """Canonical JSON arguments: types settled, what was not given left out."""
        dumped = self._parse(raw).model_dump(mode="json")
        return {k: v for k, v in dumped.items() if v is not None or k not in self.optional}

    def typed(self, arguments: Arguments) -> dict[str, Any]:
        model = self._parse(dict(arguments))
        return {name: getattr(model, name) for name in model.model_fields_set}


def _takes_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _takes_none(get_args(annotation)[0])
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


_ARGUMENT_LINE = re.compile(r"^\s*(\w+)\s*:\s*(.+)$")


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """First paragraph, and the descriptions under ``Args:``."""
    text = inspect.getdoc(function) or ""
    head, _, rest = text.partition("\n\n")
    _, _, arguments = f"\n{rest}".partition("\nArgs:\n")
    lines = arguments.partition("\n\n")[0].splitlines()
    found = (_ARGUMENT_LINE.match(line) for line in lines)
    return " ".join(head.split()), {m[1]: m[2].strip() for m in found if m}


def _strict(schema: Any) -> Any:
    """OpenAI's strict form: every property required, nothing else allowed, no defaults, no titles."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: _strict(item) for name, item in value.items()}
        if key in ("properties", "$defs")
        else _strict(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and key != "default"
    }
    if kept.get("type") == "object" or "properties" in kept:
        kept.setdefault("properties", {})
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    return kept

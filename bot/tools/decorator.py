"""The decorator `tool`, which makes a `Tool` of a team's own typed async function."""

import hashlib
import inspect
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, overload

from sqlmodel import Session

from bot.domain.digests import to_canonical_json
from bot.domain.forms import without_defaults
from bot.domain.risks import USUAL_DESTRUCTIVE_REASON, Level, Risk
from bot.domain.spellings.terms import Referent
from bot.domain.value_text import summarize_arguments, summarize_value
from bot.errors import ToolError
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.effect import EffectContext, EffectResult
from bot.tools.looks import Begins, Current, Key, Preview, Title, Undo
from bot.tools.signature import Signature
from bot.tools.tool import Tool
from bot.tools.trial import Apply, TrialFunctions, TrialOutput

_MAX_NAMED_ITEMS = 3  # the items of a list that a title names; of a longer list it names only the first

Function = Callable[..., Awaitable[Any] | EffectResult]
"""The function under `@tool`: async, or an effect that takes an `EffectContext`."""


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *,
    writes: bool = True,
    destructive: bool = False,
    idempotent: bool = False,
    group: str = "own",
    summary: str | Callable[[Arguments], str] | None = None,
    title: Title | None = None,
    preview: Preview | None = None,
    key: Sequence[str] | Key | None = None,
    begins: Begins | None = None,
    touches: str | None = None,
    classify: Callable[[Arguments], Risk] | None = None,
    timeout: float = 30.0,
    version: str = "1",
    open_world: bool | None = None,
    trial: Callable[..., Awaitable[TrialOutput]] | None = None,
    apply: Apply | None = None,
    current: Current | None = None,
    undo: Undo | None = None,
    batch: str = "",
    names: Mapping[str, str] | None = None,
    connection: str = "",
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    writes: bool = True,
    destructive: bool = False,
    idempotent: bool = False,
    group: str = "own",
    summary: str | Callable[[Arguments], str] | None = None,
    title: Title | None = None,
    preview: Preview | None = None,
    key: Sequence[str] | Key | None = None,
    begins: Begins | None = None,
    touches: str | None = None,
    classify: Callable[[Arguments], Risk] | None = None,
    timeout: float = 30.0,
    version: str = "1",
    open_world: bool | None = None,
    trial: Callable[..., Awaitable[TrialOutput]] | None = None,
    apply: Apply | None = None,
    current: Current | None = None,
    undo: Undo | None = None,
    batch: str = "",
    names: Mapping[str, str] | None = None,
    connection: str = "",
) -> Tool | Callable[[Function], Tool]:
    """Make a `Tool` of a typed async function. The bare decorator ``@tool`` makes a tool that writes.

    The schema comes from the signature. A parameter with a default is optional; null in it means "not given".
    The descriptions come from the docstring: its first paragraph for the tool, the lines ``name: text`` under
    ``Args:`` for the parameters.

    - ``writes``: False for a tool that only reads.
    - ``summary``: a format string over the arguments (``"Close issue #{number}"``), or a function of them.
    - ``title``: as ``summary``, for a card, if the object's own name has to be looked up.
    - ``key``: the arguments that similar calls share, for "approve similar"; or a function that resolves
      them.
    - ``touches``: the name of the resource that a call changes, as a format string (``"issue {number}"``).
      From the last look at the old values to the end of the run, no other call with that name runs, of any
      tool. By default calls of a tool with a preview wait for calls with the same key; ``""`` lets them run
      side by side.
    - ``open_world``: True if it reaches servers outside. People are asked about an address that a reading
      call would send there, unless the requester wrote it. By default a team's own tool is taken to reach
      them.
    - ``trial`` and ``apply``: as in `TrialFunctions`; both or none.
    - ``current``: returns the present values of the preview's fields. It is asked once after the run; the
      card says if they are not what was approved.
    - ``undo``: returns the call that undoes a call, or the reason why none can.
    - ``names``: which arguments are a path, an address, a mail address or a name (``{"target": "path"}``), so
      that rules compare them as the tool uses them. Rules judge the others by their names, and are careful.
    - ``batch``: three or more calls of one tool in one answer are shown as one table; tools with the same
      ``batch`` share it.
    - ``connection``: the provider under whose accounts it runs, each person's or chat's own. The function
      finds the token in its `CallContext`. Looks and trials have no token, so such a tool has none of them.

    A function that takes an `EffectContext` is an `Effect`, and is not async: it only changes Nod's own rows.

    Raises TypeError for a parameter without an annotation, for a function that is not async, and for only one
    of ``trial`` and ``apply``.
    """
    run_without_token = (title, preview, key, begins, trial, apply, current, undo)
    if connection and any(map(callable, run_without_token)):
        raise TypeError("a tool with a connection looks at nothing before it is approved")

    def make_tool(function: Callable[..., Any]) -> Tool:
        name = function.__name__
        signature = Signature.of(function, CallContext, Session, EffectContext)
        is_effect = EffectContext in signature.injected_types.values()
        if not (is_effect or inspect.iscoroutinefunction(function)):
            raise TypeError(f"tool {name} must be an async function")
        if Session in signature.injected_types.values() and not is_effect:
            raise TypeError(f"tool {name} takes a Session, which only one with an EffectContext is given")
        description = signature.description
        parameters = signature.schema

        async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
            if is_effect:
                raise ToolError("This is done where the answer is stored, not here.")
            # through the pydantic model once more, so that the function gets its own types (dates, enums)
            return _as_output(await function(**signature.make_call_arguments(arguments, context)))

        def effect(session: Session, context: EffectContext, arguments: Arguments) -> EffectResult:
            result: EffectResult = function(**signature.make_call_arguments(arguments, session, context))
            return result

        risk = _make_declared_risk(writes=writes, destructive=destructive)
        # a default is part of what arguments mean: a new one must not run under an old approval
        versioned_parts = to_canonical_json([name, description, parameters, signature.defaults, version])
        return Tool(
            name=name,
            description=description or name.replace("_", " "),
            parameters=parameters,
            strict=signature.strict,
            version=hashlib.sha256(versioned_parts.encode()).hexdigest()[:16],
            group=group,
            reads=not (writes or destructive or classify),
            idempotent=idempotent,
            timeout=timeout,
            validate=signature.validate,
            classify=classify or (lambda _: risk),
            summary=_make_summary(summary, name, signature.filled_defaults),
            run=run,
            effect=effect if is_effect else None,
            preview=preview,
            title=title,
            key=_make_key(key),
            begins=begins,
            touches=None if touches is None else _make_template(touches),
            defaults=signature.filled_defaults,
            destructive=destructive,
            open_world=open_world,
            trial_functions=_make_trial_functions(name, trial, apply, undo),
            current=current,
            undo=undo,
            batch=batch,
            names=_check_names(name, names or {}, parameters),
            provider=connection,
        )

    if function is None:
        return make_tool
    return make_tool(function)


def _check_names(
    name: str, names: Mapping[str, str], parameters: Mapping[str, Any]
) -> Mapping[str, Referent]:
    """Return the referents by parameter.

    Raises TypeError for an unknown parameter, ValueError for a word that is no `Referent`.
    """
    unknown = names.keys() - parameters["properties"].keys()
    if unknown:
        raise TypeError(f"tool {name} has no parameter {min(unknown)}")
    return {parameter: Referent(referent) for parameter, referent in names.items()}


def _as_output(answer: Any) -> ToolOutput:
    if isinstance(answer, ToolOutput):
        return answer
    return ToolOutput(answer)


def _make_trial_functions(
    name: str,
    trial: Callable[..., Awaitable[TrialOutput]] | None,
    apply: Apply | None,
    undo: Undo | None,
) -> TrialFunctions | None:
    if trial is None and apply is None:
        return None
    if trial is None or apply is None:
        raise TypeError(f"tool {name}: trial and apply go together")

    async def apply_trial(arguments: Arguments, token: Any, context: CallContext) -> ToolOutput:
        return _as_output(await apply(arguments, token, context))

    return TrialFunctions(trial, apply_trial, undo=undo)


def _make_key(key: Sequence[str] | Key | None) -> Key | None:
    if key is None or callable(key):
        return key
    names = tuple(key)

    async def pick_arguments(arguments: Arguments) -> Mapping[str, Any]:
        return {name: arguments.get(name) for name in names}

    return pick_arguments


def _make_declared_risk(*, writes: bool, destructive: bool) -> Risk:
    if destructive:
        return Risk(Level.DESTRUCTIVE, USUAL_DESTRUCTIVE_REASON)
    if writes:
        return Risk(Level.WRITE, "")  # the card shows the change; the risk needs no words
    return Risk(Level.READ, "it only reads")


def _make_summary(
    summary: str | Callable[[Arguments], str] | None, name: str, defaults: Arguments
) -> Callable[[Arguments], str]:
    if callable(summary):
        return summary
    template = summary  # a new name, whose narrowed type holds in the inner function

    def summarise(arguments: Arguments) -> str:
        if template is not None:
            return _SummaryFormatter().vformat(template, (), _OptionalFields(arguments))
        heading = name.replace("_", " ").capitalize()
        values = summarize_arguments(without_defaults(arguments, defaults))
        return f"{heading}: {values}" if values else heading

    return summarise


def _make_template(template: str) -> Callable[[Arguments], str]:
    return lambda arguments: template.format_map(_OptionalFields(arguments))


class _SummaryFormatter(string.Formatter):
    """A formatter that writes lists and objects in words: ``["a", "b"]`` as ``a, b``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Mapping):
            value = [f"{name}: {_summarise(item)}" for name, item in value.items()]
        if not isinstance(value, list):
            return str(super().format_field(value, format_spec))
        if len(value) > _MAX_NAMED_ITEMS:
            return f"{_summarise(value[0])} and {len(value) - 1} more"
        return ", ".join(map(_summarise, value)) or "none"


def _summarise(value: Any) -> str:
    return summarize_value(value) or "…"


class _OptionalFields(dict[str, Any]):
    """The arguments for a format string; an argument that was not given is empty."""

    def __missing__(self, key: str) -> str:
        return ""

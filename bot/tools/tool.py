"""The `Tool` value: a tool's name, arguments, risk and run, and the functions that show people a call.

A team's own tool is a typed async function under `@tool`. Other sources (an MCP server, the built-in issue
tracker) hand over the same `Tool` values through a `Toolset`. Nothing here decides whether a tool may run:
that is the gate, ``bot/approvals/gate.py``, which calls the functions of a `Tool` in this order:

- ``validate`` makes the arguments canonical, and ``classify`` judges the risk of the call.
- ``preview`` and ``title`` read what the card shows to the people who decide. ``key`` and ``begins`` read
  what similar calls have in common, for a grant, which lets such calls run unasked.
- ``touches`` names the resource that a call changes: calls with the same resource run one after the other.
- ``run`` runs the approved call. Afterwards ``current`` reads the changed values, and ``undo`` names the
  inverse call. ``settle`` tells how an interrupted run ended.

``preview``, ``title``, ``key``, ``begins``, ``touches``, ``current``, ``undo`` and ``settle`` only read. They
are called *looks*, and may take a `CallContext`.

Three sorts of tools differ:

- A tool with `TrialFunctions` is tried before people decide. After the approval its trial is applied.
- A tool with an `Effect` only changes Nod's own rows, in the transaction that stores the model's answer.
- A tool whose kind of proposal runs nothing has ``conclude`` instead of ``run``. ``conclude`` returns the
  output of the approved proposal.
"""

import asyncio
import hashlib
import inspect
import json
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any, Protocol, overload

from pydantic_core import to_jsonable_python
from sqlmodel import Session

from bot.domain import kinds
from bot.domain.connections import Connection, Identity
from bot.domain.conversations import Conversation
from bot.domain.files import File
from bot.domain.forms import list_values, without_defaults
from bot.domain.jobs import Job
from bot.domain.model import ToolSpec
from bot.domain.outcomes import REASON_PARAMETER
from bot.domain.people import Actor, Person
from bot.domain.proposals import (
    USUAL_DESTRUCTIVE_REASON,
    Level,
    PreviewField,
    ProposalKind,
    Risk,
    canonical,
    digest,
)
from bot.domain.rules import CallFacts, Place
from bot.domain.similarity import NO_BEGINNING, Beginning, Likeness
from bot.domain.spellings import REFERENT_KEYWORD, Referent
from bot.domain.text import storable
from bot.domain.trials import TriedFile
from bot.domain.value_text import summarize_arguments, summarize_value
from bot.errors import BadArguments, ToolError
from bot.tools.signature import Signature, find_parameter

Arguments = Mapping[str, Any]

_LOOKS = ("preview", "title", "key", "begins", "touches", "current", "undo", "settle")
"""The names of the looks of a `Tool`."""
_TRIAL_LOOKS = ("trial", "unchanged", "current", "undo", "settle")
"""The names of the looks of a `TrialFunctions`."""

APPROVED_FIRST = " (What it changes, people approve first, unless their rules let it run.)"
"""The end of the description of each tool that writes, as a model reads it."""

_REASON_SCHEMA = {
    "type": "string",
    "description": "Why you want this: one sentence for the person who decides. Empty if it only reads.",
}
_MAX_NAMED_ITEMS = 3  # the items of a list that a title names; of a longer list it names only the first


async def _discard(words: str) -> None:
    """Do nothing with a report."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a tool's call, passed to a parameter annotated ``CallContext``.

    The looks of a tool may take it in the same way, and so may `Toolset.tools`.
    """

    conversation_id: str
    """The id of the conversation; empty if the place is not known."""
    requested_by: str
    """The account of the person who asked; empty if the person is not known."""
    idempotency_key: str = ""
    """A key that is the same for every run of one proposal; empty for reads, previews and the like."""
    preview: tuple[PreviewField, ...] = ()
    """The fields that the card showed. A tool can check by them that nothing has changed since."""
    progress: Callable[[str], Awaitable[None]] = field(default=_discard, repr=False, compare=False)
    """Tells people how far the call is: ``await context.progress("3 of 10 files")``. It never raises."""
    printed: Callable[[str], Awaitable[None]] = field(default=_discard, repr=False, compare=False)
    """Shows people the newest lines of output, such as a command's, while the call runs. It never raises."""
    token: str = field(default="", repr=False, compare=False)
    """The token of the connection under which the call runs; empty before and after the run."""
    connected_as: str = ""
    """The owner of the connection under which a proposed call runs: an account or an address."""
    depth: int = 0
    """The number of agents' calls that led to this call."""
    agent: str = ""
    """The program that calls for the person, as `Agent.key`; empty for Nod's own agent."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool."""

    data: Any
    """JSON data or text, for the model."""
    url: str | None = None
    """A link to the result."""
    files: tuple[File, ...] = ()
    """Files for people; the model does not see them."""
    told: str | None = None
    """One sentence for people, such as "Created issue #1". Without it they see the data."""
    ended_badly: str | None = None
    """The failure of a call that ran, such as "Ended with code 3". The card says it instead of "Done"."""
    kept: Any = field(default=None, repr=False)
    """The state before the run, as far as ``undo=`` needs it. Only ``undo=`` gets it."""

    @property
    def text(self) -> str:
        """The data as text. It never raises, because the tool has run: other data is written as text."""
        if isinstance(self.data, str):
            return storable(self.data)
        try:
            plain = to_jsonable_python(self.data, bytes_mode="base64", fallback=str)
            return storable(json.dumps(plain, ensure_ascii=False))
        except (ValueError, RecursionError):  # it contains itself, or is nested too deeply
            return "(an answer that can't be written as JSON)"


@dataclass(frozen=True, slots=True)
class TrialOutput:
    """The result of a trial."""

    changes: Sequence[PreviewField]
    """The changes that the call would make."""
    token: Any = None
    """JSON data from which ``apply`` makes exactly the changes of the trial."""
    output: str = ""
    """The output of a command that was tried."""
    exit: int | None = None
    """The exit code of a command that was tried; None if it was ended, or nothing was run."""
    files: tuple[TriedFile, ...] = ()
    """The files that it changed."""
    cage: str = ""
    """The name of the closed environment in which a command was tried."""
    refused: str = ""
    """The reason why the changes can't be applied. The call can then only be run for real."""
    final: str = ""
    """The reason why the changes can't be undone."""


@dataclass(frozen=True, slots=True)
class TrialFunctions:
    """The functions by which a tool's calls are tried before people decide, and their trials applied."""

    trial: Callable[..., Awaitable[TrialOutput]]
    """Tries a call and changes nothing. Raises ToolError if it can't be tried; the card says why."""
    apply: Callable[[Arguments, Any, CallContext], Awaitable[ToolOutput]]
    """Makes the changes of a trial, or raises ToolError before it changes anything.

    It takes the call's arguments, the trial's token and a `CallContext`.
    """
    unchanged: Callable[..., Awaitable[bool]] | None = None
    """Tells if the state from which a trial's token was made is unchanged; takes the arguments and the token.

    Without this function the call is tried again before its trial is applied.
    """
    settle: Callable[..., Awaitable[ToolOutput | None]] | None = None
    """Tells how an interrupted ``apply`` ended; takes the arguments, the token and the idempotency key.

    It returns the output that ``apply`` would have returned. It raises ToolError if nothing was changed, and
    returns None if that is unclear.
    """
    current: Callable[..., Awaitable[Mapping[str, str | None]]] | None = None
    """Returns the present values of the card's fields, by field; takes the files (`TriedFile`) of a trial."""
    undo: "Undo | None" = None
    """Returns the call that undoes the changes."""
    touches: str = ""
    """The name of the resource that ``apply`` changes. Calls with the same name run one after the other."""

    def __post_init__(self) -> None:
        for name, look in _bind_looks(self, _TRIAL_LOOKS).items():
            object.__setattr__(self, name, look)


@dataclass(frozen=True, slots=True)
class _BoundFunction:
    """A function of a tool with the `CallContext` that it gets as its ``parameter``."""

    function: Callable[..., Any]
    parameter: str
    context: CallContext = CallContext("", "")

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments, **{self.parameter: self.context})


# in the following types, "..." is the canonical arguments and, if the function takes it, a `CallContext`

Run = Callable[[Arguments, CallContext], Awaitable[ToolOutput]]

Conclude = Callable[[Arguments], ToolOutput]
"""Returns the output of an approved proposal whose kind has no run."""

Apply = Callable[[Arguments, Any, CallContext], Awaitable[Any]]
"""Makes the changes of a trial; the second argument is the trial's token."""

Preview = Callable[..., Awaitable[Sequence[PreviewField]]]
"""Returns the fields of the card: what the call changes, with old and new values."""

Title = Callable[..., Awaitable[str]]
"""Returns the heading of the card. Unlike ``summary`` it may look up the name of the call's object."""

Key = Callable[..., Awaitable[Mapping[str, Any]]]
"""Returns the arguments by which two calls are similar, resolved if necessary (to a real folder)."""

Current = Callable[..., Awaitable[Mapping[str, str | None]]]
"""Returns the present values of a preview's fields as texts, by field; None if there is nothing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A call, for the tool's ``undo=``."""

    arguments: Arguments
    preview: tuple[PreviewField, ...]
    output: ToolOutput | None = None
    """None before the call has run."""

    @property
    def kept(self) -> Any:
        """The tool's own record of the state before the run, or None."""
        if self.output:
            return self.output.kept
        return None

    def old(self, name: str) -> str | None:
        """Return the old value of a field on the card; None if it had no value, or there is no such field."""
        for preview_field in self.preview:
            if preview_field.field == name:
                return preview_field.old_value
        return None


@dataclass(frozen=True, slots=True)
class InverseCall:
    """The call that undoes another call."""

    tool_name: str
    arguments: Arguments


Undo = Callable[..., Awaitable[InverseCall | str]]
"""Returns the inverse of a call, or the reason why it has none, in words for people."""

Settle = Callable[..., Awaitable[ToolOutput | None]]
"""Tells how an interrupted run ended, by its idempotency key. As `TrialFunctions.settle`, without a token."""

Begins = Callable[..., Awaitable[Beginning]]
"""Returns the first words of a call, by which a grant may cover all calls that begin alike."""


@dataclass(frozen=True, slots=True)
class EffectContext:
    """The context of an effect: of a tool that only changes Nod's own rows (`Effect`)."""

    conversation: Conversation
    asker: Actor
    call: str
    """The id of the call, which stays the same if its turn runs a second time."""
    tools: frozenset[str]
    """The names of the available tools, without those for teammates (``delegate`` and the like)."""
    now: datetime


@dataclass(frozen=True, slots=True)
class EffectResult:
    """The result of an effect: a text for the model, and jobs to start."""

    text: str
    jobs: tuple[Job, ...] = ()


Check = Callable[[Session, CallContext, Arguments], object]
"""Raises ToolError, in words for the model, if a call can only fail: people are then not asked."""

Function = Callable[..., Awaitable[Any] | EffectResult]
"""The function under `@tool`: async, or an effect that takes an `EffectContext`."""

Effect = Callable[[Session, EffectContext, Arguments], EffectResult]
"""Changes Nod's own rows and nothing else. Raises ToolError before it changes any row."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, ready to be offered, proposed and run.

    ``validate`` takes decoded JSON. It returns canonical arguments with defaults filled in, which are shown,
    recorded and run, or raises BadArguments. All other callables take canonical arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema whose root is an object."""
    strict: bool
    """True: OpenAI's strict mode takes ``parameters``."""
    version: str
    """Changes whenever the meaning of the same arguments could have changed."""
    group: str
    """The source of the tool, as rules and lists name it: "fs", "web", "mcp:wiki", "own"."""
    reads: bool
    """True: no arguments make it write."""
    idempotent: bool
    timeout: float
    """The seconds that a run may take."""
    validate: Callable[[Any], dict[str, Any]]
    classify: Callable[[Arguments], Risk]
    summary: Callable[[Arguments], str]
    """Describes a call in one line, without looking anything up."""
    run: Run | None
    """None for a kind of proposal that has no run."""
    preview: Preview | None = None
    check: Check | None = None
    """Checks a model's call before it is proposed."""
    conclude: Conclude | None = None
    """In place of ``run``, for a kind of proposal that has no run."""
    effect: Effect | None = None
    """In place of ``run``, in the transaction that stores the answer."""
    title: Title | None = None
    begins: Begins | None = None
    key: Key | None = None
    """The arguments that similar calls share, for grants. None: a grant covers exact calls or all calls."""
    offered: bool = True
    """False: it is never offered to a model; parts of Nod may propose it."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values that ``validate`` fills in."""
    names: Mapping[str, Referent] = field(default_factory=dict)
    """The kind of thing that an argument names (a path, an address …), by argument."""
    resolve_links: Callable[[Arguments], Arguments] | None = None
    """Returns the arguments that have paths with links on them, with the links resolved; else empty."""
    kind: ProposalKind = kinds.CALL
    """The kind of proposal that its calls become."""
    touches: Callable[..., str] | None = None
    """Returns the name of the resource that a call changes; empty if it shares none with other calls."""
    destructive: bool = False
    """True: no call of it can be undone, so no rule may call it reading."""
    validates_in_thread: bool = False
    """True: ``validate`` waits for a child process, so it is called in a thread."""
    open_world: bool | None = None
    """True: it reaches servers outside; None: not stated."""
    trying: TrialFunctions | None = None
    """The functions that try its calls before people decide. None: they are not tried."""
    settle: Settle | None = None
    current: Current | None = None
    """Reads the values after the run. None: ``preview`` reads them, as its old values."""
    undo: Undo | None = None
    only_for_undo: bool = False
    """True: it is proposed only to undo a call of another tool."""
    zone_argument: str = ""
    """The argument that names a time zone; the requester's zone is its default."""
    unattended: bool = True
    """False: it is not offered to a run that a schedule began."""
    batch: str = ""
    """Tools with the same name here share a batch; empty: a batch has only this tool's calls."""
    connection: Connection | None = None
    """The account under which it runs; None: Nod's."""
    provider: str = ""
    """The provider under whose accounts its calls are made (``account_tools.py``); empty if it needs none."""
    spec: ToolSpec = field(init=False, repr=False, compare=False)
    """The tool as the model sees it."""

    def __post_init__(self) -> None:
        """Bind the `_LOOKS`.

        Raises TypeError unless the tool fits its kind of proposal: a kind that runs needs ``run`` and no
        ``conclude``, any other kind ``conclude`` and no ``run``.
        """
        has_run = self.run is not None
        concludes = self.conclude is not None
        if self.kind.runs and (not has_run or concludes):
            raise TypeError(f"tool {self.name}: one of kind {self.kind} has a run")
        if not self.kind.runs and (has_run or not concludes):
            raise TypeError(f"tool {self.name}: one of kind {self.kind} has to conclude, and no run")
        for name, look in _bind_looks(self, _LOOKS).items():
            object.__setattr__(self, name, look)
        object.__setattr__(self, "spec", _make_spec(self))

    def in_context(self, context: CallContext) -> "Tool":
        """Return the tool for one person in one conversation: its callables get this context."""
        changes: dict[str, Any] = dict(_bind_looks(self, _LOOKS, context))
        if self.trying is not None:
            trial_changes: dict[str, Any] = dict(_bind_looks(self.trying, _TRIAL_LOOKS, context))
            if trial_changes:
                changes["trying"] = replace(self.trying, **trial_changes)
        if changes:
            return replace(self, **changes)
        return self

    @property
    def identity(self) -> Identity:
        """The account under which its calls are made."""
        return self.connection.identity if self.connection else Identity.NOD

    @property
    def is_personal(self) -> bool:
        return self.identity is Identity.PERSON

    def digest(self, arguments: Arguments) -> str:
        """Return the digest of a call of this tool."""
        return digest(self.name, self.version, arguments, self.connection)

    @property
    def harm(self) -> str:
        """The risk level, or "by its use" if that depends on the arguments."""
        try:
            return str(self.classify({}).level)
        except Exception:  # noqa: BLE001 - it needs arguments, and gets none here
            return "by its use"

    async def check_arguments(self, raw: Any, zone: tzinfo | None = None) -> dict[str, Any]:
        """Validate without blocking the loop. ``zone`` is the requester's. Raises BadArguments."""
        # ``raw`` is a dict here: callers with a zone have decoded it
        if zone and self.zone_argument and not raw.get(self.zone_argument):
            raw = raw | {self.zone_argument: str(zone)}
        if self.validates_in_thread:
            return await asyncio.to_thread(self.validate, raw)
        return self.validate(raw)

    async def is_same_call(self, stored: Arguments, arguments: Arguments) -> bool:
        """Tell if stored arguments equal these. An earlier release stored them without their defaults."""
        try:
            return canonical(await self.check_arguments(dict(stored))) == canonical(arguments)
        except BadArguments:
            return False

    async def likeness(self, arguments: Arguments) -> Likeness:
        """Return the properties by which a grant finds similar calls. The tool's own code may raise."""
        key = await self.key(arguments) if self.key else None
        beginning = await self.begins(arguments) if self.begins else NO_BEGINNING
        return Likeness(key, beginning)

    @property
    def may_run_side_by_side(self) -> bool:
        """True if calls need not wait for each other: they have no old values to compare before they run."""
        return self.touches is None and self.preview is None and self.trying is None

    async def name_touched(self, arguments: Arguments) -> str:
        """Return the name of the resource that a call changes: calls with the same name run one by one.

        Empty: the call runs side by side with others. The name is the first of these:

        - the result of ``touches``, if the tool has it;
        - empty if the tool has no preview, or its kind of proposal does not set `runs_one_by_one`;
        - the tool's name with the values of its ``key``, as the old values in a preview must not change
          during a run.
        """
        if self.touches is not None:
            return self.touches(arguments)
        if self.preview is None or not self.kind.runs_one_by_one:
            return ""
        key = await self.key(arguments) if self.key else None
        if key:
            return f"{self.name} {canonical(key)}"
        return self.name

    @property
    def form(self) -> Mapping[str, Any]:
        """The JSON schema for people: ``parameters`` with the defaults and the `names` of the arguments.

        Cards and edit forms are made from it, and rules read it. Models get ``parameters``.
        """
        if not (self.defaults or self.names):
            return self.parameters
        properties = dict(self.parameters.get("properties", {}))
        for name, value in self.defaults.items():
            properties[name] = {**properties.get(name, {}), "default": value}
        for name, referent in self.names.items():
            properties[name] = {**properties.get(name, {}), REFERENT_KEYWORD: str(referent)}
        return {**self.parameters, "properties": properties}

    def make_facts(
        self, arguments: Arguments, risk: Risk, place: Place, requester: Person, at: datetime
    ) -> CallFacts:
        """Return the facts by which rules judge a call, without running it.

        ``risk`` is the result of `classify`.
        """
        link_targets = self.resolve_links(arguments) if self.resolve_links else {}
        return CallFacts(
            self.name,
            risk,
            place,
            requester,
            at,
            self.kind,
            arguments,
            self.form,
            link_targets=link_targets,
            identity=self.identity,
        )

    async def preview_fields(self, arguments: Arguments) -> tuple[PreviewField, ...]:
        """Return the tool's own preview; without one, every argument is a new value."""
        if self.preview is not None:
            return tuple(await self.preview(arguments))
        return tuple(PreviewField(name, None, value) for name, value in list_values(self.form, arguments))


def _make_spec(tool: Tool) -> ToolSpec:
    """Return a tool as the model sees it.

    A tool that writes takes the agent's reason in addition, unless its calls only ask people a question.
    """
    if tool.reads or tool.kind.is_answer:
        return ToolSpec(tool.name, tool.description, tool.parameters, tool.strict)
    parameters = dict(tool.parameters)
    parameters["properties"] = {**parameters.get("properties", {}), REASON_PARAMETER: _REASON_SCHEMA}
    parameters["required"] = [*parameters.get("required", []), REASON_PARAMETER]
    description = f"{tool.description}{APPROVED_FIRST}"
    return ToolSpec(tool.name, description, parameters, tool.strict)


class Toolset(Protocol):
    """A source of tools. It is asked again for each turn, so its tools may come, go and change.

    ``tools`` may take a parameter annotated ``CallContext | None``, by which it learns for whom and where.
    """

    @property
    def name(self) -> str:
        """The name by which logs and messages call the source."""

    async def tools(self) -> Sequence[Tool]:
        """Return the tools that it has now."""


class ToolSource:
    """A toolset that gets a context with each request, if it takes contexts."""

    def __init__(self, toolset: Toolset) -> None:
        self.toolset = toolset
        self._parameter = find_parameter(toolset.tools, CallContext)

    async def list_tools(self, context: CallContext | None) -> Sequence[Tool]:
        if self._parameter:
            return await self.toolset.tools(**{self._parameter: context})
        return await self.toolset.tools()


@dataclass(frozen=True, slots=True)
class FixedToolset:
    """Implements `Toolset` with tools that never change."""

    name: str
    fixed: tuple[Tool, ...]

    async def tools(self) -> Sequence[Tool]:
        return self.fixed


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
        versioned_parts = canonical([name, description, parameters, signature.defaults, version])
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
            trying=_make_trial_functions(name, trial, apply, undo),
            current=current,
            undo=undo,
            batch=batch,
            names=_check_names(name, names or {}, parameters),
            provider=connection,
        )

    if function is None:
        return make_tool
    return make_tool(function)


def _bind_looks(
    owner: Any, names: Sequence[str], context: CallContext | None = None
) -> dict[str, _BoundFunction]:
    """Return by name the looks that take a `CallContext`, bound to ``context``.

    ``owner``: the tool, or its `TrialFunctions`. ``names``: of its looks. Without a ``context`` a look keeps
    the context to which it is bound, or gets an empty one.
    """
    looks: dict[str, _BoundFunction] = {}
    for name in names:
        look = getattr(owner, name)
        if isinstance(look, _BoundFunction):
            looks[name] = replace(look, context=context or look.context)
        elif callable(look):
            parameter = find_parameter(look, CallContext)
            if parameter:
                looks[name] = _BoundFunction(look, parameter, context or CallContext("", ""))
    return looks


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

"""The `Tool` value: its name, its arguments, its risk, its preview, its run.

A team's own tool is a typed async function under `@tool`. Other sources (an MCP server, the built-in issue
tracker) hand over the same `Tool` values through a `Toolset`. Nothing here decides whether a tool may run:
that is the gate, ``bot/approvals/gate.py``.
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
from bot.domain.outcomes import REASON
from bot.domain.people import Actor, Person
from bot.domain.proposals import Level, PreviewField, ProposalKind, Risk, canonical, digest
from bot.domain.rules import CallFacts, Place
from bot.domain.similarity import NO_BEGINNING, Beginning, Likeness
from bot.domain.spellings import KEYWORD, Referent
from bot.domain.text import storable
from bot.domain.trials import TriedFile
from bot.domain.value_text import summarize_arguments, summarize_value
from bot.errors import BadArguments, ToolError
from bot.tools.signature import Signature, find_parameter

Arguments = Mapping[str, Any]

_LOOKS = ("preview", "title", "key", "begins", "touches", "current", "undo", "settle")
_TRYING_LOOKS = ("trial", "unchanged", "current", "undo", "settle")
"""The callables that may take a `CallContext`, of a `Tool` and of `Trying`."""

APPROVED_FIRST = " (What it changes, people approve first, unless their rules let it run.)"
"""The end of the description of each tool that writes, as a model reads it."""

_REASON_SCHEMA = {
    "type": "string",
    "description": "Why you want this: one sentence for the person who decides. Empty if it only reads.",
}
_NAMED = 3  # of a list, in a title; of a longer one, the first


async def _no_one(words: str) -> None:
    """Report to no one."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a tool's call, passed to a parameter annotated ``CallContext``.

    Every callable of a tool that looks before or after a run may take it so, too (`preview`, `title`, `key`,
    `undo` and the others); so may `Toolset.tools`, which then says for whom and where it is asked. Both ids
    are empty where that is not known. ``idempotency_key`` is the same for every run of one proposal and empty
    for reads and looks. ``preview`` is what the card showed, so that a tool can check that nothing changed up
    to the moment it acts; empty for reads. ``progress`` tells people how far it is, such as ``await
    context.progress("3 of 10 files")``; it never raises, and what comes too often is left out. ``printed``
    does so with the last lines of its output. ``token`` is that of the connection of a tool that has one, for
    its run alone. ``connected_as``: whose connection a proposed call runs under, an account or an address.
    ``depth``: the number of calls of agents that led to it. ``agent``: the program that calls for
    that person, as `Agent.key`; empty for all others.
    """

    conversation_id: str
    requested_by: str
    idempotency_key: str = ""
    preview: tuple[PreviewField, ...] = ()
    progress: Callable[[str], Awaitable[None]] = field(default=_no_one, repr=False, compare=False)
    printed: Callable[[str], Awaitable[None]] = field(default=_no_one, repr=False, compare=False)
    token: str = field(default="", repr=False, compare=False)
    connected_as: str = ""
    depth: int = 0
    agent: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool: JSON data or text for the model, and a link to it if there is one.

    ``told`` is the output in one sentence for people, such as ``Created issue #1 “Printer is on fire”``;
    without it, people see the data. ``files`` are for people: the model does not see them. ``ended_badly`` is
    for what did run, but not to a good end ("Ended with code 3"): the card says that instead of "Done", and
    the model is told. ``kept`` is what ``undo=`` needs to know of what was there before; it is handed to that
    alone.
    """

    data: Any
    url: str | None = None
    files: tuple[File, ...] = ()
    told: str | None = None
    ended_badly: str | None = None
    kept: Any = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The answer as text. Never raises, for the tool has run: what is not JSON comes near to it."""
        if isinstance(self.data, str):
            return storable(self.data)
        try:
            plain = to_jsonable_python(self.data, bytes_mode="base64", fallback=str)
            return storable(json.dumps(plain, ensure_ascii=False))
        except (ValueError, RecursionError):  # it holds itself, or is nested too deep
            return "(an answer that can't be written as JSON)"


@dataclass(frozen=True, slots=True)
class TrialOutput:
    """The result of a trial: the changes of a call, and a ``token`` that `apply` takes to make exactly those.

    ``token`` is JSON data. ``exit`` and ``output`` are of a command that ran, ``cage`` names where. With
    ``refused``, the reason why it can't be applied, the call can only be run for real. ``final`` says why
    what it applies can't be undone.
    """

    changes: Sequence[PreviewField]
    token: Any = None
    output: str = ""
    exit: int | None = None
    files: tuple[TriedFile, ...] = ()
    cage: str = ""
    refused: str = ""
    final: str = ""


@dataclass(frozen=True, slots=True)
class Trying:
    """The functions by which a tool's calls are tried before people decide, and their trials applied.

    ``trial`` changes nothing; where it raises ToolError, the call was not tried, and the card says why.
    ``apply`` changes what the trial showed, or raises ToolError before it changes anything. ``unchanged``
    says if what a token was made from is still so; without it, the call is tried again and compared.
    ``settle`` says how an `apply` ended that was cut off, by its context's idempotency key: it returns what
    `apply` would have, raises ToolError where nothing was changed, and returns None where it can't say.
    ``current`` tells what the fields of these files are now, ``undo`` what undoes what was applied. While it
    is applied, nothing else of the name ``touches`` is changed.
    """

    trial: Callable[..., Awaitable[TrialOutput]]
    apply: Callable[[Arguments, Any, CallContext], Awaitable[ToolOutput]]
    unchanged: Callable[..., Awaitable[bool]] | None = None
    settle: Callable[..., Awaitable[ToolOutput | None]] | None = None
    current: Callable[..., Awaitable[Mapping[str, str | None]]] | None = None
    undo: "Undo | None" = None
    touches: str = ""

    def __post_init__(self) -> None:
        for name, look in _bind_looks(self, _TRYING_LOOKS).items():
            object.__setattr__(self, name, look)


@dataclass(frozen=True, slots=True)
class ContextualCall:
    """A callable of a tool that takes a `CallContext`, by the name ``parameter``, and its context."""

    function: Callable[..., Any]
    parameter: str
    context: CallContext = CallContext("", "")

    def __call__(self, *given: Any) -> Any:
        return self.function(*given, **{self.parameter: self.context})


def _bind_looks(
    part: Any, names: Sequence[str], context: CallContext | None = None
) -> dict[str, ContextualCall]:
    """Return those of the named callables that take a `CallContext`, with this one or their own."""
    looks: dict[str, ContextualCall] = {}
    for name in names:
        found = getattr(part, name)
        if isinstance(found, ContextualCall):
            looks[name] = replace(found, context=context or found.context)
        elif callable(found) and (parameter := find_parameter(found, CallContext)):
            looks[name] = ContextualCall(found, parameter, context or CallContext("", ""))
    return looks


Run = Callable[[Arguments, CallContext], Awaitable[ToolOutput]]
Conclude = Callable[[Arguments], ToolOutput]
Apply = Callable[[Arguments, Any, CallContext], Awaitable[Any]]
Preview = Callable[..., Awaitable[Sequence[PreviewField]]]
Title = Callable[..., Awaitable[str]]
Key = Callable[..., Awaitable[Mapping[str, Any]]]
"""The arguments, or what they resolve to (a real folder), by which two calls are of one kind."""


Current = Callable[..., Awaitable[Mapping[str, str | None]]]
"""What the fields of a preview are now, as text by field; None where nothing is there."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A call, for the tool's ``undo=``; ``output`` is None before people decide, and set once it has run."""

    arguments: Arguments
    preview: tuple[PreviewField, ...]
    output: ToolOutput | None = None

    @property
    def kept(self) -> Any:
        """The tool's own record of the state before, or None."""
        if self.output:
            return self.output.kept
        return None

    def old(self, name: str) -> str | None:
        """Return the old value of a field on the card; None for nothing, or no such field."""
        return next((each.old_value for each in self.preview if each.field == name), None)


@dataclass(frozen=True, slots=True)
class InverseCall:
    """The call that undoes another one."""

    tool_name: str
    arguments: Arguments


Undo = Callable[..., Awaitable[InverseCall | str]]
"""The inverse of a call, or the reason why it has none, in words for people."""


Settle = Callable[..., Awaitable[ToolOutput | None]]
"""How a run ended that was cut off, by its idempotency key: as ``settle`` of `Trying` without a token."""

Begins = Callable[..., Awaitable[Beginning]]


@dataclass(frozen=True, slots=True)
class Moment:
    """The context of an effect. ``call`` names the call, the same however often its turn is run."""

    conversation: Conversation
    asker: Actor
    call: str
    tools: frozenset[str]  # names of those in reach there, the team's own apart
    now: datetime


@dataclass(frozen=True, slots=True)
class Effected:
    """The result of an effect: a text for the model, and jobs to start."""

    text: str
    jobs: tuple[Job, ...] = ()


Check = Callable[[Session, CallContext, Arguments], object]
"""Raises ToolError, in words for the model, where a call that a person would decide can only fail."""


Function = Callable[..., Awaitable[Any] | Effected]
Effect = Callable[[Session, Moment, Arguments], Effected]
"""A change of Nod's own rows alone; raises ToolError before it changes any."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, ready to be offered, proposed and run.

    ``parameters`` is a JSON schema (object). ``validate`` takes decoded JSON and returns canonical arguments
    with defaults filled in, or raises BadArguments: what it returns is shown, recorded and run. ``classify``
    and ``summary`` take canonical arguments. ``timeout`` is in seconds. ``version`` changes whenever the
    meaning of the same arguments could have changed.
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
    run: Run | None  # None: of a kind that has no run, of which ``conclude`` says the end
    preview: Preview | None = None
    check: Check | None = None  # of what a model calls, before it is proposed
    conclude: Conclude | None = None  # the end of one that people approved and that has no run
    effect: Effect | None = None  # done in the transaction that stores the answer, instead of ``run``
    title: Title | None = None  # ``summary`` of what is proposed, where naming it takes a look
    begins: Begins | None = None  # the words it begins with, by which a grant may take calls for alike
    key: Key | None = None  # what "the same kind of call" means, for grants; None: only exact or any
    offered: bool = True  # False: it is never offered to a model; others may propose it
    defaults: Mapping[str, Any] = field(default_factory=dict)  # what ``validate`` fills in
    names: Mapping[str, Referent] = field(default_factory=dict)  # what the text in an argument names
    follow: Callable[[Arguments], Arguments] | None = None  # arguments that go through links, with their ends
    kind: ProposalKind = kinds.CALL  # what a proposal of it is
    touches: Callable[..., str] | None = None  # a name for what a call changes; "": nothing of note
    destructive: bool = False  # True: no call of it can be undone, so no rule may call it reading
    waits: bool = False  # ``validate`` waits for a child process, so it is called in a thread
    open_world: bool | None = None  # whether it reaches servers outside; None: it was not said
    trying: Trying | None = None  # how its calls are tried before people decide
    settle: Settle | None = None  # says how a run ended that was cut off
    current: Current | None = None  # reads again after the run; None: as far as ``preview`` shows old values
    undo: Undo | None = None
    undoes: bool = False  # True: it is proposed only to undo a call of another tool
    zoned: str = ""  # the argument that names a time zone: where it is not given, that of who asks
    unattended: bool = True  # False: it is not offered to a run that a schedule began
    batch: str = ""  # tools of one such name are shown in one batch; empty: its own calls are
    connection: Connection | None = None  # in whose name it runs; None: in Nod's
    acts_at: str = ""  # the provider at whose accounts its calls are made; empty: at none
    spec: ToolSpec = field(init=False, repr=False, compare=False)  # as the model sees it

    def __post_init__(self) -> None:
        """Raises TypeError where it has a run and its kind has none, or the other way round."""
        if self.kind.runs is (self.run is None) or self.kind.runs is (self.conclude is not None):
            needs = "a run" if self.kind.runs else "to conclude, and no run"
            raise TypeError(f"tool {self.name}: one of kind {self.kind} has {needs}")
        for name, look in _bind_looks(self, _LOOKS).items():
            object.__setattr__(self, name, look)
        object.__setattr__(self, "spec", _spec(self))

    def in_context(self, context: CallContext) -> "Tool":
        """Return the tool as it looks for one person in one conversation."""
        looks: dict[str, Any] = dict(_bind_looks(self, _LOOKS, context))
        tried = _bind_looks(self.trying, _TRYING_LOOKS, context) if self.trying else {}
        if self.trying and tried:
            changes: dict[str, Any] = dict(tried)
            looks["trying"] = replace(self.trying, **changes)
        if looks:
            return replace(self, **looks)
        return self

    @property
    def identity(self) -> Identity:
        """The account under which its calls are made."""
        return self.connection.identity if self.connection else Identity.NOD

    @property
    def is_personal(self) -> bool:
        return self.identity is Identity.PERSON

    def digest(self, arguments: Arguments) -> str:
        """Return the digest of a call of it."""
        return digest(self.name, self.version, arguments, self.connection)

    @property
    def harm(self) -> str:
        """The risk level, as far as it is known without arguments."""
        try:
            return str(self.classify({}).level)
        except Exception:  # noqa: BLE001 - it needs arguments, and has not got any
            return "by its use"

    async def check_arguments(self, raw: Any, zone: tzinfo | None = None) -> dict[str, Any]:
        """Validate without blocking the loop. ``zone`` is the requester's. Raises BadArguments."""
        if zone and self.zoned and not raw.get(self.zoned):
            raw = raw | {self.zoned: str(zone)}
        if self.waits:
            return await asyncio.to_thread(self.validate, raw)
        return self.validate(raw)

    async def is_same_call(self, stored: Arguments, arguments: Arguments) -> bool:
        """Tell if stored arguments equal these. An earlier release stored them without their defaults."""
        try:
            return canonical(await self.check_arguments(dict(stored))) == canonical(arguments)
        except BadArguments:
            return False

    async def likeness(self, arguments: Arguments) -> Likeness:
        """Return the keys by which a call is like others, for grants.

        Raises what the tool's own code raises.
        """
        key = await self.key(arguments) if self.key else None
        return Likeness(key, await self.begins(arguments) if self.begins else NO_BEGINNING)

    @property
    def changes_alone(self) -> bool:
        """True if a call has no old values to read again, and shares with no other what it changes."""
        return self.touches is None and self.preview is None and self.trying is None

    async def name_touched(self, arguments: Arguments) -> str:
        """Return a name for what a call changes: calls of one name run one after the other.

        Empty: side by side. Where the tool does not say, what its preview shows is taken to be the tool's
        own, by its key.
        """
        if self.touches is not None:
            return self.touches(arguments)
        if self.preview is None or not self.kind.is_locked:
            return ""
        key = await self.key(arguments) if self.key else None
        if key:
            return f"{self.name} {canonical(key)}"
        return self.name

    @property
    def form(self) -> Mapping[str, Any]:
        """``parameters`` with the defaults, and with what an argument names.

        Cards and edit forms are made from it, and rules read it.
        """
        if not (self.defaults or self.names):
            return self.parameters
        properties = dict(self.parameters.get("properties", {}))
        for name, value in self.defaults.items():
            properties[name] = {**properties.get(name, {}), "default": value}
        for name, referent in self.names.items():
            properties[name] = {**properties.get(name, {}), KEYWORD: str(referent)}
        return {**self.parameters, "properties": properties}

    def call(
        self, arguments: Arguments, risk: Risk, place: Place, requester: Person, at: datetime
    ) -> CallFacts:
        """Return the facts on a call for the rules; ``risk`` is the result of `classify`."""
        followed = self.follow(arguments) if self.follow else {}
        return CallFacts(
            self.name,
            risk,
            place,
            requester,
            at,
            self.kind,
            arguments,
            self.form,
            followed=followed,
            identity=self.identity,
        )

    async def preview_fields(self, arguments: Arguments) -> tuple[PreviewField, ...]:
        """Ask the tool's own preview; where it has none, every argument that runs is a new value."""
        if self.preview is not None:
            return tuple(await self.preview(arguments))
        return tuple(PreviewField(name, None, said) for name, said in list_values(self.form, arguments))


def _spec(tool: Tool) -> ToolSpec:
    """Return a tool as the model sees it; writes take the agent's reason in addition."""
    if tool.reads or tool.kind.is_answer:
        return ToolSpec(tool.name, tool.description, tool.parameters, tool.strict)
    parameters = dict(tool.parameters)
    parameters["properties"] = {**parameters.get("properties", {}), REASON: _REASON_SCHEMA}
    parameters["required"] = [*parameters.get("required", []), REASON]
    description = f"{tool.description}{APPROVED_FIRST}"
    return ToolSpec(tool.name, description, parameters, tool.strict)


class Toolset(Protocol):
    """A source of tools; asked again for each turn, so a source may come, go and change.

    ``tools`` may take a parameter annotated ``CallContext | None``: for whom and where it is asked, or None.
    """

    @property
    def name(self) -> str: ...

    async def tools(self) -> Sequence[Tool]: ...


class ToolSource:
    """A toolset, and the name by which it takes the context in which it is asked, if it takes one."""

    def __init__(self, toolset: Toolset) -> None:
        self.toolset = toolset
        self._parameter = find_parameter(toolset.tools, CallContext)

    async def list_tools(self, context: CallContext | None) -> Sequence[Tool]:
        """Return its tools, for whom and where the context says."""
        if self._parameter:
            return await self.toolset.tools(**{self._parameter: context})
        return await self.toolset.tools()


@dataclass(frozen=True, slots=True)
class FixedToolset:
    """Tools that are there from start to end."""

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
    """Make a `Tool` of a typed async function; bare (``@tool``), one that writes.

    The schema comes from the signature; descriptions from the docstring: its first paragraph for the tool,
    the lines ``name: text`` under ``Args:`` for the parameters. A parameter with a default is optional;
    null in it means "not given". A tool writes unless it says ``writes=False``. ``summary`` is a format
    string over the arguments (``"Close issue #{number}"``) or a function of them; ``title`` is the same for a
    card, where the object's own name has to be looked up. ``key`` names the arguments (or resolves them) by
    which two calls are of one kind, for "approve similar". ``touches`` names what a call changes, as a format
    string (``"issue {number}"``): between the last look at the old values and the
    end of the run no other call of that name runs, whichever tool it is of. Where it is not given, calls of
    a tool with a preview wait for each other, by its key; ``""`` lets them run side by side. ``open_world``
    says whether it reaches servers outside: an address that a reading call would send there is asked for,
    unless the requester wrote it. A team's own tool is taken to reach them unless it says False. ``trial``
    and ``apply`` go together, as in `Trying`. ``current`` tells what the fields of the preview are now; it is
    asked once after the run, and its card says where that is not what was approved. ``names`` says which
    arguments are a path, an address, a mail address or a name (``{"target": "path"}``), so that rules compare
    them as the tool uses them; of those it leaves out, rules go by their own names and are careful. ``undo``
    gives the call that undoes one, or the reason why none does. From three calls of one
    tool in one answer on, people see them as one table; tools with the same ``batch`` share theirs. Raises
    TypeError, where the tool is defined, for a parameter without an annotation, a function that is not async,
    or one of ``trial`` and ``apply`` without the other. A function that takes a `Moment` is an `Effect`, and
    is not async: it changes Nod's own rows alone. ``connection`` names the provider at whose accounts it
    runs, each person's or chat's own: its function finds the token in its `CallContext`, and what only looks
    (``preview`` and the like) has none, so such a tool takes none of them.
    """
    looks = (title, preview, key, begins, trial, apply, current, undo)
    if connection and any(callable(each) for each in looks):
        raise TypeError("a tool with a connection looks at nothing before it is approved")

    def make(function: Callable[..., Any]) -> Tool:
        name = function.__name__
        signature = Signature.of(function, CallContext, Session, Moment)
        effects = Moment in signature.own.values()
        if not (effects or inspect.iscoroutinefunction(function)):
            raise TypeError(f"tool {name} must be an async function")
        if Session in signature.own.values() and not effects:
            raise TypeError(f"tool {name} takes a Session, which only one with a Moment is given")
        description, parameters = signature.description, signature.schema

        async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
            if effects:
                raise ToolError("This is done where the answer is stored, not here.")
            # through the model once more, so that the function gets its own types (dates, enums)
            return _as_output(await function(**signature.make_call_arguments(arguments, context)))

        def effect(session: Session, moment: Moment, arguments: Arguments) -> Effected:
            done: Effected = function(**signature.make_call_arguments(arguments, session, moment))
            return done

        risk = _make_declared_risk(writes=writes, destructive=destructive)
        # a default is part of what arguments mean: a new one must not run under an old approval
        shape = canonical([name, description, parameters, signature.defaults, version])
        return Tool(
            name=name,
            description=description or name.replace("_", " "),
            parameters=parameters,
            strict=signature.strict,
            version=hashlib.sha256(shape.encode()).hexdigest()[:16],
            group=group,
            reads=not (writes or destructive or classify),
            idempotent=idempotent,
            timeout=timeout,
            validate=signature.validate,
            classify=classify or (lambda _: risk),
            summary=_summary(summary, name, signature.filled),
            run=run,
            effect=effect if effects else None,
            preview=preview,
            title=title,
            key=_key(key),
            begins=begins,
            touches=None if touches is None else _template(touches),
            defaults=signature.filled,
            destructive=destructive,
            open_world=open_world,
            trying=_trying(name, trial, apply, undo),
            current=current,
            undo=undo,
            batch=batch,
            names=_check_names(name, names or {}, parameters),
            acts_at=connection,
        )

    if function is None:
        return make
    return make(function)


def _check_names(
    name: str, names: Mapping[str, str], parameters: Mapping[str, Any]
) -> Mapping[str, Referent]:
    """Return them; raises TypeError for an unknown parameter, ValueError for a word of no `Referent`."""
    unknown = names.keys() - parameters["properties"].keys()
    if unknown:
        raise TypeError(f"tool {name} has no parameter {min(unknown)}")
    return {each: Referent(referent) for each, referent in names.items()}


def _as_output(answer: Any) -> ToolOutput:
    if isinstance(answer, ToolOutput):
        return answer
    return ToolOutput(answer)


def _trying(
    name: str,
    trial: Callable[..., Awaitable[TrialOutput]] | None,
    apply: Apply | None,
    undo: Undo | None,
) -> Trying | None:
    if trial is None and apply is None:
        return None
    if trial is None or apply is None:
        raise TypeError(f"tool {name}: trial and apply go together")

    async def applied(arguments: Arguments, token: Any, context: CallContext) -> ToolOutput:
        return _as_output(await apply(arguments, token, context))

    return Trying(trial, applied, undo=undo)


def _key(given: Sequence[str] | Key | None) -> Key | None:
    if given is None or callable(given):
        return given
    names = tuple(given)

    async def key(arguments: Arguments) -> Mapping[str, Any]:
        return {name: arguments.get(name) for name in names}

    return key


def _make_declared_risk(*, writes: bool, destructive: bool) -> Risk:
    if destructive:
        return Risk(Level.DESTRUCTIVE, "it cannot be undone")
    if writes:
        return Risk(Level.WRITE, "")  # the card shows what; there is no more to say
    return Risk(Level.READ, "it only reads")


def _summary(
    given: str | Callable[[Arguments], str] | None, name: str, defaults: Arguments
) -> Callable[[Arguments], str]:
    if callable(given):
        return given
    template = given

    def summary(arguments: Arguments) -> str:
        if template is None:
            inside = summarize_arguments(without_defaults(arguments, defaults))
            return f"{name.replace('_', ' ').capitalize()}" + (f": {inside}" if inside else "")
        return _Wording().vformat(template, (), _Blank(arguments))

    return summary


def _template(given: str) -> Callable[[Arguments], str]:
    return lambda arguments: given.format_map(_Blank(arguments))


class _Wording(string.Formatter):
    """Format strings for people: lists and objects in words."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Mapping):
            value = [f"{name}: {_brief(each)}" for name, each in value.items()]
        if not isinstance(value, list):
            return str(super().format_field(value, format_spec))
        first, more = value[:_NAMED], len(value) - 1
        if more >= _NAMED:
            return f"{_brief(first[0])} and {more} more"
        return ", ".join(map(_brief, first)) or "none"


def _brief(value: Any) -> str:
    return summarize_value(value) or "…"


class _Blank(dict[str, Any]):
    """Format-string fields that were not given read as nothing."""

    def __missing__(self, key: str) -> str:
        return ""

"""The `Tool` value: a tool's name, arguments, risk and run, and the functions that show people a call.

A team's own tool is a typed async function under `@tool` (``decorator.py``). Other sources (an MCP server,
the built-in issue tracker) hand over the same `Tool` values through a `Toolset` (``toolset.py``). Nothing
here decides whether a tool may run: that is the gate, ``bot/approvals/gate.py``. It calls the functions of a
`Tool` in this order:

- ``validate`` makes the arguments canonical, and ``classify`` judges the risk of the call.
- ``preview`` and ``title`` read what the card shows to the people who decide. ``key`` and ``begins`` read
  what similar calls have in common, for a grant, which lets such calls run unasked.
- ``touches`` names the resource that a call changes: calls with the same resource run one after the other.
- ``run`` runs the approved call. Afterwards ``current`` reads the changed values, and ``undo`` names the
  inverse call. ``settle`` tells how an interrupted run ended.

``preview``, ``title``, ``key``, ``begins``, ``touches``, ``current``, ``undo`` and ``settle`` only read. They
are called *looks* (``looks.py``), and may take a `CallContext` (``call.py``).

Three sorts of tools differ:

- A tool with `TrialFunctions` (``trial.py``) is tried before people decide. After the approval its trial is
  applied.
- A tool with an `Effect` (``effect.py``) only changes Nod's own rows, in the transaction that stores the
  model's answer.
- A tool whose kind of proposal runs nothing has ``conclude`` instead of ``run``. ``conclude`` returns the
  output of the approved proposal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

from sqlmodel import Session

from bot.domain import kinds
from bot.domain.call_facts import CallFacts, Place
from bot.domain.connections import Connection, Identity
from bot.domain.digests import make_digest, to_canonical_json
from bot.domain.forms import list_values
from bot.domain.model import ToolSpec
from bot.domain.outcomes import REASON_PARAMETER
from bot.domain.people import Person
from bot.domain.preview import PreviewField
from bot.domain.proposals import ProposalKind
from bot.domain.risks import Risk
from bot.domain.similarity import NO_BEGINNING, Likeness
from bot.domain.spellings import REFERENT_KEYWORD
from bot.domain.spellings.terms import Referent
from bot.errors import BadArguments
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.effect import Effect
from bot.tools.looks import Begins, Current, Key, Preview, Settle, Title, Undo, bind_looks
from bot.tools.trial import TrialFunctions

_LOOKS = ("preview", "title", "key", "begins", "touches", "current", "undo", "settle")
"""The names of the looks of a `Tool`."""

APPROVED_FIRST = " (What it changes, people approve first, unless their rules let it run.)"
"""The end of the description of each tool that writes, as a model reads it."""

_REASON_SCHEMA = {
    "type": "string",
    "description": "Why you want this: one sentence for the person who decides. Empty if it only reads.",
}

Run = Callable[[Arguments, CallContext], Awaitable[ToolOutput]]

Conclude = Callable[[Arguments], ToolOutput]
"""Returns the output of an approved proposal whose kind has no run."""

Check = Callable[[Session, CallContext, Arguments], object]
"""Raises ToolError, in words for the model, if a call can only fail: people are then not asked."""


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
    trial_functions: TrialFunctions | None = None
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
        for name, look in bind_looks(self, _LOOKS).items():
            object.__setattr__(self, name, look)
        object.__setattr__(self, "spec", _make_spec(self))

    def in_context(self, context: CallContext) -> "Tool":
        """Return the tool for one person in one conversation: its callables get this context."""
        changes: dict[str, Any] = dict(bind_looks(self, _LOOKS, context))
        if self.trial_functions is not None:
            trial_functions = self.trial_functions.in_context(context)
            if trial_functions is not self.trial_functions:
                changes["trial_functions"] = trial_functions
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

    def make_digest(self, arguments: Arguments) -> str:
        """Return the digest of a call of this tool."""
        return make_digest(self.name, self.version, arguments, self.connection)

    @property
    def risk_label(self) -> str:
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
            return to_canonical_json(await self.check_arguments(dict(stored))) == to_canonical_json(arguments)
        except BadArguments:
            return False

    async def find_likeness(self, arguments: Arguments) -> Likeness:
        """Return the properties by which a grant finds similar calls. The tool's own code may raise."""
        key = await self.key(arguments) if self.key else None
        beginning = await self.begins(arguments) if self.begins else NO_BEGINNING
        return Likeness(key, beginning)

    @property
    def may_run_side_by_side(self) -> bool:
        """True if calls need not wait for each other: they have no old values to compare before they run."""
        return self.touches is None and self.preview is None and self.trial_functions is None

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
            return f"{self.name} {to_canonical_json(key)}"
        return self.name

    @property
    def form_schema(self) -> Mapping[str, Any]:
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
            self.form_schema,
            link_targets=link_targets,
            identity=self.identity,
        )

    async def preview_fields(self, arguments: Arguments) -> tuple[PreviewField, ...]:
        """Return the tool's own preview; without one, every argument is a new value."""
        if self.preview is not None:
            return tuple(await self.preview(arguments))
        return tuple(
            PreviewField(name, None, value) for name, value in list_values(self.form_schema, arguments)
        )


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

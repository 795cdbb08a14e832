"""Agents' calls: what a program with a token may call, and a call of it judged like any other.

A call that only reads is answered immediately; any other becomes a proposal in the place of the agent.
What its tool says goes to that agent and its person alone (``bot/store/agent_calls.py``).
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.approvals import grants, lifecycle
from bot.approvals.arrive import TOKEN_ENDED_TEXT
from bot.approvals.gate import Gate, context_of_request
from bot.domain.agents import MAX_DEPTH, Agent
from bot.domain.chat import Address, Clock, Request
from bot.domain.files import File, choose_for_program
from bot.domain.jobs import Job, Wake
from bot.domain.outcomes import bound_text, for_model
from bot.domain.people import AGENTS, Actor
from bot.domain.proposals import Cause, Level, Proposal, Risk, State, canonical
from bot.domain.record import Act
from bot.domain.rules import Place
from bot.domain.text import as_written, hash_text
from bot.errors import Refused, TooMuch, UnknownTool
from bot.store import agent_calls, notices, tokens
from bot.store.audit.log import By
from bot.store.database import Database
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import CallContext, Tool

ALLOW = "allow_agent"
"""The tool whose proposal asks a person whether an agent may call tools for them."""
_NODS_OWN = frozenset(
    {
        "agents", "connections", "decisions", "memory", "outputs", "questions", "requests", "rules",
        "schedules", "team",
    }
)  # fmt: skip
"""The groups of tools that are Nod itself."""
MAX_LOOKS = 1200
"""The most times in a minute that one token asks how its calls stand, or for its tools: 20 a second."""
_MINUTE = timedelta(minutes=1)
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 2.0, 60.0
_LOOKS_A_SECOND = 10  # of all agents that keep to the pause they are given
_MAX_KNOWN_CALLS = 10_000  # of which their agents ask how they stand
_READS_TOGETHER = 4  # of one agent
_MAX_NAMED = 30  # tools in one message
_TOO_DEEP = "Calls led to calls {depth} times here, which is too deep. Nothing was done."
_TOO_OFTEN = "At most {most} calls a minute with one token. Nothing was done. Wait a minute, then call again."
_LOOKS_TOO_OFTEN = "One token asks at most {most} times a minute. Wait a minute, then ask again."
_TOO_MANY = "{most} calls of this token wait for a decision already. Nothing was done. Wait for some of them."
_TOKEN_ENDED = "its token has ended"  # noqa: S105 - words
_TOLD_NEW = "{agent} may call these new tools from now on: {names}. `nod token revoke {label}` ends that."


@dataclass(frozen=True, slots=True)
class CallStatus:
    """A call of an agent as it stands. ``end`` is *waiting*, *running*, or how it ended.

    ``id`` and ``proposal`` are empty of what only read. ``joined``: it is an earlier one, made again.
    ``files`` came with the tool's answer. ``pause``: the seconds after which to ask again, of an open one.
    """

    tool_name: str
    end: str
    text: str
    id: str = ""
    proposal: Proposal | None = None
    joined: bool = False
    files: tuple[File, ...] = ()
    pause: float = 0

    @property
    def is_open(self) -> bool:
        return self.end in ("waiting", "running")

    @property
    def is_error(self) -> bool:
        return not self.is_open and self.end != "succeeded"


@dataclass(eq=False)
class AgentCalls:
    """The calls of agents. ``most``: how many one agent may make within a minute."""

    database: Database
    gate: Gate
    clock: Clock
    wake: Wake
    most: int
    _calls: dict[str, deque[datetime]] = field(default_factory=dict, init=False)
    _looks: dict[str, deque[datetime]] = field(default_factory=dict, init=False)
    _open_looks: dict[str, datetime] = field(default_factory=dict, init=False)  # by call, the oldest first

    def __post_init__(self) -> None:
        self._reading: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._asked: set[tuple[str, ...]] = set()  # labels and servers that people were asked about

    async def find_agent(self, actor: Actor) -> Agent:
        """Return the agent that an account stands for. Raises Refused where it may call nothing now."""
        agent = await self.database.read(tokens.find_agent, actor, self.clock())
        if agent is None:
            raise Refused(TOKEN_ENDED_TEXT)
        return agent

    async def admit_agent(self, actor: Actor) -> Agent:
        """Return the agent that asks for something, and count that. Raises Refused or TooMuch."""
        agent = await self.find_agent(actor)
        self._count(self._calls, agent.label, self.most, _TOO_OFTEN)
        return agent

    def count_look(self, actor: Actor) -> None:
        """Count that an agent asks how things stand. Raises TooMuch for more than `MAX_LOOKS` a minute."""
        if actor.channel == AGENTS:
            self._count(self._looks, actor.key, MAX_LOOKS, _LOOKS_TOO_OFTEN)

    async def list_tools(self, actor: Actor) -> list[Tool]:
        """Return the tools that an agent may call, by name. Raises Refused where it has none, or TooMuch.

        Its person is told of those that came since before they are offered.
        """
        self.count_look(actor)
        agent = await self.find_agent(actor)
        await self._note_use(agent)
        return sorted(await self._list_tools(agent), key=lambda tool: tool.name)

    async def _list_tools(self, agent: Agent) -> list[Tool]:
        available = await load_available(self.gate.registry, agent.person)
        policy, person = await self.database.read(self.gate.policies.load_for, agent.person)
        place = Place(str(agent.address_of("")), private=False, home=str(agent.person))
        risk, now = Risk(Level.WRITE, ""), self.clock()
        found = [
            tool
            for tool in list_callable(available)
            if agent.matches(tool.name)
            and may_act(agent, tool)
            and not policy.forbidding(tool.call({}, risk, place, person, now), always=True)
        ]
        new = {tool.name for tool in found} - agent.known
        if new:
            await self.database.write(_tell_new, agent, new, now)
        await self._ask_about_servers(agent, available)
        return found

    async def _ask_about_servers(self, agent: Agent, available: AvailableTools) -> None:
        """Ask an agent's person about servers whose calls run as them by now, once for each."""
        named = [tool for tool in list_callable(available) if agent.matches(tool.name)]
        new = set(find_servers(named)) - set(agent.servers)
        asked = (agent.label, *sorted(new))
        if not new or asked in self._asked:
            return
        self._asked.add(asked)
        names = [tool.name for tool in named]
        request = make_consent(agent, names, sorted({*agent.servers, *new}), agent.person, agent.until)
        opened = await self.gate.open(request)
        await self.wake(*opened.jobs)

    async def make_call(
        self,
        actor: Actor,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        reason: str = "",
        key: str | None = None,
        depth: int = 0,
    ) -> CallStatus:
        """Make a call. ``key``: a second one with it is the first. ``depth``: how many calls led to it.

        Raises BadArguments, UnknownTool, Refused, KeyTaken, TooMuch, LostRace, or ToolError where it cannot
        be previewed.
        """
        agent = await self.admit_agent(actor)
        if depth >= MAX_DEPTH:
            raise Refused(_TOO_DEEP.format(depth=depth))
        tool = next((tool for tool in await self._list_tools(agent) if tool.name == tool_name), None)
        if tool is None:
            raise UnknownTool(f"This token has no tool called {tool_name!r}. GET /api/tools lists its tools.")
        await self._note_use(agent)
        call_id = secrets.token_hex(16)
        request = Request(
            agent.person,
            tool_name,
            arguments,
            agent.address_of(call_id),
            f"{agent.words} calls {tool_name}.",
            begin=call_id,
            event_id=f"{agent.label}/{key}" if key else None,
            reason=reason,
            agent=agent.key,
            servers=agent.servers,
            depth=depth,
        )
        tool = tool.in_context(context_of_request(request))
        checked = await tool.check_arguments(dict(arguments))
        room = self._reading.setdefault(agent.label, asyncio.Semaphore(_READS_TOGETHER))
        async with room:
            read = await self.gate.look(tool, checked, request)
        if read is not None:
            files, left_out = choose_for_program(read.files)
            text = "\n".join(part for part in (bound_text(read.text), left_out) if part)
            return CallStatus(tool_name, "succeeded" if read.ok else "failed", text, files=files)
        await self._check_room(agent, tool.digest(checked))
        opened = await self.gate.open(request)
        await self.wake(*opened.jobs)
        found = await self.database.read(agent_calls.find_call, opened.proposal.conversation_id)
        if found is None:
            return await self._tell(describe_call(opened.proposal, joined=opened.again))
        row, p = found
        status = describe_call(p, joined=opened.again, files=agent_calls.read_files(row))
        return await self._tell(status)

    async def _check_room(self, agent: Agent, call_digest: str) -> None:
        """Raise TooMuch where an agent has as many open calls as it may; its person has room of their own."""
        most = max(1, self.gate.bounds.open_by_person // 2)
        if await self.database.read(agent_calls.count_open, agent.key, most) < most:
            return
        now = self.clock()
        if await self.database.read(agent_calls.find_again, agent.key, call_digest, now) is None:
            raise TooMuch(_TOO_MANY.format(most=most))

    async def find_call(self, actor: Actor, call_id: str) -> CallStatus | None:
        """Return a call of this agent as it stands; None where it has no such call. An end counts as told."""
        found = await self.database.read(agent_calls.find_call, call_id)
        if found is None or f"{AGENTS}:{found[0].agent}" != str(actor):
            return None
        row, p = found
        status = describe_call(p, files=agent_calls.read_files(row))
        if row.told_at is not None:
            return status
        return await self._tell(status)

    async def _tell(self, status: CallStatus) -> CallStatus:
        if status.is_open and status.proposal is not None:
            return replace(status, pause=self._choose_pause(status.proposal, self.clock()))
        await self.database.write(agent_calls.mark_told, status.id, self.clock())
        return status

    def _choose_pause(self, p: Proposal, now: datetime) -> float:
        """Return the seconds after which an agent is to ask again how an open call of it stands.

        As long again as it has waited, and longer where many calls are asked for.
        """
        self._open_looks.pop(p.conversation_id, None)
        self._open_looks[p.conversation_id] = now
        while len(self._open_looks) > _MAX_KNOWN_CALLS or _is_old(next(iter(self._open_looks.values())), now):
            del self._open_looks[next(iter(self._open_looks))]
        return choose_pause((now - p.created_at).total_seconds(), len(self._open_looks))

    async def _note_use(self, agent: Agent) -> None:
        now = self.clock()
        if tokens.is_use_due(agent, now):
            await self.database.write(tokens.note_use, agent.label, now)

    def _count(self, counted: dict[str, deque[datetime]], of: str, most: int, refusal: str) -> None:
        """Count one more. Raises TooMuch for more than ``most`` within a minute."""
        now = self.clock()
        made = counted.setdefault(of, deque())
        while made and not now - _MINUTE < made[0] <= now:  # a clock that was set back forgets
            made.popleft()
        if len(made) >= most:
            raise TooMuch(refusal.format(most=most))
        made.append(now)


def choose_pause(waited_seconds: float, calls: int) -> float:
    """Return the seconds until a call is asked for again that has waited so long, one of so many."""
    pause = max(_SHORTEST_PAUSE_SECONDS, waited_seconds, calls / _LOOKS_A_SECOND)
    return min(_LONGEST_PAUSE_SECONDS, pause)


def _is_old(looked_at: datetime, now: datetime) -> bool:
    """Return whether a call was not asked for lately, or in a time that a clock set back has yet to reach."""
    return not now - 2 * _MINUTE < looked_at <= now


async def list_matching(registry: Registry, person: Actor, patterns: Collection[str]) -> list[Tool]:
    """Return the tools that patterns of names give a person's agent now."""
    available = await load_available(registry, person)
    return [
        tool
        for tool in list_callable(available)
        if any(fnmatchcase(tool.name, pattern) for pattern in patterns)
    ]


def make_consent(
    agent: Agent, names: Collection[str], servers: Sequence[str], made_by: Actor, until: datetime | None
) -> Request:
    """Return the request that asks an agent's person for their yes; asked again, it is the first one."""
    arguments = {
        "label": agent.label,
        "agent": agent.name,
        "patterns": list(agent.tools),
        "tools": sorted(names),
        "made_by": made_by.label,
        "servers": sorted(servers),
    }
    if until is not None:
        arguments["until"] = f"{until:%Y-%m-%d}"
    asked = hash_text(canonical([agent.label, sorted(servers)]))[:32]
    text = f"The program {as_written(agent.name)} asks to call tools for you."
    request = make_private_request(agent.person, text)
    return replace(request, tool_name=ALLOW, arguments=arguments, event_id=f"agent {asked}")


def make_private_request(person: Actor, text: str) -> Request:
    """Return a request of no tool yet that is shown to one person alone, in their chat or their console."""
    ident = secrets.token_hex(8)
    has_own_address = person.channel in notices.POSTLESS
    key = f"{person.key}/{ident}" if has_own_address else person.key
    begin = ident if has_own_address else None
    return Request(person, "", {}, Address(person.channel, key), text, private=True, begin=begin)


async def load_available(registry: Registry, person: Actor) -> AvailableTools:
    """Return the tools as they are there for a person outside of any conversation."""
    return await registry.available(CallContext("", str(person), connected_as=str(person)))


def list_callable(available: AvailableTools) -> list[Tool]:
    """Return the tools that an agent may be given: the team's, which work outside of a conversation.

    Those that are Nod itself tell of a person's cards, plans and memories, so they are no agent's.
    """
    return [
        tool
        for tool in available.offered
        if tool.effect is None
        and tool.run is not None
        and not (tool.kind.always_asks or tool.undoes or tool.group in _NODS_OWN)
    ]


def may_act(agent: Agent, tool: Tool) -> bool:
    """Return whether a tool acts in a name that the agent's person allowed."""
    connection = tool.connection
    return connection is None or (connection.is_personal and connection.server in agent.servers)


def find_servers(tools: Collection[Tool]) -> list[str]:
    """Return the servers at which these tools act as a person."""
    return sorted({t.connection.server for t in tools if t.connection and t.connection.is_personal})


def end_work(session: Session, ended: Collection[tokens.IssuedToken], now: datetime) -> tuple[Job, ...]:
    """End the grants for agents whose tokens have ended, and withdraw what they asked for.

    What was approved already runs: people wanted it.
    """
    jobs: list[Job] = []
    by = By.nod(Act.REVOKE, _TOKEN_ENDED)
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": _TOKEN_ENDED}
    for token in ended:
        agent = f"{token.name}/{token.label}"
        agent_calls.lock_calls(session, agent)  # a call that is being opened comes before this, or is refused
        grants.end_with_agent(session, agent, by, now)
        for p in agent_calls.list_open(session, agent) if token.is_agent else ():
            jobs += lifecycle.end(session, p, by, now, State.CANCELLED, "Nod", **changes)[1]
    return tuple(jobs)


def describe_call(p: Proposal, *, joined: bool = False, files: tuple[File, ...] = ()) -> CallStatus:
    """Return a call as its agent is told of it; the proposal has what the tool said."""
    end = name_end(p)
    return CallStatus(p.tool_name, end, _describe_end(p, end), p.conversation_id, p, joined, files)


def name_end(p: Proposal) -> str:
    """Return how a call stands, as one word for programs.

    *cancelled* is by the agent itself, *withdrawn* by people.
    """
    match p.state:
        case State.PROPOSED:
            return "waiting"
        case State.APPROVED | State.EXECUTING:
            return "running"
        case State.FAILED if p.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED):
            return "outcome_unknown"
        case State.CANCELLED if p.cause is Cause.UNDELIVERABLE:
            return "undeliverable"
        case State.CANCELLED:
            return "cancelled" if p.decided_from == AGENTS else "withdrawn"
        case _:
            return str(p.state)


def _describe_end(p: Proposal, end: str) -> str:
    if end != "succeeded" or p.ended_badly:
        return bound_text(for_model(p))
    edits = "".join(f"{each.told}.\n" for each in p.edits)
    return edits + bound_text(p.result or "Done.")


def _tell_new(session: Session, agent: Agent, names: Collection[str], now: datetime) -> None:
    """Tell an agent's person of tools that came since, in the transaction from which they count as told."""
    new = tokens.note_told(session, agent.label, names)
    if new:
        more = f" and {len(new) - _MAX_NAMED} more" if len(new) > _MAX_NAMED else ""
        listed = as_written(", ".join(new[:_MAX_NAMED])) + more
        words = _TOLD_NEW.format(agent=agent.name, names=listed, label=agent.label)
        notices.tell_privately(session, agent.person, words, now)

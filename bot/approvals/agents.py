"""Calls of agents, which are programs that call Nod's tools with a token of a person.

The person of the token is the agent's person: the agent acts for them, within the tools of the token. Each
call is judged by the rules like any other. A call that only reads is answered immediately. Any other call
becomes a proposal, and the agent asks for the state of the call from time to time (a *look*). The tool's
answer is shown only to the agent and its person; how it is kept from others is in
``bot/store/agent_calls.py``.

A token names the tools by patterns such as ``github_*``, and the servers at which tools may act in the
person's name. Its *label* is its name in the list of tokens. The agent's person *consents* by a proposal.

`AgentCalls` is the service behind the API and MCP. The functions below it are for tokens: which tools an
agent gets, the person's consent, and the end of its work.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.approvals import grants, lifecycle
from bot.approvals.gate import Gate, context_of_request
from bot.approvals.incoming import TOKEN_ENDED_TEXT
from bot.domain.agents import MAX_DEPTH, Agent
from bot.domain.audit import Act
from bot.domain.call_facts import Place
from bot.domain.chat import Address, Clock, Request
from bot.domain.conversations import CallResult
from bot.domain.digests import canonical
from bot.domain.files import File, choose_for_program
from bot.domain.jobs import Job, Wake
from bot.domain.outcomes import bound_text, for_model
from bot.domain.people import AGENTS, Actor
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.text import escape_markdown, hash_text
from bot.errors import CallRefused, KeyTaken, ToolError, TooManyCalls, UnknownTool
from bot.store import agent_calls, notices, tokens
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.tools.call import CallContext
from bot.tools.registry import AvailableTools, Registry
from bot.tools.tool import Tool

ALLOW = "allow_agent"
"""The tool whose proposal asks a person whether an agent may call tools for them."""
_GROUPS_OF_NOD = frozenset(
    {
        "agents", "connections", "decisions", "memory", "outputs", "questions", "requests", "rules",
        "schedules", "team",
    }
)  # fmt: skip
"""The groups of tools that are about Nod itself, which no agent gets."""
MAX_LOOKS = 1200
"""The most looks with one token in a minute, which is 20 a second. A listing of its tools counts as one."""
_MINUTE = timedelta(minutes=1)
_FORGET_AFTER = timedelta(minutes=2)  # the time after its last look for which an open call is remembered
_SHORTEST_PAUSE_SECONDS = 2.0  # between two looks at one call
_LONGEST_PAUSE_SECONDS = 60.0
_MAX_LOOKS_PER_SECOND = 10  # about the most looks of all agents together, if they keep to their pauses
_MAX_KNOWN_CALLS = 10_000  # the most open calls whose last look is remembered
_READS_TOGETHER = 4  # reads of one agent that run side by side
_MAX_NAMED = 30  # the most tools named in one message
_TOO_DEEP_TEXT = "Calls led to calls {depth} times here, which is too deep. Nothing was done."
_TOO_OFTEN_TEXT = (
    "At most {most} calls a minute with one token. Nothing was done. Wait a minute, then call again."
)
_LOOKS_TOO_OFTEN_TEXT = "One token asks at most {most} times a minute. Wait a minute, then ask again."
_TOO_MANY_TEXT = (
    "{most} calls of this token wait for a decision already. Nothing was done. Wait for some of them."
)
_TOKEN_ENDED_REASON = "its token has ended"  # noqa: S105 - a text
_NEW_TOOLS_TEXT = (
    "{agent} may call these new tools from now on: {names}. `nod token revoke {label}` ends that."
)

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class CallStatus:
    """The state of an agent's call, for the agent."""

    tool_name: str
    end: str  # "waiting", "running", or how the call ended: see `name_end`
    text: str  # the result, or the state in words
    id: str = ""  # the call's id; empty for a read, which has no proposal either
    proposal: Proposal | None = None
    joined: bool = False  # True if this is the state of an earlier call with the same key or arguments
    files: tuple[File, ...] = ()  # the files of the tool's answer
    pause: float = 0  # the seconds after which the agent is to ask again about an open call

    @property
    def is_open(self) -> bool:
        return self.end in ("waiting", "running")

    @property
    def is_error(self) -> bool:
        return not self.is_open and self.end != "succeeded"


@dataclass(eq=False)
class AgentCalls:
    """The service that takes agents' calls, and limits how many each agent may make."""

    database: Database
    gate: Gate
    clock: Clock
    wake: Wake
    most_per_minute: int  # the most calls of one agent

    def __post_init__(self) -> None:
        # the times within the last minute: of calls by the token's label, of looks by the agent's account
        self._call_times: dict[str, deque[datetime]] = {}
        self._look_times: dict[str, deque[datetime]] = {}
        # the time of the last look at each open call, by the id of the call, oldest first
        self._last_looks: dict[str, datetime] = {}
        # the free slots for reads that run side by side, by the label of the token
        self._read_slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        # the consents that were asked for, each as the label of the token and the servers
        self._asked_about: set[tuple[str, ...]] = set()

    async def find_agent(self, actor: Actor) -> Agent:
        """Return the agent behind an account. Raises CallRefused if its token has ended."""
        agent = await self.database.read(tokens.find_agent, actor, self.clock())
        if agent is None:
            raise CallRefused(TOKEN_ENDED_TEXT)
        return agent

    async def admit_agent(self, actor: Actor) -> Agent:
        """Return the agent behind an account, and count a call of the agent.

        Raises CallRefused if its token has ended, TooManyCalls for more calls than are allowed within a
        minute.
        """
        agent = await self.find_agent(actor)
        self._count(self._call_times, agent.label, self.most_per_minute, _TOO_OFTEN_TEXT)
        return agent

    def count_look(self, actor: Actor) -> None:
        """Count a look of an agent; other accounts are not limited. Raises TooManyCalls above `MAX_LOOKS`."""
        if actor.channel == AGENTS:
            self._count(self._look_times, actor.key, MAX_LOOKS, _LOOKS_TOO_OFTEN_TEXT)

    async def list_tools(self, actor: Actor) -> list[Tool]:
        """Return the tools that an agent may call, sorted by name.

        The agent's person is told of tools that are new to the agent. Raises CallRefused if the token has
        ended, TooManyCalls if the agent has asked too often.
        """
        self.count_look(actor)
        agent = await self.find_agent(actor)
        await self._note_use(agent)
        return sorted(await self._choose_tools(agent), key=lambda tool: tool.name)

    async def _choose_tools(self, agent: Agent) -> list[Tool]:
        """Return the tools that an agent may call now.

        Its person is told of tools that are new to the agent, and asked for consent to new servers.
        """
        available = await load_available(self.gate.registry, agent.person)
        policy, person = await self.database.read(self.gate.policies.load_with_person, agent.person)
        place = Place(str(agent.address_of("")), private=False, home=str(agent.person))
        risk = Risk(Level.WRITE, "")
        now = self.clock()
        granted = [tool for tool in list_callable(available) if agent.matches(tool.name)]
        tools = []
        for tool in granted:
            if not may_use_connection(agent, tool):
                continue
            # a call without arguments stands for all calls of the tool; ``always``: count only rules that
            # forbid all of them
            any_call = tool.make_facts({}, risk, place, person, now)
            if not policy.find_call_objection(any_call, always=True):
                tools.append(tool)
        # ``shown_tools``: the tools of which the agent's person was told
        new_names = {tool.name for tool in tools} - agent.shown_tools
        if new_names:
            await self.database.write(_announce_new_tools, agent, new_names, now)
        await self._ask_about_servers(agent, granted)
        return tools

    async def _ask_about_servers(self, agent: Agent, granted: Collection[Tool]) -> None:
        """Ask an agent's person, once, for consent to tools that act in their name at a server.

        ``granted``: the tools of the token. If the question can't be asked now, as when too many of the
        person's proposals wait, the agent's next listing of tools tries again.
        """
        new_servers = set(find_servers(granted)) - set(agent.servers)
        question = (agent.label, *sorted(new_servers))
        if not new_servers or question in self._asked_about:
            return
        names = [tool.name for tool in granted]
        request = make_consent(agent, names, {*agent.servers, *new_servers}, agent.person, agent.until)
        try:
            opened = await self.gate.open(request)
            await self.wake(*opened.jobs)
        except KeyTaken:  # asked before the last start, when the token had other tools
            log.info("an agent's person was asked before", agent=agent.label)
        except ToolError as error:
            log.warning("an agent's person can't be asked", agent=agent.label, why=error.message)
            return
        self._asked_about.add(question)

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
        """Make a call: run it if it only reads, else open a proposal for it.

        ``key``: the agent's own name for the call; a second call with the same key joins the first.
        ``depth``: how many calls led to this one, each made by the tool of the one before.

        Raises BadArguments, UnknownTool, CallRefused, KeyTaken, TooManyCalls or LostRace, and ToolError if
        the call can't be previewed.
        """
        agent = await self.admit_agent(actor)
        if depth >= MAX_DEPTH:
            raise CallRefused(_TOO_DEEP_TEXT.format(depth=depth))
        tools = {tool.name: tool for tool in await self._choose_tools(agent)}
        tool = tools.get(tool_name)
        if tool is None:
            raise UnknownTool(f"This token has no tool called {tool_name!r}. GET /api/tools lists its tools.")
        await self._note_use(agent)
        call_id = secrets.token_hex(16)
        request = Request(
            actor=agent.person,
            tool_name=tool_name,
            arguments=arguments,
            address=agent.address_of(call_id),
            text=f"{agent.words} calls {tool_name}.",
            begin=call_id,  # the conversation of the call has the call's id
            event_id=f"{agent.label}/{key}" if key else None,
            reason=reason,
            agent=agent.key,
            servers=agent.servers,
            depth=depth,
        )
        tool = tool.in_context(context_of_request(request))
        checked = await tool.check_arguments(dict(arguments))
        slots = self._read_slots.setdefault(agent.label, asyncio.Semaphore(_READS_TOGETHER))
        async with slots:
            read_result = await self.gate.run_if_read(tool, checked, request)
        if read_result is not None:
            return _describe_read(tool_name, read_result)
        await self._check_open_calls(agent, tool.digest(checked))
        return await self._open_call(request)

    async def _open_call(self, request: Request) -> CallStatus:
        """Open a proposal for a call, or join the same earlier call, and return its state."""
        opened = await self.gate.open(request)
        await self.wake(*opened.jobs)
        proposal = opened.proposal
        files: tuple[File, ...] = ()
        stored = await self.database.read(agent_calls.find_call, proposal.conversation_id)
        if stored is not None:  # an earlier call may have ended: then the row has its tool's answer
            row, proposal = stored
            files = agent_calls.read_files(row)
        return await self._prepare_answer(describe_call(proposal, joined=opened.was_open_before, files=files))

    async def _check_open_calls(self, agent: Agent, call_digest: str) -> None:
        """Raise TooManyCalls if too many calls of an agent are open: half of what its person may have open.

        The other half is left to the person. A call that joins an earlier one is always accepted.
        """
        max_open = max(1, self.gate.bounds.open_by_person // 2)
        if await self.database.read(agent_calls.count_open, agent.key, max_open) < max_open:
            return
        now = self.clock()
        if await self.database.read(agent_calls.find_repeated, agent.key, call_digest, now) is None:
            raise TooManyCalls(_TOO_MANY_TEXT.format(most=max_open))

    async def find_call(self, actor: Actor, call_id: str) -> CallStatus | None:
        """Return the state of one of this agent's calls, or None if it has no such call.

        If the call has ended, it is noted that the agent was told.
        """
        stored = await self.database.read(agent_calls.find_call, call_id)
        if stored is None:
            return None
        row, proposal = stored
        if f"{AGENTS}:{row.agent}" != str(actor):
            return None
        status = describe_call(proposal, files=agent_calls.read_files(row))
        if row.told_at is not None:
            return status
        return await self._prepare_answer(status)

    async def _prepare_answer(self, status: CallStatus) -> CallStatus:
        """Return the status of a call as the agent gets it.

        An open call has the pause until the next look. If the call has ended, it is noted that the agent was
        told.
        """
        if status.is_open and status.proposal is not None:
            return replace(status, pause=self._choose_pause(status.proposal, self.clock()))
        await self.database.write(agent_calls.mark_told, status.id, self.clock())
        return status

    def _choose_pause(self, proposal: Proposal, now: datetime) -> float:
        """Note a look at an open call, and return the seconds after which the next look should come.

        Calls at which no agent has looked for long are forgotten.
        """
        self._last_looks.pop(proposal.conversation_id, None)  # so that it becomes the newest
        self._last_looks[proposal.conversation_id] = now
        while True:
            oldest_id, looked_at = next(iter(self._last_looks.items()))
            if len(self._last_looks) <= _MAX_KNOWN_CALLS and _is_within(_FORGET_AFTER, looked_at, now):
                break
            del self._last_looks[oldest_id]
        return choose_pause((now - proposal.created_at).total_seconds(), len(self._last_looks))

    async def _note_use(self, agent: Agent) -> None:
        """Store the time at which a token is used, unless it was stored lately."""
        now = self.clock()
        if tokens.is_use_due(agent, now):
            await self.database.write(tokens.note_use, agent.label, now)

    def _count(self, times_by_key: dict[str, deque[datetime]], key: str, most: int, refusal: str) -> None:
        """Count one more call or look, and note its time under its key.

        Raises TooManyCalls, with the text ``refusal``, for more than ``most`` within a minute.
        """
        now = self.clock()
        times = times_by_key.setdefault(key, deque())
        while times and not _is_within(_MINUTE, times[0], now):
            times.popleft()
        if len(times) >= most:
            raise TooManyCalls(refusal.format(most=most))
        times.append(now)


def choose_pause(waited_seconds: float, calls: int) -> float:
    """Return the seconds until the next look at an open call: as long as the call has waited, within limits.

    ``calls``: the number of open calls that agents look at. The more calls, the longer the pause.
    """
    pause = max(_SHORTEST_PAUSE_SECONDS, waited_seconds, calls / _MAX_LOOKS_PER_SECOND)
    return min(_LONGEST_PAUSE_SECONDS, pause)


def _is_within(period: timedelta, time: datetime, now: datetime) -> bool:
    """Tell if a time is within the last period. A time in the future is not: the clock was set back since."""
    return now - period < time <= now


async def list_matching(registry: Registry, person: Actor, patterns: Collection[str]) -> list[Tool]:
    """Return the tools that a person's agent gets by these patterns of names, such as ``github_*``."""
    available = await load_available(registry, person)
    return [
        tool
        for tool in list_callable(available)
        if any(fnmatchcase(tool.name, pattern) for pattern in patterns)
    ]


def make_consent(
    agent: Agent, names: Collection[str], servers: Collection[str], made_by: Actor, until: datetime | None
) -> Request:
    """Return the request that asks an agent's person to let the agent call tools for them.

    ``names``: of the tools. ``servers``: where the agent may then act in the person's name. ``made_by``: who
    made the token. ``until``: when the token ends. The request's event id depends on the agent and the
    servers alone, so the same question is asked only once.
    """
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
    question_id = hash_text(canonical([agent.label, sorted(servers)]))[:32]
    text = f"The program {escape_markdown(agent.name)} asks to call tools for you."
    request = make_private_request(agent.person, text)
    return replace(request, tool_name=ALLOW, arguments=arguments, event_id=f"agent {question_id}")


def make_private_request(person: Actor, text: str) -> Request:
    """Return a request that only one person sees; the caller adds its tool and arguments.

    In a chat, the request comes in the private conversation with that person. A channel that posts nothing,
    such as the console, has no such conversation, so the request begins a new conversation there.
    """
    key = person.key
    new_conversation_id = None
    if person.channel in notices.CHANNELS_WITHOUT_CHATS:
        new_conversation_id = secrets.token_hex(8)
        key = f"{person.key}/{new_conversation_id}"
    address = Address(person.channel, key)
    return Request(person, "", {}, address, text, private=True, begin=new_conversation_id)


async def load_available(registry: Registry, person: Actor) -> AvailableTools:
    """Return the tools that a person has outside of any conversation."""
    return await registry.load_tools(CallContext("", str(person), connected_as=str(person)))


def list_callable(available: AvailableTools) -> list[Tool]:
    """Return the tools among these that any agent may be given; its token and the rules then decide."""
    return [tool for tool in available.model_tools if _is_callable(tool)]


def _is_callable(tool: Tool) -> bool:
    if tool.effect is not None or tool.run is None:
        return False  # an effect changes only the conversation of the call, and an agent has none
    # not for agents: what asks people each time, what only undoes a change, and the tools about Nod itself
    return not (tool.kind.always_asks or tool.only_for_undo or tool.group in _GROUPS_OF_NOD)


def may_use_connection(agent: Agent, tool: Tool) -> bool:
    """Tell if an agent may call a tool, by the connection that the tool uses.

    True for a tool without a connection. Another tool must act in the name of the agent's person, at a server
    for which the person has consented.
    """
    connection = tool.connection
    if connection is None:
        return True
    return connection.is_personal and connection.server in agent.servers


def find_servers(tools: Collection[Tool]) -> list[str]:
    """Return the servers at which these tools act as a person."""
    connections = [tool.connection for tool in tools]
    return sorted({connection.server for connection in connections if connection and connection.is_personal})


def end_work_of_tokens(
    session: Session, ended: Collection[tokens.IssuedToken], now: datetime
) -> tuple[Job, ...]:
    """End the grants for agents whose tokens have ended, and withdraw their open proposals.

    Approved calls still run, since people wanted them. Returns the jobs that follow.
    """
    jobs: list[Job] = []
    author = Author.nod(Act.REVOKE, _TOKEN_ENDED_REASON)
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": _TOKEN_ENDED_REASON}
    for token in ended:
        agent_key = f"{token.name}/{token.label}"  # as in `Agent.key`
        # a call that is being opened now is either stored before this lock is taken, or refused after it
        agent_calls.lock_calls(session, agent_key)
        grants.end_with_agent(session, agent_key, author, now)
        if not token.is_agent:  # the token of a person or a script, with no calls of an agent
            continue
        for proposal in agent_calls.list_open(session, agent_key):
            _, end_jobs = lifecycle.end_proposal(
                session, proposal, author, now, State.CANCELLED, "Nod", **changes
            )
            jobs += end_jobs
    return tuple(jobs)


def _describe_read(tool_name: str, result: CallResult) -> CallStatus:
    files, left_out_text = choose_for_program(result.files)
    text = "\n".join(filter(None, (bound_text(result.text), left_out_text)))
    return CallStatus(tool_name, "succeeded" if result.ok else "failed", text, files=files)


def describe_call(proposal: Proposal, *, joined: bool = False, files: tuple[File, ...] = ()) -> CallStatus:
    """Return the state of a call by its proposal.

    ``proposal`` has the tool's answer, which rows of proposals don't have: see ``bot/store/agent_calls.py``.
    """
    end = name_end(proposal)
    return CallStatus(
        tool_name=proposal.tool_name,
        end=end,
        text=_describe_end(proposal, end),
        id=proposal.conversation_id,
        proposal=proposal,
        joined=joined,
        files=files,
    )


def name_end(proposal: Proposal) -> str:
    """Return the state of a call as one word for programs.

    A call is *cancelled* by the agent itself, and *withdrawn* by people.
    """
    match proposal.state:
        case State.PROPOSED:
            return "waiting"
        case State.APPROVED | State.EXECUTING:
            return "running"
        case State.FAILED if proposal.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED):
            return "outcome_unknown"
        case State.CANCELLED if proposal.cause is Cause.UNDELIVERABLE:
            return "undeliverable"
        case State.CANCELLED:
            return "cancelled" if proposal.decided_from == AGENTS else "withdrawn"
        case _:
            return str(proposal.state)


def _describe_end(proposal: Proposal, end: str) -> str:
    """Return the text on a call for the agent: the result, or the state in words. ``end``: see `name_end`."""
    if end != "succeeded" or proposal.ended_badly:
        return bound_text(for_model(proposal))
    edits = "".join(f"{edit.words_for_model}.\n" for edit in proposal.edits)
    return edits + bound_text(proposal.result or "Done.")


def _announce_new_tools(session: Session, agent: Agent, names: Collection[str], now: datetime) -> None:
    """Tell an agent's person of new tools, and note in the same transaction that they were told."""
    new_names = tokens.store_shown_tools(session, agent.label, names)
    if not new_names:
        return
    listed = escape_markdown(", ".join(new_names[:_MAX_NAMED]))
    if len(new_names) > _MAX_NAMED:
        listed += f" and {len(new_names) - _MAX_NAMED} more"
    text = _NEW_TOOLS_TEXT.format(agent=agent.name, names=listed, label=agent.label)
    notices.store_private_notice(session, agent.person, text, now)

"""Calls of agents, which are programs that call Nod's tools with a token of a person.

The person of the token is the agent's person: the agent acts for them, within the tools of the token. Each
call is judged by the rules like any other. A call that only reads is answered immediately. Any other call
becomes a proposal, and the agent asks for the state of the call from time to time (a *look*). The tool's
answer is shown only to the agent and its person; how it is kept from others is in
``bot/store/agent_calls.py``.

`AgentCalls` is the service behind the API and MCP. A token's *label* is its name in the list of tokens. Which
tools an agent gets is in ``agent_tools.py``, the consent of its person in ``agent_tokens.py``.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakValueDictionary

from sqlmodel import Session

from bot.approvals.agent_call_status import CallStatus, describe_call, describe_read
from bot.approvals.agent_tokens import make_consent_request
from bot.approvals.agent_tools import (
    find_servers,
    list_callable,
    load_available,
    may_use_connection,
)
from bot.approvals.gate import Gate
from bot.approvals.incoming import TOKEN_ENDED_TEXT
from bot.approvals.requests import RequestGate, context_of_request
from bot.domain.agents import MAX_DEPTH, Agent
from bot.domain.call_facts import Place
from bot.domain.chat import Clock, Request
from bot.domain.files import File
from bot.domain.jobs import Wake
from bot.domain.people import AGENTS, Actor
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.text import escape_markdown
from bot.errors import CallRefused, KeyTaken, ToolError, TooManyCalls, UnknownTool
from bot.store import agent_calls, notices, tokens
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.tools.tool import Tool

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
_NEW_TOOLS_TEXT = (
    "{agent} may call these new tools from now on: {names}. `nod token revoke {label}` ends that."
)

log = logger(__name__)


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
        request = make_consent_request(
            agent, names, {*agent.servers, *new_servers}, agent.person, agent.until
        )
        try:
            opened = await RequestGate(self.gate).open(request)
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
            text=f"{agent.description} calls {tool_name}.",
            new_conversation_id=call_id,  # the conversation of the call has the call's id
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
            read_result = await RequestGate(self.gate).run_if_read(tool, checked, request)
        if read_result is not None:
            return describe_read(tool_name, read_result)
        await self._check_open_calls(agent, tool.make_digest(checked))
        return await self._open_call(request)

    async def _open_call(self, request: Request) -> CallStatus:
        """Open a proposal for a call, or join the same earlier call, and return its state."""
        opened = await RequestGate(self.gate).open(request)
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

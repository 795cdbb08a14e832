"""Elicitation: an MCP server's question in the middle of a call, asked as a card where the call was made.

Each open question has a tool of its own, which no model is offered, and is a proposal of a call of that tool.
The call's arguments are the answer, and approving it sends them. So a question is edited, declined, expired
and recorded like any proposal. Only the person for whom the server's call is made can decide it. For a call
of an agent that is the agent's person, who is asked in private.

The server's call waits in the process that runs it. If the process ends, the question does as well. Other
processes know the tool, too, by broadcasts, so that a person can answer there; the waiting call reads the
answer from the proposal's row.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlmodel import Session

from bot.approvals import lifecycle
from bot.approvals.private_requests import make_private_request
from bot.domain import kinds
from bot.domain.chat import Clock, Inbox, Reply, Request
from bot.domain.digests import to_canonical_json
from bot.domain.jobs import Dispatcher, Peers
from bot.domain.people import AGENTS, Actor
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level, Risk
from bot.domain.text import as_text
from bot.errors import ToolError
from bot.store import conversations, messages, proposals, tokens
from bot.store.change_notifier import ChangeNotifier
from bot.store.database import Database
from bot.telemetry.logs import logger
from bot.tools.call import Arguments as GivenArguments
from bot.tools.call import CallContext, ToolOutput
from bot.tools.mcp.interface import Action, Elicited, Question
from bot.tools.mcp.schemas import ArgumentSchema, simplify_schema
from bot.tools.tool import Tool

log = logger(__name__)

PATIENCE = timedelta(minutes=5)
"""The time that a person has to answer, for which the server and its call wait."""

_MAX_FOREIGN_TOOLS = 1000  # the most questions of other processes that are remembered
_LOOK_SECONDS = 2.0  # the time after which the row is read again, in case no notification came


class _OpenQuestion(NamedTuple):
    """A question for whose answer a call in this process waits."""

    question: Question
    tool: Tool  # the tool that was made for the question


class Questions:
    """The service that asks people the questions of MCP servers.

    It implements `AskPerson` for the servers, and `Toolset` with a tool for each open question.
    """

    name = "questions"

    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        notifier: ChangeNotifier,
        clock: Clock,
        patience: timedelta = PATIENCE,
        peers: Peers | None = None,
    ) -> None:
        self._peers = peers  # the other processes at this database; None if there can be none
        if peers is not None:
            peers.on("question", self._note_asked_elsewhere)
            peers.on("question over", self._forget_elsewhere)
            peers.on_arrival(self._broadcast_all)
        self._database = database
        self._dispatcher = dispatcher
        self._notifier = notifier
        self._clock = clock
        self._patience = patience
        self._inbox: Inbox | None = None
        self._open: dict[str, _OpenQuestion] = {}  # by the tool's name
        # the tools of the questions that other processes ask, by name
        self._tools_elsewhere: dict[str, Tool] = {}
        self._cancelling: set[asyncio.Task[None]] = set()  # tasks that cancel unneeded questions

    def start(self, inbox: Inbox) -> None:
        """Allow questions from now on. ``inbox`` opens their proposals."""
        self._inbox = inbox

    async def end_waiting(self) -> None:
        """Tell every waiting call that no answer comes. Each can then end before this process does."""
        self._inbox = None
        self._notifier.notify(to_peers=False)

    async def stop(self) -> None:
        """Wait for questions that are being cancelled."""
        await asyncio.gather(*self._cancelling, return_exceptions=True)

    async def tools(self) -> Sequence[Tool]:
        """Return the tool of each open question, of all processes."""
        return [*(asked.tool for asked in self._open.values()), *self._tools_elsewhere.values()]

    async def ask(self, question: Question) -> Elicited:
        """Ask the person, and return their answer, which may be a decline or a cancel."""
        if self._inbox is None:
            return Elicited(Action.DECLINE)
        request_without_tool = await self._database.read(_address_question, question, self._clock())
        if request_without_tool is None:
            return Elicited(Action.DECLINE)
        name = f"question:{question.server}:{secrets.token_hex(4)}"
        # in a thread, since making it blocks
        tool = await asyncio.to_thread(self._make_tool, question, name, self._open)
        self._open[name] = _OpenQuestion(question, tool)
        self._broadcast("question", [name, asdict(question)])
        try:
            arguments = {"url": question.url} if question.url else _list_defaults(question.schema)
            request = replace(request_without_tool, tool_name=name, arguments=arguments, ttl=self._patience)
            return await self._open_and_wait(question, request, self._inbox)
        finally:
            del self._open[name]
            self._broadcast("question over", name)

    async def _open_and_wait(self, question: Question, request: Request, inbox: Inbox) -> Elicited:
        """Open the proposal of a question, and return the answer.

        If this process ends before the answer, or the server's call does, the proposal is cancelled.
        """
        opening = asyncio.ensure_future(inbox(request))
        try:
            reply = await asyncio.shield(opening)
            if not reply.proposals:
                log.warning("a server's question could not be asked", server=question.server, why=reply.text)
                return Elicited(Action.DECLINE)
            answer = await self._wait_for_answer(question, reply.proposals[0])
            if answer is None:
                self._cancel_later(opening)
            return answer or Elicited(Action.CANCEL)
        except BaseException:  # the server's call was cancelled, so its question is cancelled, too
            self._cancel_later(opening)
            raise

    def _broadcast(self, kind: str, body: Any) -> None:
        if self._peers is not None:
            self._peers.broadcast(kind, body)

    def _broadcast_all(self) -> None:
        """Tell a process that has just started of all open questions of this process."""
        for name, asked in self._open.items():
            self._broadcast("question", [name, asdict(asked.question)])

    def _note_asked_elsewhere(self, body: Any) -> None:
        """Make the tool of a question that another process asks. ``body``: its name and the question."""
        name = body[0]
        question = Question(**body[1])
        if name in self._tools_elsewhere:
            return
        self._tools_elsewhere[name] = self._make_tool(question, name, self._tools_elsewhere)
        while len(self._tools_elsewhere) > _MAX_FOREIGN_TOOLS:  # some ended without a broadcast that arrived
            oldest = next(iter(self._tools_elsewhere))
            del self._tools_elsewhere[oldest]

    def _forget_elsewhere(self, name: str) -> None:
        self._tools_elsewhere.pop(name, None)

    async def _wait_for_answer(self, question: Question, opened: Proposal) -> Elicited | None:
        """Return the answer; None if this process ends first."""
        while self._inbox is not None:
            generation = self._notifier.generation  # read before the row, so that no later change is missed
            proposal = await self._database.read(proposals.get, opened.id)
            if proposal is None:
                return Elicited(Action.CANCEL)
            if proposal.state is State.SUCCEEDED:
                return Elicited(Action.ACCEPT, {} if question.url else dict(proposal.arguments))
            if proposal.state is State.DECLINED:
                return Elicited(Action.DECLINE)
            if proposal.settled:
                return Elicited(Action.CANCEL)
            await self._notifier.wait(generation, _LOOK_SECONDS)
        return None

    def _make_tool(self, question: Question, name: str, open_names: Mapping[str, object]) -> Tool:
        """Return the tool of one question. It can run as long as its name is in ``open_names``.

        No server can have a tool of that name, since the name has a colon. This method blocks the caller.
        """
        checker = ArgumentSchema(question.schema or {"type": "object"})
        parameters = simplify_schema(question.schema or {})
        shape = to_canonical_json([question.server, question.message, question.schema, question.url])

        async def confirm_answer(_: GivenArguments, __: CallContext) -> ToolOutput:
            if name not in open_names:
                raise ToolError(f"{question.server} no longer waits for an answer.")
            return ToolOutput("answered")

        async def preview_answer(given: GivenArguments) -> Sequence[PreviewField]:
            if question.url:
                return [PreviewField("open this address", None, question.url)]
            fields = []
            for field_name in dict.fromkeys((*parameters["properties"], *given)):
                value = as_text(given[field_name]) if field_name in given else None
                fields.append(PreviewField(field_name, None, value))
            return fields

        return Tool(
            name=name,
            description=question.message,
            parameters=parameters,
            strict=False,
            version=hashlib.sha256(shape.encode()).hexdigest()[:16],
            group="questions",
            reads=False,
            idempotent=False,
            timeout=5.0,
            validate=checker.check,
            validates_in_thread=True,  # ``validate`` is called in a thread
            classify=lambda _: Risk(Level.WRITE, f"{question.server} asks it while it works for you"),
            summary=lambda _: f"{question.server} asks: {question.message}",
            run=confirm_answer,
            preview=preview_answer,
            offered=False,
            kind=kinds.FORM,
        )

    def _cancel_later(self, opening: asyncio.Future[Reply]) -> None:
        """Cancel a question for which no call waits any longer, as soon as it is opened."""

        async def cancel() -> None:
            try:
                opened = (await opening).proposals
            except Exception as error:  # noqa: BLE001 - after any error, nothing was opened
                log.warning("a question was not opened", why=type(error).__name__)
                return
            for proposal in opened:
                jobs = await self._database.write(lifecycle.cancel_question, proposal.id, self._clock())
                await self._dispatcher.wake(*jobs)

        task = asyncio.create_task(cancel())
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)


def _address_question(session: Session, question: Question, now: datetime) -> Request | None:
    """Return a request to the person who is asked, still without a tool; None if there is no one to ask.

    For a call of an agent, its person is asked in private, or no one if the agent's token has ended. If the
    call is made in a person's name where others read, the person is asked in private as well.
    """
    if question.agent:
        agent = tokens.find_agent(session, Actor(AGENTS, question.agent), now)
        if agent is None:
            return None
        text = f"{question.server} has a question in a call of {agent.description}."
        return make_private_request(agent.person, text)
    actor = Actor.parse(question.requested_by)
    conversation = conversations.get_conversation(session, question.conversation_id)
    if conversation is None:
        return None
    person = Actor(actor.channel, actor.key, messages.find_name(session, conversation.id, actor))
    if question.in_private:
        text = f"{question.server} has a question in a call that is made as you."
        return make_private_request(person, text)
    return Request(
        actor=person,
        tool_name="",  # the caller adds the tool and its arguments
        arguments={},
        address=conversation.address,
        text=f"{question.server} has a question.",
        private=conversation.private,
        conversation_id=conversation.id,
    )


def _list_defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default values in a form's schema: the answer if the person changes nothing."""
    defaults = {}
    for name, part in schema.get("properties", {}).items():
        if isinstance(part, dict) and "default" in part:
            defaults[name] = part["default"]
    return defaults

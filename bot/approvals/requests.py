"""The gate for requests: calls of programs and features, to which no call of the model led.

A request is one call. `RequestGate.open` opens a proposal for it, judged as any other, and
`RequestGate.run_if_read` runs it if it only reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlmodel import Session

from bot.approvals import incoming
from bot.approvals.address_risk import raise_risk_by_addresses
from bot.approvals.drafts import draft, limit_undo, preview_of, title_of
from bot.approvals.gate import Gate, find_undo_seconds
from bot.approvals.incoming import OpenedProposal
from bot.approvals.judged_calls import JudgedCall
from bot.approvals.ownership import require_owner
from bot.approvals.tool_code import as_tool_error, describe_and_log, run_tool
from bot.domain.call_facts import Place
from bot.domain.chat import Request
from bot.domain.conversations import Call, CallResult
from bot.domain.digests import make_digest
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import secrets_in
from bot.domain.similarity import Likeness
from bot.domain.verdicts import Judgement, Verdict
from bot.errors import CallRefused, KeyTaken, TooManyCalls
from bot.store import people, proposals
from bot.telemetry.logs import redact_in_logs
from bot.tools.call import CallContext
from bot.tools.tool import Tool

_NOT_AS_PERSON = (
    "At {server} this would run as {person}, who has not allowed that for this token. They are asked to."
)


@dataclass(frozen=True, slots=True)
class RequestGate:
    """The part of the gate that requests pass."""

    gate: Gate

    async def open(self, request: Request) -> OpenedProposal:
        """Open a proposal that no model call led to, judged as any other, and return it once committed.

        A request with the event's id of an earlier request repeats that: the earlier proposal is returned.

        Raises BadArguments, UnknownTool, CallRefused, KeyTaken, TooManyCalls, or ToolError if the call
        can't be previewed.
        """
        tool = (await self.gate.registry.load_tools(context_of_request(request))).get(request.tool_name)
        if tool.effect is not None or not tool.kind.may_be_requested:
            raise CallRefused(f"{tool.name} can't be asked for: Nod uses it by itself.")
        if tool.only_for_undo:
            raise CallRefused(f"{tool.name} only undoes a change. Press Undo on the card of that.")
        with as_tool_error(tool.name):
            arguments = dict(request.arguments)
            if not tool.kind.is_form:  # a form is opened empty, and checked when people have filled it in
                arguments = await tool.check_arguments(arguments)
        earlier = await self.gate.database.read(
            incoming.find_opened_before, request, tool.make_digest(arguments), self.gate.clock()
        )
        if earlier:
            await _check_same_call(earlier.proposal, tool, arguments)
            return earlier
        if await self.gate.database.read(self._has_max_open, request.actor):
            raise TooManyCalls(
                f"{self.gate.bounds.open_by_person:,} of your proposals wait for a decision already. "
                "Try again once some are decided."
            )
        proposal, likeness = await self._draft_request(tool, arguments, request)
        opened = await self.gate.database.write(
            incoming.open_request,
            self.gate.policies,
            request,
            proposal,
            likeness,
            self.gate.process,
            proposal.created_at,
        )
        if opened.was_open_before:  # the same request was opened by someone else since it was looked for
            await _check_same_call(opened.proposal, tool, arguments)
        return opened

    async def _draft_request(
        self, tool: Tool, arguments: Mapping[str, Any], request: Request
    ) -> tuple[Proposal, Likeness]:
        """Return the proposal for a request, and the likeness of its call. A call that can be tried is tried.

        Raises CallRefused, or ToolError if the call can't be previewed.
        """
        verdict = await self._judge_request(tool, arguments, request)
        undo_seconds = find_undo_seconds(verdict)
        with as_tool_error(tool.name):
            preview = await preview_of(tool, arguments)
            title = await title_of(tool, arguments)
            verdict = await limit_undo(tool, arguments, preview, verdict)
            likeness = await tool.find_likeness(arguments)
        await self.gate.keep_schema(tool)
        if request.ttl is not None:
            verdict = replace(verdict, ttl=min(request.ttl, verdict.ttl))
        proposal = draft(
            tool, arguments, preview, verdict, request.actor, request.reason, self.gate.clock(), title=title
        )
        proposal = replace(proposal, agent=request.agent)
        if tool.trial_functions and proposal.state is State.PROPOSED and not await self.gate.is_paused():
            judged = JudgedCall(
                Call("", tool.name, "{}", title),
                proposal=proposal,
                likeness=likeness,
                tool_to_try=tool,
                undo_seconds=undo_seconds,
            )
            tried = await self.gate.try_call(judged)
            proposal = tried.proposal or proposal
        return proposal, likeness

    async def _judge_request(self, tool: Tool, arguments: Mapping[str, Any], request: Request) -> Verdict:
        """Return the verdict of the rules on a request. Raises CallRefused if they forbid it."""
        connection = tool.connection
        if tool.is_personal and request.agent is None:
            raise CallRefused(f"{tool.name} runs as a person, so it is asked for in a conversation with Nod.")
        if connection and tool.is_personal and connection.server not in request.servers:
            raise CallRefused(_NOT_AS_PERSON.format(server=connection.server, person=request.actor.label))
        policy, person = await self.gate.groups.read_with_members(
            self.gate.policies.load_with_person, request.actor
        )
        # an agent's call counts as from the private chat of its person
        private_chat = str(request.actor) if request.agent else ""
        place = Place(str(request.address), request.private, private_chat)
        with as_tool_error(tool.name):
            facts = tool.make_facts(arguments, tool.classify(arguments), place, person, self.gate.clock())
            verdict = policy.judge(raise_risk_by_addresses(facts, tool, policy))
        if verdict.judgement is Judgement.REFUSE:
            raise CallRefused(verdict.rule_text)
        if verdict.risk.writes:
            return require_owner(verdict, connection)  # the person in whose name it runs is asked
        return verdict

    async def run_if_read(
        self, tool: Tool, arguments: Mapping[str, Any], request: Request
    ) -> CallResult | None:
        """Run a request that only reads, if the rules allow it without approval, and return its result.

        Returns None for a call that writes or needs approval. Raises CallRefused if the rules forbid it.
        """
        verdict = await self._judge_request(tool, arguments, request)
        if verdict.judgement is not Judgement.RUN or verdict.risk.writes:
            return None
        context = context_of_request(request)
        with redact_in_logs(secrets_in(arguments, tool.parameters)):
            try:
                output = await run_tool(tool, arguments, context)
                return CallResult(output.text, ok=True, files=output.files)
            except Exception as error:  # noqa: BLE001 - a tool's own code; the requester is told
                return CallResult(f"ERROR: {describe_and_log(error, tool.name)}", ok=False)

    def _has_max_open(self, session: Session, actor: Actor) -> bool:
        """Tell if as many proposals of a person are open as one person may have."""
        accounts = people.load_person(session, actor).accounts
        max_open = self.gate.bounds.open_by_person
        return proposals.count_waiting_of(session, accounts, max_open) >= max_open


async def _check_same_call(earlier: Proposal, tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise KeyTaken if the proposal that an earlier request with the same key opened is for another call.

    A difference that comes from an edit by people does not count.
    """
    if earlier.tool_name != tool.name:
        raise KeyTaken
    if earlier.edited_by is not None:
        return
    if earlier.digest == make_digest(tool.name, earlier.tool_version, arguments, earlier.connection):
        return
    if not await tool.is_same_call(earlier.arguments, arguments):
        raise KeyTaken


def context_of_request(request: Request) -> CallContext:
    """Return the context of a request's tool. An agent's tools use the connections of its person."""
    return CallContext(
        request.conversation_id or "",
        str(request.actor),
        connected_as=str(request.actor) if request.agent else "",
        depth=request.depth,
        agent=request.agent or "",
    )

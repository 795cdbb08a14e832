"""Tools about requests and decisions.

`request_tools` are what scripts and other agents ask people for; no model is offered them. Running one only
says that it was approved: who asked acts on it. They come in over HTTP (``bot/web/approvals.py``) and MCP.

`decision_tools` let the agent tell what waits and what was decided, never more than its asker may see: in a
private chat what they may decide or asked for anywhere, else only what was asked for in that conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlmodel import Session

from bot.approvals import rights
from bot.domain.people import Actor
from bot.domain.proposals import Kind, PreviewField, Proposal, State, together
from bot.domain.text import shown
from bot.store import conversations, people, proposals
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.signature import SEEN, Storable
from bot.tools.tool import CallContext, FixedToolset, tool

REQUEST = "request_approval"
PERMISSION = "permit_tool_use"

Summary = Annotated[
    Storable, StringConstraints(strip_whitespace=True), Field(min_length=1, max_length=300), SEEN
]
Details = Annotated[Storable, Field(max_length=20_000)]
Name = Annotated[Storable, Field(min_length=1, max_length=200)]
Fields = Annotated[dict[Name, Details], Field(max_length=50)]
Input = Annotated[dict[str, Any], Field(max_length=100)]  # each is a line of the card


def request_tools() -> FixedToolset:
    """`request_approval` and `permit_tool_use`."""

    async def asked(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        fields = [PreviewField(name, None, value) for name, value in arguments.get("fields", {}).items()]
        details = arguments.get("details")
        return [*fields, *([PreviewField("details", None, details)] if details else [])]

    @tool(summary="{summary}", preview=asked, idempotent=True, group="requests")
    async def request_approval(summary: Summary, details: Details = "", fields: Fields | None = None) -> str:
        """Ask people to approve what a script is about to do.

        Args:
            summary: what will be done, in one line
            details: more of it, as long as it must be
            fields: single facts, by name

        """
        del summary, details, fields  # they are for people; the script that asked acts
        return "approved"

    async def given(arguments: Mapping[str, Any]) -> Sequence[PreviewField]:
        # its own words head the card, so the tool's name must stand below them
        named = [PreviewField("tool", None, arguments["tool_name"])] if arguments.get("summary") else []
        values = arguments["input"].items()
        return [*named, *(PreviewField(name, None, shown(value, indent=2)) for name, value in values)]

    @tool(
        summary=_headed,
        preview=given,
        idempotent=True,
        group="requests",
    )
    async def permit_tool_use(
        tool_name: Name,
        input: Input,  # noqa: A002 - as coding agents call it
        tool_use_id: Name | None = None,
        summary: Summary | None = None,
    ) -> dict[str, Any]:
        """Ask people whether another agent may use one of its own tools.

        Args:
            tool_name: the agent's own name for the tool
            input: what it wants to give the tool
            tool_use_id: the agent's own id of the use
            summary: what that will do, in one line

        """
        del tool_name, tool_use_id, summary
        return {"behavior": "allow", "updatedInput": input}

    both = (request_approval, permit_tool_use)
    return FixedToolset("requests", tuple(replace(t, offered=False, kind=Kind.REQUEST) for t in both))


def _headed(arguments: Mapping[str, Any]) -> str:
    """What the agent says it will do; without that, what it wants to use, on what."""
    inputs = ", ".join(shown(value) for value in arguments["input"].values())
    return str(arguments.get("summary") or f"{arguments['tool_name']}: {inputs}".removesuffix(": "))


GROUP = "decisions"
_LOOKED_AT = 500  # of the newest proposals
_DECIDED = tuple(state for state in State if state is not State.PROPOSED)

Count = Annotated[int, Field(ge=1, le=50)]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A proposal with what its onlooker has to do with it."""

    proposal: Proposal
    asked: bool
    may_decide: bool
    voted: bool


def decision_tools(database: Database, policies: Policies) -> FixedToolset:
    """Reading tools over proposals; ``policies`` say who may decide."""

    @tool(writes=False, group=GROUP, summary="Look up what waits for a decision")
    async def proposals_waiting(context: CallContext, limit: Count = 20) -> dict[str, Any]:
        """List the proposals that wait for a decision and that this person may see, newest first.

        Args:
            limit: how many at most

        """
        seen = await database.read(_seen, context, [State.PROPOSED], policies)
        may = {s.proposal.id: s.may_decide for s in seen}
        told = [
            _summary(p, policies.held.book.zone)
            | {"you_may_decide": may[p.id]}
            | ({"more_of_its_batch": len(rest)} if rest else {})
            for p, *rest in together(s.proposal for s in seen)
        ]
        return _page(told, limit)

    @tool(writes=False, group=GROUP, summary="Look up recent decisions")
    async def my_decisions(context: CallContext, limit: Count = 20) -> dict[str, Any]:
        """List what this person decided, and what became of what they asked for, newest first.

        Args:
            limit: how many at most

        """
        seen = await database.read(_seen, context, _DECIDED, policies)
        told = [
            _summary(s.proposal, policies.held.book.zone)
            | {"state": s.proposal.state, "decided_by": s.proposal.decided_by, "you_voted": s.voted}
            for s in seen
            if s.voted or s.asked
        ]
        return _page(told, limit)

    return FixedToolset(GROUP, (proposals_waiting, my_decisions))


def _seen(session: Session, context: CallContext, states: Sequence[State], policies: Policies) -> list[_Seen]:
    """The newest proposals that the asker may see in this conversation."""
    actor = Actor.parse(context.requested_by)
    person = people.person_of(session, actor)
    here = conversations.get_conversation(session, context.conversation_id)
    found = [
        _Seen(
            p,
            asked=people.person_of(session, p.requester) == person,
            may_decide=rights.objection(session, policies, p, actor) is None,
            voted=any(person.id in voice for voice in people.voices(session, p)),
        )
        for p in proposals.in_states(session, states, _LOOKED_AT)
        if p.kind is not Kind.SUGGESTION
    ]
    if here is not None and here.private:
        return [s for s in found if s.asked or s.may_decide or s.voted]
    return [s for s in found if here is not None and s.proposal.conversation_id == here.id]


def _summary(p: Proposal, zone: tzinfo) -> dict[str, Any]:
    return {
        "id": p.id,
        "what": p.description,
        "asked_by": p.requester.label,
        "asked_at": _time(p.created_at, zone),
    } | ({"expires_at": _time(p.expires_at, zone)} if p.state is State.PROPOSED else {})


def _time(at: datetime, zone: tzinfo) -> str:
    return at.astimezone(zone).isoformat(timespec="minutes")


def _page(found: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    return {"proposals": found[:limit], "more": len(found) > limit}

"""Tools over decisions: the agent tells what waits and what was decided, never more than its asker may see.

In a private chat that is what they may decide or asked for anywhere, else only what was asked for there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from bot.approvals import rights
from bot.domain import kinds
from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State, together
from bot.store import conversations, people, proposals
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.tool import CallContext, FixedToolset, tool

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
    """Return the reading tools over proposals; ``policies`` say who may decide."""

    @tool(writes=False, group=GROUP, summary="Look up what waits for a decision")
    async def proposals_waiting(context: CallContext, limit: Count = 20) -> dict[str, Any]:
        """List the proposals that wait for a decision and that this person may see, newest first.

        Args:
            limit: how many at most

        """
        seen = await database.read(_list_visible, context, [State.PROPOSED], policies)
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
        seen = await database.read(_list_visible, context, _DECIDED, policies)
        told = [
            _summary(s.proposal, policies.held.book.zone)
            | {"state": s.proposal.state, "decided_by": s.proposal.decided_by, "you_voted": s.voted}
            for s in seen
            if s.voted or s.asked
        ]
        return _page(told, limit)

    return FixedToolset(GROUP, (proposals_waiting, my_decisions))


def _list_visible(
    session: Session, context: CallContext, states: Sequence[State], policies: Policies
) -> list[_Seen]:
    """Return the newest proposals that the asker may see in this conversation."""
    actor = Actor.parse(context.requested_by)
    person = people.person_of(session, actor)
    here = conversations.get_conversation(session, context.conversation_id)
    found = [
        _Seen(
            p,
            asked=people.person_of(session, p.requester) == person,
            may_decide=rights.find_objection(session, policies, p, actor) is None,
            voted=any(person.id in voice for voice in people.voices(session, p)),
        )
        for p in proposals.in_states(session, states, _LOOKED_AT)
        if p.kind is not kinds.SUGGESTION
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

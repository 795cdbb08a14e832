"""Tools with which the agent looks up proposals for a person: those that wait, and those that were decided.

In a private chat they return the proposals that the person asked for, may decide or voted on, of all places.
In a group they return only the proposals of that conversation, since others read along.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from bot.approvals import rights
from bot.domain import kinds
from bot.domain.batch_groups import group_by_card
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.store import conversations, people, proposals
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset

GROUP = "decisions"
_MAX_SCANNED = 500  # the newest proposals that are read, before those that the person may not see are dropped
_DECIDED = tuple(state for state in State if state is not State.PROPOSED)

Count = Annotated[int, Field(ge=1, le=50)]


@dataclass(frozen=True, slots=True)
class _Involvement:
    """A proposal, and how the person for whom the tool runs is involved in it."""

    proposal: Proposal
    asked: bool  # the person asked for it
    may_decide: bool
    voted: bool


def decision_tools(database: Database, policies: Policies) -> FixedToolset:
    """Return the two tools. ``policies``: the rules, which say who may decide."""

    @tool(writes=False, group=GROUP, summary="Look up what waits for a decision")
    async def proposals_waiting(context: CallContext, limit: Count = 20) -> dict[str, Any]:
        """List the proposals that wait for a decision and that this person may see, newest first.

        Args:
            limit: how many at most

        """
        involvements = await database.read(_list_visible, context, [State.PROPOSED], policies)
        may_decide = {involvement.proposal.id: involvement.may_decide for involvement in involvements}
        visible = (involvement.proposal for involvement in involvements)
        summaries = []
        for first, *others in group_by_card(visible):  # a batch is one entry
            summary = _summarize(first, policies.latest_policy.rulebook.zone)
            summary["you_may_decide"] = may_decide[first.id]
            if others:
                summary["more_of_its_batch"] = len(others)
            summaries.append(summary)
        return _cut_to(summaries, limit)

    @tool(writes=False, group=GROUP, summary="Look up recent decisions")
    async def my_decisions(context: CallContext, limit: Count = 20) -> dict[str, Any]:
        """List what this person decided, and what became of what they asked for, newest first.

        Args:
            limit: how many at most

        """
        summaries = []
        for involvement in await database.read(_list_visible, context, _DECIDED, policies):
            if involvement.voted or involvement.asked:
                proposal = involvement.proposal
                summary = _summarize(proposal, policies.latest_policy.rulebook.zone)
                summary |= {
                    "state": proposal.state,
                    "decided_by": proposal.decided_by,
                    "you_voted": involvement.voted,
                }
                summaries.append(summary)
        return _cut_to(summaries, limit)

    return FixedToolset(GROUP, (proposals_waiting, my_decisions))


def _list_visible(
    session: Session, context: CallContext, states: Sequence[State], policies: Policies
) -> list[_Involvement]:
    """Return the newest proposals in these states that the person may see in this conversation."""
    actor = Actor.parse(context.requested_by)
    person = people.load_person(session, actor)
    conversation = conversations.get_conversation(session, context.conversation_id)
    involvements = [
        _Involvement(
            proposal,
            asked=people.load_person(session, proposal.requester) == person,
            may_decide=rights.find_objection(session, policies, proposal, actor) is None,
            # for each vote, the ids of the person who pressed and of the person they stood in for
            voted=any(person.id in voter_ids for voter_ids in people.list_voters(session, proposal)),
        )
        for proposal in proposals.list_in_states(session, states, _MAX_SCANNED)
        if proposal.kind is not kinds.SUGGESTION  # a suggestion is about Nod's own rules
    ]
    if conversation is None:
        return []
    if conversation.private:
        return [entry for entry in involvements if entry.asked or entry.may_decide or entry.voted]
    return [entry for entry in involvements if entry.proposal.conversation_id == conversation.id]


def _summarize(proposal: Proposal, zone: tzinfo) -> dict[str, Any]:
    summary = {
        "id": proposal.id,
        "what": proposal.description,
        "asked_by": proposal.requester.label,
        "asked_at": _format_time(proposal.created_at, zone),
    }
    if proposal.state is State.PROPOSED:
        summary["expires_at"] = _format_time(proposal.expires_at, zone)
    return summary


def _format_time(at: datetime, zone: tzinfo) -> str:
    return at.astimezone(zone).isoformat(timespec="minutes")


def _cut_to(summaries: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return the result of a tool: the first summaries, and whether there are more."""
    return {"proposals": summaries[:limit], "more": len(summaries) > limit}

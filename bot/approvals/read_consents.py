"""Consent to reads in a person's name: who may see the data in an account that Nod uses for its owner.

Some tools use a person's own account at a server, by a connection that the person has set up. This person is
the owner. A read runs immediately for the owner's own request. In three cases it needs their consent: others
see the result in a chat; words of others may have led to it; a schedule or a teammate (an agent that another
agent started) reads by itself. Then the owner is asked by a proposal of kind ``reading``, called a reading
here. Earlier readings of a conversation are among its proposals, with the owner's decision.

A call that writes returns data, too. Its card says who sees the answer, so the owner allows that by their
press on the card. Without such a press or grant, only the owner gets the answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from bot.approvals import ownership
from bot.domain import kinds
from bot.domain.agents import describe_agent
from bot.domain.annotations import Annotation
from bot.domain.connections import CONSENT
from bot.domain.conversations import ANSWERABLE_ROLES, LineRole, Transcript
from bot.domain.kinds.readings import is_private_only
from bot.domain.proposal_states import APPROVED_STATES, Cause, State
from bot.domain.proposals import Proposal
from bot.domain.verbs import Verb
from bot.errors import CallRefused
from bot.store import conversations, proposals
from bot.store.tables.rules import GrantRow
from bot.tools.tool import Tool

_SEEN_BY_AGENT_TEXT = "What it answers goes to {agent}, and to no one else."
_ONLY_PRIVATE_TEXT = (
    "{owner} lets Nod read as them only in a private chat with Nod. Nothing was read. Say so."
)
_NOT_NOW_TEXT = "{owner} does not want Nod to read as them now. Nothing was read. Do not ask again."
_SHARED_TEXT = "Others read this conversation, so they learn what it finds."
_LED_BY_OTHERS_TEXT = "Words of others led to this read."
_SCHEDULE_TEXT = "A schedule of yours reads this by itself. Your answer counts for its next runs."
_TEAMMATE_TEXT = "A teammate reads this for you. Your answer counts for its task."
_SEEN_TEXT = "Anyone who sees this card also sees what {server} answers."


def find_missing_consent(tool: Tool, transcript: Transcript, accounts: frozenset[str]) -> str:
    """Return in words why the owner must be asked before a read runs; empty if it may run now.

    ``accounts``: all accounts of the owner. Raises CallRefused if the owner said no.
    """
    connection = tool.connection
    if connection is None or not connection.is_personal:
        return ""
    readings = [
        proposal
        for proposal in transcript.proposals.values()
        if proposal.kind is kinds.READING
        and proposal.connection
        and proposal.connection.key == connection.key
    ]
    _check_refusals(transcript, readings, connection.owner_label)

    # for a schedule or a teammate, the owner's consent counts for one tool, else for all reads
    allowed = [proposal for proposal in readings if _is_allowed(proposal)]
    allowed_for_tool = [proposal for proposal in allowed if proposal.tool_name == tool.name]
    if transcript.schedule is not None:
        is_allowed = any(proposal.schedule == transcript.schedule for proposal in allowed_for_tool)
        return "" if is_allowed else _SCHEDULE_TEXT
    if transcript.teammate is not None:
        return "" if allowed_for_tool else _TEAMMATE_TEXT
    last_influence = _find_last_influence(transcript, accounts)
    if last_influence is not None and not any(proposal.created_at >= last_influence for proposal in allowed):
        return _LED_BY_OTHERS_TEXT
    if not transcript.conversation.private and not allowed:
        return _SHARED_TEXT
    return ""


def _check_refusals(transcript: Transcript, readings: Sequence[Proposal], owner: str) -> None:
    """Raise CallRefused if the owner has refused such a read, and the refusal still counts.

    ``owner``: the owner's name.
    """
    if not transcript.conversation.private and any(map(is_private_only, readings)):
        raise CallRefused(_ONLY_PRIVATE_TEXT.format(owner=owner))
    # a refusal counts until the next request (``request_line_id``: the id of its line), or for all work of a
    # teammate
    since_id = 0 if transcript.teammate else transcript.request_line_id
    if any(proposal.state is State.DECLINED and proposal.message_id > since_id for proposal in readings):
        raise CallRefused(_NOT_NOW_TEXT.format(owner=owner))


def restore_reading_kind(tool: Tool, proposal: Proposal) -> Tool:
    """Return the tool with the kind ``reading``, if the proposal has this kind and its call only reads.

    For any other proposal, the tool is returned as it is.
    """
    if proposal.kind is not kinds.READING or tool.kind is not kinds.CALL:
        return tool
    if tool.classify(proposal.arguments).writes:
        return tool
    return replace(tool, kind=kinds.READING)


def warn_of_answer(session: Session, proposal: Proposal) -> Sequence[Annotation]:  # noqa: ARG001 - a hook
    """Return the remark on who sees the answer, for the card of a write in a person's name."""
    connection = proposal.connection
    if connection is None or not connection.is_personal or proposal.kind is kinds.READING:
        return ()
    if proposal.agent:
        agent = describe_agent(proposal.agent, proposal.requester)
        return (Annotation("", _SEEN_BY_AGENT_TEXT.format(agent=agent)),)
    return (Annotation("", _SEEN_TEXT.format(server=connection.server)),)


def hides_answer(session: Session, proposal: Proposal) -> bool:
    """Tell if a call's answer is for its owner alone, because the owner did not allow others to see it.

    The owner allows that in one of three ways:

    - by their own press on a card that says who sees the answer,
    - by their consent to a read in this conversation, or
    - by a grant that they gave with such a press in this place.

    If they answered a reading with *Only in private*, none of the three counts outside of their private chat.
    """
    if proposal.connection is None or not proposal.connection.is_personal or proposal.kind is kinds.READING:
        return False
    here = conversations.load_place(session, proposal.conversation_id)
    readings = [
        reading
        for reading in proposals.list_of_kind(session, proposal.conversation_id, kinds.READING)
        if reading.connection and reading.connection.key == proposal.connection.key
    ]
    if not here.private and any(map(is_private_only, readings)):
        return True
    if _was_warned(session, proposal) or any(map(_is_allowed, readings)):
        return False
    proposal_of_grant = _find_proposal_of_grant(session, proposal)
    if proposal_of_grant is None or not _was_warned(session, proposal_of_grant):
        return True
    place_of_grant = conversations.load_place(session, proposal_of_grant.conversation_id)
    return not here.private and place_of_grant.address != here.address


def _find_proposal_of_grant(session: Session, proposal: Proposal) -> Proposal | None:
    """Return the proposal on whose card the grant was given that approved ``proposal``, or None."""
    grant = session.get(GrantRow, proposal.grant_id) if proposal.grant_id is not None else None
    if grant is None:
        return None
    return proposals.get(session, grant.proposal_id)


def _was_warned(session: Session, proposal: Proposal) -> bool:
    """Tell if the owner approved a proposal whose card had the remark on who sees the answer."""
    if proposal.connection is None or ownership.lacks_owner(session, proposal):
        return False
    warning = _SEEN_TEXT.format(server=proposal.connection.server)
    # the remark is recognised by its text; the frozen annotations were on the card when it was posted
    return any(line.text == warning for line in proposal.frozen_annotations)


def _is_allowed(proposal: Proposal) -> bool:
    """Tell if the owner consented to the read of a reading, however the read ended."""
    if proposal.state not in APPROVED_STATES:
        return False
    return any(vote.verb in (Verb.APPROVE, CONSENT) for vote in proposal.votes)


def _find_last_influence(transcript: Transcript, accounts: frozenset[str]) -> datetime | None:
    """Return the last time since the owner's last message that words of others reached the model, or None.

    Such words are messages and notes, the reasons of votes, edits that the owner did not approve, and the
    reason of a withdrawal. They may have led the model to a read that the owner does not want. ``accounts``:
    all accounts of the owner.
    """
    own_lines = [
        line for line in transcript.lines if line.role is LineRole.USER and str(line.actor) in accounts
    ]
    last_own = own_lines[-1] if own_lines else None
    moments = []

    # messages and notes
    for line in transcript.lines:
        is_newer = last_own is None or line.id > last_own.id
        if is_newer and line.role in ANSWERABLE_ROLES and str(line.actor) not in accounts:
            moments.append(line.created_at)

    # what people wrote on cards
    since = last_own.created_at if last_own else transcript.conversation.created_at
    for proposal in transcript.proposals.values():
        reasons = [vote for vote in proposal.votes if vote.reason and str(vote.actor) not in accounts]
        moments += [vote.at for vote in reasons if vote.at >= since]
        has_unapproved_edit = bool(proposal.edits) and not _is_approved_by(proposal, accounts)
        is_withdrawn_with_words = proposal.cause is Cause.TAKEN_BACK and bool(proposal.decline_reason)
        if proposal.updated_at >= since and (has_unapproved_edit or is_withdrawn_with_words):
            moments.append(proposal.updated_at)
    return max(moments, default=None)


def _is_approved_by(proposal: Proposal, accounts: frozenset[str]) -> bool:
    return any(
        vote.verb in (Verb.APPROVE, CONSENT) and str(vote.actor) in accounts for vote in proposal.votes
    )

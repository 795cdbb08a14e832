"""Proposals that no model call led to: opened together with the notice above them, in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.approvals import arrive, grants
from bot.domain.chat import Request
from bot.domain.conversations import Call
from bot.domain.jobs import Job, Work
from bot.domain.proposals import Kind, Proposal, State
from bot.domain.record import Act
from bot.errors import LostRace
from bot.store import messages, proposals, transitions, webhooks
from bot.store.audit.log import By
from bot.store.rules import Policies


@dataclass(frozen=True, slots=True)
class Opened:
    """The proposal, and the work it made; ``again`` where the same event had opened it before."""

    proposal: Proposal
    jobs: tuple[Job, ...] = ()
    again: bool = False


def opened_before(session: Session, request: Request) -> Opened | None:
    """What an earlier request with the same event opened; None when there was none."""
    if request.event_id is None:
        return None
    message_id = messages.message_of_event(session, request.address.channel, request.event_id)
    found = proposals.of_message(session, message_id) if message_id is not None else []
    return Opened(found[0], again=True) if found else None


def open_request(
    session: Session,
    policies: Policies,
    request: Request,
    draft: Proposal,
    key: Mapping[str, Any] | None,
    process: str,
    now: datetime,
) -> Opened:
    """Store a drafted proposal and what people read above it. Raises LostRace for two at the same time.

    ``process``: the id of the one that waits for the answer, if it is a question.
    """
    if before := opened_before(session, request):
        return before
    call = Call(draft.call_id, draft.tool_name, "{}", draft.description)
    line = arrive.add_request(session, request, call, now)
    if line is None:
        raise LostRace
    placed = replace(draft, conversation_id=line.conversation_id, message_id=line.message_id)
    proposal = grants.use(session, policies, placed, key, now)
    transitions.insert_all(session, [proposal], By.nod(Act.PROPOSE, f"asked for by {request.actor}"))
    if proposal.kind is Kind.QUESTION:
        transitions.own(session, proposal.id, process)
    if request.callback_url is not None:
        webhooks.add(session, proposal.id, request.callback_url, now)
    jobs = [Job(Work.DELIVER, proposal.conversation_id)]
    if proposal.state is State.APPROVED:
        jobs.append(Job(Work.EXECUTE, proposal.id))
    return Opened(proposal, tuple(jobs))

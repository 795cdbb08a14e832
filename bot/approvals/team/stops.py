"""The stop of teammates before their work is done, with all that they have proposed and that has not run yet.

A teammate is stopped by a person or by its lead agent, and it fails if its turns can't continue. Each
function is part of one transaction, and returns the jobs that follow.
"""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.lifecycle import end_proposal
from bot.approvals.team import teammates
from bot.domain.audit import Act
from bot.domain.conversations import Conversation
from bot.domain.jobs import Job
from bot.domain.proposal_states import Cause, State
from bot.domain.teams import Teammate, TeammateState
from bot.store import teams, turns
from bot.store.audit.log import Author


def stop(
    session: Session,
    teammate: Teammate,
    author: Author,
    who: str,
    why: str,
    now: datetime,
    *,
    tell_lead: bool,
) -> tuple[Job, ...]:
    """End a teammate with its turn, its open proposals and its grants. Calls that already run continue.

    ``author``: the author for the audit log. ``who``: the name of the person or agent that stops it, for the
    cancelled cards. ``why``: the reason, for people and the lead agent. ``tell_lead``: tell the lead agent,
    if it did not stop the teammate itself. Does nothing if the teammate has ended.
    """
    if teammate.stored_state is not TeammateState.WORKING:
        return ()
    turns.stop_turn(session, teammate.id, now)
    jobs = teammates.finish(
        session, teammate.id, TeammateState.STOPPED, why, now, wake_lead=False, tell_lead=tell_lead
    )
    return (*jobs, *_withdraw_all(session, teammate, author, who, now))


def fail_teammate(session: Session, teammate_id: str, why: str, now: datetime) -> tuple[Job, ...]:
    """End a teammate that can't continue, and its open proposals. Does nothing if it already ended."""
    teammate = teams.get(session, teammate_id)
    if teammate is None or teammate.has_ended:
        return ()
    jobs = teammates.finish(session, teammate_id, TeammateState.FAILED, why, now)
    who = f"Nod, since {teammate.name} failed"
    return (*jobs, *_withdraw_all(session, teammate, Author.of_nod(Act.FAIL, why), who, now))


def _withdraw_all(
    session: Session, teammate: Teammate, author: Author, who: str, now: datetime
) -> tuple[Job, ...]:
    """Cancel the teammate's proposals that have not run yet."""
    jobs: list[Job] = []
    for proposal in teammate.waits_for:  # its proposals that have not ended
        if proposal.state in (State.PROPOSED, State.APPROVED):
            _, end_jobs = end_proposal(
                session, proposal, author, now, State.CANCELLED, who, cause=Cause.TAKEN_BACK
            )
            jobs += end_jobs
    return tuple(jobs)


def stop_all(
    session: Session, lead: Conversation, author: Author, who: str, why: str, now: datetime
) -> tuple[list[str], tuple[Job, ...]]:
    """Stop all teammates of a conversation. Return the ids of the teammates at work, and the jobs."""
    stopped_ids: list[str] = []
    jobs: list[Job] = []
    for teammate in teams.list_of_lead(session, lead.id):
        if teammate.stored_state is TeammateState.WORKING:
            stopped_ids.append(teammate.id)
            jobs += stop(session, teammate, author, who, why, now, tell_lead=True)
    return stopped_ids, tuple(jobs)

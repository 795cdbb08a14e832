"""The functions that apply a press to one proposal, one for each verb (`APPLY_BY_VERB`).

``bot/approvals/decide.py`` has authorised the press and checked that it fits the proposal. Votes have a
module of their own (``votes.py``), like undos and questions; the other verbs are applied here. Each function
records the change and returns the reply and the jobs that follow.
"""

import re
from collections.abc import Callable, Mapping

from sqlmodel import Session

from bot.approvals import agent_questions, card_questions, ownership, undo, votes
from bot.approvals.lifecycle import request_redraw
from bot.approvals.press_values import Contents, PressContext, PressOutcome, accept, refuse
from bot.approvals.team import teammates
from bot.domain.audit import Act
from bot.domain.chat import Answer, Reply
from bot.domain.deciders import Deciders
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor, Role
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, start_timers
from bot.domain.times import format_relative
from bot.domain.verbs import CHOICES, Verb
from bot.domain.verdicts import make_terms
from bot.store import people
from bot.store.connections import is_owner
from bot.store.hooks import hooks_of

_CLEARED_RUN = dict.fromkeys(("cause", "error", "result", "result_sentence", "ended_badly"))
"""The columns that a failed run has set, emptied for the next try."""
_CLEARED_DECISION = dict.fromkeys(("decided_by", "decided_from", "decided_at"))
"""The columns that a decision has set, emptied for the next decision."""


def reopen_expired(
    session: Session, context: PressContext, proposal: Proposal, current: Contents
) -> PressOutcome:
    """Open an expired proposal again with current values, instead of applying the press."""
    why, jobs = undo.reopen_inverse(session, context, proposal)  # if it undoes a change
    if why:
        return refuse(Answer.ALREADY, proposal, why)
    proposal = context.move(
        session,
        proposal,
        State.PROPOSED,
        Act.ASK_AGAIN,
        **make_terms(current.verdict, context.now),
        preview=current.preview,
        trial=current.trial,
        for_real=None,
        round=proposal.round + 1,
        votes=(),
        decided_at=None,
    )
    text = "It had expired, so nothing ran. Here it is again with current values."
    work = (request_redraw(session, proposal), *jobs, *teammates.resume_work(session, proposal))
    return PressOutcome(Reply(Answer.STALE, text, (proposal,)), work)


def _stop(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Note that the run should end. The process that runs the call reads this, and stores the outcome."""
    if proposal.cause is Cause.STOPPED:
        return refuse(Answer.ALREADY, proposal, "It is being stopped already.")
    error = f"{context.card_author} stopped it. What it did until then is unknown."
    proposal = context.move(session, proposal, cause=Cause.STOPPED, error=error)
    return accept(session, proposal, "Stopping it.")


def _retry(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Approve a failed proposal again, so that it runs once more."""
    if proposal.cause is Cause.TOOL_CHANGED:
        return refuse(Answer.STALE, proposal, "The tool has changed since. Please request it again.")
    if proposal.cause is Cause.REFUSED:
        return refuse(Answer.STALE, proposal, f"Trying again can't help. {proposal.error}")
    why, jobs = undo.reopen_inverse(session, context, proposal)  # if it undoes a change
    if why:
        return refuse(Answer.ALREADY, proposal, why)
    if proposal.connection and proposal.connection.is_personal and not is_owner(proposal, context.person):
        return _ask_owner_again(session, context, proposal, jobs)
    proposal = context.move(session, proposal, State.APPROVED, **_CLEARED_RUN, round=proposal.round + 1)
    team_jobs = teammates.resume_work(session, proposal)
    return accept(session, proposal, "Trying again.", Job(Work.EXECUTE, proposal.id), *jobs, *team_jobs)


def _ask_owner_again(
    session: Session, context: PressContext, proposal: Proposal, jobs: tuple[Job, ...]
) -> PressOutcome:
    """Open a failed proposal again, because someone retries it who is not its owner.

    The call runs in the owner's name, so the owner is asked. The press counts as a vote.
    """
    proposal = context.move(
        session,
        proposal,
        State.PROPOSED,
        **_CLEARED_RUN,
        **_CLEARED_DECISION,
        **start_timers(proposal.ttl, proposal.remind_every, context.now),
        round=proposal.round + 1,
        votes=(context.make_vote(Verb.APPROVE),),
    )
    team_jobs = teammates.resume_work(session, proposal)
    owner = ownership.name_owner(proposal)
    return accept(session, proposal, f"It runs as {owner}, so {owner} is asked again.", *jobs, *team_jobs)


def _withdraw(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": context.press.reason}
    proposal, jobs = context.end(session, proposal, State.CANCELLED, **changes)
    return PressOutcome(Reply(Answer.ACCEPTED, "Withdrawn.", (proposal,)), jobs)


def _expire(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    proposal, jobs = context.end(session, proposal, State.EXPIRED)
    return PressOutcome(Reply(Answer.ACCEPTED, "Expired.", (proposal,)), jobs)


def _extend(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Restart the timer of an open proposal."""
    now = context.now
    proposal = context.move(session, proposal, **start_timers(proposal.ttl, proposal.remind_every, now))
    return accept(session, proposal, f"It now expires {format_relative(proposal.expires_at, now)}.")


def _take_by_feature(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Hand a press to the features, in turn. The first feature that takes the press replies."""
    for take_press in hooks_of(session).take_press:
        text = take_press(session, proposal, context.press, context.person, context.now)
        if text:
            return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal,)))
    return refuse(Answer.INVALID, proposal, "That can't be done here.")


def _reassign(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Let the accounts and roles decide that the press's reason lists, and no one else.

    A rule that the requester may not decide (four eyes) stays: no admin can assign it away.
    """
    written = re.split(r"[,;\s]+", context.press.reason or "")
    words = [word for word in written if word and word != "and"]
    for word in words:
        if word not in ("requester", *Role) and not _is_account(word):
            text = (
                f"{word[:40]!r} is neither an account nor a role. "
                "Write requester, admin, approver or http:NAME."
            )
            return refuse(Answer.INVALID, proposal, text)
    deciders = Deciders(
        four_eyes=proposal.deciders.four_eyes,
        place=proposal.deciders.place,
        requester="requester" in words,
        roles=tuple(word for word in words if word in set(Role)),
        people=tuple(word for word in words if ":" in word),
    )
    requester = people.load_person(session, proposal.requester)
    why = context.policies.load(session).find_quorum_objection(deciders, requester, proposal.quorum)
    if why:
        return refuse(Answer.INVALID, proposal, f"Say who should decide: {why}.")
    proposal = context.move(session, proposal, deciders=deciders, votes=(), for_real=None)
    return accept(session, proposal, "Reassigned. Earlier votes were reset.")


def _is_account(word: str) -> bool:
    try:
        return str(Actor.parse(word)) == word
    except ValueError:
        return False


APPLY_BY_VERB: Mapping[Verb, Callable[[Session, PressContext, Proposal], PressOutcome]] = {
    Verb.APPROVE: votes.approve,
    Verb.DECLINE: votes.decline,
    Verb.EDIT: votes.edit_proposal,
    Verb.NEVER: votes.decline_for_good,
    Verb.SIMILAR: votes.approve_similar,
    Verb.APPROVE_STEPS: votes.approve_steps,
    Verb.REVISE: votes.revise,
    Verb.ASK: card_questions.ask_agent,
    Verb.STOP: _stop,
    Verb.RETRY: _retry,
    Verb.CANCEL: _withdraw,
    Verb.STOP_ALL: _withdraw,
    Verb.EXPIRE: _expire,
    Verb.EXTEND: _extend,
    Verb.REASSIGN: _reassign,
    Verb.MUTE: _take_by_feature,
    Verb.FOR_REAL: votes.approve,
    Verb.UNDO: undo.undo_proposal,
    **dict.fromkeys((Verb.ANSWER, *CHOICES), agent_questions.take_answer),
}
"""The function that applies each verb to one proposal."""

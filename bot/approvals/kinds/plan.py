"""A press on a teammate's plan: no one edits it, and the lead agent may have a say."""

from dataclasses import replace

from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.kinds import change
from bot.approvals.lifecycle import end, moved, redraw
from bot.approvals.team import plans
from bot.approvals.votes import Decided, Pressed, StepGrants, decline, gathered, let_run
from bot.domain.chat import Answer, Reply
from bot.domain.proposals import Cause, Proposal, State
from bot.domain.similarity import GrantAudience, GrantDuration
from bot.domain.verbs import Verb
from bot.store import transitions


def decide(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """What has been pressed, done."""
    match pressed.press.verb:
        case Verb.APPROVE:
            return _approve(session, pressed, p)
        case Verb.REVISE:
            return _revise(session, pressed, p)
        case Verb.DECLINE:
            return _reject(session, pressed, p)
        case Verb.APPROVE_STEPS:
            return _with_steps(session, pressed, p)
        case _:
            return change.decide(session, pressed, p)


def _approve(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    votes = gathered(session, pressed, p)
    if isinstance(votes, Decided):
        return votes
    if plans.lacks_lead(session, pressed.policies, p):
        # its turn first, then the plan, as its own review does
        asked = plans.ask_lead(session, p, pressed.now)
        p = moved(transitions.move(session, p, pressed.by, pressed.now, votes=votes))
        text = "Your approval counts. The lead agent must approve the plan as well."
        return Decided(Reply(Answer.ACCEPTED, text, (p,)), (redraw(session, p), *asked))
    who = f"{pressed.who} and {plans.LEAD.name}" if plans.reviewed(p) else pressed.who
    return let_run(session, pressed, p, votes, who, "Approved.")


def _reject(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    voted = decline(session, pressed, p)
    if not any(each.state is State.DECLINED for each in voted.reply.proposals):
        return voted
    text = f"Plan rejected. {plans.stopped(session, p)}".strip()
    return replace(voted, reply=replace(voted.reply, text=text))


def _revise(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """A plan goes back for changes: one word is enough, since nothing is lost by it."""
    feedback = (pressed.press.reason or "").strip()
    if not feedback:
        return Decided(Reply(Answer.INVALID, "Say what should change.", (p,), {"reason": "This is needed."}))
    pressed = replace(pressed, press=replace(pressed.press, reason=feedback))
    votes = (*p.votes, pressed.vote(Verb.REVISE))
    changes = {"cause": Cause.REVISE, "decline_reason": feedback, "votes": votes}
    p, jobs = end(session, p, pressed.by, pressed.now, State.DECLINED, pressed.who, **changes)
    text = plans.stopped(session, p) or f"{p.teammate} has been told and will revise the plan."
    return Decided(Reply(Answer.ACCEPTED, text, (p,)), jobs)


def _with_steps(session: Session, pressed: Pressed, p: Proposal) -> Decided:
    """Approve a plan and allow the tools its steps name while its teammate works; both or neither."""
    steps = pressed.prepared
    if p.quorum > 1:
        text = "Several people must approve this, so one person can't allow its steps. Approve the plan."
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if plans.lacks_lead(session, pressed.policies, p):
        text = (
            "The lead agent also has to approve this plan and hasn't yet. Approve the plan, "
            "or allow its steps once it has."
        )
        return Decided(Reply(Answer.REFUSED, text, (p,)))
    if not isinstance(steps, StepGrants):
        return Decided(Reply(Answer.INVALID, "The steps can't be allowed from here. Approve the plan.", (p,)))
    voted = _approve(session, pressed, p)
    approved = next((each for each in voted.reply.proposals if each.state is State.APPROVED), None)
    if voted.reply.answer is not Answer.ACCEPTED or approved is None:
        return voted
    giver = (pressed.press.actor, pressed.person)
    for scope, words in steps.grants:
        grants.give(
            session,
            approved,
            *giver,
            scope,
            words,
            GrantDuration.CONVERSATION,
            GrantAudience.HERE,
            pressed.now,
        )
    names = ", ".join(scope.tool_name for scope, _ in steps.grants)
    allowed = f"{p.teammate} may use {names} without asking until it ends" if names else "no step needs more"
    text = f"Plan approved: {allowed}. What can't be undone still asks."
    return replace(voted, reply=replace(voted.reply, text=text))

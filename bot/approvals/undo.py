"""Undo: a press on a change that was made proposes the call that reverts it.

That one passes the rules, the claim and the record as any other. The press approves it, too, where the change
still is as it was left and nothing is lost by it; else people are asked by a card of its own.
"""

from dataclasses import replace

from sqlmodel import Session

from bot.approvals import arrive, ownership, rights
from bot.approvals.lifecycle import redraw
from bot.approvals.pressing import Decided, PressContext, Undoing, refuse
from bot.domain.chat import Answer, Reply, Request
from bot.domain.conversations import Call
from bot.domain.jobs import Job, Work
from bot.domain.proposals import Level, Proposal, State
from bot.domain.record import Act
from bot.domain.verbs import Verb
from bot.errors import LostRace
from bot.store import conversations, proposals, transitions
from bot.store.connections import is_owner

_GONE = "What was there before is no longer kept, so this can't be undone."


def undo_proposal(session: Session, context: PressContext, p: Proposal) -> Decided:
    """Open the inverse of what was done, approved by this press where that is enough; once."""
    if p.undone_by is not None:
        if p.undone:
            done = f"Already undone by {p.undone}."
        else:
            done = "Undo was pressed already. See its own card."
        return refuse(Answer.ALREADY, p, done)
    if p.inverse is None or not p.inverse.tool_name:
        return refuse(
            Answer.INVALID, p, f"This can't be undone. {p.inverse.reason if p.inverse else ''}".strip()
        )
    if p.undo_until is None or p.undo_until <= context.now:
        return refuse(Answer.STALE, p, "The time to undo this is over.")
    undoing = context.prepared.undoing
    if undoing is None:
        return refuse(Answer.STALE, p, _GONE)
    inverse = replace(undoing.draft, conversation_id=p.conversation_id, undoes=p.id)
    why = _asks(session, context, undoing, inverse)
    if not why:
        vote = context.vote(Verb.APPROVE)
        inverse = replace(
            inverse,
            state=State.APPROVED,
            quorum=1,  # of those who may decide it, one is enough
            votes=(vote,),
            **context.decided,
        )
    together = context.prepared.together
    first = together.first if together else None
    if first:
        message_id = first.message_id
    else:
        message_id = _add_notice(session, context, p, inverse)
    inverse = replace(inverse, message_id=message_id)
    if together:
        inverse = replace(inverse, batch=first.id if first else inverse.id, position=together.position)
    (inverse,) = transitions.insert_all(session, [inverse], context.by)
    p = context.move(session, p, undone_by=inverse.id, undo_until=None)
    jobs = [redraw(session, p), Job(Work.DELIVER, p.conversation_id)]
    if why:
        return Decided(
            Reply(Answer.ACCEPTED, f"{why} It waits on a card of its own.", (p, inverse)), tuple(jobs)
        )
    text = f"Undoing it: {inverse.description}."
    if context.paused:
        text += " Everything is paused, so it runs after /approvals resume."
    return Decided(Reply(Answer.ACCEPTED, text, (p, inverse)), (*jobs, Job(Work.EXECUTE, inverse.id)))


def again(session: Session, context: PressContext, p: Proposal) -> tuple[str, tuple[Job, ...]]:
    """Make ``p`` the undo of its original again. Return an objection in words, or an empty text, and jobs."""
    original = proposals.get(session, p.undoes) if p.undoes else None
    if original is None or (original.undone_by == p.id and not original.undone):
        return "", ()
    if original.undone:
        return f"It was undone by {original.undone} since.", ()
    if original.undone_by:
        return "Undo was pressed again since. See its own card.", ()
    original = context.move(session, original, verb=Act.UNDO_AGAIN, undone_by=p.id, undo_until=None)
    return "", (redraw(session, original),)


def _asks(session: Session, context: PressContext, undoing: Undoing, inverse: Proposal) -> str:
    """Return why the inverse is asked for, in words; empty where this press is enough."""
    if inverse.risk.level is Level.DESTRUCTIVE:
        return "Undoing this can't be undone."
    if ownership.find_owner(session, inverse) and not is_owner(inverse, context.person):
        return f"Undoing runs as {ownership.name_owner(inverse)}, who is asked."
    if not undoing.as_left:
        return "Something changed since, so look at what undoing does now."
    if _may_not_decide(session, context, inverse):
        return "You may not decide what undoes this."
    return ""


def _may_not_decide(session: Session, context: PressContext, inverse: Proposal) -> bool:
    """Tell if the rules name others than who pressed, whose own yes is then not enough."""
    policy, press = context.policies.load(session), context.press
    person, at = context.person, press.address
    return rights.judge_press_by_role(session, policy, inverse, person, press.actor, at=at)[0] is not None


def _add_notice(session: Session, context: PressContext, p: Proposal, inverse: Proposal) -> int:
    """Add the line above the inverse's card, in the conversation of what it undoes, and return its id."""
    found = conversations.get_conversation(session, p.conversation_id)
    if found is None:
        raise LostRace
    actor, text = context.press.actor, f"Undo pressed by {context.who}: {p.description}"
    if context.prepared.together:
        text = f"Undo pressed by {context.who} for all of a batch."
    request = Request(actor, inverse.tool_name, {}, found.address, text, into=found.id)
    line = arrive.add_request(
        session, request, Call("", inverse.tool_name, "{}", inverse.description), context.now
    )
    if line is None:
        raise LostRace
    return line.message_id

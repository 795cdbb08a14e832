"""Undo: a press on a change that was made opens a proposal for the call that reverts it, its *inverse*.

The inverse was drafted when the change had been made (``after_run.py``). ``presses.py`` drafts it once more
with the values of now, before the press is decided here (`Undoing`). As a proposal it passes the rules, the
claim and the record as any other call. The press also approves it if nothing has changed since
(``is_unchanged``) and no data is lost. Otherwise the inverse gets a card, and people are asked.

The change (the *original*) names its inverse in ``undo_proposal_id``, and the inverse its original in
``undoes_proposal_id``. Once the inverse has run, ``undone_by_name`` is the name of the person who had
the change undone. A press may also undo all changes of a batch, one after the other. Their inverses then form
one batch below one notice.
"""

from dataclasses import replace
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import incoming, ownership, rights
from bot.approvals.lifecycle import request_redraw
from bot.approvals.press_values import PressContext, PressOutcome, Undoing, refuse
from bot.domain.audit import Act
from bot.domain.chat import Answer, Reply, Request
from bot.domain.conversations import Call
from bot.domain.jobs import Job, Work
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.risks import Level
from bot.domain.verbs import Verb
from bot.errors import LostRace
from bot.store import conversations, proposals, transitions
from bot.store.connections import is_owner

_GONE = "What was there before is no longer kept, so this can't be undone."


class Reopening(NamedTuple):
    """The answer to the question if an inverse may be opened or run once more."""

    objection: str = ""  # in words; empty if it may
    jobs: tuple[Job, ...] = ()


def undo_proposal(session: Session, context: PressContext, proposal: Proposal) -> PressOutcome:
    """Open the inverse of a change, unless it was opened before. ``proposal``: the change.

    This press also approves the inverse if no one else must be asked.
    """
    # the change must be one that can be undone, still and once
    if proposal.undone_by_name:
        return refuse(Answer.ALREADY, proposal, f"Already undone by {proposal.undone_by_name}.")
    if proposal.undo_proposal_id is not None:
        return refuse(Answer.ALREADY, proposal, "Undo was pressed already. See its own card.")
    if proposal.inverse is None:
        return refuse(Answer.INVALID, proposal, "This can't be undone.")
    if not proposal.inverse.tool_name:
        return refuse(Answer.INVALID, proposal, f"This can't be undone. {proposal.inverse.reason}".strip())
    if proposal.undo_until is None or proposal.undo_until <= context.now:
        return refuse(Answer.STALE, proposal, "The time to undo this is over.")
    undoing = context.prepared.undoing
    if undoing is None:
        return refuse(Answer.STALE, proposal, _GONE)

    # the decision: by this press, or later by people
    inverse = replace(undoing.draft, conversation_id=proposal.conversation_id, undoes_proposal_id=proposal.id)
    why_ask = _find_reason_to_ask(session, context, undoing, inverse)
    if not why_ask:  # the person who pressed is enough, whatever the quorum
        votes = (context.make_vote(Verb.APPROVE),)
        inverse = replace(inverse, state=State.APPROVED, quorum=1, votes=votes, **context.decision_columns)

    # the place of the inverse: below a notice, and among the inverses of the same press
    undo_position = context.prepared.undo_position  # set if the press undoes several changes
    first_inverse = undo_position.first_inverse if undo_position else None
    if first_inverse:
        message_id = first_inverse.message_id  # the inverses of one press share the notice
    else:
        message_id = _add_notice(session, context, proposal, inverse)
    inverse = replace(inverse, message_id=message_id)
    if undo_position:
        # a batch has the id of its first proposal
        batch_id = first_inverse.id if first_inverse else inverse.id
        inverse = replace(inverse, batch=batch_id, position=undo_position.position)
    [inverse] = transitions.insert_proposals(session, [inverse], context.log_author)
    proposal = context.move(session, proposal, undo_proposal_id=inverse.id, undo_until=None)
    jobs = [request_redraw(session, proposal), Job(Work.DELIVER, proposal.conversation_id)]
    if why_ask:
        text = f"{why_ask} It waits on a card of its own."
        return PressOutcome(Reply(Answer.ACCEPTED, text, (proposal, inverse)), tuple(jobs))
    text = f"Undoing it: {inverse.description}."
    if context.is_paused:
        text += " Everything is paused, so it runs after /approvals resume."
    return PressOutcome(
        Reply(Answer.ACCEPTED, text, (proposal, inverse)), (*jobs, Job(Work.EXECUTE, inverse.id))
    )


def reopen_inverse(session: Session, context: PressContext, proposal: Proposal) -> Reopening:
    """Link an inverse ``proposal``, which is opened or run once more, with its original again.

    For a ``proposal`` that undoes nothing, nothing is done, and there is no objection.
    """
    original = proposals.get(session, proposal.undoes_proposal_id) if proposal.undoes_proposal_id else None
    if original is None:
        return Reopening()
    if original.undone_by_name:
        return Reopening(f"It was undone by {original.undone_by_name} since.")
    if original.undo_proposal_id == proposal.id:
        return Reopening()
    if original.undo_proposal_id:
        return Reopening("Undo was pressed again since. See its own card.")
    original = context.move(
        session, original, verb=Act.UNDO_AGAIN, undo_proposal_id=proposal.id, undo_until=None
    )
    return Reopening(jobs=(request_redraw(session, original),))


def _find_reason_to_ask(session: Session, context: PressContext, undoing: Undoing, inverse: Proposal) -> str:
    """Return in words why people are asked about the inverse; empty if this press is enough."""
    if inverse.risk.level is Level.DESTRUCTIVE:
        return "Undoing this can't be undone."
    if ownership.find_owner(session, inverse) and not is_owner(inverse, context.person):
        return f"Undoing runs as {ownership.name_owner(inverse)}, who is asked."
    if not undoing.is_unchanged:
        return "Something changed since, so look at what undoing does now."
    if _may_not_decide(session, context, inverse):
        return "You may not decide what undoes this."
    return ""


def _may_not_decide(session: Session, context: PressContext, inverse: Proposal) -> bool:
    """Tell if the rules don't let this person decide the inverse."""
    policy = context.policies.load(session)
    press = context.press
    objection, _ = rights.judge_press_by_role(
        session, policy, inverse, context.person, press.actor, address=press.address
    )
    return objection is not None


def _add_notice(session: Session, context: PressContext, proposal: Proposal, inverse: Proposal) -> int:
    """Add a notice above the inverse's card in the conversation of the change, and return its id.

    The notice is a line that people read. It says who pressed Undo, and is stored as the line of a request.
    """
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    if conversation is None:
        raise LostRace
    if context.prepared.undo_position:
        text = f"Undo pressed by {context.card_author} for all of a batch."
    else:
        text = f"Undo pressed by {context.card_author}: {proposal.description}"
    actor = context.press.actor
    request = Request(
        actor, inverse.tool_name, {}, conversation.address, text, conversation_id=conversation.id
    )
    call = Call("", inverse.tool_name, "{}", inverse.description)
    line = incoming.add_request(session, request, call, context.now)
    if line is None:
        raise LostRace
    return line.message_id

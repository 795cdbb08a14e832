"""Transitions of open proposals that no person makes, such as expiry, and the end of one that never runs.

A proposal is open (PROPOSED) until people decide. One that never runs ends as DECLINED, EXPIRED or CANCELLED;
one that is APPROVED runs, as ``bot/approvals/runs.py`` says. Its contents have *rounds*: an edit, a retry, or
asking people again begins the next round.

Each function is called within one transaction. Most return the jobs that follow: work for other parts, such
as redrawing a card. Jobs are started once the transaction is committed. Transitions by people's presses are
in ``bot/approvals/decide.py`` and use functions from here.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.approvals import grants
from bot.approvals.settled_answers import settle_answer
from bot.domain.annotations import MAX_LINES, Annotation, bound_annotations
from bot.domain.audit import Act
from bot.domain.jobs import CHANGED, Job, Work
from bot.domain.people import Role
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, start_timers
from bot.domain.redaction import redact_text
from bot.domain.text import one_line
from bot.domain.trials import Trial
from bot.domain.verbs import Verb
from bot.errors import LostRace
from bot.store import messages, people, proposals, teams, transitions
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

# a note tells the model something; this one tells it that a change was undone
_UNDONE_NOTE = "[Nod] Undone by {who}, so it no longer holds: {what}. What was done for that: {how}."


def request_redraw(session: Session, p: Proposal) -> Job:
    """Return the job that redraws the posted cards on which a proposal stands, alone or with others.

    If no card is outdated, the returned job only tells listeners of the change (`CHANGED`).
    """
    if transitions.has_outdated_cards(session, p):
        return Job(Work.REDRAW, str(p.message_id))
    return CHANGED


def move_or_raise(
    session: Session, before: Proposal, by: Author, now: datetime, state: State | None = None, **changes: Any
) -> Proposal:
    """Change a proposal like `transitions.change_proposal`, and return it as it is now.

    ``by``: the author of the change, for the audit log. ``changes``: the columns to change. Raises LostRace
    if someone else has changed it since it was read.
    """
    after = transitions.change_proposal(session, before, by, now, state, **changes)
    if after is None:
        raise LostRace
    return after


def end_proposal(
    session: Session, p: Proposal, by: Author, now: datetime, state: State, who: str | None, **changes: Any
) -> tuple[Proposal, tuple[Job, ...]]:
    """End a proposal without running it.

    ``by``: the author for the audit log. ``who``: the name of the person, or of the part of Nod, that ended
    it, for cards; None if no one decided that. Returns the proposal as it is now, and the jobs that follow.
    Raises LostRace.
    """
    if who is not None:
        changes |= {"decided_by": who, "decided_from": by.channel, "decided_at": now}
    p = move_or_raise(session, p, by, now, state, **changes)
    jobs = (request_redraw(session, p), *update_original(session, p, now), *settle_answer(session, p, now))
    return p, jobs


def expire_due(
    session: Session, policies: Policies, now: datetime, limit: int
) -> list[tuple[Proposal, tuple[Job, ...]]]:
    """Expire at most ``limit`` proposals that no one decided in time; none while everything is paused.

    Returns each as it is now, with the jobs that follow.
    """
    if policies.load(session).book.paused:
        return []
    return [expire(session, p, now) for p in proposals.list_due_to_expire(session, now, limit)]


def expire(session: Session, p: Proposal, now: datetime) -> tuple[Proposal, tuple[Job, ...]]:
    """End a proposal that no one decided in time."""
    return end_proposal(session, p, Author.nod(Verb.EXPIRE), now, State.EXPIRED, None, decided_at=now)


def cancel_undeliverable(session: Session, proposal_id: str, why: str, now: datetime) -> tuple[Job, ...]:
    """Cancel a proposal whose card could not be posted anywhere: no one could ever decide it."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state is not State.PROPOSED:
        return ()
    by = Author.nod(Act.UNDELIVERABLE, why)
    changes = {"cause": Cause.UNDELIVERABLE, "error": why}
    _, jobs = end_proposal(session, p, by, now, State.CANCELLED, None, **changes)
    return jobs


def cancel_question(session: Session, proposal_id: str, now: datetime) -> tuple[Job, ...]:
    """Cancel an MCP server's question whose call no longer waits for the answer, unless it has ended."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state not in (State.PROPOSED, State.APPROVED):
        return ()
    by = Author.nod(Act.NO_LONGER_ASKED, "the call that asked has ended")
    _, jobs = end_proposal(session, p, by, now, State.CANCELLED, None, cause=Cause.NO_LONGER_ASKED)
    return jobs


def cancel_left_questions(session: Session, process: str, now: datetime) -> tuple[Job, ...]:
    """Cancel the questions of MCP servers whose process is gone, and with it the call that asked.

    ``process``: the id of this process, whose questions stay.
    """
    jobs: list[Job] = []
    for proposal_id in transitions.list_abandoned_questions(session, process):
        jobs += cancel_question(session, proposal_id, now)
    return tuple(jobs)


def ask_again(
    session: Session,
    p: Proposal,
    preview: tuple[PreviewField, ...],
    now: datetime,
    trial: Trial | None = None,
) -> tuple[Job, ...]:
    """Open an approved proposal again, since people approved other old values than there are now.

    ``preview`` and ``trial`` show the values of now. Returns the jobs; none if someone else has changed the
    proposal since it was read.
    """
    moved = transitions.change_proposal(
        session,
        p,
        Author.nod(Act.CHANGED, "the current values changed"),
        now,
        State.PROPOSED,
        preview=preview,
        trial=trial,
        for_real=None,  # people choose again between the trial's changes and a run for real
        round=p.round + 1,
        votes=(),
        changed=True,  # the card says that current values have changed
        **start_timers(p.ttl, p.remind_every, now),
        decided_by=None,
        decided_from=None,
        decided_at=None,
    )
    if moved:
        return (request_redraw(session, p),)
    return ()


def annotate(
    session: Session, proposal_id: str, round_: int, line: Annotation, now: datetime
) -> tuple[Job, ...]:
    """Add a remark of a feature (``line``) to the card of an open proposal that was posted already.

    Returns the jobs. The remark is not a part of the approved contents. ``round_``: the round of the contents
    that it is about. Nothing is added if the proposal has another round by now, or is decided. Each author
    adds at most one such late remark, and a card takes at most `MAX_LINES` of them.
    """
    conversation_lock.lock_conversation_of(session, proposal_id)
    p = proposals.get(session, proposal_id)
    if p is None or p.state is not State.PROPOSED or p.round != round_:
        return ()
    late = [annotation for annotation in p.annotations if annotation.is_late]
    late_names = {annotation.name for annotation in late}
    added = bound_annotations([line], late=True)
    if not added or added[0].name in late_names or len(late) == MAX_LINES:
        return ()
    by = Author.nod(Act.ANNOTATE, redact_text(added[0].words))
    p = move_or_raise(session, p, by, now, annotations=(*p.annotations, *added))
    return (request_redraw(session, p),)


def require_another_approval(
    session: Session, policies: Policies, proposal_id: str, round_: int, why: str, now: datetime
) -> tuple[Proposal | None, tuple[Job, ...]]:
    """Require one more approval of an open or approved proposal. Returns it as it is now, and the jobs.

    If no one could give that approval, admins may decide as well. If that is not enough either, the
    proposal is returned unchanged. Votes stay; grants that were given along with one of them end.

    ``round_``: the round of the contents that need the approval. ``why``: the reason, for the audit log. None
    is returned in place of the proposal if it has another round by now, is already running, or has ended.
    """
    conversation_lock.lock_conversation_of(session, proposal_id)
    p = proposals.get(session, proposal_id)
    if p is None or p.round != round_ or p.state not in (State.PROPOSED, State.APPROVED):
        return None, ()
    policy = policies.load(session)
    requester = people.load_person(session, p.requester)
    deciders = p.deciders
    needed = p.quorum + 1
    why_too_few = policy.find_quorum_objection(deciders, requester, needed)
    if why_too_few and policy.holders(Role.ADMIN, deciders.place):
        deciders = replace(deciders, roles=tuple(dict.fromkeys((*deciders.roles, Role.ADMIN))))
    if p.requester_decides_alone or policy.find_quorum_objection(deciders, requester, needed):
        return p, ()
    by = Author.nod(Act.RAISE, redact_text(why))
    raised = transitions.raise_requirements(session, p, by, now, deciders=deciders, quorum=needed)
    if raised is None:
        raise LostRace
    grants.end_with_raised_quorum(session, p.id, by, now)
    return raised, (request_redraw(session, raised),)


def update_original(session: Session, p: Proposal, now: datetime) -> tuple[Job, ...]:
    """Update the change that ``p`` undoes (the original), when ``p`` has ended. Returns the jobs.

    If ``p`` succeeded, the original is noted as undone, and the model is told. Otherwise the original may be
    undone for another full period. Nothing is done if ``p`` undoes nothing, or if its effect is unknown.
    """
    if not p.undoes or p.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED):
        return ()
    original = proposals.get(session, p.undoes)
    if original is None or original.undone_by != p.id:  # another proposal undoes it by now
        return ()
    if p.state is not State.SUCCEEDED:
        until = now + timedelta(seconds=original.undo_seconds or 0)
        by = Author.nod(Act.NOT_UNDONE, f"by proposal {p.id}: {p.state}")
        original = move_or_raise(session, original, by, now, undone_by=None, undo_until=until)
        return (request_redraw(session, original),)
    by = Author.nod(Act.UNDONE, f"by proposal {p.id}")
    original = move_or_raise(session, original, by, now, undone=p.decided_by, undo_until=None)
    note = _UNDONE_NOTE.format(
        who=one_line(p.decided_by or "someone"),
        what=one_line(original.description),
        how=one_line(p.description),
    )
    lead_conversation_id = teams.find_lead_conversation(session, original)
    for conversation_id in dict.fromkeys((p.conversation_id, lead_conversation_id)):
        messages.add_note(session, conversation_id, note, now)
    return (request_redraw(session, original),)

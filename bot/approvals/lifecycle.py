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
from bot.store import abandoned_work, messages, people, proposals, requirements, teams, transitions
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.outdated_cards import has_outdated_cards
from bot.store.rules import Policies

# a note tells the model something; this one tells it that a change was undone
_UNDONE_NOTE = "[Nod] Undone by {who}, so it no longer holds: {what}. What was done for that: {how}."


def request_redraw(session: Session, proposal: Proposal) -> Job:
    """Return the job that redraws the posted cards on which a proposal stands, alone or with others.

    If no card is outdated, the returned job only tells listeners of the change (`CHANGED`).
    """
    if has_outdated_cards(session, proposal):
        return Job(Work.REDRAW, str(proposal.message_id))
    return CHANGED


def move_or_raise(
    session: Session,
    before: Proposal,
    author: Author,
    now: datetime,
    state: State | None = None,
    **changes: Any,
) -> Proposal:
    """Change a proposal like `transitions.change_proposal`, and return it as it is now.

    ``author``: the author of the change, for the audit log. ``changes``: the columns to change. Raises
    LostRace if someone else has changed it since it was read.
    """
    after = transitions.change_proposal(session, before, author, now, state, **changes)
    if after is None:
        raise LostRace
    return after


def end_proposal(
    session: Session,
    proposal: Proposal,
    author: Author,
    now: datetime,
    state: State,
    who: str | None,
    **changes: Any,
) -> tuple[Proposal, tuple[Job, ...]]:
    """End a proposal without running it.

    ``author``: the author for the audit log. ``who``: the name of the person, or of the part of Nod, that
    ended it, for cards; None if no one decided that. Returns the proposal as it is now, and the jobs that
    follow.
    Raises LostRace.
    """
    if who is not None:
        changes |= {"decided_by": who, "decided_from": author.channel, "decided_at": now}
    proposal = move_or_raise(session, proposal, author, now, state, **changes)
    jobs = (
        request_redraw(session, proposal),
        *update_original(session, proposal, now),
        *settle_answer(session, proposal, now),
    )
    return proposal, jobs


def expire_due(
    session: Session, policies: Policies, now: datetime, limit: int
) -> list[tuple[Proposal, tuple[Job, ...]]]:
    """Expire at most ``limit`` proposals that no one decided in time; none while everything is paused.

    Returns each as it is now, with the jobs that follow.
    """
    if policies.load(session).rulebook.paused:
        return []
    return [expire(session, proposal, now) for proposal in proposals.list_due_to_expire(session, now, limit)]


def expire(session: Session, proposal: Proposal, now: datetime) -> tuple[Proposal, tuple[Job, ...]]:
    """End a proposal that no one decided in time."""
    return end_proposal(
        session, proposal, Author.of_nod(Verb.EXPIRE), now, State.EXPIRED, None, decided_at=now
    )


def cancel_undeliverable(session: Session, proposal_id: str, why: str, now: datetime) -> tuple[Job, ...]:
    """Cancel a proposal whose card could not be posted anywhere: no one could ever decide it."""
    proposal = proposals.get(session, proposal_id)
    if proposal is None or proposal.state is not State.PROPOSED:
        return ()
    author = Author.of_nod(Act.UNDELIVERABLE, why)
    changes = {"cause": Cause.UNDELIVERABLE, "error": why}
    _, jobs = end_proposal(session, proposal, author, now, State.CANCELLED, None, **changes)
    return jobs


def cancel_question(session: Session, proposal_id: str, now: datetime) -> tuple[Job, ...]:
    """Cancel an MCP server's question whose call no longer waits for the answer, unless it has ended."""
    proposal = proposals.get(session, proposal_id)
    if proposal is None or proposal.state not in (State.PROPOSED, State.APPROVED):
        return ()
    author = Author.of_nod(Act.NO_LONGER_ASKED, "the call that asked has ended")
    _, jobs = end_proposal(session, proposal, author, now, State.CANCELLED, None, cause=Cause.NO_LONGER_ASKED)
    return jobs


def cancel_left_questions(session: Session, process: str, now: datetime) -> tuple[Job, ...]:
    """Cancel the questions of MCP servers whose process is gone, and with it the call that asked.

    ``process``: the id of this process, whose questions stay.
    """
    jobs: list[Job] = []
    for proposal_id in abandoned_work.list_abandoned_questions(session, process):
        jobs += cancel_question(session, proposal_id, now)
    return tuple(jobs)


def ask_again(
    session: Session,
    proposal: Proposal,
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
        proposal,
        Author.of_nod(Act.CHANGED, "the current values changed"),
        now,
        State.PROPOSED,
        preview=preview,
        trial=trial,
        for_real=None,  # people choose again between the trial's changes and a run for real
        round=proposal.round + 1,
        votes=(),
        values_changed=True,  # the card says that current values have changed
        **start_timers(proposal.ttl, proposal.remind_every, now),
        decided_by=None,
        decided_from=None,
        decided_at=None,
    )
    if moved:
        return (request_redraw(session, proposal),)
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
    proposal = proposals.get(session, proposal_id)
    if proposal is None or proposal.state is not State.PROPOSED or proposal.round != round_:
        return ()
    late = [annotation for annotation in proposal.annotations if annotation.is_late]
    late_names = {annotation.name for annotation in late}
    added = bound_annotations([line], late=True)
    if not added or added[0].name in late_names or len(late) == MAX_LINES:
        return ()
    author = Author.of_nod(Act.ANNOTATE, redact_text(added[0].line))
    proposal = move_or_raise(session, proposal, author, now, annotations=(*proposal.annotations, *added))
    return (request_redraw(session, proposal),)


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
    proposal = proposals.get(session, proposal_id)
    if proposal is None or proposal.round != round_ or proposal.state not in (State.PROPOSED, State.APPROVED):
        return None, ()
    policy = policies.load(session)
    requester = people.load_person(session, proposal.requester)
    deciders = proposal.deciders
    needed = proposal.quorum + 1
    why_too_few = policy.find_quorum_objection(deciders, requester, needed)
    if why_too_few and policy.list_holders(Role.ADMIN, deciders.place):
        deciders = replace(deciders, roles=tuple(dict.fromkeys((*deciders.roles, Role.ADMIN))))
    if proposal.requester_decides_alone or policy.find_quorum_objection(deciders, requester, needed):
        return proposal, ()
    author = Author.of_nod(Act.RAISE, redact_text(why))
    raised = requirements.raise_requirements(session, proposal, author, now, deciders=deciders, quorum=needed)
    if raised is None:
        raise LostRace
    grants.end_with_raised_quorum(session, proposal.id, author, now)
    return raised, (request_redraw(session, raised),)


def update_original(session: Session, proposal: Proposal, now: datetime) -> tuple[Job, ...]:
    """Update the change that a proposal undoes (the original), when that proposal has ended.

    Returns the jobs. If the proposal succeeded, the original is noted as undone, and the model is told.
    Otherwise the original may be undone for another full period. Nothing is done if the proposal undoes
    nothing, or if its effect is unknown.
    """
    if not proposal.undoes_proposal_id or proposal.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED):
        return ()
    original = proposals.get(session, proposal.undoes_proposal_id)
    if original is None or original.undo_proposal_id != proposal.id:  # another proposal undoes it by now
        return ()
    if proposal.state is not State.SUCCEEDED:
        until = now + timedelta(seconds=original.undo_seconds or 0)
        author = Author.of_nod(Act.NOT_UNDONE, f"by proposal {proposal.id}: {proposal.state}")
        original = move_or_raise(session, original, author, now, undo_proposal_id=None, undo_until=until)
        return (request_redraw(session, original),)
    author = Author.of_nod(Act.UNDONE, f"by proposal {proposal.id}")
    original = move_or_raise(
        session, original, author, now, undone_by_name=proposal.decided_by, undo_until=None
    )
    note = _UNDONE_NOTE.format(
        who=one_line(proposal.decided_by or "someone"),
        what=one_line(original.description),
        how=one_line(proposal.description),
    )
    lead_conversation_id = teams.find_lead_conversation(session, original)
    for conversation_id in dict.fromkeys((proposal.conversation_id, lead_conversation_id)):
        messages.add_note(session, conversation_id, note, now)
    return (request_redraw(session, original),)

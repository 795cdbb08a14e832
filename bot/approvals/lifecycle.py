"""Transitions of proposals that no person makes: expiry, the claim of a run, its end, and a lost run.

A proposal is open (PROPOSED) until people decide. Once APPROVED, one process claims its run (EXECUTING) and
stores how it ended (SUCCEEDED or FAILED). A proposal that never runs ends as DECLINED, EXPIRED or CANCELLED.
Its contents have *rounds*: an edit, a retry, or asking people again begins the next round.

Each function is called within one transaction. Most return the jobs that follow: work for other parts, such
as redrawing a card. Jobs are started once the transaction is committed. Transitions by people's presses are
in ``bot/approvals/decide.py`` and use functions from here. An admin can pause everything, which stops the
timers of open proposals; `take_resume_step` ends the pause, step by step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.approvals import grants, ownership, rights
from bot.approvals.team import teammates
from bot.domain.annotations import MAX_LINES, Annotation, bound_annotations
from bot.domain.audit import Act
from bot.domain.files import File, prepare_for_people
from bot.domain.hooks import MAX_HOLD
from bot.domain.jobs import CHANGED, Job, Work
from bot.domain.outcomes import EARLIER, bound_text, for_model
from bot.domain.people import Actor, Role
from bot.domain.policy import Policy
from bot.domain.preview import PreviewField
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal, start_timers
from bot.domain.redaction import redact_text
from bot.domain.rulebook import Rulebook
from bot.domain.steps import delay_steps
from bot.domain.text import escape_markdown, one_line
from bot.domain.trials import Trial
from bot.domain.verbs import Verb
from bot.errors import CallRefused, Disconnected, LostRace
from bot.store import (
    agent_calls,
    conversations,
    messages,
    notices,
    outputs,
    people,
    posted_cards,
    proposals,
    rules,
    teams,
    transitions,
    turns,
)
from bot.store.audit.log import Author
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.store.state import load_task_state, store_task_state

# a note tells the model something; this one tells it that a change was undone
_UNDONE_NOTE = "[Nod] Undone by {who}, so it no longer holds: {what}. What was done for that: {how}."
# for the person in whose name a call ran, if the server's answer is for them alone
_ANSWER_TEXT = "{server} answered to “{what}”, which others in the conversation don't see:\n\n{answer}"
_MAX_ANSWER_CHARS = 3000  # fits into one message on each platform, with the words around it
_RESUMED_AT_A_TIME = 200  # proposals in one transaction
_RESUME_STATE = "resume"  # the name under which the progress of a resume is stored


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
    jobs = (request_redraw(session, p), *_update_original(session, p, now), *settle_answer(session, p, now))
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


def claim(
    session: Session, policies: Policies, p: Proposal, process: str, now: datetime, resource: str = ""
) -> Proposal | None:
    """Move a proposal from APPROVED to EXECUTING for exactly one caller; all others get None.

    Also None while everything is paused, while a feature delays the run, and while another process changes
    the same ``resource``, such as a file. (The caller holds a lock for it, but another process may have lost
    that lock with its connection to the database.) ``process``: the id of this process. Raises CallRefused
    if a rule forbids the call by now. Raises Disconnected if the account in whose name it runs is not the one
    that people saw.

    The rules in memory are checked first, which costs nothing. They may be old. Each change of a rule raises
    the stored version of the rules, and the update only succeeds if that is the version in memory. If it
    fails, the stored rules are read and checked.
    """
    policy = policies.latest_policy  # the rules in memory
    if policy.book.has_forbid_rule:  # the forbidding rule may be deleted by now, so the stored rules decide
        policy = policies.load(session)
    claimed = _claim_under(session, policy, p, process, now, resource)
    if claimed is not None:
        return claimed
    newest = policies.load(session)
    if newest.book.version == policy.book.version:
        return None
    return _claim_under(session, newest, p, process, now, resource)


def _claim_under(
    session: Session, policy: Policy, p: Proposal, process: str, now: datetime, resource: str
) -> Proposal | None:
    """Claim a run if the rules of ``policy`` allow it, and if they are still the stored rules, else None."""
    if policy.book.has_forbid_rule:
        call = replace(rights.call_of(session, p), at=now)
        why = policy.find_call_objection(call)
        if why:
            raise CallRefused(f"This is now forbidden: {why}.")
    fault = ownership.find_connection_fault(session, p)
    if fault:
        raise Disconnected(fault)
    if _is_delayed(session, policy.book, p, now):
        return None
    by = Author.nod(Act.EXECUTE)
    version = policy.book.version
    # two conditions: no other run has the resource (``thing``), and the stored rules are these
    # (``book_version``)
    return transitions.change_proposal(
        session, p, by, now, State.EXECUTING, owner=process, thing=resource, book_version=version
    )


def _is_delayed(session: Session, book: Rulebook, p: Proposal, now: datetime) -> bool:
    """Tell if a feature delays the run of an approved proposal. `Recovery` starts the run again later."""
    latest = (p.decided_at or p.updated_at) + MAX_HOLD  # the end of the longest delay
    for hold_claim in hooks_of(session).hold_claim:
        until = hold_claim(session, book, p)
        if until is not None and now < min(until, latest):
            return True
    return False


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


def find_stopped_run(session: Session, claimed: Proposal) -> Proposal | None:
    """Return a claimed proposal as it is now, if someone has pressed Stop for its run, else None.

    ``claimed``: the proposal as the claim left it.
    """
    p = proposals.get(session, claimed.id)
    if p is None or p.state is not State.EXECUTING or p.cause is not Cause.STOPPED:
        return None
    if p.version != claimed.version + 1:  # it was claimed again since, for another run
        return None
    return p


def store_progress(session: Session, claimed: Proposal, words: str) -> tuple[Job, ...]:
    """Store the progress of a run (``words``) for the proposal's cards, unless the run has ended.

    Returns the jobs.
    """
    if transitions.store_progress(session, claimed, words):
        return (request_redraw(session, claimed),)
    return ()


def finish(
    session: Session,
    /,
    claimed: Proposal,
    state: State,
    now: datetime,
    *,
    files: Sequence[File] = (),
    turn_process: str = "",
    inverse_arguments: Mapping[str, Any] | None = None,
    policies: Policies | None = None,
    for_owner: str = "",
    **changes: Any,
) -> tuple[Proposal, tuple[Job, ...]] | None:
    """Store the outcome of a run: SUCCEEDED, or FAILED with its cause.

    Returns the proposal as it is now and the jobs that follow. None if another process has stored an outcome,
    since it took this process for dead.

    ``claimed``: the proposal as the claim left it. ``turn_process``: the process that takes the turn which
    continues the conversation, as in `turns.request_turn`. ``inverse_arguments``: those of the call that
    undoes this one. ``policies``: given for a failed row of a batch, to tell if a rule then stops the rest of
    the batch. ``for_owner``: the server's answer, which only the person in whose name the call ran may see.
    ``changes``: the other columns to store.
    """
    changes = {"cause": None, "error": None, **changes}
    # an agent's answer is stored apart from the proposal (``runs``: calls of this kind run and have answers)
    if claimed.agent and claimed.kind.runs:
        changes = agent_calls.seal_outcome(session, claimed, state, changes, files)
        files = ()
    if inverse_arguments is not None and claimed.undo_seconds:
        changes["undo_until"] = now + timedelta(seconds=claimed.undo_seconds)
    p = transitions.change_proposal(session, claimed, Author.nod(state), now, state, **changes)
    if p is None:  # perhaps someone pressed Stop, which changes the proposal's row
        stopped = find_stopped_run(session, claimed)
        if stopped is None:
            return None
        p = transitions.change_proposal(session, stopped, Author.nod(state), now, state, **changes)
        if p is None:
            return None
    if inverse_arguments is not None:
        proposals.store_inverse(session, p, inverse_arguments, now)
    if for_owner:
        _tell_owner(session, p, for_owner, now)
    posts_files = outputs.store_result(session, p, files, now)

    undo_jobs = _update_original(session, p, now)
    stop_jobs = _stop_batch(session, policies, p, now) if policies else ()
    jobs = [request_redraw(session, p), *undo_jobs, *stop_jobs, *settle_answer(session, p, now, turn_process)]
    if posts_files:
        jobs.append(Job(Work.DELIVER, p.conversation_id))
    return p, tuple(jobs)


def _tell_owner(session: Session, p: Proposal, answer: str, now: datetime) -> None:
    """Tell the person in whose name a proposal ran what the server answered."""
    if p.connection is None:
        return
    what = escape_markdown(one_line(p.description))
    bounded = bound_text(escape_markdown(prepare_for_people(answer)), _MAX_ANSWER_CHARS)
    text = _ANSWER_TEXT.format(server=p.connection.server, what=what, answer=bounded)
    notices.store_private_notice(session, Actor.parse(p.connection.owner), text, now)


def _stop_batch(session: Session, policies: Policies, failed: Proposal, now: datetime) -> tuple[Job, ...]:
    """Withdraw the approved rows of a batch that have not begun, if a rule asks for that.

    ``failed``: the row of the batch that has failed.
    """
    book = policies.load(session).book
    if not failed.batch or not book.stops_batch(rights.call_of(session, failed)):
        return ()
    why = "a row of its batch failed"
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": why}
    approved = [p for p in proposals.list_of_batch(session, failed.batch) if p.state is State.APPROVED]
    jobs: list[Job] = []
    for p in approved:
        _, end_jobs = end_proposal(
            session, p, Author.nod(Act.STOP, why), now, State.CANCELLED, "Nod", **changes
        )
        jobs += end_jobs
    return tuple(jobs)


def _update_original(session: Session, p: Proposal, now: datetime) -> tuple[Job, ...]:
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


def settle_answer(session: Session, p: Proposal, now: datetime, turn_process: str = "") -> tuple[Job, ...]:
    """Continue the conversation once every call of the answer that made ``p`` has ended.

    Returns the jobs, of which one gives the agent a turn. Only a proposal that a model's call led to
    continues anything. ``turn_process``: as in `finish`.

    The conversation may have continued since: the model has answered, or a turn is under way that began while
    these calls were open. Then a note tells the model how they ended.
    """
    if not p.is_from_model:
        return ()
    progress = conversations.find_progress(session, p.conversation_id, p.message_id)
    if progress.is_unsettled:
        return ()
    continues = True
    team_jobs: tuple[Job, ...] = ()
    if p.teammate:
        continues, team_jobs = teammates.settle_answer_of_teammate(session, p, now)
    if not continues:
        return team_jobs
    is_new_turn = turns.request_turn(session, p.conversation_id, now, turn_process)
    if not is_new_turn or progress.has_continued:
        calls = proposals.list_of_message(session, p.message_id)
        lines = "\n".join(f"- {one_line(call.description)}: {_indent(for_model(call))}" for call in calls)
        messages.add_note(session, p.conversation_id, f"[Nod] {EARLIER}\n{lines}", now)
    return (Job(Work.TURN, p.conversation_id), *team_jobs)


def _indent(text: str) -> str:
    """Indent all lines but the first, so that none imitates a line of the note."""
    return "\n    ".join(text.splitlines())


def abandon(session: Session, p: Proposal, now: datetime, *, rerun: bool) -> tuple[Job, ...]:
    """Fail a run that no live process continues, with an unknown outcome. Returns the jobs.

    ``rerun``: the tool declared itself idempotent, so the call is approved again and runs with the same
    idempotency key, unless someone had pressed Stop. Otherwise people decide what to do.
    """
    error = "It started, but its end was never recorded."
    by = Author.nod(Act.ABANDONED, error)
    lost = transitions.change_proposal(
        session, p, by, now, State.FAILED, cause=Cause.OUTCOME_UNKNOWN, error=error
    )
    if lost is None:
        return ()  # it ended a moment ago
    if not rerun or p.cause is Cause.STOPPED:
        return (request_redraw(session, lost), *settle_answer(session, lost, now))
    by = Author.nod(Act.RERUN, "the tool is idempotent")
    p = move_or_raise(session, lost, by, now, State.APPROVED, cause=None, error=None)
    return (request_redraw(session, p), Job(Work.EXECUTE, p.id))


def forget_conversation(session: Session, conversation_id: str, now: datetime) -> int:
    """Delete the lines and files of a conversation and of its teammates' conversations.

    Features delete what they keep for these conversations. Nothing is deleted while a proposal in one of them
    is open. Returns the number of open proposals, which is 0 if the lines were deleted.
    """
    ids = [conversation_id, *(teammate.id for teammate in teams.list_of_lead(session, conversation_id))]
    open_count = sum(len(proposals.list_open_in(session, listed_id)) for listed_id in ids)
    if open_count:
        return open_count
    conversations.forget_conversations(session, ids, now)
    for forget_conversations in hooks_of(session).forget_conversations:
        forget_conversations(session, ids, now)
    outputs.delete_all(session, ids)
    proposals.delete_inverses(session, ids)
    return 0


@dataclass(frozen=True, slots=True)
class ResumeStep:
    """The result of one step of resuming."""

    jobs: tuple[Job, ...] = ()
    is_last: bool = False  # True after the last step: the pause is over
    paused: timedelta = timedelta()  # after the last step, the length of the pause


def take_resume_step(
    session: Session, actor: Actor, now: datetime, limit: int = _RESUMED_AT_A_TIME
) -> ResumeStep | None:
    """Do the next step to end a pause of everything; None if nothing is paused.

    While everything is paused, the timers of open proposals stop. So their times, such as the time of expiry,
    are made later by the length of the pause. Each step does so for at most ``limit`` proposals, so that no
    transaction is long. The step after them ends the pause. The progress is stored, so that the steps
    continue after a crash.
    """
    conversation_lock.lock_everything(session)
    since = rules.find_paused_since(session)
    if since is None:
        return None
    by = people.make_author(session, Act.RESUME, actor)
    stored = load_task_state(session, _RESUME_STATE)
    if stored and stored["since"] == since.isoformat():
        progress = stored
    else:  # it is the first step of this pause's end
        # ``at``: the time of the first step; ``after``: the id of the last proposal whose timers were moved
        progress = {"since": since.isoformat(), "at": now.isoformat(), "after": ""}
    began_at = datetime.fromisoformat(progress["at"])
    next_proposals = proposals.list_waiting_after(session, progress["after"], limit)
    if next_proposals:
        store_task_state(session, _RESUME_STATE, stored, {**progress, "after": next_proposals[-1].id})
        for p in next_proposals:
            stopped_for = _measure_pause_of_timer(p, since, began_at)
            if stopped_for:
                transitions.change_proposal(session, p, by, now, **_delay_timers(p, stopped_for))
        return ResumeStep()
    store_task_state(session, _RESUME_STATE, stored, {})
    if began_at < now:
        # all timers were moved as if the pause had ended at its first step; the time since then counts as
        # another pause, which is ended by steps of its own
        rules.move_pause_start(session, by, began_at, now)
        return ResumeStep()
    paused = rules.resume(session, by, now)
    message_ids = posted_cards.mark_open_outdated(session)  # until now these cards say that Nod is paused
    jobs = tuple(Job(Work.REDRAW, str(message_id)) for message_id in message_ids)
    return ResumeStep(jobs, is_last=True, paused=paused)


def _measure_pause_of_timer(p: Proposal, since: datetime, at: datetime) -> timedelta:
    """Return how long a pause from ``since`` to ``at`` has stopped a proposal's timer.

    A timer that began during the pause was stopped from its beginning. One that began after ``at`` was never
    stopped.
    """
    timer_began = p.expires_at - p.ttl
    return max(at - max(since, timer_began), timedelta())


def _delay_timers(p: Proposal, stopped_for: timedelta) -> dict[str, Any]:
    """Return the columns of a proposal's times, each later by ``stopped_for``."""
    delayed: dict[str, Any] = {}
    for name in ("expires_at", "warn_at", "remind_at", "notify_at", "escalate_at"):
        due = getattr(p, name)
        if due is not None:
            delayed[name] = due + stopped_for
    if p.steps:
        delayed["steps"] = delay_steps(p.steps, stopped_for)
    return delayed

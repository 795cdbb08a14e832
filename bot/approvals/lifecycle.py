"""Transitions that no person makes: expire, claim, finish, settle, abandon. One transaction each.

People's decisions are in ``bot/approvals/decide.py``. A pause of everything ends by `step`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.approvals import grants, ownership, rights
from bot.approvals.team import teammates
from bot.domain.annotations import MAX_LINES, Annotation, bound_annotations
from bot.domain.files import File, for_people
from bot.domain.hooks import MAX_HOLD
from bot.domain.jobs import CHANGED, Job, Work
from bot.domain.outcomes import EARLIER, bound_text, for_model
from bot.domain.people import Actor, Role
from bot.domain.policy import Policy
from bot.domain.proposals import Cause, PreviewField, Proposal, State, clock
from bot.domain.record import Act
from bot.domain.redaction import redact_text
from bot.domain.rules import Rulebook
from bot.domain.steps import delay_steps
from bot.domain.text import as_written, one_line
from bot.domain.trials import Trial
from bot.domain.verbs import Verb
from bot.errors import Disconnected, LostRace, Refused
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
from bot.store.audit.log import By
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.store.state import keep_task_state, load_task_state

_UNDONE = "[Nod] Undone by {who}, so it no longer holds: {what}. What was done for that: {how}."
_ANSWERED = "{server} answered to “{what}”, which others in the conversation don't see:\n\n{answer}"
_MAX_ANSWER_CHARS = 3000  # a platform's message holds that many
_BATCH = 200
_MEMORY = "resume"


def redraw(session: Session, p: Proposal) -> Job:
    """Return the job that redraws a proposal's cards, and that of its group's buttons."""
    if transitions.has_cards_behind(session, p):
        return Job(Work.REDRAW, str(p.message_id))
    return CHANGED


def move_or_lose(
    session: Session, before: Proposal, by: By, now: datetime, state: State | None = None, **changes: Any
) -> Proposal:
    """Move a proposal like `transitions.move`, and return the new one. Raises LostRace."""
    after = transitions.move(session, before, by, now, state, **changes)
    if after is None:
        raise LostRace
    return after


def end(
    session: Session, p: Proposal, by: By, now: datetime, state: State, who: str | None, **changes: Any
) -> tuple[Proposal, tuple[Job, ...]]:
    """Bring an open proposal to an end without running it."""
    if who is not None:
        changes |= {"decided_by": who, "decided_from": by.channel, "decided_at": now}
    p = move_or_lose(session, p, by, now, state, **changes)
    return p, (redraw(session, p), *_of_undoing(session, p, now), *settle_answer(session, p, now))


def expire_due(
    session: Session, policies: Policies, now: datetime, limit: int
) -> list[tuple[Proposal, tuple[Job, ...]]]:
    """Expire what no one decided in time, at most ``limit`` at a time; nothing while timers are stopped."""
    if policies.load(session).book.paused:
        return []
    return [expire(session, p, now) for p in proposals.list_due(session, now, limit)]


def expire(session: Session, p: Proposal, now: datetime) -> tuple[Proposal, tuple[Job, ...]]:
    """End a proposal that no one decided in time."""
    return end(session, p, By.nod(Verb.EXPIRE), now, State.EXPIRED, None, decided_at=now)


def undeliverable(session: Session, proposal_id: str, why: str, now: datetime) -> tuple[Job, ...]:
    """Cancel a proposal whose card could not be posted anywhere: no one could ever decide it."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state is not State.PROPOSED:
        return ()
    by = By.nod(Act.UNDELIVERABLE, why)
    return end(session, p, by, now, State.CANCELLED, None, cause=Cause.UNDELIVERABLE, error=why)[1]


def cancel_question(session: Session, proposal_id: str, now: datetime) -> tuple[Job, ...]:
    """Cancel a question whose call no longer waits for the answer, unless it has ended."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state not in (State.PROPOSED, State.APPROVED):
        return ()
    by = By.nod(Act.UNASKED, "the call that asked has ended")
    return end(session, p, by, now, State.CANCELLED, None, cause=Cause.UNASKED)[1]


def cancel_left_questions(session: Session, process: str, now: datetime) -> tuple[Job, ...]:
    """End every question whose process is gone, and the call that asked with it."""
    left = transitions.questions_left(session, process)
    return tuple(job for ident in left for job in cancel_question(session, ident, now))


def ask_again(
    session: Session,
    p: Proposal,
    preview: tuple[PreviewField, ...],
    now: datetime,
    trial: Trial | None = None,
) -> tuple[Job, ...]:
    """Send an approved proposal back to people with current values: what they saw as old has changed."""
    moved = transitions.move(
        session,
        p,
        By.nod(Act.CHANGED, "the current values changed"),
        now,
        State.PROPOSED,
        preview=preview,
        trial=trial,
        for_real=None,
        round=p.round + 1,
        votes=(),
        changed=True,
        **clock(p.ttl, p.remind_every, now),
        decided_by=None,
        decided_from=None,
        decided_at=None,
    )
    if moved:
        return (redraw(session, p),)
    return ()


def annotate(
    session: Session, proposal_id: str, round_: int, line: Annotation, now: datetime
) -> tuple[Job, ...]:
    """Add a line to the card of an open proposal, after that was posted. It changes nothing that is pressed.

    ``round_``: of the contents that it is about. Nothing is added where these changed or were decided, and
    nothing under a name that said something late already, or once there are too many.
    """
    conversation_lock.with_proposal(session, proposal_id)
    p = proposals.get(session, proposal_id)
    if p is None or p.state is not State.PROPOSED or p.round != round_:
        return ()
    late = [each for each in p.annotations if each.is_late]
    added = bound_annotations([line], late=True)
    known = {each.name for each in late}
    if not added or added[0].name in known or len(late) == MAX_LINES:
        return ()
    by = By.nod(Act.ANNOTATE, redact_text(added[0].words))
    return (redraw(session, move_or_lose(session, p, by, now, annotations=(*p.annotations, *added))),)


def claim(
    session: Session, policies: Policies, p: Proposal, process: str, now: datetime, thing: str = ""
) -> Proposal | None:
    """Move ``approved → executing`` for exactly one caller; all others, and all while paused, get None.

    Also None while another process changes the resource ``thing``, whose lock may have been lost with a
    connection. Raises Refused where a rule forbids the call by now, Disconnected where the account in whose
    name it runs is not the one that people saw. The claim holds only for the version of
    the rulebook that was checked, so that the check costs nothing while no rule forbids anything.
    """
    policy = policies.held
    if policy.book.forbids:  # or did: the rule may be gone
        policy = policies.load(session)
    claimed = _claim(session, policy, p, process, now, thing)
    if claimed is None and (newest := policies.load(session)).book.version != policy.book.version:
        claimed = _claim(session, newest, p, process, now, thing)
    return claimed


def _claim(
    session: Session, policy: Policy, p: Proposal, process: str, now: datetime, thing: str
) -> Proposal | None:
    if policy.book.forbids:
        call = replace(rights.call_of(session, p), at=now)
        why = policy.forbidding(call)
        if why:
            raise Refused(f"This is now forbidden: {why}.")
    if why := ownership.find_connection_fault(session, p):
        raise Disconnected(why)
    if _is_held(session, policy.book, p, now):
        return None
    by, version = By.nod(Act.EXECUTE), policy.book.version
    return transitions.move(session, p, by, now, State.EXECUTING, owner=process, thing=thing, book=version)


def _is_held(session: Session, book: Rulebook, p: Proposal, now: datetime) -> bool:
    """Return whether a feature keeps an approved proposal waiting. `Recovery` starts it again later."""
    latest = (p.decided_at or p.updated_at) + MAX_HOLD
    held = (hold_claim(session, book, p) for hold_claim in hooks_of(session).hold_claim)
    return any(until is not None and now < min(until, latest) for until in held)


def raise_bar(
    session: Session, policies: Policies, proposal_id: str, round_: int, why: str, now: datetime
) -> tuple[Proposal | None, tuple[Job, ...]]:
    """Have a proposal need one more approval than it does; None where it is decided, claimed or another one.

    Where no one could give it, admins may decide as well. Where that is not enough either, nothing changes:
    the proposal comes back as it was. Votes that were given stand; grants that were given with one of them
    end. ``round_``: of the contents.
    """
    conversation_lock.with_proposal(session, proposal_id)
    p = proposals.get(session, proposal_id)
    if p is None or p.round != round_ or p.state not in (State.PROPOSED, State.APPROVED):
        return None, ()
    policy, requester = policies.load(session), people.person_of(session, p.requester)
    deciders, needed = p.deciders, p.quorum + 1
    if policy.too_few(deciders, requester, needed) and policy.holders(Role.ADMIN, deciders.place):
        deciders = replace(deciders, roles=tuple(dict.fromkeys((*deciders.roles, Role.ADMIN))))
    if p.own or policy.too_few(deciders, requester, needed):
        return p, ()
    by = By.nod(Act.RAISE, redact_text(why))
    raised = transitions.raise_requirements(session, p, by, now, deciders=deciders, quorum=needed)
    if raised is None:
        raise LostRace
    grants.end_with_raise(session, p.id, by, now)
    return raised, (redraw(session, raised),)


def find_stopped_run(session: Session, claimed: Proposal) -> Proposal | None:
    """Return the run of a claim if someone pressed Stop for it, else None."""
    p = proposals.get(session, claimed.id)
    stopped = p is not None and p.state is State.EXECUTING and p.cause is Cause.STOPPED
    return p if stopped and p.version == claimed.version + 1 else None  # type: ignore[union-attr]


def store_progress(session: Session, claimed: Proposal, words: str) -> tuple[Job, ...]:
    """Store the progress of a running proposal for its cards; nothing once it has ended."""
    if transitions.store_progress(session, claimed, words):
        return (redraw(session, claimed),)
    return ()


def finish(
    session: Session,
    /,
    claimed: Proposal,
    state: State,
    now: datetime,
    *,
    files: Sequence[File] = (),
    owner: str = "",
    kept: Mapping[str, Any] | None = None,
    policies: Policies | None = None,
    for_owner: str = "",
    **changes: Any,
) -> tuple[Proposal, tuple[Job, ...]] | None:
    """Store the outcome (``SUCCEEDED`` or ``FAILED`` with its cause); None when the claim was lost.

    ``owner``: of the turn that continues the conversation, as in `turns.want_turn`. ``kept``: the arguments
    of the call that undoes it. ``policies`` tell if a failure stops the rest of its batch; None: it doesn't.
    ``for_owner``: what the server answered, for the person alone in whose name it ran.
    """
    changes = {"cause": None, "error": None, **changes}
    if claimed.agent and claimed.kind.runs:
        changes = agent_calls.seal_outcome(session, claimed, state, changes, files)
        files = ()
    if kept is not None and claimed.undo_seconds:
        changes["undo_until"] = now + timedelta(seconds=claimed.undo_seconds)
    p = transitions.move(session, claimed, By.nod(state), now, state, **changes)
    if p is None and (stopped := find_stopped_run(session, claimed)) is not None:
        p = transitions.move(session, stopped, By.nod(state), now, state, **changes)
    if p is None:
        return None
    if kept is not None:
        proposals.keep_inverse(session, p, kept, now)
    if for_owner and p.connection is not None:
        what, answer = as_written(one_line(p.description)), as_written(for_people(for_owner))
        told = _ANSWERED.format(
            server=p.connection.server, what=what, answer=bound_text(answer, _MAX_ANSWER_CHARS)
        )
        notices.tell_privately(session, Actor.parse(p.connection.owner), told, now)
    posts = (Job(Work.DELIVER, p.conversation_id),) if outputs.keep_result(session, p, files, now) else ()
    undid = _of_undoing(session, p, now)
    rest = _stop_rest(session, policies, p, now) if policies else ()
    return p, (redraw(session, p), *undid, *rest, *settle_answer(session, p, now, owner), *posts)


def _stop_rest(session: Session, policies: Policies, failed: Proposal, now: datetime) -> tuple[Job, ...]:
    """Withdraw the waiting rows of a batch in which one failed, where a rule asks for that."""
    book = policies.load(session).book
    if not failed.batch or not book.stops_batch(rights.call_of(session, failed)):
        return ()
    why = "a row of its batch failed"
    rest = [p for p in proposals.of_batch(session, failed.batch) if p.state is State.APPROVED]
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": why}
    each = (end(session, p, By.nod(Act.STOP, why), now, State.CANCELLED, "Nod", **changes) for p in rest)
    return tuple(job for _, jobs in each for job in jobs)


def _of_undoing(session: Session, p: Proposal, now: datetime) -> tuple[Job, ...]:
    """Update the original when the undo proposal ``p`` has ended, and return the jobs.

    The original is undone, or may be undone for another full period. Nothing changes where the effect of
    ``p`` is unknown.
    """
    original = proposals.get(session, p.undoes) if p.undoes else None
    if original is None or original.undone_by != p.id or p.cause in (Cause.OUTCOME_UNKNOWN, Cause.STOPPED):
        return ()
    if p.state is not State.SUCCEEDED:
        until = now + timedelta(seconds=original.undo_seconds or 0)
        by = By.nod(Act.NOT_UNDONE, f"by proposal {p.id}: {p.state}")
        original = move_or_lose(session, original, by, now, undone_by=None, undo_until=until)
        return (redraw(session, original),)
    by = By.nod(Act.UNDONE, f"by proposal {p.id}")
    original = move_or_lose(session, original, by, now, undone=p.decided_by, undo_until=None)
    told = _UNDONE.format(
        who=one_line(p.decided_by or "someone"),
        what=one_line(original.description),
        how=one_line(p.description),
    )
    for conversation_id in dict.fromkeys((p.conversation_id, teams.home(session, original))):
        messages.add_note(session, conversation_id, told, now)
    return (redraw(session, original),)


def settle_answer(session: Session, p: Proposal, now: datetime, owner: str = "") -> tuple[Job, ...]:
    """Continue the conversation once every call of an answer has ended. Other requests simply end.

    If it continued since, the model has already answered past these calls, or is answering in a turn
    that read them as they were: a note tells it how they ended.
    """
    if not p.called:
        return ()
    progress = conversations.find_progress(session, p.conversation_id, p.message_id)
    if progress.is_unsettled:
        return ()
    continues, more = teammates.settle_answer(session, p, now) if p.teammate else (True, ())
    if not continues:
        return more
    resumed = turns.want_turn(session, p.conversation_id, now, owner)
    if not resumed or progress.has_continued:
        group = proposals.of_message(session, p.message_id)
        lines = "\n".join(f"- {one_line(each.description)}: {_indent(for_model(each))}" for each in group)
        messages.add_note(session, p.conversation_id, f"[Nod] {EARLIER}\n{lines}", now)
    return (Job(Work.TURN, p.conversation_id), *more)


def _indent(text: str) -> str:
    """Indent all lines but the first, so that none imitates a line of the note."""
    return "\n    ".join(text.splitlines())


def abandon(session: Session, p: Proposal, now: datetime, *, rerun: bool) -> tuple[Job, ...]:
    """Fail a run that no live process continues: how it ended is unknown.

    ``rerun``: the tool declared itself idempotent, so it runs again with the same key; else people decide.
    """
    error = "It started, but its end was never recorded."
    by = By.nod(Act.ABANDONED, error)
    lost = transitions.move(session, p, by, now, State.FAILED, cause=Cause.OUTCOME_UNKNOWN, error=error)
    if lost is None:
        return ()  # it ended a moment ago
    if not rerun or p.cause is Cause.STOPPED:
        return (redraw(session, lost), *settle_answer(session, lost, now))
    by = By.nod(Act.RERUN, "the tool is idempotent")
    p = move_or_lose(session, lost, by, now, State.APPROVED, cause=None, error=None)
    return (redraw(session, p), Job(Work.EXECUTE, p.id))


def forget_conversation(session: Session, conversation_id: str, now: datetime) -> int:
    """Delete the lines of a conversation and its team, or return the number of open proposals."""
    every = [conversation_id, *(each.id for each in teams.of_lead(session, conversation_id))]
    waiting = sum(len(proposals.open_in(session, ident)) for ident in every)
    if not waiting:
        conversations.forget_conversations(session, every, now)
        for forget_conversations in hooks_of(session).forget_conversations:
            forget_conversations(session, every, now)
        outputs.delete_all(session, every)
        proposals.delete_inverses(session, every)
    return waiting


@dataclass(frozen=True, slots=True)
class ResumeStep:
    """The result of one step of resuming.

    ``over``: work continues, after a pause of ``paused``.
    """

    jobs: tuple[Job, ...] = ()
    over: bool = False
    paused: timedelta = timedelta()


def step(session: Session, actor: Actor, now: datetime, limit: int = _BATCH) -> ResumeStep | None:
    """Do the next part of a resume; None when nothing is paused.

    What waits gets back the time that its timer was stopped, so many proposals at a time that no transaction
    is long. The pause lasts until the last deadline is extended. How far it came is a row, so that the next
    resume continues one that was cut off.
    """
    conversation_lock.everywhere(session)
    since = rules.find_paused_since(session)
    if since is None:
        return None
    by = people.by(session, Act.RESUME, actor)
    done = load_task_state(session, _MEMORY)
    if not done or done["since"] != since.isoformat():
        done = {"since": since.isoformat(), "at": now.isoformat(), "after": ""}
    at = datetime.fromisoformat(done["at"])
    batch = proposals.waiting_after(session, done["after"], limit)
    if batch:
        keep_task_state(session, _MEMORY, {**done, "after": batch[-1].id})
        for p in batch:
            stopped_for = _measure_stop(p, since, at)
            if stopped_for:
                transitions.move(session, p, by, now, **_later(p, stopped_for))
        return ResumeStep()
    if at < now:  # that resume was interrupted: the time since counts as one more pause
        keep_task_state(session, _MEMORY, {})
        rules.pause_since(session, by, at, now)
        return ResumeStep()
    keep_task_state(session, _MEMORY, {})
    paused = rules.resume(session, by, now)
    behind = posted_cards.show_again(session)  # until now they say that Nod is paused
    return ResumeStep(tuple(Job(Work.REDRAW, str(each)) for each in behind), over=True, paused=paused)


def _measure_stop(p: Proposal, since: datetime, at: datetime) -> timedelta:
    """Return the time that the proposal's timer was stopped, which may have begun during the pause."""
    return max(at - max(since, p.expires_at - p.ttl), timedelta())


def _later(p: Proposal, stopped_for: timedelta) -> dict[str, Any]:
    names = ("expires_at", "warn_at", "remind_at", "notify_at", "escalate_at")
    due = {name: getattr(p, name) for name in names}
    later: dict[str, Any] = {name: when + stopped_for for name, when in due.items() if when is not None}
    if p.steps:
        later["steps"] = delay_steps(p.steps, stopped_for)
    return later

"""The run of an approved proposal: its claim by one process, its progress, its end, and a run that is lost.

One process claims a run (APPROVED becomes EXECUTING) and stores how it ended (SUCCEEDED or FAILED). Each
function is called within one transaction and returns the jobs that follow, as those of ``lifecycle.py`` do.
``bot/approvals/execute.py`` calls the tool in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.approvals import ownership, rights
from bot.approvals.lifecycle import end_proposal, move_or_raise, request_redraw, update_original
from bot.approvals.settled_answers import settle_answer
from bot.domain.audit import Act
from bot.domain.files import File, prepare_for_people
from bot.domain.hooks import MAX_HOLD
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import bound_text
from bot.domain.people import Actor
from bot.domain.policy import Policy
from bot.domain.proposal_states import Cause, State
from bot.domain.proposals import Proposal
from bot.domain.rulebook import Rulebook
from bot.domain.text import escape_markdown, one_line
from bot.errors import CallRefused, Disconnected
from bot.store import agent_calls, notices, outputs, proposals, transitions, unrecorded_changes
from bot.store.audit.log import Author
from bot.store.hooks import hooks_of
from bot.store.rules import Policies
from bot.store.transitions import Claim

# for the person in whose name a call ran, if the server's answer is for them alone
_ANSWER_TEXT = "{server} answered to “{what}”, which others in the conversation don't see:\n\n{answer}"
_MAX_ANSWER_CHARS = 3000  # fits into one message on each platform, with the words around it


def claim(
    session: Session, policies: Policies, proposal: Proposal, process: str, now: datetime, resource: str = ""
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
    # the forbidding rule may be deleted by now, so the stored rules decide
    if policy.rulebook.has_forbid_rule:
        policy = policies.load(session)
    claimed = _claim_under(session, policy, proposal, process, now, resource)
    if claimed is not None:
        return claimed
    newest = policies.load(session)
    if newest.rulebook.version == policy.rulebook.version:
        return None
    return _claim_under(session, newest, proposal, process, now, resource)


def _claim_under(
    session: Session, policy: Policy, proposal: Proposal, process: str, now: datetime, resource: str
) -> Proposal | None:
    """Claim a run if the rules of ``policy`` allow it, and if they are still the stored rules, else None."""
    if policy.rulebook.has_forbid_rule:
        call = replace(rights.call_of(session, proposal), at=now)
        why = policy.find_call_objection(call)
        if why:
            raise CallRefused(f"This is now forbidden: {why}.")
    fault = ownership.find_connection_fault(session, proposal)
    if fault:
        raise Disconnected(fault)
    if _is_delayed(session, policy.rulebook, proposal, now):
        return None
    author = Author.of_nod(Act.EXECUTE)
    facts = Claim(process, policy.rulebook.version, thing=resource)
    return transitions.change_proposal(session, proposal, author, now, State.EXECUTING, claim=facts)


def _is_delayed(session: Session, rulebook: Rulebook, proposal: Proposal, now: datetime) -> bool:
    """Tell if a feature delays the run of an approved proposal. `Recovery` starts the run again later."""
    latest = (proposal.decided_at or proposal.updated_at) + MAX_HOLD  # the end of the longest delay
    for hold_claim in hooks_of(session).hold_claim:
        until = hold_claim(session, rulebook, proposal)
        if until is not None and now < min(until, latest):
            return True
    return False


def find_stopped_run(session: Session, claimed: Proposal) -> Proposal | None:
    """Return a claimed proposal as it is now, if someone has pressed Stop for its run, else None.

    ``claimed``: the proposal as the claim left it.
    """
    proposal = proposals.get(session, claimed.id)
    if proposal is None or proposal.state is not State.EXECUTING or proposal.cause is not Cause.STOPPED:
        return None
    if proposal.version != claimed.version + 1:  # it was claimed again since, for another run
        return None
    return proposal


def store_progress(session: Session, claimed: Proposal, text: str) -> tuple[Job, ...]:
    """Store the progress of a run (``text``) for the proposal's cards, unless the run has ended.

    Returns the jobs.
    """
    if unrecorded_changes.store_progress(session, claimed, text):
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
    proposal = transitions.change_proposal(session, claimed, Author.of_nod(state), now, state, **changes)
    if proposal is None:  # perhaps someone pressed Stop, which changes the proposal's row
        stopped = find_stopped_run(session, claimed)
        if stopped is None:
            return None
        proposal = transitions.change_proposal(session, stopped, Author.of_nod(state), now, state, **changes)
        if proposal is None:
            return None
    if inverse_arguments is not None:
        proposals.store_inverse(session, proposal, inverse_arguments, now)
    if for_owner:
        _tell_owner(session, proposal, for_owner, now)
    posts_files = outputs.store_result(session, proposal, files, now)

    undo_jobs = update_original(session, proposal, now)
    stop_jobs = _stop_batch(session, policies, proposal, now) if policies else ()
    jobs = [
        request_redraw(session, proposal),
        *undo_jobs,
        *stop_jobs,
        *settle_answer(session, proposal, now, turn_process),
    ]
    if posts_files:
        jobs.append(Job(Work.DELIVER, proposal.conversation_id))
    return proposal, tuple(jobs)


def _tell_owner(session: Session, proposal: Proposal, answer: str, now: datetime) -> None:
    """Tell the person in whose name a proposal ran what the server answered."""
    if proposal.connection is None:
        return
    what = escape_markdown(one_line(proposal.description))
    bounded = bound_text(escape_markdown(prepare_for_people(answer)), _MAX_ANSWER_CHARS)
    text = _ANSWER_TEXT.format(server=proposal.connection.server, what=what, answer=bounded)
    notices.store_private_notice(session, Actor.parse(proposal.connection.owner), text, now)


def _stop_batch(session: Session, policies: Policies, failed: Proposal, now: datetime) -> tuple[Job, ...]:
    """Withdraw the approved rows of a batch that have not begun, if a rule asks for that.

    ``failed``: the row of the batch that has failed.
    """
    rulebook = policies.load(session).rulebook
    if not failed.batch or not rulebook.stops_batch(rights.call_of(session, failed)):
        return ()
    why = "a row of its batch failed"
    changes = {"cause": Cause.TAKEN_BACK, "decline_reason": why}
    approved = [
        proposal
        for proposal in proposals.list_of_batch(session, failed.batch)
        if proposal.state is State.APPROVED
    ]
    jobs: list[Job] = []
    for proposal in approved:
        _, end_jobs = end_proposal(
            session, proposal, Author.of_nod(Act.STOP, why), now, State.CANCELLED, "Nod", **changes
        )
        jobs += end_jobs
    return tuple(jobs)


def abandon(session: Session, proposal: Proposal, now: datetime, *, rerun: bool) -> tuple[Job, ...]:
    """Fail a run that no live process continues, with an unknown outcome. Returns the jobs.

    ``rerun``: the tool declared itself idempotent, so the call is approved again and runs with the same
    idempotency key, unless someone had pressed Stop. Otherwise people decide what to do.
    """
    error = "It started, but its end was never recorded."
    author = Author.of_nod(Act.ABANDONED, error)
    lost = transitions.change_proposal(
        session, proposal, author, now, State.FAILED, cause=Cause.OUTCOME_UNKNOWN, error=error
    )
    if lost is None:
        return ()  # it ended a moment ago
    if not rerun or proposal.cause is Cause.STOPPED:
        return (request_redraw(session, lost), *settle_answer(session, lost, now))
    author = Author.of_nod(Act.RERUN, "the tool is idempotent")
    proposal = move_or_raise(session, lost, author, now, State.APPROVED, cause=None, error=None)
    return (request_redraw(session, proposal), Job(Work.EXECUTE, proposal.id))

"""The transactions of a turn, which is the agent's work on a conversation from a message to its last answer.

Each function is called within one transaction, by the loop (``bot/agent/loop.py``). One stores an answer of
the model with its proposals. The others end the turn without an answer or after a failure, store a summary,
or post a notice. A notice is a line that people read and the model does not.

The calls of an answer were judged by the gate before (`JudgedCall`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from bot.agent.history_parts import NOTE_PREFIX
from bot.approvals import budgets, grants
from bot.approvals.effects import apply_effects
from bot.approvals.judged_calls import JudgedCall
from bot.approvals.kinds import find_procedure
from bot.approvals.team import stops, teammates
from bot.domain.audit import Act
from bot.domain.batch_groups import assign_batches
from bot.domain.chat import Address
from bot.domain.conversations import CallResult, LineRole, Transcript, Turn, Usage
from bot.domain.events import Ending
from bot.domain.jobs import Job, Work
from bot.domain.people import Role
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject
from bot.domain.rulebook import Rulebook
from bot.store import messages, notices, transcripts, transitions, turns
from bot.store.audit.log import Author
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools

_WILL_RETRY_TEXT = "I'll continue by myself when it answers again."
_GIVEN_UP_TEXT = "I've tried for a day. Send “continue” once it answers again."
_RETRY_PERIOD = timedelta(days=1)  # the time for which a failed turn is run again
_FIRST_RETRY_DELAY = timedelta(seconds=10)
"""Later delays equal the time since the first failure, up to `turns.LONGEST_PAUSE`."""
_NOTICE_PERIOD = timedelta(days=1)  # the time in which the same notice is not posted twice
CONTINUE_NOTE = (
    f"{NOTE_PREFIX} Your answer reached its length limit and was cut. No call in it was used. "
    "Continue where it stops, and make calls with shorter arguments, one after the other."
)


@dataclass(frozen=True, slots=True)
class CommittedAnswer:
    """The stored outcome of one answer of the model: its proposals, and the turn's end."""

    opened: tuple[Proposal, ...]
    ending: Ending | None  # None while the turn continues
    jobs: tuple[Job, ...] = ()
    message_id: int | None = None  # the id of the answer; None if it was not stored


def commit_answer(
    session: Session,
    policies: Policies,
    turn: Turn,
    available: AvailableTools,
    text: str,
    judged_calls: Sequence[JudgedCall],
    results: dict[str, CallResult],
    now: datetime,
    *,
    is_streamed: bool,
    will_continue: bool,
    usage_before: Usage,
) -> CommittedAnswer:
    """Store one answer in one transaction: its text, its proposals, and the end of the turn if it ends.

    A turn waits after an answer with proposals, and is done after an answer without calls. ``judged_calls``:
    the answer's calls. ``results``: the results of those that have one, by the calls' ids. ``is_streamed``:
    the text was displayed while it was written, so it is stored as delivered. ``will_continue``: the answer
    was cut at its length, and the model may continue it. ``usage_before``: the turn's usage before this
    answer.
    """
    conversation_id = turn.transcript.conversation.id
    calls = [judged.call for judged in judged_calls]
    proposed = [judged.proposal for judged in judged_calls if judged.proposal]
    has_effects = any(judged.effect for judged in judged_calls)
    if proposed or has_effects:
        conversation_lock.lock_conversation(session, conversation_id)
    if turn.transcript.teammate:
        teammates.lock_lead(session, turn.transcript.teammate)
    ending = None  # the turn continues after reads, or after an answer that was cut
    if not will_continue and (proposed or not calls):
        ending = Ending.WAITING if proposed else Ending.DONE
    # if people have written since the model was asked, the turn continues, and the stored ending is None
    stored_answer = turns.store_answer(
        session, turn, text, calls, results, ending, delivered=is_streamed, now=now
    )
    if stored_answer is None:  # a person stopped the turn
        return CommittedAnswer((), Ending.STOPPED)
    message_id, ending = stored_answer
    jobs: list[Job] = []
    spent_tokens = turn.usage.tokens - usage_before.tokens
    for count_answer in hooks_of(session).count_answer:
        jobs += count_answer(session, turn.transcript, spent_tokens, now)
    rulebook = policies.latest_policy.rulebook  # the rules as this process last read them
    if turn.usage.cost and rulebook.list_about(Subject.BUDGET):
        jobs += _warn_about_budgets(session, rulebook, turn, now)
    # A call with an effect changes only Nod's own rows, so it is neither run nor proposed. Effects need the
    # id of the stored answer, so they come after it; their results are added to its row.
    if has_effects:
        jobs += apply_effects(session, turn, available, message_id, judged_calls, results, now)
    for proposal in proposed:
        handle_opening = find_procedure(proposal.kind).open
        if handle_opening:  # only some kinds have this step: a plan replaces the agent's earlier plan
            jobs += handle_opening(session, policies, proposal, now)
    opened = _insert_proposals(session, policies, judged_calls, message_id, now)
    if will_continue:
        messages.add_note(session, conversation_id, CONTINUE_NOTE, now)
    if turn.transcript.teammate:
        is_done = ending is Ending.DONE
        jobs += teammates.handle_answer(session, turn.transcript.teammate, text, now, is_done=is_done)
    return CommittedAnswer(opened, ending, tuple(jobs), message_id)


def _insert_proposals(
    session: Session, policies: Policies, judged_calls: Sequence[JudgedCall], message_id: int, now: datetime
) -> tuple[Proposal, ...]:
    """Store the proposals of an answer, those that a grant covers as approved, and return them.

    ``message_id``: the id of the stored answer.
    """
    batches = assign_batches(
        [(judged.proposal.id, judged.batch) for judged in judged_calls if judged.proposal]
    )
    to_insert = []
    for judged in judged_calls:
        if judged.proposal:
            proposal = replace(judged.proposal, message_id=message_id, batch=batches.get(judged.proposal.id))
            # ``likeness`` says which grants cover a call
            approved = grants.approve_by_grant(session, policies, proposal, judged.likeness, now)
            to_insert.append(approved)
    return transitions.insert_proposals(session, to_insert, Author.of_nod(Act.PROPOSE))


def _warn_about_budgets(session: Session, rulebook: Rulebook, turn: Turn, now: datetime) -> list[Job]:
    jobs: list[Job] = []
    for warning in budgets.claim_warnings(session, rulebook, turn, now):
        jobs += _post_notice(session, turn.transcript, warning, now)
    return jobs


def end_if_nothing_to_answer(session: Session, turn: Turn, now: datetime) -> bool:
    """End a turn as WAITING if its conversation has no line that awaits an answer, and return True.

    Returns False if such a line has come since the turn was read.
    """
    turns.lock_turn(session, turn)
    turns.check_owned(session, turn)
    transcript = transcripts.read_transcript(session, turn.transcript.conversation.id)
    if transcript is not None and transcript.awaits_answer:
        return False
    turns.end_turn(session, turn, Ending.WAITING, now)
    return True


class FailedTurn(NamedTuple):
    """The outcome of `fail_turn`."""

    notice: str  # the text for people; empty if they were told before
    jobs: tuple[Job, ...] = ()


def fail_turn(
    session: Session, turn: Turn, explanation: str, now: datetime, *, is_streamed: bool, is_temporary: bool
) -> FailedTurn:
    """End the turn and tell people why, once. Messages that came in the meantime get a new turn.

    ``is_temporary``: the failure may pass, so the turn is retried, for a day at most. A failed turn of a
    teammate is not retried: it ends the teammate's work, and the lead agent is told. ``is_streamed``: the
    text is displayed by the caller, so it is stored as delivered.
    """
    transcript = turn.transcript
    teammate = transcript.teammate
    conversation_id = transcript.conversation.id
    last_read_id = transcript.last_heard_id
    if teammate:
        teammates.lock_lead(session, teammate)
    turns.check_owned(session, turn)
    failing_since = _find_failing_since(transcript)
    waited = now - failing_since if failing_since else timedelta()
    retry_at = None
    if is_temporary and not teammate:
        if waited < _RETRY_PERIOD:
            retry_at = now + min(max(waited, _FIRST_RETRY_DELAY), turns.LONGEST_PAUSE)
        outlook = _WILL_RETRY_TEXT if retry_at else _GIVEN_UP_TEXT
        explanation = f"{explanation} {outlook}"
    # a failure is no `Ending`: it is told by an event of its own, and stored as "failed"
    turns.end_turn(session, turn, turns.FAILED, now, error=explanation, retry_at=retry_at)
    if teammate:
        return FailedTurn(explanation, stops.fail_teammate(session, conversation_id, explanation, now))
    # people are told when the first try fails, and when the last one does
    is_further_failure = failing_since is not None and retry_at is not None
    notice = "" if is_further_failure else explanation
    if notice:
        messages.add_notice(session, conversation_id, notice, last_read_id, now, delivered=is_streamed)
    if messages.has_heard_since(session, conversation_id, last_read_id):
        turns.request_turn(session, conversation_id, now)
    return FailedTurn(notice)


def _find_failing_since(transcript: Transcript) -> datetime | None:
    """Return the time of the notice that the turn failed and is retried; None without such a notice.

    It must be the last line, so that nothing else has happened since.
    """
    last = transcript.lines[-1] if transcript.lines else None
    if last is None or last.role is not LineRole.NOTICE or not last.text.endswith(_WILL_RETRY_TEXT):
        return None
    return last.created_at


def store_summary(
    session: Session, turn: Turn, text: str, last_line_id: int, usage: Usage, now: datetime
) -> None:
    """Store a summary of the lines up to ``last_line_id``, and the turn's usage with it."""
    turns.store_usage(session, turn, usage)
    messages.add_summary(session, turn.transcript.conversation.id, text, last_line_id, now)


def post_notice_once(session: Session, transcript: Transcript, text: str, now: datetime) -> tuple[Job, ...]:
    """Post a notice, unless the same was posted there within ``_NOTICE_PERIOD``. Returns the jobs."""
    if messages.has_notice(session, _find_lead_conversation(transcript), text, now - _NOTICE_PERIOD):
        return ()
    return tuple(_post_notice(session, transcript, text, now))


def store_notice_for_admins(session: Session, policies: Policies, text: str, now: datetime) -> None:
    """Store a notice for each admin's private chat; the delivery sweep posts it."""
    for admin in sorted(policies.load(session).list_holders(Role.ADMIN)):
        notices.store_notice(session, Address.parse(admin), text, now)


def _post_notice(session: Session, transcript: Transcript, text: str, now: datetime) -> list[Job]:
    """Store a notice where people read it, and return the job that posts it."""
    conversation_id = _find_lead_conversation(transcript)
    last_heard = messages.find_last_heard(session, conversation_id)
    messages.add_notice(session, conversation_id, text, last_heard, now, delivered=False)
    return [Job(Work.DELIVER, conversation_id)]


def _find_lead_conversation(transcript: Transcript) -> str:
    """Return the id of the conversation that people read: for a teammate, its lead agent's."""
    if transcript.teammate:
        return transcript.teammate.lead_id
    return transcript.conversation.id

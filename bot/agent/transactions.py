"""The transactions of a turn: an answer with its proposals, a failure, a quiet end, a summary, a notice."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.agent.transcript import NOTE
from bot.approvals import budgets, grants
from bot.approvals.gate import JudgedCall, apply_effects
from bot.approvals.kinds import find_procedure
from bot.approvals.team import plans, teammates
from bot.domain.batches import assign_batches
from bot.domain.chat import Address
from bot.domain.conversations import CallResult, LineRole, Transcript, Turn, Usage
from bot.domain.events import Ending
from bot.domain.jobs import Job, Work
from bot.domain.people import Role
from bot.domain.proposals import Proposal
from bot.domain.record import Act
from bot.domain.rules import Rulebook, Subject
from bot.store import conversations, messages, notices, transitions, turns
from bot.store.audit.log import By
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.tools.registry import AvailableTools

_WILL_RETRY_TEXT = "I'll continue by myself when it answers again."
_GIVEN_UP_TEXT = "I've tried for a day. Send “continue” once it answers again."
_RETRY_PERIOD = timedelta(days=1)  # the time for which a model without answers is asked again
_NOTICE_PERIOD = timedelta(days=1)  # the time in which the same notice is not posted twice
_FIRST_RETRY_DELAY = timedelta(seconds=10)
"""The next delays are as long as the model has been away, up to `turns.LONGEST_PAUSE`."""
CONTINUE_NOTE = (
    f"{NOTE} Your answer reached its length limit and was cut. No call in it was used. Continue where it "
    "stops, and make calls with shorter arguments, one after the other."
)


@dataclass(frozen=True, slots=True)
class Committed:
    """The stored outcome of one answer of the model: its proposals, and the turn's end.

    ``ending`` is None while the turn continues, ``message_id`` is None if the answer was not stored.
    """

    opened: tuple[Proposal, ...]
    ending: Ending | None
    jobs: tuple[Job, ...] = ()
    message_id: int | None = None


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
    delivered: bool,
    will_continue: bool,
    usage_before: Usage,
) -> Committed:
    """Store one answer in one transaction: its text, its proposals, and the end of the turn if it ends.

    ``delivered``: people have seen its text. ``will_continue``: the answer was cut at its length, and the
    model may continue it. ``usage_before``: the turn's usage before this answer.
    """
    conversation_id = turn.transcript.conversation.id
    calls = [judged.call for judged in judged_calls]
    proposed = [(judged.proposal, judged.likeness) for judged in judged_calls if judged.proposal]
    has_effects = any(judged.effect for judged in judged_calls)
    if proposed or has_effects:
        conversation_lock.in_conversation(session, conversation_id)
    if turn.transcript.teammate:
        teammates.lock_lead(session, turn.transcript.teammate)
    ending = None
    if not will_continue and (proposed or not calls):
        ending = Ending.WAITING if proposed else Ending.DONE
    stored = turns.store_answer(session, turn, text, calls, results, ending, delivered=delivered, now=now)
    if stored is None:  # a person stopped the turn
        return Committed((), Ending.STOPPED)
    message_id, ending = stored
    jobs: list[Job] = []
    for count_answer in hooks_of(session).count_answer:
        jobs += count_answer(session, turn.transcript, turn.usage.tokens - usage_before.tokens, now)
    if turn.usage.cost and policies.held.book.list_about(Subject.BUDGET):
        jobs += _warn_about_budgets(session, policies.held.book, turn, now)
    if has_effects:
        jobs += apply_effects(session, turn, available, message_id, judged_calls, results, now)
    for proposal, _ in proposed:
        open_proposal = find_procedure(proposal.kind).open
        if open_proposal:
            jobs += open_proposal(session, policies, proposal, now)
    batch_of = assign_batches(
        [(judged.proposal.id, judged.batch) for judged in judged_calls if judged.proposal]
    )
    opened = []
    for proposal, like in proposed:
        placed = replace(proposal, message_id=message_id, batch=batch_of.get(proposal.id))
        opened.append(grants.approve_by_grant(session, policies, placed, like, now))
    inserted = transitions.insert_proposals(session, opened, By.nod(Act.PROPOSE))
    if will_continue:
        messages.add_note(session, conversation_id, CONTINUE_NOTE, now)
    if turn.transcript.teammate:
        silent = ending is Ending.DONE
        jobs += teammates.after_answer(session, turn.transcript.teammate, text, now, silent=silent)
    return Committed(inserted, ending, tuple(jobs), message_id)


def _warn_about_budgets(session: Session, book: Rulebook, turn: Turn, now: datetime) -> list[Job]:
    jobs: list[Job] = []
    for warning in budgets.warnings(session, book, turn, now):
        jobs += _tell(session, turn.transcript, warning, now)
    return jobs


def end_if_silent(session: Session, turn: Turn, now: datetime) -> bool:
    """End a turn that has nothing to answer. Return False if new lines have come since it was read."""
    turns.lock_turn(session, turn)
    turns.check_owned(session, turn)
    transcript = conversations.read_transcript(session, turn.transcript.conversation.id)
    if transcript is not None and transcript.awaits_answer:
        return False
    turns.end_turn(session, turn, Ending.WAITING, now)
    return True


def fail_turn(
    session: Session, turn: Turn, explanation: str, now: datetime, *, delivered: bool, passing: bool
) -> tuple[str, tuple[Job, ...]]:
    """End the turn and tell people why, once. Messages that came in the meantime get a new turn.

    A ``passing`` failure is retried later. A failed turn of a teammate ends the teammate's work, and the lead
    agent is told. Returns the text for people, empty where they know it already, and the jobs.
    """
    transcript, teammate = turn.transcript, turn.transcript.teammate
    conversation_id, seen = transcript.conversation.id, transcript.seen
    if teammate:
        teammates.lock_lead(session, teammate)
    turns.check_owned(session, turn)
    away_since = _find_retry_notice(transcript)
    waited = now - away_since if away_since else timedelta()
    retry_at = None
    if passing and not teammate:
        if waited < _RETRY_PERIOD:
            retry_at = now + min(max(waited, _FIRST_RETRY_DELAY), turns.LONGEST_PAUSE)
        explanation = f"{explanation} {_WILL_RETRY_TEXT if retry_at else _GIVEN_UP_TEXT}"
    turns.end_turn(session, turn, "failed", now, error=explanation, retry_at=retry_at)
    if teammate:
        return explanation, plans.fail(session, conversation_id, explanation, now)
    notice = "" if away_since and retry_at else explanation
    if notice:
        messages.add_notice(session, conversation_id, notice, seen, now, delivered=delivered)
    if messages.has_heard_since(session, conversation_id, seen):
        turns.request_turn(session, conversation_id, now)
    return notice, ()


def _find_retry_notice(transcript: Transcript) -> datetime | None:
    """Return when people were told that the turn will be retried, or None if that is not the last line."""
    last = transcript.lines[-1] if transcript.lines else None
    if last is None or last.role is not LineRole.NOTICE or not last.text.endswith(_WILL_RETRY_TEXT):
        return None
    return last.created_at


def store_summary(session: Session, turn: Turn, text: str, upto: int, usage: Usage, now: datetime) -> None:
    turns.store_usage(session, turn, usage)
    messages.add_summary(session, turn.transcript.conversation.id, text, upto, now)


def _tell(session: Session, transcript: Transcript, words: str, now: datetime) -> list[Job]:
    """Store a notice in the conversation that people read, and return the job that delivers it."""
    conversation_id = _lead_conversation_id(transcript)
    messages.add_notice(
        session,
        conversation_id,
        words,
        messages.find_last_heard(session, conversation_id),
        now,
        delivered=False,
    )
    return [Job(Work.DELIVER, conversation_id)]


def tell_once(session: Session, transcript: Transcript, words: str, now: datetime) -> tuple[Job, ...]:
    """Store a notice like `_tell`, unless the same was posted there within ``_NOTICE_PERIOD``."""
    if messages.was_noticed(session, _lead_conversation_id(transcript), words, now - _NOTICE_PERIOD):
        return ()
    return tuple(_tell(session, transcript, words, now))


def tell_admins(session: Session, policies: Policies, words: str, now: datetime) -> tuple[Job, ...]:
    """Store a notice for each admin's private chat; the delivery sweep posts it."""
    for admin in sorted(policies.load(session).holders(Role.ADMIN)):
        notices.store_notice(session, Address.parse(admin), words, now)
    return ()


def _lead_conversation_id(transcript: Transcript) -> str:
    """Return the id of the lead agent's conversation."""
    if transcript.teammate:
        return transcript.teammate.lead_id
    return transcript.conversation.id

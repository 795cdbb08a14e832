"""The end of a pause of everything, in steps, which give each open proposal the lost time back.

An admin begins the pause (`rules.pause_all`); while it lasts, nothing runs and no time counts.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.domain.audit import Act
from bot.domain.jobs import Job, Work
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.steps import delay_steps
from bot.store import people, posted_cards, proposals, rules, transitions
from bot.store.locks import conversation_lock
from bot.store.state import load_task_state, store_task_state

_RESUMED_AT_A_TIME = 200  # proposals in one transaction
_RESUME_STATE = "resume"  # the name under which the progress of a resume is stored


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
    author = people.make_author(session, Act.RESUME, actor)
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
        for proposal in next_proposals:
            stopped_for = _measure_pause_of_timer(proposal, since, began_at)
            if stopped_for:
                transitions.change_proposal(
                    session, proposal, author, now, **_delay_timers(proposal, stopped_for)
                )
        return ResumeStep()
    store_task_state(session, _RESUME_STATE, stored, {})
    if began_at < now:
        # all timers were moved as if the pause had ended at its first step; the time since then counts as
        # another pause, which is ended by steps of its own
        rules.move_pause_start(session, author, began_at, now)
        return ResumeStep()
    paused = rules.resume(session, author, now)
    message_ids = posted_cards.mark_open_outdated(session)  # until now these cards say that Nod is paused
    jobs = tuple(Job(Work.REDRAW, str(message_id)) for message_id in message_ids)
    return ResumeStep(jobs, is_last=True, paused=paused)


def _measure_pause_of_timer(proposal: Proposal, since: datetime, at: datetime) -> timedelta:
    """Return how long a pause from ``since`` to ``at`` has stopped a proposal's timer.

    A timer that began during the pause was stopped from its beginning. One that began after ``at`` was never
    stopped.
    """
    timer_began = proposal.expires_at - proposal.ttl
    return max(at - max(since, timer_began), timedelta())


def _delay_timers(proposal: Proposal, stopped_for: timedelta) -> dict[str, Any]:
    """Return the columns of a proposal's times, each later by ``stopped_for``."""
    delayed: dict[str, Any] = {}
    for name in ("expires_at", "warn_at", "remind_at", "notify_at", "escalate_at"):
        due = getattr(proposal, name)
        if due is not None:
            delayed[name] = due + stopped_for
    if proposal.steps:
        delayed["steps"] = delay_steps(proposal.steps, stopped_for)
    return delayed

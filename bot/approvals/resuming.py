"""The end of a pause: what waits gets back the time that its timer was stopped, then work continues.

In steps, so that no transaction is long: the pause holds until the last deadline is extended. How far it came
is in the book's memory, so a resume that was cut off is finished by the next.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from bot.domain.jobs import Job, Work
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.record import Act
from bot.store import conversation_lock, people, posted_cards, proposals, rules, transitions
from bot.store.audit.log import By

_BATCH = 200
_MEMORY = "resume"


@dataclass(frozen=True, slots=True)
class ResumeStep:
    """What one step made; ``over`` when work continues, after a pause as long as ``paused``."""

    jobs: tuple[Job, ...] = ()
    over: bool = False
    paused: timedelta = timedelta()


def step(session: Session, actor: Actor, now: datetime, limit: int = _BATCH) -> ResumeStep | None:
    """Do the next part of a resume; None when nothing is paused."""
    conversation_lock.everywhere(session)
    since = rules.paused_since(session)
    if since is None:
        return None
    by = By.press(Act.RESUME, actor, people.person_of(session, actor))
    done = rules.state_of(session, _MEMORY)
    if not done or done["since"] != since.isoformat():
        done = {"since": since.isoformat(), "at": now.isoformat(), "after": ""}
    at = datetime.fromisoformat(done["at"])
    batch = proposals.waiting_after(session, done["after"], limit)
    if batch:
        rules.keep_state(session, _MEMORY, {**done, "after": batch[-1].id})
        for p in batch:
            if stood := _stood(p, since, at):
                transitions.move(session, p, by, now, **_later(p, stood))
        return ResumeStep()
    if at < now:  # that resume was interrupted: the time since counts as one more pause
        rules.keep_state(session, _MEMORY, {})
        rules.pause_since(session, by, at, now)
        return ResumeStep()
    rules.keep_state(session, _MEMORY, {})
    paused = rules.resume(session, by, now)
    behind = posted_cards.show_again(session)  # until now they say that Nod is paused
    return ResumeStep(tuple(Job(Work.REDRAW, str(each)) for each in behind), over=True, paused=paused)


def _stood(p: Proposal, since: datetime, at: datetime) -> timedelta:
    """How long its timer was stopped; less than the pause if it began during it."""
    return max(at - max(since, p.expires_at - p.ttl), timedelta())


def _later(p: Proposal, stood: timedelta) -> dict[str, Any]:
    due = {name: getattr(p, name) for name in ("expires_at", "warn_at", "remind_at", "escalate_at")}
    return {name: when + stood for name, when in due.items() if when is not None}

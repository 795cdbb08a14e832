"""What time and machines do to proposals: expire, claim, finish, settle, abandon. One transaction each.

What people do is in ``bot/store/decisions.py``.
"""

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.domain.files import File
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import for_model
from bot.domain.proposals import Cause, PreviewField, Proposal, State, clock
from bot.domain.unseen import one_line
from bot.store import messages, outputs, proposals, teamwork, turns
from bot.store.audit import By
from bot.store.rules import Policies


class LostRace(Exception):
    """Another transaction changed the proposal between our read and our write (PostgreSQL only)."""


def redraw(p: Proposal) -> Job:
    """Its cards, and the one that carries its group's buttons, are behind."""
    return Job(Work.REDRAW, str(p.message_id))


def moved(p: Proposal | None) -> Proposal:
    if p is None:
        raise LostRace
    return p


def end(
    session: Session, p: Proposal, by: By, now: datetime, state: State, who: str | None, **changes: Any
) -> tuple[Proposal, tuple[Job, ...]]:
    """Bring an open proposal to an end without running it."""
    if who is not None:
        changes |= {"decided_by": who, "decided_from": by.channel, "decided_at": now}
    p = moved(proposals.move(session, p, by, now, state, **changes))
    return p, (redraw(p), *settle(session, p, now))


def expire_due(
    session: Session, policies: Policies, now: datetime, limit: int
) -> list[tuple[Proposal, tuple[Job, ...]]]:
    """Expire what nobody decided in time, at most ``limit`` at once; nothing while clocks stand still."""
    expired: list[tuple[Proposal, tuple[Job, ...]]] = []
    if policies.load(session).book.paused:
        return expired
    for p in proposals.due(session, now, limit):
        with contextlib.suppress(LostRace):  # decided a moment ago: then it does not expire
            expired.append(expire(session, p, now))
    return expired


def expire(
    session: Session, p: Proposal, now: datetime, by: By | None = None
) -> tuple[Proposal, tuple[Job, ...]]:
    return end(session, p, by or By.nod("expire"), now, State.EXPIRED, None, decided_at=now)


def undeliverable(session: Session, proposal_id: str, why: str, now: datetime) -> tuple[Job, ...]:
    """The card could not be posted anywhere: nobody could ever decide, so it ends."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state is not State.PROPOSED:
        return ()
    by = By.nod("undeliverable", why)
    return end(session, p, by, now, State.CANCELLED, None, cause=Cause.UNDELIVERABLE, error=why)[1]


def unasked(session: Session, proposal_id: str, now: datetime) -> tuple[Job, ...]:
    """Nobody waits for the answer to a question any more: it ends, unless it has."""
    p = proposals.get(session, proposal_id)
    if p is None or p.state not in (State.PROPOSED, State.APPROVED):
        return ()
    by = By.nod("unasked", "the call that asked has ended")
    return end(session, p, by, now, State.CANCELLED, None, cause=Cause.UNASKED)[1]


def unask_all(session: Session, now: datetime) -> tuple[Job, ...]:
    """End every question whose process is gone, and the call that asked with it."""
    return tuple(job for p in proposals.questions(session) for job in unasked(session, p, now))


def ask_again(
    session: Session, p: Proposal, preview: tuple[PreviewField, ...], now: datetime
) -> tuple[Job, ...]:
    """What the preview showed as old has moved: back to people, with what is there now."""
    moved = proposals.move(
        session,
        p,
        By.nod("changed", "the old values moved"),
        now,
        State.PROPOSED,
        preview=preview,
        round=p.round + 1,
        votes=(),
        changed=True,
        **clock(p.ttl, p.remind_every, now),
        decided_by=None,
        decided_from=None,
        decided_at=None,
    )
    return (redraw(p),) if moved else ()


def claim(
    session: Session, policies: Policies, p: Proposal, lease_until: datetime, now: datetime
) -> Proposal | None:
    """``approved → executing`` for exactly one caller; everybody else, and all while paused, get None."""
    if policies.load(session).book.paused:
        return None
    return proposals.move(session, p, By.nod("execute"), now, State.EXECUTING, lease_until=lease_until)


def finish(
    session: Session,
    /,
    claimed: Proposal,
    state: State,
    now: datetime,
    *,
    files: Sequence[File] = (),
    **changes: Any,
) -> tuple[Proposal, tuple[Job, ...]] | None:
    """Store how it ended (``SUCCEEDED`` or ``FAILED`` with its cause); None when the claim was lost."""
    p = proposals.move(session, claimed, By.nod(str(state)), now, state, **changes)
    if p is None:
        return None
    posts = (Job(Work.DELIVER, p.conversation_id),) if outputs.keep_result(session, p, files, now) else ()
    return p, (redraw(p), *settle(session, p, now), *posts)


def settle(session: Session, p: Proposal, now: datetime) -> tuple[Job, ...]:
    """When every call of an answer has ended, the conversation goes on; what no model called ends by itself.

    If it went on meanwhile, the model has already spoken past these calls, or is speaking in a turn that read
    them as they were: a note tells it how they ended.
    """
    if not p.called or proposals.has_unsettled(session, p.message_id):
        return ()
    goes_on, more = teamwork.settled(session, p, now) if p.teammate else (True, ())
    if not goes_on:
        return more
    resumed = turns.want_turn(session, p.conversation_id, now)
    if not resumed or messages.spoken_since(session, p.conversation_id, p.message_id):
        group = proposals.of_message(session, p.message_id)
        lines = "\n".join(f"- {one_line(each.description)}: {_indented(for_model(each))}" for each in group)
        messages.add_note(session, p.conversation_id, f"[Nod] What you proposed earlier:\n{lines}", now)
    return (Job(Work.TURN, p.conversation_id), *more)


def _indented(text: str) -> str:
    """A tool's answer in a note: none of its lines looks like one of the note's own."""
    return "\n    ".join(text.splitlines())


def abandon(session: Session, p: Proposal, now: datetime, *, rerun: bool) -> tuple[Job, ...]:
    """The process that ran it is gone: nobody knows how it ended.

    ``rerun``: the tool declared itself idempotent, so it runs again with the same key; else people decide.
    """
    error = "The process that ran it stopped before it heard the end."
    by = By.nod("abandoned", error)
    p = moved(proposals.move(session, p, by, now, State.FAILED, cause=Cause.OUTCOME_UNKNOWN, error=error))
    if not rerun:
        return (redraw(p), *settle(session, p, now))
    by = By.nod("rerun", "the tool is idempotent")
    p = moved(proposals.move(session, p, by, now, State.APPROVED, cause=None, error=None))
    return (redraw(p), Job(Work.EXECUTE, p.id))

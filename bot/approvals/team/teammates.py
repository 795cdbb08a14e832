"""Work of teammates: started, woken, ended. Each function is a part of one short transaction.

Their rows are read in ``bot/store/teams.py``. Plans, and the end of a teammate by force, are in
``bot/approvals/team/plans.py``.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, update
from sqlmodel import Session, col, select

from bot.approvals import grants
from bot.domain.conversations import Conversation, LineRole
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import bound_text, for_model
from bot.domain.people import Actor
from bot.domain.plans import MAX_ROUNDS
from bot.domain.proposals import Proposal, State
from bot.domain.record import Act
from bot.domain.teams import CHANNEL, OVER, Standing, TeamLimits, Teammate, name_of
from bot.domain.text import one_line, storable
from bot.errors import ToolError
from bot.store import conversations, messages, proposals, teams, turns
from bot.store.audit.log import By
from bot.store.locks import conversation_lock
from bot.store.tables.conversations import ConversationRow, MessageRow, TeammateRow

_LONGEST_RESULT = 8000


def spawn(
    session: Session,
    lead: Conversation,
    asker: Actor,
    *,
    role: str,
    task: str,
    tools: Sequence[str] | None,
    needs_plan: bool,
    call: str,
    limits: TeamLimits,
    now: datetime,
) -> tuple[Teammate, tuple[Job, ...]]:
    """Start a teammate: its row, its conversation with the task in it, and its first turn.

    ``call`` names the call that asks for it, the same each time; it gives the id, so the same call cannot
    start two. Raises ToolError where there are as many as there may be.
    """
    team = session.exec(select(TeammateRow).where(TeammateRow.lead_id == lead.id)).all()
    asked = _last_asked(session, lead.id)
    _check_room(team, asked, limits)
    ident = hashlib.sha256(call.encode()).hexdigest()[:16]
    name = name_of(role, [row.name for row in team])
    session.add(
        ConversationRow(
            id=ident,
            channel=CHANNEL,
            key=ident,
            private=lead.private,
            owner=str(asker),
            title=storable(f"{name}: {task}")[:80],
            created_at=now,
            shown_at=str(lead.origin),
        )
    )
    session.flush()
    row = TeammateRow(
        id=ident,
        lead_id=lead.id,
        place=str(lead.origin),
        name=name,
        role=storable(one_line(role)),
        task=storable(task),
        tools=list(tools) if tools is not None else None,
        needs_plan=needs_plan,
        position=len(team),
        asked=asked,
        standing=Standing.WORKING,
        created_at=now,
    )
    session.add(row)
    session.flush()
    jobs = send(session, ident, f"[Nod] Your task:\n{task}", asker, now)
    return teams.from_row(session, row), (*jobs, teams.mark_team_changed(session, lead.id, lead.origin))


def _last_asked(session: Session, lead_id: str) -> int:
    found = select(func.max(MessageRow.id)).where(
        MessageRow.conversation_id == lead_id, MessageRow.role == LineRole.USER
    )
    return session.exec(found).one() or 0


def _check_room(team: Sequence[TeammateRow], asked: int, limits: TeamLimits) -> None:
    """Raise ToolError when too many are at work, or were started for one request of a person."""
    at_work = sum(row.standing == Standing.WORKING for row in team)
    since = sum(row.asked == asked for row in team)
    if at_work >= limits.teammates:
        raise ToolError(
            f"{at_work} teammates are at work, which is the limit. Wait for one of them, or stop one."
        )
    if since >= limits.teammates:
        raise ToolError(
            f"You started {since} teammates for this request, which is the limit. "
            "Tell the person what you have."
        )


def lock_lead(session: Session, teammate: Teammate) -> None:
    """Lock the lead's turn before the teammate's own, in the order that the lead does, against deadlocks."""
    conversation_lock.in_conversation(session, teammate.id)
    turns.hold_wanted(session, teammate.lead_id)


def send(session: Session, teammate_id: str, text: str, asker: Actor, now: datetime) -> tuple[Job, ...]:
    """Send a message to a teammate and wake it; what it asks for from now on is on ``asker``'s behalf."""
    messages.add_note(session, teammate_id, text, now, actor=asker)
    turns.want_turn(session, teammate_id, now)
    return (Job(Work.TURN, teammate_id),)


def after_answer(
    session: Session, teammate: Teammate, text: str, now: datetime, *, silent: bool
) -> tuple[Job, ...]:
    """Handle a teammate's answer and return the jobs.

    ``silent``: it ended its turn, so the text is its result. While it has open proposals it is only waiting:
    their end wakes it again.
    """
    if silent and not proposals.open_in(session, teammate.id):
        return finish(session, teammate.id, Standing.DONE, text or "It ended without a word.", now)
    return (teams.mark_team_changed(session, teammate.lead_id),)


def finish(
    session: Session,
    teammate_id: str,
    standing: Standing,
    words: str,
    now: datetime,
    *,
    wake: bool = True,
    tell: bool = True,
) -> tuple[Job, ...]:
    """Bring a teammate to an end, and tell the lead agent; nothing when it was over before.

    ``wake`` False: the lead agent reads it when someone speaks to it next. ``tell`` False: it knows.
    """
    words = storable(bound_text(words, _LONGEST_RESULT))
    ended = session.execute(
        update(TeammateRow)
        .where(col(TeammateRow.id) == teammate_id, col(TeammateRow.standing).not_in(OVER))
        .values(standing=standing, words=words, ended_at=now)
        .returning(col(TeammateRow.lead_id), col(TeammateRow.name))
    ).one_or_none()
    if ended is None:
        return ()
    lead_id, name = ended
    grants.end_with_conversation(session, teammate_id, By.nod(Act.END_WITH_TEAMMATE), now)
    said = {
        Standing.DONE: "is done. Its result",
        Standing.FAILED: "failed. Why",
        Standing.STOPPED: "was stopped. Why",
    }[standing]
    note = f"[Nod] Teammate {name} {said}:\n{_quote(words)}"
    told = _to_lead(session, lead_id, note, now, wake=wake) if tell else ()
    return (*told, teams.mark_team_changed(session, lead_id))


def settle_answer(session: Session, p: Proposal, now: datetime) -> tuple[bool, tuple[Job, ...]]:
    """Handle the end of a teammate's calls. Return True if the teammate continues, and the jobs."""
    found = teams.get(session, p.conversation_id)
    if found is None:
        return True, ()
    if found.over:
        if p.state not in (State.SUCCEEDED, State.FAILED):
            return False, ()
        text = f"[Nod] What teammate {found.name} had proposed: {p.description}: {for_model(p)}"
        return False, _to_lead(session, found.lead_id, text, now)
    if p.kind.has_steps and p.state is State.DECLINED and found.rounds >= MAX_ROUNDS:
        words = f"It submitted {MAX_ROUNDS} plans and none was approved. The last reason: {p.decline_reason}"
        return False, finish(session, found.id, Standing.STOPPED, words, now)
    return True, (teams.mark_team_changed(session, found.lead_id),)


def resume_work(session: Session, p: Proposal) -> tuple[Job, ...]:
    """Set a finished teammate to work again after its proposal was opened again."""
    if not p.teammate:
        return ()
    lead_id = session.execute(
        update(TeammateRow)
        .where(col(TeammateRow.id) == p.conversation_id, col(TeammateRow.standing) == Standing.DONE)
        .values(standing=Standing.WORKING, words="", ended_at=None)
        .returning(col(TeammateRow.lead_id))
    ).scalar_one_or_none()
    if lead_id:
        return (teams.mark_team_changed(session, lead_id),)
    return ()


def request_review(
    session: Session, teammate: Teammate, p: Proposal, why: str, now: datetime, *, wake: bool = True
) -> tuple[Job, ...]:
    """Ask the lead agent to look at a plan; ``wake`` False: once it speaks again."""
    shown = "\n".join(f"{f.field}: {f.new_value or 'gone'}" for f in p.preview)
    text = (
        f"[Nod] Version {teammate.rounds} of the plan of teammate {teammate.name} {why}. Review it with "
        f"plan_review:\n{_quote(shown)}"
    )
    return _to_lead(session, teammate.lead_id, text, now, wake=wake)


def _to_lead(
    session: Session, lead_id: str, text: str, now: datetime, *, wake: bool = True
) -> tuple[Job, ...]:
    """Send a note to the lead agent, unless its conversation has ended."""
    lead = conversations.get_conversation(session, lead_id)
    if lead is None or lead.ended_at is not None:
        return ()
    messages.add_note(session, lead_id, text, now)
    if not wake:
        return ()
    turns.want_turn(session, lead_id, now)
    return (Job(Work.TURN, lead_id),)


def _quote(text: str) -> str:
    """Quote a text of another agent, each line marked so that it can't imitate Nod's own."""
    return "\n".join(f"> {line}" for line in text.splitlines())

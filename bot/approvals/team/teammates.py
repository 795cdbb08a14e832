"""The work of teammates: how they are started, woken and ended. Each function is part of one transaction.

A teammate is an agent that the lead agent of a conversation starts for a part of the work. It has a
conversation of its own, which begins with its task and which people don't read. It is woken by a note there,
which gives it a turn. When it ends, the lead agent is told the result by a note. Rows of teammates are read
in ``bot/store/teams.py``. Their plans, and stopping them, are in ``bot/approvals/team/plans.py``.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, update
from sqlmodel import Session, col, select

from bot.approvals import grants
from bot.domain.audit import Act
from bot.domain.conversations import Conversation, LineRole
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import bound_text, for_model
from bot.domain.people import Actor
from bot.domain.plans import MAX_SUBMITTED_PLANS
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.teams import CHANNEL, OVER, TeamLimits, Teammate, TeammateState, make_teammate_name
from bot.domain.text import one_line, replace_unstorable
from bot.errors import ToolError
from bot.store import conversations, messages, proposals, teams, turns
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.tables.conversations import ConversationRow, MessageRow, TeammateRow

_MAX_RESULT_CHARS = 8000
_ID_CHARS = 16
_TITLE_CHARS = 80
_END_PHRASES = {
    TeammateState.DONE: "is done. Its result",
    TeammateState.FAILED: "failed. Why",
    TeammateState.STOPPED: "was stopped. Why",
}
"""The words between a teammate's name and the text about its end, in the note to the lead agent."""


class SettledAnswer(NamedTuple):
    """What follows the end of all calls of a teammate's answer."""

    continues: bool  # True if the teammate is to continue with a turn
    jobs: tuple[Job, ...]


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
    """Start a teammate: store its row and its conversation with the task, and request its first turn.

    ``tools``: the names of its tools, None for all. ``needs_plan``: it may only look around until its plan is
    approved. ``call``: the id of the call that asks for the teammate. The teammate's id is made of it, so one
    call can't start two teammates. Raises ToolError if there are as many teammates as allowed.
    """
    team = session.exec(select(TeammateRow).where(TeammateRow.lead_id == lead.id)).all()
    request_id = _find_last_request(session, lead.id)
    _check_limits(team, request_id, limits)
    ident = hashlib.sha256(call.encode()).hexdigest()[:_ID_CHARS]
    name = make_teammate_name(role, [row.name for row in team])
    session.add(
        ConversationRow(
            id=ident,
            channel=CHANNEL,
            key=ident,
            private=lead.private,
            owner=str(asker),
            title=replace_unstorable(f"{name}: {task}")[:_TITLE_CHARS],
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
        role=replace_unstorable(one_line(role)),
        task=replace_unstorable(task),
        tools=list(tools) if tools is not None else None,
        needs_plan=needs_plan,
        position=len(team),
        asked=request_id,
        standing=TeammateState.WORKING,
        created_at=now,
    )
    session.add(row)
    session.flush()
    jobs = send(session, ident, f"[Nod] Your task:\n{task}", asker, now)
    return teams.from_row(session, row), (*jobs, teams.mark_team_changed(session, lead.id, lead.origin))


def _find_last_request(session: Session, lead_id: str) -> int:
    """Return the id of the last message of a person in a conversation, or 0."""
    last = select(func.max(MessageRow.id)).where(
        MessageRow.conversation_id == lead_id, MessageRow.role == LineRole.USER
    )
    return session.exec(last).one() or 0


def _check_limits(team: Sequence[TeammateRow], request_id: int, limits: TeamLimits) -> None:
    """Raise ToolError if too many teammates are at work, or were started for one request of a person."""
    at_work = [row for row in team if row.standing == TeammateState.WORKING]
    if len(at_work) >= limits.teammates:
        raise ToolError(
            f"{len(at_work)} teammates are at work, which is the limit. Wait for one of them, or stop one."
        )
    for_request = [row for row in team if row.asked == request_id]
    if len(for_request) >= limits.teammates:
        raise ToolError(
            f"You started {len(for_request)} teammates for this request, which is the limit. "
            "Tell the person what you have."
        )


def lock_lead(session: Session, teammate: Teammate) -> None:
    """Lock the row of the lead agent's turn, before the row of the teammate's own turn is locked.

    A transaction of the lead agent locks in the same order, so the two never wait for each other.
    """
    # first the teammate's conversation, then the row of the lead agent's turn
    conversation_lock.lock_conversation(session, teammate.id)
    turns.lock_wanted_turn(session, teammate.lead_id)


def send(session: Session, teammate_id: str, text: str, asker: Actor, now: datetime) -> tuple[Job, ...]:
    """Send a message to a teammate and wake it. From now on it works on behalf of ``asker``."""
    messages.add_note(session, teammate_id, text, now, actor=asker)
    turns.request_turn(session, teammate_id, now)
    return (Job(Work.TURN, teammate_id),)


def handle_answer(
    session: Session, teammate: Teammate, text: str, now: datetime, *, is_done: bool
) -> tuple[Job, ...]:
    """Handle a teammate's answer (``text``), and return the jobs.

    ``is_done``: the answer ends the teammate's turn. Then the teammate is done, and the text is its result. A
    teammate with open proposals is not done: it waits, and their end wakes it again.
    """
    if is_done and not proposals.list_open_in(session, teammate.id):
        return finish(session, teammate.id, TeammateState.DONE, text or "It ended without a word.", now)
    return (teams.mark_team_changed(session, teammate.lead_id),)


def finish(
    session: Session,
    teammate_id: str,
    standing: TeammateState,
    end_text: str,
    now: datetime,
    *,
    wake_lead: bool = True,
    tell_lead: bool = True,
) -> tuple[Job, ...]:
    """End a teammate, and tell the lead agent. Nothing happens if the teammate has ended before.

    ``end_text``: the result, or the reason for the end. ``tell_lead``: add a note for the lead agent, which
    does not know of the end yet. ``wake_lead``: give the lead agent a turn for that immediately; otherwise it
    reads the note in its next turn.
    """
    end_text = replace_unstorable(bound_text(end_text, _MAX_RESULT_CHARS))
    ended = session.execute(
        update(TeammateRow)
        .where(col(TeammateRow.id) == teammate_id, col(TeammateRow.standing).not_in(OVER))
        .values(standing=standing, words=end_text, ended_at=now)
        .returning(col(TeammateRow.lead_id), col(TeammateRow.name))
    ).one_or_none()
    if ended is None:
        return ()
    lead_id, name = ended
    grants.end_with_conversation(session, teammate_id, Author.of_nod(Act.END_WITH_TEAMMATE), now)
    jobs: list[Job] = []
    if tell_lead:
        note = f"[Nod] Teammate {name} {_END_PHRASES[standing]}:\n{_quote(end_text)}"
        jobs += _tell_lead(session, lead_id, note, now, wake=wake_lead)
    return (*jobs, teams.mark_team_changed(session, lead_id))


def settle_answer_of_teammate(session: Session, proposal: Proposal, now: datetime) -> SettledAnswer:
    """Handle the end of all calls of a teammate's answer, of which ``proposal`` ended last.

    A teammate that has ended does not continue. If one of its calls ended after it, the lead agent is told
    the outcome. A teammate that may submit no further plan is stopped.
    """
    teammate = teams.get(session, proposal.conversation_id)
    if teammate is None:
        return SettledAnswer(continues=True, jobs=())
    if teammate.has_ended:
        # the call did not run: there is nothing to tell
        if proposal.state not in (State.SUCCEEDED, State.FAILED):
            return SettledAnswer(continues=False, jobs=())
        text = (
            f"[Nod] What teammate {teammate.name} had proposed: {proposal.description}: {for_model(proposal)}"
        )
        return SettledAnswer(continues=False, jobs=_tell_lead(session, teammate.lead_id, text, now))
    # ``rounds``: the number of plans that the teammate has submitted
    if (
        proposal.kind.has_steps
        and proposal.state is State.DECLINED
        and teammate.rounds >= MAX_SUBMITTED_PLANS
    ):
        count = MAX_SUBMITTED_PLANS
        why = f"It submitted {count} plans and none was approved. The last reason: {proposal.decline_reason}"
        jobs = finish(session, teammate.id, TeammateState.STOPPED, why, now)
        return SettledAnswer(continues=False, jobs=jobs)
    return SettledAnswer(continues=True, jobs=(teams.mark_team_changed(session, teammate.lead_id),))


def resume_work(session: Session, proposal: Proposal) -> tuple[Job, ...]:
    """Set a teammate that is done to work again, after its proposal ``proposal`` was opened again."""
    if not proposal.teammate:
        return ()
    lead_id = session.execute(
        update(TeammateRow)
        .where(
            col(TeammateRow.id) == proposal.conversation_id, col(TeammateRow.standing) == TeammateState.DONE
        )
        .values(standing=TeammateState.WORKING, words="", ended_at=None)
        .returning(col(TeammateRow.lead_id))
    ).scalar_one_or_none()
    if lead_id:
        return (teams.mark_team_changed(session, lead_id),)
    return ()


def request_review(
    session: Session, teammate: Teammate, plan: Proposal, event: str, now: datetime, *, wake_lead: bool = True
) -> tuple[Job, ...]:
    """Ask the lead agent to review a teammate's plan.

    ``event``: what happened to the plan, such as "was submitted". ``wake_lead``: as in `finish`.
    """
    plan_text = "\n".join(f"{field.field}: {field.new_value or 'gone'}" for field in plan.preview)
    # ``rounds``: the number of plans that the teammate has submitted, this one included
    text = (
        f"[Nod] Version {teammate.rounds} of the plan of teammate {teammate.name} {event}. Review it with "
        f"plan_review:\n{_quote(plan_text)}"
    )
    return _tell_lead(session, teammate.lead_id, text, now, wake=wake_lead)


def _tell_lead(
    session: Session, lead_id: str, text: str, now: datetime, *, wake: bool = True
) -> tuple[Job, ...]:
    """Send a note to the lead agent, unless its conversation has ended. ``wake``: give it a turn for that."""
    lead = conversations.get_conversation(session, lead_id)
    if lead is None or lead.ended_at is not None:
        return ()
    messages.add_note(session, lead_id, text, now)
    if not wake:
        return ()
    turns.request_turn(session, lead_id, now)
    return (Job(Work.TURN, lead_id),)


def _quote(text: str) -> str:
    """Quote a text of another agent, each line marked so that it can't imitate Nod's own."""
    return "\n".join(f"> {line}" for line in text.splitlines())

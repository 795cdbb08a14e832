"""Teammates as rows, and the rows of the message that shows a conversation's team.

A teammate is a sub-agent with a conversation of its own, which has the same id. The *lead* is here the
conversation that started it, and a team is named by the id of its lead. Teammates are started and ended in
``bot/approvals/team/teammates.py``. The message has a table of its own, since it belongs to a conversation
and not to a proposal, as cards do. Like a copy of a card, it is *outdated* while ``rendered < wanted``: it
was drawn before the team's newest change.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy import func, update
from sqlmodel import Session, col, select

from bot.domain.chat import Address
from bot.domain.conversations import LineRole, Transcript, Turn
from bot.domain.jobs import Job, Work
from bot.domain.proposal_states import SETTLED
from bot.domain.proposals import Proposal
from bot.domain.teams import Teammate, TeammateState, TeamStatus
from bot.errors import ToolError
from bot.store import conversations, proposals, transcripts, turns
from bot.store.inserts import insert_or_ignore
from bot.store.tables.conversations import MessageRow, TeammateRow, TeamStatusRow, TurnRow
from bot.store.tables.row import is_at_or_below, table_of, value_of

_MAX_ACTIVITY_CHARS = 300
_MAX_LISTED = 50
_TABLE = table_of(TeamStatusRow)
_IS_OUTDATED = (_TABLE.c.rendered < _TABLE.c.wanted) & ~_TABLE.c.gone  # the index ``board_behind``


def read_transcript(session: Session, conversation_id: str) -> Transcript | None:
    """Return the transcript of a conversation, with its teammate if it belongs to one."""
    transcript = transcripts.read_transcript(session, conversation_id)
    if transcript:
        return _with_teammate(session, transcript)
    return None


def load_turn(session: Session, conversation_id: str) -> Turn | None:
    """Return the wanted turn of a conversation, with its teammate if it belongs to one, or None."""
    turn = turns.load_turn(session, conversation_id)
    if turn:
        return replace(turn, transcript=_with_teammate(session, turn.transcript))
    return None


def _with_teammate(session: Session, transcript: Transcript) -> Transcript:
    if transcript.conversation.shown_at is None:
        return transcript
    return replace(transcript, teammate=get(session, transcript.conversation.id))


def get(session: Session, conversation_id: str) -> Teammate | None:
    """Return the teammate with this conversation, or None."""
    row = session.get(TeammateRow, conversation_id)
    if row:
        return from_row(session, row)
    return None


def get_by_name(session: Session, lead_id: str, name: str) -> Teammate:
    """Return the teammate of that name. Raises ToolError, which lists the names that exist."""
    team = list_of_lead(session, lead_id)
    found = next((teammate for teammate in team if teammate.name == name.strip()), None)
    if found is None:
        there = ", ".join(teammate.name for teammate in team) or "none yet"
        raise ToolError(f"There is no teammate called {name!r} here. There are: {there}.")
    return found


def list_of_lead(session: Session, lead_id: str) -> list[Teammate]:
    """Return the teammates of a conversation, in the order they were started."""
    rows = session.exec(
        select(TeammateRow).where(TeammateRow.lead_id == lead_id).order_by(col(TeammateRow.position))
    )
    return [from_row(session, row) for row in rows]


def load_status(session: Session, lead_id: str) -> TeamStatus:
    """Return the status of a team, as its message shows it."""
    return TeamStatus(lead_id, tuple(list_of_lead(session, lead_id)))


def list_at(session: Session, place: str | None) -> list[Teammate]:
    """Return the newest teammates at a place or below it (None: anywhere), the oldest of these first."""
    newest = select(TeammateRow).order_by(
        col(TeammateRow.created_at).desc(), col(TeammateRow.position).desc()
    )
    if place is not None:
        newest = newest.where(is_at_or_below(col(TeammateRow.place), place))
    rows = session.exec(newest.limit(_MAX_LISTED)).all()
    return [from_row(session, row) for row in reversed(rows)]


def find_lead_conversation(session: Session, proposal: Proposal) -> str:
    """Return the id of the conversation that people read: for a teammate's proposal, the lead agent's."""
    found = get(session, proposal.conversation_id) if proposal.teammate else None
    if found:
        return found.lead_id
    return proposal.conversation_id


def find_run_hindrance(session: Session, teammate_id: str) -> str | None:
    """Return why no call of a teammate may run now, in words; None if calls may run."""
    found = get(session, teammate_id)
    if found is None or found.has_ended:
        return "The teammate that asked for it was stopped or failed, so it won't run."
    if found.locked:
        return f"{found.name} is locked: it has no approved plan."
    return None


def find_repeat_hindrance(session: Session, proposal: Proposal) -> str | None:
    """Return why people can't be asked again about an expired proposal of a teammate; None if they can."""
    found = get(session, proposal.conversation_id)
    if found is None or found.has_ended:
        return "The teammate that asked for it was stopped or failed."
    lead = conversations.get_conversation(session, found.lead_id)
    if lead is None or lead.ended_at is not None:
        return "The conversation that its teammate worked for has ended."
    if proposal.kind.has_steps and found.plan is not None and found.plan.id != proposal.id:
        return "A newer version of the plan took its place."
    return None


def from_row(session: Session, row: TeammateRow) -> Teammate:
    """Return the teammate with its plan, its open proposals, its activity and its usage."""
    own_proposals = proposals.list_of_conversation(session, row.id)
    calls, prompt, completion = session.exec(
        select(
            func.coalesce(func.sum(TurnRow.model_calls), 0),
            func.coalesce(func.sum(TurnRow.prompt_tokens), 0),
            func.coalesce(func.sum(TurnRow.completion_tokens), 0),
        ).where(TurnRow.conversation_id == row.id)
    ).one()
    return value_of(
        Teammate,
        row,
        tools=tuple(row.tools) if row.tools is not None else None,
        stored_state=TeammateState(row.standing),
        outcome=row.words,
        asking_line_id=row.asked,
        plan=next((proposal for proposal in own_proposals if proposal.id == row.plan_id), None),
        waits_for=tuple(proposal for proposal in own_proposals if proposal.state not in SETTLED),
        activity=_describe_activity(session, row.id),
        model_calls=int(calls),
        tokens=int(prompt) + int(completion),
    )


def _describe_activity(session: Session, conversation_id: str) -> str:
    """Return the last calls of a conversation in words, or its last text."""
    found: Any = session.exec(
        select(MessageRow.text, MessageRow.calls)
        .where(MessageRow.conversation_id == conversation_id, MessageRow.role == LineRole.ASSISTANT)
        .order_by(col(MessageRow.id).desc())
        .limit(1)
    ).one_or_none()
    if found is None:
        return ""
    activity, calls = found
    if calls:
        # the order of a stored call, as in `messages.call_to_json`
        activity = ", ".join(summary for _id, _tool, _arguments, summary, *_ in calls)
    return str(activity)[:_MAX_ACTIVITY_CHARS]


def mark_team_changed(session: Session, lead_id: str, origin: Address | None = None) -> Job:
    """Mark a team's message as outdated, and return the job that redraws it.

    ``origin``: the address for a first message, if none was posted.
    """
    if origin is not None:
        fresh = insert_or_ignore(session, TeamStatusRow).values(
            lead_id=lead_id, channel=origin.channel, key=origin.key, ref="", wanted=0, rendered=0, gone=False
        )
        session.execute(fresh)
    session.execute(
        update(TeamStatusRow)
        .where(col(TeamStatusRow.lead_id) == lead_id)
        .values(wanted=TeamStatusRow.wanted + 1)
    )
    return Job(Work.TEAM, lead_id)


def find_outdated_message(session: Session, lead_id: str) -> TeamStatusRow | None:
    """Return the row of a team's message if the message is outdated, or None."""
    outdated = select(TeamStatusRow).where(TeamStatusRow.lead_id == lead_id, _IS_OUTDATED)
    return session.exec(outdated).one_or_none()


def list_with_outdated_message(session: Session) -> list[str]:
    """Return the ids of the lead conversations whose team's message is outdated."""
    return list(session.exec(select(TeamStatusRow.lead_id).where(_IS_OUTDATED)))


def mark_shown(session: Session, row: TeamStatusRow, ref: str) -> bool:
    """Store that the message ``ref`` shows the team as it was read with ``row``.

    Returns True if the team has changed since then, so that the message is outdated again.
    """
    shown = update(_TABLE).where(_TABLE.c.lead_id == row.lead_id).values(rendered=row.wanted, ref=ref)
    wanted = session.connection().execute(shown.returning(_TABLE.c.wanted)).scalar()
    return wanted is not None and wanted != row.wanted


def mark_gone(session: Session, row: TeamStatusRow) -> None:
    session.execute(update(TeamStatusRow).where(col(TeamStatusRow.lead_id) == row.lead_id).values(gone=True))

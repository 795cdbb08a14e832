"""The answer of the agent all of whose calls have ended: it is *settled*, and the conversation continues."""

from datetime import datetime

from sqlmodel import Session

from bot.approvals.team import teammates
from bot.domain.jobs import Job, Work
from bot.domain.outcomes import EARLIER, for_model
from bot.domain.proposals import Proposal
from bot.domain.text import one_line
from bot.store import conversations, messages, proposals, turns


def settle_answer(
    session: Session, proposal: Proposal, now: datetime, turn_process: str = ""
) -> tuple[Job, ...]:
    """Continue the conversation once every call of the answer that made ``proposal`` has ended.

    Returns the jobs, of which one gives the agent a turn. Only a proposal that a model's call led to
    continues anything. ``turn_process``: as in `finish`.

    The conversation may have continued since: the model has answered, or a turn is under way that began while
    these calls were open. Then a note tells the model how they ended.
    """
    if not proposal.is_from_model:
        return ()
    progress = conversations.find_progress(session, proposal.conversation_id, proposal.message_id)
    if progress.is_unsettled:
        return ()
    continues = True
    team_jobs: tuple[Job, ...] = ()
    if proposal.teammate:
        continues, team_jobs = teammates.settle_answer_of_teammate(session, proposal, now)
    if not continues:
        return team_jobs
    is_new_turn = turns.request_turn(session, proposal.conversation_id, now, turn_process)
    if not is_new_turn or progress.has_continued:
        calls = proposals.list_of_message(session, proposal.message_id)
        lines = "\n".join(f"- {one_line(call.description)}: {_indent(for_model(call))}" for call in calls)
        messages.add_note(session, proposal.conversation_id, f"[Nod] {EARLIER}\n{lines}", now)
    return (Job(Work.TURN, proposal.conversation_id), *team_jobs)


def _indent(text: str) -> str:
    """Indent all lines but the first, so that none imitates a line of the note."""
    return "\n    ".join(text.splitlines())

"""Runs and questions whose *owner*, the process at work on them, lives no longer.

The owner of a run is the process that claimed it; that of a question, the process that waits for its answer.
"""

from sqlalchemy import select, text
from sqlmodel import Session

from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.store import processes
from bot.store.proposal_rows import from_row
from bot.store.proposals import SELECT_PROPOSALS
from bot.store.tables.proposals import OPEN_QUESTION, ProposalRow
from bot.store.tables.row import table_of

_TABLE = table_of(ProposalRow)


def list_abandoned_runs(session: Session, process: str) -> list[Proposal]:
    """Return the executing proposals that no living process owns, and those that this ``process`` owns.

    The caller knows which of the calls of its own process still run.
    """
    is_own = _TABLE.c.owner == process
    is_abandoned = processes.has_no_living_owner(_TABLE.c.owner, process)
    query = SELECT_PROPOSALS.where(_TABLE.c.state == State.EXECUTING, is_own | is_abandoned)
    return [from_row(row) for row in session.connection().execute(query)]


def list_abandoned_questions(session: Session, process: str) -> list[str]:
    """Return the ids of open questions of tools' servers that no living process waits for.

    ``process``: the id of the process that asks, which counts as living.
    """
    is_abandoned = processes.has_no_living_owner(_TABLE.c.owner, process)
    is_of_server = _TABLE.c.call_id == ""  # a question of the agent has the id of its call
    query = select(_TABLE.c.id).where(text(OPEN_QUESTION), is_of_server, is_abandoned)
    return list(session.connection().execute(query).scalars())

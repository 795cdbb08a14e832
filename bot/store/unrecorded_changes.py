"""Changes of proposals without a new version and without a row in the audit log.

These are the progress of a run, the end of the time for Undo, and the process that waits for an answer. All
other changes are in ``bot/store/transitions.py`` and ``bot/store/requirements.py``.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, update
from sqlmodel import Session

from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.text import replace_unstorable
from bot.store.outdated_cards import IS_POSTED, make_card_parameters, mark_cards_outdated
from bot.store.tables.proposals import CopyRow, ProposalRow
from bot.store.tables.row import table_of

_TABLE = table_of(ProposalRow)
_COPIES = table_of(CopyRow)
_STORE_PROGRESS = (
    update(_TABLE)
    .where(
        _TABLE.c.id == bindparam("changed_id"),
        _TABLE.c.state == bindparam("running"),
        _TABLE.c.version == bindparam("claimed_version"),
    )
    .values(progress=bindparam("progress"))
    .returning(IS_POSTED)
)


def store_progress(session: Session, claimed: Proposal, text: str) -> bool:
    """Store the progress of a run; return False if that run is over.

    - ``claimed``: the proposal as the claim of the run left it
    - ``text``: the progress, as the tool reports it to people
    """
    parameters = make_card_parameters(claimed) | {
        "running": State.EXECUTING,
        "claimed_version": claimed.version,
        "progress": replace_unstorable(text),
    }
    changed_row = session.connection().execute(_STORE_PROGRESS, parameters).first()
    if changed_row is None:
        return False
    if changed_row.is_posted:
        mark_cards_outdated(session, claimed)
    return True


def end_undo(session: Session, proposal_ids: Sequence[str]) -> None:
    """End the time for Undo, and mark the posted cards of these proposals as outdated."""
    end_time = update(_TABLE).where(_TABLE.c.id.in_(proposal_ids)).values(undo_until=None)
    session.connection().execute(end_time)
    mark_outdated = update(_COPIES).where(_COPIES.c.proposal_id.in_(proposal_ids))
    session.connection().execute(mark_outdated.values(wanted=_COPIES.c.wanted + 1))


def store_waiting_process(session: Session, proposal_id: str, process: str) -> None:
    """Store the process (by its id) that waits for the answer to a question of a tool's server."""
    session.connection().execute(update(_TABLE).where(_TABLE.c.id == proposal_id).values(owner=process))

"""The verification of the audit log, and the anchors to keep outside the database.

Every row of the log is a link of one hash chain (``bot/store/audit/chain.py``). Rows about proposals are
made in ``bot/store/audit/log.py``, rows about other changes in ``bot/store/audit/admin_changes.py``. An
*anchor* is the number and the hash of the newest row: kept outside the database, it proves later that the
rows up to it are still the same.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import func
from sqlmodel import Session, select

import bot.store.migrations.schema  # noqa: F401 - the checks cover all tables, also those of features
from bot.domain.progress import Abandoned, Counter, Progress, ignore_progress
from bot.store.audit import admin_changes, chain, chain_check, log
from bot.store.state import load_task_state, store_task_state
from bot.store.tables.audit import AuditRow, LedgerRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

ANCHOR_EVERY = timedelta(hours=1)
"""The least time between two anchors that are due."""
_ANCHOR_TASK = "audit anchor"  # the name of the recurring task that remembers the last anchor
_AUDIT = table_of(AuditRow)
_LEDGER = table_of(LedgerRow)
_PROPOSAL = table_of(ProposalRow)


def describe_intact(session: Session) -> str:
    """Return the sentence for people on a log in which no faults were found."""
    older = chain.count_unsealed(session)
    note = f" Rows 1 to {older} are older than the seal." if older else ""
    return f"Audit log verified: nothing missing or altered.{note}"


def find_faults_in_session(
    session: Session, anchors: Sequence[str] = (), progress: Progress = ignore_progress
) -> list[str]:
    """Return the faults that `find_faults` finds, over the snapshot of this session."""
    return find_faults(lambda function: function(session), anchors, progress)


def find_faults(
    read: chain_check.SnapshotReader, anchors: Sequence[str] = (), progress: Progress = ignore_progress
) -> list[str]:
    """Return a sentence on each row that was changed, removed or inserted without a record; empty for none.

    ``read`` runs functions over one snapshot or several, since a long log takes long. ``anchors``: anchors of
    the log that were kept outside the database (`chain.make_anchor`); raises NodError for any other text.
    ``progress`` receives the number of checks so far and of all checks; some rows have several.
    """
    checks = (chain_check.find_chain_faults, log.find_altered_proposals, admin_changes.find_unrecorded_rows)
    found: list[str] = []
    counter = Counter(0 if progress is ignore_progress else read(_count_checks), progress)
    for check in checks:
        try:
            found += check(read, counter)
        except Abandoned:
            raise
        except Exception as error:  # noqa: BLE001 - whatever was written over a cell, it is a finding
            found.append(f"there is a value that no release of Nod wrote ({type(error).__name__}: {error})")
    for anchor in anchors:
        contradiction = read(partial(chain.find_contradiction, anchor=anchor))
        if contradiction:
            found.append(contradiction)
    return found


def _count_checks(session: Session) -> int:
    """Return how many rows the checks of `find_faults` read; one that two checks read counts twice.

    - `chain_check.find_chain_faults` reads all rows of both tables
    - `log.find_altered_proposals` reads the proposals
    - `admin_changes.find_unrecorded_rows` reads the rows with a request (``about``) or hashes (``holds``)
    """
    counts = (
        func.count(_AUDIT.c.id) + func.count(_AUDIT.c.about),
        func.count(_LEDGER.c.id) + func.count(_LEDGER.c.holds),
        func.count(_PROPOSAL.c.id),
    )
    return sum(int(session.execute(select(count)).scalar_one()) for count in counts)


def take_due_anchor(session: Session, now: datetime) -> str | None:
    """Return the anchor to keep elsewhere now, and remember it.

    None within `ANCHOR_EVERY` after the last one, or without new rows.
    """
    last = load_task_state(session, _ANCHOR_TASK)
    anchor = chain.make_anchor(session)
    if anchor is None or last.get("anchor") == anchor:
        return None
    if last and now - datetime.fromisoformat(last["at"]) < ANCHOR_EVERY:
        return None
    store_task_state(session, _ANCHOR_TASK, last, {"anchor": anchor, "at": now.isoformat()})
    return anchor

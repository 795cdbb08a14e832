"""Locks for transactions that read before they decide: on a conversation, or on everything.

Only on PostgreSQL; SQLite has one writer. A transaction that decides or moves proposals locks the
conversation and its team: so if the proposals of an answer end at the same time, one transaction knows that
it ended the last. A transaction that changes rules or links of accounts locks everything: so nothing is
decided by a rule after its change was recorded. A lock is taken before any row is locked, so that no two
transactions wait for each other, and held until the transaction ends.
"""

from typing import Any

from sqlalchemy import bindparam, func, literal_column, select
from sqlmodel import Session

from bot.store.tables.conversations import TeammateRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import table_of

_HELD_KEY = "exclusive in"  # the key of a session's ``info`` for the ids of locked conversations
_EVERYWHERE = ""  # stands among these ids, and in the name of the lock, for the lock on everything

_PROPOSAL = table_of(ProposalRow)
_TEAMMATE = table_of(TeammateRow)
_CONVERSATION_ID = bindparam("conversation_id", type_=_TEAMMATE.c.id.type)
_LEAD_ID = select(_TEAMMATE.c.lead_id).where(_TEAMMATE.c.id == _CONVERSATION_ID).scalar_subquery()


def _number(name: Any) -> Any:
    """Return the number of the PostgreSQL advisory lock of this name.

    Each schema of a database is an installation with numbers of its own.
    """
    words = func.concat(
        literal_column("'nod exclusive '"), func.current_schema(), literal_column("' '"), name
    )
    return func.hashtextextended(words, literal_column("0"))


# A transaction that locks a conversation also takes the lock on everything, but shares it. So the lock on
# everything excludes all of these transactions, and they don't exclude one another.
_EVERYTHING = _number(literal_column(f"'{_EVERYWHERE}'"))
_LOCK_EVERYTHING_SHARED = func.pg_advisory_xact_lock_shared(_EVERYTHING)
_LOCK_EVERYTHING = select(func.pg_advisory_xact_lock(_EVERYTHING))
_LOCK_CONVERSATION = select(
    _LOCK_EVERYTHING_SHARED, func.pg_advisory_xact_lock(_number(func.coalesce(_LEAD_ID, _CONVERSATION_ID)))
)
_LOCK_CONVERSATION_OF_PROPOSAL = (
    select(
        _PROPOSAL.c.conversation_id,
        _LOCK_EVERYTHING_SHARED,
        func.pg_advisory_xact_lock(_number(func.coalesce(_TEAMMATE.c.lead_id, _PROPOSAL.c.conversation_id))),
    )
    .outerjoin_from(_PROPOSAL, _TEAMMATE, _TEAMMATE.c.id == _PROPOSAL.c.conversation_id)
    .where(_PROPOSAL.c.id == bindparam("proposal_id"))
)


def lock_everything(session: Session) -> None:
    """Lock everything: all decisions wait until this transaction ends."""
    held = _find_held(session)
    if held is not None and _EVERYWHERE not in held:
        session.connection().execute(_LOCK_EVERYTHING, {})
        held.add(_EVERYWHERE)


def lock_conversation(session: Session, conversation_id: str) -> None:
    """Lock a conversation and its team: their decisions wait until this transaction ends."""
    held = _find_held(session)
    if held is not None and not held & {_EVERYWHERE, conversation_id}:
        session.connection().execute(_LOCK_CONVERSATION, {"conversation_id": conversation_id})
        held.add(conversation_id)


def lock_conversation_of(session: Session, proposal_id: str) -> None:
    """Lock the conversation of a proposal, if there is one, like `lock_conversation`."""
    held = _find_held(session)
    if held is not None:
        values = {"proposal_id": proposal_id}
        row = session.connection().execute(_LOCK_CONVERSATION_OF_PROPOSAL, values).first()
        if row is not None:
            held.add(row.conversation_id)


def _find_held(session: Session) -> set[str] | None:
    """Return the conversations that this transaction has locked; None on SQLite, which needs no locks."""
    if session.connection().dialect.name != "postgresql":
        return None
    held: set[str] = session.info.setdefault(_HELD_KEY, set())
    return held

"""Trials as rows: the tried calls, their outcomes, and the content that an approval applies.

A trial runs a call in a closed copy before people decide (``bot/domain/trials.py``). Its beginning and its
end are rows of the audit log, by which the trials of a person are counted and limited. What the trial would
change is kept here as one text, its *token*, with the hash of the text as the key. The proposal has the hash,
so an approval applies exactly that text.

Every function runs in the transaction of its session.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Index, Text, bindparam, literal_column, select
from sqlmodel import Field, Session
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.audit import Act
from bot.domain.people import Actor
from bot.domain.text import hash_text
from bot.domain.trials import MAX_CONCURRENT, MAX_PER_HOUR
from bot.errors import TooManyCalls
from bot.store import people
from bot.store.audit import admin_changes, chain
from bot.store.audit.admin_changes import Thing
from bot.store.inserts import insert_or_ignore
from bot.store.locks import conversation_lock
from bot.store.processes import ProcessRow
from bot.store.tables.audit import LedgerRow
from bot.store.tables.row import Row, delete_older, table_of

_HOUR = timedelta(hours=1)
_LEDGER = table_of(LedgerRow)
_LIVING_PROCESSES = select(table_of(ProcessRow).c.id)
_IS_TRIAL = _LEDGER.c.thing == literal_column(f"'{Thing.TRIAL}'")
_RECENT = (
    select(_LEDGER.c.key, _LEDGER.c.verb, _LEDGER.c.tool, _LEDGER.c.after)
    .where(_IS_TRIAL, _LEDGER.c.actor.in_(bindparam("accounts", expanding=True)))
    .where(_LEDGER.c.at > bindparam("since"))
)


class TrialTokenRow(Row, table=True):
    """A token: the changes that an approval of a trial applies, as a text of the tool's own."""

    __tablename__ = "trial_token"
    __table_args__ = (Index("trial_token_created", "created_at"),)

    id: str = Field(primary_key=True)  # the hash of the content
    content: str = Field(sa_type=Text)
    created_at: datetime = Field(sa_type=UTCDateTime)


def begin_trial(
    session: Session, asker: Actor, tool: str, facts: Mapping[str, Any], process: str, now: datetime
) -> str | None:
    """Record that a trial begins, and return its key; None while this person has too many under way.

    ``facts``: the facts on the call for the record. ``process``: the id of the process that runs the trial.
    An earlier trial that no living process runs is recorded as ended. Raises TooManyCalls for too many trials
    within an hour.
    """
    person = people.load_person(session, asker)
    # the lock takes any name: trials of one person begin one after the other
    conversation_lock.lock_conversation(session, f"trials of {person.id}")
    # the rows of this transaction are inserted at its end; the query below must see them
    chain.insert_recorded_rows(session)
    values = {"accounts": list(person.accounts), "since": now - _HOUR}
    rows = session.connection().execute(_RECENT, values).all()
    begun_within_hour = {row.key: row for row in rows if row.verb == Act.TRY}
    if len(begun_within_hour) >= MAX_PER_HOUR:
        raise TooManyCalls(f"{MAX_PER_HOUR} calls were tried for this person within an hour.")
    ended = {row.key for row in rows if row.verb == Act.TRIED}
    living = {process, *session.connection().execute(_LIVING_PROCESSES).scalars()}
    under_way = 0
    for key, row in begun_within_hour.items():
        if key in ended:
            continue
        if row.after["process"] in living:
            under_way += 1
        else:
            end_trial(session, key, asker, tool, {"ended": "Nod stopped while it ran"}, now)
    if under_way >= MAX_CONCURRENT:
        return None
    key = secrets.token_hex(8)
    _record(session, key, Act.TRY, asker, tool, {**facts, "process": process}, now)
    return key


def end_trial(
    session: Session,
    key: str,
    asker: Actor,
    tool: str,
    outcome: Mapping[str, Any],
    now: datetime,
    token: str | None = None,
) -> None:
    """Record how a trial ended, and store its ``token``, if there are changes to apply."""
    if token is not None:
        row = {"id": hash_text(token), "content": token, "created_at": now}
        session.execute(insert_or_ignore(session, TrialTokenRow), row)
    _record(session, key, Act.TRIED, asker, tool, outcome, now)


def _record(
    session: Session, key: str, verb: Act, asker: Actor, tool: str, facts: Mapping[str, Any], now: datetime
) -> None:
    admin_changes.record(
        session, Thing.TRIAL, key, people.make_author(session, verb, asker), None, facts, now, tool
    )


def load_token(session: Session, digest: str) -> str | None:
    """Return the token with this hash; None if it was deleted or altered."""
    row = session.get(TrialTokenRow, digest)
    if row is not None and hash_text(row.content) == digest:
        return row.content
    return None


def purge_tokens(session: Session, before: datetime, limit: int) -> int:
    """Delete up to ``limit`` tokens that were stored before ``before``; return how many.

    An approval whose token is deleted tries the call again.
    """
    return delete_older(session, TrialTokenRow, "created_at", before, limit)

"""Which accounts are one Person, and the one-use codes that join them."""

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, update
from sqlmodel import Session, col, select

from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal
from bot.store import ledger
from bot.store.audit import By
from bot.store.ledger import Thing
from bot.store.prepared import Prepared
from bot.store.tables import AccountRow, LinkCodeRow
from bot.store.upsert import insert_or_ignore

CODE_LIFE = timedelta(minutes=10)

_ACCOUNT = AccountRow.__table__  # type: ignore[attr-defined]
_PERSON_ID = Prepared(select(_ACCOUNT.c.person_id).where(_ACCOUNT.c.actor == bindparam("actor")))


def person_of(session: Session, actor: Actor) -> Person:
    """The Person behind an account: itself alone, unless it was linked."""
    person_id = _PERSON_ID.value(session, {"actor": str(actor)})
    if person_id is None:
        return Person(str(actor), actor.label, frozenset({str(actor)}))
    accounts = session.exec(select(AccountRow.actor).where(AccountRow.person_id == person_id))
    return Person(person_id, actor.label, frozenset(accounts))


def new_code(session: Session, actor: Actor, now: datetime) -> str:
    """A code that this person types in another channel within `CODE_LIFE`; earlier ones end."""
    session.execute(
        delete(LinkCodeRow).where(
            (col(LinkCodeRow.actor) == str(actor)) | (col(LinkCodeRow.expires_at) <= now)
        )
    )
    code = secrets.token_hex(5).upper()
    session.add(
        LinkCodeRow(code_hash=_hash(code), actor=str(actor), name=actor.name, expires_at=now + CODE_LIFE)
    )
    return code


def link(session: Session, actor: Actor, code: str, now: datetime) -> Actor | None:
    """Join this account to the one that asked for the code; None when the code is unknown, used or late."""
    row = session.execute(
        delete(LinkCodeRow)
        .where(col(LinkCodeRow.code_hash) == _hash(code.strip().upper()), col(LinkCodeRow.expires_at) > now)
        .returning(col(LinkCodeRow.actor), col(LinkCodeRow.name))
    ).one_or_none()
    if row is None:
        return None
    other = Actor.parse(row[0], row[1])
    person = person_of(session, other)
    joined = person_of(session, actor)
    accounts = sorted(person.accounts | joined.accounts)
    rows = session.exec(select(AccountRow).where(col(AccountRow.actor).in_(accounts)))
    before = {row.actor: row.person_id for row in rows}
    for each in (other, actor):
        session.execute(
            insert_or_ignore(session, AccountRow).values(
                actor=str(each), name=each.name, person_id=person.id, linked_at=now
            )
        )
    session.execute(
        update(AccountRow).where(col(AccountRow.person_id) == joined.id).values(person_id=person.id)
    )
    for account in accounts:
        was = before.get(account)
        if was != person.id:
            old = {"person": was} if was else None
            by = By.press("link", actor, joined)
            ledger.record(session, Thing.ACCOUNT, account, by, old, {"person": person.id}, now)
    return other


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def voters(session: Session, p: Proposal, verb: str | None = None) -> set[str]:
    """Ids of the Persons who voted (so), as they are now: accounts may be linked after they voted."""
    return {person_of(session, v.actor).id for v in p.votes if verb in (None, v.verb)}

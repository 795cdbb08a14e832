"""Linked accounts, and the latest names of accounts and places.

A `Person` is a human with one or several linked accounts (``bot/approvals/accounts/linking.py`` links them);
an account that is not linked is a Person of its own. The *standing* of an account is its membership in the
team, as its platform says. Rows have accounts and addresses, and people read names, which channels report
with each message.
"""

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, update
from sqlmodel import Session, col, select

from bot.domain.audit import Act
from bot.domain.people import Actor, Membership, Names, Person, find_accounts_in, list_enclosing, with_names
from bot.domain.proposals import Proposal
from bot.domain.text import replace_unstorable
from bot.store import database
from bot.store.audit.log import Author
from bot.store.inserts import insert_or_ignore
from bot.store.tables.people import AccountRow, NameRow
from bot.store.tables.row import table_of

_ACCOUNT = table_of(AccountRow)
_NAME = table_of(NameRow)
_PERSON_ID = select(_ACCOUNT.c.person_id).where(_ACCOUNT.c.actor == bindparam("actor"))
_STANDING = select(_NAME.c.standing).where(_NAME.c.key == bindparam("actor"))
SELECT_PERSON = select(
    _PERSON_ID.scalar_subquery().label("person_id"), _STANDING.scalar_subquery().label("stored_standing")
)
"""Columns: the id of the Person behind an account, and what its platform said last of its membership."""
_MAX_NAME_CHARS = 100
_MAX_LISTED_ACCOUNTS = 500
_MAX_NAMESAKES = 50  # the most names with the same beginning that are compared


def load_person(session: Session, actor: Actor) -> Person:
    """Return the Person behind an account; an account that is not linked is a Person of its own."""
    return database.read_once(session, make_cache_key(actor), lambda: _load_person(session, actor))


def make_author(session: Session, verb: Act, actor: Actor) -> Author:
    """Return the author of a change for the audit log, by their account."""
    return Author.of_person(verb, actor, load_person(session, actor))


def make_cache_key(actor: Actor) -> tuple[Hashable, ...]:
    """Return the key under which a snapshot caches the Person behind an account."""
    return (Person, actor.channel, actor.key, actor.name, actor.standing)


def _load_person(session: Session, actor: Actor) -> Person:
    row = session.connection().execute(SELECT_PERSON, {"actor": str(actor)}).one()
    return make_person(session, actor, row.person_id, row.stored_standing)


def make_person(session: Session, actor: Actor, person_id: str | None, stored_standing: str | None) -> Person:
    """Return the Person behind an account, from the two columns that `SELECT_PERSON` selects.

    ``person_id``: None for an account that is not linked. ``stored_standing``: used only if the channel does
    not report the standing with the account. Without any report, an account is a member.
    """
    standing = actor.standing
    if standing in (None, Membership.UNKNOWN):
        # UNKNOWN stays if nothing was ever stored
        standing = Membership(stored_standing or standing or Membership.MEMBER)
    if person_id is None:
        account = str(actor)
        return Person(account, actor.label, frozenset({account}), standing)
    accounts = session.exec(select(AccountRow.actor).where(AccountRow.person_id == person_id))
    return Person(person_id, actor.label, frozenset(accounts), standing)


class Linked(NamedTuple):
    """An account that is linked with others."""

    account: str
    name: str  # the account's name when it was linked
    person_id: str
    at: datetime


def list_linked(session: Session, person_id: str | None = None) -> list[Linked]:
    """Return every linked account, or the accounts of one Person."""
    rows = select(AccountRow).order_by(col(AccountRow.actor))
    if person_id is not None:
        rows = rows.where(AccountRow.person_id == person_id)
    return [Linked(row.actor, row.name, row.person_id, row.linked_at) for row in session.exec(rows)]


def list_voters(session: Session, proposal: Proposal, verb: str | None = None) -> list[set[str]]:
    """Return the voters on a proposal, with any verb or with this one; each voter counts once.

    A voter is a set of ids of Persons: the one who pressed and, if that one stood in for an absent person,
    the absent one, too. Votes that share a Person are of one voter. Links count as they are now, since
    accounts may be linked after they voted.
    """
    voters: list[set[str]] = []
    for vote in proposal.votes:
        if verb is not None and vote.verb != verb:
            continue
        voter = {load_person(session, account).id for account in (vote.actor, vote.absent) if account}
        # earlier voters that share a Person with this one are the same voter
        same = [earlier for earlier in voters if earlier & voter]
        voters = [earlier for earlier in voters if not earlier & voter]
        voters.append(voter.union(*same))
    return voters


def store_names(session: Session, names: Names) -> None:
    """Store the current names of accounts and places, by account or address."""
    for key, name in sorted(names.items()):  # sorted, or two transactions could wait for each other
        line = replace_unstorable(" ".join(name.split()))[:_MAX_NAME_CHARS]
        row = session.get(NameRow, key)
        if row is None:
            session.execute(insert_or_ignore(session, NameRow).values(key=key, name=line))
        elif row.name != line:
            row.name = line
            session.add(row)


def store_standing(session: Session, actor: Actor) -> None:
    """Store the membership of an account in the team; nothing changes if its platform does not say it now.

    An account that has no row yet gets one, with its current name.
    """
    if actor.standing in (None, Membership.UNKNOWN):
        return
    key = str(actor)
    session.execute(insert_or_ignore(session, NameRow).values(key=key, name=actor.name))
    session.execute(update(NameRow).where(col(NameRow.key) == key).values(standing=str(actor.standing)))


def find_by_name(session: Session, name: str) -> list[Actor]:
    """Return the accounts of the team with this name or first name, in any case."""
    wanted = name.casefold()
    if not wanted:
        return []
    begins_so = col(NameRow.name).istartswith(wanted, autoescape=True)
    found = []
    for row in session.exec(select(NameRow).where(begins_so).limit(_MAX_NAMESAKES)):
        known_name = row.name.casefold()
        is_member = row.standing in (None, Membership.MEMBER)
        if is_member and wanted in (known_name, known_name.split()[0]):
            found.append(Actor.parse(row.key, row.name))
    return found


def list_accounts_in(session: Session, channel: str) -> list[str]:
    """Return accounts of a channel that have a name, up to a limit, to compare with a mistyped one."""
    keys = select(NameRow.key).where(col(NameRow.key).startswith(f"{channel}:", autoescape=True))
    return list(session.exec(keys.order_by(col(NameRow.key)).limit(_MAX_LISTED_ACCOUNTS)))


def find_known_names(session: Session, wanted: Iterable[str]) -> dict[str, str]:
    """Return the known names of these accounts and places, and of the places around them.

    The names are by account or address; one that is not known is left out.
    """
    keys: set[str] = set()
    for account_or_place in wanted:
        keys.update(list_enclosing(account_or_place))
    if not keys:
        return {}
    rows = session.exec(select(NameRow).where(col(NameRow.key).in_(sorted(keys))))
    return {row.key: row.name for row in rows}


def put_names_in(session: Session, text: str) -> str:
    """Return a text with its accounts and places called by name."""
    found = find_accounts_in(text)
    if found:
        return with_names(text, find_known_names(session, found))
    return text

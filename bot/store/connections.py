"""The connections that people and admins made, as transactions read them: through the port of their feature.

Every session of a database that was given the port carries the port. Without a port there are no connections,
and nothing here costs a statement.
"""

from sqlmodel import Session

from bot.domain.connection_port import Connections
from bot.domain.connections import Connection, Identity, Whose
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal
from bot.store import conversations, people
from bot.store.database import Database

_KEY = "connections"


def give_connections(database: Database, connections: Connections | None) -> None:
    """Have each session of the database carry the port from now on."""
    database.info[_KEY] = connections


def get_connections(database: Database) -> Connections | None:
    """Return the port that the database was given, or None."""
    found: Connections | None = database.info.get(_KEY)
    return found


def find_connection(session: Session, server: str, identity: Identity, whose: Whose) -> Connection | None:
    """Return the connection of a person or a place at a server, or None."""
    connections: Connections | None = session.info.get(_KEY)
    return connections.find(session, server, identity, whose) if connections is not None else None


def find_again(session: Session, connection: Connection) -> Connection | None:
    """Return the owner's current connection to the server: perhaps another account, or None."""
    return find_connection(session, connection.server, connection.identity, whose_is(session, connection))


def whose_is(session: Session, connection: Connection) -> Whose:
    """Return the owner of a connection, with the accounts that are linked now."""
    return whose_owner(session, connection.owner)


def whose_owner(session: Session, owner: str) -> Whose:
    """Return the owner of the connections of an account, or of a chat's address."""
    accounts = people.person_of(session, Actor.parse(owner)).accounts
    return Whose(accounts | {owner}, owner)


def whose_call(session: Session, actor: Actor, conversation_id: str) -> Whose | None:
    """Return for whom a new call is made; None for an outsider, or without such a conversation."""
    person = people.person_of(session, actor)
    conversation = conversations.get_conversation(session, conversation_id)
    if person.outside or conversation is None:
        return None
    return Whose(person.accounts | {str(actor)}, str(conversation.origin))


def is_owner(p: Proposal, person: Person) -> bool:
    """Tell if a call is made under this person's account."""
    connection = p.connection
    return connection is not None and connection.is_personal and connection.owner in person.accounts

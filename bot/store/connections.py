"""The look-up of connections in a transaction: accounts at other servers that people and admins connected.

The rows belong to a feature, which implements the port of ``bot/domain/connection_port.py``. If a database
was given the port, each of its sessions has the port in its ``info``. Without a port there are no
connections, and nothing here costs a statement. A `ConnectionOwner` says for whom a connection is looked up:
the accounts of a person, and the address of a chat.
"""

from sqlmodel import Session

from bot.domain.connection_port import Connections
from bot.domain.connections import Connection, ConnectionOwner, Identity
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal
from bot.store import conversations, people
from bot.store.database import Database

_KEY = "connections"  # the key of the port in the ``info`` of a session


def give_connections(database: Database, connections: Connections | None) -> None:
    """Put the port into the ``info`` of each later session of the database."""
    database.info[_KEY] = connections


def get_connections(database: Database) -> Connections | None:
    """Return the port that the database was given, or None."""
    found: Connections | None = database.info.get(_KEY)
    return found


def find_connection(
    session: Session, server: str, identity: Identity, whose: ConnectionOwner
) -> Connection | None:
    """Return the connection at a server, or None.

    ``identity``: whose connection, the person's or the place's. ``whose``: that person and that place.
    """
    connections: Connections | None = session.info.get(_KEY)
    return connections.find(session, server, identity, whose) if connections is not None else None


def find_current(session: Session, connection: Connection) -> Connection | None:
    """Return the connection that the owner of this one has at its server now, perhaps to another account.

    None if the owner has no connection there any longer.
    """
    owner = load_owner(session, connection.owner)
    return find_connection(session, connection.server, connection.identity, owner)


def load_owner(session: Session, owner: str) -> ConnectionOwner:
    """Return the owner of connections with the accounts that are linked now.

    ``owner``: an account or the address of a chat, as in `Connection.owner`.
    """
    accounts = people.load_person(session, Actor.parse(owner)).accounts
    return ConnectionOwner(accounts | {owner}, owner)


def load_requester(session: Session, actor: Actor, conversation_id: str) -> ConnectionOwner | None:
    """Return the person and the place for which a new call of an account in a conversation is made.

    None for someone from outside the team, and if the conversation does not exist.
    """
    person = people.load_person(session, actor)
    conversation = conversations.get_conversation(session, conversation_id)
    if person.is_outsider or conversation is None:
        return None
    return ConnectionOwner(person.accounts | {str(actor)}, str(conversation.origin))


def is_owner(proposal: Proposal, person: Person) -> bool:
    """Return whether a proposal's call runs under an account that this person connected for themselves."""
    connection = proposal.connection
    return connection is not None and connection.is_personal and connection.owner in person.accounts

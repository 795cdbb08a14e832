"""The end of connections, each in one transaction, and the texts about it for people.

A connection is an account at another server, in whose name Nod makes calls there. Its owner is a person or a
place, which is a chat. The owner or an admin ends a connection. It also ends if the owner's account is
unlinked or gone from its platform, or if the server's address changes.

An ended connection is deleted (`rows.end_connection`). Its tokens are revoked at the server later, unless
another connection has the same account.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col

from bot.approvals import rights
from bot.domain.audit import Act
from bot.domain.chat import Address
from bot.domain.connections import Connection, Identity
from bot.domain.jobs import Job
from bot.domain.people import Actor, Role
from bot.domain.text import escape_markdown
from bot.features.connections import rows
from bot.features.connections.resting import tell_admins
from bot.features.connections.rows import ListedConnection
from bot.features.connections.sign_in import pending
from bot.features.connections.sign_in.pending import AccountSignIn
from bot.features.connections.tables import ConnectionRow
from bot.store import notices, people
from bot.store.audit.log import Author
from bot.store.notices import store_private_notice
from bot.store.rules import Policies

_MAX_NAMED = 10  # the most connections named in one text
_LOST_TEXT = (
    "No key of NOD_SECRET_KEY opens your connection to {server} any longer, so it is gone. "
    "`/nod connections connect {server}` makes a new one."
)
_ADMIN_GONE_TEXT = (
    "{who} connected the account of {place} at {server} and is gone, so that account is disconnected. "
    "To use one again, an admin sends `/nod connections connect {server}` in that chat."
)


@dataclass(frozen=True, slots=True)
class VisibleConnections:
    """The connections that a person may see, and the person's own sign-ins under way."""

    everyone: bool  # True for an admin of all of Nod, who sees everyone's connections
    accounts: frozenset[str]  # the person's accounts
    listed: Sequence[ListedConnection]
    waiting_sign_ins: Sequence[AccountSignIn]  # the person's sign-ins that wait for their six digits


def list_visible(session: Session, policies: Policies, actor: Actor, now: datetime) -> VisibleConnections:
    """Return the connections that a person has or made; for an admin of all of Nod everyone's."""
    visible_accounts = rights.find_visible_accounts(session, policies, actor)  # None: everyone's
    accounts = rights.list_accounts(session, actor)
    return VisibleConnections(
        everyone=visible_accounts is None,
        accounts=accounts,
        listed=rows.list_connections(session, visible_accounts),
        waiting_sign_ins=pending.list_unconfirmed(session, accounts, now),
    )


def end_one(
    session: Session, policies: Policies, ident: str, actor: Actor, now: datetime
) -> Connection | None:
    """End the only visible connection whose id begins with ``ident``, and return it.

    Returns None without such a connection, or if several ids begin that way.
    """
    visible = list_visible(session, policies, actor, now)
    matching = [each.connection for each in visible.listed if each.connection.id.startswith(ident)]
    if len(matching) != 1 or not ident:
        return None
    ended = _end(session, col(ConnectionRow.id) == matching[0].id, actor, now)
    return ended[0] if ended else None


def end_connections_at_server(session: Session, server: str, actor: Actor, now: datetime) -> list[Connection]:
    """End the connections of a person at a server."""
    at_server = col(ConnectionRow.server) == server
    return _end(session, _is_owned_by(session, actor) & at_server, actor, now)


def end_connection_of_chat(
    session: Session, policies: Policies, server: str, chat: Address, actor: Actor, now: datetime
) -> list[Connection]:
    """End the connection of a chat at a server, for an admin there; do nothing for anyone else."""
    person = people.load_person(session, actor)
    if Role.ADMIN not in policies.load(session).roles_of(person, str(chat)):
        return []
    of_chat = (col(ConnectionRow.identity) == Identity.PLACE) & (col(ConnectionRow.owner) == str(chat))
    return _end(session, of_chat & (col(ConnectionRow.server) == server), actor, now)


def end_everywhere(session: Session, actor: Actor, now: datetime) -> list[Connection]:
    """End every connection of a person, and every sign-in that is under way."""
    pending.end_sign_ins_of_person(session, rights.list_accounts(session, actor), now)
    return _end(session, _is_owned_by(session, actor), actor, now)


def end_after_unlinking(session: Session, account: Actor, now: datetime) -> tuple[Job, ...]:
    """End a person's connections after one of the person's accounts was unlinked. Implements `ChangePerson`.

    They end because no one can tell which of the two people made them. If an account was linked instead, it
    is added to the accounts of the person's connections.
    """
    current = rights.list_accounts(session, account)
    author = Author.of_nod(Act.DISCONNECT, "an account was unlinked")
    for row in rows.list_of_person(session, str(account)):
        if set(row.accounts) <= current:  # no account of the owner is missing now
            rows.change_accounts(session, row, current)
        else:
            pending.end_sign_ins_of_person(session, row.accounts, now)
            rows.end_connection(session, row, author, now)
    return ()


def move_chat(session: Session, old: Address, new: Address, now: datetime) -> None:
    """Give the connections of a chat to its new address, so that it keeps them. Implements `MoveChat`."""
    author = Author.of_nod(Act.MOVE)
    is_of_chat = (col(ConnectionRow.identity) == Identity.PLACE) & (col(ConnectionRow.owner) == str(old))
    rows.change_owner(session, is_of_chat, str(new), author, now)


def end_of_gone_accounts(
    session: Session, policies: Policies, accounts: Collection[str], now: datetime
) -> list[Connection]:
    """End the connections of accounts that are gone from their platforms, and return them.

    Connections that such an account made for a chat end as well, and the admins of the chat are told.
    """
    author = Author.of_nod(Act.DISCONNECT, "the account is gone")
    gone_accounts = sorted(accounts)
    is_personal = col(ConnectionRow.identity) == Identity.PERSON
    is_of_chat = col(ConnectionRow.identity) == Identity.PLACE
    ended = rows.end_connections(
        session, is_personal & col(ConnectionRow.owner).in_(gone_accounts), author, now
    )
    names = people.find_known_names(session, gone_accounts)
    for account in gone_accounts:
        is_made_by_account = is_of_chat & (col(ConnectionRow.connected_by) == account)
        for connection in rows.end_connections(session, is_made_by_account, author, now):
            who = escape_markdown(names.get(account, account))
            place = escape_markdown(connection.owner_label)
            text = _ADMIN_GONE_TEXT.format(who=who, place=place, server=connection.server)
            tell_admins(session, policies, connection.owner, account, text, now)
            ended.append(connection)
    return ended


def end_at_changed_addresses(session: Session, addresses: dict[str, str], now: datetime) -> list[Connection]:
    """End the connections at servers whose address has changed, and tell their owners.

    ``addresses``: the current address of each server, by its name in the settings.
    """
    author = Author.of_nod(Act.DISCONNECT, "the server's address changed")
    ended: list[Connection] = []
    for server, url in addresses.items():
        has_old_address = (col(ConnectionRow.server) == server) & (col(ConnectionRow.url) != url)
        ended += rows.end_connections(session, has_old_address, author, now)
    for connection in ended:
        server = connection.server
        text = (
            f"The address of {server} changed, so your connection there has ended. "
            f"`/nod connections connect {server}` makes a new one."
        )
        tell_owner(session, connection, text, now)
    return ended


def tell_owners_of_unreadable(session: Session, now: datetime) -> int:
    """Tell the owners of connections that no key of NOD_SECRET_KEY opens, once each.

    Returns the number of such connections.
    """
    unreadable = rows.list_unreadable(session)
    for connection, was_owner_told in unreadable:
        if not was_owner_told:
            tell_owner(session, connection, _LOST_TEXT.format(server=connection.server), now)
    rows.note_told(session, [connection.id for connection, _ in unreadable])
    return len(unreadable)


def tell_owner(session: Session, connection: Connection, text: str, now: datetime) -> None:
    """Send a text to the owner of a connection: to a person in private, to a place in its chat."""
    if connection.identity is Identity.PERSON:
        store_private_notice(session, Actor.parse(connection.owner), text, now)
    else:
        notices.store_notice(session, Address.parse(connection.owner), text, now)


def is_same_person(session: Session, actor: Actor, account: str) -> bool:
    """Return whether an account belongs to this person."""
    return account in rights.list_accounts(session, actor)


def describe_connected(connection: Connection) -> str:
    """Return the text for a person about their new connection, in Markdown."""
    account = escape_markdown(connection.acts_as)
    return f"Connected: {account}. `/nod connections end {connection.server}` ends it."


def describe_ended(ended: Collection[Connection]) -> str:
    """Return the text for people about connections that have ended, as plain text, not Markdown."""
    if not ended:
        return "Nothing was connected."
    named = [f"{each.server} ({each.account})" for each in list(ended)[:_MAX_NAMED]]
    others = f" and {len(ended) - _MAX_NAMED} more" if len(ended) > _MAX_NAMED else ""
    return f"Disconnected: {', '.join(named)}{others}."


def _is_owned_by(session: Session, actor: Actor) -> ColumnElement[bool]:
    accounts = rights.list_accounts(session, actor)
    return col(ConnectionRow.owner).in_(sorted(accounts))


def _end(session: Session, condition: ColumnElement[bool], actor: Actor, now: datetime) -> list[Connection]:
    author = people.make_author(session, Act.DISCONNECT, actor)
    return rows.end_connections(session, condition, author, now)

"""Tokens of the HTTP interface as rows, next to those that the environment names.

A token is ``nod_LABEL_SECRET``. An *agent* here is a program that calls tools for one person, and its token
is ``noda_LABEL_SECRET``. The label finds the token's row and is no secret. Only a SHA-256 of the token is
stored: the secret is random and long, so it can't be guessed from the hash.

An agent's token opens nothing until its person has agreed. It ends when an account of that person is unlinked
or gone, at its time, or by a command. Its row then says when it was *revoked*. A token whose time is over has
ended even before it is revoked.
"""

import hmac
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, update
from sqlmodel import Session, col, or_, select

from bot.domain.agents import AGENT_BEGINNING, Agent, TokenHolder
from bot.domain.audit import Act
from bot.domain.people import AGENTS, LOCAL, Actor
from bot.domain.text import hash_text
from bot.errors import NodError
from bot.store import people
from bot.store.audit import admin_changes
from bot.store.audit.admin_changes import Thing
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.tables.people import TokenRow
from bot.store.tables.row import value_of

_BEGINNING = "nod_"
_MAX_NAME_CHARS = 64
_LABEL_CHARS = 8
_USE_RECORDED_SECONDS = 60  # the least time between two records of a use
_NOT_AGREED_TEXT = (
    "{person} has not allowed this token yet. They are asked in their chat, the console and nod pending."
)
_OVER_TEXT = "This token has ended. Its person or an admin makes another one: nod token new NAME --tools ..."
_OUTSIDE_TEXT = "{person} is not of this team now, so this token opens nothing."


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token without its secret."""

    label: str
    name: str  # its owner: the account ``http:NAME``, or the agent NAME
    made_by: str  # an account
    made_at: datetime
    # the following are set only for an agent's token
    tools: Sequence[str] | None = None  # patterns of the names of tools that it may call; None: no agent's
    person: str | None = None  # the account for which it calls tools
    person_name: str | None = None
    servers: Sequence[str] | None = None  # the servers at which it may act as that person
    until: datetime | None = None
    agreed_at: datetime | None = None  # None: that person has not agreed yet
    known: Sequence[str] | None = None  # the names of the tools that were shown to that person
    last_used_at: datetime | None = None

    @property
    def is_agent(self) -> bool:
        return self.tools is not None


@dataclass(frozen=True, slots=True)
class AgentTerms:
    """The terms of a new agent's token."""

    person: Actor  # the person for whom it calls tools
    tools: Sequence[str]  # patterns of the names of tools that it may call
    servers: Sequence[str]  # the servers at which it may act as that person
    shown_tools: Sequence[str]  # the names of the tools that the patterns match now
    until: datetime | None
    agreed: bool = False  # that person has agreed, as they make the token themselves


def issue_token(
    session: Session, name: str, by: Actor, now: datetime, terms: AgentTerms | None = None
) -> str:
    """Make a token and return it; it can't be read again later. A name may have several tokens.

    Raises NodError for an invalid name, and for an agent's name that a script or another person's agent has.
    """
    if len(name) > _MAX_NAME_CHARS or not name.replace("-", "_").isidentifier() or name == LOCAL.key:
        raise NodError(f"'{name}' is not a name for a token. Use letters, digits and -, such as deploy-bot.")
    conversation_lock.lock_everything(session)
    _check_name(session, name, terms)
    label = secrets.token_hex(_LABEL_CHARS // 2)
    token = f"{AGENT_BEGINNING if terms else _BEGINNING}{label}_{secrets.token_urlsafe(32)}"
    row = TokenRow(label=label, name=name, hash=hash_text(token), made_by=str(by), made_at=now)
    if terms is not None:
        row.tools = list(terms.tools)
        row.servers = list(terms.servers)
        row.known = sorted(terms.shown_tools)
        row.accounts = _list_accounts(session, terms.person)
        row.person = str(terms.person)
        row.person_name = terms.person.name
        row.until = terms.until
        row.agreed_at = now if terms.agreed else None
    session.add(row)
    _record(session, row, people.make_author(session, Act.ISSUE, by), now)
    return token


def _check_name(session: Session, name: str, terms: AgentTerms | None) -> None:
    """Raise NodError for a name that another person's agent or a script has, so that no one confuses them.

    Two tokens may share a name if both are of scripts, or of agents of one person.
    """
    for row in session.exec(select(TokenRow).where(TokenRow.name == name)):
        # the id of the agent's Person; None for a script
        theirs = people.load_person(session, Actor.parse(row.person)).id if row.person else None
        mine = people.load_person(session, terms.person).id if terms else None
        if theirs != mine:
            raise NodError(f"'{name}' is the name of another one's token. Choose another name.")


def revoke_token(session: Session, label_or_name: str, by: Actor, now: datetime) -> list[IssuedToken]:
    """End the token with this label, or all tokens with this name; return the ended tokens."""
    is_named = or_(TokenRow.label == label_or_name, TokenRow.name == label_or_name)
    return _end(session, is_named, people.make_author(session, Act.REVOKE, by), now)


def revoke_agent_for_admin(session: Session, label: str, by: Actor, now: datetime) -> list[IssuedToken]:
    """End the agent's token with this label, for an admin."""
    is_agent = (col(TokenRow.label) == label) & col(TokenRow.person).is_not(None)
    return _end(session, is_agent, people.make_author(session, Act.REVOKE, by), now)


def revoke_own_agent(session: Session, label: str, by: Actor, now: datetime) -> list[IssuedToken]:
    """End the agent's token with this label for its own person; another person's token stays."""
    is_own = col(TokenRow.person).in_(_list_accounts(session, by))
    author = people.make_author(session, Act.REVOKE, by)
    return _end(session, (col(TokenRow.label) == label) & is_own, author, now)


def end_after_unlink(session: Session, account: Actor, now: datetime) -> list[IssuedToken]:
    """End the agents' tokens of a person from whom an account was unlinked, and return the ended tokens.

    ``account``: an account whose links changed. If the person has lost no account, their tokens stay.
    """
    unrevoked = select(TokenRow).where(col(TokenRow.person).is_not(None), col(TokenRow.revoked_at).is_(None))
    ended: list[IssuedToken] = []
    for row in session.exec(unrevoked.order_by(col(TokenRow.label))).all():
        accounts_before = set(row.accounts or ())
        if str(account) not in accounts_before | {row.person}:
            continue
        accounts_now = _list_accounts(session, Actor.parse(row.person or ""))
        if accounts_before <= set(accounts_now):
            row.accounts = accounts_now
            session.add(row)
        else:
            author = Author.of_nod(Act.REVOKE, "an account left")
            ended += _end(session, col(TokenRow.label) == row.label, author, now)
    return ended


def end_with_account(session: Session, account: Actor, now: datetime) -> list[IssuedToken]:
    """End the agents' tokens of an account that is gone from its platform."""
    author = Author.of_nod(Act.REVOKE, "the account is gone")
    return _end(session, col(TokenRow.person) == str(account), author, now)


def end_due(session: Session, now: datetime) -> list[IssuedToken]:
    """End the agents' tokens whose time is over."""
    due = col(TokenRow.person).is_not(None) & (col(TokenRow.until) <= now)
    return _end(session, due, Author.of_nod(Act.END_BY_ITSELF), now)


def _list_accounts(session: Session, person: Actor) -> list[str]:
    """Return the accounts of the Person behind an account, that account included."""
    return sorted(people.load_person(session, person).accounts | {str(person)})


def _end(
    session: Session, condition: ColumnElement[bool], author: Author, now: datetime
) -> list[IssuedToken]:
    """Revoke the tokens that meet an SQL condition and are not revoked yet; return them."""
    rows = session.exec(select(TokenRow).where(col(TokenRow.revoked_at).is_(None), condition)).all()
    for row in rows:
        row.revoked_by = author.actor
        row.revoked_at = now
        session.add(row)
        _record(session, row, author, now)
    return [value_of(IssuedToken, row) for row in rows]


def confirm_agent(
    session: Session, label: str, person: Actor, servers: Sequence[str], now: datetime
) -> Agent | None:
    """Confirm an agent's token for its person; None where it is not that person's, or has ended.

    ``servers``: the servers at which the agent may act as that person from now on.
    """
    row = session.get(TokenRow, label)
    if row is None or row.person is None or row.revoked_at is not None:
        return None
    if row.person not in _list_accounts(session, person):
        return None
    row.agreed_at = row.agreed_at or now
    row.servers = sorted(servers)
    session.add(row)
    _record(session, row, people.make_author(session, Act.SET, person), now)
    return _agent_of(session, row)


def store_shown_tools(session: Session, label: str, names: Collection[str]) -> list[str]:
    """Store the tools that are shown to an agent's person now; return the names that are new to them."""
    row = session.get(TokenRow, label)
    if row is None:
        return []
    new = sorted(set(names) - set(row.known or ()))
    if new:
        row.known = sorted({*(row.known or ()), *new})
        session.add(row)
    return new


def note_use(session: Session, label: str, now: datetime) -> None:
    """Store that an agent's token was used just now."""
    session.execute(update(TokenRow).where(col(TokenRow.label) == label).values(last_used_at=now))


def is_use_due(agent: Agent, now: datetime) -> bool:
    """Return whether a use of an agent's token is to be stored now: once a minute at most."""
    last = agent.last_used_at
    return last is None or abs(now - last) >= timedelta(seconds=_USE_RECORDED_SECONDS)


def _record(session: Session, row: TokenRow, author: Author, now: datetime) -> None:
    """Record a change of a token in the audit log."""
    if row.person is None:
        state: dict[str, object] = {"account": str(Actor("http", row.name))}
    else:
        state = {"agent": row.name, "for": row.person, "tools": row.tools, "servers": row.servers}
        if row.until:
            state["until"] = row.until.isoformat()
        if row.agreed_at:
            state["agreed"] = row.agreed_at.isoformat()
    if row.revoked_at is not None:
        admin_changes.record(session, Thing.TOKEN, row.label, author, state, None, now)
    else:
        admin_changes.record(session, Thing.TOKEN, row.label, author, None, state, now)


def list_unrevoked(session: Session) -> list[IssuedToken]:
    """Return the tokens that are not revoked, oldest first."""
    unrevoked = select(TokenRow).where(col(TokenRow.revoked_at).is_(None))
    return [
        value_of(IssuedToken, row)
        for row in session.exec(unrevoked.order_by(col(TokenRow.made_at), col(TokenRow.label)))
    ]


def list_agents(session: Session, accounts: Collection[str] | None, now: datetime) -> list[IssuedToken]:
    """Return the agents' tokens that have not ended, oldest first.

    ``accounts``: only tokens of the person with these accounts; None: everyone's.
    """
    unrevoked = select(TokenRow).where(col(TokenRow.person).is_not(None), col(TokenRow.revoked_at).is_(None))
    if accounts is not None:
        unrevoked = unrevoked.where(col(TokenRow.person).in_(sorted(accounts)))
    rows = session.exec(unrevoked.order_by(col(TokenRow.made_at), col(TokenRow.label)))
    return [value_of(IssuedToken, row) for row in rows if not _is_over(row, now)]


def is_working_name(session: Session, name: str) -> bool:
    """Return whether there is a token of this name that is an account of the HTTP interface."""
    return any(token.name == name and not token.is_agent for token in list_unrevoked(session))


def find_holder(session: Session, token: str, now: datetime) -> TokenHolder | None:
    """Return the holder of a token, perhaps with a refusal in words; None if it is unknown or revoked.

    Unknown and wrong tokens take the same time, so that the time reveals nothing.
    """
    beginning, _, rest = token.partition("_")
    if f"{beginning}_" in (_BEGINNING, AGENT_BEGINNING) and rest.isprintable():
        row = session.get(TokenRow, rest[:_LABEL_CHARS])
    else:
        row = None
    stored_hash = row.hash if row else hash_text("")
    is_right = hmac.compare_digest(stored_hash, hash_text(token))
    if not is_right or row is None or row.revoked_at is not None:
        return None
    if row.person is None or row.tools is None:
        return TokenHolder(Actor("http", row.name, row.name))
    agent = _agent_of(session, row)
    person = people.load_person(session, agent.person)
    if _is_over(row, now):
        refusal = _OVER_TEXT
    elif person.is_outsider:
        refusal = _OUTSIDE_TEXT.format(person=agent.person.label)
    else:
        refusal = "" if row.agreed_at else _NOT_AGREED_TEXT.format(person=agent.person.label)
    return TokenHolder(agent.actor, agent, refusal)


def find_agent(session: Session, actor: Actor, now: datetime) -> Agent | None:
    """Return the agent with the account ``agents:NAME/LABEL`` if it may call tools now; else None."""
    label = actor.key.rpartition("/")[2]
    row = session.get(TokenRow, label) if actor.channel == AGENTS else None
    if row is None or row.person is None:
        return None
    if row.revoked_at is not None or _is_over(row, now) or row.agreed_at is None:
        return None
    agent = _agent_of(session, row)
    return agent if agent.key == actor.key else None


def _is_over(token: IssuedToken | TokenRow, now: datetime) -> bool:
    return token.until is not None and token.until <= now


def _agent_of(session: Session, row: TokenRow) -> Agent:
    account = row.person or ""
    name = people.find_known_names(session, [account]).get(account) or row.person_name or ""
    return Agent(
        row.name,
        row.label,
        Actor.parse(account, name),
        tuple(row.tools or ()),
        tuple(row.servers or ()),
        frozenset(row.known or ()),
        row.last_used_at,
        row.until,
    )

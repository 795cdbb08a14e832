"""Tables of people: accounts, names, absences, and the tokens that sign them in."""

from datetime import datetime

from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.tables.row import (
    Row,
    make_audited,
    make_json_column,
    make_key_finder,
    make_key_numbered_by_database,
    make_partial_index,
)


class AccountRow(Row, table=True):
    """An account linked to a Person; an account that is not here is a Person of its own."""

    __tablename__ = "account"
    __table_args__ = make_audited("account", "actor")

    actor: str = Field(primary_key=True)
    name: str
    person_id: str = Field(index=True)
    linked_at: datetime = Field(sa_type=UTCDateTime)


class NameRow(Row, table=True):
    """The latest name of an account or chat, as its channel reported it."""

    __tablename__ = "name"

    key: str = Field(primary_key=True)  # an account or an address
    name: str
    standing: str | None = None  # a `Membership`, as the account's channel last reported it; NULL: it did not


class AbsenceRow(Row, table=True):
    """A person's absence, with the stand-in who decides for them; ended absences stay as the record."""

    __tablename__ = "absence"
    __table_args__ = (
        make_partial_index("absence_now", "id", where="ended_at IS NULL"),
        make_audited("absence", find_keys=make_key_finder("absence")),
    )

    id: int | None = make_key_numbered_by_database()
    account: str
    name: str
    stand_in: str  # an account
    stand_in_name: str
    since: datetime = Field(sa_type=UTCDateTime)
    until: datetime = Field(sa_type=UTCDateTime)
    ended_by: str | None = None
    ended_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class TokenRow(Row, table=True):
    """A token of the HTTP interface that was made with ``nod token new``; only its hash is kept.

    A token with ``tools`` belongs to an agent, a program that calls tools for one person.
    """

    __tablename__ = "token"
    __table_args__ = (
        make_partial_index("token_of_person", "person", where="person IS NOT NULL"),
        make_audited("token", "label", unrecorded=frozenset({"accounts", "known", "last_used_at"})),
    )

    label: str = Field(primary_key=True)  # the part of the token that is no secret
    name: str
    hash: str
    made_by: str
    made_at: datetime = Field(sa_type=UTCDateTime)
    revoked_by: str | None = None
    revoked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    # patterns of the names of tools that the agent may call
    tools: list[str] | None = make_json_column(nullable=True)
    person: str | None = None  # the account for which the agent calls tools
    person_name: str | None = None
    # the linked accounts of that person when the token was made
    accounts: list[str] | None = make_json_column(nullable=True)
    # the servers at which the agent may act as that person
    servers: list[str] | None = make_json_column(nullable=True)
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    agreed_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # NULL: that person has not agreed
    # the names of the tools that were shown to that person
    known: list[str] | None = make_json_column(nullable=True)
    last_used_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class SignInRow(Row, table=True):
    """A link that signs a browser in, or the session of a browser; only the hash of its secret is stored."""

    __tablename__ = "sign_in"

    hash: str = Field(primary_key=True)
    account: str = Field(index=True)
    name: str
    code: bool  # True: a link; False: a session
    expires_at: datetime = Field(sa_type=UTCDateTime)

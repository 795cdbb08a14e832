"""The tables of connections, of sign-ins under way, and of tokens that wait to be revoked.

They share some columns: ``server`` is the server's name in the settings, ``url`` its address. ``client``,
``tokens`` and ``found`` are JSON: Nod's registration as a client, the tokens, and the metadata of the sign-in
server. Columns of secrets are encrypted with NOD_SECRET_KEY.
"""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.secrets import make_secret_column
from bot.store.tables.row import Row, make_audited, make_json_column, make_partial_index

CONNECTION = "connection"
"""The name of a connection in the audit log; its key there is its id."""
# columns that change without a row in the audit log
_UNAUDITED = frozenset({
    "accounts", "owner_name", "client", "tokens", "found", "expires_at", "last_used_at", "version",
    "busy_until", "refusals", "told_lost",
})  # fmt: skip


class ConnectionRow(Row, table=True):
    """The account of a person, or of a place, at a server. The row of an ended connection is deleted.

    ``identity`` says if the owner is a person or a place. ``owner`` is an account, or the address of a chat.
    ``accounts`` are the accounts of the owning person when the connection was made. ``name``, ``issuer`` and
    ``subject`` name the account at the server. ``version`` grows by 1 with each renewal of the tokens, from a
    random number on. ``busy_until`` is the claim of the process that renews them; ``refusals`` counts refused
    renewals in a row. ``expires_at`` is the end of the access token. ``told_lost``: the owner was told that
    no key opens the tokens.
    """

    __tablename__ = "connection"
    __table_args__ = (
        Index("connection_of_owner", "server", "identity", "owner"),
        make_partial_index(
            "connection_of_account",
            "server",
            "issuer",
            "subject",
            where="subject <> '' AND identity = 'person'",
            unique=True,
        ),
        make_audited(CONNECTION, unrecorded=_UNAUDITED),
    )

    id: str = Field(primary_key=True)
    server: str
    url: str
    identity: str
    owner: str
    owner_name: str
    accounts: list[str] = make_json_column()
    name: str
    issuer: str
    subject: str
    client: str = make_secret_column()
    tokens: str = make_secret_column()
    found: str
    connected_by: str
    connected_at: datetime = Field(sa_type=UTCDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    last_used_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    version: int = 1
    busy_until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    refusals: int = 0
    told_lost: bool = False


class ConnectingRow(Row, table=True):
    """A sign-in under way (`sign_in/pending.py`), which has reached a ``step``: a `SignInStep`.

    ``person`` is the account that goes through the sign-in. It also owns the connection, unless that is for a
    chat. ``is_organised``: the browser is signed in as that person with the organisation's account.

    Four columns are hashes, as `sign_in/pending.py` explains: ``id``, ``browser``, ``state`` and ``digits``.
    The hash of the digits is encrypted as well.

    ``back`` is the address to which the server sends the browser back. ``scope`` has the scopes that were
    asked for, later those that were granted. ``verifier`` proves to the server that the same Nod exchanges
    the code (PKCE). ``issuer`` is the sign-in server; ``subject`` and ``name`` are its ID and its name of the
    account.
    """

    __tablename__ = "connecting"
    __table_args__ = (
        Index("connecting_of_person", "person"),
        Index("connecting_until", "until"),
    )

    id: str = Field(primary_key=True)
    server: str
    url: str
    identity: str
    owner: str
    owner_name: str
    person: str
    person_name: str
    step: str
    created_at: datetime = Field(sa_type=UTCDateTime)
    until: datetime = Field(sa_type=UTCDateTime)
    state: str | None = Field(default=None, unique=True)
    browser: str = ""
    is_organised: bool = False
    back: str = ""
    scope: str = ""
    issuer: str = ""
    subject: str = ""
    name: str = ""
    digits: str = make_secret_column()
    found: str = ""
    verifier: str = make_secret_column()
    client: str = make_secret_column()
    tokens: str = make_secret_column()


class RevocationRow(Row, table=True):
    """Tokens of an ended connection or sign-in that their server has not revoked yet (RFC 7009).

    ``tries`` counts the tries so far; the next is due at ``next_at``.
    """

    __tablename__ = "revocation"
    __table_args__ = (Index("revocation_due", "next_at"),)

    id: str = Field(primary_key=True)
    server: str
    url: str
    client: str = make_secret_column()
    tokens: str = make_secret_column()
    found: str
    tries: int = 0
    next_at: datetime = Field(sa_type=UTCDateTime)

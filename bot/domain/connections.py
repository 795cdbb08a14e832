"""A connection: the account at another server, such as GitHub, in whose name a call is made.

A person connects an account of theirs, or an admin one for a chat. A call that is made as Nod has no
`Connection`. A `Connection` is stored with a proposal and holds no secret: its token is behind the port of
``bot/domain/connection_port.py``, as a `ConnectionAccess`.
"""

import base64
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, Self
from urllib.parse import quote, quote_plus

from bot.domain.text import escape_point, make_visible, one_line, replace_unstorable, shorten

CONSENT = "consent"
"""The verb of a vote by which the owner of an account lets a call run under it.

It is not an approval: others decide about the call, so the vote does not count for its quorum. An owner who
may decide, too, votes to approve instead.
"""
_MAX_NAME_CHARS = 60
_MIN_SECRET_CHARS = 8  # a shorter value is a part of too many words to be hidden in texts


class Identity(StrEnum):
    """The account under which the calls of a server are made."""

    NOD = "nod"  # Nod's own, the same for everyone
    PERSON = "person"  # the account of the person for whom the call is made
    PLACE = "place"  # the account that an admin connected for the chat


@dataclass(frozen=True, slots=True)
class Connection:
    """An account at a server that a person connected for themselves, or an admin for a chat.

    Both names are hostile text.
    """

    id: str
    server: str  # the name of the server in the settings
    identity: Identity
    owner: str  # an account (``slack:T1/U7``) or the address of a chat (``slack:T1/C1``)
    owner_name: str
    name: str  # the server's name for the account; empty if the server gives none
    issuer: str
    subject: str  # the server's id of the account; empty if the server gives none
    connected_at: datetime
    is_expired: bool = False  # nothing runs under the account until it is connected again
    # True: Nod does not use the account, which is a chat's, for now. Either people of another company read
    # along there, or the admin who connected it is not an admin now. Each look-up sets this; it is not stored
    is_resting: bool = False

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read the output of `as_json`."""
        identity, connected_at = Identity(stored["identity"]), datetime.fromisoformat(stored["connected_at"])
        return cls(**{**stored, "identity": identity, "connected_at": connected_at})

    @property
    def as_json(self) -> dict[str, Any]:
        """The connection as rows store it."""
        values = {**asdict(self), "connected_at": self.connected_at.isoformat()}
        del values["is_resting"]
        return values

    @property
    def with_short_names(self) -> "Connection":
        """The connection with names that fit a card and a row."""
        return replace(self, name=bound_name(self.name), owner_name=bound_name(self.owner_name))

    @property
    def key(self) -> str:
        """JSON that identifies the account, for example as a part of a proposal's digest.

        It has the server with the issuer and the subject, or with the connection's own id if the server gives
        no subject.
        """
        account = [self.issuer, self.subject] if self.subject else [self.id]
        return json.dumps([self.server, *account], ensure_ascii=False, separators=(",", ":"))

    @property
    def is_usable(self) -> bool:
        return not (self.is_expired or self.is_resting)

    @property
    def is_personal(self) -> bool:
        return self.identity is Identity.PERSON

    @property
    def owner_label(self) -> str:
        """The owner's name, or the account or address where none is known."""
        return bound_name(self.owner_name) or self.owner

    @property
    def account(self) -> str:
        """The account in words, for example ``octocat``."""
        name = bound_name(self.name)
        if name:
            return name
        day = f"{self.connected_at.day} {self.connected_at:%B}"
        return f"an account whose name {self.server} does not tell, connected {day}"

    @property
    def acts_as(self) -> str:
        """The line of a card, for example ``As Ana at github (octocat)``."""
        return f"As {self.owner_label} at {self.server} ({self.account})"


@dataclass(frozen=True, slots=True)
class ConnectionOwner:
    """The key by which a call's connection is found: its requester and its place.

    The server's `Identity` says which of the two counts.
    """

    accounts: frozenset[str]  # the linked accounts of the person who asks
    # the address of the conversation; the address of a thread begins with the address of its chat, so the
    # account of the chat is found in its threads, too
    place: str


class TokenSource(Protocol):
    """The source of the token that is sent to one server: Nod's own sign-in there, or a connection."""

    @property
    def failure_reason(self) -> str:
        """The reason why there is no token, or why the server refused it, and what to do; for people."""

    @property
    def sign_in_hint(self) -> str:
        """A sentence for people on how to sign in again."""

    async def get_token(self, refused: str | None = None) -> str | None:
        """Return a token to send, other than the token ``refused``; None where no token can be had."""

    def note_challenge(self, challenge: str) -> None:
        """Keep the server's newest ``WWW-Authenticate`` header, which says how to sign in there."""

    def note_scope(self, scope: str) -> None:
        """Keep scopes that the server asked for."""


class ConnectionAccess(TokenSource, Protocol):
    """The source of the token of one connection."""

    @property
    def secrets(self) -> frozenset[str]:
        """Every token that was given out or held so far, to be hidden in texts."""

    async def find_lacking_scope(self) -> str:
        """Return the scopes that changes need and the account did not grant; empty where none is missing."""


def bound_name(text: str) -> str:
    """Return a name on one line, cut where it is long, with unseen characters spelled out."""
    # cut first: all that follows takes time
    line = one_line(replace_unstorable(text[: 10 * _MAX_NAME_CHARS]))
    return shorten(make_visible(line, escape_point), _MAX_NAME_CHARS)


def encodings_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return each secret plain, and percent-, base64- and JSON-encoded, the longest first."""
    encodings: set[str] = set()
    for secret in secrets:
        if len(secret) >= _MIN_SECRET_CHARS:
            encodings |= {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
            encodings |= _list_base64_parts(secret.encode())
    return tuple(sorted(encodings, key=len, reverse=True))


def _list_base64_parts(secret: bytes) -> set[str]:
    """Return the letters that a secret gives in the base64 of a longer text, in both alphabets.

    Base64 writes three bytes as four letters of 6 bits. So the secret may begin at three offsets, and each
    gives other letters. Letters that depend on the bytes before or after the secret are left out.
    """
    parts: set[str] = set()
    for offset in range(3):
        letters = base64.b64encode(b"\0" * offset + secret).decode().rstrip("=")
        first = math.ceil(offset * 8 / 6)  # the first letter with bits of the secret alone
        end = (offset + len(secret)) * 8 // 6
        part = letters[first:end]
        parts |= {part, part.replace("+", "-").replace("/", "_")}
    return {part for part in parts if len(part) >= _MIN_SECRET_CHARS}

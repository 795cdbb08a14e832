"""The port to the connections that people and admins made. A feature implements it."""

from collections.abc import Mapping
from typing import Protocol

from sqlmodel import Session

from bot.domain.connections import Connection, ConnectionAccess, Identity, Whose


class Connections(Protocol):
    """The port to the connections that people and admins made."""

    def find(self, session: Session, server: str, identity: Identity, whose: Whose) -> Connection | None:
        """Return the connection of a person or a place at a server, also an expired one."""

    def access(self, connection: Connection) -> ConnectionAccess:
        """Return the access to its token, at the time of a call."""

    def providers(self) -> Mapping[str, Identity]:
        """Return the providers that a team's own tools may name, each with whose account it is."""

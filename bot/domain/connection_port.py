"""The port to connections: accounts at other servers that calls are made under.

People connect an account for themselves, admins one for a chat.
The kernel looks connections up through this protocol, which the feature in ``bot/features/connections``
implements. Without that feature every call is made under Nod's own accounts.
"""

from collections.abc import Mapping
from typing import Protocol

from sqlmodel import Session

from bot.domain.connections import Connection, ConnectionAccess, ConnectionOwner, Identity


class Connections(Protocol):
    """Finds the stored connections, and gives access to their tokens."""

    def find(
        self, session: Session, server: str, identity: Identity, whose: ConnectionOwner
    ) -> Connection | None:
        """Return the connection at a server, of the person or of the place as ``identity`` says.

        It may be expired.
        """

    def access(self, connection: Connection) -> ConnectionAccess:
        """Return the access to a connection's token, for a call that is made now."""

    def providers(self) -> Mapping[str, Identity]:
        """Return the servers that a team's own tools may name, each with the kind of account it takes."""

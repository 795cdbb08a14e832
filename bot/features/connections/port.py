"""The port to connections: through it the kernel finds the account for a call, and gets its token.

A connection is an account at another server, in whose name Nod makes calls there. The *identity* of a server
says who owns these accounts: a person, or a place, which is a chat. The servers are MCP servers with one of
these identities, and OAuth 2 providers for a team's own tools (`Provider`).

`AccountConnections` implements the protocol `Connections` of the kernel. All parts of this feature share the
one that `make_connections` makes at the start.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.connections import Connection, ConnectionAccess, ConnectionOwner, Identity
from bot.domain.people import list_enclosing
from bot.errors import SettingsError
from bot.features.connections import rows
from bot.features.connections.resting import ChatReaderCheck
from bot.features.connections.sign_in.provider_entries import Provider, load_providers
from bot.features.feature import ConnectionParts
from bot.settings import Settings
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.mcp.config import Http, ServerConfig

_MAX_ACCESSES = 1_000  # the most accesses in memory; each has a few short texts


@dataclass(frozen=True, slots=True)
class AccountConnections:
    """The accounts that people connected for themselves, and admins for chats."""

    settings: Settings
    database: Database
    policies: Policies
    clock: Clock
    servers: Mapping[str, ServerConfig]  # the servers at which accounts are connected, by name
    site_url: Callable[[], str]  # returns the address of the console
    reader_check: ChatReaderCheck  # the check of who reads along in a chat that has an account
    _accesses: dict[str, ConnectionAccess] = field(default_factory=dict)  # by the id of the connection

    def find(
        self, session: Session, server: str, identity: Identity, whose: ConnectionOwner
    ) -> Connection | None:
        """Return the newest connection at a server: of a person, or of a chat if ``identity`` is PLACE.

        Returns None without a connection, or if the server has another identity. ``whose`` has the accounts
        of the person who asks, and the place of the call. A chat's connection counts in its threads, too.
        """
        config = self.servers.get(server)
        if config is None or config.identity is not identity:
            return None
        # a connection of the place itself, or of a chat around it
        owners = whose.accounts if identity is Identity.PERSON else frozenset(list_enclosing(whose.place))
        return rows.find_connection(session, server, address_of(config), identity, owners)

    def access(self, connection: Connection) -> ConnectionAccess:
        """Return the access to a connection's token, the same object for each call."""
        known = self._accesses.get(connection.id)
        if known is not None:
            return known
        from bot.features.connections.access import AccountAccess  # here, as the SDK is slow to import

        if len(self._accesses) >= _MAX_ACCESSES:
            del self._accesses[next(iter(self._accesses))]  # the oldest
        config = self.servers[connection.server]
        find_rest = None
        # only the account of a chat may rest, out of use for a while
        if connection.identity is Identity.PLACE:
            find_rest = partial(self.reader_check.find_rest, connection)
        access = AccountAccess(self.database, self.clock, config, connection, find_rest)
        self._accesses[connection.id] = access
        return access

    def providers(self) -> Mapping[str, Identity]:
        """Return the providers for a team's own tools, each with the identity of its calls."""
        return {name: each.identity for name, each in self.servers.items() if isinstance(each, Provider)}


def address_of(config: ServerConfig) -> str:
    """Return the address of a server at which accounts are connected: such a server always has one."""
    if not isinstance(config.transport, Http):
        raise TypeError(f"{config.name} has no address")
    return config.transport.url


def make_connections(parts: ConnectionParts) -> AccountConnections | None:
    """Return the port; None if accounts are connected at no server.

    Raises SettingsError for a wrong file of NOD_CONNECTIONS, without NOD_SECRET_KEY, or if two servers have
    one name.
    """
    configs: list[ServerConfig] = [*parts.servers]
    if parts.settings.connections is not None:
        configs += load_providers(parts.settings.connections, parts.environment())
    if not configs:
        return None
    if not parts.settings.secret_key:
        names = ", ".join(each.name for each in configs)
        needed = f"needed to keep the accounts that people connect ({names})"
        raise SettingsError(f"NOD_SECRET_KEY: {needed}. Make one: nod secrets new")
    servers = {each.name: each for each in configs}
    if len(servers) < len(configs):
        raise SettingsError("NOD_CONNECTIONS: a connection has the name of another one, or of an MCP server")
    readers = ChatReaderCheck(parts.database, parts.policies, parts.clock, parts.is_shared)
    return AccountConnections(
        parts.settings, parts.database, parts.policies, parts.clock, servers, parts.site_url, readers
    )

"""The port to connections: through it the kernel finds the account for a call, and gets its token.

`AccountConnections` implements the protocol `Connections` of the kernel. All parts of this feature share the
one that `make_connections` made at the start. Its servers are MCP servers whose calls are made as a person or
a place, and OAuth 2 providers for a team's own tools (`Provider`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sqlmodel import Session

from bot.domain.chat import Clock
from bot.domain.connections import Connection, ConnectionAccess, Identity, Whose
from bot.domain.people import within
from bot.errors import SettingsError
from bot.features.connections import rows
from bot.features.connections.resting import ChatReaders
from bot.features.connections.sign_in.provider_entries import Provider, load_providers
from bot.features.feature import ConnectionParts
from bot.settings import Settings
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.mcp.config import Http, ServerConfig

_MOST_KEPT = 1_000  # the most accesses in memory; each has a few short texts


@dataclass(frozen=True, slots=True)
class AccountConnections:
    """The accounts that people and admins connected. ``servers`` are called under them, by name.

    ``site_url`` returns the address of the console. ``readers`` checks who reads along in a chat that has an
    account. ``_accesses`` has the access to each connection, by its id.
    """

    settings: Settings
    database: Database
    policies: Policies
    clock: Clock
    servers: Mapping[str, ServerConfig]
    site_url: Callable[[], str]
    readers: ChatReaders
    _accesses: dict[str, ConnectionAccess] = field(default_factory=dict)

    def find(self, session: Session, server: str, identity: Identity, whose: Whose) -> Connection | None:
        """Return the newest connection that a person, or for the identity PLACE a chat, has at a server.

        None without one, and for a server that is called under another identity.
        """
        config = self.servers.get(server)
        if config is None or config.identity is not identity:
            return None
        owners = whose.accounts if identity is Identity.PERSON else frozenset(within(whose.place))
        return rows.find_connection(session, server, address_of(config), identity, owners)

    def access(self, connection: Connection) -> ConnectionAccess:
        """Return the access to a connection's token, one object for each connection."""
        known = self._accesses.get(connection.id)
        if known is not None:
            return known
        from bot.features.connections.access import AccountAccess  # here, as the SDK is slow to import

        if len(self._accesses) >= _MOST_KEPT:
            self._accesses.pop(next(iter(self._accesses)))
        config = self.servers[connection.server]
        find_rest = None
        if connection.identity is Identity.PLACE:  # only the account of a chat may be out of use for a while
            find_rest = partial(self.readers.find_rest, connection)
        access = AccountAccess(self.database, self.clock, config, connection, find_rest)
        self._accesses[connection.id] = access
        return access

    def providers(self) -> Mapping[str, Identity]:
        """Return the providers for a team's own tools, each with the identity of its calls."""
        return {name: each.identity for name, each in self.servers.items() if isinstance(each, Provider)}


def address_of(config: ServerConfig) -> str:
    """Return the address of a server whose calls are made under connections: such a server always has one."""
    if not isinstance(config.launch, Http):
        raise TypeError(f"{config.name} has no address")
    return config.launch.url


def make_connections(parts: ConnectionParts) -> AccountConnections | None:
    """Return the port; None if no server is called under connections.

    Raises SettingsError for a wrong file of NOD_CONNECTIONS, without NOD_SECRET_KEY, or if two servers have
    one name.
    """
    named: list[ServerConfig] = [*parts.servers]
    if parts.settings.connections is not None:
        named += load_providers(parts.settings.connections, parts.environment())
    if not named:
        return None
    if not parts.settings.secret_key:
        names = ", ".join(each.name for each in named)
        needed = f"needed to keep the accounts that people connect ({names})"
        raise SettingsError(f"NOD_SECRET_KEY: {needed}. Make one: nod secrets new")
    servers = {each.name: each for each in named}
    if len(servers) < len(named):
        raise SettingsError("NOD_CONNECTIONS: a connection has the name of another one, or of an MCP server")
    readers = ChatReaders(parts.database, parts.policies, parts.clock, parts.is_shared)
    return AccountConnections(
        parts.settings, parts.database, parts.policies, parts.clock, servers, parts.site_url, readers
    )

"""Accounts at servers that people connected, kept in memory: the port `Connections` without its feature."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from sqlmodel import Session

from bot.approvals.read_consents import warn_of_answer
from bot.domain.connections import Connection, ConnectionOwner, Identity
from bot.domain.hooks import Hooks
from bot.domain.people import Actor, list_enclosing
from bot.errors import ToolError
from bot.store.connections import give_connections
from bot.tools.account_tools import ConnectedTools
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.toolset import FixedToolset, Toolset
from tests.kit.nod import Nod


@dataclass
class HeldAccess:
    """Implements `ConnectionAccess`: a marked token, until it is taken away."""

    accounts: "Accounts"
    connection: Connection
    failure_reason: str = "it was disconnected"
    sign_in_hint: str = "Connect it again"
    challenges: list[str] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)

    @property
    def secrets(self) -> frozenset[str]:
        return frozenset(self.accounts.given.get(self.connection.id, ()))

    async def get_token(self, refused: str | None = None) -> str | None:
        token = self.accounts.tokens.get(self.connection.id)
        if token is None or token == refused:
            return None
        self.accounts.given.setdefault(self.connection.id, set()).add(token)
        return token

    def note_challenge(self, challenge: str) -> None:
        self.challenges.append(challenge)

    def note_scope(self, scope: str) -> None:
        self.scopes.append(scope)

    async def find_lacking_scope(self) -> str:
        return ""


class Accounts:
    """Implements `Connections`."""

    def __init__(self, **providers: Identity) -> None:
        self.named = providers
        self.held: dict[tuple[str, str], Connection] = {}  # by server and owner
        self.tokens: dict[str, str] = {}  # by connection
        self.given: dict[str, set[str]] = {}
        self._ids = itertools.count(1)

    def connect(
        self,
        server: str,
        owner: Actor | str,
        name: str,
        *,
        identity: Identity = Identity.PERSON,
        subject: str | None = None,
        token: str | None = None,
    ) -> Connection:
        """Connect an account, in place of the one that was connected there."""
        ident = f"c{next(self._ids)}"
        label = owner.label if isinstance(owner, Actor) else "the room"
        made = Connection(
            ident,
            server,
            identity,
            str(owner),
            label,
            name,
            f"https://{server}.example",
            f"id-of-{name}" if subject is None else subject,
            datetime(2026, 11, 3, tzinfo=UTC),
        )
        self.held[server, str(owner)] = made
        self.tokens[ident] = token or f"token-of-{name}-{ident}"
        return made

    def disconnect(self, server: str, owner: Actor | str) -> None:
        gone = self.held.pop((server, str(owner)))
        self.tokens.pop(gone.id, None)

    def expire(self, server: str, owner: Actor | str) -> None:
        self.held[server, str(owner)] = replace(self.held[server, str(owner)], is_expired=True)

    def find(
        self, session: Session, server: str, identity: Identity, whose: ConnectionOwner
    ) -> Connection | None:
        owners: Sequence[str] = sorted(whose.accounts)
        if identity is Identity.PLACE:
            owners = list_enclosing(whose.place)
        found = (self.held.get((server, owner)) for owner in owners)
        return next((each for each in found if each is not None and each.identity is identity), None)

    def access(self, connection: Connection) -> HeldAccess:
        return HeldAccess(self, connection)

    def providers(self) -> Mapping[str, Identity]:
        return self.named


@dataclass
class Forge:
    """A server with accounts: what each of them did there, by its token.

    ``refuses`` is what it says instead of closing an issue, ``says`` what it tells while it does.
    """

    refuses: str = ""
    says: str = ""
    log: list[tuple[str, str, str]] = field(default_factory=list)  # token, tool, argument

    def tools(self) -> FixedToolset:
        """Tools at the provider ``forge``: one that reads, one that writes, one that can't be undone."""

        @tool(writes=False, connection="forge", open_world=False)
        async def read_issue(number: int, context: CallContext) -> str:
            """Read an issue."""
            self.log.append((context.token, "read_issue", str(number)))
            return f"issue {number} as seen with {context.token}"

        @tool(connection="forge", summary="Close issue #{number}")
        async def close_issue(number: int, context: CallContext, comment: str = "") -> str:
            """Close an issue."""
            self.log.append((context.token, "close_issue", f"{number} {comment}".strip()))
            if self.says:
                await context.progress(self.says)
            if self.refuses:
                raise ToolError(self.refuses)
            return f"closed {number}"

        @tool(destructive=True, connection="forge", summary="Delete issue #{number}")
        async def delete_issue(number: int, context: CallContext) -> str:
            """Delete an issue."""
            self.log.append((context.token, "delete_issue", str(number)))
            return f"deleted {number}"

        return FixedToolset("forge", (read_issue, close_issue, delete_issue))


class ConnectedNod(Nod):
    """The core where people have accounts at the provider ``forge``."""

    def __init__(self, *given: object, identity: Identity = Identity.PERSON, **parts: object) -> None:
        self.forge = Forge()
        self.accounts = Accounts(forge=identity)
        parts.setdefault("hooks", Hooks(annotate_card=(warn_of_answer,)))
        super().__init__(*given, **parts)  # type: ignore[arg-type]

    def tools(self) -> Toolset:
        give_connections(self.database, self.accounts)
        return ConnectedTools(self.forge.tools(), self.database)

    def token(self, connection: Connection) -> str:
        return self.accounts.tokens[connection.id]

"""The routes of connections: list, begin, confirm and end them.

A connection is an account at another server, in whose name Nod makes calls there. The pages that a browser
opens on the way to a connection are in `page_routes.py`.
"""

from typing import Annotated

from fastapi import Path
from pydantic import Field

from bot.errors import SignInError
from bot.features.connections import ending
from bot.features.connections.port import AccountConnections
from bot.features.connections.rows import ListedConnection
from bot.features.connections.sign_in.connecting import ConnectFlow
from bot.features.connections.sign_in.pending import AccountSignIn
from bot.features.feature import PartsDep, RouteParts
from bot.web.answers import HttpError, NotFound, require_or_404
from bot.web.body import Body
from bot.web.schemas import DoneBody, SaidBody, Time, View
from bot.web.site import Caller, make_router

NO_SERVERS_TEXT = "No server here is called under people's accounts."

router = make_router("connections", prefix="/api")

Name = Annotated[str, Path(max_length=40)]


class ConnectedAccountView(View):
    """A connection, without its token.

    ``identity``: whose account it is, person or place. ``account``: the account in words for people;
    ``name`` and ``subject``: the server's name and ID of it. ``expired``: it has to be connected again.
    ``resting``: the account of a chat is not used for now, and ``rest`` says why. ``mine``: the caller owns
    the connection.
    """

    id: str
    server: str
    identity: str
    owner: str
    owner_name: str
    account: str
    name: str
    subject: str
    connected_at: Time
    last_used_at: Time | None
    expired: bool
    resting: bool
    rest: str
    mine: bool


class ServerToConnect(View):
    """A server at which accounts are connected, and whose they are: person or place."""

    name: str
    identity: str


class ConnectionList(DoneBody):
    """``everyone``: the caller is an admin, who sees everyone's connections.

    ``asked``: sign-ins of the caller that wait for the six digits, each by its server and account.
    """

    everyone: bool
    servers: list[ServerToConnect]
    connections: list[ConnectedAccountView]
    asked: list[str]


class LinkBody(DoneBody):
    """``url``: a link that works once, for ten minutes, for the caller alone."""

    url: str


class DigitsBody(Body):
    digits: Annotated[str, Field(min_length=1, max_length=20)]


def _require_port(parts: RouteParts) -> AccountConnections:
    if not isinstance(parts.connections, AccountConnections):
        raise NotFound(NO_SERVERS_TEXT)
    return parts.connections


@router.get("/connections", summary="The accounts that are connected")
async def listed(actor: Caller, parts: PartsDep) -> ConnectionList:
    """Return the connections that you have, and those that you made for chats; to admins everyone's."""
    if not isinstance(parts.connections, AccountConnections):
        return ConnectionList(everyone=False, servers=[], connections=[], asked=[])
    port = parts.connections
    visible = await parts.database.read(ending.list_visible, parts.policies, actor, parts.clock())
    return ConnectionList(
        everyone=visible.everyone,
        servers=[ServerToConnect(name=name, identity=each.identity) for name, each in port.servers.items()],
        connections=[_make_view(each, visible.accounts) for each in visible.listed],
        asked=[_name_sign_in(each) for each in visible.waiting_sign_ins],
    )


def _name_sign_in(sign_in: AccountSignIn) -> str:
    return f"{sign_in.server}: {sign_in.name}" if sign_in.name else sign_in.server


def _make_view(listed: ListedConnection, accounts: frozenset[str]) -> ConnectedAccountView:
    """Return a connection for the person who has these accounts."""
    connection = listed.connection
    return ConnectedAccountView(
        id=connection.id,
        server=connection.server,
        identity=connection.identity,
        owner=connection.owner,
        owner_name=connection.owner_label,
        account=connection.account,
        name=connection.with_short_names.name,  # ``with_short_names``: with texts of limited length
        subject=connection.subject,
        connected_at=connection.connected_at,
        last_used_at=listed.last_used_at,
        expired=connection.is_expired,
        resting=connection.is_resting,
        rest=listed.rest,
        mine=connection.owner in accounts,
    )


@router.post("/connections/{server}/link", summary="Get a link to connect your account", status_code=201)
async def link(server: Name, actor: Caller, parts: PartsDep) -> LinkBody:
    """Make a link to open in a browser, whose page says what it does.

    404 for a server at which people connect no account.
    """
    port = _require_port(parts)
    if server not in port.servers:
        raise NotFound(f"People connect no account at {server}.")
    try:
        return LinkBody(url=await ConnectFlow(port).make_link(server, actor))
    except SignInError as error:
        raise HttpError(409, error.message) from None


@router.post("/connections/confirm", summary="Send the six digits that your browser shows")
async def confirm(body: DigitsBody, actor: Caller, parts: PartsDep) -> SaidBody:
    """Connect the account of your sign-in with these digits. A wrong number ends the sign-in."""
    try:
        connected = await ConnectFlow(_require_port(parts)).confirm(actor, body.digits)
    except SignInError as error:
        raise HttpError(409, error.message) from None
    await parts.wake(*connected.jobs)
    return SaidBody(text=f"Connected: {connected.connection.acts_as}.")


@router.delete("/connections", summary="Disconnect everywhere")
async def end_all(actor: Caller, parts: PartsDep) -> SaidBody:
    """End every connection of yours, at every server."""
    port = _require_port(parts)
    ended = await parts.database.write(ending.end_everywhere, actor, port.clock())
    return SaidBody(text=ending.describe_ended(ended))


@router.delete("/connections/{connection_id}", summary="End a connection")
async def end_one(
    connection_id: Annotated[str, Path(max_length=64)], actor: Caller, parts: PartsDep
) -> SaidBody:
    """End a connection of yours, or one that you made for a chat; admins end anyone's."""
    now = _require_port(parts).clock()
    ended = await parts.database.write(ending.end_one, parts.policies, connection_id, actor, now)
    return SaidBody(text=ending.describe_ended([require_or_404(ended, "You have no such connection.")]))

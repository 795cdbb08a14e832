"""The way from a link to a connection: the service `ConnectFlow`, which routes, commands and tools call.

A connection is an account at another server, in whose name Nod makes calls there. It is owned by a person or,
at some servers, by a place, which is a chat.

1. A person asks for a link (`make_link`) and opens it in a browser (`find_link`).
2. A button uses the link up, and leads to the server's sign-in (`open_sign_in`).
3. The browser comes back with a code. Nod exchanges the code for tokens, asks the server whose account they
   are, and shows six digits in the browser (`finish_sign_in`).
4. The person confirms the account: with the digits in their private chat (`confirm`), or with a button if the
   browser is signed in with the organisation (`confirm_in_browser`). Then the connection is stored.

A sign-in under way is an `AccountSignIn`. The digits prove that the person in the chat has the browser. Each
step is stored in a row (`pending.py`), so any process may take the next step. A step that fails ends the
sign-in, and its tokens are revoked at the server.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlmodel import Session

from bot.approvals import rights
from bot.domain.chat import Address, chat_of
from bot.domain.connections import Connection, Identity, bound_name
from bot.domain.jobs import CHANGED, Job
from bot.domain.people import LOCAL, Actor, Person, Role, name_of_channel, workspace_of
from bot.domain.text import escape_markdown
from bot.errors import ChannelError, SignInError
from bot.features.connections import rows
from bot.features.connections.port import AccountConnections, address_of
from bot.features.connections.sign_in import missing_scopes, pending, waiting
from bot.features.connections.sign_in.pending import AccountSignIn, ConfirmationRefusal, WantedConnection
from bot.features.connections.sign_in.provider_entries import Provider
from bot.store import people
from bot.store.notices import CHANNELS_WITHOUT_CHATS, store_private_notice
from bot.telemetry.logs import logger
from bot.tools.mcp.config import Http, ServerConfig
from bot.web.sign_in.accounts import account_of

log = logger(__name__)

LINK_PATH = "/connect"  # the path of links
CALLBACK_PATH = "/oauth/callback"  # the path to which servers send browsers back
LINK_OVER_TEXT = "This link is used, too old, or not one of Nod's. Ask for a new one."
SIGN_IN_OVER_TEXT = "This sign-in is over, or was begun in another browser. Ask for a new link."
_RETURN_PARAMETERS = ("code", "iss", "error", "error_description")  # of the browser's return, by OAuth 2
_MAX_PARAMETER_CHARS = 4_000
_TOPIC = re.compile(r"-?\d+/\d+", re.ASCII)  # a topic of a chat whose key is a number: ``-100123/45``
_CONFIRM_TEXT = (
    "Someone signed in at {server} as **{name}**, to connect that account for you. If that was you, {send}. "
    "If not, send `/nod connections confirm no`."
)
_TYPE_DIGITS_TEXT = "send here the six digits that your browser shows"
_SEND_COMMAND_TEXT = "send `/nod connections confirm` and the six digits that your browser shows"
_COMMAND_CHANNELS = frozenset({"discord"})
"""The channels in which Nod reads only commands, so that digits alone do not arrive."""
_LOCAL_NAME = "the person at the computer on which Nod runs"  # who uses the console without signing in
_OTHER_TRIED_TEXT = (
    "At {server}, {who} tried to connect your account ({name}) for themselves. It stays yours alone. "
    "If you don't know why, change your password there."
)


@dataclass(frozen=True, slots=True)
class ReturnedBrowser:
    """A browser that came back from the server's sign-in."""

    sign_in: AccountSignIn
    digits: str  # the six digits for the chat; empty if the person confirms in the browser


@dataclass(frozen=True, slots=True)
class SignInPage:
    """The page of the server's sign-in."""

    url: str
    browser_secret: str  # for a cookie, by which the browser is known when it comes back


@dataclass(frozen=True, slots=True)
class Connected:
    """A new connection, and the jobs that follow."""

    connection: Connection
    jobs: tuple[Job, ...]


class ConnectFlow:
    """The service that connects accounts: links, sign-ins and confirmations, stored as rows."""

    def __init__(self, port: AccountConnections) -> None:
        self._port = port
        self._database, self._clock = port.database, port.clock

    async def make_link(self, server: str, actor: Actor, place: Address | None = None) -> str:
        """Return a link that is good once, for this person and server. Raises SignInError.

        ``place``: the chat in which the person asked. At a server whose calls are made in the name of chats,
        the account becomes that of this chat.
        """
        config = self._port.servers.get(server)
        if config is not None and config.identity is Identity.PLACE:
            owner = await self._database.read(self._find_chat_owner, server, actor, place)
            await self._check_readers(Address.parse(owner.account))
        code = await self._database.write(self._begin, server, actor, place)
        return f"{self._port.site_url()}{LINK_PATH}/{code}"

    async def _check_readers(self, chat: Address) -> None:
        """Raise SignInError for a chat that another company reads, or may read."""
        try:
            is_shared = await self._port.reader_check.ask_if_shared(chat)
        except ChannelError as error:
            raise SignInError(f"Nod can't see who reads along here. {error.message}") from None
        if is_shared:
            raise SignInError("People of another company read along here, so this chat gets no account.")

    def _begin(self, session: Session, server: str, actor: Actor, place: Address | None) -> str:
        """Store a sign-in, and return the code of its link. Raises SignInError."""
        config = self._port.servers.get(server)
        if config is None:
            known = ", ".join(sorted(self._port.servers))
            raise SignInError(f"People connect no account at {server[:40]}. They do at: {known}.")
        person = people.load_person(session, actor)
        if person.is_outsider:
            raise SignInError("Only people of the team connect accounts.")
        if config.identity is Identity.PERSON:
            owner = _Owner(str(actor), bound_name(actor.label))
        else:
            owner = self._find_chat_owner(session, server, actor, place)
        wanted = WantedConnection(
            server=server,
            url=address_of(config),
            identity=config.identity,
            owner=owner.account,
            owner_name=owner.name,
            person=str(actor),
            person_name=_describe_person(session, actor),
        )
        return pending.begin_sign_in(session, wanted, person.accounts | {str(actor)}, self._clock())

    def _find_chat_owner(
        self, session: Session, server: str, actor: Actor, place: Address | None
    ) -> "_Owner":
        """Return the chat that gets the connection. Raises SignInError for anyone but an admin there."""
        chat = find_chat(place)
        if chat is None or chat.channel in CHANNELS_WITHOUT_CHATS:
            raise SignInError(f"An account at {server} is for a chat. Send this in that chat.")
        chat_address = str(chat)
        person = people.load_person(session, actor)
        if Role.ADMIN not in self._port.policies.load(session).roles_of(person, chat_address):
            raise SignInError("Only an admin connects an account for a chat.")
        name = people.find_known_names(session, [chat_address]).get(chat_address, chat_address)
        return _Owner(chat_address, bound_name(name))

    async def find_link(self, code: str) -> AccountSignIn | None:
        """Return the sign-in of a link without changing it; None if the link is of no use now."""
        sign_in = await self._database.read(pending.find_link, code, self._clock())
        if sign_in is None or self._find_server(sign_in) is None:
            return None
        return sign_in

    def _find_server(self, sign_in: AccountSignIn) -> ServerConfig | None:
        """Return the server of a sign-in; None if the settings no longer have it.

        None is also returned if the server's address or identity has changed since the link was made.
        """
        config = self._port.servers.get(sign_in.server)
        if config is None or address_of(config) != sign_in.url or config.identity != sign_in.identity:
            return None
        return config

    async def list_scopes(self, sign_in: AccountSignIn) -> tuple[str, ...]:
        """Return the scopes for which the sign-in asks: those of the settings, and those that calls lacked.

        An MCP server may name further scopes itself.
        """
        transport = self._port.servers[sign_in.server].transport
        configured_scopes = transport.client.scopes if isinstance(transport, Http) else ()
        more_scopes = await self._database.read(_list_more_scopes, sign_in)
        return tuple(dict.fromkeys((*configured_scopes, *more_scopes)))

    async def open_sign_in(self, code: str, *, is_organised: bool) -> SignInPage:
        """Use a link up, and return the page of the server's sign-in. Raises SignInError.

        ``is_organised``: the browser is signed in as the person with the organisation's account, so the
        person will confirm by a button.
        """
        from bot.tools.mcp.authorization import request_authorization  # here, as the SDK is slow to import

        browser_secret = secrets.token_urlsafe(32)
        use_link = partial(pending.use_link, is_organised=is_organised)
        sign_in = await self._database.write(use_link, code, browser_secret, self._clock())
        if sign_in is None:
            raise SignInError(LINK_OVER_TEXT)
        config = self._find_server(sign_in)
        if config is None or not isinstance(config.transport, Http):
            await self._end_sign_in(sign_in)
            raise SignInError(LINK_OVER_TEXT)
        return_url = f"{self._port.site_url()}{CALLBACK_PATH}/{sign_in.server}"
        more_scopes = await self._database.read(_list_more_scopes, sign_in)
        try:
            if isinstance(config, Provider):
                from bot.features.connections.sign_in.providers import make_provider_request

                request = make_provider_request(config, return_url, more_scopes)
            else:
                client = await self._database.read(rows.find_client, sign_in.server, sign_in.url, return_url)
                request = await request_authorization(
                    sign_in.server,
                    config.transport,
                    return_url,
                    client=client,
                    more_scopes=" ".join(more_scopes),
                )
        except SignInError:
            await self._end_sign_in(sign_in)
            raise
        # all fields of the request are columns of the row, except the page and the state
        columns = asdict(request)
        page = columns.pop("page")
        state = columns.pop("state")
        await self._database.write(pending.store_request, sign_in.id, state, columns)
        return SignInPage(page, browser_secret)

    async def finish_sign_in(
        self, server: str, parameters: Mapping[str, str], browser: str
    ) -> ReturnedBrowser:
        """Take a browser's return: exchange its code, and ask whose account it is. Raises SignInError.

        ``parameters``: those of the return's address. ``browser``: the secret of the browser's cookie.
        """
        now = self._clock()
        state = parameters.get("state", "")
        sign_in = None
        if state and browser:
            sign_in = await self._database.write(pending.claim_return, server, state, browser, now)
        if sign_in is None:
            raise SignInError(SIGN_IN_OVER_TEXT)
        try:
            return await self._exchange_code(sign_in, parameters)
        except OtherOwner as error:
            await self._end_sign_in(error.sign_in)
            await self._database.write(self._tell_owner, error)
            raise
        except SignInError:
            await self._end_sign_in(sign_in)
            raise

    async def _exchange_code(self, sign_in: AccountSignIn, parameters: Mapping[str, str]) -> ReturnedBrowser:
        """Exchange the code for tokens, and store the tokens and their account. Raises SignInError.

        ``parameters``: those of the return's address, of which ``code`` is one.
        """
        from bot.features.connections.sign_in.whoami import find_account
        from bot.tools.mcp.authorization import AuthorizationRequest, exchange_code

        config = self._find_server(sign_in)
        if config is None:
            raise SignInError(LINK_OVER_TEXT)
        request = AuthorizationRequest(
            page="",  # not needed any longer
            state=parameters.get("state", ""),
            back=sign_in.back,
            scope=sign_in.scope,
            issuer=sign_in.issuer,
            found=sign_in.found,
            client=sign_in.client,
            verifier=sign_in.verifier,
        )
        bounded_parameters = {
            name: parameters[name][:_MAX_PARAMETER_CHARS] for name in _RETURN_PARAMETERS if name in parameters
        }
        tokens = await exchange_code(sign_in.server, sign_in.url, request, bounded_parameters)
        if not tokens.scope:  # without a scope, the one that was asked for is granted (RFC 6749, 5.1)
            tokens = tokens.model_copy(update={"scope": sign_in.scope or None})
        tokens_json = tokens.model_dump_json(exclude_none=True)
        scope = tokens.scope or ""
        if not await self._database.write(pending.store_tokens, sign_in, tokens_json, scope, self._clock()):
            raise SignInError(SIGN_IN_OVER_TEXT)
        account = await find_account(config, sign_in.issuer, scope, tokens.access_token)
        columns = {"name": account.name, "subject": account.subject}
        return await self._database.write(self._store_account, sign_in, columns, account.email)

    def _store_account(
        self, session: Session, sign_in: AccountSignIn, columns: Mapping[str, str], email: str
    ) -> ReturnedBrowser:
        """Store the account, and ask the person in their private chat to confirm it. Raises SignInError.

        A person who confirms in the browser gets no message. ``columns``: the name and the subject of the
        account. ``email``: its address as the issuer verified it; empty if it is not known.
        """
        now = self._clock()
        person = people.load_person(session, Actor.parse(sign_in.person))
        digits = pending.store_account(session, sign_in.id, dict(columns), now)
        if digits is None:
            raise SignInError(SIGN_IN_OVER_TEXT)
        current = pending.find_by_id(session, sign_in.id)
        if current is None:
            raise SignInError(SIGN_IN_OVER_TEXT)
        _refuse_account_of_other(session, current, person, email)
        if current.is_organised:
            return ReturnedBrowser(current, digits="")
        actor = Actor.parse(current.person)
        needs_command = actor.channel in _COMMAND_CHANNELS | CHANNELS_WITHOUT_CHATS
        send = _SEND_COMMAND_TEXT if needs_command else _TYPE_DIGITS_TEXT
        name = escape_markdown(_describe_account(current))
        store_private_notice(
            session, actor, _CONFIRM_TEXT.format(server=current.server, name=name, send=send), now
        )
        return ReturnedBrowser(current, digits)

    def _tell_owner(self, session: Session, error: "OtherOwner") -> None:
        """Tell the person whose account someone else tried to connect."""
        sign_in = error.sign_in
        text = _OTHER_TRIED_TEXT.format(
            who=escape_markdown(bound_name(sign_in.person_name)),
            server=sign_in.server,
            name=escape_markdown(_describe_account(sign_in)),
        )
        store_private_notice(session, error.owner, text, self._clock())

    async def confirm(self, actor: Actor, digits: str) -> Connected:
        """Connect the account of the sign-in with these six digits. Raises SignInError."""
        connected = await self._database.write(self.confirm_in_transaction, actor, digits.strip())
        if isinstance(connected, ConfirmationRefusal):
            raise SignInError(connected.text)
        return connected

    def has_sign_in_to_confirm(self, session: Session, actor: Actor) -> bool:
        """Return whether a sign-in of this person waits for its six digits."""
        accounts = rights.list_accounts(session, actor)
        return pending.has_unconfirmed(session, accounts, self._clock())

    def confirm_in_transaction(
        self, session: Session, actor: Actor, digits: str
    ) -> Connected | ConfirmationRefusal:
        """Do the work of `confirm` in the caller's transaction, which is committed after a refusal, too."""
        now = self._clock()
        accounts = rights.list_accounts(session, actor)
        sign_in = pending.pop_by_digits(session, accounts, digits, now)
        if isinstance(sign_in, ConfirmationRefusal):
            return sign_in
        return self._connect(session, sign_in, now)

    async def confirm_in_browser(self, actor: Actor, browser: str) -> Connected:
        """Connect the account of a browser that is signed in with the organisation. Raises SignInError."""
        connected = await self._database.write(self._confirm_in_browser, actor, browser)
        if isinstance(connected, ConfirmationRefusal):
            raise SignInError(connected.text)
        return connected

    def _confirm_in_browser(
        self, session: Session, actor: Actor, browser: str
    ) -> Connected | ConfirmationRefusal:
        """Do the work of `confirm_in_browser` in a transaction."""
        now = self._clock()
        accounts = rights.list_accounts(session, actor)
        sign_in = pending.pop_by_browser(session, accounts, browser, now)
        return self._connect(session, sign_in, now) if sign_in else ConfirmationRefusal(SIGN_IN_OVER_TEXT)

    def _connect(
        self, session: Session, sign_in: AccountSignIn, now: datetime
    ) -> Connected | ConfirmationRefusal:
        """Store the connection of a confirmed sign-in, unless its server or its account is refused now."""
        if self._find_server(sign_in) is None:
            pending.revoke_unused_tokens(session, sign_in, now)
            return ConfirmationRefusal(LINK_OVER_TEXT)
        accounts = rights.list_accounts(session, Actor.parse(sign_in.person))
        try:
            connection = rows.add_connection(session, sign_in, accounts, now)
        except SignInError as error:
            pending.revoke_unused_tokens(session, sign_in, now)
            return ConfirmationRefusal(error.message)
        log.info("an account is connected", server=sign_in.server, owner=sign_in.owner)
        jobs = waiting.continue_waiting(session, sign_in.server, accounts, now)
        return Connected(connection, (CHANGED, *jobs))

    async def _end_sign_in(self, sign_in: AccountSignIn) -> None:
        """End a sign-in without a connection, and have its tokens revoked."""
        await self._database.write(pending.end_sign_in, sign_in, self._clock())


class OtherOwner(SignInError):
    """Another person here has connected that account. Nothing is connected, and that person is told."""

    # ``sign_in`` has the account; ``owner`` is the person who connected it before
    def __init__(self, sign_in: AccountSignIn, owner: Actor) -> None:
        super().__init__()
        self.sign_in, self.owner = sign_in, owner


def find_chat(place: Address | None) -> Address | None:
    """Return the chat of an address, which may be that of a thread or a topic of the chat; None for None."""
    chat = chat_of(place)  # removes a thread, but not a topic
    if chat is None or not _TOPIC.fullmatch(chat.key):
        return chat
    return Address(chat.channel, chat.key.partition("/")[0])


class _Owner(NamedTuple):
    """The owner of a future connection: a person's account or the address of a chat, and the name."""

    account: str
    name: str


def _describe_person(session: Session, actor: Actor) -> str:
    """Return a person's name with the channel and workspace of the account: ``Ana (Slack, Example)``."""
    if actor == LOCAL:
        return _LOCAL_NAME
    workspace = workspace_of(str(actor))
    workspace_names = people.find_known_names(session, [workspace]) if workspace else {}
    origin = ", ".join([name_of_channel(actor.channel), *workspace_names.values()])
    return bound_name(f"{bound_name(actor.name or actor.key)} ({origin})")


def _list_more_scopes(session: Session, sign_in: AccountSignIn) -> list[str]:
    """Return the scopes that calls lacked, after those granted before; empty if no call lacked any."""
    lacked = missing_scopes.list_lacking(session, sign_in.server, sign_in.owner)
    if not lacked:
        return []
    granted = rows.list_granted(session, sign_in.server, sign_in.identity, sign_in.owner)
    return list(dict.fromkeys((*granted, *lacked)))


def _describe_account(sign_in: AccountSignIn) -> str:
    return bound_name(sign_in.name) or f"an account whose name {sign_in.server} does not tell"


def _refuse_account_of_other(session: Session, sign_in: AccountSignIn, person: Person, email: str) -> None:
    """Raise SignInError if the account or its email address is known to belong to another person."""
    if sign_in.identity != Identity.PERSON:
        return
    accounts = person.accounts | {sign_in.person}
    other = rows.find_other_owner(session, sign_in, accounts)
    if other is not None:
        raise OtherOwner(sign_in, other)
    # the person with this email address signs in to the console with this account
    console_account = account_of(email) if "@" in email else None
    if console_account is None or str(console_account) in accounts:
        return
    is_linked = len(people.load_person(session, console_account).accounts) > 1
    if is_linked or people.find_known_names(session, [str(console_account)]):
        words = f"That account is known here as another person's ({console_account})."
        raise SignInError(f"{words} If both are you, link them first: /nod link.")

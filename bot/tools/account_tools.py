"""Tools that run under an account of a person or a chat, each bound to the connection to that account.

A *connection* is such an account, with the tokens that its owner (the person or the chat) allowed Nod to use.
It is an account at an MCP server or at a *provider*: another service, such as GitHub, that a team's own tools
call. `ConnectedTools` wraps a toolset whose tools may name a provider (`Tool.provider`): it binds such a tool
to the connection at that provider, or leaves it out. The token is fetched when a tool runs, and only its
context has it. `hide_secrets` removes it from everything that the tool returns or logs.

MCP servers that are called under such accounts use `find_connections` and `hide_secrets` as well.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_jsonable_python
from sqlmodel import Session

from bot.domain.connection_port import Connections
from bot.domain.connections import Connection, ConnectionAccess, ConnectionOwner, Identity, encodings_of
from bot.domain.files import File
from bot.domain.people import Actor
from bot.domain.redaction import HIDDEN, hide_values
from bot.errors import ToolError
from bot.store.connections import find_connection, get_connections, load_owner, load_requester
from bot.store.database import Database
from bot.telemetry.logs import logger, redact_in_logs
from bot.tools.call import Arguments, CallContext, ToolOutput
from bot.tools.tool import Run, Tool
from bot.tools.toolset import Toolset, ToolSource

log = logger(__name__)

_LACKING_TEXT = (
    "{connection.owner_label} has allowed Nod only to read at {connection.server} so far. "
    "Changes need more there: {scope}. {again}"
)

SecretLister = Callable[[], Sequence[str]]
"""Returns the texts to hide, the longest first. After a token was refreshed, it returns further ones."""


class ConnectedTools:
    """Implements `Toolset` over another toolset, whose tools may name a provider of accounts."""

    def __init__(self, tools: Toolset, database: Database) -> None:
        self.name = tools.name
        self._source = ToolSource(tools)
        self._database = database
        self._logged_names: set[str] = set()  # the tools whose omission is in the log already

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        """Return the tools. A tool that names a provider is bound to the connection there, or left out."""
        tools = await self._source.list_tools(context)
        provider_names = {tool.provider for tool in tools if tool.provider}
        if not provider_names:
            return tools
        connections = get_connections(self._database)
        providers = connections.providers() if connections else {}
        self._log_unknown(tools, providers)
        identities = {name: identity for name, identity in providers.items() if name in provider_names}
        by_provider = await find_connections(self._database, identities, context)
        available = []
        for tool in tools:
            connection = by_provider.get(tool.provider)
            if not tool.provider:
                available.append(tool)
            elif connection is not None and connections is not None:
                available.append(_bind(tool, connection, connections))
        return available

    def _log_unknown(self, tools: Sequence[Tool], providers: Mapping[str, Identity]) -> None:
        """Log each tool whose provider is not configured, once."""
        for tool in tools:
            if tool.provider and tool.provider not in providers and tool.name not in self._logged_names:
                self._logged_names.add(tool.name)
                log.error("a tool is left out: no one set its accounts up", tool=tool.name, at=tool.provider)


async def find_connections(
    database: Database, identities: Mapping[str, Identity], context: CallContext | None
) -> dict[str, Connection]:
    """Return the usable connections of the person or the chat for whom a call is made, by server.

    ``identities``: the servers or providers, each with the kind of owner that its connections have.
    """
    if context is None or not identities:
        return {}
    call_context = context  # for the type checker: not None in the function below

    def find(session: Session) -> dict[str, Connection]:
        owners = find_owners(session, call_context)
        if owners is None:
            return {}
        connections = {}
        for server, identity in identities.items():
            connection = find_connection(session, server, identity, owners)
            if connection is not None and connection.is_usable:
                connections[server] = connection
        return connections

    return await database.read(find)


def find_owners(session: Session, context: CallContext) -> ConnectionOwner | None:
    """Return the owners whose connections a call uses: a person and a chat. None if they are not known.

    A proposed call names the owner of its connection. Any other call uses those of the person who asks, and
    of the chat where they ask.
    """
    if context.connected_as:
        return load_owner(session, context.connected_as)
    if not context.conversation_id:
        return None
    return load_requester(session, Actor.parse(context.requested_by), context.conversation_id)


def secrets_of(access: ConnectionAccess) -> SecretLister:
    """Return a function that lists the texts to hide of a connection, in each of their encodings."""
    return lambda: encodings_of(access.secrets)


def hide_secrets(run: Run, secrets: SecretLister) -> Run:
    """Return ``run`` without the secrets in its output, progress, errors and log lines."""

    def hide_in(report: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
        async def report_hidden(text: str) -> None:
            await report(hide_values(text, secrets()))

        return report_hidden

    async def run_hidden(arguments: Arguments, context: CallContext) -> ToolOutput:
        hidden_context = replace(
            context, progress=hide_in(context.progress), printed=hide_in(context.printed)
        )
        with redact_in_logs(secrets):  # the run itself may fetch a new token
            try:
                return hide_output(await run(arguments, hidden_context), secrets())
            except ToolError as error:
                error.args = (hide_values(error.message, secrets()), *error.args[1:])
                raise
            except Exception as error:  # noqa: BLE001 - a tool's own code, whose traceback may have the token
                kind = type(error).__name__
                why = hide_values(str(error), secrets())
                log.error("a tool raised under a connection", error=kind, why=why)
                raise ToolError(f"It failed with {kind}; the log has the details.") from None

    return run_hidden


def hide_output(output: ToolOutput, secrets: Sequence[str]) -> ToolOutput:
    """Return the output without the secrets, in its texts, its data and its files.

    ``kept``, the tool's record for its undo, is dropped instead of being searched for secrets.
    """

    def hide(text: str | None) -> str | None:
        return None if text is None else hide_values(text, secrets)

    return replace(
        output,
        data=_hide_in(output.data, secrets),
        url=hide(output.url),
        told=hide(output.told),
        ended_badly=hide(output.ended_badly),
        kept=None,
        files=tuple(_hide_in_file(file, secrets) for file in output.files),
    )


def _bind(tool: Tool, connection: Connection, connections: Connections) -> Tool:
    """Return the tool bound to a connection: its run gets the token in its context."""
    access = connections.access(connection)
    run = tool.run
    if run is None:
        return replace(tool, connection=connection)

    async def run_with_token(arguments: Arguments, context: CallContext) -> ToolOutput:
        token = await access.get_token()
        if token is None:
            raise ToolError(
                f"{connection.server} did not let {connection.owner_label} in: {access.failure_reason}."
            )
        if tool.classify(arguments).writes:
            scope = await access.find_lacking_scope()
            if scope:
                access.note_scope(scope)
                raise ToolError(
                    _LACKING_TEXT.format(connection=connection, scope=scope, again=access.sign_in_hint)
                )
        return await run(arguments, replace(context, token=token))

    return replace(tool, connection=connection, run=hide_secrets(run_with_token, secrets_of(access)))


def _hide_in(data: Any, secrets: Sequence[str]) -> Any:
    """Return data as JSON without the secrets. It never raises, since the tool has already run."""
    if isinstance(data, str):
        return hide_values(data, secrets)
    try:
        return _hide_in_json(to_jsonable_python(data, bytes_mode="base64", fallback=str), secrets)
    except (ValueError, RecursionError):  # it contains itself, or is nested too deeply
        return "(an answer that can't be written as JSON)"


def _hide_in_json(data: Any, secrets: Sequence[str]) -> Any:
    if isinstance(data, str):
        return hide_values(data, secrets)
    if isinstance(data, dict):
        return {hide_values(key, secrets): _hide_in_json(value, secrets) for key, value in data.items()}
    if isinstance(data, list):
        return [_hide_in_json(item, secrets) for item in data]
    return data


def _hide_in_file(file: File, secrets: Sequence[str]) -> File:
    data = file.data
    if data:
        for secret in secrets:
            data = data.replace(secret.encode(), HIDDEN.encode())
    return replace(
        file, name=hide_values(file.name, secrets), text=hide_values(file.text, secrets), data=data
    )

"""Tools that run in someone's name, each bound to the connection of the person or the chat it is asked for.

A token is fetched when a tool runs, and is in its context alone. Whatever the tool gives back is freed of it
before anyone else sees that. Where a person or chat has no connection, the tool is not there for them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_jsonable_python
from sqlmodel import Session

from bot.domain.connection_port import Connections
from bot.domain.connections import Connection, ConnectionAccess, Identity, Whose, encodings_of
from bot.domain.files import File
from bot.domain.people import Actor
from bot.domain.redaction import HIDDEN, veil
from bot.errors import ToolError
from bot.store.connections import find_connection, get_connections, whose_call, whose_owner
from bot.store.database import Database
from bot.telemetry.logs import hiding, logger
from bot.tools.tool import Arguments, CallContext, Run, Tool, ToolOutput, Toolset, ToolSource

log = logger(__name__)

_LACKING_TEXT = (
    "{connection.owner_label} has allowed Nod only to read at {connection.server} so far. "
    "Changes need more there: {scope}. {again}"
)

Secrets = Callable[[], Sequence[str]]
"""The texts to hide, as known by now: longest first."""


class ConnectedTools:
    """Implements `Toolset` over another one, whose tools may name a provider of accounts."""

    def __init__(self, tools: Toolset, database: Database) -> None:
        self.name = tools.name
        self._source = ToolSource(tools)
        self._database = database
        self._told: set[str] = set()  # tools that the log knows to be left out

    async def tools(self, context: CallContext | None = None) -> Sequence[Tool]:
        """Return the tools, those with a provider only where its connection is there."""
        found = await self._source.list_tools(context)
        named = {each.acts_at for each in found if each.acts_at}
        if not named:
            return found
        connections = get_connections(self._database)
        providers = connections.providers() if connections else {}
        self._tell_unknown(found, providers)
        wanted = {name: identity for name, identity in providers.items() if name in named}
        held = await find_connections(self._database, wanted, context)
        bound = []
        for each in found:
            connection = held.get(each.acts_at)
            if not each.acts_at:
                bound.append(each)
            elif connection is not None and connections is not None:
                bound.append(_bind(each, connection, connections))
        return bound

    def _tell_unknown(self, found: Sequence[Tool], providers: Mapping[str, Identity]) -> None:
        for each in found:
            if each.acts_at and each.acts_at not in providers and each.name not in self._told:
                self._told.add(each.name)
                log.error("a tool is left out: no one set its accounts up", tool=each.name, at=each.acts_at)


async def find_connections(
    database: Database, wanted: Mapping[str, Identity], context: CallContext | None
) -> dict[str, Connection]:
    """Return the working connections of the person or the chat for whom a call is made, by server."""
    if context is None or not wanted:
        return {}
    asked = context

    def find(session: Session) -> dict[str, Connection]:
        whose = find_whose(session, asked)
        if whose is None:
            return {}
        found = {
            server: find_connection(session, server, identity, whose) for server, identity in wanted.items()
        }
        return {server: each for server, each in found.items() if each is not None and each.is_usable}

    return await database.read(find)


def find_whose(session: Session, context: CallContext) -> Whose | None:
    """Return for whom a call is made: the owner that a proposed one names, else who asks now, and where."""
    if context.connected_as:
        return whose_owner(session, context.connected_as)
    if not context.conversation_id:
        return None
    return whose_call(session, Actor.parse(context.requested_by), context.conversation_id)


def _bind(tool: Tool, connection: Connection, connections: Connections) -> Tool:
    """Return the tool as it runs under a connection: its token is in the context of the run."""
    access = connections.access(connection)
    run = tool.run
    if run is None:
        return replace(tool, connection=connection)

    async def run_with_token(arguments: Arguments, context: CallContext) -> ToolOutput:
        token = await access.token()
        if token is None:
            raise ToolError(f"{connection.server} did not let {connection.owner_label} in: {access.why}.")
        lacking = await access.find_lacking_scope() if tool.classify(arguments).writes else ""
        if lacking:
            access.note_scope(lacking)
            raise ToolError(_LACKING_TEXT.format(connection=connection, scope=lacking, again=access.again))
        return await run(arguments, replace(context, token=token))

    return replace(tool, connection=connection, run=hide_secrets(run_with_token, secrets_of(access)))


def secrets_of(access: ConnectionAccess) -> Secrets:
    """Return what gives the texts to hide of a connection."""
    return lambda: encodings_of(access.secrets)


def hide_secrets(run: Run, secrets: Secrets) -> Run:
    """Return a run whose output, progress, errors and log lines have none of the secrets in them."""

    async def hidden(arguments: Arguments, context: CallContext) -> ToolOutput:
        def cover(show: Callable[[str], Awaitable[None]]) -> Callable[[str], Awaitable[None]]:
            async def covered(words: str) -> None:
                await show(veil(words, secrets()))

            return covered

        with hiding(tuple(secrets())):
            try:
                covered = replace(context, progress=cover(context.progress), printed=cover(context.printed))
                return hide_output(await run(arguments, covered), secrets())
            except ToolError as error:
                error.args = (veil(error.message, secrets()), *error.args[1:])
                raise
            except Exception as error:  # noqa: BLE001 - a tool's own code, whose traceback may have the token
                kind, why = type(error).__name__, veil(str(error), secrets())
                log.error("a tool raised under a connection", error=kind, why=why)
                raise ToolError(f"It failed with {kind}; the log has the details.") from None

    return hidden


def hide_output(output: ToolOutput, secrets: Sequence[str]) -> ToolOutput:
    """Return the output without the secrets, in its texts, its data and its files, and without ``kept``."""

    def hide(text: str | None) -> str | None:
        return None if text is None else veil(text, secrets)

    return replace(
        output,
        data=_hide_in(output.data, secrets),
        url=hide(output.url),
        told=hide(output.told),
        ended_badly=hide(output.ended_badly),
        kept=None,
        files=tuple(_hide_in_file(each, secrets) for each in output.files),
    )


def _hide_in(data: Any, secrets: Sequence[str]) -> Any:
    """Return data as JSON without the secrets. Never raises, for the tool has run."""
    if isinstance(data, str):
        return veil(data, secrets)
    try:
        return _hide_in_json(to_jsonable_python(data, bytes_mode="base64", fallback=str), secrets)
    except (ValueError, RecursionError):  # it holds itself, or is nested too deep
        return "(an answer that can't be written as JSON)"


def _hide_in_json(data: Any, secrets: Sequence[str]) -> Any:
    if isinstance(data, str):
        return veil(data, secrets)
    if isinstance(data, dict):
        return {veil(key, secrets): _hide_in_json(value, secrets) for key, value in data.items()}
    return [_hide_in_json(each, secrets) for each in data] if isinstance(data, list) else data


def _hide_in_file(file: File, secrets: Sequence[str]) -> File:
    data = file.data
    for each in secrets:
        data = data.replace(each.encode(), HIDDEN.encode()) if data else data
    return replace(file, name=veil(file.name, secrets), text=veil(file.text, secrets), data=data)

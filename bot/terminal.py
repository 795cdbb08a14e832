"""What every command of ``nod`` needs: faults in one line, safe text, the database, who sits here."""

import contextlib
import getpass
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import typer
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

from bot.agent.gate import Gate
from bot.domain.chat import SHELL
from bot.domain.people import Actor
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.errors import BadArguments, NodError, SettingsError
from bot.presses import Presses
from bot.settings import Settings
from bot.store import migrations, proposals
from bot.store.database import Database
from bot.tools.registry import Registry


@contextlib.contextmanager
def told() -> Iterator[None]:
    """A fault we know is one line on stderr and exit code 1; never a stack trace."""
    try:
        yield
    except NodError as error:
        words = error.message
    except DBAPIError as error:
        words = f"NOD_DATABASE_URL: {str(error.orig).strip().splitlines()[0]}; nod doctor looks closer"
    except CommandError as error:
        words = f"NOD_DATABASE_URL: {error}; the schema is from a newer nod, so upgrade this one"
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        words = f'NOD_DATABASE_URL: {error}; install it: pip install "nod[postgres]"'
    else:
        return
    print(f"nod: {plain(words)}", file=sys.stderr)  # noqa: T201 - a command answers
    raise typer.Exit(1) from None


def plain(text: str) -> str:
    """Text of models and tools as a terminal may show it: control and direction characters made visible."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def line(text: str) -> str:
    return plain(" ".join(redact_text(text).split()))


@contextlib.contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    file = settings.sqlite_file
    if file is not None and not file.parent.is_dir():
        raise SettingsError(f"NOD_DATABASE_URL: there is no folder {file.parent}; create it first")
    database = Database(settings.database_url)
    try:
        migrations.upgrade(database.engine)
        yield database
    finally:
        database.close()


@contextlib.contextmanager
def existing(settings: Settings) -> Iterator[Database]:
    """For commands that look at what is there: an empty new file would be a wrong answer."""
    file = settings.sqlite_file
    if file is not None and not file.exists():
        raise SettingsError(
            f"NOD_DATABASE_URL: there is no file {file} here; the demo's is sqlite:///nod-demo.db"
        )
    with opened(settings) as database:
        yield database


@contextlib.asynccontextmanager
async def tools_of(
    settings: Settings, database: Database, *, all_now: bool = False
) -> AsyncIterator[Registry]:
    """Every tool that the settings name; MCP servers start when tools are first asked for.

    ``all_now``: they start at once, and those that do not are told.
    """
    from bot.app import policies_of, registry_of

    registry, own, mcp = registry_of(settings, database, policies_of(settings), now)
    await own.start()
    try:
        if all_now:
            await mcp.tools()
        for server in mcp.servers:
            if server.trouble and all_now:
                why = f"the MCP server {server.config.name} is unavailable ({server.trouble})"
                print(line(f"nod: {why}; without its tools"), file=sys.stderr)  # noqa: T201 - a command answers
        yield registry
    finally:
        await mcp.stop()


@contextlib.asynccontextmanager
async def gate_of(settings: Settings, database: Database, *, all_now: bool = False) -> AsyncIterator[Gate]:
    """The door to every tool that the settings name; ``all_now`` as in `tools_of`."""
    from bot.app import policies_of

    async with tools_of(settings, database, all_now=all_now) as registry:
        yield Gate(registry, policies_of(settings), database, now)


@contextlib.asynccontextmanager
async def presses_of(settings: Settings, database: Database) -> AsyncIterator[Presses]:
    """Presses from this shell: whatever work they make is found in the rows by the running nod."""
    async with gate_of(settings, database) as gate:
        yield Presses(database, gate, now)


def now() -> datetime:
    return datetime.now(UTC)


def decoded(text: str) -> dict[str, Any]:
    """A JSON object given on the command line; raises BadArguments."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArguments({"JSON": f"this is not JSON ({error})"}) from None
    if not isinstance(given, dict):
        raise BadArguments({"JSON": "write a JSON object, such as '{\"number\": 3}'"})
    return given


def operator() -> Actor:
    """Who sits at this machine's shell."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        name = str(os.getuid())
    return Actor(SHELL, name, name)


def find(database: Database, prefix: str) -> Proposal:
    found = database.read_now(proposals.starting_with, prefix.lower()) if prefix else []
    if not found:
        raise NodError(f"there is no proposal {prefix}; see: nod pending")
    if len(found) > 1:
        raise NodError(f"{prefix} could be several; give more characters of the ID")
    return found[0]

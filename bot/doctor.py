"""Whether Nod will work here: the settings and everything they name, each fault with its mend.

Nothing is changed: no file is made, no schema upgraded; only what is configured is asked over the network.
The modules that ``NOD_TOOLS`` names are imported and MCP servers are started, as Nod does it.
"""

import difflib
import os
from collections.abc import Iterator

import openai
from dotenv import dotenv_values
from sqlalchemy import Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from bot.app import now, policies_of, registry_of
from bot.channels.http.server import listen
from bot.channels.slack import doctor as slack
from bot.channels.telegram import doctor as telegram
from bot.domain.findings import Finding
from bot.errors import SettingsError, ToolError
from bot.settings import Settings
from bot.store import migrations
from bot.store.database import Database, open_engine
from bot.store.lock import ProcessLock
from bot.tools.builtin.docker import Daemon
from bot.tools.mcp.toolset import McpToolset
from bot.tools.own import ENTRY, unnamed

_MODEL_SECONDS = 10.0
_DOCKER_SECONDS = 10.0


async def check(settings: Settings) -> list[Finding]:
    """Look at everything; never raises for what it finds."""
    running = ProcessLock(settings.sqlite_file).taken()
    return [
        *_names(),
        _database(settings),
        _port(settings, running=running),
        _admins(settings),
        *await _tools(settings),
        await _model(settings),
        *[Finding(f.name, f.ok, f.mend) for f in await slack.check(settings)],
        *[Finding(f.name, f.ok, f.mend) for f in await telegram.check(settings)],
    ]


def _names() -> Iterator[Finding]:
    """A misspelt variable is silently nothing, so it is told here."""
    known = {str(field.validation_alias) for field in Settings.model_fields.values()}
    given = {*os.environ, *dotenv_values(".env")}
    for name in sorted(given - known):
        near = difflib.get_close_matches(name, known, 1, cutoff=0.85)
        if near or (name.startswith("NOD_") and not name.startswith("NOD_TEST_")):
            hint = f"did you mean {near[0]}?" if near else ".env.example has every setting"
            yield Finding(f"setting {name}", ok=False, mend=f"there is no such setting; {hint}")


def _database(settings: Settings) -> Finding:
    name = f"database {make_url(settings.database_url).render_as_string(hide_password=True)}"
    file = settings.sqlite_file
    if file is not None and not file.exists():
        if os.access(file.parent, os.W_OK):
            return Finding(name, ok=True, mend="it will be made at the first start")
        return Finding(
            name, ok=False, mend=f"NOD_DATABASE_URL: name a folder to write in; {file.parent} is none"
        )
    try:
        engine = open_engine(settings.database_url)
    except ModuleNotFoundError as error:
        return Finding(name, ok=False, mend=f'{error}; install it: pip install "nod[postgres]"')
    try:
        return _schema(name, engine)
    except DBAPIError as error:
        said = str(error.orig).strip().splitlines()[0]
        return Finding(name, ok=False, mend=f"NOD_DATABASE_URL: {said}")
    finally:
        engine.dispose()


def _schema(name: str, engine: Engine) -> Finding:
    """Raises DBAPIError where the database cannot be reached or written."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("CREATE TABLE nod_doctor_was_here (id INTEGER)")
        connection.rollback()
    current, newest = migrations.current(engine), migrations.newest(engine)
    if current == newest:
        return Finding(name, ok=True, mend=f"schema {current}")
    if current is None:
        return Finding(name, ok=True, mend=f"empty; the next start makes schema {newest}")
    if current not in migrations.known(engine):
        return Finding(name, ok=False, mend=f"schema {current} is from a newer nod; upgrade this one")
    return Finding(name, ok=True, mend=f"schema {current}; the next start upgrades it to {newest}")


def _port(settings: Settings, *, running: bool) -> Finding:
    name = f"address {settings.host}:{settings.port}"
    try:
        listen(settings.host, settings.port).close()
    except SettingsError as error:
        if running:
            return Finding(name, ok=True, mend="a nod is running on this database")
        return Finding(name, ok=False, mend=error.message)
    return Finding(name, ok=True, mend="free")


def _admins(settings: Settings) -> Finding:
    try:
        settings.require_admin()
    except SettingsError as error:
        return Finding("admins", ok=False, mend=error.message)
    if settings.admins:
        return Finding("admins", ok=True, mend=", ".join(settings.admins))
    return Finding("admins", ok=True, mend="none; NOD_ADMINS names those who may decide everything")


async def _tools(settings: Settings) -> list[Finding]:
    """The tools turned on; and what installed packages would add if ``NOD_TOOLS`` named it."""
    found = [
        Finding(
            f"entry point {point.name}",
            ok=True,
            mend=f"not loaded; {ENTRY}{point.name} in NOD_TOOLS loads it",
        )
        for point in unnamed(settings.tools)
    ]
    try:
        database = Database(settings.database_url)
    except ModuleNotFoundError:
        return found  # told with the database
    try:
        _, own, mcp = registry_of(settings, database, policies_of(settings), now)
        await own.start()
        servers = await _servers(mcp)
    except SettingsError as error:
        return [Finding("tools", ok=False, mend=error.message), *found]
    finally:
        database.close()
    names = ", ".join(sorted(own.known))
    return [
        *([Finding(f"tools of {', '.join(settings.tools)}", ok=True, mend=names)] if names else []),
        *servers,
        *await _docker(settings.docker_url),
        *found,
    ]


async def _docker(url: str | None) -> list[Finding]:
    if url is None:
        return []
    try:
        await Daemon(url, _DOCKER_SECONDS).ask(lambda client: client.api.containers(limit=1))
    except ToolError as error:
        return [Finding(f"Docker at {url}", ok=False, mend=f"NOD_DOCKER_URL: {error.message}")]
    return [Finding(f"Docker at {url}", ok=True)]


async def _servers(mcp: McpToolset) -> list[Finding]:
    """Each MCP server, started as for a turn and ended again."""
    try:
        offered = [tool.group for tool in await mcp.tools()]
        return [
            Finding(f"MCP server {server.config.name}", ok=True, mend=_offers(offered.count(server.group)))
            if server.trouble is None
            else Finding(
                f"MCP server {server.config.name}",
                ok=False,
                mend=f'NOD_MCP_CONFIG: {server.trouble}; mend its entry, or write "disabled": true there',
            )
            for server in mcp.servers
        ]
    finally:
        await mcp.stop()


def _offers(count: int) -> str:
    return f"offers {count} tools" if count else 'offers no tools; look at its "allow" and "deny"'


async def _model(settings: Settings) -> Finding:
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
    if not key and settings.openai_base_url is None:
        return Finding("model", ok=True, mend="offline demo model; set OPENAI_API_KEY for a real one")
    client = openai.AsyncOpenAI(
        api_key=key or "none", base_url=settings.openai_base_url, max_retries=0, timeout=_MODEL_SECONDS
    )
    name = f"model {settings.model} at {client.base_url}"
    async with client:
        try:
            offered = [model.id async for model in client.models.list()]
        except openai.AuthenticationError:
            return Finding(name, ok=False, mend="OPENAI_API_KEY: the server does not accept this key")
        except openai.NotFoundError:
            return Finding(name, ok=True, mend="it answers, and keeps no list of models")
        except openai.APIConnectionError as error:
            why = f"cannot be reached ({type(error.__cause__ or error).__name__})"
            return Finding(name, ok=False, mend=f"OPENAI_BASE_URL: {why}; check the address and the network")
        except openai.APIStatusError as error:
            return Finding(name, ok=False, mend=f"the server answers with HTTP {error.status_code}")
        except openai.OpenAIError as error:
            return Finding(
                name, ok=False, mend=f"OPENAI_BASE_URL: this is no OpenAI-compatible server ({error})"
            )
    if offered and settings.model not in offered:
        some = ", ".join(sorted(difflib.get_close_matches(settings.model, offered, 5) or offered[:5]))
        return Finding(name, ok=False, mend=f"NOD_MODEL: the server does not offer it; it offers {some}")
    return Finding(name, ok=True)

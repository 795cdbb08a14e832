"""``nod doctor``: checks of the settings and of everything that they name.

A check returns *findings*: each has the name of the checked part, a health (ok, warn or fail), and a text:
the fix for a fault, otherwise a note. A check changes nothing: it makes no file and upgrades no schema. It
asks only configured servers over the network. As in ``nod run``, the modules in ``NOD_TOOLS`` are imported
and MCP servers are started.

`check` runs all checks. ``nod init`` runs single ones on its answers.
"""

import asyncio
import contextlib
import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx2
import typer
from dotenv import dotenv_values
from sqlalchemy import Engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from bot.agent.openai.offers import MAX_TOOLS, list_omissions
from bot.app import FEATURES, make_parts, registry_of
from bot.channels.kinds import channels_of, require_admin
from bot.cli.command import command
from bot.cli.progress import show_progress
from bot.cli.shared import (
    Json,
    colour_text,
    escape_for_terminal,
    log_at,
    make_overrides,
    open_readonly,
    print_json,
)
from bot.core import policies_of
from bot.domain.chat import Address
from bot.domain.doctor_findings import Finding, Health, fail, ok, warn
from bot.domain.named_models import NamedModel
from bot.domain.progress import Progress, ignore
from bot.domain.rule_values import Subject
from bot.domain.rulebook import Rulebook
from bot.domain.text import name_some
from bot.errors import NodError, SettingsError, ToolError
from bot.plugins import CHANNELS, ENTRY, TOOLS, describe_package, list_unnamed
from bot.settings import (
    LOOPBACK,
    ONLY_TRANSCRIPTION_NOTICE,
    Settings,
    find_environment_faults,
    is_set_by_cluster,
)
from bot.store import migrations, secrets, tokens
from bot.store.backups import check_pages
from bot.store.database import Database
from bot.store.engine import open_engine
from bot.store.locks.process_lock import check_not_lost, is_at_work
from bot.tools.builtin.docker_daemon import Daemon
from bot.tools.builtin.trials.cage import Cage
from bot.tools.mcp.interface import SETTLE_SECONDS, Servers, ServerStatus
from bot.tools.tool import Tool
from bot.web.server import open_socket

app = typer.Typer()
_MODEL_SECONDS = 10.0
_DOCKER_SECONDS = 10.0
_NOD_SECONDS = 5.0
_MIN_SIMILARITY = 0.85  # of a variable's name and a setting's, to take it for a misspelling
_MAX_NAMED = 5  # the tools or places that one finding names
_COLOURS = {Health.OK: "green", Health.WARN: "yellow", Health.FAIL: "red"}


def format_finding(finding: Finding) -> str:
    """Format a finding as one line for a person."""
    words = f"{finding.name}: {finding.fix}" if finding.fix else finding.name
    label = colour_text(f"{finding.health:<4}", _COLOURS[finding.health])
    return f"{label} {escape_for_terminal(words)}"


@command(app)
def doctor(*, as_json: Json = False) -> None:
    """Check the settings and what they reach; tells you how to fix each problem."""
    log_at("critical")  # the findings have the same words as the log
    settings, faults = Settings.inspect(**make_overrides())
    environment_faults = find_environment_faults(os.environ)
    findings = [make_fault(words) for words in (*faults, *environment_faults)]
    if environment_faults:
        findings.append(warn("everything else", "was not checked. Fix this first, then check again."))
    elif settings:
        with show_progress("Checking", wanted=not as_json) as progress:
            findings += asyncio.run(check(settings, progress))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(format_finding(finding))
    if any(finding.failed for finding in findings):
        raise typer.Exit(1)


def make_fault(words: str) -> Finding:
    """Return the finding for a fault as `Settings.inspect` words it: "NOD_PORT: 'abc' is not a number"."""
    if ": " in words:
        return fail(*words.split(": ", 1))
    return fail("settings", words)


async def check(settings: Settings, progress: Progress = ignore) -> list[Finding]:
    """Check everything, and report each part to ``progress``. Faults are findings and raise nothing."""
    is_running = _is_running(settings)
    checks = [_check_tools, _check_prices_and_models, _check_features, _check_channels]
    if is_running:
        checks.append(_check_running)
    findings = _check_locally(settings, is_running=is_running)
    for number, check_part in enumerate(checks, 1):
        progress(number, len(checks) + 1)  # the local checks are the first part of all
        findings += await check_part(settings)
    return findings


def _check_locally(settings: Settings, *, is_running: bool) -> list[Finding]:
    """Run the checks that use no network, except for the database's."""
    return [
        *_check_names(),
        *_check_file_modes(settings),
        check_database(settings),
        check_port(settings, running=is_running),
        *_check_proxy(settings),
        check_admins(settings),
        *_check_secrets(settings),
        _count_tokens(settings),
        *_check_webhook_secret(settings),
    ]


def _check_secrets(settings: Settings) -> Iterator[Finding]:
    """Check that the encrypted secrets in the database can be read, and with which key."""
    name = "secrets in the database"
    import bot.store.migrations.schema  # noqa: F401 - registers every table that may hold a secret

    try:
        with open_readonly(settings) as database:
            stored = database.read_now(secrets.examine_secrets)
    except (NodError, DBAPIError, ModuleNotFoundError):
        return  # reported with the database
    if stored.lost:
        places = name_some(sorted({secret.place for secret in stored.lost}), _MAX_NAMED)
        yield fail(name, f"no key of NOD_SECRET_KEY opens {places}. Add the key, or sign in there again.")
    if stored.older:
        yield warn(name, f"{stored.older} need an older key of NOD_SECRET_KEY. Run: nod secrets rotate")
    if stored.plain and settings.secret_key:
        yield warn(name, f"{stored.plain} are not encrypted yet. The next start of nod does that.")
    elif stored.plain:
        yield ok(name, f"{stored.plain} are not encrypted. NOD_SECRET_KEY does that: nod secrets new")
    elif settings.secret_key and not (stored.lost or stored.older):
        yield ok(name, "encrypted with NOD_SECRET_KEY")


async def _check_prices_and_models(settings: Settings) -> list[Finding]:
    return [*_check_prices(settings), *await check_models(settings)]


async def _check_features(settings: Settings) -> list[Finding]:
    """Let each feature check itself."""
    findings: list[Finding] = []
    with contextlib.suppress(NodError, DBAPIError, ModuleNotFoundError), open_readonly(settings) as database:
        parts = make_parts(settings, database, policies_of(settings))
        for feature in FEATURES:
            findings += await feature.examine(parts)
    return findings


async def _check_channels(settings: Settings) -> list[Finding]:
    places = _list_places(settings)
    unloaded = _list_unloaded(CHANNELS, "NOD_CHANNELS", settings.channels)
    try:
        kinds = channels_of(settings)
    except SettingsError as error:
        return [fail("channels", error.message), *unloaded]
    findings: list[Finding] = []
    for kind in kinds:
        findings += await kind.check(settings, places)
    return findings + unloaded


def _list_unloaded(group: str, setting: str, names: Sequence[str]) -> list[Finding]:
    """List the entry points of installed packages that ``setting`` does not name; none is imported."""
    return [
        ok(
            f"{group} {point.name} of {describe_package(point)}",
            f"not loaded; {ENTRY}{point.name} in {setting} loads it",
        )
        for point in list_unnamed(group, names)
    ]


def _list_places(settings: Settings) -> list[Address]:
    chats = list(settings.approver_chats)
    chats += [place for rule in _load_rulebook(settings).rules for place in rule.posts_at]
    return [Address.parse(chat) for chat in dict.fromkeys(chats) if chat]


async def _check_running(settings: Settings) -> list[Finding]:
    """Check the running nod by its own health report."""
    name = "running nod"
    if not settings.port:
        return [
            warn(name, "it took any free port (NOD_PORT=0), so it was not asked. Its log has the address.")
        ]
    # a server on all addresses is asked at this machine's own
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared
    url = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
    try:
        async with httpx2.AsyncClient(base_url=url, timeout=_NOD_SECONDS, trust_env=False) as client:
            health = (await client.get("/healthz")).json()
            ready = (await client.get("/readyz")).json()
        return _read_reports(name, health, ready)
    except (httpx2.HTTPError, ValueError, KeyError, TypeError):
        return [fail(name, f"{url} can't be reached, or is another program. Check NOD_HOST and NOD_PORT.")]


def _read_reports(name: str, health: Any, ready: Any) -> list[Finding]:
    """Return the findings in the health and the readiness report of a running nod.

    Raises KeyError or TypeError for the reports of another program.
    """
    findings = []
    for channel in health["channels"]:
        label = f"{name}, {channel['name']}"
        if channel["fault"]:
            findings.append(fail(label, f"{channel['fault']}. Its log says why."))
        else:
            findings.append(ok(label, _format_ago(channel["heard_seconds_ago"])))
    for server in health.get("mcp_servers", []):
        if server["fault"]:
            label = f"{name}, MCP server {server['name']}"
            findings.append(fail(label, "it is unavailable there. Its log says why."))
    if not ready["ok"]:
        findings.append(fail(name, f"{ready['error']}. Its log says why."))
    return findings


def _format_ago(seconds: int | None) -> str:
    if seconds is None:
        return "nothing heard yet"
    return f"heard {seconds} s ago"


def _is_running(settings: Settings) -> bool:
    try:
        return is_at_work(settings.database_url)
    except (DBAPIError, SettingsError):
        return False  # reported with the database


def _check_names() -> Iterator[Finding]:
    """Report misspelt settings of the environment and ``.env``, which would silently have no effect."""
    known = {str(field.validation_alias) for field in Settings.model_fields.values()}
    variables = {**dotenv_values(".env"), **os.environ}
    # Kubernetes sets variables such as NOD_PORT_80_TCP for a service called "nod": they are no settings
    set_by_people = {name for name, value in variables.items() if not is_set_by_cluster(name, value or "")}
    for name in sorted(set_by_people - known):
        similar = difflib.get_close_matches(name, known, 1, cutoff=_MIN_SIMILARITY)
        if similar or (name.startswith("NOD_") and not name.startswith("NOD_TEST_")):
            hint = f"did you mean {similar[0]}?" if similar else ".env.example has every setting"
            yield fail(f"setting {name}", f"there is no such setting; {hint}")


def _check_file_modes(settings: Settings) -> Iterator[Finding]:
    """Report files that others on this machine can read, and a process that runs as root."""
    paths = [Path(".env")]
    if settings.sqlite_file:
        paths.append(settings.sqlite_file)
    for path in paths:
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            yield fail(f"file {path}", f"others on this machine can read it. Run: chmod 600 {path}")
    is_root = os.geteuid() == 0
    if is_root:
        yield warn("account root", "Nod needs no root rights. Run it as a user of its own.")


def check_database(settings: Settings) -> Finding:
    """Check that the database can be reached, written and read, or will be made by the first start."""
    name = f"database {make_url(settings.database_url).render_as_string(hide_password=True)}"
    file = settings.sqlite_file
    if file is not None and not file.exists():
        try:
            check_not_lost(file)
            is_at_work(settings.database_url)
        except SettingsError as error:
            return fail(name, error.message)
        if os.access(file.parent, os.W_OK):
            return ok(name, "will be created on first start")
        return fail(
            name, f"NOD_DATABASE_URL: {file.parent} does not exist or is read-only; choose a writable folder"
        )
    engine = open_engine(settings.database_url)
    try:
        if file is not None:
            is_at_work(settings.database_url)  # raises SettingsError if a start could not lock the file
            check_pages(file)
        return _check_schema(name, engine)
    except SettingsError as error:
        return fail(name, error.message)
    except DBAPIError as error:
        first_line = str(error.orig).strip().splitlines()[0]
        return fail(name, f"NOD_DATABASE_URL: {first_line}")
    finally:
        engine.dispose()


def _check_schema(name: str, engine: Engine) -> Finding:
    """Check the schema. Raises DBAPIError if the database can't be reached or written."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql("CREATE TABLE nod_doctor_was_here (id INTEGER)")
        connection.rollback()
    damage = migrations.find_schema_fault(engine)
    if damage:
        return fail(name, f"NOD_DATABASE_URL: {damage}")
    current = migrations.read_version(engine)
    newest = migrations.find_newest_version()
    if current == newest:
        return ok(name, f"schema {current}")
    if current is None:
        return ok(name, f"empty; the next start makes schema {newest}")
    fault = migrations.find_unsupported_version(engine)
    if fault:
        return fail(name, fault)
    return ok(name, f"schema {current}; the next start upgrades it to {newest}")


def check_port(settings: Settings, *, running: bool) -> Finding:
    """Check that Nod can listen on its address; ``running``: a nod runs on this database, and may have it."""
    name = f"address {settings.host}:{settings.port}"
    try:
        open_socket(settings.host, settings.port).close()
    except SettingsError as error:
        if running:
            return ok(name, "a nod is running on this database")
        return fail(name, error.message)
    return ok(name, "free")


def _check_proxy(settings: Settings) -> Iterator[Finding]:
    """Warn if there is no reverse proxy: only that limits silent and repeated connections."""
    if settings.host not in LOOPBACK and not settings.trusted_proxies:
        yield warn(
            f"address {settings.host}",
            "others reach it without a proxy. Put one in front and name it in NOD_HTTP_TRUSTED_PROXIES",
        )


def check_admins(settings: Settings) -> Finding:
    """Check that there is an admin, and that someone can act as each of them."""
    try:
        require_admin(settings)
    except SettingsError as error:
        return fail("admins", error.message)
    if not settings.admins:
        return warn("admins", "no one; NOD_ADMINS names those who may decide everything")
    if "slack:TEAM/USER" in settings.admins:
        return fail("admins", "NOD_ADMINS: slack:TEAM/USER is a placeholder. Write your own there")
    token_names = {*settings.names_by_token.values(), *_list_token_names(settings), "local"}
    # the labels of the channels that are not set up, where no one can act as an admin
    unconfigured_labels = {
        kind.name: kind.label for kind in channels_of(settings) if not kind.configured(settings)
    }
    without_token = []
    without_channel = []
    for account in settings.admins:
        channel, _, key = account.partition(":")
        if channel == "http" and key not in token_names:
            without_token.append(account)
        if channel in unconfigured_labels:
            without_channel.append(account)
    if without_token:
        names = ", ".join(without_token)
        return warn(f"admins {names}", "no token has that name; nod token new NAME makes one")
    if without_channel:
        channels = dict.fromkeys(account.partition(":")[0] for account in without_channel)
        labels = " and ".join(unconfigured_labels[channel] for channel in channels)
        names = ", ".join(without_channel)
        return warn(f"admins {names}", f"{labels} is not set up, so no one can act as them")
    return ok("admins", ", ".join(settings.admins))


def _count_tokens(settings: Settings) -> Finding:
    configured = len(settings.names_by_token)
    issued = len(_list_token_names(settings))
    if not issued and not configured:
        return ok("tokens", "none; Nod answers only this machine. nod token new NAME makes one for a script")
    return ok("tokens", f"{configured} in NOD_HTTP_TOKENS, {issued} made with nod token new")


def _check_webhook_secret(settings: Settings) -> Iterator[Finding]:
    secret = settings.webhook_secret
    if secret is not None and not secret.get_secret_value().startswith("whsec_"):
        yield warn(
            "webhooks",
            "libraries of Standard Webhooks can't read NOD_WEBHOOK_SECRET. Write whsec_ and base64 there",
        )


def _list_token_names(settings: Settings) -> list[str]:
    """Return the name of each token in the database; none if it can't be read without an upgrade."""
    try:
        with open_readonly(settings) as database:
            return [token.name for token in database.read_now(tokens.list_unrevoked)]
    except (NodError, DBAPIError, ModuleNotFoundError):
        return []


async def _check_tools(settings: Settings) -> list[Finding]:
    """Check the tools that are turned on, and list those that ``NOD_TOOLS`` could add."""
    unloaded = _list_unloaded(TOOLS, "NOD_TOOLS", settings.tools)
    try:
        database = Database(settings.database_url, settings.audit_keys)
    except ModuleNotFoundError:
        return unloaded  # the fault is reported with the database
    secrets.give_keyring(database, secrets.Keyring(settings.secret_key))
    try:
        parts = make_parts(settings, database, policies_of(settings))
        registry, own_tools, mcp_servers = registry_of(parts)  # the own tools are those of NOD_TOOLS
        await own_tools.start()
        unfit_rules = await registry.find_misfits(_load_rulebook(settings))
        server_findings = await _check_servers(mcp_servers, settings)
    except SettingsError as error:
        return [fail("tools", error.message), *unloaded]
    finally:
        database.close()
    findings = []
    if own_tools.found_names:
        names = ", ".join(sorted(own_tools.found_names))
        findings.append(ok(f"tools of {', '.join(settings.tools)}", names))
    findings += server_findings
    for number, why in unfit_rules.items():  # ``why`` is a sentence without its subject
        findings.append(warn(f"rule {number}", f"it {why}. Drop it, or set it again"))
    findings += await _check_docker(settings.docker_url)
    findings += await _check_trials(settings)
    return findings + unloaded


async def _check_trials(settings: Settings) -> list[Finding]:
    """Check that commands can be tried, if trials are turned on."""
    if not settings.trials:
        return []
    if settings.workspace is None or not settings.shell:
        return [warn("trials", "there are no commands to try: set NOD_WORKSPACE and NOD_SHELL")]
    cage = Cage(settings.workspace.resolve())
    trouble = await cage.find_trouble()
    if trouble:
        return [warn("trials", f"nothing is tried first: {trouble}")]
    return [ok("trials", cage.name)]


def _load_rulebook(settings: Settings) -> Rulebook:
    with contextlib.suppress(NodError, DBAPIError, ModuleNotFoundError), open_readonly(settings) as database:
        return database.read_now(policies_of(settings).load).book
    return Rulebook()


async def _check_docker(url: str | None) -> list[Finding]:
    if url is None:
        return []
    try:
        await Daemon(url, _DOCKER_SECONDS).list_containers(stopped=False)
    except ToolError as error:
        return [fail(f"Docker at {url}", f"NOD_DOCKER_URL: {error.message}")]
    return [ok(f"Docker at {url}")]


async def _check_servers(servers: Servers, settings: Settings) -> list[Finding]:
    """Check the MCP servers, started as for a turn and stopped again."""
    try:
        await servers.start_and_wait(SETTLE_SECONDS)  # until each server is up or has failed
        tools = await servers.tools()
        findings = []
        for server in await servers.status():
            server_tools = [tool for tool in tools if tool.group == server.group]
            findings.append(_describe_server(server, server_tools, settings))
        return [*findings, *_check_tool_count(tools)]
    finally:
        await servers.stop()


def _check_tool_count(tools: Sequence[Tool]) -> Iterator[Finding]:
    if len(tools) > MAX_TOOLS:
        yield warn(
            "MCP servers",
            f"they offer {len(tools)} tools. A model is given {MAX_TOOLS} at a time, those that fit the "
            'conversation best; "allow" in an entry names those that you need',
        )


def _describe_server(server: ServerStatus, tools: Sequence[Tool], settings: Settings) -> Finding:
    """Return the finding on a server: what it offers, or its trouble with the fix."""
    name = f"MCP server {server.name}"
    if server.trouble is None:
        make_finding = warn if server.left_out else ok
        return make_finding(name, _describe_offer(tools, server.left_out))
    stderr_text = f"; it said: {server.said}" if server.said else ""
    if server.is_starting:
        fix = '"startup_timeout_sec" in its entry gives it longer'
        return warn(name, f"{server.trouble}; {fix}{stderr_text}")
    if server.signed_out:
        where = settings.public_url or settings.own_url
        return fail(name, f"{server.trouble}, or sign in at {where}/#/rules")
    fix = 'fix its entry, or set "disabled": true there'
    return fail(name, f"NOD_MCP_CONFIG: {server.trouble}; {fix}{stderr_text}")


def _describe_offer(tools: Sequence[Tool], left_out: str) -> str:
    """Return what a server offers, in words. ``left_out``: the tools that Nod does not take, with reasons."""
    count = len(tools)
    if not count and not left_out:
        return 'offers no tools; look at its "allow" and "deny"'
    parts = [f"offers {count} tool" if count == 1 else f"offers {count} tools", left_out]
    shortened = [tool.name for tool in tools if list_omissions(tool.spec)]
    if shortened:
        parts.append(f"models are not told all of {name_some(shortened, _MAX_NAMED)}")
    return "; ".join(filter(None, parts))


def _check_prices(settings: Settings) -> Iterator[Finding]:
    try:
        settings.prices(settings.model)
    except SettingsError as error:
        yield make_fault(error.message)


async def check_models(settings: Settings) -> list[Finding]:
    """Check the models that answer or transcribe, and the rules that name a missing one."""
    try:
        answering = settings.list_answering_models()
        transcribing = settings.list_transcription_models()
    except SettingsError as error:
        return [make_fault(error.message)]
    if not answering and transcribing:
        return [warn("model", ONLY_TRANSCRIPTION_NOTICE)]
    if not answering:
        return [warn("model", "the scripted demo model answers; set OPENAI_API_KEY or OPENAI_BASE_URL")]
    names = {model.name for model in answering}
    findings = list(await asyncio.gather(*map(_check_model, [*answering, *transcribing])))
    for rule in _load_rulebook(settings).list_about(Subject.MODEL):
        if rule.value not in names:
            words = f"no model is called {rule.value}. Nod can't answer there"
            findings.append(fail(f"rule {rule.id}", words))
    return findings


async def _check_model(named: NamedModel) -> Finding:
    import openai  # only here: it takes a fifth of a second

    client = openai.AsyncOpenAI(
        api_key=named.secret or "none", base_url=named.base_url, max_retries=0, timeout=_MODEL_SECONDS
    )
    label = named.name
    if named.model != named.name:  # the name at its server differs from the name in the file of NOD_MODELS
        label = f"{named.name} ({named.model})"
    name = f"model {label} at {client.base_url}"
    address = "OPENAI_BASE_URL" if named.setting_to_correct == "NOD_MODEL" else "base_url"
    async with client:
        try:
            offered = [model.id async for model in client.models.list()]
        except openai.AuthenticationError:
            return fail(name, f"{named.key}: the server does not accept this key")
        except openai.NotFoundError:
            return ok(name, "it answers, but lists no models")
        except openai.APIConnectionError as error:
            why = f"cannot be reached ({type(error.__cause__ or error).__name__})"
            return fail(name, f"{address}: {why}; check the address and the network")
        except openai.APIStatusError as error:
            return fail(name, f"the server answers with HTTP {error.status_code}")
        except openai.OpenAIError as error:
            return fail(name, f"{address}: this is not an OpenAI-compatible server ({error})")
    if offered and named.model not in offered:
        examples = difflib.get_close_matches(named.model, offered, 5) or offered[:5]
        listed = ", ".join(sorted(examples))
        return fail(name, f"{named.setting_to_correct}: the server does not offer it; it offers {listed}")
    return ok(name)

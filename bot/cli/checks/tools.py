"""Checks of the tools: a team's own, those of MCP servers, Docker's, and trials of commands."""

from collections.abc import Iterator, Sequence

from bot.agent.openai.offers import MAX_TOOLS, list_omissions
from bot.app.features import make_parts
from bot.app.tools import registry_of
from bot.cli.checks.database import load_rulebook
from bot.cli.checks.plugins import list_unloaded
from bot.core import policies_of
from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.domain.text import name_some
from bot.errors import SettingsError, ToolError
from bot.plugins import TOOLS
from bot.settings import Settings
from bot.store import secrets
from bot.store.database import Database
from bot.tools.builtin.docker_daemon import Daemon
from bot.tools.builtin.trials.cage import Cage
from bot.tools.mcp.interface import SETTLE_SECONDS, Servers, ServerStatus
from bot.tools.tool import Tool

_DOCKER_SECONDS = 10.0
_MAX_NAMED_TOOLS = 5  # in one finding


async def check_tools(settings: Settings) -> list[Finding]:
    """Check the tools that are turned on, and list those that ``NOD_TOOLS`` could add."""
    unloaded = list_unloaded(TOOLS, "NOD_TOOLS", settings.tools)
    try:
        database = Database(settings.database_url, settings.audit_keys)
    except ModuleNotFoundError:
        return unloaded  # the fault is reported with the database
    secrets.give_keyring(database, secrets.Keyring(settings.secret_key))
    try:
        parts = make_parts(settings, database, policies_of(settings))
        registry, own_tools, mcp_servers = registry_of(parts)  # the own tools are those of NOD_TOOLS
        await own_tools.start()
        unfit_rules = await registry.find_misfits(load_rulebook(settings))
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
        parts.append(f"models are not told all of {name_some(shortened, _MAX_NAMED_TOOLS)}")
    return "; ".join(filter(None, parts))

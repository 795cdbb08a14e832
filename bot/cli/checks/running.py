"""The check of the running Nod, by its own health report."""

from typing import Any

import httpx2

from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.settings import Settings

_NOD_SECONDS = 5.0


async def check_running(settings: Settings) -> list[Finding]:
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

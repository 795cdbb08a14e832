"""``nod doctor``: checks of the settings and of everything that they name.

A check returns *findings*: each has the name of the checked part, a health (ok, warn or fail), and a text:
the fix for a fault, otherwise a note. A check changes nothing: it makes no file and upgrades no schema. It
asks only configured servers over the network. As in ``nod run``, the modules in ``NOD_TOOLS`` are imported
and MCP servers are started.

`check` runs all checks, which are in ``checks/``. ``nod init`` runs single ones on its answers.
"""

import asyncio
import contextlib
import os
from dataclasses import asdict

import typer
from sqlalchemy.exc import DBAPIError

from bot.app.features import FEATURES, make_parts
from bot.cli.checks.admins import check_admins
from bot.cli.checks.channels import check_channels
from bot.cli.checks.database import check_database, check_secrets, count_tokens, is_nod_running
from bot.cli.checks.environment import (
    check_file_modes,
    check_names,
    check_port,
    check_proxy,
    check_webhook_secret,
    make_fault,
)
from bot.cli.checks.models import check_models, check_prices
from bot.cli.checks.running import check_running
from bot.cli.checks.tools import check_tools
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
from bot.domain.doctor_findings import Finding, Health, warn
from bot.domain.progress import Progress, ignore_progress
from bot.errors import NodError
from bot.settings import Settings, find_environment_faults

app = typer.Typer()
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


async def check(settings: Settings, progress: Progress = ignore_progress) -> list[Finding]:
    """Check everything, and report each part to ``progress``. Faults are findings and raise nothing."""
    is_running = is_nod_running(settings)
    checks = [check_tools, _check_prices_and_models, _check_features, check_channels]
    if is_running:
        checks.append(check_running)
    findings = _check_locally(settings, is_running=is_running)
    for number, check_part in enumerate(checks, 1):
        progress(number, len(checks) + 1)  # the local checks are the first part of all
        findings += await check_part(settings)
    return findings


def _check_locally(settings: Settings, *, is_running: bool) -> list[Finding]:
    """Run the checks that use no network, except for the database's."""
    return [
        *check_names(),
        *check_file_modes(settings),
        check_database(settings),
        check_port(settings, running=is_running),
        *check_proxy(settings),
        check_admins(settings),
        *check_secrets(settings),
        count_tokens(settings),
        *check_webhook_secret(settings),
    ]


async def _check_prices_and_models(settings: Settings) -> list[Finding]:
    return [*check_prices(settings), *await check_models(settings)]


async def _check_features(settings: Settings) -> list[Finding]:
    """Let each feature check itself."""
    findings: list[Finding] = []
    with contextlib.suppress(NodError, DBAPIError, ModuleNotFoundError), open_readonly(settings) as database:
        parts = make_parts(settings, database, policies_of(settings))
        for feature in FEATURES:
            findings += await feature.examine(parts)
    return findings

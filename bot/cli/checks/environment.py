"""Checks of what surrounds Nod: the names of settings, files, its address, its proxy, and its webhooks."""

import difflib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dotenv import dotenv_values

from bot.domain.doctor_findings import Finding, fail, ok, warn
from bot.errors import SettingsError
from bot.settings import LOOPBACK, Settings, is_set_by_cluster
from bot.web.server import open_socket

_MIN_SIMILARITY = 0.85  # of a variable's name and a setting's, to take it for a misspelling


def make_fault(words: str) -> Finding:
    """Return the finding for a fault as `Settings.inspect` words it: "NOD_PORT: 'abc' is not a number"."""
    if ": " in words:
        return fail(*words.split(": ", 1))
    return fail("settings", words)


def check_names() -> Iterator[Finding]:
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


def check_file_modes(settings: Settings) -> Iterator[Finding]:
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


def check_proxy(settings: Settings) -> Iterator[Finding]:
    """Warn if there is no reverse proxy: only that limits silent and repeated connections."""
    if settings.host not in LOOPBACK and not settings.trusted_proxies:
        yield warn(
            f"address {settings.host}",
            "others reach it without a proxy. Put one in front and name it in NOD_HTTP_TRUSTED_PROXIES",
        )


def check_webhook_secret(settings: Settings) -> Iterator[Finding]:
    secret = settings.webhook_secret
    if secret is not None and not secret.get_secret_value().startswith("whsec_"):
        yield warn(
            "webhooks",
            "libraries of Standard Webhooks can't read NOD_WEBHOOK_SECRET. Write whsec_ and base64 there",
        )

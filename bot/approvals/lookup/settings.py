"""The settings as admins may read them, and what `nod doctor` says of this Nod: in a process of its own."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from pydantic import SecretStr
from sqlalchemy.engine import make_url

from bot.domain.chat import Clock
from bot.domain.findings import Finding, Health
from bot.domain.redaction import redact_text
from bot.settings import Settings

_DOCTOR = (sys.executable, "-m", "bot.cli.main", "doctor", "--json")
_PATIENCE = 120.0  # seconds the doctor may take
_FRESH = timedelta(seconds=10)  # for so long its findings are given again
_USER_INFO = re.compile(r"(?<=//)[^/@\s]+@")
_LISTS = frozenset({"NOD_HTTP_TOKENS", "NOD_AUDIT_KEY", "NOD_SECRET_KEY", "OTEL_EXPORTER_OTLP_HEADERS"})
"""Secrets of which there may be several."""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as admins may read it. ``value`` applies; None for a secret, and for an empty one.

    ``given``: it is set, in the environment or ``.env``.
    """

    name: str
    value: str | None
    secret: bool
    given: bool


@dataclass(frozen=True, slots=True)
class Examined:
    """The findings of the doctor and their time; ``fault`` says why it found nothing."""

    at: datetime
    findings: tuple[Finding, ...] = ()
    fault: str = ""


def list_settings(settings: Settings) -> list[ShownSetting]:
    """Return every setting, secrets without their values."""
    database = make_url(settings.database_url).set(password=None, query={}).render_as_string()
    values = settings.environment() | {"NOD_DATABASE_URL": database}
    found = []
    for name, field in Settings.model_fields.items():
        alias = str(field.validation_alias)
        secret = SecretStr in (field.annotation, *get_args(field.annotation)) or alias in _LISTS
        if secret or alias not in values:
            value = None
        else:
            value = _USER_INFO.sub("", redact_text(values[alias]))
        given = name in settings.model_fields_set and alias in values
        found.append(ShownSetting(alias, value, secret, given))
    return found


class Doctor:
    """Looks at the running Nod's settings and what they reach, in a child that can be killed.

    Several who ask at the same time get the same answer.
    """

    def __init__(
        self,
        settings: Settings,
        port: Callable[[], int],
        clock: Clock,
        *,
        command: Sequence[str] = _DOCTOR,
        patience: float = _PATIENCE,
    ) -> None:
        """``port``: on which it listens, once it does. ``patience``: seconds the ``command`` may take."""
        self.settings = settings
        self._port = port
        self._clock = clock
        self._command = command
        self._patience = patience
        self._task: asyncio.Task[Examined] | None = None

    async def examine(self) -> Examined:
        """Raise asyncio.CancelledError once stopped."""
        task = self._task
        if task is None or (task.done() and self._clock() - task.result().at > _FRESH):
            task = self._task = asyncio.create_task(self._examine(), name="doctor")
        return await asyncio.shield(task)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _examine(self) -> Examined:
        try:
            said = await self._read_output()
            findings = [
                Finding(redact_text(each["name"]), Health(each["health"]), redact_text(each["fix"]))
                for each in json.loads(said)
            ]
            return Examined(self._clock(), tuple(findings))
        except TimeoutError:
            return Examined(self._clock(), fault=f"The doctor was stopped after {self._patience:g} s.")
        except (OSError, ValueError, KeyError, TypeError):
            return Examined(self._clock(), fault="The doctor failed. Run nod doctor on that machine.")

    async def _read_output(self) -> bytes:
        """Return the doctor's output, from its last list on: imported tools may print as well."""
        environment = os.environ | self.settings.environment() | {"NOD_PORT": str(self._port())}
        child = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._patience):
                said, _ = await child.communicate()
            return b"[\n" + (b"\n" + said).rpartition(b"\n[\n")[2]
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                await child.wait()

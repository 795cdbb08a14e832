"""The settings as admins may read them, and the findings of ``nod doctor``.

The doctor is a command that examines the settings and connections, and lists what to fix. It runs in a
process of its own, since it may hang and then has to be killed. The console shows both.
"""

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
from bot.domain.doctor_findings import Finding, Health
from bot.domain.redaction import redact_text
from bot.settings import Settings

_DOCTOR_COMMAND = (sys.executable, "-m", "bot.cli.main", "doctor", "--json")
_TIMEOUT_SECONDS = 120.0  # the time that the doctor may take
_FRESH_PERIOD = timedelta(seconds=10)  # the time in which the same findings are returned again
_USER_INFO = re.compile(r"(?<=//)[^/@\s]+@")  # user and password in an address, as in https://me:pw@host/
_SECRET_LISTS = frozenset(
    {"NOD_HTTP_TOKENS", "NOD_AUDIT_KEY", "NOD_SECRET_KEY", "OTEL_EXPORTER_OTLP_HEADERS"}
)
"""Settings that hold several secrets, so that their type isn't `SecretStr`."""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as admins may read it."""

    name: str
    value: str | None  # the current value; None for a secret, and if it is empty
    secret: bool
    given: bool  # True if the setting is in the environment or ``.env``


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of one examination by the doctor."""

    at: datetime
    findings: tuple[Finding, ...] = ()
    fault: str = ""  # the reason why the examination failed, if it did


def list_settings(settings: Settings) -> list[ShownSetting]:
    """Return every setting, secrets without their values."""
    database = make_url(settings.database_url).set(password=None, query={}).render_as_string()
    values = settings.environment() | {"NOD_DATABASE_URL": database}
    shown = []
    for name, field in Settings.model_fields.items():
        variable = str(field.validation_alias)
        types = (field.annotation, *get_args(field.annotation))
        is_secret = SecretStr in types or variable in _SECRET_LISTS
        value = None
        if variable in values and not is_secret:
            value = _USER_INFO.sub("", redact_text(values[variable]))
        is_given = name in settings.model_fields_set and variable in values
        shown.append(ShownSetting(variable, value, is_secret, is_given))
    return shown


class Doctor:
    """The examination of the running Nod's settings and connections, in a process that can be killed.

    Several callers at the same time get the same answer.
    """

    def __init__(
        self,
        settings: Settings,
        get_port: Callable[[], int],
        clock: Clock,
        *,
        command: Sequence[str] = _DOCTOR_COMMAND,
        patience: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Take the settings to examine, and the function that returns the port at which Nod listens.

        ``command`` runs the doctor, and may take ``patience`` seconds.
        """
        self.settings = settings
        self._get_port = get_port
        self._clock = clock
        self._command = command
        self._patience = patience
        self._task: asyncio.Task[Examination] | None = None

    async def examine(self) -> Examination:
        """Return the findings of an examination under way or a moment ago, else of a new one.

        Raises asyncio.CancelledError once stopped.
        """
        task = self._task
        if task is None or self._is_outdated(task):
            task = asyncio.create_task(self._examine(), name="doctor")
            self._task = task
        return await asyncio.shield(task)

    def _is_outdated(self, examination: asyncio.Task[Examination]) -> bool:
        if not examination.done():
            return False
        return self._clock() - examination.result().at > _FRESH_PERIOD

    async def stop(self) -> None:
        """Cancel an examination under way, whose process is killed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _examine(self) -> Examination:
        try:
            rows = json.loads(await self._read_output())
            findings = [
                Finding(redact_text(row["name"]), Health(row["health"]), redact_text(row["fix"]))
                for row in rows
            ]
            return Examination(self._clock(), tuple(findings))
        except TimeoutError:
            return Examination(self._clock(), fault=f"The doctor was stopped after {self._patience:g} s.")
        except (OSError, ValueError, KeyError, TypeError):
            return Examination(self._clock(), fault="The doctor failed. Run nod doctor on that machine.")

    async def _read_output(self) -> bytes:
        """Return the JSON list at the end of the doctor's output; imported tools may have printed before."""
        environment = os.environ | self.settings.environment() | {"NOD_PORT": str(self._get_port())}
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
                output, _ = await child.communicate()
            list_start = b"\n[\n"  # the list is printed with indentation, so its first line is only "["
            _, _, items = (b"\n" + output).rpartition(list_start)
            return list_start + items
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                await child.wait()

"""The command as people run it: a real process in a folder of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from bot.settings import Settings

NOD = (sys.executable, "-m", "bot.cli")
_SECONDS = 60


@dataclass
class Shell:
    """Runs ``nod`` in one folder with one environment; ends what it started."""

    folder: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def nod(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own command
            [*NOD, *words],
            cwd=self.folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def start(self, *words: str, **more: str) -> "Running":
        """Start it and read its first line, which has the address."""
        errors = (self.folder / f"stderr-{len(self.started)}").open("w+")
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*NOD, *words],
            cwd=self.folder,
            env=self.environment | more,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self.started.append(process)
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r"http://\S+", first)
        errors.seek(0)
        assert found, first + errors.read()
        return Running(process, found[0], Path(errors.name))


@dataclass
class Running:
    process: subprocess.Popen[str]
    url: str
    errors: Path

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30)

    def end(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        return self.process.wait(_SECONDS)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    ours = {str(f.validation_alias) for f in Settings.model_fields.values()} | {"PORT"}
    environment = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith("NOD_")}
    root = Path(__file__).parent.parent.parent
    environment |= {"PYTHONPATH": str(root), "LOGNAME": "operator", "NO_COLOR": "1"}
    made = Shell(tmp_path, environment)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


Write = Callable[..., str]

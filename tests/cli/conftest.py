"""The command as people run it: a real process in a folder of its own."""

import contextlib
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.cli.main import main
from bot.settings import Settings

NOD = (sys.executable, "-m", "bot.cli.main")
_SECONDS = 60


@dataclass
class Shell:
    """Runs ``nod`` in one folder with one environment; ends what it started."""

    folder: Path
    environment: dict[str, str]
    command: tuple[str, ...] = NOD
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def nod(self, *words: str, input: str | None = None, **more: str) -> Result:  # noqa: A002 - as click's
        """In this process: for commands that look and go; ``input``: what a person types."""
        environment = self.environment | more
        return CliRunner().invoke(main, words, input=input, env=environment, catch_exceptions=False)

    def process(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """In a process of its own, to its end."""
        return subprocess.run(  # noqa: S603 - our own command
            [*self.command, *words],
            cwd=self.folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def begin(self, *words: str, stdout: int = subprocess.PIPE, **more: str) -> subprocess.Popen[str]:
        """Begin a command whose lines are read as they come; ``stdout``: where else they go."""
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*self.command, *words],
            cwd=self.folder,
            env=self.environment | more | {"PYTHONUNBUFFERED": "1"},
            stdout=stdout,
            text=True,
        )
        self.started.append(process)
        return process

    def start(self, *words: str, **more: str) -> "Running":
        """Start a server and read its lines up to the one that has the address."""
        errors = self.folder / f"stderr-{len(self.started)}"
        with errors.open("w") as kept:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [*self.command, *words],
                cwd=self.folder,
                env=self.environment | more,
                stdout=subprocess.PIPE,
                stderr=kept,
                text=True,
            )
        self.started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise AssertionError(errors.read_text())
        return Running(process, found[0], errors)


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


@contextlib.contextmanager
def shell_in(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell in that folder, in which no setting is made; what it started ends with it."""
    patch.chdir(folder)
    patch.setattr(sys, "path", [*sys.path])  # the team's tools are looked for in the current folder, too
    patch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="operator"))
    for name in {str(f.validation_alias) for f in Settings.model_fields.values()} | {"PORT"}:
        patch.delenv(name, raising=False)
    root = Path(__file__).parent.parent.parent
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NOD_")}
    made = Shell(folder, inherited | {"PYTHONPATH": str(root), "NO_COLOR": "1"})
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    with shell_in(tmp_path, monkeypatch) as made:
        yield made


@dataclass
class Demo:
    """A running ``nod demo`` and a shell in its folder."""

    shell: Shell
    running: Running


@pytest.fixture(scope="module")
def begun_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with pytest.MonkeyPatch.context() as patch, shell_in(tmp_path_factory.mktemp("demo"), patch) as shell:
        demo = Demo(shell, shell.start("demo", PORT="0"))
        yield demo
        assert demo.running.end() == 0


@pytest.fixture
def demo(begun_demo: Demo, monkeypatch: pytest.MonkeyPatch) -> Demo:
    """One for all tests of a file that leave nothing waiting there: a start takes two seconds."""
    monkeypatch.chdir(begun_demo.shell.folder)
    return begun_demo

"""What is handed out: an archive of the source that builds, and a wheel that runs in an empty folder."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest

import bot
from tests.cli.conftest import Shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("pip") is None or find_spec("setuptools") is None, reason="needs pip"),
]

ROOT = Path(__file__).parent.parent.parent
_FOLDERS = (
    ".github",
    "benchmarks",
    "bot",
    "clients/python/nod_client",
    "deploy",
    "docs",
    "examples",
    "requirements",
    "tests",
)
_TOP = (
    ".env.example",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "clients/python/pyproject.toml",
    "constraints.txt",
    "manifest.yml",
    "pyproject.toml",
)
_PATHS = [path for path in sys.path if path.endswith("site-packages")]


@dataclass(frozen=True)
class Built:
    sdist: Path
    wheel: Path


def files_of(folder: str) -> list[str]:
    """What a checkout holds there, as paths from its root."""
    there = (path for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    return [str(path.relative_to(ROOT)) for path in there if path.is_file()]


def built(what: str, source: Path, target: Path) -> Path:
    script = f"from setuptools import build_meta; print(build_meta.build_{what}({str(target)!r}))"
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", script],
        cwd=source, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(_PATHS)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both, the wheel made of what the archive of the source holds."""
    folder = tmp_path_factory.mktemp("package")
    for name in (*_TOP, *(name for each in _FOLDERS for name in files_of(each))):
        (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "checkout" / name)
    sdist = built("sdist", folder / "checkout", folder)
    with tarfile.open(sdist) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    [source] = (folder / "unpacked").iterdir()
    return Built(sdist, built("wheel", source, folder))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(package: Built):
    with ZipFile(package.wheel) as packed:
        held = {name for name in packed.namelist() if ".dist-info/" not in name}
        about = next(name for name in packed.namelist() if name.endswith("/METADATA"))
        metadata = packed.read(about).decode()
    assert held == set(files_of("bot"))
    assert f"\nName: nod-approvals\nVersion: {bot.__version__}\n" in metadata
    assert set(re.findall(r"License-File: (.*)", metadata)) >= {
        "LICENSE",
        "bot/web/static/vendor/markdown-it/LICENSE",
        "bot/web/static/vendor/swagger-ui/NOTICE",
    }


def test_the_archive_of_the_source_holds_what_its_make_test_needs(package: Built):
    with tarfile.open(package.sdist) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    assert {*_TOP, *(name for folder in _FOLDERS for name in files_of(folder))} - held == set()


@pytest.fixture(scope="module")
def fresh(package: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, what it needs and no extra; answers where its ``nod`` is."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder)
    subprocess.run(  # noqa: S603 - our own
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--no-index", "--no-deps", package.wheel],
        check=True,
        env={
            "PATH": os.environ["PATH"],
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONPATH": os.pathsep.join(_PATHS),  # pip itself; there is no network in tests
        },
    )
    [packages] = folder.glob("lib/python*/site-packages")
    for library in run_path(str(ROOT / "docs" / "licences.py"))["needed"]().values():
        for file in library.files or ():
            if file.parts[0] != "..":  # what is compiled already, too
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                (packages / file).symlink_to(library.locate_file(file))
    return folder / "bin" / "nod"


@pytest.fixture
def bare(fresh: Path, shell: Shell) -> Shell:
    """That ``nod`` in an empty folder."""
    shell.folder /= "empty"
    shell.folder.mkdir()
    shell.command = (str(fresh),)
    del shell.environment["PYTHONPATH"]
    return shell


def test_installed_from_the_wheel_the_demo_runs_a_pressed_proposal_in_an_empty_folder(bare: Shell):
    assert bare.process("--version").stdout == f"nod {bot.__version__}\n"
    running = bare.start("demo", PORT="0")
    with running.client() as client:
        assert client.get("/static/vendor/markdown-it/markdown-it.js").status_code == httpx.codes.OK
        client.post("/api/chat", json={"message": "close #2"})
        [waiting] = client.get("/api/proposals").json()["proposals"]
        done = client.post(f"/api/proposals/{waiting['id']}/approve", params={"wait": 30}).json()
        assert done["proposal"]["state"] == "succeeded"
    assert running.end() == 0
    assert [path.name for path in bare.folder.glob("*.db")] == ["nod-demo.db"]


_EXTRAS = (
    ("SLACK_BOT_TOKEN=xoxb-1", "Slack needs more libraries", "slack"),
    ("TELEGRAM_BOT_TOKEN=1:x", "Telegram needs more libraries", "telegram"),
    ("NOD_DATABASE_URL=postgresql+psycopg://h/n", "PostgreSQL needs more libraries", "postgres"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "tracing needs more libraries", "otel"),
)


def test_what_needs_an_extra_says_which_in_one_line(bare: Shell):
    for setting, told, extra in _EXTRAS:
        (bare.folder / ".env").write_text(f"{setting}\nNOD_PORT=0\nNOD_ADMINS=http:ana\n")
        refused = bare.process("run", "--quiet")
        assert refused.returncode == 1
        assert refused.stderr.endswith(f"{told}. Run: pip install 'nod-approvals[{extra}]'\n")
        assert refused.stderr.count("\n") == 1
    everything = "\n".join(setting for setting, _, _ in _EXTRAS)
    (bare.folder / ".env").write_text(f"{everything}\nNOD_PORT=0\nNOD_ADMINS=http:ana\n")
    examined = bare.process("doctor")
    assert examined.returncode == 1
    for _, told, extra in _EXTRAS:
        assert f"{told}. Run: pip install 'nod-approvals[{extra}]'" in examined.stdout
    assert examined.stderr == ""


# --- a plugin, as docs/plugins.md has it

_PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


def _block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", _PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution of the page, as a wheel."""
    source = tmp_path_factory.mktemp("nod-lines")
    (source / "pyproject.toml").write_text(_block("toml"))
    (source / "nod_lines.py").write_text(_block("python"))
    return built("wheel", source, source)


@pytest.fixture
def plugin(fresh: Path, lines: Path) -> Iterator[Path]:
    """That wheel, installed next to Nod; gives its module's file."""
    [packages] = fresh.parent.parent.glob("lib/python*/site-packages")
    with ZipFile(lines) as packed:
        names = packed.namelist()
        packed.extractall(packages)  # noqa: S202 - our own wheel
    yield packages / "nod_lines.py"
    for name in names:
        (packages / name).unlink()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_the_channel_of_an_installed_package_is_talked_to_once_a_setting_names_it(bare: Shell, plugin: Path):
    port = _free_port()
    settings = "NOD_CHANNELS=entry:lines\nNOD_ADMINS=lines:ana\nNOD_PORT=0\n"
    (bare.folder / ".env").write_text(settings)
    running = bare.start("run", LINES_PORT=str(port))
    with socket.create_connection(("127.0.0.1", port), timeout=30) as talk, talk.makefile("rw") as lines:

        def until(key: str) -> dict[str, Any]:
            for line in lines:
                if key in (said := json.loads(line)):
                    return said
            raise AssertionError(f"no {key} came")

        lines.write('{"who": "ana", "say": "create an issue called Toner"}\n')
        lines.flush()
        card = until("card")
        assert "Toner" in card["card"]
        lines.write(json.dumps({"who": "ana", "press": "approve", "id": card["id"], "round": 1}) + "\n")
        lines.flush()
        while "Created issue" not in until("card")["card"]:
            pass
    assert running.end() == 0


def test_a_package_that_no_setting_names_is_listed_and_not_imported(bare: Shell, plugin: Path):
    plugin.write_text("import pathlib; pathlib.Path('imported').touch()")
    (bare.folder / ".env").write_text("NOD_PORT=0\n")
    said = bare.process("doctor").stdout
    assert "lines of nod-lines 1.0" in said
    assert "NOD_CHANNELS" in said
    assert not (bare.folder / "imported").exists()


def test_a_package_that_is_named_and_broken_stops_the_start_in_one_line(bare: Shell, plugin: Path):
    (bare.folder / ".env").write_text("NOD_CHANNELS=entry:lines\nNOD_ADMINS=http:ana\nNOD_PORT=0\n")
    for code, told in (
        ("1 / 0", "NOD_CHANNELS: entry:lines: it failed to import (ZeroDivisionError: division by zero"),
        ("KIND = 1", "NOD_CHANNELS: entry:lines leads to no ChannelKind"),
        ("", "NOD_CHANNELS: entry:lines leads to nod_lines:KIND, which is not there"),
    ):
        plugin.write_text(code)
        refused = bare.process("run", "--quiet")
        assert refused.returncode == 1
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert told in bare.process("doctor").stdout

"""What is handed out: an archive of the source that builds, and a wheel that runs in an empty folder."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
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
        "bot/channels/http/static/vendor/markdown-it/LICENSE",
        "bot/channels/http/static/vendor/swagger-ui/NOTICE",
    }


def test_the_archive_of_the_source_holds_what_its_make_test_needs(package: Built):
    with tarfile.open(package.sdist) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    assert {*_TOP, *(name for folder in _FOLDERS for name in files_of(folder))} - held == set()


def test_installed_from_the_wheel_the_demo_runs_a_pressed_proposal_in_an_empty_folder(
    package: Built, shell: Shell, tmp_path: Path
):
    venv.create(tmp_path / "fresh")
    [packages] = (tmp_path / "fresh").glob("lib/python*/site-packages")
    (packages / "here.pth").write_text("\n".join(_PATHS))  # the libraries: no network in tests
    python = str(tmp_path / "fresh" / "bin" / "python")
    subprocess.run(  # noqa: S603 - our own
        [python, "-m", "pip", "install", "--no-index", "--no-deps", "--ignore-installed", package.wheel],
        check=True, env={"PATH": os.environ["PATH"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    shell.folder = tmp_path / "empty"
    shell.folder.mkdir()
    shell.command = (str(tmp_path / "fresh" / "bin" / "nod"),)
    del shell.environment["PYTHONPATH"]
    assert shell.process("--version").stdout == f"nod {bot.__version__}\n"
    running = shell.start("demo", PORT="0")
    with running.client() as client:
        assert client.get("/static/vendor/markdown-it/markdown-it.js").status_code == httpx.codes.OK
        client.post("/api/chat", json={"message": "close #2"})
        [waiting] = client.get("/api/proposals").json()["proposals"]
        done = client.post(f"/api/proposals/{waiting['id']}/approve", params={"wait": 30}).json()
        assert done["proposal"]["state"] == "succeeded"
    assert running.end() == 0
    assert [path.name for path in shell.folder.glob("*.db")] == ["nod-demo.db"]

"""The files in ``deploy/``: read by the tools that read them, where installed, and held to what Nod has."""

import json
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import typer
import yaml

import bot
from bot.cli.main import main
from bot.settings import Settings
from tests.cli.test_package import built

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
UNIT = (DEPLOY / "nod.service").read_text()
HEALTHCHECK = json.loads(re.search(r"^HEALTHCHECK[^\[]*(\[.*\])$", CONTAINERFILE, re.MULTILINE)[1])  # type: ignore[index]
SETTINGS = {str(field.validation_alias) for field in Settings.model_fields.values()}
COMMANDS = {*typer.main.get_group(main).commands}
NOD_NAMES = re.compile(r"\b(?:NOD|SLACK|TELEGRAM|OPENAI)_[A-Z_]+\b")


@pytest.mark.parametrize(
    "path", [*DEPLOY.rglob("*.*"), DEPLOY / "Containerfile", ROOT / "docs" / "deploy.md"], ids=str
)
def test_every_setting_that_is_named_exists(path: Path):
    assert set(NOD_NAMES.findall(path.read_text())) - SETTINGS == set()


@pytest.mark.slow
def test_what_the_image_copies_is_enough_to_build_nod(tmp_path: Path):
    building = CONTAINERFILE.split("\nFROM ")[1]
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.*)$", building, re.MULTILINE)
        for word in line.split()[:-1]
    ]
    for name in copied:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    assert built("wheel", tmp_path, tmp_path).name == f"nod_approvals-{bot.__version__}-py3-none-any.whl"
    assert "requirements/run.txt" in copied


def test_the_image_runs_nod_as_no_one_special_and_says_whether_it_is_well():
    lines = CONTAINERFILE.replace("\\\n", " ").splitlines()
    said = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line and line[0] != "#"}
    assert int(said["USER"]) > 0
    assert json.loads(said["ENTRYPOINT"]) == ["nod"]
    assert json.loads(said["CMD"]) == ["run"]
    assert re.search(r"python:3\.11-", CONTAINERFILE)  # what the tests run on


@pytest.mark.parametrize(("status", "ended"), [(200, 0), (503, 1), (None, 1)])
def test_the_healthcheck_asks_at_the_port_of_the_settings_and_past_any_proxy(
    status: int | None, ended: int
) -> None:
    asked: list[str] = []

    class Nod(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status or 0)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Nod) as server:
        port = server.server_port
        if status is not None:
            Thread(target=server.handle_request, daemon=True).start()
        else:
            server.server_close()  # no one answers there
        said = {"NOD_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
        check = [sys.executable, *HEALTHCHECK[1:]]
        found = subprocess.run(check, env=said, capture_output=True, check=False, timeout=60)  # noqa: S603 - ours
    assert found.returncode == ended
    assert asked == ([] if status is None else ["/healthz"])


def test_compose_starts_postgresql_and_two_locked_processes_of_the_image():
    ours = {name: each for name, each in COMPOSE["services"].items() if each["image"] == "nod"}
    assert {name: each["command"] for name, each in ours.items()} == {"nod": ["run"], "worker": ["worker"]}
    for each in ours.values():
        assert (each["read_only"], each["cap_drop"]) == (True, ["ALL"])
        assert set(each["environment"]) <= SETTINGS
    assert ours["nod"]["ports"] == ["127.0.0.1:8080:8080"]
    assert (DEPLOY / ours["nod"]["build"]["context"] / ours["nod"]["build"]["dockerfile"]).is_file()
    assert ours["nod"]["healthcheck"]["test"] == ["CMD", *HEALTHCHECK]  # the worker waits for it
    database = COMPOSE["services"]["postgres"]["environment"]
    url = ours["nod"]["environment"]["NOD_DATABASE_URL"]
    assert url.startswith(f"postgresql+psycopg://{database['POSTGRES_USER']}:")
    assert url.endswith(f"@postgres/{database['POSTGRES_DB']}")


def test_the_manifests_name_commands_settings_and_pages_that_there_are():
    deployment, service = MANIFESTS
    pod: dict[str, Any] = deployment["spec"]["template"]["spec"]
    assert (
        deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    )
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["args"][0] in COMMANDS
        assert container["image"] == f"nod:{bot.__version__}"
        assert {each["name"] for each in container.get("env", ())} <= SETTINGS
        locked = container["securityContext"]
        assert (locked["readOnlyRootFilesystem"], locked["allowPrivilegeEscalation"]) == (True, False)
    [nod] = pod["containers"]
    paths = {nod[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert paths == {"/healthz", "/readyz"}
    assert f"USER {pod['securityContext']['runAsUser']}" in CONTAINERFILE


def _tool(name: str) -> str | None:
    """A tool of the upkeep group: next to the Python that runs this, or on the path."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


@pytest.mark.skipif(_tool("hadolint") is None, reason="needs hadolint, of the upkeep group")
def test_hadolint_finds_no_fault_in_the_containerfile():
    found = _run(str(_tool("hadolint")), str(DEPLOY / "Containerfile"))
    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.skipif(
    _tool("kubernetes-validate") is None, reason="needs kubernetes-validate, of the upkeep group"
)
@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_the_manifests_are_what_kubernetes_takes(version: str):
    found = _run(
        str(_tool("kubernetes-validate")), "--strict", "-k", version, str(DEPLOY / "kubernetes.yaml")
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", ["nod.service", "nod@.service"])
def test_systemd_takes_the_unit_and_finds_it_well_locked(tmp_path: Path, name: str):
    unit = tmp_path / name.replace("@", "@8080")
    here = (
        (DEPLOY / name)
        .read_text()
        .replace("/opt/nod/bin/nod", shutil.which("true") or "")
        .replace("nod\nGroup=nod", "root\nGroup=root")
    )
    unit.write_text(here)
    verified = _systemd("verify", "--man=no", str(unit))
    assert [line for line in verified.stderr.splitlines() if unit.name in line] == []
    rated = _systemd("security", "--offline=true", "--no-pager", str(unit))
    figure = re.search(rf"exposure level for {unit.name}: ([\d.]+)", rated.stdout)
    assert figure is not None, rated.stdout + rated.stderr
    assert float(figure[1]) <= 2.5


def test_the_unit_for_several_is_the_other_one_with_a_port():
    several = (DEPLOY / "nod@.service").read_text().splitlines()[1:]
    pairs = zip(UNIT.splitlines()[1:], several, strict=True)
    description, command = [(one, other) for one, other in pairs if one != other]
    assert description[1] == f"{description[0]} (port %i)"
    assert command[1] == command[0].replace("=", "=/usr/bin/env NOD_PORT=%i ")


def _systemd(*words: str) -> subprocess.CompletedProcess[str]:
    return _run(str(shutil.which("systemd-analyze")), *words)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - found by name


def test_the_unit_gives_a_change_that_runs_its_time_to_end():
    stop = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > 20
    assert COMPOSE["services"]["nod"]["stop_grace_period"] == f"{stop[1]}s"
    assert MANIFESTS[0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == int(stop[1])

"""docs/agents.md is true: from an empty folder its commands lead to a card, a press and an answer."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

import nod_client
from nod_client import errors
from tests.clients.conftest import House
from tests.web.conftest import ANA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "agents.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


async def begun(
    script: str, house: House, cwd: Path, *path: Path, **environment: str
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        "bash", "-ec", script,
        cwd=cwd,
        env={
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
            "HOME": str(cwd),
            "NOD_URL": house.url,
            "NOD_TOKEN": ANA,
        } | environment,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.skipif(find_spec("pip") is None or find_spec("setuptools") is None, reason="needs pip")
async def test_from_an_empty_folder_its_commands_lead_to_a_card_a_press_and_an_answer(
    house: House, tmp_path: Path
):
    (tmp_path / "clients").mkdir()
    shutil.copytree(ROOT / "clients" / "python", tmp_path / "clients" / "python")
    # a fresh environment that finds httpx and pip where the tests have them: no network in tests
    venv.create(tmp_path / "fresh")
    [packages] = (tmp_path / "fresh").glob("lib/python*/site-packages")
    (packages / "here.pth").write_text("\n".join(p for p in sys.path if p.endswith("site-packages")))
    (tmp_path / "fresh" / "bin" / "pip").write_text(
        f'#!/bin/sh\nexec {tmp_path}/fresh/bin/python -m pip "$@"\n'
    )
    (tmp_path / "fresh" / "bin" / "pip").chmod(0o755)
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    asked = await begun(blocks("sh")[0], house, tmp_path, tmp_path / "fresh" / "bin", **offline)
    proposal = await house.press("approve")
    out, _ = await asked.communicate()
    assert proposal["description"] == "Deploy 1.4?"
    assert (asked.returncode, out.decode().splitlines()[-1]) == (0, "approved")
    installed = [each.name for each in packages.glob("nod_client*")]
    assert sorted(installed) == ["nod_client", f"nod_client-{version()}.dist-info"]


def version() -> str:
    return re.findall(
        r'^version = "(.*)"', (ROOT / "clients" / "python" / "pyproject.toml").read_text(), re.MULTILINE
    )[0]


async def test_its_last_command_prints_what_was_approved(house: House, tmp_path: Path):
    command = tmp_path / "nod-ask"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m nod_client.shell "$@"\n')
    command.chmod(0o755)
    client = str(ROOT / "clients" / "python")
    asked = await begun(blocks("sh")[1], house, tmp_path, tmp_path, RUN_ID="7", PYTHONPATH=client)
    await house.press("approve")
    out, _ = await asked.communicate()
    assert json.loads(out)["arguments"]["fields"] == {"version": "1.4"}


async def test_its_python_runs(house: House, monkeypatch, capsys):
    monkeypatch.setenv("NOD_URL", house.url)
    monkeypatch.setenv("NOD_TOKEN", ANA)
    [code] = blocks("python")
    ran = asyncio.create_task(asyncio.to_thread(exec, code, {}))
    first = await house.press("approve")
    await house.press("approve", await house.card(first["id"]))
    await ran
    assert capsys.readouterr().out == "ben approved it. Deploying 1.4.\nrolled back to 1.3\n"


def test_its_table_names_every_error_and_its_examples_are_all_there():
    table = TEXT[TEXT.index("| error |") : TEXT.index("The first seven are")]
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines() if row)))
    kinds = {name for name in vars(errors) if name[0].isupper() and name in nod_client.__all__}
    assert named == kinds - {"NodError", "NotApproved", "CouldNotAsk", "End", "Request"}
    linked = set(re.findall(r"\(\.\./examples/([\w.-]+)\)", TEXT))
    assert linked == {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}


@pytest.mark.parametrize("name", ["langgraph", "openai_agents", "pydantic_ai", "mcp"])
def test_each_adapter_that_it_names_stays_small(name: str):
    source = (ROOT / "clients" / "python" / "nod_client" / f"{name}.py").read_text()
    assert f"nod_client.{name}.Approvals(" in TEXT
    assert len(source.splitlines()) < 120


def test_importing_the_client_loads_no_agent_library():
    libraries = ("langgraph", "agents", "pydantic_ai", "mcp")
    script = f"import sys, nod_client; print([m for m in {libraries} if m in sys.modules])"
    client = str(ROOT / "clients" / "python")
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": client}
    )
    assert done.stdout.strip() == "[]"

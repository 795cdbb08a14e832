"""The files in ``examples/`` run as they stand, with the real libraries, against a real Nod."""

import asyncio
import json
import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.conftest import House
from tests.fakes.openai_server import OpenAIServer, Reply, unstreamed
from tests.web.conftest import ANA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
AIRFLOW = os.environ.get("NOD_TEST_AIRFLOW") or (sys.executable if find_spec("airflow") else None)


async def run(
    house: House, *command: str, cwd: Path | None = None, **environment: str
) -> tuple[int | None, list[str]]:
    """Its exit code and the lines it printed."""
    running = await asyncio.create_subprocess_exec(
        *command,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "clients" / "python"), *sys.path[1:]]),
            "NOD_URL": house.url,
            "NOD_TOKEN": ANA,
        }
        | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=None,
        cwd=cwd,
    )
    try:
        out, _ = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    return running.returncode, out.decode().strip().splitlines()


def python(
    house: House, name: str, *words: str, **environment: Any
) -> "asyncio.Task[tuple[int | None, list[str]]]":
    house.asks = asyncio.create_task(run(house, sys.executable, str(EXAMPLES / name), *words, **environment))
    return house.asks


async def edited(house: House) -> None:
    """The question's version becomes 1.3."""
    proposal = await house.card()
    arguments = proposal["tool_arguments"]
    await house.press("approve", proposal, arguments=arguments | {"fields": {"version": "1.3"}})


async def test_the_script_deploys_what_people_approved_and_then_asks_again(house: House):
    ran = python(house, "ask.py", "1.4")
    await edited(house)
    proposal = await house.card()
    assert proposal["description"] == "Roll back to 1.3"
    await house.press("approve", proposal)
    assert await ran == (
        0,
        ["ben approved it. ben changed it first. Deploying 1.3.", "rolled back to 1.3"],
    )


async def test_the_script_tells_a_refusal_from_silence(house: House):
    ran = python(house, "ask.py", "1.4")
    await house.press("decline", reason="Not today")
    assert await ran == (1, ["Not deployed. ben declined it. Reason: Not today"])
    ran = python(house, "ask.py", "1.4")
    await house.expire()
    assert await ran == (2, ["Not deployed. No one decided in time. No one refused it."])


BASH = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")


@BASH
async def test_the_bash_script_waits_through_a_restart_and_runs_what_people_approved(house: House):
    ran = asyncio.create_task(run(house, str(EXAMPLES / "deploy.sh"), "1.4"))
    await house.card()
    await house.restart()
    await edited(house)
    assert await ran == (0, ["Deploying 1.3, approved by ben"])


@BASH
async def test_the_bash_script_tells_the_ends_apart(house: House):
    ran = asyncio.create_task(run(house, str(EXAMPLES / "deploy.sh"), "1.4"))
    await house.press("decline", reason="Not today")
    assert await ran == (1, ["Declined: Not today"])
    ran = asyncio.create_task(run(house, str(EXAMPLES / "deploy.sh"), "1.4"))
    await house.expire()
    assert await ran == (3, ["No one decided: expired"])
    assert await run(house, str(EXAMPLES / "deploy.sh"), "1.4", NOD_TOKEN="of-nobody") == (4, [])


@pytest.mark.parametrize(("verb", "code"), [("approve", 0), ("decline", 1)])
async def test_the_workflows_steps_ask_and_then_deploy_or_stop(house: House, tmp_path: Path, verb, code):
    [job] = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())["jobs"].values()
    steps = [step for step in job["steps"] if "run" in step]
    assert [step["name"] for step in steps] == ["Install the client", "Ask", "Deploy"]
    command = tmp_path / "nod-ask"  # what the first step installs; tests/clients/test_wheel.py does that
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m nod_client.shell "$@"\n')
    command.chmod(0o755)
    script = "\n".join(step["run"] for step in steps[1:])
    github = {
        "GITHUB_REF_NAME": "v1.4",
        "GITHUB_SHA": "c0ffee",
        "GITHUB_ACTOR": "ana",
        "GITHUB_RUN_ID": "7",
        "GITHUB_RUN_ATTEMPT": "1",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    ran = asyncio.create_task(run(house, "bash", "-e", "-c", script, **github))
    proposal = await house.card()
    assert [f["new_value"] for f in proposal["preview"]] == ["c0ffee", "ana"]
    await house.press(verb, proposal)
    assert await ran == (code, ["approved", "deploying v1.4"] if verb == "approve" else ["declined"])
    assert set(re.findall(r"\$\{\{ (\S+) \}\}", str(job))) == {
        "vars.NOD_CLIENT",
        "secrets.NOD_URL",
        "secrets.NOD_TOKEN",
    }


async def test_the_graph_deploys_what_people_approved_also_after_a_restart_of_nod(house: House):
    pytest.importorskip("langgraph", reason="the extra adapters is not installed")
    ran = python(house, "langgraph_graph.py")
    await house.card()
    await house.restart()
    await house.edit(version="1.3")
    assert await ran == (0, ["Deployed 1.3. ben approved it. ben changed it first."])
    ran = python(house, "langgraph_graph.py")
    await house.press("decline", reason="Not today")
    assert await ran == (0, ["Not deployed. ben declined it. Reason: Not today"])


def model(body: dict) -> Reply:
    """Deploys 1.4, or what it is told to instead, and repeats what came of it."""
    told = [each["content"] for each in body["messages"] if each["role"] == "tool"]
    exactly = re.search(r"with exactly these: (\{.*\})", told[-1]) if told else None
    if told and not exactly:
        return unstreamed({"content": told[-1]})
    arguments = exactly[1] if exactly else '{"version": "1.4"}'
    call = {"id": f"call_{len(told)}", "type": "function"}
    call["function"] = {"name": "deploy", "arguments": arguments}
    return unstreamed({"content": None, "tool_calls": [call]}, "tool_calls")


AGENTS = pytest.mark.parametrize(
    ("name", "library"), [("openai_agents_agent.py", "agents"), ("pydantic_ai_agent.py", "pydantic_ai")]
)


@AGENTS
async def test_the_agents_deploy_what_people_approved_also_after_a_restart_of_nod(
    house: House, tmp_path: Path, name, library
):
    pytest.importorskip(library, reason="the extra adapters is not installed")
    async with OpenAIServer(script=model) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": server.key, "cwd": tmp_path}
        ran = python(house, name, "run-1", **given)
        await house.card()
        await house.restart()
        await house.edit(version="1.3")
        assert await ran == (0, ["deploying 1.3", "1.3 is out"])
        ran = python(house, name, "run-2", **given)
        await house.press("decline", reason="Not today")
        assert await ran == (0, ["ben declined it. Reason: Not today"])


@AGENTS
async def test_an_agent_that_is_killed_and_started_again_asks_no_second_time(
    house: House, tmp_path: Path, name, library
):
    pytest.importorskip(library, reason="the extra adapters is not installed")
    async with OpenAIServer(script=model) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": server.key, "cwd": tmp_path}
        ran = python(house, name, "run-1", **given)
        proposal = await house.card()
        ran.cancel()
        await asyncio.wait([ran])
        ran = python(house, name, "run-1", **given)
        await house.press("approve", proposal)
        assert await ran == (0, ["deploying 1.4", "1.4 is out"])
        assert len(await house.all()) == 1


async def hook(house: House, **environment: str) -> tuple[int | None, list[str]]:
    use = json.dumps({"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "make release"}})
    words = ("bash", "-c", f"echo '{use}' | {sys.executable} {EXAMPLES / 'hook.py'}")
    house.asks = asyncio.create_task(run(house, *words, **environment))
    return await house.asks


def decided(lines: list[str]) -> Any:
    return json.loads(lines[-1])["hookSpecificOutput"]


async def test_the_hook_of_a_coding_agent_allows_what_people_approved_and_blocks_all_else(house: House):
    ran = asyncio.create_task(hook(house))
    await house.edit(command="make check")
    code, lines = await ran
    assert (code, decided(lines)["permissionDecision"]) == (0, "allow")
    assert decided(lines)["updatedInput"] == {"command": "make check"}
    ran = asyncio.create_task(hook(house))
    await house.press("decline", reason="Not today")
    code, lines = await ran
    assert (code, decided(lines)["permissionDecision"]) == (0, "deny")
    assert decided(lines)["permissionDecisionReason"] == "ben declined it. Reason: Not today"
    assert (await hook(house, NOD_TOKEN="of-nobody")) == (2, [])


async def test_the_mcp_client_calls_what_people_approved(house: House):
    ran = python(house, "mcp_client.py")
    await house.edit(version="1.3")
    assert await ran == (0, ["1.3 is out"])


@pytest.mark.skipif(AIRFLOW is None, reason="NOD_TEST_AIRFLOW names no Python with Airflow 3")
@pytest.mark.parametrize(("verb", "state"), [("approve", "success"), ("decline", "failed")])
async def test_the_dag_releases_what_people_approved_or_fails(house: House, tmp_path: Path, verb, state):
    given = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "NOD_POKE_SECONDS": "0",
        "PYTHONPATH": str(ROOT / "clients" / "python"),
    }
    assert AIRFLOW is not None
    assert (await run(house, AIRFLOW, "-m", "airflow", "db", "migrate", **given))[0] == 0
    ran = asyncio.create_task(run(house, AIRFLOW, str(EXAMPLES / "airflow_dag.py"), **given))
    proposal = await house.card()
    if verb == "approve":
        await house.restart()
        await edited(house)
    else:
        await house.press("decline", proposal)
    _, lines = await ran
    assert lines[-1] == f"The run ended: {state}"
    assert ("releasing 1.3" in lines) is (verb == "approve")

"""``nod demo`` and ``nod run`` as real processes: start, crash, restart, stop."""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from bot.settings import SCRIPTED_NOTICE
from tests.cli.conftest import Demo, Shell

pytestmark = pytest.mark.slow


def said(client: httpx.Client, message: str, **body: Any) -> list[dict[str, Any]]:
    with client.stream("POST", "/api/chat", json={"message": message, **body}) as response:
        assert response.status_code == 200
        return [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]


def states(client: httpx.Client) -> list[str]:
    return [p["state"] for p in client.get("/api/proposals").json()["proposals"]]


STARTING = "Starting…\n"  # said before the settings are read, for that takes a moment


def test_a_parked_proposal_survives_kill_9_and_the_conversation_continues_after_a_restart(shell: Shell):
    first = shell.start("demo", PORT="0")
    with first.client() as client:
        assert client.get("/api/me").json() == {
            "ok": True, "name": "you", "model": "offline demo model", "demo": True, "admin": True,
            "account": "http:local", "accounts": ["http:local"], "roles": ["admin"],
            "session": False, "notice": "", "paused": None,
            "insights": True, "voice": False, "connections": False, "push": False,
        }  # fmt: skip
        events = said(client, "close #2")
        proposal = next(e["proposal"] for e in events if e["type"] == "proposal_opened")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = shell.start("demo", PORT="0")
    with second.client() as client:
        assert client.get(f"/api/proposals/{proposal['id']}").json()["proposal"]["state"] == "proposed"
        path = f"/api/conversations/{proposal['conversation_id']}"
        with client.stream("GET", f"{path}/events") as heard:
            lines = heard.iter_lines()
            next(lines)
            with second.client() as presser:
                pressed = presser.post(f"/api/proposals/{proposal['id']}/approve")
            assert pressed.json()["ok"] is True
            for line in lines:
                if line.startswith("data: ") and json.loads(line[6:])["type"] == "done":
                    break
        done = client.get(f"/api/proposals/{proposal['id']}").json()["proposal"]
        assert (done["state"], done["decided_by"], done["decided_from"]) == ("succeeded", "you", "http")
        told = client.get(f"{path}/messages").json()["messages"]
        assert told[-1]["role"] == "assistant"
        assert told[-1]["text"].startswith("Done")
        issue = [e for e in said(client, "show #2") if e["type"] == "tool_call_result"]
        assert "closed" in issue[0]["result"]
        (listed,) = [e["result"] for e in said(client, "list issues") if e["type"] == "tool_call_result"]
        assert listed.count("Dark mode") == 1  # seeded once
    second.process.send_signal(signal.SIGINT)
    assert second.process.wait(30) == 0
    assert second.errors.read_text() == ""


def test_the_demo_tells_in_a_line_how_each_proposal_ended(demo: Demo):
    running = demo.running
    assert running.process.stdout is not None
    with running.client() as client:
        for verb, told in (("approve", "Approved by you."), ("decline", "Declined by you.")):
            events = said(client, "close #2" if verb == "approve" else "close #3")
            proposal = next(e["proposal"] for e in events if e["type"] == "proposal_opened")
            assert client.post(f"/api/proposals/{proposal['id']}/{verb}").json()["ok"] is True
            assert running.process.stdout.readline() == f"{proposal['description']}: {told}\n"


def test_run_without_a_model_says_that_the_scripted_one_answers_before_it_says_where_it_is(shell: Shell):
    with_a_model = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    for model, said in (({}, f"{SCRIPTED_NOTICE}\n"), (with_a_model, "")):
        running = shell.begin("run", NOD_PORT="0", NOD_ADMINS="http:local", **model)
        assert running.stdout is not None
        assert running.stdout.readline() == STARTING
        if said:
            assert running.stdout.readline() == said
        assert running.stdout.readline().startswith("Nod is up: http://127.0.0.1:")
        running.terminate()
        assert running.wait(30) == 0


def test_the_demo_with_a_team_opens_the_teams_conversation_in_the_browser(shell: Shell):
    browser, opened = shell.folder / "browser", shell.folder / "opened"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{opened}"\n')
    browser.chmod(0o700)
    os.mkfifo(opened)  # to read it is to wait for the browser
    person, terminal = os.openpty()  # one is opened only where a person sits
    screen = {"BROWSER": str(browser), "DISPLAY": ":0"}
    demo = shell.begin("demo", "--team", "--port", "0", stdout=terminal, **screen)
    os.close(terminal)
    address = opened.read_text()
    shown = os.read(person, 4096).decode()
    os.close(person)
    assert address in shown
    root, _, conversation = address.partition("#/c/")
    assert conversation == "demo-team"
    told = httpx.get(f"{root}api/conversations/{conversation}/messages", timeout=30).json()["messages"]
    assert told[0]["role"] == "user"
    demo.kill()


def test_on_stdout_run_writes_plain_lines_and_on_stderr_only_json(shell: Shell):
    running = shell.start("run", "-v", NOD_PORT="0", NOD_ADMINS="http:local")
    with running.client() as client:
        said(client, "close #2")
    running.process.send_signal(signal.SIGINT)
    assert running.process.stdout is not None
    assert running.process.stdout.read() == "Stopping… Press Ctrl+C again to end now.\n"
    assert running.process.wait(30) == 0
    logged = [json.loads(line)["event"] for line in running.errors.read_text().splitlines()]
    assert "nod is up" in logged


_HELD = """
import asyncio
from pathlib import Path
from bot import tool

@tool(summary="Paint the hall")
async def paint() -> str:
    await asyncio.to_thread(Path("began").write_text, "yes")
    return await asyncio.to_thread(Path("go").read_text)
"""


def test_a_stop_says_which_approved_change_it_waits_for(shell: Shell):
    (shell.folder / "painting.py").write_text(_HELD)
    for name in ("began", "go"):  # to open one is to wait for the other side
        os.mkfifo(shell.folder / name)
    shell.environment |= {"NOD_TOOLS": "painting", "NOD_PORT": "0", "NOD_ADMINS": "cli:operator,http:local"}
    running = shell.start("run")
    proposal = shell.process("tools", "call", "paint").stdout.partition(":")[0]
    with running.client() as client:
        assert client.post(f"/api/proposals/{proposal}/approve").json()["ok"] is True
    assert (shell.folder / "began").read_text() == "yes"
    running.process.send_signal(signal.SIGINT)
    assert running.process.stdout is not None
    assert running.process.stdout.readline() == "Stopping… Press Ctrl+C again to end now.\n"
    assert running.process.stdout.readline() == "Waiting up to 20 s for: Paint the hall\n"
    (shell.folder / "go").write_text("painted")
    assert running.process.wait(30) == 0
    assert '"state": "succeeded"' in shell.nod("show", proposal, "--json").stdout


def test_sigterm_ends_it_cleanly_even_with_open_streams(shell: Shell):
    demo = shell.start("demo", PORT="0")
    with demo.client() as client, client.stream("GET", "/api/events") as feed:
        next(feed.iter_lines())
        assert demo.end() == 0
    assert demo.errors.read_text() == ""


def test_a_second_nod_on_the_same_file_is_refused_in_one_line(demo: Demo):
    second = demo.shell.nod("demo", PORT="0")
    assert second.exit_code == 1
    (line,) = second.stderr.splitlines()
    assert line.startswith("nod: NOD_DATABASE_URL: another nod is running on nod-demo.db.")


def test_a_port_in_use_is_one_line(shell: Shell):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = shell.nod("demo", "--port", port)
    assert refused.exit_code == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"nod: NOD_PORT: cannot listen on 127.0.0.1:{port} (Address already in use);")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOD_PORT", "x"),
        ("NOD_HOST", "0.0.0.0"),  # noqa: S104 - it is refused
        ("NOD_HOST", "no.such.host.invalid"),
        ("NOD_DATABASE_URL", "sqlite:///no/such/nod.db"),
    ],
)
def test_run_with_a_wrong_setting_is_one_line_and_exit_code_1(shell: Shell, name: str, value: str):
    tokens = (
        {"NOD_HTTP_TOKENS": "ana:0123456789abcdef", "NOD_ADMINS": "http:ana"}
        if value.endswith("invalid")
        else {}
    )
    refused = shell.nod("run", **{"NOD_PORT": "0", name: value, **tokens})
    assert refused.exit_code == 1
    assert refused.stdout in ("", STARTING)
    lines = [line for line in refused.stderr.splitlines() if line.startswith("nod: ")]
    assert len(lines) == 1
    assert "NOD_" in lines[0]


def test_a_wrong_setting_of_a_real_process_is_one_line_on_stderr(shell: Shell):
    refused = shell.process("run", NOD_PORT="x")
    assert refused.returncode == 1
    assert refused.stdout in ("", STARTING)
    assert refused.stderr.startswith("nod: NOD_PORT: 'x' is not a number.")
    assert len(refused.stderr.splitlines()) == 1


def test_a_file_that_is_no_database_is_one_line(shell: Shell):
    (shell.folder / "nod.db").write_bytes(b"not a database at all" * 100)
    for words in (("run",), ("pending",), ("db", "upgrade")):
        refused = shell.nod(*words, NOD_PORT="0")
        assert refused.exit_code == 1
        assert re.search(r"nod: .*file is not a database", refused.stderr)


def test_the_demo_with_a_team_goes_as_its_document_says(shell: Shell):
    demo = shell.start("demo", "--team", PORT="0")
    home = "/api/conversations/demo-team"
    with demo.client() as client, demo.client() as feed, feed.stream("GET", f"{home}/events") as events:
        lines = events.iter_lines()
        next(lines)

        def proposed() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = client.get(f"{home}/proposals").json()["proposals"]
            return [p for p in found if p["state"] == "proposed"]

        def until(true: Callable[[], Any]) -> Any:
            while not (found := true()):
                next(lines)
            return found

        [plan] = until(proposed)
        assert plan["description"].startswith("Plan: ")
        client.post(f"/api/proposals/{plan['id']}/revise", json={"reason": "only #4"})
        [plan] = until(proposed)
        assert plan["description"].startswith("Plan, version 2: ")
        client.post(f"/api/proposals/{plan['id']}/approve")
        [change] = until(proposed)
        assert (change["kind"], change["teammate"]) == ("call", "issue-organiser")
        client.post(f"/api/proposals/{change['id']}/approve")

        def told() -> bool:
            messages = client.get(f"{home}/messages").json()["messages"]
            # the other teammate may come last, or both in one message
            return any("**issue-organiser** is done" in message["text"] for message in messages)

        until(told)
    assert demo.end() == 0
    assert "issue-organiser" in shell.nod("team", NOD_DATABASE_URL="sqlite:///nod-demo.db").stdout
    again = shell.start("demo", "--team", PORT="0")
    with again.client() as client:
        assert len(client.get(f"{home}/team").json()["team"]["teammates"]) == 2


def test_a_start_that_waits_for_a_silent_slack_ends_when_it_is_told_to(shell: Shell):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(120)
        starting = shell.begin(
            "run",
            NOD_PORT="0",
            NOD_ADMINS="slack:T1/U1",
            SLACK_BOT_TOKEN="xoxb-1",
            SLACK_APP_TOKEN="xapp-1",
            SLACK_API_URL=f"http://127.0.0.1:{silent.getsockname()[1]}/api/",
        )
        asking, _ = silent.accept()
        starting.send_signal(signal.SIGTERM)
        assert starting.wait(30) == 0
        asking.close()


def test_a_press_in_a_shell_is_done_right_away_and_a_second_signal_ends_a_long_tool(shell: Shell):
    (shell.folder / "naps.py").write_text(
        "import asyncio\nfrom pathlib import Path\nfrom bot.tools.decorator import tool\n\n"
        '@tool(timeout=3600)\nasync def nap() -> str:\n    """Sleep."""\n'
        "    Path('asleep').touch()\n    await asyncio.sleep(3600)\n    return 'awake'\n"
    )
    given = {"NOD_PORT": "0", "NOD_TOOLS": "naps", "NOD_ADMINS": "cli:operator"}
    running = shell.start("run", **given)
    called = shell.process("tools", "call", "nap", **given)
    assert called.returncode == 0, called.stderr
    assert shell.nod("approve", called.stdout[:16], **given).exit_code == 0
    end = time.monotonic() + 30
    while not (shell.folder / "asleep").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    running.process.terminate()
    assert running.process.stdout is not None
    assert running.process.stdout.readline().startswith("Stopping…")
    running.process.terminate()
    assert running.process.wait(30) == 130

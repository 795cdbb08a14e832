"""``nod demo`` and ``nod run`` as real processes: start, crash, restart, stop."""

import json
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.cli.conftest import Shell


def said(client: httpx.Client, message: str, **body: Any) -> list[dict[str, Any]]:
    with client.stream("POST", "/api/chat", json={"message": message, **body}) as response:
        assert response.status_code == 200
        return [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]


def states(client: httpx.Client) -> list[str]:
    return [p["state"] for p in client.get("/api/chat/actions").json()["proposals"]]


def test_a_parked_proposal_survives_kill_9_and_the_conversation_goes_on_after_a_restart(shell: Shell):
    first = shell.start("demo", PORT="0")
    with first.client() as client:
        assert client.get("/api/me").json() == {
            "ok": True, "name": "you", "model": "offline demo model", "demo": True, "admin": True,
        }  # fmt: skip
        events = said(client, "close #2")
        proposal = next(e["proposal"] for e in events if e["type"] == "action_proposed")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = shell.start("demo", PORT="0")
    with second.client() as client:
        assert client.get(f"/api/chat/actions/{proposal['id']}").json()["proposal"]["state"] == "proposed"
        path = f"/api/chat/conversations/{proposal['conversation_id']}"
        with client.stream("GET", f"{path}/events") as heard:
            lines = heard.iter_lines()
            next(lines)
            with second.client() as presser:
                pressed = presser.post(f"/api/chat/actions/{proposal['id']}/approve")
            assert pressed.json()["ok"] is True
            for line in lines:
                if line.startswith("data: ") and json.loads(line[6:])["type"] == "done":
                    break
        done = client.get(f"/api/chat/actions/{proposal['id']}").json()["proposal"]
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


def test_sigterm_ends_it_cleanly_even_with_open_streams(shell: Shell):
    demo = shell.start("demo", PORT="0")
    with demo.client() as client, client.stream("GET", "/api/events") as feed:
        next(feed.iter_lines())
        assert demo.end() == 0
    assert demo.errors.read_text() == ""


def test_a_second_nod_on_the_same_file_is_refused_in_one_line(shell: Shell):
    shell.start("demo", PORT="0")
    second = shell.process("demo", PORT="0")
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert line.startswith("nod: NOD_DATABASE_URL: another nod is running on nod-demo.db;")


def test_a_port_in_use_is_one_line(shell: Shell):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = shell.process("demo", "--port", port)
    assert refused.returncode == 1
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
    assert refused.stdout == ""
    lines = [line for line in refused.stderr.splitlines() if line.startswith("nod: ")]
    assert len(lines) == 1
    assert "NOD_" in lines[0]


def test_a_wrong_setting_of_a_real_process_is_one_line_on_stderr(shell: Shell):
    refused = shell.process("run", NOD_PORT="x")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith("nod: NOD_PORT: input should be a valid integer")
    assert len(refused.stderr.splitlines()) == 1


def test_a_file_that_is_no_database_is_one_line(shell: Shell):
    (shell.folder / "nod.db").write_bytes(b"not a database at all" * 100)
    for words in (("run",), ("pending",), ("db", "upgrade")):
        refused = shell.nod(*words, NOD_PORT="0")
        assert refused.exit_code == 1
        assert "nod: NOD_DATABASE_URL: file is not a database" in refused.stderr


def test_the_demo_with_a_team_goes_as_its_document_says(shell: Shell):
    demo = shell.start("demo", "--team", PORT="0")
    with demo.client() as client:
        home = "/api/chat/conversations/demo-team"

        def proposed() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = client.get(f"{home}/proposals").json()["proposals"]
            return [p for p in found if p["state"] == "proposed"]

        def until(true: Callable[[], Any]) -> Any:
            end = time.monotonic() + 20
            while not (found := true()):
                assert time.monotonic() < end
                time.sleep(0.05)
            return found

        [plan] = until(proposed)
        assert plan["description"].startswith("issue-organiser's plan, version 1")
        client.post(f"/api/chat/actions/{plan['id']}/revise", json={"reason": "only #4"})
        [plan] = until(proposed)
        assert plan["description"].startswith("issue-organiser's plan, version 2")
        client.post(f"/api/chat/actions/{plan['id']}/approve")
        [change] = until(proposed)
        assert (change["kind"], change["teammate"]) == ("call", "issue-organiser")
        client.post(f"/api/chat/actions/{change['id']}/approve")

        def told() -> bool:
            last = client.get(f"{home}/messages").json()["messages"][-1]
            return bool(last["text"].startswith("**issue-organiser** is done"))

        until(told)
    assert demo.end() == 0
    assert "issue-organiser" in shell.process("team", NOD_DATABASE_URL="sqlite:///nod-demo.db").stdout
    again = shell.start("demo", "--team", PORT="0")
    with again.client() as client:
        assert len(client.get(f"{home}/team").json()["team"]["teammates"]) == 2

"""A rolling restart by the document's own commands: processes of the template unit, one after the other."""

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import NOD, Shell, shell  # noqa: F401 - a fixture
from tests.kit.urls import POSTGRES_URL, schema
from tests.torture.nods import free_port

ROOT = Path(__file__).parent.parent.parent
START, RESTART = [
    block
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
    if "nod@" in block
]
TOKEN = "ana-0123456789abcdef"
PATIENCE = 30  # seconds for an answer
UNIT = (ROOT / "deploy" / "nod@.service").read_text()
COMMAND = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[0].replace("/opt/nod/bin/nod", " ".join(NOD))
SYSTEMCTL = f"""#!{sys.executable}
import os, re, select, shlex, signal, subprocess, sys
from pathlib import Path

def start(port):
    words = shlex.split({COMMAND!r}.replace("%i", port))
    with open(port + ".log", "a") as log:
        begun = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    Path(port + ".pid").write_text(str(begun.pid))
    print("started", port, flush=True)

def stop(port):
    process = os.pidfd_open(int(Path(port + ".pid").read_text()))
    signal.pidfd_send_signal(process, signal.SIGTERM)
    print("stopping", port, flush=True)
    assert select.select([process], [], [], 60)[0], "it did not end"
    print("stopped", port, flush=True)

verb, *units = [word for word in sys.argv[1:] if word != "--now"]
for port in re.findall(r"nod@(\\d+)", " ".join(units)):
    if verb == "restart":
        stop(port)
    start(port)
"""
SUDO = '#!/bin/sh\n[ "$1" != systemctl ] || exec "$@"\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not POSTGRES_URL, reason="needs NOD_TEST_POSTGRES_URL"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl"),
]


class Instances:
    """What the stand-in for systemd started."""

    def __init__(self, shell: Shell, url: str) -> None:  # noqa: F811
        self.ports = [free_port(), free_port()]
        self._shell = shell
        self._folder = shell.folder
        programs = shell.folder / "bin"
        programs.mkdir()
        for name, text in {"systemctl": SYSTEMCTL, "sudo": SUDO}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self._environment = shell.environment | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "NOD_DATABASE_URL": url,
            "NOD_HTTP_TOKENS": f"ana:{TOKEN}",
            "NOD_ADMINS": "http:ana",
        }

    def run(self, commands: str) -> subprocess.Popen[str]:
        """Begin commands of the document, with the ports of this test."""
        for port, free in zip(("8080", "8081"), self.ports, strict=True):
            commands = commands.replace(port, str(free))
        begun = subprocess.Popen(  # noqa: S603 - our own
            ["/bin/sh", "-euc", commands],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._shell.started.append(begun)  # which closes what it says
        return begun

    def ready(self, port: int) -> bool:
        """Whether a load balancer would send something there."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE).is_success
        return False

    def log(self) -> str:
        return "".join(path.read_text() for path in self._folder.glob("*.log"))

    def end(self) -> None:
        for path in self._folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                process = os.pidfd_open(int(path.read_text()))
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select([process], [], [], 60)
                os.close(process)


@pytest.fixture
def instances(shell: Shell) -> Iterator[Instances]:  # noqa: F811
    with schema() as url:
        made = Instances(shell, url)
        yield made
        made.end()


class Client:
    """Someone who asks and presses, behind something that knows who is ready."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self._http = httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE)

    def close(self) -> None:
        self._http.close()

    def ask(self, title: str) -> str:
        """The proposal to create an issue with this title."""
        url = f"http://127.0.0.1:{self._instances.ports[0]}"
        self._http.post(f"{url}/api/chat", json={"message": f"Create an issue: {title}"}).raise_for_status()
        found = self._http.get(f"{url}/api/proposals").json()["proposals"]
        return str(found[0]["id"])

    def approve(self, proposal: str, first: int) -> None:
        """Press at this port if it is ready, else at another; again where the connection ended."""
        others = [port for port in self._instances.ports if port != first]
        for port in (first, *others):
            if not self._instances.ready(port):
                continue
            with contextlib.suppress(httpx.TransportError):
                url = f"http://127.0.0.1:{port}/api/proposals/{proposal}/approve"
                answer = self._http.post(url, json={})
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return
        raise AssertionError(f"no one answered; {self._instances.log()}")

    def titles(self) -> list[str]:
        """Of the issues that there are, each of which has succeeded."""
        url = f"http://127.0.0.1:{self._instances.ports[0]}/api/proposals"
        found = self._http.get(url, params={"limit": 100}).json()["proposals"]
        for each in found:
            ended = self._http.get(f"{url}/{each['id']}", params={"wait": 30}).json()["proposal"]
            assert ended["state"] == "succeeded", ended
        return [each["description"] for each in found]


def test_a_rolling_restart_as_the_document_says_loses_and_doubles_no_press(instances: Instances):
    assert instances.run(START).wait(60) == 0
    [wait] = re.findall(r"curl .*? \S+/readyz", RESTART)
    for port in ("8080", "8081"):
        assert instances.run(wait.replace("$port", port)).wait(120) == 0, instances.log()

    with contextlib.closing(Client(instances)) as client:
        titles = [f"press {number}" for number in range(12)]
        waiting = [client.ask(title) for title in titles]
        rolling = instances.run(RESTART)
        assert rolling.stdout is not None
        seen = []
        for line in rolling.stdout:  # two presses at each step, at the process that is restarted if it may be
            what, port = line.split()
            seen.append((what, int(port)))
            client.approve(waiting.pop(), int(port))
            client.approve(waiting.pop(), int(port))
        assert rolling.wait(60) == 0, instances.log()
        assert seen == [
            (what, port) for port in instances.ports for what in ("stopping", "stopped", "started")
        ]
        assert all(map(instances.ready, instances.ports))
        assert waiting == []
        assert sorted(client.titles()) == sorted(f"Create issue “{title.capitalize()}”" for title in titles)


def test_where_one_does_not_become_ready_the_others_are_left_alone(instances: Instances):
    never = RESTART.replace("sudo systemctl restart", "echo restarted").replace("--retry 60", "--retry 1")
    rolling = instances.run(never)
    said, _ = rolling.communicate(timeout=60)
    first, second = instances.ports
    assert f"restarted nod@{first}\n" in said
    assert str(second) not in said

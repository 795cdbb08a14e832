"""What may not hold up or end a running Nod: a log that no one reads, and a terminal that closes."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

from tests.cli.conftest import NOD, Shell

pytestmark = pytest.mark.slow


def _full_pipe() -> tuple[int, int]:
    """A pipe into which nothing more fits: its reader does not read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
        return reader, writer


def _start(shell: Shell, command: list[str], stderr: int, **more: str) -> tuple[subprocess.Popen[str], str]:
    """A server whose log goes there, and its address."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*NOD, *command],
        cwd=shell.folder,
        env=shell.environment | {"NOD_PORT": "0"} | more,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    shell.started.append(process)
    assert process.stdout is not None
    return process, next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))


def _all_of(reader: int, last: str) -> str:
    """Read up to a line that has these words."""
    read = b""
    while last.encode() not in read or not read.endswith(b"\n"):
        read += os.read(reader, 65536)
    return read.decode()


_TOOLS = """
import logging
from bot.tools.decorator import tool

for number in range(5000):
    logging.getLogger("own").warning("line %s", number)

@tool(writes=False)
async def look() -> str: ...
"""


@pytest.mark.skipif(sys.platform == "win32", reason="about pipes")
def test_what_a_log_that_no_one_reads_drops_is_counted_and_everything_else_works(shell: Shell) -> None:
    (shell.folder / "own.py").write_text(_TOOLS)
    reader, writer = _full_pipe()
    token, scraping = "a-token-of-the-operator", "a-token-of-prometheus"
    given = {
        "NOD_HTTP_TOKENS": f"ops:{token},boss:another-{token}",
        "NOD_METRICS_TOKEN": scraping,
        "NOD_TOOLS": "own",
    }
    process, address = _start(shell, ["run"], writer, **given, NOD_ADMINS="http:boss")
    with httpx.Client(base_url=address, timeout=30, headers={"Authorization": f"Bearer {token}"}) as client:

        def dropped() -> int:
            text = client.get("/metrics", headers={"Authorization": f"Bearer {scraping}"}).text
            return int(float(re.findall(r'nod_problems_total\{level="dropped",part="logs"\} (\S+)', text)[0]))

        assert client.get("/healthz").status_code == 200
        asked = client.post("/api/approvals", json={"summary": "Close the gate"}).json()
        ident = asked["proposal"]["id"]
        pressed = client.post(
            f"/api/proposals/{ident}/approve", headers={"Authorization": f"Bearer another-{token}"}
        )
        assert pressed.json()["ok"] is True, pressed.text
        many = dropped()
        assert many >= 5000 - 2000 - 1
        log = _all_of(reader, "did not fit and were dropped")
        kept = len(re.findall(r"line \d+", log))
        (told,) = re.findall(r'"lines": (\d+).*did not fit', log) or re.findall(
            r'did not fit.*"lines": (\d+)', log
        )
        assert (int(told), kept < 5000) == (many, True)
    process.terminate()
    assert process.wait(60) == 0
    os.close(reader)
    os.close(writer)


@pytest.mark.skipif(sys.platform == "win32", reason="about pipes")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_a_log_that_no_one_reads_stops_nothing_and_a_signal_ends_in_order(shell: Shell, by: int) -> None:
    reader, writer = _full_pipe()
    command = ["--verbose", "demo", "--no-browser", "--port", "0"]
    process, address = _start(shell, command, writer, NOD_LOG_LEVEL="debug")
    with httpx.Client(base_url=address, timeout=30) as client:
        for _ in range(3):
            assert client.get("/no/such/page").status_code == 404
        assert client.get("/healthz").status_code == 200
    process.send_signal(by)
    assert process.stdout is not None
    assert "Stopping" in process.stdout.read()
    assert process.wait(60) == 0
    os.close(reader)
    os.close(writer)


def test_behind_a_proxy_it_says_that_it_is_not_ready_before_it_is_gone(shell: Shell):
    given = {"NOD_PUBLIC_URL": "https://nod.example.com", "NOD_HTTP_TOKENS": "ops:a-token-of-the-operator"}
    running = shell.start("run", NOD_PORT="0", NOD_ADMINS="http:ops", **given)
    with running.client() as client:
        assert client.get("/readyz").status_code == 200
        running.process.terminate()
        while (status := client.get("/readyz").status_code) == 200:
            pass
        assert status == 503
        assert client.get("/healthz").status_code == 200
    assert running.process.wait(60) == 0

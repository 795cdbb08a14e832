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


@pytest.mark.skipif(sys.platform == "win32", reason="about pipes")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_a_log_that_no_one_reads_stops_nothing_and_a_signal_ends_in_order(shell: Shell, by: int) -> None:
    reader, writer = _full_pipe()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*NOD, "--verbose", "demo", "--no-browser", "--port", "0"],
        cwd=shell.folder,
        env=shell.environment | {"NOD_PORT": "0", "NOD_LOG_LEVEL": "debug"},
        stdout=subprocess.PIPE,
        stderr=writer,
        text=True,
    )
    shell.started.append(process)
    assert process.stdout is not None
    address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
    with httpx.Client(base_url=address, timeout=30) as client:
        for _ in range(3):
            assert client.get("/no/such/page").status_code == 404
        assert client.get("/healthz").status_code == 200
    process.send_signal(by)
    assert "Stopping" in process.stdout.read()
    assert process.wait(60) == 0
    os.close(reader)
    os.close(writer)

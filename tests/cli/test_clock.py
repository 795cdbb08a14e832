"""A served Nod whose clock is set while it works: back by an hour or days, ahead by a day or a month."""

import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.kit import sql

_LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
_JUMPS = ("-1h", "-3d", "+1d", "+40d")  # from the time there really is, one after the other
_PATIENCE = 90.0  # seconds of the machine's own clock

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_LIBRARY is None, reason="needs libfaketime (apt-get install faketime)"),
]


def test_when_the_clock_is_set_what_is_due_by_it_still_ends_and_nothing_is_held_up(shell: Shell):
    clock = shell.folder / "clock"
    clock.write_text("+0\n")
    running = shell.start(
        "run",
        NOD_PORT="0",
        NOD_HTTP_TOKENS="ops:a-token-of-the-operator",
        NOD_ADMINS="http:boss",
        LD_PRELOAD=str(_LIBRARY),
        FAKETIME_TIMESTAMP_FILE=str(clock),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
        DONT_FAKE_MONOTONIC="1",
    )
    url = f"sqlite:///{shell.folder / 'nod.db'}"
    with running.client() as client:
        client.headers["authorization"] = "Bearer a-token-of-the-operator"

        def asked(seconds: int) -> str:
            body = {"summary": "Close the gate", "ttl_seconds": seconds}
            answer = client.post("/api/approvals", json=body)
            assert answer.is_success, answer.text
            return str(answer.json()["proposal"]["id"])

        def ended(ident: str) -> float:
            """Wait for its expiry; gives the longest that an answer took until then, in seconds."""
            longest, end = 0.0, time.monotonic() + _PATIENCE
            while sql(url, "SELECT state FROM proposal WHERE id = :id", id=ident)[0]["state"] == "proposed":
                assert time.monotonic() < end, running.errors.read_text()
                began = time.monotonic()
                assert client.get("/healthz").status_code == 200
                longest = max(longest, time.monotonic() - began)
                time.sleep(0.05)  # the load of a probe, on a machine that has other work
            return longest

        usual = ended(asked(5))
        for number, jump in enumerate(_JUMPS, 1):
            before = asked(3600)
            clock.write_text(f"{jump}\n")
            after = asked(5)
            held = ended(after)
            print(f"{jump}: the longest answer took {held:.2f} s, {usual:.2f} s as long as none was set")  # noqa: T201 - with -s
            # a day that was walked through took 1.6 s, forty more than a minute
            assert held < max(3.0, 10 * usual), jump
            if jump.startswith("+"):
                ended(before)
            (was,) = sql(url, "SELECT created_at, updated_at FROM proposal WHERE id = :id", id=after)
            assert datetime.fromisoformat(was["updated_at"]) >= datetime.fromisoformat(was["created_at"]), (
                jump
            )
            assert running.errors.read_text().count("the system's clock was set") == number, jump
    assert running.end() == 0

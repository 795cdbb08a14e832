"""A served Nod whose clock is set while it works: back by days, ahead by a month."""

import json
import os
import pwd
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from tests.cli.conftest import Shell
from tests.kit import sql

_LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
_LOGIN = pwd.getpwuid(os.getuid()).pw_name  # of a real process; the fixture's own name is only this one's
_TOKEN = "a-token-of-the-operator"
_JUMPS = ("-3d", "+40d")  # from the time there really is, one after the other
_PATIENCE = 240.0  # seconds of the machine's own clock
_CALLERS = 2
_PAUSE = 1.0  # seconds between two requests of a caller: people pause, too

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # two times of a real process, on a machine that has other work
    pytest.mark.skipif(_LIBRARY is None, reason="needs libfaketime (apt-get install faketime)"),
]


class Load:
    """Callers that look and write for as long as the test runs."""

    def __init__(self, url: str) -> None:
        self.answers, self.faults = 0, list[str]()
        self._url, self._over = url, threading.Event()
        self._threads = [threading.Thread(target=self._call) for _ in range(_CALLERS)]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def _call(self) -> None:
        headers = {"Authorization": f"Bearer {_TOKEN}"}
        with httpx.Client(base_url=self._url, headers=headers, timeout=60) as client:
            while not self._over.is_set():
                for answer in (
                    client.post("/api/chat", json={"message": "list issues"}),
                    client.get("/api/proposals"),
                ):
                    self.answers += 1
                    time.sleep(_PAUSE)
                    if answer.is_error:
                        self.faults.append(answer.text)


def _used(process: int) -> float:
    """Seconds of the processor that it has used."""
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def _proposed(client: httpx.Client, message: str) -> str:
    told = client.post("/api/chat", json={"message": message}).text.splitlines()
    events = [json.loads(line[6:]) for line in told if line.startswith("data: ")]
    return str(next(each for each in events if each["type"] == "proposal_opened")["proposal"]["id"])


def test_when_the_clock_is_set_what_is_due_by_it_still_happens_and_nothing_is_held_up(shell: Shell):
    clock = shell.folder / "clock"
    clock.write_text("+0\n")
    shell.environment |= {
        "NOD_HTTP_TOKENS": f"ops:{_TOKEN}",
        "NOD_ADMINS": f"http:ops,cli:{_LOGIN}",
        "LD_PRELOAD": str(_LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",  # seconds: without it each look at the clock reads the file
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    running = shell.start("run", NOD_PORT="0", NOD_MAX_MESSAGES="100000", NOD_MAX_CONVERSATIONS="100000")
    url = f"sqlite:///{shell.folder / 'nod.db'}"

    def rows(words: str, ident: str) -> list[dict[str, Any]]:
        return sql(url, words, id=ident)

    def state(ident: str) -> str:
        return str(rows("SELECT state FROM proposal WHERE id = :id", ident)[0]["state"])

    def reminded(ident: str) -> bool:
        return bool(rows("SELECT 1 FROM audit WHERE proposal_id = :id AND verb = 'remind'", ident))

    def told(times: str) -> bool:
        return running.errors.read_text().count("the system's clock was set") == int(times)

    def expired(ident: str) -> bool:
        return state(ident) == "expired"

    def done(ident: str) -> bool:
        return state(ident) == "succeeded"

    def until(holds: Callable[[str], bool], ident: str) -> tuple[float, float]:
        """Wait for it; gives the longest that an answer took until then, in seconds, and the most it cost.

        A machine that is busy makes answers slow; that they cost much is the server's own doing.
        """
        longest, dearest, end = 0.0, 0.0, time.monotonic() + _PATIENCE
        while not holds(ident):
            assert time.monotonic() < end, running.errors.read_text()
            began, before = time.monotonic(), _used(running.process.pid)
            assert client.get("/healthz").status_code == 200
            longest, dearest = (
                max(longest, time.monotonic() - began),
                max(dearest, _used(running.process.pid) - before),
            )
            time.sleep(_PAUSE)  # the load of a probe, on a machine that has other work
        return longest, dearest

    with running.client() as client, Load(running.url) as load:
        client.headers["authorization"] = f"Bearer {_TOKEN}"

        def asked(seconds: int) -> str:
            body = {"summary": "Close the gate", "ttl_seconds": seconds}
            answer = client.post("/api/approvals", json=body)
            assert answer.is_success, answer.text
            return str(answer.json()["proposal"]["id"])

        client.post("/api/rules", json={"subject": "remind", "seconds": 10}).raise_for_status()
        until(expired, asked(5))
        for number, jump in enumerate(_JUMPS, 1):
            before = asked(3600)
            clock.write_text(f"{jump}\n")
            held, cost = until(told, str(number))
            after, lasting = asked(5), asked(3600)
            held, cost = map(max, (held, cost), until(expired, after))
            print(f"{jump}: the longest answer took {held:.2f} s, and one cost {cost:.2f} s at most")  # noqa: T201 - with -s
            assert cost < 8, jump  # days that were walked through cost 1.6 s each
            until(reminded, lasting)
            created = _proposed(client, f"create an issue 'After {number}'")
            pressing = shell.begin("approve", created)  # the running one finds it in the rows
            assert pressing.wait(_PATIENCE) == 0
            until(done, created)
            if jump.startswith("+"):
                until(expired, before)
            (was,) = rows("SELECT created_at, updated_at FROM proposal WHERE id = :id", after)
            assert datetime.fromisoformat(was["updated_at"]) >= datetime.fromisoformat(was["created_at"]), (
                jump
            )
    assert load.faults == []
    assert load.answers > 0
    assert running.end() == 0

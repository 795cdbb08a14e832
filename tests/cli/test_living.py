"""Nod over time: its queue watched, a backup put back by the documents' own commands."""

import contextlib
import json
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_commands import asked  # noqa: F401 - a database with two proposals in it
from tests.cli.test_presses import first  # noqa: F401

pytestmark = pytest.mark.slow

DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "operations.md").read_text()


def test_what_comes_to_wait_and_what_was_decided_is_printed_until_ctrl_c(shell: Shell, first: str):  # noqa: F811
    watching = shell.begin("pending", "--watch")
    assert watching.stdout is not None
    waits = [watching.stdout.readline(), watching.stdout.readline()]
    assert any(line.startswith(first) for line in waits)
    shell.nod("decline", first)
    assert re.match(rf"{first}  Declined by operator", watching.stdout.readline())
    watching.send_signal(signal.SIGINT)
    assert watching.wait(60) == 0
    assert watching.stdout.read() == ""


def test_a_script_reads_one_object_a_line(shell: Shell, first: str):  # noqa: F811
    watching = shell.begin("pending", "--watch", "--json")
    assert watching.stdout is not None
    waits = [json.loads(watching.stdout.readline()) for _ in range(2)]
    assert [each["state"] for each in waits] == ["proposed", "proposed"]
    shell.nod("decline", first)
    declined = json.loads(watching.stdout.readline())
    assert (declined["id"], declined["state"]) == (first, "declined")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(60) == 0
    assert watching.stdout.read() == ""


def test_a_database_of_an_older_schema_is_upgraded_as_the_document_says(shell: Shell):
    frozen = Path(__file__).parent.parent / "store" / "frozen" / "schema_0004.sql"
    with contextlib.closing(sqlite3.connect(shell.folder / "nod.db")) as database:
        database.executescript(frozen.read_text())
    refused = shell.nod("pending")
    assert (refused.exit_code, "Run: nod db upgrade" in refused.stderr) == (1, True)

    [block] = [each for each in re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL) if "db upgrade" in each]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    for words in lines:
        done = shell.nod(*words[1:]) if words[0] == "nod" else None
        assert done is None or done.exit_code == 0, done.output
    assert [words[0] for words in lines] == ["nod", "pip", "nod", "nod"]
    assert shell.nod("pending").exit_code == 0

    shutil.move(shell.folder / "nod-before.db", shell.folder / "nod.db")  # back: what the old release reads
    assert "the schema is 0004" in shell.nod("pending").stderr


def test_a_backup_of_a_running_nod_is_put_back_as_the_document_says(shell: Shell, first: str):  # noqa: F811
    running = shell.start("run", NOD_PORT="0")
    blocks = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
    backup, restore = [each for each in blocks if "nod-monday" in each]
    for line in backup.splitlines():
        done = shell.nod(*shlex.split(line, comments=True)[1:])
        assert done.exit_code == 0, done.output
    assert done.output.startswith("Audit log verified")
    shell.nod("decline", first)
    assert "Declined by operator" in shell.nod("show", first).stdout
    assert running.end() == 0

    (shell.folder / "nod.db-wal").touch()  # as after a crash
    by_hand, paused = re.split(r"^nod ", restore, flags=re.MULTILINE)
    subprocess.run(["/bin/sh", "-euc", by_hand], cwd=shell.folder, check=True)  # noqa: S603 - the document's own
    assert shell.nod(*shlex.split(paused, comments=True)).exit_code == 0
    assert [path.name for path in shell.folder.glob("nod.db-*")] == []
    restored = shell.start("run", NOD_PORT="0")
    assert "Round: 1" in shell.nod("show", first).stdout  # open again, as the document warns
    assert shell.nod("approvals", "resume").exit_code == 0
    assert shell.nod("pending").stdout.count("\n") == 2
    assert shell.nod("decline", first).stdout.startswith("Declined")
    assert shell.nod("audit", "verify").exit_code == 0
    assert restored.end() == 0

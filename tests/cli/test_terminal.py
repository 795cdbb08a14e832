"""What differs where a person reads it on a terminal."""

import contextlib
import os
import pty
import re
import subprocess

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_commands import asked, parked, tamper  # noqa: F401
from tests.tiers import thin

pytestmark = pytest.mark.slow


def on_terminal(shell: Shell, *words: str, **more: str) -> str:
    """What a command prints there."""
    person, terminal = pty.openpty()
    try:
        environment = {"COLUMNS": "80", "NO_COLOR": ""} | more
        process: subprocess.Popen[str] = shell.begin(*words, stdout=terminal, **environment)
        os.close(terminal)
        read = b""
        while True:
            try:
                part = os.read(person, 4096)
            except OSError:  # Linux: the last one who wrote is gone
                break
            if not part:
                break
            read += part
        process.wait(30)
        return read.decode()
    finally:
        os.close(person)


def test_what_is_lost_for_good_is_red_and_lines_fit_unless_no_colour_is_wanted(
    shell: Shell,
    parked: list[str],  # noqa: F811
) -> None:
    tamper(shell, "UPDATE proposal SET level = 'destructive' WHERE id = ?", parked[0])
    lines = on_terminal(shell, "pending").splitlines()
    assert [each.startswith("\x1b[31m") for each in lines] == [" destructive " in each for each in lines]
    assert any(" destructive " in each for each in lines)
    bare = [re.sub(r"\x1b\[\d+m", "", each) for each in lines]
    assert {each.split()[0] for each in bare} == set(parked)
    assert all(len(each) <= 80 for each in bare)
    assert "\x1b" not in on_terminal(shell, "pending", NO_COLOR="1")
    assert "\x1b" not in shell.nod("pending").stdout


def test_letters_that_a_terminal_does_not_know_are_spelled_out(shell: Shell, parked: list[str]) -> None:  # noqa: F811
    shown = shell.process("pending", PYTHONIOENCODING="latin-1")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\u201c" in shown.stdout
    assert parked[0] in shown.stdout


def test_a_command_whose_output_is_closed_still_works(shell: Shell, parked: list[str]) -> None:  # noqa: F811
    ran = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *shell.command, "pending"],
        cwd=shell.folder,
        env=shell.environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_how_each_finding_is_has_a_colour(shell: Shell) -> None:
    said = on_terminal(shell, "doctor", NOD_PORT="0")
    assert re.search(r"^\x1b\[33mwarn\x1b\[0m model: the scripted demo", said, re.MULTILINE)


def told_beside(shell: Shell, *words: str, **more: str) -> tuple[str, str]:
    """What a command prints into a pipe, and what a person sees on the terminal."""
    person, terminal = pty.openpty()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*shell.command, *words],
            cwd=shell.folder,
            env=shell.environment | {"COLUMNS": "100", "TERM": "xterm"} | more,
            stdout=subprocess.PIPE,
            stderr=terminal,
            text=True,
        )
        os.close(terminal)
        printed, _ = process.communicate(timeout=60)
        seen = b""
        with contextlib.suppress(OSError):  # Linux: the one who wrote is gone
            while part := os.read(person, 4096):
                seen += part
        return printed, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    finally:
        os.close(person)


LONG = {
    "verify": (["audit", "verify"], r"Verifying rows .* \d+/\d+ 0:00:\d\d"),
    "export": (["audit", "export"], r"Exporting rows .* (\d+)/\1 0:00:\d\d"),
    "backup": (["backup", "copy.db"], r"Copying the database, in pages .* (\d+)/\1 0:00:\d\d"),
    "upgrade": (["db", "upgrade"], r"Upgrading the schema "),
    "copy": (["db", "copy", "nod.db", "other.db"], r"Copying rows .* (\d+)/\1 0:00:\d\d"),
    "doctor": (["doctor"], r"Checking .* \d/5 0:00:\d\d"),
}


@pytest.mark.parametrize("name", thin(LONG))
def test_what_takes_long_shows_how_far_it_is_to_who_looks_and_no_one_else(
    shell: Shell,
    parked: list[str],  # noqa: F811
    name: str,
) -> None:
    words, bar = LONG[name]
    printed, seen = told_beside(shell, *words, NOD_PORT="0")
    assert re.search(bar, seen)
    assert "\x1b" not in printed
    for file in ("copy.db", "other.db"):
        (shell.folder / file).unlink(missing_ok=True)
    piped = shell.nod(*words, NOD_PORT="0")
    assert (piped.stdout, piped.stderr) == (printed, "")


@pytest.mark.parametrize("words", thin(["audit verify --json", "doctor --json", "audit verify -q"]))
def test_a_program_that_reads_json_sees_no_bar(
    shell: Shell,
    parked: list[str],  # noqa: F811
    words: str,
) -> None:
    _, seen = told_beside(shell, *words.split(), NOD_PORT="0")
    assert seen == ""

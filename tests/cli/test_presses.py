"""``nod approve`` and what else is pressed in a shell: edits, grants, presses that come too late."""

import os
import pwd
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.cli.shared import get_shell_actor
from tests.cli.conftest import Shell
from tests.cli.test_commands import asked  # noqa: F401 - a database with two proposals in it

pytestmark = pytest.mark.slow


@pytest.fixture
def first(shell: Shell, asked: tuple[Path, list[str]]) -> str:  # noqa: F811 - the fixture by its name
    """The id of the first proposal, to create an issue; the operator may decide it."""
    shell.environment["NOD_ADMINS"] = "cli:operator"
    shutil.copy(asked[0], shell.folder / "nod.db")
    return asked[1][0]


def test_an_edit_is_begun_from_the_arguments_and_asks_again(shell: Shell, first: str):
    given = shell.nod("edit", first).stdout
    assert '"title": "First"' in given
    edited = shell.nod("edit", first, given.replace("First", "Primus"))
    assert (edited.exit_code, edited.stdout) == (0, "Edited. It needs approval in this form.\n")
    shown = shell.nod("show", first).stdout
    for words in ("Primus", "Round: 2", "May decide: Ana or any admin", "Asked by Ana, "):
        assert words in shown
    assert "Operator changed title: First → Primus." in shown
    for words in ("Operator changed title: First → Primus.", "Asked by Ana, "):
        shown = shell.nod("approvals", "show", first).stdout
        assert words in shown


def test_the_later_of_two_edits_is_told_what_the_earlier_changed(shell: Shell, first: str):
    given = shell.nod("edit", first).stdout
    shell.nod("edit", first, given.replace("First", "Primus"), "--round", "1")
    for words in (("edit", first, given.replace("First", "Erster")), ("approve", first), ("decline", first)):
        late = shell.nod(*words, "--round", "1")
        assert late.exit_code == 1
        assert "operator changed title: First → Primus" in late.stdout
    assert "Primus" in shell.nod("show", first).stdout


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{", "nod: JSON: this is not JSON"),
        ("[" * 100_000, "nod: JSON: this is not JSON"),
        ("[]", "nod: JSON: write a JSON object"),
        ("{}", "title: This is needed."),
        ('{"title": "x", "bogus": 1}', "bogus: There is no such field. There are: title, "),
    ],
)
def test_an_edit_that_does_not_fit_is_one_line_and_changes_nothing(
    shell: Shell, first: str, given: str, told: str
):
    refused = shell.nod("edit", first, given)
    assert refused.exit_code == 1
    assert told in refused.output
    assert len(refused.output.splitlines()) == 1
    assert "Round: 1" in shell.nod("show", first).stdout


def test_what_may_be_allowed_is_said_before_it_is(shell: Shell, first: str):
    ladder = shell.nod("similar", first)
    assert "--similar exact  create_issue with exactly these arguments\n" in ladder.stdout
    assert "--similar tool   create_issue with any arguments\n" in ladder.stdout
    assert "--whose here       Ana in the conversation where it was asked\n" in ladder.stdout
    assert "--for     conversation, 1h, 8h, 24h" in ladder.stdout
    allowed = shell.nod("approve", first, "--similar", "tool", "--for", "8h")
    assert allowed.stdout.startswith(
        "Create issue “First”: Approved. G-1 now allows create_issue with any arguments, for Ana in "
    )
    assert "G-1 by operator" in shell.nod("approvals", "grants").stdout


def test_half_of_a_grant_is_one_line_and_approves_nothing(shell: Shell, first: str):
    for more in (("--similar", "tool"), ("--for", "1h"), ("--similar", "tool", "--for", "1h", "--all")):
        refused = shell.nod("approve", first, *more)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert len(refused.stderr.splitlines()) == 1
    assert "Waiting for a decision" in shell.nod("show", first).stdout


def test_who_may_not_decide_neither_edits_nor_learns_what_could_be_allowed(shell: Shell, first: str):
    for words in (("edit", first, '{"title": "Mine"}'), ("similar", first), ("extend", first)):
        assert shell.nod(*words, NOD_ADMINS="slack:T1/U1").exit_code == 1
    assert "First" in shell.nod("show", first).stdout


def test_a_late_approval_asks_again_with_what_is_there_now(shell: Shell, first: str):
    with closing(sqlite3.connect(shell.folder / "nod.db")) as connection, connection:
        connection.execute("UPDATE proposal SET expires_at = '2026-01-01 00:00:00' WHERE id = ?", (first,))
    late = shell.nod("approve", first)
    assert late.exit_code == 1
    assert "nothing ran. Here it is again with current values" in late.stdout
    assert f"See: nod show {first}" in late.stdout
    assert "Round: 2" in shell.nod("show", first).stdout
    assert shell.nod("approve", first).stdout == "Create issue “First”: Approved.\n"


@pytest.mark.parametrize("words", [("approve",), ("show",), ("approvals", "approve")])
def test_fewer_than_four_characters_of_an_id_name_nothing(shell: Shell, first: str, words: tuple[str, ...]):
    refused = shell.nod(*words, first[:3])
    assert refused.exit_code == 1
    assert "ive at least 4 characters of the ID" in refused.output
    assert "Waiting for a decision" in shell.nod("show", first[:4]).stdout


def test_all_of_one_answer_are_decided_together(shell: Shell, first: str):
    assert shell.nod("decline", first, "not now", "--all").stdout == "1 declined.\n"
    assert len(shell.nod("pending").stdout.splitlines()) == 1


def test_who_asked_or_an_admin_takes_it_back(shell: Shell, first: str):
    assert shell.nod("cancel", first).stdout == "Withdrawn.\n"
    assert shell.nod("extend", first).exit_code == 1
    assert shell.nod("retry", first).exit_code == 1


def test_who_sits_at_the_shell_is_what_the_system_says_not_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    assert get_shell_actor().key == pwd.getpwuid(os.getuid()).pw_name


def test_someone_who_is_away_names_who_decides_and_comes_back(shell: Shell, first: str):
    assert shell.nod("away").stdout == "No one is away.\n"
    said = shell.nod("away", "http:ben", "for", "2d").stdout
    assert "http:ben may decide what you may" in said
    assert "nod back ends it" in said
    assert "http:ben may decide what they may" in shell.nod("away").stdout
    assert shell.nod("back").stdout.startswith("Ended: ")
    assert "Say who decides for you" in shell.nod("away", "http:ben").stdout

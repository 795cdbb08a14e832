"""Every command that looks: it has ``--json``, no colour where no person reads, and leaves no trace."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from bot.cli.main import main
from tests.cli.conftest import Shell

# what makes, changes or serves something, and what prints one thing in a form of its own
LIST_NOTHING = set(
    """
    nod init
    nod demo
    nod run
    nod worker
    nod open
    nod audit anchor
    nod audit export
    nod audit seal
    nod approve
    nod decline
    nod edit
    nod ask
    nod revise
    nod cancel
    nod extend
    nod stop
    nod retry
    nod link
    nod unlink
    nod tools call
    nod token new
    nod token revoke
    nod mcp login
    nod mcp logout
    nod backup
    nod db backup
    nod db upgrade
    nod db copy
    nod slack manifest
    """.strip()
    .replace("    ", "")
    .split("\n")
)

# each command that looks, with what it looks at
LOOKS = (
    "doctor",
    "pending",
    "show {id}",
    "team",
    "audit",
    "audit show {id}",
    "audit verify",
    "similar {id}",
    "tools list",
    "tools show create_issue",
    "token list",
    "approvals help",
    "approvals policy",
    'approvals policy test create_issue {{"title":"x"}}',
    "approvals rules",
    "approvals roles",
    "approvals grants",
    "approvals show {id}",
    "approvals audit",
    "approvals audit verify",
)
WITHOUT_JSON = ("audit anchor", "audit export", "edit {id}", "slack manifest")
_WEAK = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # root, but bound by a file's mode


def commands(group: TyperGroup, path: str = "nod") -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def takes_json(command: TyperCommand) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


@pytest.fixture
def asked(shell: Shell) -> str:
    """The ID of a proposal that waits in the demo's database."""
    assert shell.nod("db", "upgrade", "--demo").exit_code == 0
    assert shell.nod("tools", "call", "create_issue", '{"title": "Lamp"}', "--demo").exit_code == 0
    [waiting] = json.loads(shell.nod("pending", "--json", "--demo").stdout)
    return str(waiting["id"])


def test_each_command_has_json_or_lists_nothing() -> None:
    every = dict(commands(typer.main.get_group(main)))
    assert {name for name, command in every.items() if not takes_json(command)} == LIST_NOTHING
    looks = [f"nod {look} " for look in LOOKS]
    listed = [name for name, command in every.items() if takes_json(command)]
    assert [name for name in listed if not any(look.startswith(f"{name} ") for look in looks)] == []


@pytest.mark.parametrize("look", LOOKS)
def test_what_looks_prints_json_and_no_colour_where_no_person_reads(
    shell: Shell, asked: str, look: str
) -> None:
    del shell.environment["NO_COLOR"]
    words = look.format(id=asked).split()
    shown = shell.nod(*words, "--demo", NOD_PORT="0")
    assert shown.stdout
    assert "\x1b" not in shown.stdout
    printed = shell.nod(*words, "--demo", "--json", NOD_PORT="0")
    assert isinstance(json.loads(printed.stdout), (list, dict))
    assert printed.exit_code == shown.exit_code


def whoami() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S607


def bound_by_modes() -> tuple[str, ...]:
    """What to write before a command so that it may not write to what is read-only."""
    if os.geteuid():
        return ()
    if shutil.which(_WEAK[0]) is None or subprocess.run([*_WEAK, "true"], check=False).returncode:  # noqa: S603
        pytest.skip("root may write everywhere here, and nothing takes that away")
    return _WEAK


@contextlib.contextmanager
def read_only_copy(shell: Shell) -> Iterator[None]:
    """The shell is where ``copy.db`` is, and may write nothing there; nothing is left behind."""
    shell.command = (*bound_by_modes(), *shell.command)
    there = shell.folder / "there"
    there.mkdir()
    assert shell.nod("backup", str(there / "copy.db"), "--demo").exit_code == 0
    (there / "copy.db").chmod(0o400)
    there.chmod(0o500)
    shell.folder = there
    try:
        yield
        left = [path.name for path in there.iterdir()]
    finally:
        there.chmod(0o700)
    assert left == ["copy.db"]


@pytest.mark.slow
@pytest.mark.parametrize("look", [*LOOKS, *WITHOUT_JSON])
def test_what_looks_works_on_a_read_only_copy_and_leaves_nothing_behind(
    shell: Shell, asked: str, look: str
) -> None:
    with read_only_copy(shell):
        done = shell.process(
            *look.format(id=asked).split(), "-d", "copy.db", NOD_PORT="0", NOD_ADMINS=f"cli:{whoami()}"
        )
    if look == "doctor":  # it says that a nod could not run here
        assert "attempt to write a readonly database" in done.stdout
    else:
        assert (done.stderr, done.returncode) == ("", 0)
        assert done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", ["approvals pause", "approvals quorum 2", "link"])
def test_what_changes_rows_says_of_a_read_only_copy_that_it_cannot(
    shell: Shell, asked: str, words: str
) -> None:
    with read_only_copy(shell):
        done = shell.process(*words.split(), "-d", "copy.db", NOD_PORT="0", NOD_ADMINS=f"cli:{whoami()}")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "attempt to write a readonly database" in done.stderr

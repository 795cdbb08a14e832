"""Every command that looks: it has ``--json``, no colour where no person reads, and leaves no trace."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from bot.cli.command import LazyGroup
from bot.cli.main import main
from tests.cli.conftest import Shell, shell_in
from tests.kit.modes import bound_by_modes

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
    nod answer
    nod revise
    nod cancel
    nod extend
    nod stop
    nod retry
    nod undo
    nod away
    nod back
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
    nod push keys
    nod secrets new
    nod secrets rotate
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
    "schedules",
    "memory",
    "connections",
)
CHANGES = ("approvals pause", "approvals quorum 2", "link")
WITHOUT_JSON = ("audit anchor", "audit export", "edit {id}", "slack manifest")


def commands(group: TyperGroup, path: str = "nod") -> Iterator[tuple[str, TyperCommand]]:
    for name in group.commands:
        command = group.load_command(name) if isinstance(group, LazyGroup) else group.commands[name]
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def takes_json(command: TyperCommand) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's database in which one proposal waits, made once, and the ID of that."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch, shell_in(folder, patch) as shell:
        assert shell.nod("db", "upgrade", "--demo").exit_code == 0
        assert shell.nod("tools", "call", "create_issue", '{"title": "Lamp"}', "--demo").exit_code == 0
        [waiting] = json.loads(shell.nod("pending", "--json", "--demo").stdout)
        assert shell.nod("backup", "copy.db", "--demo").exit_code == 0
    return folder / "copy.db", str(waiting["id"])


@pytest.fixture
def asked(shell: Shell, demo: tuple[Path, str]) -> str:
    """The ID of a proposal that waits in the demo's database."""
    file, ident = demo
    shutil.copy(file, shell.folder / "nod-demo.db")
    return ident


def test_each_command_has_json_or_lists_nothing() -> None:
    every = dict(commands(typer.main.get_group(main)))
    assert {name for name, command in every.items() if not takes_json(command)} == LIST_NOTHING
    looks = [f"nod {look} " for look in LOOKS]
    listed = [name for name, command in every.items() if takes_json(command)]
    assert [name for name in listed if not any(look.startswith(f"{name} ") for look in looks)] == []


@pytest.mark.slow
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


Done = dict[str, Any]


@pytest.fixture(scope="module")
def on_a_read_only_copy(
    tmp_path_factory: pytest.TempPathFactory, demo: tuple[Path, str]
) -> Iterator[dict[str, Done]]:
    """What each command did, one after another in a process that may write nothing there."""
    file, ident = demo
    folder = tmp_path_factory.mktemp("there")
    shutil.copy(file, folder)
    (folder / "copy.db").chmod(0o400)
    folder.chmod(0o500)
    every = [*LOOKS, *WITHOUT_JSON, *CHANGES]
    commands = [[*each.format(id=ident).split(), "-d", "copy.db"] for each in every]
    try:
        with pytest.MonkeyPatch.context() as patch, shell_in(folder, patch) as shell:
            ended = subprocess.run(  # noqa: S603 - our own command
                [*bound_by_modes(), sys.executable, "-m", "tests.cli.several"],
                cwd=folder,
                env=shell.environment | {"NOD_PORT": "0", "NOD_ADMINS": f"cli:{whoami()}"},
                input=json.dumps(commands),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        assert ended.returncode == 0, ended.stderr
        yield dict(zip(every, json.loads(ended.stdout), strict=True))
    finally:
        folder.chmod(0o700)


@pytest.mark.slow
@pytest.mark.parametrize("look", [*LOOKS, *WITHOUT_JSON])
def test_what_looks_works_on_a_read_only_copy_and_leaves_nothing_behind(
    on_a_read_only_copy: dict[str, Done], look: str
) -> None:
    done = on_a_read_only_copy[look]
    assert done["files"] == ["copy.db"]
    if look == "doctor":  # it says that a nod could not run here
        assert "attempt to write a readonly database" in done["stdout"]
    else:
        assert (done["stderr"], done["code"]) == ("", 0)
        assert done["stdout"]


@pytest.mark.slow
@pytest.mark.parametrize("words", CHANGES)
def test_what_changes_rows_says_of_a_read_only_copy_that_it_cannot(
    on_a_read_only_copy: dict[str, Done], words: str
) -> None:
    done = on_a_read_only_copy[words]
    assert (done["stdout"], done["code"], done["files"]) == ("", 1, ["copy.db"])
    assert "attempt to write a readonly database" in done["stderr"]

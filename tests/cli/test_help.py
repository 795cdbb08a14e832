"""``nod --help`` and what every command of ``nod`` has."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

import bot
from bot.cli.command import LazyGroup, SharedOptions
from bot.cli.main import main
from tests.cli.conftest import Shell

HEAVY = "sqlalchemy openai slack_bolt telegram mcp alembic pydantic rich"


def test_the_list_of_commands_imports_none_of_them() -> None:
    look = f"import sys, bot.cli.main; print([m for m in {HEAVY.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_what_speaks_mcp_is_not_loaded_before_there_is_a_server() -> None:
    look = "import sys, bot.app.assembly; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_what_waits_is_listed_without_what_serves(shell: Shell) -> None:
    shell.nod("db", "upgrade")
    unneeded = (
        "openai slack_bolt telegram mcp ag_ui alembic cryptography starlette structlog rich "
        "aiosqlite apscheduler greenlet httpx2 procrastinate psycopg yaml "
        "bot.domain.cards bot.domain.chat bot.store.transitions bot.store.teams bot.tools "
        "bot.store.migrations.schema"
    )
    look = (
        "import sys; before = {*sys.modules};"
        "from bot.cli.main import main; main(['pending', '-d', 'nod.db'], standalone_mode=False);"
        f"print([m for m in {unneeded.split()} if m in {{*sys.modules}} - before]);"
        "print(*sorted(m for m in sys.modules if m.startswith('bot.store.tables.')))"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)  # noqa: S603 - our own
    answer, heavy, tables = done.stdout.splitlines()
    assert answer == "Nothing is waiting for a decision."
    assert heavy == "[]"
    assert tables.replace("bot.store.tables.", "").split() == ["audit", "conversations", "proposals", "row"]


SECTIONS = {
    "Start": "init demo run worker doctor",
    "Look": "open pending show team audit",
    "Decide": "approve answer decline similar edit ask revise cancel extend stop retry undo",
    "Rules and people": "approvals away back connections schedules memory link unlink",
    "Tools and agents": "tools token mcp",
    "Set up": "backup db push secrets slack",
}


def test_help_lists_every_command_in_its_section(shell: Shell) -> None:
    shown = shell.nod("-h").stdout
    assert shown == shell.nod("--help").stdout
    for section, names in SECTIONS.items():
        listed = shown.partition(f" {section} ")[2].partition("╰")[0]
        found = re.findall(r"^│ (\w+)", listed, re.MULTILINE)
        assert sorted(found) == sorted(names.split()), section


def list_commands(group: TyperGroup, path: str = "nod") -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    yield path, group
    for name in group.commands:
        command = group.load_command(name) if isinstance(group, LazyGroup) else group.commands[name]
        if isinstance(command, TyperGroup):
            yield from list_commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_each_command_takes_the_options_of_all() -> None:
    all_of_them = list(list_commands(typer.main.get_group(main)))
    assert len(all_of_them) > 25
    for name, command in all_of_them:
        taken = {opt for parameter in command.params for opt in parameter.opts}
        assert taken >= {"-d", "--database", "--demo", "-q", "--quiet", "-v", "--verbose"}, name


def test_each_command_is_listed_with_the_first_line_of_its_own_help() -> None:
    group = typer.main.get_group(main)
    assert isinstance(group, LazyGroup)
    for name, listed in group.commands.items():
        assert group.load_command(name).help.partition("\n\n")[0].replace("\n", " ") == listed.help, name


def test_the_version_is_told(shell: Shell) -> None:
    assert shell.nod("--version").stdout == f"nod {bot.__version__}\n"


def test_a_misspelt_command_gets_the_near_one(shell: Shell) -> None:
    told = shell.nod("aprove")
    assert told.exit_code == 2
    assert "Did you mean 'approve'" in told.stderr


def test_the_database_is_named_before_or_after_the_command(shell: Shell) -> None:
    assert shell.nod("db", "upgrade", "-d", "one.db").exit_code == 0
    assert shell.nod("--demo", "db", "upgrade").exit_code == 0
    assert {path.name for path in shell.folder.glob("*.db")} == {"one.db", "nod-demo.db"}
    for words in (("-d", "one.db", "pending"), ("pending", "--database", "one.db"), ("pending", "--demo")):
        assert shell.nod(*words).stdout == "Nothing is waiting for a decision.\n"
    assert "there is no file nod.db here" in shell.nod("pending").stderr


def test_a_named_database_may_be_an_address(shell: Shell) -> None:
    assert shell.nod("db", "upgrade", "-d", "sqlite:///two.db").exit_code == 0
    refused = shell.nod("pending", "-d", "mysql://x/y")
    assert refused.stderr.startswith("nod: NOD_DATABASE_URL: write sqlite:///file.db or postgresql")


@pytest.mark.parametrize(
    ("options", "usual", "level"),
    [
        ({}, "warning", "warning"),
        ({"verbose": True}, "warning", "info"),
        ({"verbose": True}, "info", "debug"),
        ({"quiet": True}, "info", "error"),
        ({"quiet": True, "verbose": True}, "debug", "error"),
        ({"quiet": True}, "critical", "critical"),
    ],
)
def test_q_and_v_say_how_much_is_logged(options: dict[str, bool], usual: str, level: str) -> None:
    assert SharedOptions(**options).log_level(usual) == level


def completed(shell: Shell, *words: str) -> list[str]:
    """What the shell offers for the last word."""
    asked = {
        "_NOD_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["nod", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = CliRunner().invoke(main, [], env=shell.environment | asked, prog_name="nod")
    return done.stdout.split()


def test_the_shell_completes_ids_of_proposals_and_names_of_tools(shell: Shell) -> None:
    assert completed(shell, "approve", "") == []  # there is no database, and none is made
    assert list(shell.folder.iterdir()) == []
    assert shell.nod("db", "upgrade", "--demo").exit_code == 0
    assert shell.nod("tools", "call", "create_issue", '{"title": "Lamp"}', "--demo").exit_code == 0
    (asked,) = json.loads(shell.nod("pending", "--json", "--demo").stdout)
    assert completed(shell, "--demo", "approve", "") == [asked["id"]]
    assert completed(shell, "--demo", "show", asked["id"][:3]) == [asked["id"]]
    assert completed(shell, "--demo", "show", "zzz") == []
    assert completed(shell, "tools", "call", "create_i") == ["create_issue"]


def test_one_proposal_is_shown_as_json_too(shell: Shell) -> None:
    assert shell.nod("db", "upgrade", "--demo").exit_code == 0
    assert shell.nod("tools", "call", "create_issue", '{"title": "Lamp"}', "--demo").exit_code == 0
    (listed,) = json.loads(shell.nod("pending", "--json", "--demo").stdout)
    assert json.loads(shell.nod("show", listed["id"], "--json", "--demo").stdout) == listed
